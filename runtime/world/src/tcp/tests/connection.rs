//! Connections after the rendezvous.

use super::{channels, job, limits, place};
use crate::channel::{Channel, RankLoss, Tag};
use crate::error::LossReason;
use crate::tcp::answer::Answer;
use crate::tcp::frame::Frame;
use crate::tcp::hello::{Greeting, Incoming};
use crate::tcp::{Hello, Limits, RendezvousOutcome, TcpChannel, guest, meet, meet_at};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(30)
}

/// Limits that detect silence quickly.
fn quick() -> Limits {
    let (heartbeat, silence) = (Duration::from_millis(50), Duration::from_millis(1200));
    Limits { heartbeat, silence, ..limits() }
}

/// Ranks 0 and 2 of three, and the raw connection of rank 1.
fn with_a_bare_one(limits: &Limits) -> (Vec<TcpChannel>, TcpStream) {
    let (listener, address) = place();
    let [host, bare, guest] = [0, 1, 2].map(|rank| job(rank, 3, &address));
    thread::scope(|scope| {
        let host = scope.spawn(|| {
            meet_at(Some(listener), &host, &Hello::default(), limits).expect("they meet").0
        });
        let guest = scope.spawn(|| meet(&guest, &Hello::default(), limits).expect("they meet").0);
        let stream = guest::join(&bare, &Hello::default(), limits, soon()).expect("they meet").0;
        let channels = vec![host.join().expect("no panic"), guest.join().expect("no panic")];
        (channels, stream)
    })
}

/// Rank 1 of two, and the raw connection of rank 0.
fn with_a_bare_host(limits: &Limits) -> (TcpChannel, TcpStream) {
    let (listener, address) = place();
    let guest = job(1, 2, &address);
    thread::scope(|scope| {
        let guest = scope.spawn(|| meet(&guest, &Hello::default(), limits).expect("they meet").0);
        let (mut stream, _) = listener.accept().expect("it comes");
        let greeting = Incoming::default().read(&mut stream).expect("a hello");
        let host = Greeting::new(&job(0, 2, &address), &Hello::default());
        let met = RendezvousOutcome { said: vec![host.said, greeting.said], payload: Vec::new() };
        stream
            .write_all(&Answer::Welcome(met).encode().expect("it is short"))
            .expect("it is heard");
        (guest.join().expect("no panic"), stream)
    })
}

fn message(to: usize, from: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let frame = Frame::Message { to, from, tag: Tag(5), bytes: vec![7; 100] };
    frame.write(&mut bytes).expect("there is room");
    bytes
}

/// Bytes written on a raw connection, whether it is then closed, and the expected reason for the
/// loss.
fn ends(to: usize, from: usize) -> Vec<(&'static str, Vec<u8>, bool, LossReason)> {
    let nonsense = || LossReason::Failed("a message of its process cannot be read".to_owned());
    let late = || LossReason::Late(quick().silence);
    let half = message(to, from)[..40].to_vec();
    let mut lost = Vec::new();
    let nobody = Frame::LossReason(RankLoss { rank: 99, why: LossReason::Gone });
    nobody.write(&mut lost).expect("there is room");
    vec![
        ("nothing, and stays", Vec::new(), false, late()),
        ("nothing, and goes", Vec::new(), true, LossReason::Gone),
        ("half a frame, and stays", half.clone(), false, late()),
        ("half a frame, and goes", half, true, LossReason::Gone),
        ("a message, and goes", message(to, from), true, LossReason::Gone),
        ("nonsense", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(), false, nonsense()),
        ("for nobody", message(99, from), false, nonsense()),
        ("a loss of nobody", lost, false, nonsense()),
    ]
}

#[test]
fn losses_of_any_rank_reach_all_others() {
    let mut cases = ends(0, 1);
    let nonsense = LossReason::Failed("a message of its process cannot be read".to_owned());
    let mut left = Vec::new();
    Frame::Left(2).write(&mut left).expect("there is room");
    cases.push(("for another one", message(0, 2), false, nonsense.clone()));
    cases.push(("that another one leaves", left, false, nonsense));
    for (case, bytes, goes, why) in cases {
        let (channels, mut stream) = with_a_bare_one(&quick());
        let began = Instant::now();
        let told: Vec<_> = thread::scope(|scope| {
            let waits =
                channels.iter().map(|channel| scope.spawn(|| channel.take(1, Tag(6), soon())));
            let waits: Vec<_> = waits.collect();
            stream.write_all(&bytes).expect("it is heard");
            let stream = (!goes).then_some(stream);
            let told = waits.into_iter().map(|thread| thread.join().expect("no panic"));
            let told = told.collect();
            drop(stream);
            told
        });
        assert!(began.elapsed() < Duration::from_secs(5), "{case}");
        let broken = RankLoss { rank: 1, why };
        assert_eq!(told, [Err(broken.clone()), Err(broken)], "{case}");
    }
}

#[test]
fn losses_of_rank_0_reach_all_others() {
    for (case, bytes, goes, why) in ends(1, 0) {
        let (channel, mut stream) = with_a_bare_host(&quick());
        stream.write_all(&bytes).expect("it is heard");
        let stream = (!goes).then_some(stream);
        assert_eq!(channel.take(0, Tag(6), soon()), Err(RankLoss { rank: 0, why }), "{case}");
        drop(stream);
    }
}

#[test]
fn a_rank_that_nobody_answers_says_what_it_knows() {
    // Rank 0's process sends heartbeats, but never reports a loss.
    let (channel, mut stream) = with_a_bare_host(&limits());
    thread::scope(|scope| {
        let alive = scope.spawn(move || {
            let mut alive = Vec::new();
            Frame::Alive.write(&mut alive).expect("there is room");
            let began = Instant::now();
            while began.elapsed() < Duration::from_secs(3) && stream.write_all(&alive).is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
        });
        let began = Instant::now();
        let late =
            channel.take(0, Tag(0), began + Duration::from_millis(100)).expect_err("nothing comes");
        assert!(matches!(late, RankLoss { rank: 0, why: LossReason::Late(_) }), "{late:?}");
        assert!(began.elapsed() < Duration::from_secs(2));
        drop(channel);
        alive.join().expect("no panic");
    });
}

#[test]
fn silent_ranks_are_not_late() {
    let channels = channels(3, &quick());
    thread::sleep(quick().silence * 2);
    for to in 0..3 {
        for from in 0..3 {
            channels[from].send(to, Tag(1), vec![from as u8]).expect("all are there");
            assert_eq!(channels[to].take(from, Tag(1), soon()), Ok(vec![from as u8]));
        }
    }
    channels.iter().for_each(Channel::leave);
}

#[test]
fn large_messages_come_whole_and_nobody_waits_for_who_takes_them() {
    let channels = channels(3, &limits());
    let message = |seed: u64| -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed(seed);
        let block: Vec<u8> = (0..1 << 16).map(|_| random.u8(..)).collect();
        block.iter().copied().cycle().take((8 << 20) + seed as usize).collect()
    };
    let pairs: Vec<(usize, usize)> =
        (0..3).flat_map(|from| (0..3).map(move |to| (from, to))).collect();
    let messages: Vec<Vec<u8>> = (0..9).map(message).collect();
    let began = Instant::now();
    for (&(from, to), message) in pairs.iter().zip(&messages) {
        channels[from].send(to, Tag(2), message.clone()).expect("all are there");
        channels[from].send(to, Tag(2), vec![1]).expect("all are there");
    }
    let sent = began.elapsed();
    for (&(from, to), message) in pairs.iter().zip(&messages) {
        let got = channels[to].take(from, Tag(2), soon()).expect("all are there");
        assert!(got == *message, "from {from} to {to}: {} bytes", got.len());
        assert_eq!(channels[to].take(from, Tag(2), soon()), Ok(vec![1]));
    }
    assert!(sent < Duration::from_secs(5), "{sent:?}");
    channels.iter().for_each(Channel::leave);
}

#[test]
fn messages_sent_before_leaving_arrive() {
    for sender in 0..3 {
        let mut channels: Vec<Option<TcpChannel>> =
            channels(3, &limits()).into_iter().map(Some).collect();
        let gone = channels[sender].take().expect("it is there");
        let others: Vec<TcpChannel> = channels.into_iter().flatten().collect();
        thread::scope(|scope| {
            scope.spawn(move || {
                for number in 0..100u32 {
                    for to in 0..3 {
                        let bytes = number.to_le_bytes().repeat(5000);
                        gone.send(to, Tag(3), bytes).expect("all are there");
                    }
                }
                gone.leave();
            });
            for channel in others {
                scope.spawn(move || {
                    thread::sleep(Duration::from_millis(100));
                    for number in 0..100u32 {
                        let got = channel.take(sender, Tag(3), soon());
                        assert!(
                            got == Ok(number.to_le_bytes().repeat(5000)),
                            "{number} of rank {sender}"
                        );
                    }
                    // Then nothing more arrives. The rank that detects this needs no other message.
                    let other = 3 - sender - channel.rank();
                    if channel.rank() > other {
                        channel.send(other, Tag(4), Vec::new()).expect("it is there");
                        return channel.leave();
                    }
                    channel.take(other, Tag(4), soon()).expect("it is there");
                    let end = channel.take(sender, Tag(3), soon());
                    assert_eq!(end, Err(RankLoss { rank: sender, why: LossReason::Finished }));
                });
            }
        });
    }
}

#[test]
fn the_process_of_rank_0_stays_for_the_others() {
    let mut channels = channels(3, &limits());
    let host = channels.remove(0);
    thread::scope(|scope| {
        let host = scope.spawn(move || {
            host.leave();
            drop(host);
            Instant::now()
        });
        let guests: Vec<_> = channels
            .into_iter()
            .map(|channel| {
                scope.spawn(move || {
                    let other = 3 - channel.rank();
                    for number in 0..20 {
                        thread::sleep(Duration::from_millis(10));
                        channel.send(other, Tag(0), vec![number]).expect("rank 0 stays");
                        assert_eq!(channel.take(other, Tag(0), soon()), Ok(vec![number]));
                    }
                    // Rank 0 may continue before this thread does.
                    let last = Instant::now();
                    channel.leave();
                    last
                })
            })
            .collect();
        let last =
            guests.into_iter().map(|thread| thread.join().expect("no panic")).max().expect("two");
        let host = host.join().expect("no panic");
        assert!(
            host > last && host < last + Duration::from_secs(3),
            "{:?}",
            host.duration_since(last)
        );
    });
}

#[test]
fn it_does_not_stay_for_one_that_is_lost() {
    let limits = Limits { linger: Duration::from_millis(50), ..limits() };
    let mut channels = channels(2, &limits);
    let (guest, host) = (channels.remove(1), channels.remove(0));
    host.leave();
    thread::scope(|scope| {
        let began = Instant::now();
        scope.spawn(move || {
            thread::sleep(Duration::from_millis(300));
            // Ends without leaving.
            drop(guest);
        });
        drop(host);
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(300) && took < Duration::from_secs(2), "{took:?}");
    });
}

#[test]
fn the_end_of_a_world_takes_no_time() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let channels = channels(3, &limits());
        channels.iter().for_each(Channel::leave);
        let mut channels: Vec<Option<TcpChannel>> = channels.into_iter().map(Some).collect();
        let began = Instant::now();
        for rank in order {
            drop(channels[rank].take());
        }
        assert!(began.elapsed() < Duration::from_millis(700), "{order:?}: {:?}", began.elapsed());
    }
}

/// Reads a raw connection slowly, sending a heartbeat after each piece. Returns the number of
/// message bytes.
fn read_slowly(stream: &mut TcpStream, pause: Duration) -> std::io::Result<usize> {
    let mut alive = Vec::new();
    Frame::Alive.write(&mut alive)?;
    let mut bytes = Vec::with_capacity(65 << 20);
    let mut some = vec![0; 2 << 20];
    loop {
        let read = stream.read(&mut some)?;
        if read == 0 {
            break;
        }
        bytes.extend_from_slice(&some[..read]);
        stream.write_all(&alive)?;
        thread::sleep(pause);
    }
    let mut left = bytes.as_slice();
    let mut messages = 0;
    while let Some(frame) = Frame::read(&mut left)? {
        if let Frame::Message { bytes, .. } = frame {
            messages += bytes.len();
        }
    }
    Ok(messages)
}

#[test]
fn queued_messages_are_written_despite_a_slow_reader() {
    let messages = vec![vec![1; 4 << 20]; 16];
    let (channel, mut stream) = with_a_bare_host(&quick());
    for message in messages {
        channel.send(0, Tag(0), message).expect("it is there");
    }
    channel.leave();
    let (read, time) = thread::scope(|scope| {
        let host = scope.spawn(move || read_slowly(&mut stream, Duration::from_millis(60)));
        let began = Instant::now();
        drop(channel);
        (host.join().expect("no panic").expect("no error"), began.elapsed())
    });
    assert_eq!(read, 64 << 20);
    assert!(time > quick().silence, "it is to take longer than a silence: {time:?}");
}

#[test]
fn a_rank_that_has_left_waits_for_no_dead_one() {
    let linger = Duration::from_millis(2500);
    for (signs, least) in [(false, quick().silence), (true, linger)] {
        let message = vec![1; 64 << 20];
        let (channel, mut stream) = with_a_bare_host(&Limits { linger, ..quick() });
        channel.send(0, Tag(0), message).expect("it is there");
        channel.leave();
        let time = thread::scope(|scope| {
            let ends = scope.spawn(move || {
                let began = Instant::now();
                drop(channel);
                began.elapsed()
            });
            // Reads nothing, with or without heartbeats.
            let mut alive = Vec::new();
            Frame::Alive.write(&mut alive).expect("there is room");
            while !ends.is_finished() {
                if signs {
                    _ = stream.write_all(&alive);
                }
                thread::sleep(Duration::from_millis(20));
            }
            ends.join().expect("no panic")
        });
        assert!(time > least / 2 && time < least + Duration::from_secs(1), "{signs}: {time:?}");
    }
}

#[test]
fn a_loss_is_told_before_what_is_queued() {
    let messages = vec![vec![1; 4 << 20]; 16];
    let (mut channels, mut stream) = with_a_bare_one(&limits());
    let (guest, host) = (channels.remove(1), channels.remove(0));
    for message in messages {
        guest.send(1, Tag(0), message).expect("all are there");
    }
    // Everything has arrived at rank 0's process.
    guest.send(0, Tag(1), Vec::new()).expect("all are there");
    host.take(2, Tag(1), soon()).expect("all are there");
    let broken = RankLoss { rank: 2, why: LossReason::Failed("no memory".to_owned()) };
    let read = thread::scope(|scope| {
        scope.spawn(|| guest.abort(broken.clone()));
        thread::sleep(Duration::from_millis(200));
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("it can be");
        let mut messages = 0;
        loop {
            match Frame::read(&mut stream).expect("frames") {
                Some(Frame::Message { .. }) => messages += 1,
                Some(Frame::LossReason(lost)) => break (messages, Some(lost)),
                Some(_) => {}
                None => break (messages, None),
            }
        }
    });
    assert_eq!(read.1, Some(broken));
    assert!(read.0 < 16, "all {} messages came first", read.0);
}
