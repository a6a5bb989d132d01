//! Encodings round-trip, and arbitrary bytes neither panic nor allocate more than they should.

use crate::channel::{RankLoss, Tag};
use crate::error::LossReason;
use crate::tcp::answer::Answer;
use crate::tcp::envelope::{ENVELOPE, PROTOCOL, Speaker};
use crate::tcp::fault::RendezvousFault;
use crate::tcp::frame::Frame;
use crate::tcp::hello::{
    Greeting, HELLO_LIMIT, Incoming, PeerFact, PeerFactRule, RendezvousOutcome, compare,
};
use std::io::{self, ErrorKind, Read};
use std::time::Duration;

fn text(random: &mut fastrand::Rng) -> String {
    (0..random.usize(..20)).map(|_| random.char(..)).collect()
}

fn said(random: &mut fastrand::Rng) -> PeerFact {
    let rule = random
        .choice([PeerFactRule::Noted, PeerFactRule::Same, PeerFactRule::Distinct])
        .expect("some");
    PeerFact { what: text(random), value: text(random), rule }
}

fn greeting(random: &mut fastrand::Rng) -> Greeting {
    Greeting {
        token: text(random),
        version: text(random),
        rank: random.usize(..),
        ranks: random.usize(..),
        said: (0..random.usize(..5)).map(|_| said(random)).collect(),
        failure: random.bool().then(|| text(random)),
    }
}

fn answer(random: &mut fastrand::Rng) -> Answer {
    let (rank, other) = (random.usize(..9), random.usize(..9));
    match random.u8(..7) {
        0 => Answer::Wait(text(random)),
        1 => Answer::Away(text(random)),
        2 => Answer::Failed(RendezvousFault::Mismatch {
            what: text(random),
            rank,
            has: text(random),
            other,
            others: text(random),
        }),
        3 => Answer::Failed(RendezvousFault::Shared {
            what: text(random),
            value: text(random),
            rank,
            other,
        }),
        4 => Answer::Failed(RendezvousFault::Failed { rank, text: text(random) }),
        5 => Answer::Failed(RendezvousFault::Rendezvous { reason: text(random) }),
        _ => Answer::Welcome(RendezvousOutcome {
            said: (0..random.usize(..4))
                .map(|_| (0..random.usize(..4)).map(|_| said(random)).collect())
                .collect(),
            payload: (0..random.usize(..200)).map(|_| random.u8(..)).collect(),
        }),
    }
}

fn frame(random: &mut fastrand::Rng) -> Frame {
    let why = match random.u8(..5) {
        0 => LossReason::Gone,
        1 => LossReason::Late(Duration::from_nanos(random.u64(..))),
        2 => LossReason::Failed(text(random)),
        3 => LossReason::Finished,
        _ => LossReason::Deadlock(text(random)),
    };
    let (to, from) = (random.u32(..) as usize, random.u32(..) as usize);
    match random.u8(..5) {
        0 => Frame::Alive,
        4 => Frame::Waits(random.bool().then_some(to)),
        1 => Frame::Left(to),
        2 => Frame::LossReason(RankLoss { rank: to, why }),
        _ => {
            let bytes = (0..random.usize(..300)).map(|_| random.u8(..)).collect();
            Frame::Message { to, from, tag: Tag(random.u64(..)), bytes }
        }
    }
}

/// Reader that returns a few bytes at a time, with `WouldBlock` in between.
struct Drops<'a>(&'a [u8], bool);

impl Read for Drops<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1 = !self.1;
        if self.1 && !self.0.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let few = buffer.len().min(3);
        self.0.read(&mut buffer[..few])
    }
}

fn hear(bytes: &[u8]) -> io::Result<Greeting> {
    let (mut incoming, mut from) = (Incoming::default(), Drops(bytes, false));
    loop {
        match incoming.read(&mut from) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            heard => return heard,
        }
    }
}

/// Corrupts some bytes: changes, removes or inserts them.
fn spoil(bytes: &mut Vec<u8>, random: &mut fastrand::Rng) {
    for _ in 0..random.usize(1..4) {
        let place = random.usize(..=bytes.len());
        match random.u8(..3) {
            0 => bytes.truncate(place),
            1 => bytes.insert(place, random.u8(..)),
            _ if place < bytes.len() => {
                bytes[place] = random.choice([0, 1, 0x7f, 0xff]).expect("some")
            }
            _ => {}
        }
    }
}

#[test]
fn a_hello_is_heard_as_it_was_said_and_halves_of_it_are_not() {
    let mut random = fastrand::Rng::with_seed(21);
    for _ in 0..50 {
        let greeting = greeting(&mut random);
        let bytes = greeting.encode().expect("it is short");
        assert_eq!(hear(&bytes).expect("it is whole"), greeting);
        for end in 0..bytes.len() {
            let error = hear(&bytes[..end]).expect_err("it is not whole");
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{end} of {}", bytes.len());
        }
        // A process with another protocol is still identified.
        let mut other = bytes.clone();
        other[8] = PROTOCOL as u8 + 1;
        let heard = hear(&other).expect("its beginning never changes");
        let head =
            |greeting: &Greeting| (greeting.token.clone(), greeting.version.clone(), greeting.rank);
        assert_eq!(head(&heard), head(&greeting));
        assert_eq!(heard.said.len(), 1, "the version");
    }
}

#[test]
fn a_hello_that_is_too_long_is_not_said_and_not_heard() {
    let mut greeting = greeting(&mut fastrand::Rng::with_seed(22));
    greeting.token = "x".repeat(HELLO_LIMIT);
    assert!(greeting.encode().is_err());
    let bytes =
        Speaker::Guest.seal(&vec![0; HELLO_LIMIT + 1]).expect("it is short enough for an envelope");
    assert_eq!(hear(&bytes[..ENVELOPE]).expect_err("too long").kind(), ErrorKind::InvalidData);
}

#[test]
fn no_bytes_do_harm() {
    let mut random = fastrand::Rng::with_seed(23);
    for _ in 0..3000 {
        let mut hello = greeting(&mut random).encode().expect("it is short");
        spoil(&mut hello, &mut random);
        drop(hear(&hello));
        let mut answer = answer(&mut random).encode().expect("it is short");
        spoil(&mut answer, &mut random);
        drop(answer.get(ENVELOPE..).map(Answer::decode));
        let mut bytes = Vec::new();
        frame(&mut random).write(&mut bytes).expect("there is room");
        spoil(&mut bytes, &mut random);
        let mut left = bytes.as_slice();
        while let Ok(Some(_)) = Frame::read(&mut left) {}
    }
}

#[test]
fn answers_and_frames_are_read_as_they_were_written() {
    let mut random = fastrand::Rng::with_seed(24);
    for _ in 0..300 {
        let answer = answer(&mut random);
        let bytes = answer.encode().expect("it is short");
        assert_eq!(Answer::decode(&bytes[ENVELOPE..]), Some(answer));
        let frames: Vec<Frame> = (0..random.usize(..5)).map(|_| frame(&mut random)).collect();
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| frame.write(&mut bytes).expect("there is room"));
        let mut left = bytes.as_slice();
        let read = std::iter::from_fn(|| Frame::read(&mut left).expect("they are whole"));
        assert_eq!(read.collect::<Vec<_>>(), frames);
        // The stream may only end between frames.
        let mut left = &bytes[..bytes.len().saturating_sub(1)];
        let read = std::iter::from_fn(|| Frame::read(&mut left).transpose());
        assert_eq!(read.last().is_some_and(|frame| frame.is_err()), !frames.is_empty());
    }
}

#[test]
fn nothing_is_allocated_for_what_has_not_come() {
    // Header of a message of 2^62 bytes.
    let mut bytes = vec![0; 17];
    bytes.extend_from_slice(&(1u64 << 62).to_le_bytes());
    bytes.extend_from_slice(b"and no more");
    assert_eq!(
        Frame::read(&mut bytes.as_slice()).expect_err("it broke off").kind(),
        ErrorKind::UnexpectedEof
    );
}

#[test]
fn a_long_text_is_cut_where_it_may_be() {
    let reason = "ü".repeat(10_000);
    let answer = Answer::Failed(RendezvousFault::Rendezvous { reason: reason.clone() });
    let bytes = answer.encode().expect("it is short");
    let Some(Answer::Failed(RendezvousFault::Rendezvous { reason: cut })) =
        Answer::decode(&bytes[ENVELOPE..])
    else {
        panic!("it cannot be read");
    };
    assert!(reason.starts_with(&cut) && cut.len() > 4000 && bytes.len() < 5000);
}

#[test]
fn facts_of_ranks_are_compared_by_their_rules() {
    let mut random = fastrand::Rng::with_seed(25);
    let (mut good, mut same, mut distinct) = (0, 0, 0);
    for _ in 0..2000 {
        let ranks = random.usize(1..5);
        let mut fact = |what: &str, rule, of: usize| {
            let value = random.usize(..of).to_string();
            (random.u8(..30) != 0).then(|| PeerFact { what: what.to_owned(), value, rule })
        };
        let mut rank = || {
            let facts = [
                fact("version", PeerFactRule::Same, 1),
                fact("NCCL", PeerFactRule::Same, 2),
                fact("GPU", PeerFactRule::Distinct, 20),
                fact("host", PeerFactRule::Noted, 3),
            ];
            facts.into_iter().flatten().collect::<Vec<_>>()
        };
        let said: Vec<Vec<PeerFact>> = (0..ranks).map(|_| rank()).collect();
        let value = |rank: usize, what: &str| {
            said[rank].iter().find(|said| said.what == what).map(|said| said.value.as_str())
        };
        let odd = |what: &str| (1..ranks).any(|rank| value(rank, what) != value(0, what));
        let twice = (0..ranks).any(|rank| {
            value(rank, "GPU")
                .is_some_and(|gpu| (0..rank).any(|other| value(other, "GPU") == Some(gpu)))
        });
        match compare(&said, &vec![None; ranks]) {
            None => {
                assert!(!odd("version") && !odd("NCCL") && !twice, "{said:?}");
                good += 1;
            }
            Some(RendezvousFault::Mismatch { what, rank, has, other: 0, others }) => {
                assert_eq!(value(rank, &what).unwrap_or("nothing"), has);
                assert_eq!(value(0, &what).unwrap_or("nothing"), others);
                assert_ne!(has, others);
                assert!(
                    (1..rank).all(|rank| value(rank, &what) == value(0, &what)),
                    "the lowest: {said:?}"
                );
                same += 1;
            }
            Some(RendezvousFault::Shared { what, value: shared, rank, other }) => {
                assert!(!odd("version") && !odd("NCCL") && twice, "{said:?}");
                assert_eq!((what.as_str(), other < rank), ("GPU", true));
                assert_eq!([value(rank, "GPU"), value(other, "GPU")], [Some(shared.as_str()); 2]);
                distinct += 1;
            }
            other => panic!("{other:?}"),
        }
        let mut failures = vec![None; ranks];
        failures[ranks - 1] = Some("no GPU".to_owned());
        let failed = RendezvousFault::Failed { rank: ranks - 1, text: "no GPU".to_owned() };
        assert_eq!(compare(&said, &failures), Some(failed));
    }
    assert!(good > 100 && same > 100 && distinct > 20, "{good}, {same}, {distinct}");
}
