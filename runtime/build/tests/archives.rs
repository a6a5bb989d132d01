//! Archives of real machine code. Tests that need NVRTC are ignored without it.

use common::{Outcome, Prerequisite, ensure};
use gemm_build::{Built, Contents, EntryInfo, Error, SgemmCalls, build, embed, entries};
use gemm_dsl::spec::{Batch, Epilogue, GemmLayout, SgemmSpec};
use gemm_dsl::tables::SgemmShape;
use gemm_runtime::compile::{self, Arch, Options};
use gemm_runtime::half::bf16;
use gemm_runtime::{Archive, MN, Map, N, ReduceKernel};
use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::BTreeSet;
use std::process::ExitCode;

#[path = "../../tests/common/mod.rs"]
mod common;

fn main() -> ExitCode {
    let nvrtc = Prerequisite::nvrtc();
    let needs_nvrtc = |name: &str, test| nvrtc.trial(name, test);
    let trials = vec![
        needs_nvrtc("an_archive_has_every_kernel_for_every_architecture", kernels),
        needs_nvrtc("an_archive_has_the_code_of_the_compiler", code),
        needs_nvrtc("kernels_are_left_out_for_older_architectures", left_out),
        needs_nvrtc("calls_of_sgemm_select_rules", selected),
        Trial::test("arguments_are_checked", arguments),
        Trial::test("an_empty_archive_needs_no_nvrtc", empty),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn listed(built: Built) -> Result<Vec<EntryInfo>, Failed> {
    Ok(entries(Archive::new("built", built.bytes.leak()))?)
}

const MAP: &str = "|x[m, n], bias[n]| -> bf16 gelu(x + bias)";

fn kernels() -> Outcome {
    let spec = "op: sum, block: 64, float4, launch: passes";
    let contents = Contents::new()
        .reduce_kernel(spec)?
        .reduce_kernel("block: 64, launch: passes, float4")?
        .sgemm_table("m <= 8 => tile: 8x8x8; else => tile: 16x16x8, thread: 2x2")?
        .reduce_table("len <= 64 => over: rows, group: 4; else => over: rows")?
        .map_kernel(MAP)?
        .map_kernel("map: |x[m, n], bias[n]| -> bf16 gelu(x + bias)")?;
    let built = build(&["sm_80", "sm_90a", "sm_90"], &contents)?;
    let (kernels, version) = (built.kernels, compile::nvrtc_version()?);
    let all = listed(built)?;
    ensure(all.len() == kernels, || format!("{} of {kernels}", all.len()))?;
    let kernel: ReduceKernel = ReduceKernel::new(spec.parse()?)?;
    let map = Map::<(MN, N), MN<bf16>>::new(MAP.parse()?)?;
    for arch in ["sm_80", "sm_90"] {
        let of_arch: Vec<_> = all.iter().filter(|entry| entry.arch == arch).collect();
        ensure(of_arch.len() == kernels / 2, || format!("{arch}: {of_arch:?}"))?;
        let line = format!("reduce_kernel!({kernel})");
        let sums = of_arch.iter().filter(|entry| entry.name == line).count();
        ensure(sums == kernel.sources().len(), || format!("{sums} entries of {line}"))?;
        let line = format!("map_kernel!({map})");
        let maps = of_arch.iter().filter(|entry| entry.name == line).count();
        ensure(maps == map.sources().len(), || format!("{maps} entries of {line}"))?;
        // Two rules, four layouts, packed or padded, and two rules of reductions.
        let names: BTreeSet<_> = of_arch.iter().map(|entry| &entry.name).collect();
        ensure(names.len() == 1 + 2 * 4 * 2 + 2 + 1, || format!("{names:#?}"))?;
        let is_plain = |entry: &&&EntryInfo| entry.compiler == version && entry.size > 0;
        ensure(of_arch.iter().filter(is_plain).count() == of_arch.len(), || {
            format!("{of_arch:?}")
        })?;
    }
    Ok(())
}

fn code() -> Outcome {
    let kernel = <ReduceKernel>::new("block: 32".parse()?)?;
    let contents = Contents::new().reduce_kernel(kernel.spec_line())?;
    let built = build(&["sm_80"], &contents)?;
    ensure(built.bytes == build(&["sm_80"], &contents)?.bytes, || "two builds differ".to_owned())?;
    let (arch, options) = (Arch::sm(80), Options::default());
    for source in kernel.sources() {
        let name = source.split("void ").nth(1).and_then(|rest| rest.split('(').next());
        let compiled = compile::compile(name.unwrap_or_default(), source, arch, &options)?;
        let cubin = &compiled.cubin;
        let has = built.bytes.windows(cubin.len()).any(|part| part == cubin);
        ensure(has, || format!("no machine code of\n{source}"))?;
    }
    Ok(())
}

fn left_out() -> Outcome {
    let wgmma = "tile: 64x64x32, arith: bf16x6, mma: wgmma";
    let contents = Contents::new().sgemm_kernel(wgmma)?.sgemm_kernel("tile: 8x8x8")?;
    let built = build(&["sm_80", "sm_90"], &contents)?;
    let note = format!("sgemm_kernel!({wgmma}) is left out for sm_80");
    ensure(built.notes == [note], || format!("{:?}", built.notes))?;
    let plain = listed(built)?;
    ensure(plain.iter().any(|entry| entry.arch == "sm_80"), || format!("{plain:#?}"))?;
    let asynchronous = Contents::new().sgemm_kernel("tile: 64x64x16, thread: 8x8, stages: 3")?;
    let built = build(&["sm_75", "sm_80"], &asynchronous)?;
    ensure(built.notes.len() == 1 && built.notes[0].ends_with("left out for sm_75"), || {
        format!("{:?}", built.notes)
    })?;
    ensure(listed(built)?.iter().all(|entry| entry.arch == "sm_80"), || "sm_75".to_owned())?;
    let with_splits = listed(build(&["sm_90"], &contents.clone().with_splits())?)?;
    let archs: BTreeSet<&str> = with_splits.iter().map(|entry| &*entry.arch).collect();
    ensure(archs == BTreeSet::from(["sm_90", "sm_90a"]), || format!("{archs:?}"))?;
    let is_wgmma = |entry: &&EntryInfo| entry.arch == "sm_90a" && entry.name.contains("wgmma");
    ensure(with_splits.iter().any(|entry| is_wgmma(&entry)), || format!("{with_splits:#?}"))?;
    let of_splits = |entry: &&EntryInfo| entry.name.starts_with("splits of B, arith: bf16x6");
    ensure(with_splits.iter().any(|entry| of_splits(&entry)), || format!("{with_splits:#?}"))?;
    let error = build(&["sm_80", "sm_120"], &contents).map(drop);
    ensure(matches!(&error, Err(Error::OtherArch { needed, .. }) if needed == "sm_90"), || {
        format!("{error:?}")
    })
}

fn selected() -> Outcome {
    let epilogue: Epilogue = "|acc, bias[n]| relu(acc + bias)".parse()?;
    let calls = SgemmCalls::for_shapes(132, [(512, 512, 512), (1, 64, 64)]).scaled();
    let contents = Contents::new().sgemm(calls.epilogue(epilogue.clone()));
    let names: BTreeSet<String> =
        listed(build(&["sm_90"], &contents)?)?.into_iter().map(|entry| entry.name).collect();
    ensure(names.len() == 2, || format!("{names:#?}"))?;
    for name in &names {
        let has_all = name.contains("scaled") && name.contains(&format!("epilogue: {epilogue}"));
        ensure(has_all, || name.clone())?;
    }
    for (batch, key) in [(Batch::Strided, "batch: strided"), (Batch::Pointers, "batch: pointers")] {
        let lines = SgemmCalls::all().batch(batch).lines(80)?;
        let is_batch = |line: &String| line.contains(key) && !line.contains("scaled");
        ensure(lines.iter().all(is_batch) && !lines.is_empty(), || format!("{lines:#?}"))?;
    }
    // 20 operands leave registers for some rules, and 200 for none of a large GEMM.
    let sum_of = |count: usize| -> Result<Epilogue, Failed> {
        let names: Vec<String> = (0..count).map(|n| format!("x{n}")).collect();
        let parts: Vec<_> =
            names.chunks(20).map(|part| format!("({})", part.join(" + "))).collect();
        let text = format!("|acc, {}[n]| acc + {}", names.join("[n], "), parts.join(" + "));
        Ok(text.parse()?)
    };
    let lines = SgemmCalls::all().epilogue(sum_of(20)?).lines(90)?.len();
    let all = SgemmCalls::all().lines(90)?;
    ensure(lines > 0 && lines < all.len(), || format!("{lines} of {}", all.len()))?;
    let large = SgemmCalls::for_shapes(132, [(4096, 4096, 4096)]);
    let none = Contents::new().sgemm(large.epilogue(sum_of(200)?));
    let error = build(&["sm_90"], &none).map(drop);
    ensure(matches!(error, Err(Error::Calls { .. })), || format!("{error:?}"))?;
    let of_layout = |layout| SgemmCalls::all().layouts(&[layout]).lines(90);
    let mut united = BTreeSet::new();
    for layout in GemmLayout::ALL {
        let lines = of_layout(*layout)?;
        ensure(lines.is_disjoint(&united), || format!("{layout}: {lines:#?}"))?;
        united.extend(lines);
    }
    ensure(united == all, || "the layouts do not make up all calls".to_owned())?;
    let padded = SgemmCalls::all().padded().lines(90)?;
    let is_padded = |line: &String| line.contains("pitched");
    ensure(padded.iter().all(is_padded) && !all.iter().any(is_padded), || format!("{padded:#?}"))?;
    shapes()
}

/// Layouts and padding apply to shapes as well.
fn shapes() -> Outcome {
    let calls = || SgemmCalls::for_shapes(132, [(512, 512, 512)]);
    let is_of = |line: &str, layout: GemmLayout| {
        line.parse::<SgemmSpec>().is_ok_and(|spec| spec.layout == layout)
    };
    let plain = calls().lines(90)?;
    ensure(plain.iter().all(|line| is_of(line, GemmLayout::Nn)), || format!("{plain:?}"))?;
    let every = calls().layouts(GemmLayout::ALL).lines(90)?;
    for layout in GemmLayout::ALL {
        let lines = calls().layouts(&[*layout]).lines(90)?;
        let shape = SgemmShape::from((512, 512, 512)).layout(*layout);
        let same = SgemmCalls::for_shapes(132, [shape]).lines(90)?;
        ensure(lines == same && lines.is_subset(&every), || format!("{layout}: {lines:?}"))?;
        ensure(lines.iter().all(|line| is_of(line, *layout)), || format!("{layout}: {lines:?}"))?;
        for aligned in [true, false] {
            let shape = shape.padded(true).aligned(aligned);
            let own = SgemmCalls::for_shapes(132, [shape]).lines(90)?;
            let padded = calls().layouts(&[*layout]).padded().lines(90)?;
            ensure(own.is_subset(&padded), || format!("{layout}: {own:?} not in {padded:?}"))?;
            let is_padded = |line: &String| is_of(line, *layout) && line.contains("pitched");
            ensure(padded.iter().all(is_padded), || format!("{layout}: {padded:?}"))?;
        }
    }
    Ok(())
}

fn arguments() -> Outcome {
    let contents = Contents::new();
    for text in ["", "90", "sm_", "sm_9x", "sm_90b", "compute_90", "sm_9000", "sm_+90", "sm_a"] {
        let error = build(&[text], &contents).map(drop);
        let is_named = matches!(&error, Err(Error::Arch { text: named }) if named == text);
        ensure(is_named, || format!("{text}: {error:?}"))?;
    }
    let error = build(&[], &contents).map(drop);
    ensure(matches!(error, Err(Error::NoArch)), || format!("{error:?}"))?;
    for name in ["", "a/b", "../a", "a.b"] {
        let error = embed(name, &["sm_90"], &contents);
        ensure(matches!(error, Err(Error::Name { .. })), || format!("{name}: {error:?}"))?;
    }
    let error = embed("kernels", &["sm_90"], &contents);
    ensure(matches!(error, Err(Error::NoOutDir)), || format!("{error:?}"))?;
    let spec = Contents::new().sgemm_kernel("tile: 8x8").map(drop);
    let Err(error @ Error::Spec { .. }) = spec else { return Err(format!("{spec:?}").into()) };
    ensure(error.to_string().starts_with("sgemm_kernel!(tile: 8x8): "), || error.to_string())
}

fn empty() -> Outcome {
    let built = build(&["sm_75", "sm_120a"], &Contents::new())?;
    ensure(built.kernels == 0, || format!("{built:?}"))?;
    ensure(listed(built)?.is_empty(), || "entries".to_owned())
}
