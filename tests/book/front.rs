//! Sorting and comparison in the tables of the front page agree with the reports.

use crate::browser::session::Session;
use crate::{page, report_of};
use gemm_book::report::Report;
use gemm_dsl::stages;
use gemm_needs::Need;
use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};
use std::sync::Arc;

/// Numeric column in which several stages have equal values.
const COLUMN: &str = "Registers, sm_90";

pub fn trials() -> Vec<Trial> {
    vec![
        Need::Browser.trial("front::a_click_sorts_by_a_column", sorts),
        Need::Browser.trial("front::the_address_sorts", sorts_by_address),
        Need::Browser.trial("front::two_marked_stages_are_compared", compares),
    ]
}

/// Reports of all reductions, in the order of the ladder.
fn reductions() -> Result<Vec<Arc<Report>>, Failed> {
    stages::reduce().into_iter().map(|stage| report_of("reduce", stage.index)).collect()
}

fn registers(report: &Report) -> Option<u32> {
    report.residents.iter().find(|of| of.arch == "sm_90").map(|of| of.registers)
}

/// Titles sorted by registers. Stages with equal numbers keep the order of the ladder in both
/// directions.
fn by_registers(is_descending: bool) -> Result<Vec<String>, Failed> {
    let mut reports = reductions()?;
    let key = |report: &Arc<Report>| registers(report).unwrap_or(u32::MAX);
    match is_descending {
        true => reports.sort_by_key(|report| std::cmp::Reverse(key(report))),
        false => reports.sort_by_key(key),
    }
    Ok(reports.iter().map(|report| report.title.clone()).collect())
}

fn titles(reports: &[Arc<Report>]) -> Vec<String> {
    reports.iter().map(|report| report.title.clone()).collect()
}

/// Front page opened at an address.
fn opened(address: &str) -> Result<Session, Failed> {
    let mut session = Session::start()?;
    session.size(1280, 800)?;
    session.open("index.html", page("index.html")?, address)?;
    Ok(session)
}

/// Order of the stages in the table of reductions.
fn order(session: &mut Session) -> Result<Vec<String>, Failed> {
    let rows =
        "[...document.querySelectorAll('#reduce .ladder tbody th a')].map((a) => a.textContent)";
    Ok(serde_json::from_value(session.value(rows)?)?)
}

/// Header cell of the column.
const HEAD: &str = "[...document.querySelectorAll('#reduce .ladder thead th')].find((th) => \
                    th.textContent === 'Registers, sm_90')";

fn same<T: PartialEq + std::fmt::Debug>(found: T, expected: T) -> Result<(), Failed> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{found:?} instead of {expected:?}").into())
    }
}

/// Clicks sort ascending, descending, and in the order of the ladder. The address stores the order.
fn sorts() -> Result<(), Failed> {
    let mut session = opened("")?;
    let column = session.value(&format!("{HEAD}.cellIndex"))?;
    let ladder = titles(&reductions()?);
    let [up, down] = [by_registers(false)?, by_registers(true)?];
    if up == ladder || down == ladder || up == down {
        return Err("the order by registers does not differ from that of the ladder".into());
    }
    let ways = [(up, "ascending"), (down, "descending"), (ladder, "")];
    for (expected, way) in ways {
        session.click_on(&format!("{HEAD}.querySelector('button')"))?;
        same(order(&mut session)?, expected)?;
        let said = session.value(&format!("{HEAD}.getAttribute('aria-sort') ?? ''"))?;
        same(said, json!(way))?;
        let address = session.value("location.hash")?;
        let sorted = format!("#sort=reduce.{column}.{way}");
        same(address, json!(if way.is_empty() { "" } else { &*sorted }))?;
    }
    Ok(())
}

/// An address sorts one table of the open page. A new address sorts another table, and an unknown
/// column sorts nothing.
fn sorts_by_address() -> Result<(), Failed> {
    let mut session = opened("")?;
    let column = session.value(&format!("{HEAD}.cellIndex"))?;
    let ladder = titles(&reductions()?);
    for (address, expected) in [
        (format!("#sort=reduce.{column}.descending"), by_registers(true)?),
        (format!("#sort=sgemm.{column}.descending"), ladder.clone()),
        (format!("#sort=reduce.{column}.ascending"), by_registers(false)?),
        ("#sort=reduce.99.ascending".to_owned(), ladder),
    ] {
        // The order is read after the `hashchange` event.
        session.value(&format!(
            "new Promise((done) => {{ addEventListener('hashchange', done, {{ once: true }}); \
             location.hash = '{address}'; }})"
        ))?;
        same(order(&mut session)?, expected)?;
    }
    same(session.complaints().len(), 0)
}

/// Cells of a row of the comparison.
fn compared(session: &mut Session, what: &str) -> Result<Vec<String>, Failed> {
    let row = format!(
        "[...document.querySelectorAll('#reduce .compare tbody tr')]
         .filter((row) => row.cells[0].textContent === '{what}')
         .flatMap((row) => [...row.cells].slice(1).map((cell) => cell.textContent))"
    );
    Ok(serde_json::from_value(session.value(&row)?)?)
}

/// Two stages are compared. If a third is marked, it replaces the first.
fn compares() -> Result<(), Failed> {
    let reports = reductions()?;
    let mut session = opened("")?;
    let mark = |session: &mut Session, stage: usize| {
        let title = &reports[stage].title;
        session
            .click_on(&format!("document.querySelector('input[aria-label=\"Compare {title}\"]')"))
    };
    // Clicked stages, and the stages that are compared afterwards. The last clicks unmark one stage
    // and mark another.
    let clicks: [(&[usize], [usize; 2]); 3] =
        [(&[2, 7], [2, 7]), (&[5], [7, 5]), (&[5, 3], [7, 3])];
    for (clicked, [one, other]) in clicks {
        for stage in clicked {
            mark(&mut session, *stage)?;
        }
        let [before, now] = [&reports[one], &reports[other]];
        let title = session.value("document.querySelector('#reduce .compare h3').textContent")?;
        same(title, json!(format!("{} beside {}", before.title, now.title)))?;
        let [a, b] = [before, now].map(|report| registers(report).unwrap_or(0));
        let said = compared(&mut session, COLUMN)?;
        match &said[..] {
            [x, y, factor] if a != b => {
                same([&**x, &**y], [&*a.to_string(), &*b.to_string()])?;
                let factor: f64 = factor.trim_start_matches("× ").parse()?;
                same((factor - f64::from(b) / f64::from(a)).abs() < 0.005 * factor, true)?;
            }
            said => same(said.is_empty() && a == b, true)?,
        }
        let keys = |report: &Report| {
            report
                .line
                .split(", ")
                .filter(|key| !key.is_empty())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let own = |report, other| {
            let others = keys(other);
            let own: Vec<String> =
                keys(report).into_iter().filter(|key| !others.contains(key)).collect();
            if own.is_empty() { "none".to_owned() } else { own.join(", ") }
        };
        let said = compared(&mut session, "Keys that the other lacks")?;
        same(said, vec![own(before, now), own(now, before), String::new()])?;
        let address: Value = session.value("location.hash")?;
        let files = [one, other].map(|stage| {
            let name = stages::reduce()[stage].name;
            format!("reduce_{stage:02}_{name}.html")
        });
        same(address, json!(format!("#compare={}", files.join(","))))?;
    }
    same(session.complaints().len(), 0)
}
