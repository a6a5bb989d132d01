//! Peers: child processes that time another library on the same problems as one of our programs.
//!
//! A request is a line of JSON on the peer's standard input. The response is a line on its standard
//! output. A peer ends with the process that started it.

use serde::Serialize;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Number of bytes kept from the end of a peer's standard error.
const KEPT: usize = 4000;

/// Time limit for the standard error of a peer that has ended. Child processes of the peer may keep
/// the pipe open.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Interval between checks for the end of a program.
const POLL: Duration = Duration::from_millis(20);

/// Reason why a peer does not respond with a time.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PeerError {
    /// The machine lacks something that the peer needs.
    #[error("{0}")]
    Missing(String),
    /// The process could not be started.
    #[error("`{program}` cannot be started: {reason}")]
    Start {
        program: String,
        /// Reason given by the system.
        reason: String,
    },
    /// The peer exceeded the time limit, in seconds, and was killed.
    #[error("no answer in {0} s")]
    Late(u64),
    /// The peer ended. The text is the last line of its standard error.
    #[error("the peer ended: {0}")]
    Ended(String),
    /// The peer wrote a line that is not a response.
    #[error("`{0}` is not an answer")]
    Garbled(String),
    /// The peer could not time this problem, but may time the next one.
    #[error("{0}")]
    Refused(String),
}

impl PeerError {
    /// Returns true if the peer will not respond to further requests.
    pub fn is_final(&self) -> bool {
        !matches!(self, Self::Refused(_))
    }
}

/// Peer that has reported its name.
#[derive(Debug)]
pub struct Peer {
    name: String,
    process: Process,
}

impl Peer {
    /// Starts a peer and waits for its first line. It is `{"name": …}`, or `{"missing": …}` if a
    /// dependency is missing.
    ///
    /// # Errors
    /// Returns any error of [`PeerError`] except [`PeerError::Refused`].
    pub fn start(command: Command, limit: Duration) -> Result<Self, PeerError> {
        Starting::new(command)?.finish(limit)
    }

    /// Returns the peer's name, with its version.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sends a request and returns the time in microseconds. After an error that [is
    /// final](PeerError::is_final), the process has ended.
    ///
    /// # Errors
    /// Returns any error of [`PeerError`] except [`PeerError::Missing`] and [`PeerError::Start`].
    pub fn ask(&mut self, question: &impl Serialize, limit: Duration) -> Result<f64, PeerError> {
        let line =
            serde_json::to_string(question).map_err(|e| PeerError::Garbled(e.to_string()))?;
        self.process.say(&line)?;
        let (line, answer) = self.process.hear(limit)?;
        if let Some(refused) = answer["error"].as_str() {
            return Err(PeerError::Refused(refused.to_owned()));
        }
        match answer["us"].as_f64() {
            Some(us) if us > 0.0 && us.is_finite() => Ok(us),
            _ => {
                self.process.end();
                Err(PeerError::Garbled(line))
            }
        }
    }
}

/// Peer whose process has started and may still be loading its libraries.
#[derive(Debug)]
pub struct Starting(Process);

impl Starting {
    /// Starts the process without waiting for it.
    ///
    /// # Errors
    /// Returns [`PeerError::Start`] if the process cannot be started.
    pub fn new(command: Command) -> Result<Self, PeerError> {
        Process::start(command).map(Self)
    }

    /// Writes a Python program for PyTorch to a directory, beside the module `torch_peer` that it
    /// imports, and starts it.
    ///
    /// # Errors
    /// Returns [`PeerError::Missing`] if a file cannot be written, and [`PeerError::Start`] if
    /// Python cannot be started.
    pub fn torch(directory: &Path, name: &str, program: &str) -> Result<Self, PeerError> {
        put(directory, "torch_peer.py", include_str!("../peers/torch_peer.py"))?;
        let mut command = Command::new("python3");
        command.arg(put(directory, name, program)?);
        Self::new(command)
    }

    /// Waits for the first line.
    ///
    /// # Errors
    /// Returns the errors of [`Peer::start`].
    pub fn finish(mut self, limit: Duration) -> Result<Peer, PeerError> {
        let (line, hello) = self.0.hear(limit)?;
        if let Some(missing) = hello["missing"].as_str() {
            return Err(PeerError::Missing(missing.to_owned()));
        }
        match hello["name"].as_str() {
            Some(name) => Ok(Peer { name: name.to_owned(), process: self.0 }),
            None => Err(PeerError::Garbled(line)),
        }
    }
}

/// Child process that is killed and waited for when it is dropped.
#[derive(Debug)]
struct Process {
    child: Child,
    /// Standard input of the process. `None` after the process has ended.
    to: Option<ChildStdin>,
    lines: Receiver<String>,
    complaints: Receiver<String>,
}

impl Process {
    fn start(mut command: Command) -> Result<Self, PeerError> {
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let started = pipes.spawn();
        let program = command.get_program().to_string_lossy().into_owned();
        let start = |reason: String| PeerError::Start { program: program.clone(), reason };
        let mut child = started.map_err(|error| start(error.to_string()))?;
        let (to, from, complaints) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(from), Some(complaints)) = (from, complaints) else {
            return Err(start("its pipes are missing".to_owned()));
        };
        let complaints = end_of(complaints);
        Ok(Self { child, to, lines: lines(from), complaints })
    }

    /// Writes a line to its standard input.
    fn say(&mut self, line: &str) -> Result<(), PeerError> {
        let written = self.to.as_mut().map(|to| writeln!(to, "{line}").and_then(|()| to.flush()));
        match written {
            Some(Ok(())) => Ok(()),
            _ => Err(self.ended()),
        }
    }

    /// Reads the next line of its standard output, as text and as JSON.
    fn hear(&mut self, limit: Duration) -> Result<(String, Value), PeerError> {
        let line = match self.lines.recv_timeout(limit) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => {
                self.end();
                return Err(PeerError::Late(limit.as_secs()));
            }
            Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
        };
        match serde_json::from_str(&line) {
            Ok(value) => Ok((line, value)),
            Err(_) => {
                self.end();
                Err(PeerError::Garbled(line))
            }
        }
    }

    /// Returns the error of a process that ended by itself.
    fn ended(&mut self) -> PeerError {
        self.end();
        let complaints = self.complaints.recv_timeout(LAST_WORDS).unwrap_or_default();
        let last = complaints.lines().map(str::trim).rfind(|line| !line.is_empty());
        PeerError::Ended(last.unwrap_or("no reason was printed").to_owned())
    }

    fn end(&mut self) {
        // An idle peer ends when its input is closed. A busy peer is killed. Killing a process that
        // has ended has no effect.
        self.to = None;
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts a thread that sends each line when it arrives.
fn lines(from: ChildStdout) -> Receiver<String> {
    let (send, receive) = channel();
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                break;
            }
        }
    });
    receive
}

/// Starts a thread that reads a pipe to its end, so that the writer never blocks, and sends the
/// last bytes.
fn end_of(mut from: ChildStderr) -> Receiver<String> {
    let (send, receive) = channel();
    thread::spawn(move || {
        let mut kept = Vec::new();
        let mut buffer = [0; 1024];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            kept.extend_from_slice(&buffer[..read]);
            if kept.len() > 2 * KEPT {
                kept.drain(..kept.len() - KEPT);
            }
        }
        // The receiver may have been dropped.
        _ = send.send(String::from_utf8_lossy(&kept).into_owned());
    });
    receive
}

/// Writes a peer's program to a directory, and returns its path.
///
/// # Errors
/// Returns [`PeerError::Missing`] if it cannot be written.
pub fn put(directory: &Path, name: &str, program: &str) -> Result<PathBuf, PeerError> {
    let path = directory.join(name);
    let written = fs::write(&path, program);
    written
        .map_err(|error| PeerError::Missing(format!("cannot write {}: {error}", path.display())))?;
    Ok(path)
}

/// Runs a program, such as a compiler, and waits for its end.
///
/// # Errors
/// Returns [`PeerError::Start`] if the program cannot be started, and [`PeerError::Late`] if it
/// exceeds the limit. If it fails, returns [`PeerError::Ended`] with the first line of its standard
/// error.
pub fn run(mut command: Command, limit: Duration) -> Result<(), PeerError> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let started = command.spawn();
    let program = command.get_program().to_string_lossy().into_owned();
    let start = |reason: String| PeerError::Start { program: program.clone(), reason };
    let mut child = started.map_err(|error| start(error.to_string()))?;
    let complaints = child.stderr.take().map(end_of);
    let since = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if since.elapsed() < limit => thread::sleep(POLL),
            Ok(None) => {
                _ = child.kill();
                _ = child.wait();
                return Err(PeerError::Late(limit.as_secs()));
            }
            Err(error) => return Err(start(error.to_string())),
        }
    };
    if status.success() {
        return Ok(());
    }
    let complaints = complaints.and_then(|complaints| complaints.recv_timeout(LAST_WORDS).ok());
    let complaints = complaints.unwrap_or_default();
    let first = complaints.lines().find(|line| line.contains("error"));
    let first = first.or(complaints.lines().next()).unwrap_or("no reason was printed");
    Err(PeerError::Ended(first.trim().to_owned()))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use serde_json::json;

    const SOON: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    /// Starts a peer that reports its name and then runs the script.
    fn peer(script: &str) -> Peer {
        let hello = r#"echo '{"name": "it 1.0"}'"#;
        Peer::start(shell(&format!("{hello}\n{script}")), SOON).expect("a peer")
    }

    fn ask(peer: &mut Peer) -> Result<f64, PeerError> {
        peer.ask(&json!({"op": "sum"}), SOON)
    }

    #[test]
    fn a_question_has_an_answer() {
        let script = r#"while read line; do case "$line" in
            *sum*) echo '{"us": 12.5}';; *) echo '{"error": "unknown"}';; esac; done"#;
        let mut peer = peer(script);
        assert_eq!(peer.name(), "it 1.0");
        assert_eq!(ask(&mut peer).expect("a time"), 12.5);
        let refused = peer.ask(&json!({"op": "?"}), SOON).expect_err("refused");
        assert!(!refused.is_final() && refused.to_string() == "unknown");
        assert_eq!(ask(&mut peer).expect("it goes on"), 12.5);
    }

    #[test]
    fn invalid_answers_end_a_peer() {
        for script in ["read x; echo '{\"us\": -1}'; sleep 100", "read x; echo hello; sleep 100"] {
            let error = ask(&mut peer(script)).expect_err(script);
            assert!(matches!(error, PeerError::Garbled(_)) && error.is_final(), "{error}");
        }
    }

    #[test]
    fn one_that_fails_says_why() {
        let mut failing = peer("read x; echo first >&2; echo 'out of memory' >&2; exit 3");
        assert_eq!(
            ask(&mut failing).expect_err("ended").to_string(),
            "the peer ended: out of memory"
        );
        assert!(matches!(ask(&mut failing), Err(PeerError::Ended(_))));
        let missing = Peer::start(shell(r#"echo '{"missing": "no module"}'"#), SOON);
        assert_eq!(missing.expect_err("missing").to_string(), "no module");
        let none = Peer::start(Command::new("no-such-program"), SOON).expect_err("none");
        assert!(none.to_string().contains("`no-such-program` cannot be started"), "{none}");
    }

    #[test]
    fn one_that_says_nothing_is_ended() {
        let since = Instant::now();
        let mut silent = peer("sleep 100");
        let error = silent.ask(&json!({}), Duration::from_millis(100)).expect_err("late");
        assert!(matches!(error, PeerError::Late(_)), "{error}");
        drop(peer("sleep 100"));
        assert!(since.elapsed() < Duration::from_secs(50));
    }

    #[test]
    fn a_compiler_is_run_to_its_end() {
        run(shell("exit 0"), SOON).expect("a success");
        let failed = run(shell("echo; echo 'x.cu(3): error: no' >&2; echo more >&2; exit 1"), SOON);
        assert_eq!(failed.expect_err("failed").to_string(), "the peer ended: x.cu(3): error: no");
        let late = run(shell("exec sleep 100"), Duration::from_millis(50));
        assert!(matches!(late, Err(PeerError::Late(0))));
    }
}
