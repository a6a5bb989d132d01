use crate::Plan;
use crate::plan::MapPlan;

#[test]
fn show() {
    let line = std::env::var("LINE").unwrap();
    let plan: MapPlan = line.parse().unwrap_or_else(|e| panic!("{e}"));
    let nth: usize = std::env::var("NTH").map_or(0, |n| n.parse().unwrap());
    let program = plan.program().unwrap();
    println!("{}", crate::cuda::source(&program.kernels()[nth]));
}
