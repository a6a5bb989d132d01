//! The colours of pages, in both schemes.

use crate::page;
use libtest_mimic::Failed;
use std::collections::BTreeMap;

/// What is written, and on what: each on each.
const INKS: [&str; 3] = ["fg", "dim", "link"];
const PAPERS: [&str; 6] = ["bg", "l0", "l1", "l2", "l3", "heat"];

/// WCAG 2.2, AA, for text.
const LEAST: f64 = 4.5;

pub fn can_be_read() -> Result<(), Failed> {
    let html = page("index.html")?;
    let mut colours: BTreeMap<&str, [&str; 2]> = BTreeMap::new();
    for part in html.split("--").skip(1) {
        if let Some((name, rest)) = part.split_once(":light-dark(")
            && let Some((both, _)) = rest.split_once(')')
            && let Some((light, dark)) = both.split_once(',')
        {
            colours.insert(name, [light, dark]);
        }
    }
    for (ink, paper) in INKS.into_iter().flat_map(|ink| PAPERS.map(|paper| (ink, paper))) {
        let of = |name: &str| colours.get(name).copied().ok_or_else(|| format!("no colour {name}"));
        let (ink_of, paper_of) = (of(ink)?, of(paper)?);
        for (scheme, (a, b)) in ["light", "dark"].iter().zip(ink_of.iter().zip(paper_of)) {
            let contrast = contrast(luminance(a)?, luminance(b)?);
            if contrast < LEAST {
                return Err(format!("{ink} on {paper}, {scheme}: {contrast:.2}").into());
            }
        }
    }
    Ok(())
}

fn luminance(colour: &str) -> Result<f64, Failed> {
    let digits = colour.trim().trim_start_matches('#');
    let wide: String = match digits.len() {
        3 => digits.chars().flat_map(|c| [c, c]).collect(),
        _ => digits.to_owned(),
    };
    let part = |at: usize| -> Result<f64, Failed> {
        let value = f64::from(u8::from_str_radix(&wide[2 * at..2 * at + 2], 16)?) / 255.0;
        Ok(if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) })
    };
    Ok(0.2126 * part(0)? + 0.7152 * part(1)? + 0.0722 * part(2)?)
}

fn contrast(a: f64, b: f64) -> f64 {
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}
