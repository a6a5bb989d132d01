//! Allocations, and memory that belongs to the user.

use super::{Outcome, ensure, sum, total, values};
use gemm_runtime::cudarc::driver::{CudaContext, CudaStream};
use gemm_runtime::half::{bf16, f16};
use gemm_runtime::{Device, Element, Error};
use std::sync::Arc;

pub(super) fn bad_ordinal() -> Outcome {
    let count = usize::try_from(CudaContext::device_count()?)?;
    let error = Device::cuda(count);
    ensure(matches!(error, Err(Error::BadOrdinal { count: n, .. }) if n == count), || {
        format!("{error:?}")
    })
}

pub(super) fn out_of_memory() -> Outcome {
    let gpu = Device::cuda(0)?;
    for elements in [1 << 40, usize::MAX / 8, usize::MAX] {
        let error = gpu.alloc(elements);
        ensure(matches!(error, Err(Error::OutOfMemory { .. })), || format!("{error:?}"))?;
    }
    let input = gpu.upload(&[1.0; 100])?;
    ensure(gpu.download(&input)? == [1.0; 100], || "the device is of no use afterwards".to_owned())
}

/// Each element type is uploaded, viewed and zeroed, both in a buffer and in a `cudarc` slice.
pub(super) fn elements() -> Outcome {
    fn round_trip<T: Element + PartialEq>(gpu: &Device, of: fn(u8) -> T) -> Outcome {
        let values: Vec<T> = (0..100).map(of).collect();
        let buffer = gpu.upload_of(&values)?;
        let (whole, part) = (gpu.download(&buffer)?, gpu.download(&buffer.slice(3..97)?)?);
        let zeros = gpu.download(&gpu.alloc_of::<T>(7)?)?;
        let same = whole == values && part == values[3..97] && zeros == vec![of(0); 7];
        ensure(same, || format!("{}: {whole:?} {part:?} {zeros:?}", T::ELEM))
    }
    let gpu = Device::cuda(0)?;
    round_trip(&gpu, f64::from)?;
    round_trip(&gpu, f32::from)?;
    round_trip(&gpu, f16::from)?;
    round_trip(&gpu, |v| bf16::from_f32(v.into()))?;
    round_trip(&gpu, i64::from)?;
    round_trip(&gpu, u64::from)?;
    round_trip(&gpu, i32::from)?;
    round_trip(&gpu, u32::from)?;
    round_trip(&gpu, i16::from)?;
    round_trip(&gpu, u16::from)?;
    round_trip(&gpu, |v| v as i8)?;
    round_trip(&gpu, |v| v)?;
    let (_, stream) = gpu.cudarc().ok_or("no GPU")?;
    let got = gpu.download(&stream.clone_htod(&[1_i64, -2, 3])?)?;
    ensure(got == [1, -2, 3], || format!("{got:?}"))
}

pub(super) fn huge() -> Outcome {
    let gpu = Device::cuda(0)?;
    let (_, stream) = gpu.cudarc().ok_or("no GPU")?;
    let len = (1_usize << 31) + 5;
    let mut input = stream.alloc_zeros::<f32>(len)?;
    for at in [0, (1 << 31) - 1, 1 << 31, len - 1] {
        stream.memcpy_htod(&[1.0], &mut input.slice_mut(at..=at))?;
    }
    let mut output = gpu.alloc(1)?;
    for line in ["block: 256, items: 4, shuffle", "block: 32", "float4, items: 4"] {
        super::kernel(line)?.launch(&gpu, &input, &mut output)?;
        let got = gpu.download(&output)?;
        ensure(got == [4.0], || format!("{line}: {got:?}"))?;
    }
    Ok(())
}

pub(super) fn cudarc_slices() -> Outcome {
    let context = CudaContext::new(0)?;
    for stream in [context.default_stream(), context.new_stream()?] {
        let device = Device::from_cudarc(context.clone(), stream.clone())?;
        let values = values(10_000);
        let input = stream.clone_htod(&values)?;
        let mut output = stream.alloc_zeros::<f32>(3)?;
        sum()?.launch(&device, &input, &mut output)?;
        sum()?.launch(&device, &input.slice(100..), &mut output.slice_mut(1..2))?;
        let mixed = device.upload(&values)?;
        sum()?.launch(&device, &mixed, &mut output.slice_mut(2..))?;
        let got: Vec<f64> = stream.clone_dtoh(&output)?.into_iter().map(f64::from).collect();
        let expected = [total(&values), total(&values[100..]), total(&values)];
        ensure(got == expected, || format!("{got:?}, not {expected:?}"))?;
        let error = sum()?.launch(&device, &input, &mut output.slice_mut(3..));
        ensure(matches!(error, Err(Error::WrongExtent { .. })), || format!("{error:?}"))?;
    }
    Ok(())
}

/// A slice is filled by another object for the same context, reduced, and overwritten. One of the
/// objects has one stream, so that `cudarc` records no events in it.
pub(super) fn other_object() -> Outcome {
    for (with_streams, on_default) in [(false, false), (true, false), (true, true), (false, true)] {
        let context = CudaContext::new(0)?;
        let further = with_streams.then(|| context.new_stream()).transpose()?;
        let stream = further.unwrap_or_else(|| context.default_stream());
        let own = CudaContext::new(0)?;
        let device = match on_default {
            true => Device::from_cudarc(own.clone(), own.default_stream())?,
            false => Device::cuda(0)?,
        };
        summed_between(&device, [&stream, &stream], 1 << 24).map_err(|error| {
            let message = error.message().unwrap_or_default();
            format!("{with_streams}, {on_default}: {message}")
        })?;
    }
    Ok(())
}

/// A slice is filled on the first stream, reduced by the device, and overwritten on the second, in
/// several rounds.
fn summed_between(device: &Device, streams: [&Arc<CudaStream>; 2], len: usize) -> Outcome {
    let [before, after] = streams;
    let (zeros, ones) = (vec![0.0_f32; len], vec![1.0_f32; len]);
    let mut input = before.clone_htod(&zeros)?;
    let mut output = after.alloc_zeros::<f32>(1)?;
    for round in 0..20 {
        before.memcpy_htod(&ones, &mut input)?;
        sum()?.launch(device, &input, &mut output)?;
        after.memset_zeros(&mut input)?;
        let got = after.clone_dtoh(&output)?;
        ensure(got == [len as f32], || format!("round {round}: {got:?}"))?;
    }
    Ok(())
}

/// A slice is filled on one stream, reduced on the device's stream and overwritten on a third.
pub(super) fn other_streams() -> Outcome {
    let context = CudaContext::new(0)?;
    let device = Device::from_cudarc(context.clone(), context.new_stream()?)?;
    let (before, after) = (context.new_stream()?, context.new_stream()?);
    summed_between(&device, [&before, &after], 1 << 24)
}

/// A device for the per-thread default stream has a stream of its own. Its launches are ordered
/// with the work of all threads on their slices.
pub(super) fn per_thread_stream() -> Outcome {
    let context = CudaContext::new(0)?;
    let stream = context.per_thread_stream();
    let device = Device::from_cudarc(context, stream.clone())?;
    let work = || summed_between(&device, [&stream, &stream], 1 << 22);
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..3).map(|_| scope.spawn(work)).collect();
        running.into_iter().try_for_each(|t| t.join().map_err(|_| "a thread panicked")?)
    })
}

/// A buffer may be freed by a thread that has never called the driver. Nothing leaks, and nothing
/// fails later.
pub(super) fn dropped_elsewhere() -> Outcome {
    let gpu = Device::cuda(0)?;
    for _ in 0..200 {
        let buffer = gpu.alloc(1 << 28)?;
        std::thread::spawn(move || drop(buffer)).join().map_err(|_| "a thread panicked")?;
    }
    Ok(gpu.synchronize()?)
}
