//! Introduction of each stage for a reader who knows C but not CUDA, with a question to ask before
//! reading on. The texts describe the technique; its cost is shown by the counters.

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
        "Each block takes as many elements as it has threads into shared memory and adds them as a tree: in the first step every second thread adds its neighbour's element to its own, in the next every fourth, and so on. What blocks are left with is summed by further launches.",
        "In each step fewer threads have something to do. Which line shows that the lanes of a warp part?",
        "source",
    ),
    idea(
        "interleaved",
        "The same tree, but the threads that add are the first ones, so that whole warps have nothing to do instead of some lanes of every warp. The places that they add lie as far apart as before.",
        "Lanes now access every second word, then every fourth. What does that do to the banks?",
        "accesses",
    ),
    idea(
        "sequential",
        "The upper half of the elements is added to the lower half, then the upper half of those, and so on: neighbouring threads access neighbouring words.",
        "Which of the two faults of the stages before are gone?",
        "change",
    ),
    idea(
        "items",
        "A thread reads two elements and adds them before the tree begins: half as many blocks, and no thread that only loads.",
        "How many barriers are there now for each element?",
        "change",
    ),
    idea(
        "unroll_last_warp",
        "As soon as one warp is left its steps are written out one after the other, with barriers of that warp alone in place of those of the block.",
        "How many barriers of the block are left?",
        "counters",
    ),
    idea(
        "shuffle",
        "Lanes of a warp hand their values to one another in registers. Shared memory holds one value for each warp only.",
        "How many wavefronts of shared memory does the tree take now?",
        "change",
    ),
    idea(
        "ticket",
        "One launch: each block leaves its sum and takes a ticket, and the block with the last ticket adds what all have left. An atomic and a fence say that it may.",
        "What does a block do besides adding, and how often?",
        "source",
    ),
    idea(
        "grid_stride",
        "As many blocks as the GPU holds at once, each of which goes through the array in steps of the whole grid, with several loads of 16 bytes under way in each thread.",
        "How many instructions are there for each element?",
        "units",
    ),
    idea(
        "rows",
        "Each row of a matrix is folded by a group of lanes, several rows to a block. Groups need no barrier: lanes of a warp shuffle.",
        "Which lanes read which part of a row?",
        "accesses",
    ),
    idea(
        "columns",
        "Each column of a matrix is folded. Lanes lie along a row, so that neighbours read neighbouring elements, and threads down the columns share the work.",
        "Are the sectors that are read used in full?",
        "accesses",
    ),
    idea(
        "online",
        "The logarithm of a sum of exponentials, in one pass: a thread keeps the greatest element so far and the sum relative to it, and two such pairs make one.",
        "What does a step cost beside the addition?",
        "source",
    ),
];

/// Introductions of the GEMMs, in the order of the ladder.
const SGEMM: [Idea; 43] = [
    idea(
        "naive_uncoalesced",
        "The kernel is executed by one thread for each element of C, which goes along a row of A and down a column of B. 32 threads at a time, the lanes of a warp, execute an instruction together. Here neighbouring lanes have neighbouring rows of C: what they read of A lies a whole row apart.",
        "How many sectors does one load of A move for a warp, and how much of them is used?",
        "accesses",
    ),
    idea(
        "naive",
        "The same kernel, in which neighbouring lanes have neighbouring columns of C: they read neighbouring elements of B, and the same element of A.",
        "What does the exchange of two indices save?",
        "change",
    ),
    idea(
        "unroll",
        "The loop along k is written out four times, so that its test and its step come once for four terms.",
        "Which instructions become fewer, and which do not?",
        "change",
    ),
    idea(
        "coarsen",
        "A thread computes four neighbouring elements of a row of C, one whole sum after the other: fewer threads, and nothing that the sums share. The lanes of a warp are four columns apart now.",
        "What has become of the loads of B?",
        "accesses",
    ),
    idea(
        "shared_tile",
        "The threads of a block bring a tile of A and one of B to shared memory, wait for one another, and compute with those: each element is read from global memory once for the block, and not once for each thread that needs it.",
        "Which unit has most to do now?",
        "units",
    ),
    idea(
        "shared_tile_k",
        "Tiles that are longer along k and narrower along m and n: fewer barriers, less reuse.",
        "What do wavefronts say of the exchange?",
        "change",
    ),
    idea(
        "thread_strided",
        "A thread computes four by four elements, which lie a whole block of threads apart. What it reads from shared memory it uses four times.",
        "How many multiply-adds are there for each load from shared memory?",
        "change",
    ),
    idea(
        "private_row",
        "Each thread computes four elements of one row of C.",
        "Whose elements of A are the same for all lanes of a warp?",
        "accesses",
    ),
    idea(
        "register_tile_padded",
        "Eight by eight neighbouring elements for each of sixteen threads. Rows of A in shared memory get one more element, which no one uses.",
        "What would the padding be for, with as few threads as these?",
        "ledger",
    ),
    idea(
        "padded_prefetch",
        "While one tile is multiplied the elements of the next are already being loaded into registers, and each sum is kept in four parts, so that a multiply-add need not wait for the one before.",
        "How much arithmetic lies between a load and its use?",
        "source",
    ),
    idea(
        "float4",
        "Copies and loads of 16 bytes: one instruction where there were four.",
        "How many wavefronts does a load of 16 bytes take, and why not one?",
        "accesses",
    ),
    idea(
        "outer_product",
        "In each step along k a thread reads four elements of A and four of B, and adds their sixteen products.",
        "How many loads are there for each multiply-add?",
        "change",
    ),
    idea(
        "block_128",
        "Tiles of 128 by 128, and eight by eight elements for each thread: 64 multiply-adds for 16 elements from shared memory.",
        "What is left of the bank conflicts, and whose are they?",
        "accesses",
    ),
    idea(
        "block_128_float4",
        "The same with accesses of 16 bytes wherever elements lie side by side.",
        "Which loads of a fragment cannot be 16 bytes wide?",
        "source",
    ),
    idea(
        "transpose",
        "A is turned on its way to shared memory: there it lies along m, and a thread's eight elements of it are two loads of 16 bytes.",
        "What does turning cost, and where?",
        "accesses",
    ),
    idea(
        "split_fragment",
        "A thread's eight columns become two groups of four, half a tile apart, so that the lanes of a warp together read neighbouring words.",
        "Which conflicts are gone?",
        "change",
    ),
    idea(
        "double_buffer",
        "Two tiles in shared memory: the next one is stored where nobody reads while this one is multiplied. One barrier for each tile is enough.",
        "How many barriers are saved?",
        "change",
    ),
    idea(
        "guarded_scalar",
        "The same plan for matrices whose rows do not begin on 16 bytes: every access is one element, and has a guard.",
        "What is the price of not knowing the alignment?",
        "change",
    ),
    idea(
        "pitched",
        "Rows of matrices may be any distance apart, as in parts of larger ones, and copies past an edge read what lies beside.",
        "Which tests are gone from the text?",
        "change",
    ),
    idea(
        "warp_tile",
        "Each warp computes a tile of its own, 64 by 32, so that its lanes share what they read.",
        "Do the lanes of a warp still read as many different words?",
        "accesses",
    ),
    idea(
        "async_pipeline",
        "Copies go from global to shared memory by themselves (cp.async), without registers in between. Shared memory has a ring of four places for tiles: while one tile is multiplied, up to three are on their way.",
        "How long before its use is a tile asked for?",
        "source",
    ),
    idea(
        "fastest",
        "A larger tile, a ring of five places, copies spread over the steps of the multiplication, tiles of C in an order that shares the L2 cache, and multiply-adds in an order that reuses operands.",
        "Which of these keys does a counter see, and which only a clock?",
        "ledger",
    ),
    idea(
        "layout_tn",
        "A lies along m: nothing needs to be turned, and its copies are 16 bytes wide.",
        "What does the layout save?",
        "change",
    ),
    idea(
        "layout_nt",
        "B lies along k, so that both matrices are turned on their way, element by element.",
        "What do copies of 4 bytes cost?",
        "change",
    ),
    idea(
        "scaled",
        "C becomes alpha times the product plus beta times what it was: the epilogue reads C.",
        "Which line reads C, and how wide?",
        "source",
    ),
    idea(
        "batched",
        "Many products of one shape in one launch: a third coordinate of the grid says which.",
        "What does a block do more?",
        "change",
    ),
    idea(
        "epilogue_bias_relu",
        "A vector is added to each row and what is negative becomes zero, before C is stored: a kernel and a pass over memory less.",
        "How many bytes does the epilogue read?",
        "change",
    ),
    idea(
        "epilogue_gelu_residual",
        "A smooth activation and the sum with another matrix, fused. Its arithmetic is that of the library's own tanh, the same bits on the GPU and here.",
        "What share of all instructions is the epilogue's?",
        "source",
    ),
    idea(
        "matrix_vector",
        "For one column there is no tile to share: the lanes of a warp lie along k, each sums its share, and they add what they have by shuffles.",
        "Which of the operands is read more than once?",
        "accesses",
    ),
    idea(
        "slices",
        "For a small C: groups of a block's threads take turns along k, and add their sums in shared memory at the end.",
        "What is shared memory used for twice?",
        "source",
    ),
    idea(
        "split_k",
        "Blocks share one tile of C along k. Each leaves its sums, and the last to come adds them in a fixed order.",
        "What is written beside C?",
        "source",
    ),
    idea(
        "stream_k",
        "All steps of all tiles are dealt out evenly to as many blocks as the GPU holds: none waits for the last wave.",
        "How does a block know where it begins?",
        "source",
    ),
    idea(
        "mma_sync",
        "Tensor cores: the 32 lanes of a warp together multiply small matrices of bf16. Numbers become bf16 on their way from shared memory to registers.",
        "How many instructions are there for each multiplication of matrices?",
        "counters",
    ),
    idea(
        "ldmatrix",
        "One instruction loads four small matrices for the whole warp, and rows in shared memory exchange places so that it meets no conflict.",
        "What has become of padding?",
        "change",
    ),
    idea(
        "mma_ring",
        "The same with asynchronous copies, in a ring of two places: while one tile is multiplied the next is on its way.",
        "Who converts now, and when?",
        "source",
    ),
    idea(
        "mma_bf16x6",
        "Each f32 is taken apart into three numbers of bf16, and six of the nine products of parts come to what f32 would give.",
        "How many multiplications of matrices replace one?",
        "counters",
    ),
    idea(
        "wgmma",
        "Four warps together multiply matrices that lie in shared memory (wgmma). A launch before the product has made planes of bf16.",
        "Which loads of fragments are left?",
        "source",
    ),
    idea(
        "tma",
        "One thread asks for a box of the matrix, and a unit of its own copies it (TMA): a barrier in shared memory counts the bytes that have come.",
        "How many instructions does a copy take?",
        "counters",
    ),
    idea(
        "warp_specialised",
        "Roles: one warpgroup only brings tiles, the others only multiply, and barriers in shared memory hand the places of tiles back and forth.",
        "Which lines does each role execute?",
        "source",
    ),
    idea(
        "persistent",
        "As many blocks as the GPU has multiprocessors, each of which computes one tile of C after the other: bringing tiles goes on while sums are stored.",
        "How does a block find its next tile?",
        "source",
    ),
    idea(
        "wgmma_bf16x6",
        "Planes of three numbers of bf16, and six products: f32-accurate sums from tensor cores, with a kernel in f32 behind for numbers that planes cannot hold.",
        "How much more do the units do than for bf16 alone?",
        "change",
    ),
    idea(
        "wgmma_f16x3",
        "Two planes of f16 and three products; rows and columns are scaled by powers of two so that they fit.",
        "What does a launch before find out?",
        "decisions",
    ),
    idea(
        "cluster_multicast",
        "Two blocks whose tiles of C lie below one another use the same tile of B: each brings a part of it to both.",
        "How many bytes are asked of L2, and how many come?",
        "counters",
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

    /// One slot of a ring is being read, so that one copy fewer is in flight.
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
