//! Introduction of each stage for a reader who knows C but not CUDA, with a question to answer
//! before reading on. An introduction describes the technique. The counters show the cost.

#[derive(Clone, Copy, Debug)]
pub struct Idea {
    pub stage: &'static str,
    pub text: &'static str,
    /// Question that the page of the stage answers.
    pub question: &'static str,
    /// Part of the page with the answer.
    pub answer: &'static str,
}

const fn idea(
    stage: &'static str,
    text: &'static str,
    question: &'static str,
    answer: &'static str,
) -> Idea {
    Idea { stage, text, question, answer }
}

pub fn of_stage(ladder: &str, stage: &str) -> Option<&'static Idea> {
    let all: &[Idea] = if ladder == "reduce" { &REDUCE } else { &SGEMM };
    all.iter().find(|idea| idea.stage == stage)
}

/// Introductions of the reductions, in the order of the ladder.
const REDUCE: [Idea; 11] = [
    idea(
        "interleaved_divergent",
        "Each block loads one element per thread into shared memory and reduces the elements as a \
         tree. In the first step every second thread adds its neighbour's element to its own, then \
         every fourth, and so on. Further launches add the block results.",
        "Fewer threads are active in each step. Which line shows the divergence?",
        "source",
    ),
    idea(
        "interleaved",
        "The same tree, but the first threads do the additions. Whole warps become idle instead \
         of some lanes of every warp. The distance between the added elements is unchanged.",
        "Lanes now access every second word, then every fourth. How does that affect the banks?",
        "accesses",
    ),
    idea(
        "sequential",
        "The upper half of the elements is added to the lower half, then again to the remaining \
         half, and so on. Neighbouring threads access neighbouring words.",
        "Which problems of the two previous stages are gone?",
        "change",
    ),
    idea(
        "items",
        "Each thread reads two elements and adds them before the tree begins. Half as many blocks \
         are needed, and every thread does an addition.",
        "How many barriers are needed per element now?",
        "change",
    ),
    idea(
        "unroll_last_warp",
        "The last warp's steps are unrolled, with warp barriers instead of block barriers.",
        "How many block barriers remain?",
        "counters",
    ),
    idea(
        "shuffle",
        "Lanes of a warp exchange values in registers. Shared memory holds only one value per \
         warp.",
        "How many shared-memory wavefronts does the tree take now?",
        "change",
    ),
    idea(
        "ticket",
        "There is only one launch. Each block stores its partial sum and takes a ticket. The block \
         with the last ticket adds all partial sums. An atomic and a fence make this safe.",
        "What does a block do besides adding, and how often?",
        "source",
    ),
    idea(
        "grid_stride",
        "The grid has only as many blocks as the GPU runs at once. Each strides through the array \
         by the size of the grid, with several 16-byte loads in flight per thread.",
        "How many instructions are executed per element?",
        "units",
    ),
    idea(
        "rows",
        "A group of lanes reduces a row of a matrix, and a block has several groups. Groups need \
         no barrier: lanes exchange values by shuffles.",
        "Which lanes read which part of a row?",
        "accesses",
    ),
    idea(
        "columns",
        "Each column of a matrix is reduced. Lanes run along a row, so neighbours read \
         neighbouring elements; threads along the columns share the work.",
        "Are the loaded sectors fully used?",
        "accesses",
    ),
    idea(
        "online",
        "Computes the logarithm of a sum of exponentials in one pass. A thread keeps the maximum \
         so far and the sum relative to it; two such pairs combine into one.",
        "What does a step cost besides the addition?",
        "source",
    ),
];

/// Introductions of the GEMMs, in the order of the ladder.
const SGEMM: [Idea; 45] = [
    idea(
        "naive_uncoalesced",
        "One thread computes each element of C from a row of A and a column of B. The 32 lanes of \
         a warp execute each instruction together. Here neighbouring lanes have neighbouring rows \
         of C, so their elements of A are a whole row apart.",
        "How many sectors does one load of A fetch for a warp, and how much of them is used?",
        "accesses",
    ),
    idea(
        "naive",
        "The same kernel, but neighbouring lanes have neighbouring columns of C. They read \
         neighbouring elements of B and the same element of A.",
        "What does swapping the two indices save?",
        "change",
    ),
    idea(
        "unroll",
        "The loop over K is unrolled four times, so its test and increment run once per four \
         multiply-adds.",
        "Which instructions decrease, and which do not?",
        "change",
    ),
    idea(
        "coarsen",
        "A thread computes four neighbouring elements of a row of C, one accumulator after the \
         other. This needs fewer threads, but the accumulators share no loads. The lanes of a \
         warp are now four columns apart.",
        "What happens to the loads of B?",
        "accesses",
    ),
    idea(
        "shared_tile",
        "The threads of a block copy a tile of A and a tile of B to shared memory, synchronise, \
         and compute from there. Each element is read from global memory once per block instead \
         of once per thread.",
        "Which unit is the bottleneck now?",
        "units",
    ),
    idea(
        "shared_tile_k",
        "Tiles are longer along K and narrower along M and N. This needs fewer barriers, but an \
         element in shared memory is used less often.",
        "How do the wavefronts change?",
        "change",
    ),
    idea(
        "thread_strided",
        "A thread computes four by four elements, spaced by the size of the block. It uses each \
         value loaded from shared memory four times.",
        "How many multiply-adds are there per load from shared memory?",
        "change",
    ),
    idea(
        "private_row",
        "Each thread computes four elements of one row of C. The published kernel copies B's tile \
         in four parts instead, as the key `b_in_parts` does.",
        "Which elements of A are the same for all lanes of a warp?",
        "accesses",
    ),
    idea(
        "register_tile_padded",
        "Each of sixteen threads computes eight by eight neighbouring elements. Rows of A in \
         shared memory are padded by one element.",
        "What is the padding for, with so few threads?",
        "ledger",
    ),
    idea(
        "padded_prefetch",
        "The next tile is loaded into registers while the current one is multiplied. Each \
         accumulator is split into four, so that a multiply-add need not wait for the previous \
         one. The published kernel adds the four after every tile, as the key `fold_tiles` does.",
        "How much arithmetic is there between a load and its use?",
        "source",
    ),
    idea(
        "float4",
        "Copies and loads are 16 bytes wide: one instruction replaces four.",
        "How many wavefronts does a 16-byte load take, and why more than one?",
        "accesses",
    ),
    idea(
        "outer_product",
        "In each step along K a thread reads four elements of A and four of B, and accumulates \
         their sixteen products.",
        "How many loads are there per multiply-add?",
        "change",
    ),
    idea(
        "block_128",
        "Tiles are 128 by 128, and a thread has eight by eight elements: 64 multiply-adds for 16 \
         elements from shared memory.",
        "Which bank conflicts remain, and where?",
        "accesses",
    ),
    idea(
        "block_128_float4",
        "The same kernel, but accesses are 16 bytes wide wherever elements are contiguous.",
        "Which fragment loads cannot be 16 bytes wide?",
        "source",
    ),
    idea(
        "transpose",
        "A is transposed on its way to shared memory. There it is contiguous along M, and the \
         eight elements of a thread are two 16-byte loads.",
        "What does the transpose cost, and where?",
        "accesses",
    ),
    idea(
        "split_fragment",
        "The eight columns of a thread become two groups of four, half a tile apart. The lanes of \
         a warp then read neighbouring words. The rows are split too; the published kernel splits \
         only the columns, as `fragment: split_n` does.",
        "Which conflicts are gone?",
        "change",
    ),
    idea(
        "double_buffer",
        "Shared memory has two buffers. The next tile is stored in the free buffer while the \
         current one is multiplied. One barrier per tile is enough.",
        "How many barriers are saved?",
        "change",
    ),
    idea(
        "guarded_scalar",
        "The same plan for matrices whose rows are not aligned to 16 bytes: every access is \
         guarded and covers one element. In the published kernel, each thread copies four adjacent \
         elements, as `adjacent: 4` does.",
        "What does unknown alignment cost?",
        "change",
    ),
    idea(
        "pitched",
        "Matrices may have any leading dimension, as submatrices do. Copies past an edge read \
         adjacent elements.",
        "Which tests are gone from the source?",
        "change",
    ),
    idea(
        "warp_tile",
        "Each warp computes its own tile of 64 by 32, so its lanes share the data they read.",
        "Do the lanes of a warp still read as many different words?",
        "accesses",
    ),
    idea(
        "async_pipeline",
        "Asynchronous copies (cp.async) move tiles from global to shared memory without \
         registers. Shared memory is a ring of four tiles: while one is multiplied, up to three \
         are in flight.",
        "How early is a tile requested before its use?",
        "source",
    ),
    idea(
        "fastest",
        "The kernel has a larger tile, a ring of three tiles, copies spread over the \
         multiplication steps, accumulators staged before the stores, an L2-friendly order of C \
         tiles, and an order of multiply-adds that reuses operands.",
        "Which of these keys change a counter, and which change only the time?",
        "ledger",
    ),
    idea(
        "layout_tn",
        "A is contiguous along M: no transpose is needed, and its copies are 16 bytes wide.",
        "What does the layout save?",
        "change",
    ),
    idea(
        "layout_nt",
        "B is K-major, so both matrices are transposed element by element on their way to shared \
         memory.",
        "What do 4-byte copies cost?",
        "change",
    ),
    idea(
        "scaled",
        "C becomes alpha times the GEMM plus beta times the old C: the epilogue reads C.",
        "Which line reads C, and how wide is the access?",
        "source",
    ),
    idea(
        "batched",
        "One launch computes many GEMMs of one shape. The third grid coordinate selects the GEMM.",
        "What extra work does a block do?",
        "change",
    ),
    idea(
        "epilogue_bias_relu",
        "A bias is added to each row and ReLU is applied before C is stored. This saves a kernel \
         and a pass over memory.",
        "How many bytes does the epilogue read?",
        "change",
    ),
    idea(
        "epilogue_gelu_residual",
        "The epilogue applies a smooth activation and adds another matrix. It uses the library's \
         own tanh, with the same bits on the GPU and in the simulator.",
        "What share of all instructions is the epilogue?",
        "source",
    ),
    idea(
        "matrix_vector",
        "A single column has no tile to share. The lanes of a warp run along K; each accumulates \
         its part, and shuffles add the parts.",
        "Which operand is read more than once?",
        "accesses",
    ),
    idea(
        "slices",
        "For a small C: groups of threads of a block divide K among themselves and add their \
         accumulators in shared memory at the end (sliced-K).",
        "Which two purposes does shared memory serve?",
        "source",
    ),
    idea(
        "split_k",
        "Several blocks share one tile of C along K (split-K). Each stores its partial sums; the \
         last block adds them in a fixed order.",
        "What is written besides C?",
        "source",
    ),
    idea(
        "stream_k",
        "All steps of all tiles are distributed evenly over the blocks that the GPU runs at once. \
         No block waits for a last wave.",
        "How does a block find its start?",
        "source",
    ),
    idea(
        "mma_sync",
        "Tensor cores: the 32 lanes of a warp multiply small bf16 matrices together. Values are \
         converted to bf16 between shared memory and registers.",
        "How many instructions are there per matrix instruction?",
        "counters",
    ),
    idea(
        "ldmatrix",
        "One instruction loads four small matrices for the whole warp. Rows in shared memory are \
         swizzled to avoid bank conflicts.",
        "What happened to the padding?",
        "change",
    ),
    idea(
        "mma_ring",
        "The same kernel with asynchronous copies, in a ring of two tiles: while one tile is \
         multiplied, the next is in flight.",
        "Who converts now, and when?",
        "source",
    ),
    idea(
        "mma_bf16x6",
        "Each f32 is split into three bf16 numbers. Six of the nine partial products reach f32 \
         accuracy.",
        "How many matrix instructions replace one?",
        "counters",
    ),
    idea(
        "wgmma",
        "Four warps multiply matrices in shared memory together (wgmma). A previous launch \
         converts the operands to bf16.",
        "Which fragment loads remain?",
        "source",
    ),
    idea(
        "tma",
        "One thread requests a box of the matrix, and the TMA unit copies it. An mbarrier counts \
         the bytes that have arrived.",
        "How many instructions does a copy take?",
        "counters",
    ),
    idea(
        "warp_specialised",
        "Warp specialisation: one warpgroup only loads tiles, the others only multiply. mbarriers \
         hand the slots of the ring back and forth.",
        "Which lines does each role execute?",
        "source",
    ),
    idea(
        "persistent",
        "Persistent kernel: as many blocks as the GPU has SMs, each looping over tiles of C. \
         Loads for the next tile continue while accumulators are stored.",
        "How does a block find its next tile?",
        "source",
    ),
    idea(
        "wgmma_bf16x6",
        "Each value is split into three bf16 numbers, with six partial products: f32 accuracy \
         from tensor cores. An f32 fallback handles values the split cannot represent.",
        "How much more work do the units do than for plain bf16?",
        "change",
    ),
    idea(
        "wgmma_f16x3",
        "A split into two f16 numbers with three partial products. Rows and columns are scaled by \
         powers of two to fit.",
        "What does the previous launch find out?",
        "decisions",
    ),
    idea(
        "cluster_multicast",
        "Two blocks with vertically adjacent tiles of C use the same tile of B: each loads a part \
         of it for both.",
        "How many bytes are requested from L2, and how many arrive?",
        "counters",
    ),
    idea(
        "mma_converted",
        "A previous launch converts A and B to bf16. Tiles in shared memory hold bf16, and \
         ldmatrix loads fragments in the form that the matrix instruction takes.",
        "How many instructions convert now?",
        "counters",
    ),
    idea(
        "mma_converted_bf16x6",
        "FP32 emulation: a previous launch splits each value into three bf16 numbers. The ring has \
         a tile for each of the three.",
        "Which sums are computed again, and when?",
        "source",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use gemm_dsl::stages;

    #[test]
    fn every_stage_has_an_idea_in_its_place() {
        let reduce: Vec<&str> = stages::reduce().iter().map(|stage| stage.name).collect();
        let sgemm: Vec<&str> = stages::sgemm().iter().map(|stage| stage.name).collect();
        assert_eq!(REDUCE.map(|idea| idea.stage).to_vec(), reduce);
        assert_eq!(SGEMM.map(|idea| idea.stage).to_vec(), sgemm);
        let parts = ["source", "accesses", "change", "units", "ledger", "counters", "decisions"];
        for idea in REDUCE.iter().chain(&SGEMM) {
            assert!(parts.contains(&idea.answer), "{}", idea.stage);
            assert!(idea.question.ends_with('?') && idea.text.ends_with('.'), "{}", idea.stage);
        }
    }

    /// One slot of a ring is being read, so the number of copies in flight is one less than the
    /// number of slots.
    #[test]
    fn rings_have_as_many_places_as_their_ideas_say() {
        let number = |word: &str| {
            ["no", "one", "two", "three", "four", "five"].iter().position(|of| *of == word)
        };
        let mut told = 0;
        for stage in stages::sgemm() {
            let text = of_stage("sgemm", stage.name).expect("an idea").text;
            let Some((_, behind)) = text.split_once("a ring of ") else { continue };
            let places = number(behind.split(' ').next().unwrap_or_default());
            assert_eq!(stage.spec.stages.map(|of| of as usize), places, "{}", stage.name);
            if let Some((_, behind)) = text.split_once("up to ") {
                assert_eq!(
                    number(behind.split(' ').next().unwrap_or_default()),
                    places.map(|of| of - 1)
                );
            }
            told += 1;
        }
        assert_eq!(told, 3);
    }
}
