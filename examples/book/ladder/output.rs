//! Where results go: JSON lines or tables on the standard output.

use gemm_bench::cli::Failure;
use gemm_bench::report::{StageRow, write_line};
use gemm_bench::table::Table;
use std::io::Write;

/// The standard output.
pub struct Output {
    json: bool,
}

impl Output {
    pub fn new(json: bool) -> Self {
        Self { json }
    }

    /// Says something about the run: beside the results where those are JSON.
    pub fn say(&mut self, text: &str) -> Result<(), Failure> {
        if self.json {
            writeln!(std::io::stderr(), "{text}")?;
        } else {
            writeln!(std::io::stdout(), "{text}")?;
        }
        Ok(())
    }

    /// Writes a result, if results are written one by one.
    pub fn row(&mut self, row: &StageRow) -> Result<(), Failure> {
        if self.json {
            write_line(&mut std::io::stdout().lock(), row)?;
        }
        Ok(())
    }

    /// Writes a table, if results are shown in tables.
    pub fn table(&mut self, table: &Table) -> Result<(), Failure> {
        if !self.json {
            writeln!(std::io::stdout(), "\n{}\n", table.text())?;
        }
        Ok(())
    }
}
