//! What all ranks do together, over whatever connects them.
//!
//! Each of these is called by all ranks of a world, in the same order, under tags that nothing else has at that time. One
//! tag does for all of them: what a rank sends under it comes in order. Rank 0 gathers, and sends what it has to all: 2 (p
//! - 1) messages, and no rank is done before all have begun.

use super::codec::{Decoder, put_bytes, put_list};
use super::error::{LossReason, WorldError};
use crate::channel::{Channel, RankLoss, Tag};
use std::time::Instant;

/// What every rank has given, by rank, for every rank.
///
/// # Errors
/// [`WorldError::RankLost`], with what this rank is `doing`.
pub(crate) fn gather_all(
    channel: &dyn Channel,
    tag: Tag,
    doing: &str,
    bytes: Vec<u8>,
    deadline: Instant,
) -> Result<Vec<Vec<u8>>, WorldError> {
    gather(channel, tag, bytes, deadline).map_err(|broken| broken.at(doing))
}

fn gather(
    channel: &dyn Channel,
    tag: Tag,
    bytes: Vec<u8>,
    deadline: Instant,
) -> Result<Vec<Vec<u8>>, RankLoss> {
    let ranks = channel.ranks();
    if channel.rank() == 0 {
        let mut all = vec![bytes];
        for from in 1..ranks {
            all.push(channel.take(from, tag, deadline)?);
        }
        let mut message = Vec::new();
        put_list(&mut message, &all, |to, bytes| put_bytes(to, bytes));
        for to in 1..ranks {
            channel.send(to, tag, message.clone())?;
        }
        return Ok(all);
    }
    channel.send(0, tag, bytes)?;
    let message = channel.take(0, tag, deadline)?;
    let mut decoder = Decoder::new(&message);
    let all = decoder.list(|item| Some(item.bytes()?.to_vec()));
    match all.filter(|all| all.len() == ranks && decoder.end().is_some()) {
        Some(all) => Ok(all),
        None => {
            let text =
                format!("what it said to rank {} is not what all ranks have given", channel.rank());
            let broken = RankLoss { rank: 0, why: LossReason::Failed(text) };
            channel.abort(broken.clone());
            Err(channel.broken().unwrap_or(broken))
        }
    }
}

/// Holds all ranks to the same texts, each over `what`, as in `the extents of the product`. Whether all of them say that they are
/// ready, which they need not agree on.
///
/// # Errors
/// [`WorldError::Mismatch`] over the first text that is another one, with the lowest rank that has other texts than rank 0: the
/// same error on all ranks. The world is not broken by it. [`WorldError::RankLost`] where a rank did not come.
pub(crate) fn agree(
    channel: &dyn Channel,
    tag: Tag,
    said: &[(&str, &str)],
    is_ready: bool,
    deadline: Instant,
    remedy: &'static str,
) -> Result<bool, WorldError> {
    let doing = format!("comparing {}", said.first().map_or("nothing", |(what, _)| what));
    let mut message = Vec::new();
    put_list(&mut message, said, |to, (_, value)| put_bytes(to, value.as_bytes()));
    put_bytes(&mut message, READY[usize::from(is_ready)]);
    let all: Vec<(Vec<String>, bool)> = gather_all(channel, tag, &doing, message, deadline)?
        .iter()
        .map(|message| heard(message).unwrap_or_else(|| (vec![lossy(message)], false)))
        .collect();
    let odd = (1..all.len()).find(|rank| all[*rank].0 != all[0].0);
    let Some((rank, [has, others])) = odd.map(|rank| (rank, [&all[rank].0, &all[0].0])) else {
        return Ok(all.iter().all(|(_, is_ready)| *is_ready));
    };
    let longest = has.len().max(others.len());
    let odd = (0..longest).find(|at| has.get(*at) != others.get(*at)).unwrap_or(0);
    let text = |of: &[String]| of.get(odd).cloned().unwrap_or_default();
    Err(WorldError::Mismatch {
        what: said.get(odd).map_or("what comes next", |(what, _)| what).to_owned(),
        rank,
        has: text(has),
        other: 0,
        others: text(others),
        remedy,
    })
}

/// What a rank says that is not ready, and one that is: words, so that one that was changed on its way is neither.
const READY: [&[u8]; 2] = [b"not ready", b"ready"];

/// The texts of a rank, and whether it is ready.
fn heard(message: &[u8]) -> Option<(Vec<String>, bool)> {
    let mut decoder = Decoder::new(message);
    let texts = decoder.list(Decoder::text)?;
    let ready = decoder.bytes()?;
    decoder.end()?;
    let place = READY.iter().position(|word| *word == ready)?;
    Some((texts, place == 1))
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
