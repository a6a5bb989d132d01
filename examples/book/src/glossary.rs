//! Glossary of the book: terms of the field, each with an explanation.

#[derive(Clone, Copy, Debug)]
pub struct Term {
    /// HTML `id` of its entry.
    pub id: &'static str,
    /// Printed name.
    pub name: &'static str,
    /// Alternative spellings in lower case. The plural with s is recognised without an entry.
    pub others: &'static [&'static str],
    /// CUDA and PTX words in kernel sources that the term explains.
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
pub const TERMS: [Term; 73] = [
    term(
        "cuda-arch",
        "__CUDA_ARCH__",
        "Architecture for which the code is compiled: 900 for sm_90. Code between #if and #endif \
         is compiled only if the condition holds.",
    )
    .with_code(&["__CUDA_ARCH__"]),
    term(
        "cvta",
        "__cvta_generic_to_shared",
        "Converts a pointer to an address in shared memory, as PTX instructions expect it.",
    )
    .with_code(&["__cvta_generic_to_shared"]),
    term(
        "device",
        "__device__",
        "Marks a function that runs on the GPU and is called from a kernel. __forceinline__ \
         inlines it at each call.",
    )
    .with_code(&["__device__", "__forceinline__"]),
    term(
        "bits",
        "__float_as_uint",
        "Reinterprets the bits of a float as an unsigned integer, and __float_as_int as a \
         signed one; __uint_as_float and __int_as_float do the reverse.",
    )
    .with_code(&["__float_as_uint", "__float_as_int", "__uint_as_float", "__int_as_float"]),
    term(
        "global-function",
        "__global__",
        "Marks a function as a kernel: the CPU launches it, and each thread of the launch \
         executes it.",
    )
    .with_code(&["__global__"]),
    term(
        "launch-bounds",
        "__launch_bounds__",
        "Tells the compiler the maximum number of threads per block and, optionally, the minimum \
         number of blocks per SM. Both limit the registers per thread.",
    )
    .with_code(&["__launch_bounds__"]),
    term(
        "reduce-or",
        "__reduce_or_sync",
        "Bitwise OR of one value per lane; all lanes of the warp get the result.",
    )
    .with_code(&["__reduce_or_sync"]),
    term(
        "restrict",
        "__restrict__",
        "Promises the compiler, like C's restrict, that data accessed through this pointer is \
         modified through no other pointer. Loads may then be moved past stores.",
    )
    .with_code(&["__restrict__"]),
    term(
        "alignment",
        "alignment",
        "An address is aligned to n bytes if it is a multiple of n. A 16-byte access must be \
         aligned to 16 bytes; otherwise the GPU faults.",
    )
    .with_code(&["__align__", "alignas"]),
    term(
        "async-copy",
        "asynchronous copy",
        "Copy from global to shared memory that runs while the threads compute (cp.async). A \
         thread waits for its copy group before it uses the data.",
    )
    .or(&["asynchronous copies"])
    .with_code(&["cp.async"]),
    term(
        "atomic",
        "atomic",
        "Read-modify-write of one address in a single step: no other thread can intervene.",
    )
    .with_code(&["atom", "atomicMax"]),
    term(
        "bank",
        "bank",
        "Shared memory is divided into 32 banks: the 4-byte word i is in bank i mod 32. Each bank \
         serves one word per wavefront.",
    ),
    measured(
        "conflict",
        "bank conflict",
        "Lanes of one phase access different words in the same bank. Each additional word costs \
         one more wavefront.",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    ),
    measured(
        "barrier",
        "barrier",
        "All threads of the block wait here for each other, and afterwards see each other's \
         writes (__syncthreads).",
        "sass__inst_executed_per_opcode (BAR)",
    )
    .with_code(&["__syncthreads"]),
    term(
        "bf16",
        "bf16",
        "16-bit floating-point format with the exponent of a float and 7 bits of fraction. f16 \
         has a 5-bit exponent and 10 bits of fraction.",
    )
    .or(&["f16"]),
    term(
        "block",
        "block",
        "Threads that run on one SM, share its shared memory and can synchronise. A launch is a \
         grid of blocks.",
    ),
    term(
        "block-dim",
        "blockDim",
        "Number of threads of a block along x, y and z; gridDim is the number of blocks of the \
         grid.",
    )
    .or(&["griddim"])
    .with_code(&["blockDim", "gridDim"]),
    term("block-idx", "blockIdx", "Index of the thread's block in the grid along x, y and z.")
        .with_code(&["blockIdx"]),
    term(
        "cluster",
        "cluster",
        "Blocks that run at the same time and can access each other's shared memory.",
    )
    .with_code(&["__cluster_dims__", "mapa", "barrier.cluster"]),
    term(
        "coalesced",
        "coalesced",
        "An access is coalesced if the lanes of a warp access neighbouring words, so that they \
         fall into few sectors.",
    ),
    term("constexpr", "constexpr", "C++: a compile-time constant.").with_code(&["constexpr"]),
    measured(
        "divergence",
        "divergence",
        "Lanes of a warp take different directions at a branch. Both directions are executed, \
         each with the other lanes idle.",
        "smsp__branch_targets_threads_divergent.sum",
    )
    .or(&["divergent"]),
    term(
        "double-buffer",
        "double buffering",
        "Two buffers for a tile in shared memory: one is filled while the other is read. One \
         barrier per tile is enough.",
    ),
    term(
        "epilogue",
        "epilogue",
        "Computation on an accumulator before it is stored: scaling, bias, activation, in the \
         same kernel.",
    ),
    term(
        "extern",
        "extern",
        "For a kernel, extern \"C\" disables name mangling, so that the CPU finds it by name. For \
         a shared-memory array, extern means that the launch sets its size.",
    )
    .with_code(&["extern"]),
    term(
        "fence",
        "fence",
        "Orders the writes of a thread: whoever sees a write after the fence also sees the writes \
         before it. Proxy fences also cover the copy and matrix units.",
    )
    .with_code(&["fence", "fence_mbarrier_init", "fence_proxy_async"]),
    term(
        "float4",
        "float4",
        "Vector of four floats, read or written by one 16-byte access; uint4 is a vector of four \
         unsigned integers.",
    )
    .with_code(&["float4", "uint4", "int4"]),
    term(
        "fragment",
        "fragment",
        "Elements of a tile of A or B that a thread holds in registers for one step along K.",
    ),
    measured(
        "fma",
        "fused multiply-add",
        "Computes a times b plus c with a single rounding. An SM of an H200 issues it for 128 \
         threads per cycle.",
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
    )
    .or(&["multiply-add", "multiply-adds"])
    .with_code(&["fmaf"]),
    term(
        "global",
        "global memory",
        "Main memory of the GPU, which holds A, B and C. Accesses pass through two caches; their \
         latency is hundreds of cycles.",
    ),
    term("grid", "grid", "All blocks of a launch, along x, y and z."),
    measured(
        "instruction",
        "instruction",
        "Operation that a warp executes in one issue slot. An SM issues at most four per cycle, \
         one from each scheduler.",
        "smsp__inst_executed.sum",
    ),
    term("kernel", "kernel", "Function that runs on the GPU: each thread of a launch executes it."),
    term(
        "l1",
        "L1 cache",
        "Cache of one SM for global memory. It shares its storage with shared memory.",
    ),
    measured(
        "l2",
        "L2 cache",
        "Cache between all SMs and memory. It transfers sectors.",
        "lts__t_sectors.sum",
    ),
    term("lane", "lane", "Thread of a warp, numbered 0 to 31."),
    term(
        "latency",
        "latency",
        "Time until the result of an instruction is available. It is hidden if other instructions \
         of the same or another warp can be issued meanwhile.",
    )
    .or(&["latencies"]),
    term(
        "ldmatrix",
        "ldmatrix",
        "Loads 8x8 matrices from shared memory for a whole warp: each lane receives the elements \
         that tensor cores expect in its registers.",
    )
    .with_code(&["ldmatrix"]),
    term(
        "pitch",
        "leading dimension",
        "Row stride: distance between the starts of two consecutive rows, in elements.",
    )
    .or(&["row stride", "row strides", "pitch"]),
    term(
        "mbarrier",
        "mbarrier",
        "Barrier object in shared memory. Threads and copies arrive at it; its phase completes \
         when all have arrived. A waiting thread names the parity of the phase.",
    )
    .with_code(&["mbarrier"]),
    term(
        "occupancy",
        "occupancy",
        "Warps resident on an SM, relative to the maximum. It is not an aim in itself: it hides \
         latency that the instructions of one warp cannot hide.",
    ),
    term(
        "padding",
        "padding",
        "Unused elements at the end of each row in shared memory. They shift the next row to \
         other banks.",
    ),
    term(
        "phase",
        "phase",
        "Lanes that a shared-memory access serves together: 32 lanes of 4 bytes each, 16 of 8 \
         bytes, or 8 of 16 bytes. A phase of a 16-byte load has 16 lanes if each lane reads the \
         same words as its neighbour. Lanes of different phases never conflict.",
    ),
    term(
        "predicate",
        "predicate",
        "Condition that disables an instruction for some lanes. The instruction is issued anyway.",
    ),
    term(
        "asm",
        "PTX",
        "Assembly language of NVIDIA GPUs. asm volatile embeds instructions that C++ cannot \
         express; %0, %1 and so on are the operands after the colons.",
    )
    .with_code(&["asm", "cvt", "max.NaN", "min.NaN", "mov", "selp", "setp"]),
    term(
        "raster",
        "raster",
        "Order in which blocks process tiles of C. Neighbours share rows of A and columns of B in \
         the L2 cache.",
    ),
    term(
        "register",
        "register",
        "32-bit word private to a thread. An SM has 65,536 for all resident threads; a thread has \
         at most 255.",
    )
    .with_code(&["setmaxnreg"]),
    term(
        "reinterpret-cast",
        "reinterpret_cast",
        "C++: reinterprets an address as a pointer of another type. A variable declared with & is \
         a reference.",
    )
    .with_code(&["reinterpret_cast"]),
    term(
        "ring",
        "ring",
        "Circular buffer of tiles in shared memory: one tile is read while the next ones are \
         loaded.",
    ),
    term(
        "roof",
        "roof",
        "Upper bound on a kernel's rate, given by the GPU's arithmetic and memory throughput and \
         the kernel's work and traffic.",
    ),
    term(
        "row-major",
        "row-major",
        "The elements of a row are contiguous in memory and rows follow one another, like a C \
         array. K-major: consecutive k are contiguous.",
    )
    .with_code(&["row-major", "K-major"]),
    term(
        "scheduler",
        "scheduler",
        "Quarter of an SM. It issues one instruction of one of its warps per cycle.",
    ),
    measured(
        "sector",
        "sector",
        "Aligned 32 bytes of global memory, the unit of transfer.",
        "l1tex__t_sectors_pipe_lsu_mem_global.sum",
    ),
    term(
        "shared",
        "shared memory",
        "Memory on the SM that the threads of a block share. Its latency is about 30 cycles.",
    )
    .with_code(&["__shared__"]),
    term(
        "shuffle",
        "shuffle",
        "Lanes of a warp read each other's registers without memory or a barrier \
         (__shfl_down_sync, __shfl_xor_sync).",
    )
    .with_code(&["__shfl_down_sync", "__shfl_xor_sync"]),
    term(
        "multiprocessor",
        "SM",
        "Streaming multiprocessor: unit of the GPU with four schedulers, registers and shared \
         memory. An H200 has 132.",
    ),
    measured(
        "spill",
        "spill",
        "Value that did not fit into registers and was stored in local memory.",
        "sass__inst_executed_register_spilling",
    )
    .or(&["spilled"]),
    term(
        "strip",
        "strip",
        "Rows of A or columns of B, over all of K, that contribute to a tile of C.",
    ),
    term(
        "swizzle",
        "swizzle",
        "Permutation of the columns of a row that depends on the row number. It spreads a column \
         over all banks without padding.",
    ),
    term(
        "template",
        "template",
        "C++: function that is instantiated for each constant or type in the angle brackets of \
         its call.",
    )
    .with_code(&["template"]),
    term(
        "tensor-core",
        "tensor core",
        "Unit that multiplies small matrices for one warp or four warps (mma.sync, wgmma): 16-bit \
         numbers at full rate, 32-bit numbers at half rate.",
    )
    .with_code(&["mma.sync", "wgmma"]),
    term(
        "tensor-map",
        "tensor map",
        "Descriptor that TMA needs for an array in global memory: address, row stride and box \
         size. The CPU creates it and passes it to the kernel.",
    )
    .with_code(&["CUtensorMap", "__grid_constant__"]),
    term(
        "thread",
        "thread",
        "Executes the kernel once, with its own registers. 32 threads form a warp; one or more \
         warps form a block.",
    ),
    term(
        "thread-idx",
        "threadIdx",
        "Index of the thread in its block along x, y and z. Consecutive threads of a warp are \
         numbered along x first, then along y.",
    )
    .with_code(&["threadIdx"]),
    term("tile", "tile", "Part of a matrix that a block, warp or thread processes at a time."),
    term(
        "tma",
        "TMA",
        "Tensor memory accelerator: unit that copies boxes of arrays between global and shared \
         memory. A single thread starts the copy (cp.async.bulk.tensor).",
    )
    .or(&["box", "boxes"])
    .with_code(&["cp.async.bulk"]),
    term(
        "unrolled",
        "unrolled",
        "Loop whose body is replicated to save tests and index updates; the loop may vanish \
         entirely. #pragma unroll requests it, #pragma unroll 1 forbids it.",
    )
    .or(&["unroll"])
    .with_code(&["pragma unroll"]),
    term(
        "variant",
        "variant",
        "One of the kernels of a spec. All compute the same result, with 16-byte accesses, \
         single-element accesses or guards. The launch takes the first that the operands allow.",
    ),
    term("warp", "warp", "32 threads that execute an instruction together."),
    term(
        "warp-barrier",
        "warp barrier",
        "The lanes of one warp wait here for each other; other warps continue (__syncwarp).",
    )
    .with_code(&["__syncwarp"]),
    term("warpgroup", "warpgroup", "Four warps that multiply together (wgmma)."),
    term("wave", "wave", "Blocks that the GPU runs at once. The last wave may leave SMs idle."),
    measured(
        "wavefront",
        "wavefront",
        "One pass through the banks of shared memory. An SM processes one per cycle.",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    ),
];

impl Term {
    const fn or(self, others: &'static [&'static str]) -> Self {
        Self { others, ..self }
    }

    /// Adds the words of kernel sources that the term explains.
    const fn with_code(self, code: &'static [&'static str]) -> Self {
        Self { code, ..self }
    }
}

#[cfg(test)]
mod tests;
