//! Loads of a thread. The thread folds its elements before the block does.

use super::Loader;
use crate::ir::{Access, Expr, KernelBuilder, Special, Stmt, Var};

impl Loader<'_> {
    /// Loads elements one at a time, at a distance of one block. Elements past the end are the
    /// identity.
    pub(super) fn items(self) -> Expr {
        let items = self.plan.items() as i32;
        let (tid, block, n, input) = (self.tid.clone(), self.block, self.n, self.input);
        let (fold, identity) = (self.fold, self.identity);
        let element = |i: Expr| i.clone().lt(n).select(Access::new(input, [i]).load(), identity);
        let b = self.b;
        if items == 1 {
            b.comment(
                "Each thread loads one element; elements past the end count as the identity.",
            );
            let i = b.let_("i", Expr::from(Special::BlockX).wide() * block + tid);
            return element(i.into());
        }
        let items = b.constant("ITEMS", items, "elements per thread, BLOCK apart");
        b.comment(
            "Each thread folds ITEMS elements that are BLOCK apart, so that every load of a warp \
             is",
        );
        b.comment("coalesced; elements past the end count as the identity.");
        let first = Expr::from(Special::BlockX).wide() * (block * items) + tid;
        let first = b.let_("first", first);
        let sum = b.mut_(fold.parts()[0].name, identity);
        b.unrolled("item", items, |b, item| {
            let i = b.let_("i", first + item * block);
            b.assign(sum, fold.of_two(sum.into(), element(i.into())));
        });
        sum.into()
    }

    /// Loads vectors of four, at a distance of one block of vectors. `wide` is true to load a
    /// vector by one access.
    pub(super) fn vectors(self, wide: bool) -> Expr {
        let (tid, block, n, input) = (self.tid.clone(), self.block, self.n, self.input);
        let (fold, identity) = (self.fold, self.identity);
        let b = self.b;
        let items =
            b.constant("ITEMS", self.plan.items() as i32, "vectors per thread, BLOCK apart");
        let tile = b.constant("TILE", block * items * 4, "elements per block");
        b.comment("Each thread folds ITEMS vectors of four that are BLOCK vectors apart.");
        let begin = b.let_("begin", Expr::from(Special::BlockX).wide() * tile);
        let first = b.let_("first", begin + tid * 4);
        let sum = b.mut_(fold.parts()[0].name, identity);
        let fold4 = |parts: [Expr; 4]| {
            let [x, y, z, w] = parts;
            fold.of_two(sum.into(), fold.of_two(fold.of_two(x, y), fold.of_two(z, w)))
        };
        let at = |i: Var, lane: i32| Access::new(input, [i + lane]);
        let whole = b.block(|b| {
            if wide {
                b.comment("Full tile: 16-byte loads without bounds checks.");
            } else {
                b.comment("Full tile: no bounds checks.");
            }
            b.unrolled("item", items, |b, item| {
                let i = b.let_("i", first + item * (block * 4));
                if wide {
                    let v = b.let_("v", at(i, 0).vector().load());
                    b.assign(sum, fold4([0, 1, 2, 3].map(|l| Expr::from(v).lane(l))));
                } else {
                    b.assign(sum, fold4([0, 1, 2, 3].map(|l| at(i, l).load())));
                }
            });
        });
        let ragged = b.block(|b| {
            b.comment("Last tile: the same elements in the same order, each with a bounds check.");
            b.unrolled("item", items, |b, item| {
                let i = b.let_("i", first + item * (block * 4));
                let part = |lane: i32, name: &str, b: &mut KernelBuilder| {
                    let inside = (i + lane).lt(n);
                    Expr::from(b.let_(name, inside.select(at(i, lane).load(), identity)))
                };
                let parts = [(0, "e0"), (1, "e1"), (2, "e2"), (3, "e3")]
                    .map(|(lane, name)| part(lane, name, b));
                b.assign(sum, fold4(parts));
            });
        });
        let inside = (begin + tile).le(n);
        b.push(Stmt::If { cond: inside, then: whole, otherwise: ragged });
        sum.into()
    }
}
