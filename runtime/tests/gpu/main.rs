//! Tests that need a GPU. Without one, or without NVRTC, they are ignored with the reason.

mod autotune;
mod capture;
#[path = "../common/mod.rs"]
mod common;
mod memory;
mod start;
mod transfers;

use common::{Outcome, Prerequisite, ensure};
use gemm_runtime::{Device, ReduceKernel, ReduceSpec, Variant};
use libtest_mimic::{Arguments, Failed};
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = start::child() {
        return code;
    }
    let gpu = Prerequisite::gpu();
    let trial = |name: &str, test| gpu.trial(name, test);
    let trials = vec![
        trial("results_are_right_and_equal_the_simulators", results),
        trial("an_empty_array_gives_the_identity", empty),
        trial("threads_may_launch_at_once", threads),
        trial("a_view_off_alignment_runs_the_scalar_variant", unaligned),
        trial("a_bad_ordinal_says_how_many_there_are", memory::bad_ordinal),
        trial("memory_that_cannot_be_had_is_an_error", memory::out_of_memory),
        trial("every_element_type_comes_back", memory::elements),
        trial("more_than_2_to_the_31_elements", memory::huge),
        trial("slices_of_cudarc_are_used_in_place", memory::cudarc_slices),
        trial("slices_of_another_object_for_the_context_are_ordered", memory::other_object),
        trial("work_on_other_streams_is_waited_for", memory::other_streams),
        trial("work_on_streams_per_thread_is_waited_for", memory::per_thread_stream),
        trial("buffers_may_be_dropped_in_any_thread", memory::dropped_elsewhere),
        trial("random_views_hold_what_was_written", || on_gpu(transfers::random_views)),
        trial("halves_are_separate_and_complete", || on_gpu(transfers::halves)),
        trial("asynchronous_transfers_are_ordered", || on_gpu(transfers::asynchronous)),
        trial("streams_that_share_buffers_are_ordered", || on_gpu(transfers::streams)),
        trial("a_loop_allocates_nothing", || on_gpu(transfers::no_allocation)),
        trial("a_launch_can_be_captured", capture::buffers),
        trial("a_launch_on_slices_can_be_captured", capture::slices),
        trial("a_first_launch_in_a_capture_is_refused", capture::first_launch),
        trial("captured_code_stays_loaded", capture::evicted),
        trial("tickets_are_left_as_they_were_found", capture::tickets),
        trial("the_disk_cache_makes_a_warm_start", start::warm_start),
        trial("launches_of_warm_kernels_compile_nothing", start::ahead),
        trial("a_replaced_text_is_launched", start::replaced),
        trial("the_text_of_a_constant_is_launched", start::constant),
        trial("tuning_is_not_slower_than_the_shipped_table", autotune::shipped),
        trial("calls_compute_the_same_with_their_answer", autotune::call),
        trial("tuning_an_invariant_table_changes_no_bits", autotune::invariant),
    ];
    let mut arguments = Arguments::from_args();
    // One at a time: some tests fill the memory.
    arguments.test_threads.get_or_insert(1);
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn on_gpu(check: fn(&Device) -> transfers::Checked) -> Outcome {
    check(&Device::cuda(0)?).map_err(|error| error.to_string().into())
}

fn sum() -> Result<ReduceKernel, Failed> {
    kernel("block: 256, items: 4, shuffle")
}

fn kernel(line: &str) -> Result<ReduceKernel, Failed> {
    Ok(ReduceKernel::new(line.parse::<ReduceSpec>()?)?)
}

/// Multiples of 1/8 with few bits, so that sums are exact in any order.
fn values(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7919) % 33) as f32 / 8.0 - 2.0).collect()
}

fn total(values: &[f32]) -> f64 {
    values.iter().map(|&v| f64::from(v)).sum()
}

fn results() -> Outcome {
    let (gpu, simulator) = (Device::cuda(0)?, Device::simulator());
    for line in
        ["", "op: max, float4", "op: min, items: 3", "items: 4, float4, shuffle", "op: prod"]
    {
        let kernel = kernel(line)?;
        for n in [1, 31, 33, 1000, 4097, 65536] {
            let values = if line.contains("prod") {
                (0..n).map(|i| 1.0 + ((i % 17) as f32 - 8.0) * 1e-4).collect()
            } else {
                values(n)
            };
            let (a, b) = (kernel.run(&gpu, &values)?, kernel.run(&simulator, &values)?);
            ensure(a.to_bits() == b.to_bits(), || {
                format!("{line}, {n}: {a} on the GPU, {b} simulated")
            })?;
        }
    }
    let values = values((1 << 24) + 7);
    let (got, expected) = (sum()?.run(&gpu, &values)?, total(&values));
    ensure(f64::from(got) == expected, || format!("{got}, not {expected}"))
}

fn empty() -> Outcome {
    let gpu = Device::cuda(0)?;
    for (line, identity) in [("op: sum", 0.0), ("op: prod", 1.0), ("op: max", f32::NEG_INFINITY)] {
        let got = kernel(line)?.run(&gpu, &[])?;
        ensure(got == identity, || format!("{line}: {got}"))?;
    }
    Ok(())
}

/// Launches of several passes share scratch memory, so that passes of different launches must not
/// interleave.
fn threads() -> Outcome {
    let gpu = Device::cuda(0)?;
    let kernel = kernel("block: 32")?;
    std::thread::scope(|scope| {
        let running: Vec<_> = (1..=4_usize)
            .map(|thread| {
                let (gpu, kernel) = (&gpu, &kernel);
                scope.spawn(move || -> Outcome {
                    let n = 100_000 * thread;
                    let input = gpu.upload(&vec![thread as f32; n])?;
                    let mut outputs = Vec::new();
                    for _ in 0..200 {
                        let mut output = gpu.alloc(1)?;
                        kernel.launch(gpu, &input, &mut output)?;
                        outputs.push(output);
                    }
                    for output in &outputs {
                        let got = gpu.download(output)?;
                        ensure(got == [(n * thread) as f32], || format!("{got:?} of {n}"))?;
                    }
                    Ok(())
                })
            })
            .collect();
        running.into_iter().try_for_each(|t| t.join().map_err(|_| "a thread panicked")?)
    })
}

fn unaligned() -> Outcome {
    let gpu = Device::cuda(0)?;
    let kernel = kernel("float4")?;
    let values = values(5000);
    let input = gpu.upload(&values)?;
    let mut output = gpu.alloc(1)?;
    for (start, variant) in
        [(0, Variant::Vector), (1, Variant::Scalar), (2, Variant::Scalar), (4, Variant::Vector)]
    {
        let launched = kernel.launch(&gpu, &input.slice(start..)?, &mut output)?;
        ensure(launched.variant() == variant, || format!("{start}: {launched:?}"))?;
        let got = gpu.download(&output)?;
        ensure(f64::from(got[0]) == total(&values[start..]), || format!("{start}: {got:?}"))?;
    }
    Ok(())
}
