//! Ranks that are processes of this machine, started as a launcher would.
//!
//! The processes run this test program. With [`ROLE`] set, it runs only [`child`], which reports
//! its outcome in lines that begin with `@`.
#![cfg(unix)]

use super::limits;
use crate::WorldError;
use crate::channel::{Channel, RankLoss, Tag};
use crate::error::LossReason;
use crate::tcp::{Hello, Job, Limits, meet};
use crate::tests::program::{expected, program, step};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Variables for a process's role, the rank that is affected, and the rendezvous limit in seconds.
const ROLE: &str = "GEMM_TEST_ROLE";
const VICTIM: &str = "GEMM_TEST_VICTIM";
const MEETING: &str = "GEMM_TEST_MEETING";

/// Rendezvous limits in seconds, for processes that meet and for those that cannot.
const LONG: usize = 20;
const SHORT: usize = 3;

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

/// Number of threads of this process, or 0 if it is unknown.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, |tasks| tasks.count())
}

fn number(variable: &str) -> usize {
    std::env::var(variable).expect("it is set").parse().expect("a number")
}

/// Runs one rank. Does nothing in the test program itself.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let rendezvous = Duration::from_secs(number(MEETING) as u64);
    let limits = Limits { rendezvous, silence: Duration::from_secs(2), ..limits() };
    let before = threads();
    let job = Job::from_env().expect("it is well").expect("a job");
    match meet(&job, &Hello::default(), &limits) {
        // Ends while all messages are unsent.
        Ok((channel, _)) if role == "ends at once" && channel.rank() == number(VICTIM) => {
            std::process::exit(3);
        }
        Ok((channel, _)) => {
            println!("\n@{}", rank(&channel, &role, number(VICTIM)));
            drop(channel);
        }
        Err(WorldError::Rendezvous { reason, .. }) => println!("\n@{reason}"),
        Err(error) => println!("\n@{error}"),
    }
    // A joined thread may be listed for a moment; a leaked one stays longer.
    let began = Instant::now();
    while threads() > before && began.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_millis(1));
    }
    println!("\n@{} threads", threads() - before);
}

/// Runs a rank and returns its outcome as text.
fn rank(channel: &dyn Channel, role: &str, victim: usize) -> String {
    if role == "speaks" {
        let program = program(channel.ranks(), 400, &mut fastrand::Rng::with_seed(51));
        let steps = &program[channel.rank()];
        let got: Result<Vec<_>, RankLoss> =
            steps.iter().map(|next| step(channel, next, soon())).collect();
        channel.leave();
        return match got {
            Ok(got) if got == expected(steps) => "as expected".to_owned(),
            got => format!("{got:?}"),
        };
    }
    if role == "ends at once" {
        let lost = channel.take(victim, Tag(1), soon()).expect_err("it never says that");
        return format!("{lost:?}");
    }
    // All ranks have started and exchanged messages before anything happens.
    for to in 0..channel.ranks() {
        channel.send(to, Tag(0), vec![0; 1 << 20]).expect("all are there");
    }
    for from in 0..channel.ranks() {
        channel.take(from, Tag(0), soon()).expect("all are there");
    }
    channel.send(victim, Tag(2), Vec::new()).expect("all are there");
    if channel.rank() == victim {
        for from in 0..channel.ranks() {
            channel.take(from, Tag(2), soon()).expect("all are there");
        }
        match role {
            "exits" => std::process::exit(3),
            "panics" => panic!("as it is meant to"),
            "fails" => {
                channel.abort(RankLoss {
                    rank: victim,
                    why: LossReason::Failed("no memory".to_owned()),
                });
                std::process::exit(3);
            }
            _ => println!("\n@ready"),
        }
    }
    let lost = channel.take(victim, Tag(1), soon()).expect_err("it never says that");
    format!("{lost:?}")
}

/// Process of a rank, and its output.
struct Process(Child, std::io::Lines<BufReader<ChildStdout>>);

impl Process {
    /// Next report of the process, or `None` at its end.
    fn says(&mut self) -> Option<String> {
        self.1.find_map(|line| line.ok()?.strip_prefix('@').map(str::to_owned))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Killing fails if the process has ended.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Free port outside the ephemeral range.
fn port() -> u16 {
    let ports = (20_000..30_000).map(|_| fastrand::u16(20_000..30_000));
    ports.into_iter().find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("a port")
}

/// Rendezvous address and token of a job.
type Place<'a> = (&'a str, &'a str);

/// Starts a rank of a job, as `torchrun` would.
fn start(
    (rank, ranks): (usize, usize),
    (place, token): Place<'_>,
    (role, victim): (&str, usize),
    rendezvous: usize,
) -> Process {
    let mut command = Command::new(std::env::current_exe().expect("a program"));
    command.args(["tcp::tests::processes::child", "--exact", "--nocapture", "--test-threads=1"]);
    command.envs(
        [
            ("RANK", rank),
            ("WORLD_SIZE", ranks),
            ("LOCAL_RANK", rank),
            (VICTIM, victim),
            (MEETING, rendezvous),
        ]
        .map(text),
    );
    command.envs([("GEMM_RENDEZVOUS", place), ("GEMM_JOB", token), (ROLE, role)]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let says = BufReader::new(child.stdout.take().expect("it says something")).lines();
    Process(child, says)
}

fn text((name, number): (&'static str, usize)) -> (&'static str, String) {
    (name, number.to_string())
}

/// Starts all ranks of a job.
fn all(ranks: usize, role: &str, victim: usize) -> Vec<Process> {
    let place = format!("127.0.0.1:{}", port());
    (0..ranks)
        .map(|rank| start((rank, ranks), (&place, "this one"), (role, victim), LONG))
        .collect()
}

/// Returns the last report of a process, and checks that no thread is left.
fn told(process: &mut Process) -> String {
    let told = process.says().expect("it says something");
    let threads = if cfg!(target_os = "linux") { "0 threads" } else { "" };
    assert!(process.says().expect("it ends").starts_with(threads), "a thread is left");
    told
}

#[test]
fn processes_speak_to_one_another() {
    for ranks in [1, 2, 4] {
        for mut process in all(ranks, "speaks", 0) {
            assert_eq!(told(&mut process), "as expected");
            assert!(process.0.wait().expect("it ends").success());
        }
    }
}

#[test]
fn all_others_are_told_of_one_that_ends() {
    for (role, lost) in [("exits", "Gone"), ("panics", "Gone"), ("fails", "Failed(\"no memory\")")]
    {
        for victim in [0, 2] {
            let mut processes = all(3, role, victim);
            let victim_itself = processes.remove(victim);
            for mut process in processes {
                let broken = format!("RankLoss {{ rank: {victim}, why: {lost} }}");
                assert_eq!(told(&mut process), broken, "{role} {victim}");
            }
            drop(victim_itself);
        }
    }
}

#[test]
fn all_others_are_told_of_one_that_ends_when_all_have_met() {
    for victim in [0, 0, 0, 2] {
        let began = Instant::now();
        let mut processes = all(4, "ends at once", victim);
        let victim_itself = processes.remove(victim);
        for mut process in processes {
            assert_eq!(told(&mut process), format!("RankLoss {{ rank: {victim}, why: Gone }}"));
        }
        assert!(began.elapsed() < Duration::from_secs(LONG as u64 / 2), "{:?}", began.elapsed());
        drop(victim_itself);
    }
}

#[test]
fn all_others_are_told_of_one_that_is_killed() {
    for victim in 0..3 {
        let mut processes = all(3, "is killed", victim);
        let mut killed = processes.remove(victim);
        assert_eq!(killed.says().as_deref(), Some("ready"));
        killed.0.kill().expect("it can be killed");
        let began = Instant::now();
        for process in &mut processes {
            assert_eq!(told(process), format!("RankLoss {{ rank: {victim}, why: Gone }}"));
        }
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn all_others_are_told_of_one_that_stands_still() {
    for victim in 0..2 {
        let mut processes = all(3, "stands still", victim);
        let mut stopped = processes.remove(victim);
        assert_eq!(stopped.says().as_deref(), Some("ready"));
        let kill = format!("kill -STOP {}", stopped.0.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
        for process in &mut processes {
            assert_eq!(told(process), format!("RankLoss {{ rank: {victim}, why: Late(2s) }}"));
        }
    }
}

#[test]
fn a_rank_that_never_comes_is_named() {
    let place = format!("127.0.0.1:{}", port());
    let there: Vec<_> =
        [0, 1, 3].map(|rank| start((rank, 4), (&place, "this one"), ("speaks", 0), SHORT)).into();
    for mut process in there {
        assert_eq!(told(&mut process), "rank 2 did not arrive within 3.0 s");
    }
}

#[test]
fn processes_of_two_jobs_at_one_place_do_not_meet() {
    let place = format!("127.0.0.1:{}", port());
    let mut stale = start((1, 2), (&place, "an earlier one"), ("speaks", 0), SHORT);
    let mut good: Vec<_> =
        [0, 1].map(|rank| start((rank, 2), (&place, "this one"), ("speaks", 0), LONG)).into();
    for process in &mut good {
        assert_eq!(told(process), "as expected");
    }
    let reason = told(&mut stale);
    assert!(reason.starts_with("rank 1 did not meet rank 0 in 3.0 s: "), "{reason}");
}

#[test]
fn a_place_that_is_taken_or_wrong_is_an_error_on_all() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let place = taken.local_addr().expect("an address").to_string();
    let wrong = format!("127.0.0.1:{}", port());
    let mut host = start((0, 2), (&place, "this one"), ("speaks", 0), SHORT);
    let mut guest = start((1, 2), (&place, "this one"), ("speaks", 0), SHORT);
    let mut lost = start((1, 2), (&wrong, "this one"), ("speaks", 0), SHORT);
    let reason = told(&mut host);
    assert!(reason.contains("another process listens on this port"), "{reason}");
    for process in [&mut guest, &mut lost] {
        let reason = told(process);
        assert!(reason.starts_with("rank 1 did not meet rank 0 in 3.0 s: "), "{reason}");
    }
}
