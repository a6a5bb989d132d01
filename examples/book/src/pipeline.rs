//! Timeline of a warp, which shows the overlap of copies and multiply-adds.
//!
//! ```text
//! events of a warp ──acts──► actions ──rounds──► pieces of the run ──drawing──► rows of marks
//!                                 └──hidden──► work between the start of a copy and its use
//! ```

mod drawing;
pub(crate) mod event;
mod overlap;
pub(super) mod rounds;

pub use drawing::{Mark, Piece, PipelineRow};
pub use overlap::Overlap;

use event::{TileArrays, WarpAction};
use gemm_dsl::ir::Kernel;
use gemm_runtime::sim::watch::{Event, Trace};
use serde::Serialize;

/// Timeline of a warp of the recorded block.
#[derive(Clone, Debug, Serialize)]
pub struct Pipeline {
    /// Number of the warp in the block.
    pub warp: u32,
    /// Role of the warp in words. Empty if it neither copies tiles nor multiplies.
    pub role: &'static str,
    /// Instructions executed before the last recorded action.
    pub instructions: u64,
    /// Variable of the main loop, and its number of rounds.
    pub rounds: Option<(String, usize)>,
    /// Number of rounds that are not drawn.
    pub left_out: usize,
    /// Work of the warp between the start of a copy and its use.
    pub hidden: Vec<Overlap>,
    /// Drawn parts of the run.
    pub pieces: Vec<Piece>,
    pub rows: Vec<PipelineRow>,
}

impl Pipeline {
    /// Width of the picture without its labels.
    pub fn width(&self) -> u64 {
        self.pieces.last().map_or(0, |piece| piece.x + piece.width)
    }

    /// Returns true if each slot of a ring has its own row.
    pub fn has_slots(&self) -> bool {
        self.rows.iter().any(|row| row.name.starts_with("slot"))
    }

    pub fn height(&self) -> u64 {
        self.rows.len() as u64 * 18
    }
}

/// Returns the timeline of warp 0. If warps have different roles, returns one of the first warp of
/// each role.
pub(super) fn all(kernel: &Kernel, trace: &Trace) -> Vec<Pipeline> {
    let ring = TileArrays::new(kernel);
    let warps = kernel.geometry.threads().div_ceil(32);
    let mut roles: Vec<[bool; 2]> = Vec::new();
    let mut all = Vec::new();
    for warp in 0..warps {
        let events: Vec<&Event> = trace.events.iter().filter(|event| event.warp == warp).collect();
        let acts = event::all(kernel, trace, &ring, &events);
        let asks = acts.iter().any(|act| act.act == WarpAction::Box);
        let multiplies =
            acts.iter().any(|act| act.act == WarpAction::Matrix || act.executed[1] > 0);
        let role = [asks, multiplies];
        let is_idle = role == [false; 2];
        if roles.contains(&role) || (is_idle && warp > 0) || acts.is_empty() {
            continue;
        }
        roles.push(role);
        let role = match role {
            [true, true] => "requests tiles, and multiplies",
            [true, false] => "requests tiles",
            [false, true] => "multiplies",
            [false, false] => "",
        };
        let rounds = rounds::main_loop(kernel, trace, &events);
        let var = rounds.as_ref().map(|rounds| kernel.vars[rounds.var].name.clone());
        let (pieces, left_out) = drawing::pieces(kernel, &events, &acts, rounds.as_ref());
        all.push(Pipeline {
            warp,
            role,
            instructions: acts.last().map_or(0, |act| act.executed[0]),
            hidden: overlap::overlaps(&acts, rounds.as_ref()),
            rounds: var.zip(rounds.as_ref().map(|rounds| rounds.of_events.len())),
            left_out,
            rows: drawing::rows(&ring, &acts, &pieces),
            pieces,
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::looked;
    use gemm_bench::family::Family;

    fn pipelines(line: &str) -> Vec<Pipeline> {
        let looked = looked(Family::Sgemm, line);
        all(&looked.kernel, &looked.trace)
    }

    fn hidden(line: &str) -> Vec<(usize, [u64; 2], [u64; 2])> {
        let of = |hidden: &Overlap| (hidden.times, hidden.fma, hidden.matrix);
        pipelines(line)[0].hidden.iter().map(of).collect()
    }

    /// Stage 22 commits a group of copies at step 9 of 16, and waits for it at step 15 three tiles
    /// later. A step has 8 x 16 multiply-adds.
    #[test]
    fn a_ring_hides_copies_behind_more_than_three_tiles() {
        let line = "tile: 128x256x16, thread: 8x16, fragment: split, float4, transpose, pad_a: 4, \
                    stages: 5, spread: 10, warp: 32x128";
        let fma = (3 * 16 + 6) * 8 * 16;
        assert_eq!(hidden(line), [(4, [fma; 2], [0; 2])]);
        let drawn = &pipelines(line)[0];
        let slots = drawn.rows.iter().filter(|row| row.name.starts_with("slot"));
        assert_eq!(slots.count(), 5);
        assert_eq!((drawn.rounds.as_ref().map(|rounds| rounds.1), drawn.left_out), (Some(8), 5));
        // A round has 16 steps of 128 multiply-adds, and 8 copies of 4 bytes and 4 of 16 bytes.
        let counts: Vec<u64> = ["multiply-adds", "asynchronous copies"]
            .iter()
            .flat_map(|name| drawn.pieces[1].counts.iter().find(|(of, _)| of == name))
            .map(|(_, count)| *count)
            .collect();
        assert_eq!(counts, [16 * 128, 12]);
    }

    /// Stage 5 stores loaded elements immediately. Stage 17 stores them after the FMAs of a tile,
    /// which are 8 steps of 8 x 8.
    #[test]
    fn instructions_between_load_and_store_are_counted() {
        assert_eq!(hidden("tile: 32x32x32"), [(14, [0; 2], [0; 2])]);
        let line =
            "tile: 128x128x8, thread: 8x8, fragment: split, float4, transpose, double_buffer";
        assert_eq!(hidden(line), [(14, [8 * 64; 2], [0; 2])]);
    }

    #[test]
    fn a_warp_of_each_role_is_drawn() {
        let line =
            "tile: 128x256x64, float4, stages: 4, arith: bf16, mma: wgmma, copy: tma, producer";
        let drawn = pipelines(line);
        let roles: Vec<(u32, &str)> = drawn.iter().map(|of| (of.warp, of.role)).collect();
        assert_eq!(roles, [(0, "multiplies"), (8, "requests tiles")]);
        // For a warp that copies and multiplies, three of four slots are in flight. A slot has four
        // matrix instructions.
        let line = "tile: 128x128x64, float4, stages: 4, arith: bf16, mma: wgmma, copy: tma";
        assert_eq!(hidden(line), [(4, [0; 2], [12; 2])]);
    }
}
