//! Progress bars on the standard error, if it is a terminal.

use indicatif::{ProgressBar, ProgressStyle};

/// Creates a bar of `steps` steps. It draws nothing outside a terminal.
pub fn bar(steps: usize) -> ProgressBar {
    let bar = ProgressBar::new(steps as u64);
    // If the template is invalid, the default style stays.
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} [{elapsed}]") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    bar
}

/// Creates a spinner with a message, for work of unknown length. It draws nothing outside a
/// terminal.
pub fn spinner() -> ProgressBar {
    let spinner = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} [{elapsed}] {msg}") {
        spinner.set_style(style);
    }
    spinner.enable_steady_tick(std::time::Duration::from_millis(200));
    spinner
}
