//! Search spaces of specs.
//!
//! A space is a DSL spec whose entries may have alternatives, separated by `|`:
//! `tile: 64x64x8 | 64x64x16, double_buffer | stages: 3 | 4, raster: none | 8`. A value without a
//! key belongs to the previous key in its entry; `none` leaves the entry out. A closure can also be
//! an alternative: `epilogue: |acc| acc | |acc| max(acc, 0.0) | none`.
//!
//! A spec has each key at most once. If an alternative of a later entry repeats the first entry's
//! key, it therefore begins another spec: `tile: 16x16x16, pad_a: 4 | tile: 8x8x8, thread: 1x2` is
//! two specs.

use gemm_dsl::parse;

/// Union of specs with alternatives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space(Vec<Vec<SpaceEntry>>);

/// Alternatives of an entry. An empty alternative leaves the entry out.
type SpaceEntry = Vec<String>;

/// Point of a space: the index of a spec in the union, and the chosen alternative of each entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Point {
    line: usize,
    choices: Vec<usize>,
}

const NONE: &str = "none";

impl Space {
    /// Parses specs with alternatives.
    ///
    /// # Errors
    /// Returns a message that names the fault of a spec.
    pub fn parse(lines: &[&str]) -> Result<Self, String> {
        let lines: Result<Vec<_>, _> = lines.iter().map(|line| unions(line)).collect();
        let lines = lines?.concat();
        if lines.is_empty() { Err("a space needs a spec".to_owned()) } else { Ok(Self(lines)) }
    }

    /// Returns the number of points, valid or not.
    pub fn count(&self) -> usize {
        let points =
            |line: &Vec<SpaceEntry>| line.iter().map(Vec::len).fold(1, usize::saturating_mul);
        self.0.iter().map(points).fold(0, usize::saturating_add)
    }

    /// Describes the size of the space.
    pub fn describe(&self) -> String {
        match self.count() {
            1 => "1 combination".to_owned(),
            count => format!("{count} combinations"),
        }
    }

    /// Returns the DSL spec of a point.
    pub fn line(&self, point: &Point) -> String {
        let entries = self.0.get(point.line).into_iter().flatten();
        let chosen = entries.zip(&point.choices).filter_map(|(entry, &choice)| entry.get(choice));
        let chosen: Vec<&str> =
            chosen.map(String::as_str).filter(|text| !text.is_empty()).collect();
        chosen.join(", ")
    }

    pub fn random(&self, random: &mut fastrand::Rng) -> Point {
        let line = random.usize(..self.0.len());
        let choices = self.0[line].iter().map(|entry| random.usize(..entry.len()));
        Point { line, choices: choices.collect() }
    }

    /// Returns the points that differ in one entry.
    pub fn neighbours(&self, point: &Point) -> Vec<Point> {
        let mut found = Vec::new();
        for (entry, alternatives) in self.0.get(point.line).into_iter().flatten().enumerate() {
            for choice in 0..alternatives.len() {
                let mut neighbour = point.clone();
                if neighbour.choices[entry] != choice {
                    neighbour.choices[entry] = choice;
                    found.push(neighbour);
                }
            }
        }
        found
    }

    /// Returns all points in order.
    pub fn all(&self) -> impl Iterator<Item = Point> {
        self.0.iter().enumerate().flat_map(|(line, entries)| {
            let count = entries.iter().map(Vec::len).product();
            (0..count).map(move |mut number: usize| {
                let digit = |entry: &SpaceEntry| {
                    let choice = number % entry.len();
                    number /= entry.len();
                    choice
                };
                Point { line, choices: entries.iter().map(digit).collect() }
            })
        })
    }
}

/// Splits a text into specs. Each repetition of the first entry's key begins a new spec.
fn unions(text: &str) -> Result<Vec<Vec<SpaceEntry>>, String> {
    let entries = parse::entries(text).map_err(|faults| faults.to_string())?;
    let key = |text| keyed(text).map(|(key, _)| key);
    let first = entries.first().and_then(|entry| entry.first()).and_then(|text| key(text));
    let (mut lines, mut line) = (Vec::new(), Vec::new());
    for entry in &entries {
        let mut rest = &entry[..];
        while let Some(next) =
            rest.iter().skip(1).position(|text| first.is_some() && key(text) == first)
            && !line.is_empty()
        {
            let (last, others) = rest.split_at(next + 1);
            line.push(alternatives(last)?);
            lines.push(std::mem::take(&mut line));
            rest = others;
        }
        line.push(alternatives(rest)?);
    }
    lines.push(line);
    Ok(lines)
}

fn alternatives(entry: &[&str]) -> Result<SpaceEntry, String> {
    let mut key = None;
    let mut found = Vec::new();
    for &alternative in entry {
        if alternative.is_empty() {
            return Err(format!("`{}` has an empty alternative", entry.join(" | ")));
        }
        let text = match (keyed(alternative), key) {
            (Some((name, value)), _) => {
                key = Some(name);
                if value == NONE { String::new() } else { alternative.to_owned() }
            }
            (None, _) if alternative == NONE => String::new(),
            (None, Some(key)) => format!("{key}: {alternative}"),
            (None, None) => alternative.to_owned(),
        };
        found.push(text);
    }
    Ok(found)
}

/// Splits an alternative into key and value; `None` for a flag or a bare value.
fn keyed(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.split_once(':').map(|(key, value)| (key.trim(), value.trim()))?;
    key.chars().all(|c| c.is_alphanumeric() || c == '_').then_some((key, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(space: &Space) -> Vec<String> {
        space.all().map(|point| space.line(&point)).collect()
    }

    #[test]
    fn alternatives_multiply() {
        let space = Space::parse(&["tile: 8x8x8 | 16x16x8, float4 | none"]).expect("a space");
        assert_eq!(space.count(), 4);
        assert_eq!(
            lines(&space),
            ["tile: 8x8x8, float4", "tile: 16x16x8, float4", "tile: 8x8x8", "tile: 16x16x8"]
        );
    }

    #[test]
    fn a_value_belongs_to_the_key_before_it() {
        let space = Space::parse(&["double_buffer | stages: 3 | 4 | none"]).expect("a space");
        assert_eq!(lines(&space), ["double_buffer", "stages: 3", "stages: 4", ""]);
        let space = Space::parse(&["raster: none | 8"]).expect("a space");
        assert_eq!(lines(&space), ["", "raster: 8"]);
    }

    #[test]
    fn the_first_key_once_more_begins_a_line() {
        let space = |line| Space::parse(&[line]).expect("a space");
        let two = space("tile: 16x16x16, float4, pad_a: none | 4 | tile: 8x8x8, thread: 1x2 | 2x2");
        let expected = [
            "tile: 16x16x16, float4",
            "tile: 16x16x16, float4, pad_a: 4",
            "tile: 8x8x8, thread: 1x2",
            "tile: 8x8x8, thread: 2x2",
        ];
        assert_eq!(lines(&two), expected);
        let three = space("tile: 1x1x1, float4 | tile: 2x2x2 | tile: 3x3x3, pitched | tile: 4x4x4");
        let expected =
            ["tile: 1x1x1, float4", "tile: 2x2x2, pitched", "tile: 3x3x3, pitched", "tile: 4x4x4"];
        assert_eq!(lines(&three), expected);
        // Alternatives of the first entry, or of a flag, do not begin a spec.
        assert_eq!(space("tile: 1x1x1 | tile: 2x2x2, float4 | none").count(), 4);
        assert_eq!(space("float4 | none, float4 | pitched").count(), 4);
    }

    #[test]
    fn a_closure_is_a_value() {
        assert_eq!(keyed("e : |a| a "), Some(("e", "|a| a")));
        assert_eq!((keyed("float4"), keyed("|a| { let t: f32 = a; t }")), (None, None));
        let line = "epilogue: |acc| acc | |acc, bias[n]| max(acc, bias) | none, stages: 2 | 3";
        let space = Space::parse(&[line]).expect("a space");
        let expected = [
            "epilogue: |acc| acc, stages: 2",
            "epilogue: |acc, bias[n]| max(acc, bias), stages: 2",
            "stages: 2",
            "epilogue: |acc| acc, stages: 3",
            "epilogue: |acc, bias[n]| max(acc, bias), stages: 3",
            "stages: 3",
        ];
        assert_eq!(lines(&space), expected);
    }

    #[test]
    fn neighbours_differ_in_one_entry() {
        let space = Space::parse(&["stages: 2 | 3 | 4, raster: 4 | 8"]).expect("a space");
        let point = space.all().next().expect("a point");
        let found = space.neighbours(&point);
        let found: Vec<String> = found.iter().map(|p| space.line(p)).collect();
        assert_eq!(found, ["stages: 3, raster: 4", "stages: 4, raster: 4", "stages: 2, raster: 8"]);
    }

    #[test]
    fn an_empty_alternative_is_a_slip() {
        assert!(Space::parse(&["stages: 3 | "]).is_err());
        assert!(Space::parse(&[]).is_err());
        assert!(Space::parse(&["tile: (8"]).is_err());
    }
}
