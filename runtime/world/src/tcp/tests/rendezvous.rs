//! Successful and failed rendezvous.

use super::{Rendezvous, come, job, limits, place, same_error, saying};
use crate::WorldError;
use crate::error::LossReason;
use crate::tcp::answer::Answer;
use crate::tcp::hello::Greeting;
use crate::tcp::node::Node;
use crate::tcp::{
    Address, Fact, Hello, Job, Limits, RendezvousOutcome, guest, host, meet, meet_at,
};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Limits for a rendezvous with a missing rank.
fn short(rendezvous: u64) -> Limits {
    Limits { rendezvous: Duration::from_millis(rendezvous), ..limits() }
}

fn refusal(met: Rendezvous) -> String {
    match met {
        Err(WorldError::Rendezvous { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_ranks_learn_all_facts() {
    let mut random = fastrand::Rng::with_seed(31);
    for round in 0..8 {
        let ranks = random.usize(1..=8);
        let (listener, address) = place();
        let payload: Vec<u8> = (0..random.usize(..300)).map(|_| random.u8(..)).collect();
        let mut those: Vec<(Job, Hello)> = (0..ranks)
            .map(|rank| {
                let facts = vec![
                    Fact::same("the version of NCCL", "2.30.7", ""),
                    Fact::distinct("GPU", format!("GPU-{rank}"), ""),
                    Fact::noted("host", format!("host {}", rank / 2)),
                ];
                let payload = if rank == 0 { payload.clone() } else { vec![1, 2, 3] };
                (job(rank, ranks, &address), Hello { facts, payload, failure: None })
            })
            .collect();
        // Ranks start in any order.
        random.shuffle(&mut those);
        for met in come(listener, &those, &limits()) {
            let (_, met) = met.expect("they meet");
            assert_eq!(met.payload, payload, "round {round}");
            for rank in 0..ranks {
                assert_eq!(met.value(rank, "GPU"), Some(format!("GPU-{rank}").as_str()));
                assert_eq!(met.value(rank, "host"), Some(format!("host {}", rank / 2).as_str()));
                assert_eq!(met.value(rank, "colour"), None);
            }
            assert_eq!(met.value(ranks, "GPU"), None);
        }
    }
}

#[test]
fn present_ranks_are_told_the_missing_ranks() {
    let (ranks, mut random) = (6, fastrand::Rng::with_seed(32));
    for missing in [vec![3], vec![1, 2, 3], vec![1, 3, 4, 5], vec![2, 3, 5]] {
        let (listener, address) = place();
        let there = (0..ranks).filter(|rank| !missing.contains(rank));
        let mut those: Vec<_> =
            there.map(|rank| (job(rank, ranks, &address), Hello::default())).collect();
        random.shuffle(&mut those);
        let began = Instant::now();
        let error = same_error(come(listener, &those, &short(400)));
        assert!(began.elapsed() < Duration::from_secs(3), "{error}");
        let names = match missing.as_slice() {
            [3] => "rank 3",
            [1, 2, 3] => "ranks 1 to 3",
            [1, 3, 4, 5] => "ranks 1, 3 to 5",
            _ => "ranks 2 to 3, 5",
        };
        let WorldError::Rendezvous { address: at, reason } = &error else {
            panic!("{error}");
        };
        assert_eq!(
            (at, reason),
            (&address.to_string(), &format!("{names} did not arrive within 0.4 s"))
        );
    }
}

#[test]
fn one_that_came_first_waits_for_as_long_as_rank_0_does() {
    // The guest's limit expires long before rank 0's.
    let (listener, address) = place();
    let (guest, host) = thread::scope(|scope| {
        let guest = scope.spawn(|| meet(&job(1, 3, &address), &Hello::default(), &short(300)));
        thread::sleep(Duration::from_millis(200));
        let host = meet_at(Some(listener), &job(0, 3, &address), &Hello::default(), &short(900));
        (guest.join().expect("no panic"), host)
    });
    assert_eq!(refusal(host), "rank 2 did not arrive within 0.9 s");
    assert_eq!(refusal(guest), "rank 2 did not arrive within 0.9 s", "as rank 0 says");
}

#[test]
fn rank_0_may_come_late_or_never() {
    let (listener, address) = place();
    drop(listener);
    let began = Instant::now();
    let reason = refusal(meet(&job(3, 4, &address), &Hello::default(), &short(300)));
    assert!(began.elapsed() < Duration::from_secs(2));
    assert!(reason.starts_with("rank 3 did not meet rank 0 in 0.3 s: "), "{reason}");
    let met = thread::scope(|scope| {
        let guest = scope.spawn(|| meet(&job(1, 2, &address), &Hello::default(), &limits()));
        thread::sleep(Duration::from_millis(300));
        let host = meet(&job(0, 2, &address), &Hello::default(), &limits());
        [guest.join().expect("no panic"), host]
    });
    assert!(met.iter().all(Result::is_ok), "{met:?}");
}

#[test]
fn a_host_that_is_nowhere_is_an_error() {
    let address = Address { host: "no such host.invalid".to_owned(), port: 1 };
    for rank in [1, 3] {
        let reason = refusal(meet(&job(rank, 4, &address), &Hello::default(), &short(100)));
        assert!(reason.contains(&format!("rank {rank} did not meet rank 0")), "{reason}");
    }
}

#[test]
fn a_port_that_is_taken_is_tried_until_it_is_free_or_the_time_is_over() {
    let (listener, address) = place();
    let began = Instant::now();
    let reason = refusal(meet(&job(0, 2, &address), &Hello::default(), &short(300)));
    assert!(reason.contains("another process listens"), "{reason}");
    assert!(began.elapsed() < Duration::from_secs(2));
    let met = thread::scope(|scope| {
        let host = scope.spawn(|| meet(&job(0, 2, &address), &Hello::default(), &limits()));
        thread::sleep(Duration::from_millis(250));
        drop(listener);
        let guest = meet(&job(1, 2, &address), &Hello::default(), &limits());
        [host.join().expect("no panic"), guest]
    });
    assert!(met.iter().all(Result::is_ok), "{met:?}");
}

#[test]
fn the_place_can_be_had_again_at_once() {
    // Connections of the previous job are still closing.
    let (listener, address) = place();
    drop(listener);
    for _ in 0..3 {
        let met = thread::scope(|scope| {
            let host = scope.spawn(|| meet(&job(0, 2, &address), &Hello::default(), &limits()));
            let guest = meet(&job(1, 2, &address), &Hello::default(), &limits());
            [host.join().expect("no panic"), guest]
        });
        assert!(met.iter().all(Result::is_ok), "{met:?}");
    }
}

#[test]
fn a_name_and_an_address_of_this_host_are_where_rank_0_listens() {
    for host in ["localhost", "127.0.0.1"] {
        let (listener, address) = place();
        drop(listener);
        let address = Address { host: host.to_owned(), ..address };
        let met = thread::scope(|scope| {
            let host = scope.spawn(|| meet(&job(0, 2, &address), &Hello::default(), &limits()));
            let guest = meet(&job(1, 2, &address), &Hello::default(), &limits());
            [host.join().expect("no panic"), guest]
        });
        assert!(met.iter().all(Result::is_ok), "{met:?}");
    }
}

#[test]
fn disagreeing_ranks_are_told_the_fact() {
    let (listener, address) = place();
    let versions = ["2.28.9", "2.28.9", "2.30.7", "2.22.3"];
    let hello =
        |version: &str| saying(Fact::same("the version of NCCL", version, "Install the same one"));
    let those: Vec<_> =
        (0..4).map(|rank| (job(rank, 4, &address), hello(versions[rank]))).collect();
    let error = same_error(come(listener, &those, &limits()));
    let expected = WorldError::Mismatch {
        what: "the version of NCCL".to_owned(),
        rank: 2,
        has: "2.30.7".to_owned(),
        other: 0,
        others: "2.28.9".to_owned(),
        remedy: "Install the same one",
    };
    assert_eq!(error, expected);
}

#[test]
fn ranks_sharing_a_gpu_are_reported() {
    let (listener, address) = place();
    let gpus = ["GPU-1", "GPU-2", "GPU-3", "GPU-2"];
    let hello = |gpu: &str| saying(Fact::distinct("GPU", gpu, "Give each rank one of its own"));
    let those: Vec<_> = (0..4).map(|rank| (job(rank, 4, &address), hello(gpus[rank]))).collect();
    let error = same_error(come(listener, &those, &limits()));
    let text = "ranks 1 and 3 have the same GPU, GPU-2. Give each rank one of its own";
    assert_eq!(error.to_string(), text);
}

#[test]
fn a_rank_that_cannot_take_part_says_so_to_all() {
    for failed in 0..3 {
        let (listener, address) = place();
        let failure = |rank| (rank == failed).then(|| "NCCL was not found".to_owned());
        let hello = |rank| Hello { failure: failure(rank), ..Hello::default() };
        let those: Vec<_> = (0..3).map(|rank| (job(rank, 3, &address), hello(rank))).collect();
        let error = same_error(come(listener, &those, &limits()));
        let why = LossReason::Failed("NCCL was not found".to_owned());
        assert_eq!(
            error,
            WorldError::RankLost { rank: failed, doing: "meeting the others".to_owned(), why }
        );
    }
}

#[test]
fn a_world_of_one_meets_nobody() {
    let nowhere = Address::default();
    let hello = Hello { payload: vec![7], ..saying(Fact::distinct("GPU", "GPU-1", "")) };
    let (_, met) = meet(&job(0, 1, &nowhere), &hello, &limits()).expect("it is there");
    assert_eq!((met.value(0, "GPU"), met.payload.as_slice()), (Some("GPU-1"), [7].as_slice()));
    let failed = Hello { failure: Some("no GPU".to_owned()), ..hello };
    assert!(matches!(
        meet(&job(0, 1, &nowhere), &failed, &limits()),
        Err(WorldError::RankLost { rank: 0, .. })
    ));
}

#[test]
fn two_that_say_they_are_the_same_rank_are_told_with_all() {
    let (listener, address) = place();
    let ranks = [0, 1, 3, 3];
    let those: Vec<_> = ranks.map(|rank| (job(rank, 4, &address), Hello::default())).into();
    let began = Instant::now();
    let error = same_error(come(listener, &those, &short(8000)));
    // Much less than the time in which rank 2 could have arrived.
    assert!(began.elapsed() < Duration::from_secs(5));
    assert!(error.to_string().contains("two processes are rank 3, at 127.0.0.1:"), "{error}");
}

#[test]
fn one_that_is_no_rank_of_this_world_is_told_with_all() {
    for (rank, ranks, told) in [
        (0, 3, "two processes are rank 0"),
        (1, 4, "the number of ranks: rank 1 has 4, but rank 0 has 3"),
        (7, 8, "the number of ranks: rank 7 has 8, but rank 0 has 3"),
        (3, 3, "is rank 3, of 3"),
        (usize::MAX, 3, "of 3"),
    ] {
        let (listener, address) = place();
        let met = thread::scope(|scope| {
            let host = scope.spawn(|| {
                meet_at(Some(listener), &job(0, 3, &address), &Hello::default(), &short(8000))
            });
            // This rank arrives before all others.
            let address = &address;
            let odd = Job { rank: rank.max(1), ..job(rank, ranks, address) };
            let odd = if rank == 0 {
                // A real rank 0 would create the listener itself.
                let greeting = Greeting::new(&job(0, ranks, address), &Hello::default());
                let mut stream =
                    TcpStream::connect(("127.0.0.1", address.port)).expect("somebody listens");
                stream.write_all(&greeting.encode().expect("it is short")).expect("it is heard");
                thread::sleep(Duration::from_millis(100));
                None
            } else {
                Some(meet(&odd, &Hello::default(), &short(8000)))
            };
            // Rank 0 keeps listening only to send these ranks the fault.
            let good = [1, 2].map(|rank| {
                let job = job(rank, 3, address);
                scope.spawn(move || meet(&job, &Hello::default(), &short(8000)))
            });
            let good = good.into_iter().map(|thread| thread.join().expect("no panic"));
            good.chain(odd).chain([host.join().expect("no panic")]).collect::<Vec<_>>()
        });
        let error = same_error(met);
        assert!(error.to_string().contains(told), "{error}");
    }
}

#[test]
fn a_rank_that_goes_before_all_have_come_may_come_again() {
    let (listener, address) = place();
    let met = thread::scope(|scope| {
        let host = scope
            .spawn(|| meet_at(Some(listener), &job(0, 3, &address), &Hello::default(), &limits()));
        for round in 0..3 {
            // A process sends its greeting and dies.
            let greeting = Greeting::new(&job(1, 3, &address), &Hello::default());
            let mut stream =
                TcpStream::connect(("127.0.0.1", address.port)).expect("somebody listens");
            stream.write_all(&greeting.encode().expect("it is short")).expect("it is heard");
            thread::sleep(Duration::from_millis(60 * round));
        }
        let guests = [1, 2].map(|rank| {
            let job = job(rank, 3, &address);
            scope.spawn(move || {
                // All other ranks have arrived before the dead rank arrives again.
                thread::sleep(Duration::from_millis(if rank == 1 { 100 } else { 0 }));
                meet(&job, &Hello::default(), &limits())
            })
        });
        let guests: Vec<_> =
            guests.into_iter().map(|thread| thread.join().expect("no panic")).collect();
        guests.into_iter().chain([host.join().expect("no panic")]).collect::<Vec<_>>()
    });
    assert!(met.iter().all(Result::is_ok), "{met:?}");
}

#[test]
fn oversized_facts_are_an_error_on_their_rank() {
    let (listener, address) = place();
    let long = saying(Fact::noted("host", "x".repeat(2 << 20)));
    for (listener, rank) in [(Some(listener), 0), (None, 1)] {
        let reason = refusal(meet_at(listener, &job(rank, 2, &address), &long, &limits()));
        assert!(reason.contains("1048576"), "{reason}");
    }
}

#[test]
fn nobody_meets_where_something_else_listens() {
    let nothing = |_: TcpStream| {};
    let silence = |stream: TcpStream| {
        thread::sleep(Duration::from_millis(600));
        drop(stream);
    };
    let nonsense = |mut stream: TcpStream| {
        _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        thread::sleep(Duration::from_millis(20));
    };
    // Announces an answer of 2^32 - 1 bytes that never arrives.
    let greed = |mut stream: TcpStream| {
        let envelope = [b"GEMMhost".as_slice(), &1u32.to_le_bytes(), &[0xff; 4]].concat();
        _ = stream.write_all(&envelope);
        thread::sleep(Duration::from_millis(20));
    };
    let other = |mut stream: TcpStream| {
        let envelope = [b"GEMMhost".as_slice(), &7u32.to_le_bytes(), &[0; 4]].concat();
        _ = stream.write_all(&envelope);
        thread::sleep(Duration::from_millis(20));
    };
    type Something = fn(TcpStream);
    let what: [(Something, &str); 5] = [
        (nothing, "c"),
        (silence, "nothing arrived in time"),
        (nonsense, "says \"HTTP/1.1 400 Bad"),
        (greed, "4294967295 bytes"),
        (other, "protocol 7"),
    ];
    for (what, told) in what {
        let (listener, address) = place();
        let guest =
            thread::spawn(move || meet(&job(1, 2, &address), &Hello::default(), &short(300)));
        listener.set_nonblocking(true).expect("it can be");
        let began = Instant::now();
        while !guest.is_finished() {
            match listener.accept() {
                Ok((stream, _)) => what(stream),
                Err(_) => thread::sleep(Duration::from_millis(5)),
            }
            assert!(began.elapsed() < Duration::from_secs(5), "it has to end");
        }
        let reason = refusal(guest.join().expect("no panic"));
        // Alternatively, the last attempt may reach the time limit before an answer arrives.
        assert!(reason.contains(told) || reason.contains("nothing arrived"), "{reason}");
    }
}

/// Plays rank 0 until it has announced that it waits for rank 2.
fn hears(listener: &TcpListener) -> TcpStream {
    let (mut stream, _) = listener.accept().expect("it comes");
    let wait = Answer::Wait("rank 2".to_owned()).encode().expect("it is short");
    stream.write_all(&wait).expect("it is heard");
    stream
}

#[test]
fn one_that_was_heard_is_told_soon_that_rank_0_is_gone() {
    // The connection breaks within an answer, or between two.
    for half in [false, true] {
        let (listener, address) = place();
        let guest = thread::spawn(move || meet(&job(1, 3, &address), &Hello::default(), &limits()));
        let mut stream = hears(&listener);
        drop(listener);
        if half {
            let welcome =
                Answer::Welcome(RendezvousOutcome { said: Vec::new(), payload: vec![0; 99] });
            let welcome = welcome.encode().expect("it is short");
            stream.write_all(&welcome[..welcome.len() / 2]).expect("it is heard");
        }
        let began = Instant::now();
        drop(stream);
        let error = guest.join().expect("no panic").map(|_| ()).expect_err("there is no world");
        assert!(began.elapsed() < limits().rendezvous / 3, "{:?}", began.elapsed());
        let doing = "meeting the others, of whom rank 2 was missing".to_owned();
        assert_eq!(error, WorldError::RankLost { rank: 0, doing, why: LossReason::Gone });
    }
}

#[test]
fn one_that_was_heard_is_told_when_rank_0_stands_still() {
    let (listener, address) = place();
    let limits = Limits { silence: Duration::from_millis(400), ..limits() };
    let guest = thread::spawn(move || meet(&job(1, 3, &address), &Hello::default(), &limits));
    let stream = hears(&listener);
    let began = Instant::now();
    let error = guest.join().expect("no panic").map(|_| ()).expect_err("there is no world");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    let WorldError::RankLost { rank: 0, why, .. } = error else { panic!("{error}") };
    assert_eq!(why, LossReason::Late(Duration::from_millis(400)));
    drop(stream);
}

#[test]
fn a_connection_that_was_cut_by_accident_is_made_again() {
    let (listener, address) = place();
    let met = thread::scope(|scope| {
        let guest = scope.spawn(|| meet(&job(1, 2, &address), &Hello::default(), &limits()));
        drop(hears(&listener));
        let host = meet_at(Some(listener), &job(0, 2, &address), &Hello::default(), &limits());
        [guest.join().expect("no panic"), host]
    });
    assert!(met.iter().all(Result::is_ok), "{met:?}");
}

#[test]
fn rank_0_has_let_all_in_when_it_has_met_them() {
    // The welcome exceeds a connection's buffer.
    let (listener, address) = place();
    let payload = vec![7; 32 << 20];
    let hello = Hello { payload: payload.clone(), ..Hello::default() };
    let those = (0..3).map(|rank| job(rank, 3, &address)).collect::<Vec<_>>();
    let guests: Vec<_> = thread::scope(|scope| {
        let guests = those[1..]
            .iter()
            .map(|job| scope.spawn(move || guest::join(job, &Hello::default(), &limits(), soon())));
        let guests: Vec<_> = guests.collect();
        let host = host::host(listener, &those[0], &hello, &limits(), soon());
        let (links, _) = host.expect("they meet");
        let node = Node::start(0, 3, links, &limits()).expect("its threads start");
        node.begin();
        // The connection is closed as at the end of the process.
        node.cut();
        guests.into_iter().map(|guest| guest.join().expect("no panic")).collect()
    });
    for guest in guests {
        assert_eq!(guest.expect("it was let in").1.payload, payload);
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(30)
}
