//! The fastest spec of the shipped table for one shape: measured on a GPU, predicted on the
//! simulator. Prints the candidates with their times, and the answer as a rule for a table.
//!
//! `cargo run --release --example autotune -- 1000 768 4096 20`: m, n, k, and seconds.

use gemm_runtime::{Device, sgemm_tables, spec::Accuracy};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers: Result<Vec<usize>, _> = std::env::args().skip(1).map(|n| n.parse()).collect();
    let (shape, seconds) = match numbers?[..] {
        [] => ((1000, 768, 4096), 20),
        [m, n, k] => ((m, n, k), 20),
        [m, n, k, seconds] => ((m, n, k), seconds),
        _ => return Err("pass m, n, k and, if you like, a budget in seconds".into()),
    };
    let device = Device::auto()?; // first CUDA GPU, else the simulator
    let [single, _] = sgemm_tables(device.arch(), Accuracy::Ieee);
    let tuned = single.autotune(&device, shape, Duration::from_secs(seconds as u64))?;

    println!("{} candidates on {}, {:?}", tuned.candidates().len(), device.name(), tuned.basis());
    for candidate in tuned.candidates() {
        match (candidate.time(), &candidate.error) {
            (Some(time), None) => println!("{time:>12.2?}  {}", candidate.spec),
            (_, Some(error)) => println!("       error  {}: {error}", candidate.spec),
            (None, None) => println!("           –  {}", candidate.spec),
        }
    }
    println!("\nthe table chooses {}\nthe answer is\n\n{tuned}", tuned.of_table().spec);

    // The same table with the answer as its first rule.
    let table = tuned.table()?;
    assert_eq!(table.choice(shape, &device)?.spec, tuned.spec());
    Ok(())
}
