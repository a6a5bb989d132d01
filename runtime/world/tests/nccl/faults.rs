//! NCCL libraries that fail or never finish.

use crate::ensure;
use crate::search::FUNCTIONS;
use crate::stub::{Stub, address, go_on, soon};
use gemm_world::__private::nccl::{Communicator, Library, NcclResult, NcclTransfer};
use gemm_world::WorldError;
use libtest_mimic::Failed;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Codes with and without names in nccl.h.
const CODES: [i32; 8] = [1, 3, 6, 8, 99, -1, i32::MIN, i32::MAX];

/// Every activity, by one rank with itself.
#[allow(unsafe_code, reason = "the addresses are of a buffer that lives until the end")]
fn whole(library: &Arc<Library>) -> NcclResult<()> {
    let mut bytes = [1_u8; 20];
    let at = address(&mut bytes);
    let id = library.unique_id()?;
    let communicator = Communicator::begin(Arc::clone(library), id, 1, 0, Some(4))?;
    let settle = || communicator.settle(soon(), &mut go_on);
    settle()?;
    let parts = [
        NcclTransfer::Send { at, bytes: 10, to: 0 },
        NcclTransfer::Receive { at: at + 10, bytes: 10, from: 0 },
    ];
    // SAFETY: the buffer lives as long as the communicator.
    unsafe { communicator.exchange(0, &parts) }?;
    settle()?;
    drop(library.allocate(100)?);
    communicator.finish(soon(), &mut go_on)
}

pub fn codes() -> Result<(), Failed> {
    let stand = Stub::new()?;
    whole(&stand.nccl()?)?;
    stand.is_clean()?;
    for function in FUNCTIONS {
        // These functions are called before the library is loaded, or during an abort, whose errors
        // are ignored, or return no code.
        let elsewhere = ["ncclGetVersion", "ncclCommAbort", "ncclMemFree"];
        if elsewhere.contains(&function)
            || function.ends_with("String")
            || function.ends_with("LastError")
        {
            continue;
        }
        for wrong in CODES {
            let stand = Stub::new()?;
            let library = stand.nccl()?;
            stand.set(function, wrong.into())?;
            let outcome = whole(&library);
            let is_said = matches!(&outcome, Err(WorldError::Nccl { code, text, .. })
                if *code == wrong && text.contains("its last error was: fake: what was wrong \
                    last"));
            ensure(is_said, || format!("{function}, {wrong}: {outcome:?}"))?;
            // NCCL keeps objects whose group cannot begin or end, or whose destruction fails.
            if !function.starts_with("ncclGroup") && function != "ncclCommDestroy" {
                stand.is_clean().map_err(|why| format!("{function}, {wrong}: {why:?}"))?;
            }
        }
    }
    // A failure to free memory is ignored.
    let stand = Stub::new()?;
    stand.set("ncclMemFree", 99)?;
    Ok(whole(&stand.nccl()?)?)
}

pub fn abort() -> Result<(), Failed> {
    for function in ["ncclCommAbort", "ncclGroupStart", "ncclGroupEnd"] {
        for wrong in CODES {
            let stand = Stub::new()?;
            let library = stand.nccl()?;
            let id = library.unique_id()?;
            let communicator = Communicator::begin(library, id, 2, 0, None)?;
            stand.set(function, wrong.into())?;
            let outcome = communicator.abort();
            let is_said = matches!(&outcome, Err(WorldError::Nccl { doing, code, .. })
                if *code == wrong && doing == "giving up");
            ensure(is_said, || format!("{function}, {wrong}: {outcome:?}"))?;
            let aborts = stand.get("ncclCommAbort")?;
            ensure(aborts == 1, || format!("{function}, {wrong}: {aborts} aborts"))?;
        }
    }
    Ok(())
}

/// The failure occurs during connection, exchange, finish, or a poll without an activity.
#[allow(unsafe_code, reason = "nothing is moved")]
pub fn async_codes() -> Result<(), Failed> {
    for wrong in CODES {
        for phase in 0..4 {
            let stand = Stub::new()?;
            let library = stand.nccl()?;
            let id = library.unique_id()?;
            if phase == 0 {
                stand.set("async", wrong.into())?;
            }
            let outcome = (|| {
                let communicator = Communicator::begin(library, id, 1, 0, None)?;
                communicator.settle(soon(), &mut go_on)?;
                communicator.holds()?;
                stand.set("async", wrong.into()).expect("a setting");
                if phase == 3 {
                    return communicator.holds();
                }
                if phase == 1 {
                    // SAFETY: the exchange moves no bytes.
                    unsafe { communicator.exchange(0, &[]) }?;
                    return communicator.progress().map(|_| ());
                }
                communicator.finish(soon(), &mut go_on)
            })();
            let is_said = matches!(&outcome, Err(WorldError::Nccl { code, .. }) if *code == wrong);
            ensure(is_said, || format!("{phase}, {wrong}: {outcome:?}"))?;
            stand.is_clean()?;
        }
    }
    Ok(())
}

pub fn half() -> Result<(), Failed> {
    let stand = Stub::new()?;
    let library = stand.nccl()?;
    stand.set("half", 3)?;
    let id = library.unique_id()?;
    let outcome = Communicator::begin(library, id, 1, 0, None);
    ensure(matches!(outcome, Err(WorldError::Nccl { code: 3, .. })), || format!("{outcome:?}"))?;
    let aborts = stand.get("ncclCommAbort")?;
    ensure(aborts == 1, || format!("{aborts} aborts"))?;
    stand.is_clean()
}

pub fn strange() -> Result<(), Failed> {
    let stand = Stub::new()?;
    stand.set("strange", 1)?;
    let outcome = whole(&stand.nccl()?);
    let is_said = matches!(&outcome, Err(WorldError::Nccl { text, .. })
        if text == "it reports rank 0 of 1 as rank 1 of 1");
    ensure(is_said, || format!("{outcome:?}"))?;
    stand.is_clean()?;

    let stand = Stub::new()?;
    stand.set("none", 1)?;
    let outcome = whole(&stand.nccl()?);
    let is_said = matches!(&outcome, Err(WorldError::Nccl { text, .. })
        if text == "it returned no communicator");
    ensure(is_said, || format!("{outcome:?}"))?;
    ensure(stand.get("ncclCommAbort")? == 0, || "nothing was there to abort".to_owned())?;
    stand.is_clean()
}

pub fn texts() -> Result<(), Failed> {
    let none = "NCCL has no text for this code";
    let last = "unknown result code; its last error was: fake: what was wrong last";
    for (texts, expected) in [(0, last), (1, "unknown result code"), (2, none), (3, none)] {
        let stand = Stub::new()?;
        let library = stand.nccl()?;
        stand.set("texts", texts)?;
        stand.set("ncclGetUniqueId", 99)?;
        let error = library.unique_id().expect_err("a code");
        let is_said = matches!(&error, WorldError::Nccl { text, code: 99, .. } if text == expected);
        ensure(is_said, || format!("{error:?}"))?;
        let message = error.to_string();
        let parts = ["the name of a communicator", "(code 99)", "NCCL_DEBUG=WARN", expected];
        let is_whole = parts.iter().all(|part| message.contains(part));
        ensure(is_whole, || message.clone())?;
    }
    Ok(())
}

pub fn late() -> Result<(), Failed> {
    for wait in [0, 1, 30] {
        let stand = Stub::new()?;
        let library = stand.nccl()?;
        stand.set("polls", i64::MAX)?;
        let id = library.unique_id()?;
        let communicator = Communicator::begin(library, id, 1, 0, None)?;
        let (begin, wait) = (Instant::now(), Duration::from_millis(wait));
        let outcome = communicator.settle(begin + wait, &mut go_on);
        let took = begin.elapsed();
        let is_said = matches!(&outcome, Err(WorldError::NcclLate { doing, waited })
            if doing == "connecting the ranks" && *waited <= took);
        ensure(is_said, || format!("{outcome:?}"))?;
        // A busy machine may take longer.
        ensure(took >= wait && took < wait + Duration::from_secs(10), || format!("{took:?}"))?;
        drop(communicator);
        stand.is_clean()?;
    }
    Ok(())
}

pub fn given_up() -> Result<(), Failed> {
    let stand = Stub::new()?;
    let library = stand.nccl()?;
    stand.set("polls", i64::MAX)?;
    let id = library.unique_id()?;
    let communicator = Communicator::begin(library, id, 1, 0, None)?;
    let why = WorldError::Impossible { what: "w".to_owned(), need: "n".to_owned() };
    let mut asked = 0;
    let outcome = communicator.settle(soon(), &mut || {
        asked += 1;
        if asked < 30 { Ok(()) } else { Err(why.clone()) }
    });
    ensure(outcome == Err(why), || format!("{outcome:?}"))?;
    ensure(asked == 30, || format!("asked {asked} times"))?;
    communicator.abort()?;
    stand.is_clean()
}
