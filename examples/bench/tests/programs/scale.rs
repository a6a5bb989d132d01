//! `scale`.

use super::{program, run, text};
use serde_json::Value;
use std::net::TcpListener;
use std::process::{Child, Stdio};

/// Starts the ranks of a job on this machine, each a process with a simulated device.
fn job(ranks: usize, words: &[&str]) -> Vec<Child> {
    // The port is free now, and unlikely to be used by another program before the job starts.
    let port = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let port = port.expect("a port").port().to_string();
    let start = |rank: usize| {
        let rank = rank.to_string();
        let mut command = program("scale");
        command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("RANK", &rank).env("LOCAL_RANK", &rank).env("WORLD_SIZE", ranks.to_string());
        command.env("MASTER_ADDR", "127.0.0.1").env("MASTER_PORT", &port);
        command.spawn().expect("a program that can be started")
    };
    (0..ranks).map(start).collect()
}

#[test]
fn every_number_of_ranks_is_right() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("scale.json");
    let output =
        run("scale", &format!("--simulated 3 --size 70 --sum 140000 --json {}", path.display()));
    let table = text(&output.stdout);
    assert!(output.status.success(), "{table}{}", text(&output.stderr));
    let json = std::fs::read_to_string(&path).expect("a file");
    let rows: Vec<Value> =
        json.lines().map(|row| serde_json::from_str(row).expect("an object")).collect();
    let ranks: Vec<_> = rows.iter().map(|row| row["ranks"].as_u64()).collect();
    assert_eq!(ranks, [1, 1, 2, 2, 3, 3].map(Some));
    for row in &rows {
        assert_eq!((&row["is_right"], &row["ms"]), (&Value::Bool(true), &Value::Null), "{row}");
    }
    assert_eq!(table.matches(" same").count(), rows.len(), "{table}");
}

#[test]
fn rank_0_speaks_for_a_job() {
    let outputs =
        job(2, &["--size", "70", "--sum", "70000"]).into_iter().map(|rank| rank.wait_with_output());
    for (rank, output) in outputs.enumerate() {
        let output = output.expect("an output");
        assert!(output.status.success(), "rank {rank}: {}", text(&output.stderr));
        let same = text(&output.stdout).matches(" same").count();
        assert_eq!(same, if rank == 0 { 2 } else { 0 }, "{}", text(&output.stdout));
    }
}

#[test]
fn errors_of_one_rank_reach_all_ranks() {
    let outputs = job(2, &["--size", "70", "--json", "/nowhere/scale.json"])
        .into_iter()
        .map(|rank| rank.wait_with_output());
    for (rank, output) in outputs.enumerate() {
        let output = output.expect("an output");
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "rank {rank}: {message}");
        assert!(message.contains("--json /nowhere/scale.json: "), "rank {rank}: {message}");
        assert_eq!(message.contains("rank 0 was lost"), rank != 0, "rank {rank}: {message}");
    }
}
