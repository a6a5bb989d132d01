//! Gathering and agreement among all ranks, over any channel.
//!
//! All ranks of a world call these functions in the same order, with tags that nothing else uses at
//! that time. One tag suffices for a sequence of calls, since messages under one tag arrive in
//! order. Rank 0 gathers the messages and sends the list to all ranks, which takes 2 (p - 1)
//! messages for p ranks. No rank returns before all ranks have begun.

use super::codec::{Decoder, put_bytes, put_list};
use super::error::{LossReason, WorldError};
use crate::channel::{Channel, RankLoss, Tag};
use std::time::Instant;

/// Gathers every rank's bytes on every rank, by rank.
///
/// # Errors
/// [`WorldError::RankLost`], with this rank's activity `doing`.
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
            let text = format!(
                "its message to rank {} does not contain the messages of all ranks",
                channel.rank()
            );
            let broken = RankLoss { rank: 0, why: LossReason::Failed(text) };
            channel.abort(broken.clone());
            Err(channel.broken().unwrap_or(broken))
        }
    }
}

/// Checks that all ranks pass the same texts. Each text has a subject, such as
/// `the extents of the product`. Returns true if `is_ready` is true on every rank. The ranks may
/// pass different values of `is_ready`.
///
/// # Errors
/// [`WorldError::Mismatch`] on the first text that differs, for the lowest rank that disagrees with
/// rank 0. All ranks return the same error, and later calls still work. [`WorldError::RankLost`] if
/// a rank does not take part.
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
        what: said.get(odd).map_or("the next call", |(what, _)| what).to_owned(),
        rank,
        has: text(has),
        other: 0,
        others: text(others),
        remedy,
    })
}

/// Wire form of `is_ready`. A corrupted word equals neither, so it is detected.
const READY: [&[u8]; 2] = [b"not ready", b"ready"];

/// Decodes a rank's texts and its `is_ready`.
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
