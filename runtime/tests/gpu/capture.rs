//! Launches captured into CUDA graphs.

use super::{Outcome, ensure, kernel, sum};
use gemm_runtime::cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use gemm_runtime::{Buffer, Device, Error, MatrixRef, ReduceKernel, reduce_kernel};

/// Lets other threads allocate during a capture.
const MODE: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
const LEN: usize = 1_000_000;

/// Captures a launch of several passes and replays it on changed input.
pub(super) fn buffers() -> Outcome {
    let gpu = Device::cuda(0)?;
    let (_, stream) = gpu.cudarc().ok_or("no GPU")?;
    let (small, large) = (gpu.upload(&[1.0; 1000])?, gpu.upload(&vec![1.0; LEN])?);
    let mut output = gpu.alloc(2)?;
    let kernel = sum()?;
    kernel.launch(&gpu, &large, &mut output)?;

    stream.begin_capture(MODE)?;
    let first = kernel.launch(&gpu, &large, &mut output.slice_mut(..1)?);
    let second = kernel.launch(&gpu, &small, &mut output.slice_mut(1..)?);
    let graph = stream.end_capture(CUgraphInstantiate_flags(0))?.ok_or("an empty graph")?;
    ensure(first?.passes() > 1, || "one pass shows nothing".to_owned())?;
    second?;

    // Only the first launch has run so far. The captured launch has not.
    let got = gpu.download(&output)?;
    ensure(got == [LEN as f32, 0.0], || format!("before the replay: {got:?}"))?;
    for _ in 0..3 {
        graph.launch()?;
        let got = gpu.download(&output)?;
        ensure(got == [LEN as f32, 1000.0], || format!("after a replay: {got:?}"))?;
    }
    Ok(())
}

/// The code of a captured launch stays loaded although the device evicts the kernels of all others.
pub(super) fn evicted() -> Outcome {
    let gpu = Device::cuda(0)?;
    let (_, stream) = gpu.cudarc().ok_or("no GPU")?;
    let input = gpu.upload(&vec![1.0; LEN])?;
    let (mut output, mut other) = (gpu.alloc(1)?, gpu.alloc(1)?);
    let (captured, evicted) = (kernel("name: captured")?, kernel("name: evicted")?);
    for kernel in [&captured, &evicted] {
        kernel.launch(&gpu, &input, &mut output)?;
    }
    stream.begin_capture(MODE)?;
    let launched = captured.launch(&gpu, &input, &mut output);
    let graph = stream.end_capture(CUgraphInstantiate_flags(0))?.ok_or("an empty graph")?;
    launched?;

    gpu.keep_at_most(0);
    ensure(gpu.kept_kernels() == 1, || format!("{} kernels are kept", gpu.kept_kernels()))?;
    ensure(!gpu.forget(&captured), || "a captured kernel was forgotten".to_owned())?;
    for round in 0..20 {
        // Each launch is evicted by the next one, and may still run.
        for name in ["a", "b", "c"] {
            kernel(&format!("name: {name}"))?.launch(&gpu, &input, &mut other)?;
        }
        graph.launch()?;
        let got = [gpu.download(&output)?[0], gpu.download(&other)?[0]];
        ensure(got == [LEN as f32; 2], || format!("round {round}: {got:?}"))?;
    }
    Ok(())
}

/// Captures and replays a launch on slices whose events `cudarc` tracks.
pub(super) fn slices() -> Outcome {
    let gpu = Device::cuda(0)?;
    let (context, stream) = gpu.cudarc().ok_or("no GPU")?;
    ensure(context.is_managing_stream_synchronization(), || "nothing is tracked".to_owned())?;
    let mut input = stream.clone_htod(&vec![1.0_f32; LEN])?;
    let mut output = stream.alloc_zeros::<f32>(1)?;
    let kernel = sum()?;
    kernel.launch(&gpu, &input, &mut output)?;
    stream.synchronize()?;

    stream.begin_capture(MODE)?;
    let launched = kernel.launch(&gpu, &input, &mut output);
    let graph = stream.end_capture(CUgraphInstantiate_flags(0))?.ok_or("an empty graph")?;
    launched?;

    for value in [2.0, 3.0] {
        stream.memcpy_htod(&vec![value; LEN], &mut input)?;
        graph.launch()?;
        let got = stream.clone_dtoh(&output)?;
        ensure(got == [value * LEN as f32], || format!("{got:?}"))?;
    }
    Ok(())
}

/// A launch that would have to compile or allocate returns an error and leaves the capture intact.
pub(super) fn first_launch() -> Outcome {
    let gpu = Device::cuda(0)?;
    let (_, stream) = gpu.cudarc().ok_or("no GPU")?;
    let (small, large) = (gpu.upload(&[1.0; 10])?, gpu.upload(&vec![1.0; LEN])?);
    let mut output = gpu.alloc(1)?;
    let kernel = sum()?;

    stream.begin_capture(MODE)?;
    let compiles = kernel.launch(&gpu, &small, &mut output);
    stream.end_capture(CUgraphInstantiate_flags(0))?;
    ensure(matches!(compiles, Err(Error::Capturing { .. })), || format!("{compiles:?}"))?;

    kernel.launch(&gpu, &small, &mut output)?;
    stream.begin_capture(MODE)?;
    let allocates = kernel.launch(&gpu, &large, &mut output);
    let buffer = gpu.alloc(1);
    let graph = stream.end_capture(CUgraphInstantiate_flags(0))?;
    ensure(matches!(allocates, Err(Error::Capturing { .. })), || format!("{allocates:?}"))?;
    ensure(matches!(buffer, Err(Error::Capturing { .. })), || format!("{buffer:?}"))?;
    drop(graph);
    kernel.launch(&gpu, &large, &mut output)?;
    let got = gpu.download(&output)?;
    ensure(got == [LEN as f32], || format!("{got:?}"))
}

/// Ticket-based launches of several lengths, captured and not captured: each launch restores the
/// tickets.
pub(super) fn tickets() -> Outcome {
    let gpu = Device::cuda(0)?;
    let (_, stream) = gpu.cudarc().ok_or("no GPU")?;
    let (kernel, rows) = (
        kernel("launch: once, block: 64, items: 4, shuffle")?,
        kernel("launch: once, over: rows, block: 32, group: 32, blocks: 16")?,
    );
    let (small, large) = (gpu.upload(&[1.0; 5000])?, gpu.upload(&vec![1.0; LEN])?);
    let matrix = MatrixRef::new(&large, 40, LEN / 40)?;
    let (mut output, mut sums) = (gpu.alloc(2)?, gpu.alloc(40)?);
    let launch = |output: &mut Buffer, sums: &mut Buffer| -> Outcome {
        kernel.launch(&gpu, &large, &mut output.slice_mut(..1)?)?;
        kernel.launch(&gpu, &small, &mut output.slice_mut(1..)?)?;
        let launched = rows.launch(&gpu, &matrix, sums)?;
        ensure(launched.passes() == 1, || "several launches have no tickets".to_owned())
    };
    launch(&mut output, &mut sums)?;
    stream.begin_capture(MODE)?;
    let captured = launch(&mut output, &mut sums);
    let graph = stream.end_capture(CUgraphInstantiate_flags(0))?.ok_or("an empty graph")?;
    captured?;
    // Overwrites the results of the previous round.
    let nothing: ReduceKernel = reduce_kernel!(over: columns);
    for round in 0..1000 {
        nothing.launch(&gpu, &MatrixRef::new(&large, 0, 2)?, &mut output)?;
        nothing.launch(&gpu, &MatrixRef::new(&large, 0, 40)?, &mut sums)?;
        match round % 3 {
            0 => launch(&mut output, &mut sums)?,
            _ => graph.launch()?,
        }
        let (got, of_rows) = (gpu.download(&output)?, gpu.download(&sums)?);
        ensure(got == [LEN as f32, 5000.0], || format!("round {round}: {got:?}"))?;
        ensure(of_rows == [(LEN / 40) as f32; 40], || format!("round {round}: {of_rows:?}"))?;
    }
    Ok(())
}
