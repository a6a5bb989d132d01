//! File of times, with a JSON object per line. The first line names the GPU.
//!
//! Each time is appended immediately, so that an interrupted run loses nothing and the next run can
//! continue.

use crate::cli::{Failure, named};
use crate::shapes::GemmShape;
use gemm_dsl::spec::GemmLayout;
use gemm_dsl::tables::Target;
use gemm_oracle::product::Size;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Entry for cuBLAS, used instead of a spec.
pub const CUBLAS: &str = "cuBLAS";

/// Maximum extent that conditions of tables support.
const MOST: usize = i32::MAX as usize;

/// GPU on which the times were measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    pub device: String,
    /// Compute capability: 90 for `sm_90`.
    pub arch: u32,
    pub sms: u32,
}

impl Head {
    /// Returns the target that conditions of tables refer to.
    pub fn target(&self) -> Target {
        Target { arch: self.arch, sms: self.sms }
    }
}

/// Measurement of a spec at a shape.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Time {
    /// Microseconds of a launch, the median over replays of a graph.
    Us(f64),
    /// Microseconds of a single launch. The spec was too slow for more launches.
    SlowUs(f64),
    /// The kernel does not support this shape, or failed to run.
    Refused,
}

impl Time {
    /// Returns the microseconds of a launch, if it was timed.
    pub fn us(self) -> Option<f64> {
        match self {
            Self::Us(us) | Self::SlowUs(us) => Some(us),
            Self::Refused => None,
        }
    }
}

/// Line of the file after the first one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct TimesEntry {
    m: usize,
    n: usize,
    k: usize,
    layout: String,
    line: String,
    #[serde(flatten)]
    time: TimeValue,
}

/// [`Time`] as a key with its value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TimeValue {
    Us(f64),
    SlowUs(f64),
    Refused(bool),
}

/// All known times, in the order in which their shapes first appeared.
#[derive(Debug)]
pub struct TimesFile {
    pub head: Head,
    shapes: Vec<GemmShape>,
    times: HashMap<GemmShape, Vec<(String, Time)>>,
    /// File to append to, with its path.
    file: Option<(PathBuf, File)>,
}

impl TimesFile {
    /// Creates an empty set of times without a file.
    pub fn new(head: Head) -> Self {
        Self { head, shapes: Vec::new(), times: HashMap::new(), file: None }
    }

    /// Parses the text of a file. An incomplete last line is ignored.
    ///
    /// # Errors
    /// Returns a message that names the line and its fault.
    pub fn read(text: &str) -> Result<Self, String> {
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut lines = whole.lines().enumerate();
        let (_, head) = lines.next().ok_or("no line names a GPU")?;
        let head: Head = serde_json::from_str(head).map_err(|error| format!("line 1: {error}"))?;
        if !(1..=MOST).contains(&(head.sms as usize)) || !(1..=MOST).contains(&(head.arch as usize))
        {
            return Err(format!("line 1: no GPU has {} SMs of sm_{}", head.sms, head.arch));
        }
        let mut times = Self::new(head);
        for (number, line) in lines {
            let entry: Result<TimesEntry, String> =
                serde_json::from_str(line).map_err(|error| error.to_string());
            let read = entry.and_then(|entry| {
                let layout: GemmLayout =
                    entry.layout.parse().map_err(|_| "no layout".to_owned())?;
                let extents = [entry.m, entry.n, entry.k];
                if let Some(extent) = extents.iter().find(|extent| !(1..=MOST).contains(*extent)) {
                    return Err(format!("{extent} is not an extent"));
                }
                let size = Size::new(entry.m, entry.n, entry.k);
                let time = match entry.time {
                    TimeValue::Us(us) if us > 0.0 => Time::Us(us),
                    TimeValue::SlowUs(us) if us > 0.0 => Time::SlowUs(us),
                    TimeValue::Refused(_) => Time::Refused,
                    TimeValue::Us(us) | TimeValue::SlowUs(us) => {
                        return Err(format!("{us} is not a time"));
                    }
                };
                Ok((GemmShape { size, layout }, entry.line, time))
            });
            let (shape, line, time) =
                read.map_err(|error| format!("line {}: {error}", number + 1))?;
            times.insert(shape, line, time);
        }
        Ok(times)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Returns [`Failure::Usage`] if the file cannot be read.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let refused =
            |reason: String| Failure::Usage(format!("--times {}: {reason}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
        Self::read(&text).map_err(refused)
    }

    /// Opens a file for appending. If the file is missing or empty, it is created.
    ///
    /// # Errors
    /// Returns [`Failure::Usage`] if the file belongs to another GPU or cannot be read, and
    /// [`Failure::Output`] if it cannot be written.
    pub fn go_on(path: &Path, head: Head) -> Result<Self, Failure> {
        let known = match std::fs::metadata(path) {
            Ok(file) if file.len() > 0 => Some(Self::open(path)?),
            _ => None,
        };
        if let Some(known) = known.as_ref().filter(|known| known.head != head) {
            let (there, here) = (&known.head.device, &head.device);
            return Err(Failure::Usage(format!(
                "--times {}: recorded on {there}, not on {here}. Give another file",
                path.display()
            )));
        }
        let written = || {
            let mut file = OpenOptions::new().create(true).append(true).open(path)?;
            match &known {
                None => write_line(&mut file, &head)?,
                // Removes an incomplete last line.
                Some(_) => {
                    let text = std::fs::read(path)?;
                    let whole =
                        text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
                    file.set_len(whole as u64)?;
                }
            }
            Ok(file)
        };
        let file = written().map_err(|error| named(path, &error))?;
        let mut times = known.unwrap_or_else(|| Self::new(head));
        times.file = Some((path.to_owned(), file));
        Ok(times)
    }

    fn insert(&mut self, shape: GemmShape, line: String, time: Time) {
        let of = self.times.entry(shape).or_insert_with(|| {
            self.shapes.push(shape);
            Vec::new()
        });
        match of.iter_mut().find(|(known, _)| *known == line) {
            Some((_, known)) => *known = time,
            None => of.push((line, time)),
        }
    }

    /// Adds a time, and appends it to the file.
    ///
    /// # Errors
    /// Returns [`Failure::Output`] if the file cannot be written.
    pub fn add(&mut self, shape: GemmShape, line: &str, time: Time) -> Result<(), Failure> {
        if let Some((path, file)) = &mut self.file {
            let Size { m, n, k } = shape.size;
            let time = match time {
                Time::Us(us) => TimeValue::Us(us),
                Time::SlowUs(us) => TimeValue::SlowUs(us),
                Time::Refused => TimeValue::Refused(true),
            };
            let layout = shape.layout.to_string();
            let entry = TimesEntry { m, n, k, layout, line: line.to_owned(), time };
            write_line(file, &entry).map_err(|error| named(path, &error))?;
        }
        self.insert(shape, line.to_owned(), time);
        Ok(())
    }

    /// Returns the shapes with measurements.
    pub fn shapes(&self) -> &[GemmShape] {
        &self.shapes
    }

    /// Returns all measurements at a shape.
    pub fn at_shape(&self, shape: &GemmShape) -> &[(String, Time)] {
        self.times.get(shape).map_or(&[], Vec::as_slice)
    }

    /// Returns the measurement of a spec at a shape.
    pub fn get(&self, shape: &GemmShape, line: &str) -> Option<Time> {
        self.at_shape(shape).iter().find(|(known, _)| known == line).map(|(_, time)| *time)
    }
}

fn write_line(file: &mut File, value: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_string(value)?;
    text.push('\n');
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Head {
        Head { device: "it".to_owned(), arch: 90, sms: 132 }
    }

    #[test]
    fn a_run_goes_on_where_another_one_ended() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("times");
        let shape = |m| GemmShape { size: Size::new(m, 3, 4), layout: GemmLayout::Nt };
        let mut times = TimesFile::go_on(&path, head()).expect("a new file");
        times.add(shape(1), "tile: 8x8x8", Time::Us(1.25)).expect("added");
        times.add(shape(2), CUBLAS, Time::SlowUs(7.0)).expect("added");
        drop(times);
        // Incomplete line of a killed run.
        let mut text = std::fs::read_to_string(&path).expect("text");
        text.push_str("{\"m\":1,\"n\"");
        std::fs::write(&path, text).expect("written");
        let mut times = TimesFile::go_on(&path, head()).expect("the file");
        assert_eq!(times.get(&shape(1), "tile: 8x8x8"), Some(Time::Us(1.25)));
        times.add(shape(1), "tile: 4x4x4", Time::Refused).expect("added");
        drop(times);
        let times = TimesFile::open(&path).expect("the file");
        assert_eq!((times.shapes(), &times.head), (&[shape(1), shape(2)][..], &head()));
        assert_eq!(times.get(&shape(2), CUBLAS), Some(Time::SlowUs(7.0)));
        assert_eq!(times.get(&shape(1), "tile: 4x4x4"), Some(Time::Refused));
        assert_eq!(times.get(&shape(2), "tile: 4x4x4"), None);
        let other = Head { sms: 108, ..head() };
        let refused = TimesFile::go_on(&path, other).expect_err("another GPU").to_string();
        assert!(refused.contains("Give another file"), "{refused}");
    }

    #[test]
    fn invalid_times_are_rejected_with_their_line() {
        let head = r#"{"device":"it","arch":90,"sms":132}"#;
        let line = r#"{"m":1,"n":2,"k":3,"layout":"nn","line":"","us":"#;
        assert_eq!(
            TimesFile::read(&format!("{head}\n{line}2.5}}\n")).map(|t| t.shapes().len()),
            Ok(1)
        );
        for (text, reason) in [
            (String::new(), "names a GPU"),
            ("{}\n".to_owned(), "line 1: missing field"),
            (format!("{head}\n{line}-1.0}}\n"), "line 2: -1 is not a time"),
            (format!("{head}\n{{}}\n"), "line 2: "),
            (head.replace("132", "0") + "\n", "line 1: no GPU has 0 SMs"),
            (
                format!("{head}\n{}\n", line.replace(":2,", ":0,") + "1.0}"),
                "line 2: 0 is not an extent",
            ),
            (
                format!("{head}\n{}\n", line.replace(":3,", ":2147483648,") + "1.0}"),
                "line 2: 2147483648 is not an extent",
            ),
            (format!("{head}\n{}\n", line.replace("nn", "nx") + "1.0}"), "line 2: no layout"),
        ] {
            let error = TimesFile::read(&text).expect_err(&text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
