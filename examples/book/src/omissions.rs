//! Parts that the page of a kernel omits, and the reasons for the omissions.

use super::report::{Omission, Report};
use crate::observation::Spec;
use crate::raster::LIST;

/// Returns the parts that a report lacks. `no_order` is the reason for an unknown order of tiles.
pub(super) fn omissions(spec: &Spec, report: &Report, no_order: Option<String>) -> Vec<Omission> {
    let mut all = Vec::new();
    let is_product = matches!(spec, Spec::Sgemm(_));
    let mut lacks = |part, question, is_there: bool, why: &str| {
        if !is_there {
            let why = if spec.is_of_lists() { LIST } else { why }.to_owned();
            all.push(Omission { part, question, why });
        }
    };
    let steps = &report.steps;
    if is_product {
        let owners = "No tile of at most 1024 × 1024 elements was found that the threads of the \
                      observed block load, read or store.";
        lacks("owners", "Which threads own which elements?", report.owners.is_some(), owners);
        let rounds = match report.has_ring() {
            true => {
                "No loop was found in which threads copy elements to shared memory. The slots of \
                 the ring are drawn tile by tile."
            }
            false => "No loop was found in which threads copy elements to shared memory.",
        };
        let question = "What does shared memory hold in each round?";
        lacks("steps", question, !steps.rounds.is_empty(), rounds);
        let edges =
            "The blocks of this kernel do not store C: they pass partial sums to another kernel.";
        let is_told = report.edges.is_some() || report.no_edges.is_some();
        lacks("edges", "How are ragged shapes handled?", is_told, edges);
        let no_order = no_order.unwrap_or_default();
        lacks("order", "In which order are tiles processed?", report.order.is_some(), &no_order);
    } else {
        let levels = "Threads write nothing to shared memory, and lanes exchange no values.";
        let question = "How many threads are active in each step?";
        lacks("steps", question, !steps.levels.is_empty(), levels);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::LIST;
    use crate::analysis::{Subject, report};
    use gemm_bench::family::Family;

    fn undrawn(family: Family, line: &str) -> Vec<(&'static str, String)> {
        let subject = Subject { line: line.to_owned(), ..Subject::new(family) };
        let report = report(&subject).expect("a launch");
        // A part is either drawn or reported as omitted.
        for of in &report.undrawn {
            let is_drawn = match of.part {
                "owners" => report.owners.is_some(),
                "steps" => !report.steps.rounds.is_empty() || !report.steps.levels.is_empty(),
                "edges" => report.edges.is_some() || report.no_edges.is_some(),
                "order" => report.order.is_some(),
                other => panic!("{other}"),
            };
            assert!(!is_drawn && !of.why.is_empty(), "{line}: {of:?}");
        }
        report.undrawn.into_iter().map(|of| (of.part, of.why)).collect()
    }

    fn parts(family: Family, line: &str) -> Vec<&'static str> {
        undrawn(family, line).into_iter().map(|(part, _)| part).collect()
    }

    #[test]
    fn pages_list_their_omissions() {
        let tiled = "tile: 32x32x16, thread: 4x4";
        assert_eq!(parts(Family::Sgemm, tiled), Vec::<&str>::new());
        assert_eq!(parts(Family::Sgemm, "block: 16x16"), ["steps"]);
        let lists = undrawn(Family::Sgemm, &format!("{tiled}, batch: pointers"));
        assert_eq!(lists.len(), 4);
        assert!(lists.iter().all(|(_, why)| why == LIST), "{lists:?}");
        assert_eq!(parts(Family::Reduce, "items: 2"), Vec::<&str>::new());
        let rows = "over: rows, group: 1, block: 64";
        assert_eq!(parts(Family::Reduce, rows), ["steps"]);
    }
}
