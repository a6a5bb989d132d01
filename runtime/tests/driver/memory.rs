//! Memory on the fake driver: transfers, pinned and foreign memory, and streams.

use super::*;

pub(super) fn all_transfers() -> Outcome {
    let device = Device::cuda(0)?;
    for check in [transfers::random_views, transfers::halves, transfers::asynchronous] {
        check(&device).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// The host cannot wait for a stream that is captured.
pub(super) fn transfers_in_a_capture() -> Outcome {
    let (device, fake) = (Device::cuda(0)?, Fake::new()?);
    let (mut x, y) = (device.upload(&[1.0; 4])?, device.upload(&[2.0; 4])?);
    let (event, one, two) = (device.record()?, device.pinned(4)?, device.pinned(4)?);
    fake.set_capturing(1)?;
    let calls = [
        x.write(&[3.0; 4]),
        x.read_into(&mut [0.0; 4]),
        device.download(&x).map(drop),
        device.pinned::<f32>(1).map(drop),
        device.wait_for(&event),
        device.record().map(drop),
        x.write_async(one).map(drop),
        x.read_async(two).map(drop),
    ];
    let (copied, filled) = (x.copy_from(&y), x.slice_mut(..1)?.fill(4.0));
    fake.set_capturing(0)?;
    for call in calls {
        ensure(matches!(call, Err(Error::Capturing { .. })), || format!("{call:?}"))?;
    }
    copied.and(filled)?;
    let got = device.download(&x)?;
    ensure(got == [4.0, 2.0, 2.0, 2.0], || format!("{got:?}"))
}

/// A view of a slice is consecutive elements, and does not know its device.
#[allow(unsafe_code, reason = "memory of 2 GB that no test touches")]
pub(super) fn matrices_in_slices() -> Outcome {
    let device = Device::cuda(0)?;
    let (_, stream) = device.cudarc().ok_or("a GPU")?;
    let mut x = stream.clone_htod(&[0.0_f32; 6])?;
    let mut matrix = MatrixMut::new(&mut x, 2, 3)?;
    for (error, call) in [
        (matrix.write(&[1.0; 6]), "write("),
        (matrix.fill(1.0), "fill("),
        (matrix.read_into(&mut [0.0; 6]), "read_into("),
        (matrix.copy_from(&device.alloc(6)?), "copy("),
    ] {
        let error = error.err().ok_or("no device")?.to_string();
        ensure(error.contains(&format!("call `device.{call}")), || error)?;
    }
    device.write(&mut matrix, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    let error = matrix.split_at_col_mut(1).map(drop);
    ensure(matches!(error, Err(Error::Interleaved)), || format!("{error:?}"))?;
    for at in 0..=2 {
        let value = at as f32;
        let (mut first, mut second) = matrix.split_at_row_mut(at)?;
        device.fill(&mut first, -value)?;
        device.fill(&mut second, value)?;
        let expected: Vec<f32> = (0..6).map(|i| if i < 3 * at { -value } else { value }).collect();
        let got = device.download(&matrix)?;
        ensure(got == expected, || format!("rows at {at}: {got:?}"))?;
    }
    let mut transposed = matrix.t();
    let (_, mut second) = transposed.split_at_col_mut(1)?;
    device.fill(&mut second, 9.0)?;
    for at in [0, 2] {
        let (mut first, mut second) = matrix.split_at_col_mut(if at == 0 { 0 } else { 3 })?;
        device.fill(if at == 0 { &mut first } else { &mut second }, 7.0)?;
    }
    let got = stream.clone_dtoh(&x)?;
    ensure(got == [-2.0, -2.0, -2.0, 9.0, 9.0, 9.0], || format!("{got:?}"))?;

    // The driver copies no rows that are 2^31 bytes apart.
    const PITCH: usize = (1 << 29) + 3;
    // SAFETY: the test reads only the elements that it has written.
    let mut large = unsafe { stream.alloc::<f32>(PITCH + 3) }?;
    let mut matrix = MatrixMut::pitched(&mut large, 2, 3, PITCH)?;
    device.write(&mut matrix, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    device.fill(&mut matrix.part(0..2, 1..2)?, 8.0)?;
    let got = device.download(&matrix)?;
    ensure(got == [1.0, 8.0, 3.0, 4.0, 8.0, 6.0], || format!("{got:?}"))
}

/// The fake copies pinned memory as late as it may.
pub(super) fn pinned_memory() -> Outcome {
    let (device, fake) = (Device::cuda(0)?, Fake::new()?);
    let before = fake.get("allocations")?;
    let mut x = device.alloc(4)?;
    let mut elements = device.pinned(4)?;
    elements.fill(1.0);
    let transfer = x.write_async(elements)?;
    ensure(!transfer.is_done()?, || "the fake does not wait".to_owned())?;
    let event = device.record()?;
    ensure(!event.is_done()?, || "the event is done".to_owned())?;
    let mut elements = transfer.wait()?;
    ensure(!event.is_done()?, || "the later event is done".to_owned())?;
    elements.fill(2.0);
    let got = x.read_async(elements)?.wait()?.to_vec();
    ensure(got == [1.0; 4], || format!("{got:?}"))?;

    // A drop waits, and the buffer may be dropped before.
    let transfer = x.read_async(device.pinned(4)?)?;
    drop(x);
    drop(transfer);
    device.synchronize()?;
    let mut y = device.alloc(4)?;
    std::mem::forget(y.write_async(device.pinned(4)?)?);
    drop(y);
    device.synchronize()?;
    ensure(fake.get("freed early")? == 0, || "memory was freed early".to_owned())?;
    let more = fake.get("allocations")? - before;
    ensure(more == 1, || format!("{more} allocations are left instead of the forgotten one"))?;
    ensure(device.pinned::<f32>(0)?.is_empty(), || "an element".to_owned())
}

/// If nobody can know that a transfer is done, its memory is not freed.
pub(super) fn failed_wait() -> Outcome {
    let (device, fake) = (Device::cuda(0)?, Fake::new()?);
    let mut x = device.alloc(4)?;
    let before = fake.get("allocations")?;
    let error = x.write_async(device.pinned(4)?)?.wait();
    ensure(matches!(error, Err(Error::Driver { status: 700, .. })), || format!("{error:?}"))?;
    drop(x.read_async(device.pinned(4)?)?);
    let more = fake.get("allocations")? - before;
    ensure(more == 2, || format!("{more} allocations"))
}

#[allow(unsafe_code, reason = "memory of another owner")]
pub(super) fn foreign_memory() -> Outcome {
    let (device, fake) = (Device::cuda(0)?, Fake::new()?);
    let mut owner = device.upload(&[1.0, 2.0, 3.0, 4.0])?;
    let address = owner.raw_address().ok_or("an address")?;
    let before = fake.get("allocations")?;
    // SAFETY: `owner` has 3 elements from its second on, and is not used before the buffer is gone.
    let mut x = unsafe { Buffer::<f32>::from_raw_parts(&device, address + 4, 3) }?;
    ensure(device.download(&x)? == [2.0, 3.0, 4.0], || "other elements".to_owned())?;
    x.fill(7.0)?;
    drop(x);
    device.synchronize()?;
    ensure(fake.get("allocations")? == before, || "it was freed".to_owned())?;
    owner.write_at(3, &[5.0])?;
    ensure(device.download(&owner)? == [1.0, 7.0, 7.0, 5.0], || "not written".to_owned())?;
    for (address, len, words) in [
        (0, 1, "it is the null pointer"),
        (address + 2, 1, "the address is not a multiple of 4"),
        (address, usize::MAX / 4, "reach beyond the address space"),
        (address, usize::MAX, "reach beyond the address space"),
    ] {
        // SAFETY: the call is refused.
        let error = unsafe { Buffer::<f32>::from_raw_parts(&device, address, len) };
        let error = error.err().ok_or("it is accepted")?.to_string();
        ensure(error.contains(words), || error)?;
    }
    // SAFETY: no element is used.
    let empty = unsafe { Buffer::<f32>::from_raw_parts(&device, 0, 0) }?;
    ensure(device.download(&empty)?.is_empty(), || "elements".to_owned())
}

/// The fake executes the work of a stream as late as it may, so a missing wait changes a result.
pub(super) fn several_streams() -> Outcome {
    let (device, fake) = (Device::cuda(0)?, Fake::new()?);
    // With one stream, nothing waits.
    let mut x = device.alloc(2)?;
    x.fill(1.0)?;
    let (before, waits) = (fake.get("allocations")?, fake.get("waits before")?);
    ensure(waits == 0, || format!("{waits} waits"))?;
    transfers::streams(&device).map_err(|error| error.to_string())?;
    device.synchronize()?;
    ensure(fake.get("freed early")? == 0, || "memory was freed early".to_owned())?;
    let after = fake.get("allocations")?;
    ensure(after == before, || format!("{after} allocations, not {before}"))?;

    // Reads of two streams do not wait for each other.
    let other = device.on_new_stream()?;
    let read = |device: &Device| -> Outcome { Ok(device.copy(&x, &mut device.alloc(2)?)?) };
    read(&device)?;
    read(&other)?;
    let waits = fake.get("waits before")?;
    read(&device)?;
    read(&other)?;
    // One for the first write of `x`, which was before the second stream; each copy's target is
    // new.
    let more = fake.get("waits before")? - waits;
    ensure(more == 0, || format!("{more} waits"))?;

    // A list's launch is a use of its matrices.
    let mut c = [device.alloc_matrix(1, 1)?, device.alloc_matrix(1, 1)?];
    let (a, b) = (device.alloc_matrix(1, 1)?, device.alloc_matrix(1, 1)?);
    let gemm: SgemmKernel = SgemmKernel::new("block: 8x8, batch: pointers".parse()?)?;
    {
        let (a, b) = (MatrixList::new(&device, [&a, &a])?, MatrixList::new(&device, [&b, &b])?);
        let mut c = MatrixListMut::new(&device, &mut c)?;
        gemm.call(&device).launch(&a, &b, &mut c)?;
    }
    let waits = fake.get("waits after")?;
    other.fill(&mut c[1], 1.0)?;
    let mut a = a;
    other.fill(&mut a, 1.0)?;
    let more = fake.get("waits after")? - waits;
    ensure(more >= 2, || format!("{more} waits for the launch of a list"))
}
