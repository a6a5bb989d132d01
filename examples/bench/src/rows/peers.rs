//! PyTorch and CUB, as peers of the reduction benchmark.

use super::graph::REPLAYS;
use super::problem::{Along, Fold, ReductionProblem};
use crate::cli::Failure;
use crate::peer::{self, Peer, PeerError, Starting, put};
use clap::ValueEnum;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const TORCH: &str = include_str!("../../peers/rows.py");

const CUB: &str = include_str!("../../peers/cub_rows.cu");

/// Time limit for loading the libraries, and for compiling.
const START: Duration = Duration::from_secs(240);

/// Time limit for the response to a request.
const ANSWER: Duration = Duration::from_secs(60);

/// Selection of peers on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PeersChoice {
    /// No peer
    None,
    /// PyTorch
    Torch,
    /// CUB
    Cub,
    /// PyTorch and CUB
    All,
}

/// Kind of a peer. Each has its own columns in the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerKind {
    Torch,
    Cub,
}

impl PeerKind {
    pub const ALL: [Self; 2] = [Self::Torch, Self::Cub];

    pub fn name(self) -> &'static str {
        match self {
            Self::Torch => "PyTorch",
            Self::Cub => "CUB",
        }
    }

    /// Returns true if the peer supports a problem.
    pub fn has(self, problem: &ReductionProblem) -> bool {
        match (self, problem.along) {
            (Self::Torch, Along::Whole | Along::Axis(_)) => true,
            (Self::Torch, Along::Segments(..)) | (Self::Cub, Along::Axis(_)) => false,
            (Self::Cub, Along::Whole) => {
                matches!(problem.fold, Fold::Sum | Fold::Compensated | Fold::Max | Fold::Argmax)
            }
            (Self::Cub, Along::Segments(..)) => problem.fold == Fold::Sum,
        }
    }
}

/// Running peers. Their processes end when this value is dropped.
#[derive(Debug, Default)]
pub struct Peers {
    all: Vec<(PeerKind, Peer)>,
    names: Vec<(PeerKind, String)>,
    /// Directory for the programs of the peers and for the file of segment offsets.
    directory: Option<TempDir>,
}

/// Responses of the peers to a problem.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answers {
    /// Time of a launch in microseconds, for each peer that responded with a time.
    pub times: Vec<(PeerKind, f64)>,
    /// Error messages of the other peers.
    pub complaints: Vec<String>,
}

/// Request to a peer, sent as a line of JSON.
#[derive(Debug, Serialize)]
struct Question<'q> {
    shape: &'q [usize],
    axis: Option<usize>,
    op: &'q str,
    r#type: String,
    launches: usize,
    replays: usize,
    /// File of the segment offsets, and the number of segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    offsets: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    segments: Option<usize>,
}

impl Peers {
    /// Starts the peers. Returns them, and a message for each peer that cannot be started.
    ///
    /// # Errors
    /// Returns [`Failure::Output`] if no temporary directory can be written.
    pub fn start(choice: PeersChoice) -> Result<(Self, Vec<String>), Failure> {
        let asked = |who| match choice {
            PeersChoice::None => false,
            PeersChoice::Torch => who == PeerKind::Torch,
            PeersChoice::Cub => who == PeerKind::Cub,
            PeersChoice::All => true,
        };
        if choice == PeersChoice::None {
            return Ok((Self::default(), Vec::new()));
        }
        let directory = tempfile::tempdir()?;
        // CUB is compiled while PyTorch loads.
        let torch = asked(PeerKind::Torch).then(|| torch(directory.path()));
        let cub = asked(PeerKind::Cub).then(|| cub(directory.path()));
        let torch = torch.map(|started| started?.finish(START));
        let (mut peers, mut lacks) = (Self::default(), Vec::new());
        for (who, started) in [(PeerKind::Torch, torch), (PeerKind::Cub, cub)] {
            match started {
                None => {}
                Some(Ok(peer)) => {
                    peers.names.push((who, peer.name().to_owned()));
                    peers.all.push((who, peer));
                }
                Some(Err(error)) => {
                    lacks.push(format!("{} is not compared: {error}", who.name()));
                }
            }
        }
        peers.directory = Some(directory);
        Ok((peers, lacks))
    }

    /// Returns the peers that started, with their versions. Peers that have ended since are
    /// included.
    pub fn names(&self) -> &[(PeerKind, String)] {
        &self.names
    }

    /// Requests the time of a launch from each peer that supports the problem. The peer runs graphs
    /// of `launches` launches.
    ///
    /// # Errors
    /// Returns [`Failure::Output`] if the segment offsets cannot be written.
    pub fn ask(
        &mut self,
        problem: &ReductionProblem,
        launches: usize,
        offsets: Option<&[u32]>,
    ) -> Result<Answers, Failure> {
        let mut answers = Answers::default();
        if !self.all.iter().any(|(who, _)| who.has(problem)) {
            return Ok(answers);
        }
        let file = match (offsets, &self.directory) {
            (Some(offsets), Some(directory)) => Some(write(directory.path(), offsets)?),
            _ => None,
        };
        let question = Question {
            shape: &problem.shape,
            axis: match problem.along {
                Along::Axis(axis) => Some(axis),
                Along::Whole | Along::Segments(..) => None,
            },
            // The peers have only a plain sum.
            op: if problem.fold == Fold::Compensated { Fold::Sum } else { problem.fold }.name(),
            r#type: problem.element.to_string(),
            launches,
            replays: REPLAYS,
            offsets: file.map(|file| file.display().to_string()),
            segments: offsets.map(|offsets| offsets.len().saturating_sub(1)),
        };
        self.all.retain_mut(|(who, peer)| {
            if !who.has(problem) {
                return true;
            }
            match peer.ask(&question, ANSWER) {
                Ok(us) => answers.times.push((*who, us)),
                Err(error) => {
                    answers.complaints.push(format!("{}, {problem}: {error}", who.name()));
                    return !error.is_final();
                }
            }
            true
        });
        Ok(answers)
    }
}

fn torch(directory: &Path) -> Result<Starting, PeerError> {
    Starting::torch(directory, "rows.py", TORCH)
}

fn cub(directory: &Path) -> Result<Peer, PeerError> {
    let source = put(directory, "cub_rows.cu", CUB)?;
    let program = directory.join("cub_rows");
    let mut compile = Command::new("nvcc");
    compile.args(["-O3", "-arch=native", "-std=c++17", "-o"]).arg(&program).arg(source);
    peer::run(compile, START).map_err(|error| match error {
        PeerError::Ended(why) => PeerError::Missing(format!("nvcc cannot compile it: {why}")),
        other => other,
    })?;
    Peer::start(Command::new(program), START)
}

/// Writes offsets in native byte order.
fn write(directory: &Path, offsets: &[u32]) -> Result<PathBuf, Failure> {
    let path = directory.join("offsets");
    let bytes: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_ne_bytes()).collect();
    fs::write(&path, bytes)?;
    Ok(path)
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::segments::Lengths;
    use super::*;
    use gemm_runtime::spec::DataType;

    /// Replaces CUB with a shell that runs the script for each request. The request is in `$line`.
    fn peers(script: &str) -> Peers {
        let script = format!("echo '{{\"name\": \"it\"}}'; while read -r line; do {script}; done");
        let mut command = Command::new("sh");
        command.args(["-c", &script]);
        let peer = Peer::start(command, START).expect("a peer");
        let directory = Some(tempfile::tempdir().expect("a temporary directory"));
        Peers {
            all: vec![(PeerKind::Cub, peer)],
            names: vec![(PeerKind::Cub, "it".to_owned())],
            directory,
        }
    }

    fn problem(along: Along, fold: Fold) -> ReductionProblem {
        ReductionProblem { shape: vec![100], along, fold, element: DataType::F32, how: None }
    }

    /// Returns a message that contains the request.
    fn echoed(along: Along, fold: Fold, offsets: Option<&[u32]>) -> String {
        let mut peers = peers(r#"echo "{\"error\": \"$(echo "$line" | tr -d '"')\"}""#);
        let answers = peers.ask(&problem(along, fold), 7, offsets).expect("answers");
        assert_eq!((answers.times.len(), answers.complaints.len()), (0, 1));
        answers.complaints[0].clone()
    }

    #[test]
    fn a_question_says_what_is_measured() {
        let asked = echoed(Along::Whole, Fold::Compensated, None);
        let expected = "{shape:[100],axis:null,op:sum,type:f32,launches:7,replays:20}";
        assert!(asked.ends_with(expected), "{asked}");
        let segments = Along::Segments(Lengths::Uniform, 50);
        let asked = echoed(segments, Fold::Sum, Some(&[0, 50, 100]));
        assert!(asked.contains("offsets:/") && asked.ends_with("segments:2}"), "{asked}");
    }

    #[test]
    fn offsets_come_in_a_file() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = write(directory.path(), &[0, 3, 1 << 20]).expect("a file");
        let bytes = fs::read(path).expect("a file");
        assert_eq!(bytes, [0_u32, 3, 1 << 20].map(u32::to_ne_bytes).concat());
    }

    #[test]
    fn one_that_ended_is_asked_no_more() {
        let mut peers = peers("echo 'no memory' >&2; exit 1");
        let whole = problem(Along::Whole, Fold::Sum);
        let answers = peers.ask(&whole, 2, None).expect("answers");
        assert_eq!(answers.complaints, ["CUB, sum of 100: the peer ended: no memory"]);
        assert_eq!(peers.ask(&whole, 2, None).expect("answers"), Answers::default());
        assert_eq!(peers.names().len(), 1, "its column stays");
    }

    #[test]
    fn only_what_a_peer_has_is_asked() {
        let mut peers = peers(r#"echo '{"us": 2.5}'"#);
        let mut times =
            |along, fold| peers.ask(&problem(along, fold), 2, None).expect("answers").times;
        assert_eq!(times(Along::Whole, Fold::Max), [(PeerKind::Cub, 2.5)]);
        assert_eq!(times(Along::Whole, Fold::Dot), []);
        assert_eq!(times(Along::Axis(0), Fold::Sum), []);
    }
}
