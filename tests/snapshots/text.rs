//! The CUDA text, of both access variants where there are two.

use crate::{Stage, compare};
use libtest_mimic::Trial;

pub fn trials(stage: &Stage) -> Vec<Trial> {
    let trial = |(suffix, source): (&str, String)| {
        let (ladder, name) = (stage.ladder, format!("{}{suffix}", stage.stem));
        Trial::test(format!("text::{ladder}::{name}"), move || {
            compare(ladder, &name, &source);
            Ok(())
        })
    };
    stage.sources().map(trial).collect()
}
