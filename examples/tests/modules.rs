//! The unit tests of the programs' own modules: as examples, programs are built for
//! `tests/programs.rs` to run, and not as tests.
#![allow(dead_code, reason = "only the tests of these modules are of use here")]

#[path = "../ladder/options.rs"]
mod ladder_options;
#[path = "../tune/options.rs"]
mod options;
#[path = "../tune/rank.rs"]
mod rank;
#[path = "../tune/space.rs"]
mod space;
#[path = "../tune/target.rs"]
mod target;
#[path = "../ladder/sgemm/variants.rs"]
mod variants;
