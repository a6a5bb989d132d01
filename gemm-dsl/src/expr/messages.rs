mod folds;
mod grammar;
mod names;
mod pairs;
mod types;

pub(crate) use folds::*;
pub(crate) use grammar::*;
pub(crate) use names::*;
pub(crate) use pairs::*;
pub(crate) use types::*;
