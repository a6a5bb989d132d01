//! Runs of the programs that take figures.

use clap::Args;
use gemm_bench::cli::{Failure, Outcome, named, open_gpu, write_json};
use gemm_bench::figures::runs::{self, Call, FILE, Measured, MeasuredFigure, PLOTS, Run};
use gemm_bench::figures::{Figure, Figures};
use gemm_runtime::internal::gpus;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Files of a measurement: the values, and the output of `ladder`, which `times.py` reads.
pub const MEASURED: &str = "measured.json";
const LADDER: &str = "ladder.jsonl";

#[derive(Debug, Args)]
pub struct MeasureOptions {
    /// Folder of the results; runs that are already in it are not repeated
    folder: PathBuf,
    /// Figures to take, selected by the start of their ids, even if unchanged
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Print the commands, and run nothing
    #[arg(long)]
    list: bool,
}

/// Takes figures again, one run after the other. The values are written after each run.
///
/// # Errors
/// Returns an error that affects all runs.
pub fn measure(
    figures: &Figures,
    today: &BTreeMap<String, String>,
    options: &MeasureOptions,
) -> Result<Outcome, Failure> {
    let is_wanted = |figure: &&Figure| match &options.only[..] {
        [] => figure.is_outdated(today),
        starts => starts.iter().any(|start| figure.id.starts_with(&**start)),
    };
    let wanted: Vec<&Figure> = figures.all.iter().filter(is_wanted).collect();
    if options.list {
        for Run { calls, figures } in runs::runs(wanted) {
            for call in calls {
                super::say(&call.to_string())?;
            }
            let ids: Vec<&str> = figures.iter().map(|figure| &*figure.id).collect();
            super::say(&format!("    {}", ids.join(", ")))?;
        }
        return Ok(Outcome::Right);
    }
    let device = open_gpu()?;
    let gpus = gpus()?;
    fs::create_dir_all(&options.folder).map_err(|error| named(&options.folder, &error))?;
    let path = options.folder.join(MEASURED);
    let found = fs::read_to_string(&path).ok().and_then(|text| serde_json::from_str(&text).ok());
    let mut measured: Measured = found.unwrap_or_default();
    measured.device = device.name().to_owned();
    measured.driver = said("nvidia-smi", "--query-gpu=driver_version --format=csv,noheader")?;
    measured.date = said("date", "-u +%F")?;
    drop(device);
    let mut outcome = Outcome::Right;
    let is_left = |figure: &&Figure| !measured.figures.contains_key(&figure.id);
    let left: Vec<&Figure> = wanted.into_iter().filter(is_left).collect();
    for figure in left.iter().filter(|figure| figure.command.is_none()) {
        eprintln!("not taken: {} has no command", figure.id);
    }
    for run in runs::runs(left) {
        if let Some(needed) = run.figures.iter().filter_map(|f| f.gpus).find(|n| *n > gpus) {
            let ids: Vec<&str> = run.figures.iter().map(|figure| &*figure.id).collect();
            eprintln!("not taken: {} need {needed} GPUs", ids.join(", "));
            continue;
        }
        let objects = run.calls.iter().map(|call| {
            output(call, &run.figures, &options.folder)
                .map_err(|reason| format!("{call}: {reason}"))
        });
        match objects.collect::<Result<Vec<_>, _>>().map(|objects| objects.concat()) {
            Err(reason) => {
                eprintln!("not taken: {reason}");
                outcome = Outcome::Wrong;
            }
            Ok(objects) => {
                for figure in &run.figures {
                    match runs::take(figure, &objects) {
                        Err(reason) => {
                            eprintln!("not taken: {reason}");
                            outcome = Outcome::Wrong;
                        }
                        Ok(series) => {
                            let hash = today.get(&figure.id).cloned();
                            let taken = MeasuredFigure { hash, series };
                            measured.figures.insert(figure.id.clone(), taken);
                        }
                    }
                }
            }
        }
        write_json(&path, &measured)?;
    }
    super::say(&format!("{} figures in {}", measured.figures.len(), path.display()))?;
    Ok(outcome)
}

/// Runs a program, which is beside this one, and returns the objects of its output.
fn output(call: &Call<'_>, figures: &[&Figure], folder: &Path) -> Result<Vec<Value>, String> {
    let failed = |error: std::io::Error| error.to_string();
    let programs = std::env::current_exe().map_err(failed)?;
    let file = folder.join("output.json");
    let plots = figures.iter().flat_map(|figure| &figure.plots);
    let plots: Vec<String> =
        plots.map(|plot| in_folder(folder, plot).display().to_string()).collect();
    let arguments = call.arguments.iter().map(|word| match &**word {
        FILE => file.display().to_string(),
        PLOTS => plots.join(","),
        word => word.to_owned(),
    });
    eprintln!("{call}");
    let mut command = Command::new(programs.with_file_name(call.program));
    let command = command.args(arguments).stderr(Stdio::inherit());
    let output = command.output().map_err(failed)?;
    if !output.status.success() {
        return Err(format!("it ended with {}", output.status));
    }
    let text = match call.arguments.iter().any(|word| word == FILE) {
        true => fs::read_to_string(&file).map_err(failed)?,
        false => String::from_utf8_lossy(&output.stdout).into_owned(),
    };
    if call.program == "ladder" {
        let opened = OpenOptions::new().create(true).append(true).open(folder.join(LADDER));
        opened.and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed)?;
    }
    let objects = serde_json::Deserializer::from_str(&text).into_iter();
    let objects: Result<Vec<Value>, _> = objects.collect();
    objects.map_err(|error| format!("its output: {error}"))
}

/// Path of a plot in the folder of a measurement.
fn in_folder(folder: &Path, plot: &str) -> PathBuf {
    folder.join(Path::new(plot).file_name().unwrap_or_default())
}

/// Copies the plots of the measured figures to their places.
///
/// # Errors
/// Returns [`Failure::Output`] with the name of a plot that cannot be copied.
pub fn copy_plots(figures: &Figures, measured: &Measured, folder: &Path) -> Result<(), Failure> {
    let taken = figures.all.iter().filter(|figure| measured.figures.contains_key(&figure.id));
    for plot in taken.flat_map(|figure| &figure.plots) {
        let from = in_folder(folder, plot);
        fs::copy(&from, plot).map_err(|error| named(&from, &error))?;
    }
    Ok(())
}

/// Returns the first line that a program of the system prints.
fn said(program: &str, arguments: &str) -> Result<String, Failure> {
    let output = Command::new(program).args(arguments.split(' ')).output();
    let output = output.map_err(|error| Failure::Missing(format!("{program}: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().next() {
        Some(line) if output.status.success() => Ok(line.trim().to_owned()),
        _ => Err(Failure::Missing(format!("`{program} {arguments}` says nothing"))),
    }
}
