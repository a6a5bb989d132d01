//! Unknown peers do not disturb a rendezvous.

use super::{come, job, limits, place};
use crate::WorldError;
use crate::tcp::answer::is_timeout;
use crate::tcp::hello::Greeting;
use crate::tcp::{Address, Hello, Job, Limits, meet, meet_at};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

fn connect(address: &Address) -> TcpStream {
    TcpStream::connect(("127.0.0.1", address.port)).expect("somebody listens")
}

/// Random bytes from an unknown peer.
fn garbage(random: &mut fastrand::Rng, address: &Address) -> Vec<u8> {
    let greeting = Greeting::new(&job(1, 3, address), &Hello::default());
    let hello = greeting.encode().expect("it is short");
    match random.u8(..5) {
        0 => (0..random.usize(..3000)).map(|_| random.u8(..)).collect(),
        1 => b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
        // Part of a valid hello.
        2 => hello[..random.usize(..hello.len())].to_vec(),
        // Maximum length in the envelope.
        3 => [b"GEMMrank".as_slice(), &1u32.to_le_bytes(), &u32::MAX.to_le_bytes(), &[0; 100]]
            .concat(),
        // Valid envelope with an invalid body.
        _ => [b"GEMMrank".as_slice(), &1u32.to_le_bytes(), &64u32.to_le_bytes(), &[0xff; 64]]
            .concat(),
    }
}

#[test]
fn garbage_disturbs_no_meeting() {
    let mut random = fastrand::Rng::with_seed(41);
    let (listener, address) = place();
    let met = thread::scope(|scope| {
        let host = scope
            .spawn(|| meet_at(Some(listener), &job(0, 3, &address), &Hello::default(), &limits()));
        let mut stay = Vec::new();
        // More than are accepted at once.
        for _ in 0..150 {
            let mut stream = connect(&address);
            // The peer may already be disconnected.
            _ = stream.write_all(&garbage(&mut random, &address));
            if random.bool() {
                stay.push(stream);
            }
        }
        let guests = [1, 2].map(|rank| {
            let job = job(rank, 3, &address);
            scope.spawn(move || meet(&job, &Hello::default(), &limits()))
        });
        for _ in 0..10 {
            let mut stream = match TcpStream::connect(("127.0.0.1", address.port)) {
                Ok(stream) => stream,
                // The ranks have met.
                Err(_) => break,
            };
            _ = stream.write_all(&garbage(&mut random, &address));
            stay.push(stream);
        }
        let guests: Vec<_> =
            guests.into_iter().map(|thread| thread.join().expect("no panic")).collect();
        guests.into_iter().chain([host.join().expect("no panic")]).collect::<Vec<_>>()
    });
    assert!(met.iter().all(Result::is_ok), "{met:?}");
}

#[test]
fn one_that_speaks_slowly_is_heard_out_and_one_that_does_not_end_is_not() {
    let limits = Limits { rendezvous: Duration::from_millis(800), ..limits() };
    let (listener, address) = place();
    let (host, closed) = thread::scope(|scope| {
        let host = scope
            .spawn(|| meet_at(Some(listener), &job(0, 2, &address), &Hello::default(), &limits));
        let mut never = connect(&address);
        never.write_all(b"GEMMra").expect("it is heard");
        let greeting =
            Greeting::new(&job(1, 2, &address), &Hello::default()).encode().expect("it is short");
        let mut slow = connect(&address);
        for byte in greeting.chunks(greeting.len() / 10) {
            slow.write_all(byte).expect("it is heard");
            thread::sleep(Duration::from_millis(15));
        }
        slow.set_read_timeout(Some(Duration::from_secs(5))).expect("it can be");
        let mut magic = [0; 8];
        slow.read_exact(&mut magic).expect("an answer");
        assert_eq!(&magic, b"GEMMhost");
        let met = host.join().expect("no panic");
        never.set_read_timeout(Some(Duration::from_secs(5))).expect("it can be");
        // The connection may end normally or by a reset.
        (met, !matches!(never.read(&mut [0]), Ok(1..)))
    });
    assert!(host.is_ok() && closed, "{host:?}");
}

#[test]
fn one_of_an_earlier_job_is_sent_away_and_the_job_goes_on() {
    for token in ["an earlier job", ""] {
        let (listener, address) = place();
        let short = Limits { rendezvous: Duration::from_millis(300), ..limits() };
        let stale = Job { token: token.to_owned(), ..job(1, 3, &address) };
        let (stale, met) = thread::scope(|scope| {
            let host = scope.spawn(|| {
                meet_at(Some(listener), &job(0, 3, &address), &Hello::default(), &limits())
            });
            let stale = meet(&stale, &Hello::default(), &short);
            let guests = [1, 2].map(|rank| {
                let job = job(rank, 3, &address);
                scope.spawn(move || meet(&job, &Hello::default(), &limits()))
            });
            let guests: Vec<_> =
                guests.into_iter().map(|thread| thread.join().expect("no panic")).collect();
            (stale, guests.into_iter().chain([host.join().expect("no panic")]).collect::<Vec<_>>())
        });
        assert!(met.iter().all(Result::is_ok), "{met:?}");
        let Err(WorldError::Rendezvous { reason, .. }) = stale else {
            panic!("{stale:?}");
        };
        let both =
            format!("the ranks of job \"a job\" meet there, but this rank is of job \"{token}\"");
        assert!(reason.contains(&both), "{reason}");
    }
}

#[test]
fn nobody_comes_in_once_all_have_met() {
    let (listener, address) = place();
    let those: Vec<_> = (0..2).map(|rank| (job(rank, 2, &address), Hello::default())).collect();
    let met = come(listener, &those, &limits());
    assert!(met.iter().all(Result::is_ok));
    let began = Instant::now();
    let short = Limits { rendezvous: Duration::from_millis(200), ..limits() };
    assert!(meet(&job(1, 2, &address), &Hello::default(), &short).is_err());
    assert!(began.elapsed() < Duration::from_secs(2));
    // The ranks of the job do not notice.
    for (channel, _) in met.iter().flatten() {
        assert_eq!(crate::channel::Channel::broken(channel), None);
    }
}

#[test]
fn a_listener_that_is_flooded_lets_its_ranks_in() {
    let (listener, address) = place();
    let met = thread::scope(|scope| {
        let host = scope
            .spawn(|| meet_at(Some(listener), &job(0, 2, &address), &Hello::default(), &limits()));
        let guest = scope.spawn(|| {
            thread::sleep(Duration::from_millis(100));
            meet(&job(1, 2, &address), &Hello::default(), &limits())
        });
        let began = Instant::now();
        while !guest.is_finished() && began.elapsed() < Duration::from_secs(8) {
            if let Ok(stream) = TcpStream::connect(("127.0.0.1", address.port)) {
                _ = stream.shutdown(Shutdown::Write);
            }
            thread::sleep(Duration::from_millis(1));
        }
        [guest.join().expect("no panic"), host.join().expect("no panic")]
    });
    assert!(met.iter().all(Result::is_ok), "{met:?}");
}

#[test]
fn the_oldest_silent_connections_are_dropped() {
    let (listener, address) = place();
    let met = thread::scope(|scope| {
        let host = scope
            .spawn(|| meet_at(Some(listener), &job(0, 2, &address), &Hello::default(), &limits()));
        let mut silent: Vec<TcpStream> = (0..100).map(|_| connect(&address)).collect();
        for (place, stream) in silent.iter_mut().enumerate() {
            let long = Duration::from_millis(if place < 34 { 5000 } else { 1 });
            stream.set_read_timeout(Some(long)).expect("it can be");
            // The connection may end normally or by a reset.
            let open = matches!(stream.read(&mut [0]), Err(error) if is_timeout(&error));
            assert_eq!(open, place >= 34, "{place}: as many as ranks and 64 may be there");
        }
        let guest = meet(&job(1, 2, &address), &Hello::default(), &limits());
        [guest, host.join().expect("no panic")]
    });
    assert!(met.iter().all(Result::is_ok), "{met:?}");
}
