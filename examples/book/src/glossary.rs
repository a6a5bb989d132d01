//! Glossary of the book: terms of the field, each with an explanation.

#[derive(Clone, Copy, Debug)]
pub struct Term {
    /// HTML `id` of its entry.
    pub id: &'static str,
    /// Term as it is printed.
    pub name: &'static str,
    /// Alternative spellings in lower case. The plural with s is recognised without an entry.
    pub others: &'static [&'static str],
    /// CUDA and PTX words in kernel texts that the term explains.
    pub code: &'static [&'static str],
    /// Explanation, one or a few sentences.
    pub says: &'static str,
    /// Profiler metric that measures it, or empty.
    pub metric: &'static str,
}

const fn term(id: &'static str, name: &'static str, says: &'static str) -> Term {
    Term { id, name, others: &[], code: &[], says, metric: "" }
}

const fn measured(
    id: &'static str,
    name: &'static str,
    says: &'static str,
    metric: &'static str,
) -> Term {
    Term { id, name, others: &[], code: &[], says, metric }
}

/// All terms in alphabetical order of their names.
pub const TERMS: [Term; 74] = [
    term(
        "assume",
        "__builtin_assume",
        "Tells the compiler what is always so; nothing of it is executed.",
    )
    .with_code(&["__builtin_assume"]),
    term(
        "cuda-arch",
        "__CUDA_ARCH__",
        "The architecture that the text is compiled for: 900 for sm_90. What stands between #if and #endif is compiled where the condition holds.",
    )
    .with_code(&["__CUDA_ARCH__"]),
    term(
        "cvta",
        "__cvta_generic_to_shared",
        "Where in shared memory a pointer leads, as instructions of PTX take it.",
    )
    .with_code(&["__cvta_generic_to_shared"]),
    term(
        "device",
        "__device__",
        "Marks a function that the GPU executes when a kernel calls it; with __forceinline__ its text stands in place of each call.",
    )
    .with_code(&["__device__", "__forceinline__"]),
    term(
        "bits",
        "__float_as_uint",
        "The bits of a float as those of an unsigned integer; __uint_as_float and __int_as_float go the other way.",
    )
    .with_code(&["__float_as_uint", "__uint_as_float", "__int_as_float"]),
    term(
        "global-function",
        "__global__",
        "Marks a function as a kernel: the CPU launches it, and each thread of the launch executes it.",
    )
    .with_code(&["__global__"]),
    term(
        "launch-bounds",
        "__launch_bounds__",
        "A promise to the compiler: the most threads that a block will have, and, as a second number, how many blocks are to fit on a multiprocessor at once. Both bound the registers of a thread.",
    )
    .with_code(&["__launch_bounds__"]),
    term(
        "reduce-or",
        "__reduce_or_sync",
        "The bitwise or of one number of each lane of a warp, for all of them.",
    )
    .with_code(&["__reduce_or_sync"]),
    term(
        "restrict",
        "__restrict__",
        "A promise to the compiler, as restrict is in C: nothing that is accessed through this pointer is changed through another one, so that a load may be moved past stores.",
    )
    .with_code(&["__restrict__"]),
    term(
        "alignment",
        "alignment",
        "An address is aligned to n bytes where n divides it. An access of 16 bytes must be aligned to 16, or the GPU faults.",
    )
    .with_code(&["__align__", "alignas"]),
    term(
        "async-copy",
        "asynchronous copy",
        "A copy from global to shared memory that goes on while the threads compute; who needs what it brings waits for its group (cp.async).",
    )
    .or(&["asynchronous copies"])
    .with_code(&["cp.async"]),
    term(
        "atomic",
        "atomic",
        "A read and a write of one place in one step: no other thread comes in between.",
    )
    .with_code(&["atom", "atomicMax"]),
    term(
        "bank",
        "bank",
        "Shared memory lies in 32 banks: word i, of 4 bytes, is on bank i mod 32. Each bank serves one word in a pass.",
    ),
    measured(
        "conflict",
        "bank conflict",
        "Lanes of one phase ask for different words on one bank: that takes one more pass for each.",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    ),
    measured(
        "barrier",
        "barrier",
        "A place in the text at which all threads of the block wait for one another, and behind which each sees what the others wrote (__syncthreads).",
        "sass__inst_executed_per_opcode (BAR)",
    )
    .with_code(&["__syncthreads"]),
    term(
        "mbarrier",
        "barrier in shared memory",
        "A counter that threads and copies arrive at, and a phase that ends when all have; who waits asks for the parity of the phase.",
    )
    .or(&["barriers in shared memory"])
    .with_code(&["mbarrier"]),
    term(
        "warp-barrier",
        "barrier of a warp",
        "A place in the text at which the lanes of one warp wait for one another, while other warps go on (__syncwarp).",
    )
    .or(&["barriers of a warp"])
    .with_code(&["__syncwarp"]),
    term(
        "bf16",
        "bf16",
        "A floating-point number of 16 bits, with the exponent of a float and the first 7 bits of its fraction. f16 has a smaller exponent, of 5 bits, and 10 bits of fraction.",
    )
    .or(&["f16"]),
    term(
        "block",
        "block",
        "Threads that run on one multiprocessor, share its shared memory and can wait for one another. A launch is a grid of blocks.",
    ),
    term(
        "block-dim",
        "blockDim",
        "How many threads a block has along x, y and z; gridDim is how many blocks the grid has.",
    )
    .or(&["griddim"])
    .with_code(&["blockDim", "gridDim"]),
    term(
        "block-idx",
        "blockIdx",
        "Which block of the grid a thread is in: its place along x, y and z.",
    )
    .with_code(&["blockIdx"]),
    term(
        "cluster",
        "cluster",
        "Some blocks that run at the same time and can reach one another's shared memory.",
    )
    .with_code(&["__cluster_dims__", "mapa", "barrier.cluster"]),
    term(
        "coalesced",
        "coalesced",
        "Of an access: the lanes of the warp ask for neighbouring words, so that few sectors hold them all.",
    ),
    term(
        "constexpr",
        "constexpr",
        "C++: a constant that the compiler knows.",
    )
    .with_code(&["constexpr"]),
    measured(
        "divergence",
        "divergence",
        "The lanes of a warp part at a branch: each way is executed, with the other lanes idle.",
        "smsp__branch_targets_threads_divergent.sum",
    )
    .or(&["divergent"]),
    term(
        "double-buffer",
        "double buffering",
        "Two places for a tile in shared memory: one is filled while the other is read, and one barrier for each tile is enough.",
    ),
    term(
        "epilogue",
        "epilogue",
        "What becomes of a sum before it is stored: scaled, biased, clipped, in the same kernel.",
    ),
    term(
        "extern",
        "extern",
        "Before a kernel, extern \"C\" keeps its name as it is written, by which the CPU finds it. Before an array in shared memory it says that the launch tells its size.",
    )
    .with_code(&["extern"]),
    term(
        "fence",
        "fence",
        "Who sees what a thread writes behind a fence sees what it wrote before the fence, too; units that copy or multiply by themselves are among those who see.",
    )
    .with_code(&["fence", "fence_mbarrier_init", "fence_proxy_async"]),
    term(
        "float4",
        "float4",
        "Four floats side by side, read or written by one access of 16 bytes; uint4 is four unsigned integers.",
    )
    .with_code(&["float4", "uint4", "int4"]),
    term(
        "fragment",
        "fragment",
        "The elements of a tile of A or B that a thread holds in registers for a step along k.",
    ),
    measured(
        "fma",
        "fused multiply-add",
        "a times b plus c, rounded once. A multiprocessor of an H200 issues one for 128 threads in a cycle.",
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    )
    .or(&["multiply-add", "multiply-adds"])
    .with_code(&["fmaf"]),
    term(
        "global",
        "global memory",
        "The memory of the GPU, where A, B and C lie; hundreds of cycles away, behind two caches.",
    ),
    term("grid", "grid", "All blocks of a launch, along x, y and z."),
    measured(
        "instruction",
        "instruction",
        "What a warp executes in one issue. A multiprocessor issues at most four in a cycle, one from each of its schedulers.",
        "smsp__inst_executed.sum",
    ),
    term(
        "kernel",
        "kernel",
        "A function that runs on the GPU: each thread of a launch executes it.",
    ),
    term(
        "l1",
        "L1 cache",
        "The cache of one multiprocessor for global memory, in the same storage as its shared memory.",
    ),
    measured(
        "l2",
        "L2 cache",
        "The cache between all multiprocessors and memory; it moves sectors.",
        "lts__t_sectors.sum",
    ),
    term("lane", "lane", "A thread, by its place in its warp: 0 to 31."),
    term(
        "latency",
        "latency",
        "How long one instruction waits for its result. It is hidden where others can be issued meanwhile: of the warp itself, or of other warps.",
    )
    .or(&["latencies"]),
    term(
        "ldmatrix",
        "ldmatrix",
        "One instruction by which a warp loads small matrices from shared memory: each lane gets the elements that tensor cores want in its registers.",
    )
    .with_code(&["ldmatrix"]),
    term(
        "multiprocessor",
        "multiprocessor",
        "A part of the GPU with four schedulers, registers and shared memory of its own (SM); an H200 has 132.",
    ),
    term(
        "occupancy",
        "occupancy",
        "The warps that a multiprocessor holds at once, over the most that it could. It is no aim in itself: it hides latency where instructions of one warp do not.",
    ),
    term(
        "padding",
        "padding",
        "Elements at the end of a row in shared memory that nobody uses: they move the next row to other banks.",
    ),
    term(
        "phase",
        "phase",
        "The lanes that an access to shared memory serves together: all of 4 bytes, half a warp of 8, a quarter of 16, or half where lanes load the same two by two. Lanes of two phases never conflict.",
    ),
    term("pitch", "pitch", "The distance between the starts of two rows, in elements."),
    term(
        "predicate",
        "predicate",
        "A truth value that switches an instruction off for some lanes; the instruction is issued all the same.",
    ),
    term(
        "asm",
        "PTX",
        "The assembly language of NVIDIA GPUs. In it stands, behind asm volatile, what C++ has no word for: %0, %1 and so on are the operands named behind the colons.",
    )
    .with_code(&["asm", "cvt", "max.NaN", "min.NaN", "mov", "selp", "setp"]),
    term(
        "raster",
        "raster",
        "The order in which blocks take tiles of C: neighbours share rows of A and columns of B in the L2 cache.",
    ),
    term(
        "register",
        "register",
        "A word that belongs to a thread. 65,536 of a multiprocessor are shared out among the threads that it holds; 255 is the most for one.",
    )
    .with_code(&["setmaxnreg"]),
    term(
        "reinterpret-cast",
        "reinterpret_cast",
        "C++: the same address as a pointer of another type. With & before its name a declared variable is another name for what is there.",
    )
    .with_code(&["reinterpret_cast"]),
    term(
        "ring",
        "ring",
        "Places for some tiles in shared memory, used in turn: one tile is read while the next ones are on their way.",
    ),
    term(
        "roof",
        "roof",
        "The most that the arithmetic and the memory of the GPU allow of a kernel, for what it computes and moves.",
    ),
    term(
        "row-major",
        "row-major",
        "The elements of a row lie side by side in memory, one row after the other, as in an array of C. K-major: those of one k do.",
    )
    .with_code(&["row-major", "K-major"]),
    term(
        "scheduler",
        "scheduler",
        "A quarter of a multiprocessor, which issues one instruction of one of its warps in a cycle.",
    ),
    measured(
        "sector",
        "sector",
        "32 bytes of global memory that lie together, the least that is moved.",
        "l1tex__t_sectors_pipe_lsu_mem_global.sum",
    ),
    term(
        "shared",
        "shared memory",
        "Memory on the multiprocessor that the threads of a block share, some 30 cycles away.",
    )
    .with_code(&["__shared__"]),
    term(
        "shuffle",
        "shuffle",
        "Lanes of a warp read registers of one another (__shfl_down_sync, __shfl_xor_sync), without memory and without a barrier.",
    )
    .with_code(&["__shfl_down_sync", "__shfl_xor_sync"]),
    measured(
        "spill",
        "spill",
        "A value that did not fit into registers and went to memory.",
        "sass__inst_executed_register_spilling",
    )
    .or(&["spilled"]),
    term(
        "strip",
        "strip",
        "The rows of A, or the columns of B, over all of k, that the elements of a tile of C are sums of.",
    ),
    term(
        "swizzle",
        "swizzle",
        "An exchange of places within rows, by the number of the row, that spreads columns over all banks without padding.",
    ),
    term(
        "template",
        "template",
        "C++: a function that is made anew for each constant, or type, between the angle brackets where it is called.",
    )
    .with_code(&["template"]),
    term(
        "tensor-core",
        "tensor core",
        "A unit that multiplies small matrices of 16-bit numbers, or of 32-bit ones half as fast, for the lanes of a warp or of four warps together (mma.sync, wgmma).",
    )
    .with_code(&["mma.sync", "wgmma"]),
    term(
        "tensor-map",
        "tensor map",
        "What TMA needs to know of an array in global memory: where it is, how its rows lie and how large a box is. The CPU writes it and gives it to the kernel.",
    )
    .with_code(&["CUtensorMap", "__grid_constant__"]),
    term(
        "thread",
        "thread",
        "What executes a kernel once, with registers of its own. 32 threads are a warp, some warps a block.",
    ),
    term(
        "thread-idx",
        "threadIdx",
        "Which thread of its block a thread is: its place along x, y and z. Those of a warp follow one another along x, then along y.",
    )
    .with_code(&["threadIdx"]),
    term(
        "tile",
        "tile",
        "The part of a matrix that a block, a warp or a thread works on at a time.",
    ),
    term(
        "tma",
        "TMA",
        "The unit that copies boxes of arrays, which a single thread asks for, between global and shared memory (tensor memory accelerator, cp.async.bulk.tensor).",
    )
    .or(&["box", "boxes"])
    .with_code(&["cp.async.bulk"]),
    term(
        "unrolled",
        "unrolled",
        "Of a loop: its body is written out several times, or as often as it would be executed, so that fewer tests and steps are left. #pragma unroll asks the compiler for it, #pragma unroll 1 forbids it.",
    )
    .or(&["unroll"])
    .with_code(&["pragma unroll"]),
    term(
        "variant",
        "variant",
        "One of the kernels of a spec, which compute the same: one accesses 16 bytes at a time, one single elements, one has guards. The launch takes the first that the operands allow.",
    ),
    term("warp", "warp", "32 threads that execute one instruction together."),
    term(
        "warpgroup",
        "warpgroup",
        "Four warps that multiply together (wgmma).",
    ),
    term(
        "wave",
        "wave",
        "The blocks that the GPU holds at once. The last wave may leave multiprocessors without one.",
    ),
    measured(
        "wavefront",
        "wavefront",
        "One pass through the banks of shared memory. A multiprocessor makes one in a cycle.",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    ),
];

impl Term {
    const fn or(self, others: &'static [&'static str]) -> Self {
        Self { others, ..self }
    }

    /// Adds the words of kernel texts that the term explains.
    const fn with_code(self, code: &'static [&'static str]) -> Self {
        Self { code, ..self }
    }
}

#[cfg(test)]
mod tests;
