//! Tables with a step slider display the report's data for the selected step.

use crate::browser::session::Session;
use crate::{page, report_of};
use gemm_needs::Need;
use libtest_mimic::{Failed, Trial};
use serde_json::json;

pub fn trials() -> Vec<Trial> {
    vec![
        Need::Browser.trial("stepper::rounds_are_those_of_the_report", rounds),
        Need::Browser.trial("stepper::steps_of_a_tree_are_too", columns),
    ]
}

/// Display of a step: its title, its parts, and the address.
fn shown(session: &mut Session, name: &str) -> Result<(String, Vec<String>, String), Failed> {
    let asks = format!(
        "[document.querySelector('output[for=step-{name}]').textContent,
          [...document.querySelector('#step-{name}').closest('p').nextElementSibling
            .querySelectorAll('span')].map((part) => part.textContent),
          location.hash]"
    );
    Ok(serde_json::from_value(session.value(&asks)?)?)
}

/// Steps through all positions with the right arrow key, starting at the one in the address, and
/// returns to the first with Home.
fn follows(page_name: &str, name: &str, expected: &[(String, Vec<String>)]) -> Result<(), Failed> {
    const FROM: usize = 2;
    let count = expected.len();
    if count <= FROM {
        return Err(format!("{page_name} has {count} steps").into());
    }
    let mut session = Session::start()?;
    session.size(1280, 800)?;
    session.open(page_name, page(page_name)?, &format!("#{name}={FROM}"))?;
    let check = |session: &mut Session, step: usize, address: String| {
        let (title, parts) = &expected[step - 1];
        let colon = if title.is_empty() { "" } else { ": " };
        let expected = (format!("{step} of {count}{colon}{title}"), parts.clone(), address);
        let found = shown(session, name)?;
        if found == expected {
            Ok(())
        } else {
            Err(Failed::from(format!("{found:?} instead of {expected:?}")))
        }
    };
    check(&mut session, FROM, format!("#{name}={FROM}"))?;
    session.value(&format!("document.getElementById('step-{name}').focus()"))?;
    for step in FROM + 1..=count {
        session.press("ArrowRight", 39)?;
        check(&mut session, step, format!("#{name}={step}"))?;
    }
    session.press("Home", 36)?;
    check(&mut session, 1, format!("#{name}=1"))?;
    // A step in the address that does not exist is ignored.
    session.open(page_name, page(page_name)?, &format!("#{name}={}", count + 1))?;
    check(&mut session, 1, format!("#{name}={}", count + 1))?;
    let marked = session
        .value(&format!("document.querySelectorAll('[data-step={name}] .at').length > 0"))?;
    if marked != json!(true) || !session.complaints().is_empty() {
        return Err(format!("{marked}, {:?}", session.complaints()).into());
    }
    Ok(())
}

fn rounds() -> Result<(), Failed> {
    let steps = &report_of("sgemm", 22)?.steps;
    let of = |round: &gemm_book::steps::Round| {
        let title = round
            .value
            .map_or("before the loop".to_owned(), |value| format!("{} = {value}", steps.var));
        (title, round.slots.iter().map(|slot| slot.text()).collect())
    };
    let expected: Vec<_> = steps.rounds.iter().map(of).collect();
    follows("sgemm_22_fastest.html", "rounds", &expected)
}

fn columns() -> Result<(), Failed> {
    let report = report_of("reduce", 2)?;
    let folds = report.folds.as_ref().ok_or("a tree")?;
    let table = &folds.tables[0];
    let of = |column: &gemm_book::partials::PartialStep| {
        let cell = |row: usize| match column.cell(&row) {
            None => String::new(),
            Some(cell) if !cell.counts => format!("({})", cell.value),
            Some(cell) => {
                let thread = cell.thread.map_or(String::new(), |thread| format!(" t{thread}"));
                format!("{}{thread}", cell.value)
            }
        };
        (column.name.clone(), (0..table.rows.len()).map(cell).collect())
    };
    let expected: Vec<_> = table.columns.iter().map(of).collect();
    follows("reduce_02_sequential.html", "F1", &expected)
}
