//! Functions that the module exports to the page. Arguments and results are numbers and addresses
//! in the module's memory.
//!
//! ```text
//! at = room(bytes)        input buffer, for the name of a macro, a newline and a spec
//! run()                   runs the spec
//! result(), length()      address and length in bytes of the result: a `Report` as JSON
//! ```
//!
//! A panic traps. `result` then returns the message of the panic, and the page instantiates the
//! module again.

#![allow(unsafe_code, reason = "names that a page calls are unsafe attributes")]

use crate::subject::Family;
use crate::{answer, unknown};
use std::panic;
use std::sync::{Mutex, MutexGuard, PoisonError};

static GIVEN: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static RESULT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Poisoning is ignored: the module has a single thread.
fn lock(bytes: &Mutex<Vec<u8>>) -> MutexGuard<'_, Vec<u8>> {
    bytes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reserves the input buffer and returns its address.
// SAFETY: no other function of the module has the name.
#[unsafe(no_mangle)]
extern "C" fn room(bytes: usize) -> *mut u8 {
    let mut given = lock(&GIVEN);
    given.clear();
    given.resize(bytes, 0);
    given.as_mut_ptr()
}

/// Runs the spec in the input buffer and stores the report.
// SAFETY: no other function of the module has the name.
#[unsafe(no_mangle)]
extern "C" fn run() {
    panic::set_hook(Box::new(|panic| *lock(&RESULT) = panic.to_string().into_bytes()));
    let given = String::from_utf8_lossy(&lock(&GIVEN)).into_owned();
    let (family, line) = given.split_once('\n').unwrap_or(("", &given));
    let report = match Family::of_macro(family) {
        Some(family) => answer(family, line),
        None => unknown(family),
    };
    let report = serde_json::to_vec(&report);
    *lock(&RESULT) = report.unwrap_or_else(|error| panic!("a report is JSON: {error}"));
}

/// Address of the report, valid until the next call of `run`.
// SAFETY: no other function of the module has the name.
#[unsafe(no_mangle)]
extern "C" fn result() -> *const u8 {
    lock(&RESULT).as_ptr()
}

/// Length of the report in bytes.
// SAFETY: no other function of the module has the name.
#[unsafe(no_mangle)]
extern "C" fn length() -> usize {
    lock(&RESULT).len()
}
