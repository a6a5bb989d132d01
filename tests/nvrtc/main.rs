//! NVRTC compiles the generated source of every stage of both ladders and of a sample of random
//! specs. Together they are compiled for every architecture since Turing. A thinned run compiles a
//! third of the stages, and each kernel for one architecture. A quarter of the rules of shipped
//! tables is compiled for the first architecture whose table contains them. With `GEMM_EVERY_RULE`
//! all rules are compiled for all such architectures, which takes minutes longer. These tests need
//! NVRTC, but no GPU.

mod releases;
mod targets;

use gemm_dsl::cuda;
use gemm_dsl::expr::{EPILOGUE, Function, FunctionInfo, Signature, random};
use gemm_dsl::ir::{Space, VerifiedKernel};
use gemm_dsl::spec::{Accuracy, ReduceSpec, ScanSpec, SgemmSpec};
use gemm_dsl::stages;
use gemm_dsl::target::Format;
use gemm_dsl::target::arch::{TENSOR_COPIES, TENSOR_CORES};
use gemm_dsl::{Family, Plan};
use gemm_fixtures::clusters::{Clustered, End};
use gemm_fixtures::warp_specialised::{Fill, Product};
use gemm_fixtures::{elements, splits, synchronisation, tensor_copies, tensor_core};
use gemm_needs::Need;
use gemm_oracle::random::Random;
use gemm_runtime::compile::Arch;
use gemm_runtime::{KernelTable, sgemm_tables};
use gemm_tests::map::Case;
use gemm_tests::{arbitrary, nvrtc, pairs, row_folds};
use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::HashSet;
use std::process::ExitCode;
use targets::Targets;

const ARCHITECTURES: [u32; 5] = [75, 80, 90, 100, 120];

/// Architectures for which a kernel of a stage is compiled here. By default it is one that the
/// snapshots of resources do not cover, unless only sm_90 has the kernel's instructions.
fn architectures_of(stage: u32, kernel: &VerifiedKernel) -> Targets {
    Targets::Each(match (gemm_cases::is_thinned(), kernel.contract().is_specific, stage % 2) {
        (false, ..) => ARCHITECTURES.into(),
        (true, true, _) => vec![TENSOR_COPIES],
        (true, false, 0) => vec![75],
        (true, false, _) => vec![120],
    })
}

/// GEMMs on lists of matrices, along several axes and of groups, also by tensor maps, which random
/// specs do not cover.
const BATCHES: [&str; 10] = [
    "tile: 32x32x16, thread: 4x4, float4, stages: 3, pitched, products: 2, batch: strided2, \
     scaled, epilogue: |acc, bias[batch, n], residual[m, n], c[m, n]| (acc + bias, residual * c)",
    "layout: tt, tile: 64x64x64, arith: bf16x6, mma: wgmma, copy: tma, batch: strided3",
    "tile: 64x64x8, thread: 8x4, fragment: split, float4, double_buffer, raster: 8, pitched, \
     batch: grouped, scaled, \
     epilogue: |acc, bias[batch, n], scale[m], c[m, n]| acc * scale + bias * c",
    "layout: nt, tile: 64x64x32, warp: 32x32, arith: bf16x6, stages: 3, batch: grouped",
    "batch: pointers",
    "tile: 32x32x16, thread: 4x4, float4, transpose, prefetch, batch: pointers, scaled, \
     epilogue: |acc, bias[n], residual[m, n], c[m, n]| relu(acc + bias) + residual * c",
    "layout: tn, tile: 64x64x16, thread: 8x8, float4, double_buffer, pitched, batch: pointers",
    "layout: nt, tile: 64x64x16, thread: 8x8, fragment: split, float4, pad_a: 4, pad_b: 4, stages: \
     3, raster: 4, batch: pointers",
    "a: bf16, b: bf16, c: f16, layout: tt, tile: 64x128x64, arith: bf16, mma: wgmma, copy: tma, \
     stages: 2, producer, cluster: 2, pitched, float4, batch: strided3",
    "a: f16, b: f16, c: f32, layout: nn, tile: 128x64x64, arith: f16, mma: wgmma, copy: tma, \
     stages: 3, producer, persistent, raster: 4, float4, batch: grouped, \
     epilogue: |acc, bias[batch, n], f[batch]| acc * f + bias",
];

/// Epilogue that calls every function of the language.
fn every_function() -> SgemmSpec {
    let mut body = String::new();
    for FunctionInfo { name, operands, signature, .. } in EPILOGUE.functions().map(Function::info) {
        let call = match signature {
            Signature::Conversion => format!("{name}(row)"),
            Signature::Predicate => format!("if {name}(acc) {{ 0.0 }} else {{ 1.0 }}"),
            _ => format!("{name}({})", vec!["acc"; operands.len()].join(", ")),
        };
        body += &format!("let by_{name} = {call}; ");
    }
    let sum = EPILOGUE.functions().map(|function| format!("by_{}", function.name()));
    let sum: Vec<String> = sum.collect();
    let line = format!("block: 16x16, epilogue: |acc| {{ {body}{} }}", sum.join(" + "));
    line.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// Scans of every operator, of narrow and wide types, over arrays and rows.
const SCANS: [&str; 6] = [
    "",
    "op: max, exclusive, type: f64, result: f32, block: 1024",
    "op: min, type: i64, over: rows, group: 256",
    "op: prod, type: f16, over: rows, group: 4",
    "type: u8, exclusive, block: 64, items: 8, blocks_per_sm: 4",
    "type: bf16, result: bf16, over: rows",
];

/// Number of random specs of each macro. Each is compiled for one architecture.
const SAMPLES: usize = 60;

fn main() -> ExitCode {
    let mut trials = Vec::new();
    // The snapshots of resources are of the same sources, compiled for other architectures.
    let is_sampled = |index: u32| gemm_cases::is_in_turn(index as usize, 3, 0);
    for stage in stages::reduce().into_iter().filter(|stage| is_sampled(stage.index)) {
        trials.push(stage_trial(format!("reduce::{}", stage.stem()), stage.index, stage.spec));
    }
    for stage in stages::sgemm().into_iter().filter(|stage| is_sampled(stage.index)) {
        trials.push(stage_trial(format!("sgemm::{}", stage.stem()), stage.index, stage.spec));
    }
    trials.extend(samples(
        "reduce",
        arbitrary::sample(arbitrary::reduce(), gemm_cases::scaled(SAMPLES)),
    ));
    trials.extend(samples(
        "sgemm",
        arbitrary::sample(arbitrary::sgemm(1024), gemm_cases::scaled(SAMPLES)),
    ));
    let maps = gemm_cases::seeds(SAMPLES).map(|seed| Case::random(&mut Random::new(seed)).spec);
    trials.extend(samples("map", maps.collect()));
    // NVRTC takes several seconds for each.
    let rows = gemm_cases::seeds(SAMPLES / 3);
    let rows = rows.map(|seed| Case::random_rows(&mut Random::new(seed)).spec);
    trials.extend(samples("rows", rows.collect()));
    let in_turn = |i: &usize| gemm_cases::is_in_turn(*i, 2, gemm_cases::fixed_seed() as usize);
    for (i, line) in row_folds::SPECS.iter().enumerate().filter(|(i, _)| in_turn(i)) {
        let spec = line.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        let spec = row_folds::with_epilogue(&spec);
        let targets = Targets::Each(vec![TENSOR_COPIES]);
        trials.push(trial(format!("row_folds::{i:02}"), spec, targets));
    }
    for (i, line) in pairs::SPECS.iter().enumerate().filter(|(i, _)| in_turn(i)) {
        let spec: SgemmSpec = line.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        let epilogue = random::of_pairs(&EPILOGUE, i as u64, 3, 2);
        let spec = spec.epilogue(epilogue.to_string().parse().expect("a sound epilogue"));
        trials.push(trial(format!("pairs::{i:02}"), spec, Targets::Each(vec![TENSOR_COPIES])));
    }
    for (i, line) in BATCHES.iter().enumerate() {
        let spec: SgemmSpec = line.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        trials.push(trial(format!("lists::{i}"), spec, Targets::InTurn(i)));
    }
    trials.push(trial("functions".to_owned(), every_function(), Targets::InTurn(0)));
    let mut known = HashSet::new();
    let every_rule = std::env::var_os("GEMM_EVERY_RULE").is_some_and(|value| !value.is_empty());
    for (arch, class) in [75, 80, 89, 90, 100, 120]
        .into_iter()
        .flat_map(|arch| Accuracy::ALL.iter().map(move |class| (arch, *class)))
    {
        let tables = sgemm_tables(Some(Arch::sm(arch)), class);
        for (table, of) in tables.into_iter().zip(["one", "batch"]) {
            let table: KernelTable<SgemmSpec> =
                table.text().parse().unwrap_or_else(|error| panic!("sm_{arch}: {error}"));
            // Several rules may have the same kernel, and tables of several accuracy classes and
            // architectures may have the same rule.
            let rows = table.rules().iter().enumerate();
            let once_for = every_rule.then_some(arch);
            for (i, row) in rows.filter(|(_, row)| known.insert((once_for, row.spec.to_string()))) {
                if !every_rule && !gemm_cases::is_in_turn(i, 4, arch as usize) {
                    continue;
                }
                let (name, spec) = (format!("ships::sm_{arch}_{class}_{of}_{i}"), row.spec.clone());
                trials.push(
                    Need::Nvrtc.trial(name, move || compiles(&spec, &Targets::Each(vec![arch]))),
                );
            }
        }
    }
    for (i, line) in NEIGHBOURS.iter().enumerate() {
        let spec: ReduceSpec = line.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        trials.push(trial(format!("reduce::neighbours_{i}"), spec, Targets::InTurn(i)));
    }
    for (i, line) in SCANS.iter().enumerate() {
        let spec: ScanSpec = line.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        trials.push(trial(format!("scan::{i}"), spec, Targets::InTurn(i)));
    }
    for (i, case) in elements::cases().into_iter().enumerate() {
        let arch = ARCHITECTURES[i % ARCHITECTURES.len()];
        let name = format!("elements::{}", case.name);
        trials.push(Need::Nvrtc.trial(name, move || compiles_kernel(&case.kernel, "", arch)));
    }
    // Hand-written kernels with matrix instructions, which older architectures lack.
    for format in Format::FROM_F32 {
        for &arch in ARCHITECTURES.iter().filter(|arch| **arch >= TENSOR_CORES) {
            let kernel = tensor_core::kernel(format, 4, arch == TENSOR_CORES);
            let name = format!("tensor_core::{}_sm_{arch}", format.name());
            trials.push(Need::Nvrtc.trial(name, move || compiles_kernel(&kernel, "", arch)));
        }
    }
    // Hand-written kernels with warpgroups and a ring of boxes, for the only architecture that
    // supports them.
    for format in Format::FROM_F32 {
        for (consumers, columns, fill) in [
            (1, 24, Fill::Boxes),
            (2, 128, Fill::Boxes),
            (1, 256, Fill::Boxes),
            (2, 64, Fill::Stores),
        ] {
            let product = Product { format, consumers, columns, fill, ..Product::default() };
            let how = if fill == Fill::Boxes { "boxes" } else { "stores" };
            let name = format!("warp_specialised::{}_{consumers}x{columns}_{how}", format.name());
            trials.push(
                Need::Nvrtc
                    .trial(name, move || compiles_kernel(&product.kernel()?, "", TENSOR_COPIES)),
            );
        }
    }
    let overlapping = Product { overlap: true, ..Product::default() };
    trials.push(Need::Nvrtc.trial("warp_specialised::overlap", move || {
        compiles_kernel(&overlapping.kernel()?, "", TENSOR_COPIES)
    }));
    trials.push(Need::Nvrtc.trial("warp_specialised::planes", || {
        compiles_kernel(&splits::kernel(), "", TENSOR_COPIES)
    }));
    // Hand-written kernels with clusters and multicast TMA copies.
    for format in Format::FROM_F32 {
        for (cluster, end) in [(2, End::Barrier), (2, End::Drain), (4, End::Barrier)] {
            let product = Product { format, ..Product::default() };
            let of = Clustered { product, cluster, end, ..Clustered::default() };
            let name = format!("clusters::{}_{cluster}_{end:?}", format.name()).to_lowercase();
            trials.push(
                Need::Nvrtc.trial(name, move || compiles_kernel(&of.kernel()?, "", TENSOR_COPIES)),
            );
        }
    }
    // Hand-written kernels with TMA copies, for all architectures that support them.
    for &arch in ARCHITECTURES.iter().filter(|arch| **arch >= TENSOR_COPIES) {
        for case in tensor_copies::cases() {
            let name = format!("tensor_copies::{}_sm_{arch}", case.name());
            trials.push(Need::Nvrtc.trial(name, move || compiles_kernel(&case.kernel(), "", arch)));
        }
    }
    // Hand-written kernels with every instruction for synchronisation.
    for &arch in &ARCHITECTURES {
        for kernel in [synchronisation::every_atomic(), synchronisation::every_fence()] {
            let name = format!("sync::{}_sm_{arch}", kernel.name);
            trials.push(Need::Nvrtc.trial(name, move || compiles_kernel(&kernel, "", arch)));
        }
    }
    trials.push(releases::trial());
    trials.push(Need::Nvrtc.trial("names::reduce", || {
        compile_together(NAMES.iter().map(|name| ReduceSpec::default().name(*name)))
    }));
    trials.push(Need::Nvrtc.trial("names::sgemm", || {
        compile_together(NAMES.iter().map(|name| SgemmSpec::default().name(*name)))
    }));
    let locals =
        trial("names::locals_of_expressions".to_owned(), hostile_locals(), Targets::InTurn(1));
    trials.push(locals);
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Reductions of neighbouring columns. Their results and partial results, of every width, are
/// stored as vectors or as single elements. The last specs fold runs.
const NEIGHBOURS: &[&str] = &[
    "over: columns, float4, type: f16, result: f16, blocks: 4, launch: once",
    "over: middle, float4, type: bf16, result: bf16, group: 1",
    "over: columns, float4, type: f32, acc: f64, result: f32, blocks: 4",
    "over: columns, float4, type: f64, blocks: 4, launch: once, pitched",
    "over: columns, float4, type: i8, op: any, block: 64, blocks: 4, launch: once",
    "over: middle, float4, op: argmax, index: u64, blocks: 4, launch: once",
    "over: columns, float4, type: f16, op: mean_var, block: 64, blocks: 4, launch: once",
    "over: columns, float4, op: logsumexp, blocks: 4, launch: once",
    "type: u32, op: prod, block: 32, run: 256, launch: once",
    "over: columns, float4, type: u8, acc: i64, pitched, block: 128, group: 128, run: 1024, \
     launch: once",
];

/// Spec of an expression whose local variables have names of C++ and CUDA: keywords, macros,
/// functions, variables and types.
fn hostile_locals() -> SgemmSpec {
    const NAMES: &[&str] = &[
        "float",
        "int",
        "class",
        "template",
        "this",
        "auto",
        "register",
        "asm",
        "typeof",
        "restrict",
        "concept",
        "requires",
        "signed",
        "NULL",
        "INFINITY",
        "NAN",
        "EOF",
        "M_PI",
        "assert",
        "errno",
        "linux",
        "unix",
        "half",
        "fmaf",
        "fabsf",
        "floorf",
        "rintf",
        "maximum",
        "minimum",
        "fmaxf",
        "ceilf",
        "truncf",
        "tan",
        "asinh",
        "exp10",
        "norm3d",
        "y0",
        "clock",
        "printf",
        "malloc",
        "threadIdx",
        "blockDim",
        "warpSize",
        "float4",
        "size_t",
        "load4",
        "load16",
        "to_f16",
        "atomicAdd",
        "atomic_add_acquire",
        "named_barrier",
        "copy_wait",
        "epilogue",
        "C",
        "__x",
        "_Bool",
    ];
    let mut body = String::new();
    let mut last = "acc";
    for name in NAMES {
        body += &format!("let {name} = {last} * 0.5 + 1.0; ");
        last = name;
    }
    let line = format!("block: 16x16, epilogue: |acc| {{ {body}max(floor(abs({last})), acc) }}");
    line.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// Kernel names that a user may choose although CUDA C++, or the source of the kernel, gives them a
/// meaning.
const NAMES: &[&str] = &[
    "max",
    "min",
    "abs",
    "exp",
    "exp10",
    "log",
    "pow",
    "sqrt",
    "rsqrt",
    "fma",
    "sin",
    "floor",
    "round",
    "trunc",
    "ldexp",
    "norm3d",
    "y0",
    "jn",
    "isnan",
    "isinf",
    "clock",
    "clock64",
    "atomicAdd",
    "malloc",
    "free",
    "printf",
    "assert",
    "NULL",
    "std",
    "va_list",
    "ptrdiff_t",
    "half",
    "uchar4",
    "cudaError_t",
    "cudaTextureObject_t",
    "int",
    "float4",
    "while",
    "class",
    "operator",
    "this",
    "asm",
    "main",
    "__x",
    "__global__",
    "threadIdx",
    "tid",
    "acc",
    "maximum",
    "combine",
    "copy_wait",
    "_0",
    "reduce",
    "sgemm",
    "reduce_",
    "sgemm_",
    "reduce_sum",
    "sgemm_naive",
    "x86",
    "linux",
    "unix",
];

fn samples<S: Family>(ladder: &str, specs: Vec<S>) -> impl Iterator<Item = Trial> {
    let name = move |i| format!("{ladder}::random_{i:02}");
    let targets = |i: usize| Targets::Each(vec![ARCHITECTURES[i % ARCHITECTURES.len()]]);
    specs.into_iter().enumerate().map(move |(i, spec)| trial(name(i), spec, targets(i)))
}

fn trial<S: Family>(name: String, spec: S, targets: Targets) -> Trial {
    Need::Nvrtc.trial(name, move || compiles(&spec, &targets))
}

fn stage_trial<S: Family>(name: String, index: u32, spec: S) -> Trial {
    Need::Nvrtc.trial(name, move || {
        let program = spec.plan()?.program()?;
        let compiles = |kernel| compiles_on(kernel, &spec, &architectures_of(index, kernel));
        program.kernels().iter().try_for_each(compiles)
    })
}

/// Compiles kernels of specs that differ only in their names as one source, which begins with the
/// constants of the first. Two requested names may result in the same kernel name.
fn compile_together(specs: impl Iterator<Item = impl Family>) -> Result<(), Failed> {
    const KERNEL: &str = "extern \"C\" __global__";
    let (mut text, mut names) = (String::new(), HashSet::new());
    for spec in specs {
        let program = spec.plan()?.program()?;
        let kernel = program.variants().next().ok_or("a spec has a kernel")?;
        let source = cuda::source(kernel);
        let (constants, body) = source.split_once(KERNEL).ok_or("a text has a kernel")?;
        text += if names.is_empty() { constants } else { "\n" };
        if names.insert(kernel.name.clone()) {
            text += &format!("{KERNEL}{body}");
        }
    }
    let kernels = names.len();
    let compiled = nvrtc::log("names", &text, Arch::sm(90))?;
    let entries = compiled.log.matches("Compiling entry function").count();
    if entries != kernels || compiled.log.contains("warning") {
        return Err(format!("{entries} of {kernels} kernels: {}", compiled.log).into());
    }
    Ok(())
}

/// Compiles both access variants.
fn compiles(spec: &impl Family, targets: &Targets) -> Result<(), Failed> {
    let program = spec.plan()?.program()?;
    program.kernels().iter().try_for_each(|kernel| compiles_on(kernel, spec, targets))
}

/// Compiles a kernel of a spec.
fn compiles_on(
    kernel: &VerifiedKernel,
    spec: &impl Family,
    targets: &Targets,
) -> Result<(), Failed> {
    let line = spec.to_string();
    targets.of(kernel).into_iter().try_for_each(|arch| compiles_kernel(kernel, &line, arch))
}

fn compiles_kernel(kernel: &VerifiedKernel, spec: &str, arch: u32) -> Result<(), Failed> {
    let source = cuda::source(kernel);
    let target = match kernel.contract().is_specific {
        true => Arch::sm(arch).specific(),
        false => Arch::sm(arch),
    };
    let compiled =
        nvrtc::log(&kernel.name, &source, target).map_err(|error| format!("`{spec}`: {error}"))?;
    // Warnings are errors, except for justified warnings about constants in a user's expression.
    const OF_USER: [&str; 3] = ["division by zero", "result is out of range", "Remark:"];
    // The requested number of blocks per SM does not fit on all architectures.
    let (threads, blocks) = (kernel.geometry.threads(), kernel.geometry.blocks_per_sm.unwrap_or(1));
    let mut table = gemm_dsl::target::arch::ALL.iter();
    let sm = table.find(|sm| sm.arch == arch).ok_or_else(|| format!("sm_{arch} is not known"))?;
    let fits = blocks <= sm.blocks && blocks * threads <= sm.threads;
    let of_wish = |line: &str| !fits && line.contains(".minnctapersm will be ignored");
    let is_ours = |line: &str| OF_USER.iter().all(|said| !line.contains(said)) && !of_wish(line);
    // For kernels of a spec, remarks about performance are also errors: serialised matrix
    // instructions, or a register limit that cannot be met.
    let words = ["warning", "Performance Loss", "setmaxnreg"];
    let words = if spec.is_empty() { &words[..1] } else { &words[..] };
    let tells = |line: &str| words.iter().any(|word| line.contains(word));
    if compiled.log.lines().any(|line| tells(line) && is_ours(line)) {
        return Err(format!("`{spec}` on sm_{arch}: {}\n{source}", compiled.log).into());
    }
    let declared = if kernel.shared_is_dynamic() { 0 } else { kernel.shared_bytes() };
    let shared = u64::from(compiled.resources()?.shared_bytes);
    // The generator aligns each array to 16 bytes, the compiler only arrays of vectors. Some
    // architectures reserve an additional 1 KiB.
    let arrays = kernel.buffers.iter().filter(|b| b.space == Space::Shared).count() as u64;
    // Between two arrays there are less than 16 bytes.
    let most = shared + 16 * (arrays.max(2) - 1);
    if ![0, 1024].iter().any(|own| (shared..most).contains(&(declared + own))) {
        return Err(format!("`{spec}` on sm_{arch}: {shared} bytes, not {declared}").into());
    }
    Ok(())
}
