//! What all ranks do together, over whatever connects them.
//!
//! Each of these is called by all ranks of a world, in the same order, under tags that nothing else has at that time. One
//! tag does for all of them: what a rank sends under it comes in order. Rank 0 gathers, and sends what it has to all: 2 (p
//! - 1) messages, and no rank is done before all have begun.

use super::codec::{Decoder, put_bytes, put_list};
use super::error::{Lost, WorldError};
use super::wire::{Broken, Tag, Wire};
use std::time::Instant;

/// What every rank has given, by rank, for every rank.
///
/// # Errors
/// [`WorldError::RankLost`], with what this rank is `doing`.
pub(crate) fn gather_all(
    wire: &dyn Wire,
    tag: Tag,
    doing: &str,
    bytes: Vec<u8>,
    deadline: Instant,
) -> Result<Vec<Vec<u8>>, WorldError> {
    gather(wire, tag, bytes, deadline).map_err(|broken| broken.at(doing))
}

fn gather(
    wire: &dyn Wire,
    tag: Tag,
    bytes: Vec<u8>,
    deadline: Instant,
) -> Result<Vec<Vec<u8>>, Broken> {
    let ranks = wire.ranks();
    if wire.rank() == 0 {
        let mut all = vec![bytes];
        for from in 1..ranks {
            all.push(wire.take(from, tag, deadline)?);
        }
        let mut message = Vec::new();
        put_list(&mut message, &all, |to, bytes| put_bytes(to, bytes));
        for to in 1..ranks {
            wire.send(to, tag, message.clone())?;
        }
        return Ok(all);
    }
    wire.send(0, tag, bytes)?;
    let message = wire.take(0, tag, deadline)?;
    let mut decoder = Decoder::new(&message);
    let all = decoder.list(|item| Some(item.bytes()?.to_vec()));
    match all.filter(|all| all.len() == ranks && decoder.end().is_some()) {
        Some(all) => Ok(all),
        None => {
            let text =
                format!("what it said to rank {} is not what all ranks have given", wire.rank());
            let broken = Broken { rank: 0, why: Lost::Failed(text) };
            wire.abort(broken.clone());
            Err(wire.broken().unwrap_or(broken))
        }
    }
}

/// Holds all ranks to the same text.
///
/// # Errors
/// [`WorldError::Mismatch`] over `what`, as in `the extents of the product`, with the lowest rank that has another text
/// than rank 0: the same error on all ranks. The world is not broken by it. [`WorldError::RankLost`] where a rank did not
/// come.
pub(crate) fn agree(
    wire: &dyn Wire,
    tag: Tag,
    what: &str,
    value: &str,
    deadline: Instant,
    remedy: &'static str,
) -> Result<(), WorldError> {
    let doing = format!("comparing {what}");
    let all = gather_all(wire, tag, &doing, value.as_bytes().to_vec(), deadline)?;
    let Some((first, others)) = all.split_first() else {
        return Ok(());
    };
    let Some(place) = others.iter().position(|other| other != first) else {
        return Ok(());
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Err(WorldError::Mismatch {
        what: what.to_owned(),
        rank: place + 1,
        has: text(&others[place]),
        other: 0,
        others: text(first),
        remedy,
    })
}
