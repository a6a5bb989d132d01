//! Output of results as JSON lines or tables.

use gemm_bench::cli::Failure;
use gemm_bench::report::{StageRow, write_line};
use gemm_bench::table::Table;
use std::io::Write;

/// Writer of results to the standard output.
pub struct Output {
    json: bool,
}

impl Output {
    pub fn new(json: bool) -> Self {
        Self { json }
    }

    /// Prints a message. It goes to the standard error if the results are JSON.
    pub fn say(&mut self, text: &str) -> Result<(), Failure> {
        if self.json {
            writeln!(std::io::stderr(), "{text}")?;
        } else {
            writeln!(std::io::stdout(), "{text}")?;
        }
        Ok(())
    }

    /// Writes a result, if the output is JSON.
    pub fn row(&mut self, row: &StageRow) -> Result<(), Failure> {
        if self.json {
            write_line(&mut std::io::stdout().lock(), row)?;
        }
        Ok(())
    }

    /// Writes a table, unless the output is JSON.
    pub fn table(&mut self, table: &Table) -> Result<(), Failure> {
        if !self.json {
            writeln!(std::io::stdout(), "\n{}\n", table.text())?;
        }
        Ok(())
    }
}
