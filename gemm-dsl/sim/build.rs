//! Tells the crate whether the compiler optimises it. `cfg!(debug_assertions)` does not: a profile
//! may optimise a crate and keep the assertions.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(is_optimised)");
    if std::env::var("OPT_LEVEL").is_ok_and(|level| level != "0") {
        println!("cargo::rustc-cfg=is_optimised");
    }
}
