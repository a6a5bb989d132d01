//! The words of the field, each in a sentence of ours.

/// A term.
#[derive(Clone, Copy, Debug)]
pub struct Term {
    /// The `id` of its entry.
    pub id: &'static str,
    /// As it is written.
    pub name: &'static str,
    /// Other ways to write it, in small letters; with an s at its end it is known anyhow.
    pub others: &'static [&'static str],
    /// What it is.
    pub says: &'static str,
    /// The metric of the profiler that measures it; empty where there is none.
    pub metric: &'static str,
}

const fn term(id: &'static str, name: &'static str, says: &'static str) -> Term {
    Term { id, name, others: &[], says, metric: "" }
}

const fn measured(
    id: &'static str,
    name: &'static str,
    says: &'static str,
    metric: &'static str,
) -> Term {
    Term { id, name, others: &[], says, metric }
}

/// All terms, by name in the order of the alphabet.
pub const TERMS: [Term; 36] = [
    term(
        "alignment",
        "alignment",
        "An address is aligned to n bytes where n divides it. An access of 16 bytes must be aligned to 16, or the GPU faults.",
    ),
    term(
        "async-copy",
        "asynchronous copy",
        "A copy from global to shared memory that goes on while the threads compute; who needs what it brings waits for its group (cp.async).",
    )
    .or(&["asynchronous copies", "cp.async"]),
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
    ),
    term(
        "mbarrier",
        "barrier in shared memory",
        "A counter that threads and copies arrive at, and a phase that ends when all have; who waits asks for the parity of the phase.",
    )
    .or(&["barriers in shared memory", "mbarrier"]),
    term(
        "block",
        "block",
        "Threads that run on one multiprocessor, share its shared memory and can wait for one another. A launch is a grid of blocks.",
    ),
    term(
        "cluster",
        "cluster",
        "Some blocks that run at the same time and can reach one another's shared memory.",
    ),
    term(
        "coalesced",
        "coalesced",
        "Of an access: the lanes of the warp ask for neighbouring words, so that few sectors hold them all.",
    ),
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
    .or(&["multiply-add", "multiply-adds"]),
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
        "raster",
        "raster",
        "The order in which blocks take tiles of C: neighbours share rows of A and columns of B in the L2 cache.",
    ),
    term(
        "register",
        "register",
        "A word that belongs to a thread. 65,536 of a multiprocessor are shared out among the threads that it holds; 255 is the most for one.",
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
    ),
    measured(
        "spill",
        "spill",
        "A value that did not fit into registers and went to memory.",
        "sass__inst_executed_register_spilling",
    )
    .or(&["spilled"]),
    term(
        "swizzle",
        "swizzle",
        "An exchange of places within rows, by the number of the row, that spreads columns over all banks without padding.",
    ),
    term(
        "tensor-core",
        "tensor core",
        "A unit that multiplies small matrices of 16-bit numbers, or of 32-bit ones half as fast, for the lanes of a warp or of four warps together (mma.sync, wgmma).",
    ),
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
    .or(&["box", "boxes"]),
    term("warp", "warp", "32 threads that execute one instruction together."),
    measured(
        "wavefront",
        "wavefront",
        "One pass through the banks of shared memory. A multiprocessor makes one in a cycle.",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    ),
];

impl Term {
    /// The same, written otherwise too.
    const fn or(self, others: &'static [&'static str]) -> Self {
        Self { others, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn terms_are_in_order_and_have_places_of_their_own() {
        let names = TERMS.map(|term| term.name.to_lowercase());
        let out_of_order = names.windows(2).find(|pair| pair[0] >= pair[1]);
        assert_eq!(out_of_order, None);
        let ids: BTreeSet<&str> = TERMS.iter().map(|term| term.id).collect();
        assert_eq!(ids.len(), TERMS.len());
        for term in &TERMS {
            assert!(term.says.ends_with('.'), "{}", term.name);
        }
    }
}
