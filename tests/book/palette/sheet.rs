//! Colours that a style sheet declares, in both schemes, as defined by CSS.

use libtest_mimic::Failed;
use std::collections::BTreeMap;

/// Colour in the light and in the dark scheme.
pub type Shade = [Colour; 2];

/// Red, green and blue from 0 to 1 as written, and the opacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Colour {
    rgb: [f64; 3],
    alpha: f64,
}

/// Words in colour declarations that are not colours.
const WORDS: [&str; 14] = [
    "none",
    "inherit",
    "transparent",
    "solid",
    "dashed",
    "dotted",
    "underline",
    "wavy",
    "var",
    "light",
    "dark",
    "color",
    "mix",
    "in",
];
/// Properties whose values are or contain colours.
const COLOURED: [&str; 7] =
    ["color", "background", "fill", "stroke", "outline", "border", "text-decoration"];

/// Colours of declarations, by selector and property, for example `body color`.
pub struct Sheet(BTreeMap<String, Vec<Shade>>);

impl Sheet {
    pub fn of(text: &str) -> Result<Self, Failed> {
        let (mut variables, mut declared) = (BTreeMap::new(), BTreeMap::<_, Vec<Shade>>::new());
        for (selectors, declarations) in rules(text) {
            for declaration in split(declarations, ';') {
                let Some((property, value)) = declaration.split_once(':') else { continue };
                let shades = Reader { variables: &variables, rest: value }.all()?;
                if let Some(name) = property.strip_prefix("--") {
                    let shade = shades.first().ok_or_else(|| format!("{name} is not a colour"))?;
                    variables.insert(name.to_owned(), *shade);
                } else if !shades.is_empty() {
                    for selector in split(selectors, ',') {
                        let all = declared.entry(format!("{selector} {property}"));
                        all.or_default().extend(&shades);
                    }
                }
                let is_coloured = COLOURED.contains(&property);
                if let Some(word) = words(value).find(|word| is_coloured && !is_known(word)) {
                    return Err(format!("{selectors} {property}: what is {word}?").into());
                }
            }
        }
        Ok(Self(declared))
    }

    /// Selectors and properties that declare colours.
    pub fn names(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }

    /// Colours that a declaration contains.
    pub fn shades(&self, name: &str) -> Result<Vec<Shade>, String> {
        self.0.get(name).cloned().ok_or_else(|| format!("no rule declares {name}"))
    }
}

/// Words of a value, without colours, names and lengths.
fn words(value: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "#-.%".contains(c);
    value
        .split(move |c: char| !is_part(c))
        .filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()))
}

fn is_known(word: &str) -> bool {
    let functions =
        ["light-dark", "color-mix", "linear-gradient", "repeating-linear-gradient", "srgb"];
    WORDS.contains(&word) || functions.contains(&word)
}

/// Innermost rules of a text: selectors and declarations.
fn rules(text: &str) -> Vec<(&str, &str)> {
    let mut rules = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let selectors = rest[..open].trim().trim_start_matches('}').trim();
        rest = &rest[open + 1..];
        if selectors.starts_with('@') {
            continue;
        }
        let close = rest.find('}').unwrap_or(rest.len());
        rules.push((selectors, &rest[..close]));
        rest = &rest[close..];
    }
    rules
}

/// Splits a text at a character outside of brackets.
fn split(text: &str, at: char) -> Vec<&str> {
    let mut depth = 0;
    let parts = text.split(|c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == at && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// Reader for the colours of a value.
struct Reader<'t> {
    variables: &'t BTreeMap<String, Shade>,
    rest: &'t str,
}

impl Reader<'_> {
    /// All colours of the value, except transparent ones.
    fn all(mut self) -> Result<Vec<Shade>, Failed> {
        let mut all = Vec::new();
        while let Some(at) = self.rest.find(|c: char| c == '#' || c.is_ascii_alphabetic()) {
            // The unit of a length is not a colour.
            let is_unit = self.rest[..at].ends_with(|c: char| c.is_ascii_digit());
            self.rest = &self.rest[at..];
            let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && !"#-".contains(c));
            let (word, behind) = self.rest.split_at(end.unwrap_or(self.rest.len()));
            let is_function = ["var", "light-dark", "color-mix"].contains(&word);
            if !is_unit && is_function {
                let inner = arguments(behind).ok_or_else(|| format!("{word} without an end"))?;
                all.push(self.called(word, inner)?);
                self.rest = &behind[inner.len() + 2..];
                continue;
            }
            if word.starts_with('#') {
                all.push([Colour::hex(word)?; 2]);
            }
            self.rest = behind;
        }
        Ok(all)
    }

    /// Evaluates a colour function with its arguments.
    fn called(&self, function: &str, inner: &str) -> Result<Shade, Failed> {
        let parts = split(inner, ',');
        match (function, &parts[..]) {
            ("var", [name]) => {
                let name = name.trim_start_matches("--");
                let shade = self.variables.get(name).copied();
                Ok(shade.ok_or_else(|| format!("no variable {name}"))?)
            }
            ("light-dark", [light, dark]) => Ok([self.one(light)?[0], self.one(dark)?[1]]),
            ("color-mix", ["in srgb", first, second]) => {
                let (first, share) = first.rsplit_once(' ').ok_or("a mix has a share")?;
                let share = share.trim_end_matches('%').parse::<f64>()? / 100.0;
                let (first, second) = (self.one(first)?, self.one(second)?);
                Ok([0, 1].map(|scheme| first[scheme].mixed(share, second[scheme])))
            }
            _ => Err(format!("{function}({inner}) is not understood").into()),
        }
    }

    fn one(&self, text: &str) -> Result<Shade, Failed> {
        if text == "transparent" {
            return Ok([Colour { rgb: [0.0; 3], alpha: 0.0 }; 2]);
        }
        let all = Reader { variables: self.variables, rest: text }.all()?;
        Ok(*all.first().ok_or_else(|| format!("{text} is not a colour"))?)
    }
}

/// Contents of the brackets at the start of a text.
fn arguments(text: &str) -> Option<&str> {
    let mut depth = 0;
    let end = text.find(|c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0
    })?;
    text.get(1..end)
}

impl Colour {
    fn hex(text: &str) -> Result<Self, Failed> {
        let digits = &text[1..];
        let wide: String = match digits.len() {
            3 => digits.chars().flat_map(|c| [c, c]).collect(),
            6 => digits.to_owned(),
            _ => return Err(format!("{text} is not understood").into()),
        };
        let part = |at: usize| u8::from_str_radix(&wide[2 * at..2 * at + 2], 16);
        let rgb = [part(0)?, part(1)?, part(2)?].map(|part| f64::from(part) / 255.0);
        Ok(Self { rgb, alpha: 1.0 })
    }

    /// `color-mix(in srgb, …)`: mixes this colour, with the given share, and another colour. Both
    /// are weighted by opacity.
    fn mixed(self, share: f64, other: Self) -> Self {
        let (own, theirs) = (share * self.alpha, (1.0 - share) * other.alpha);
        let alpha = own + theirs;
        let part = |at: usize| {
            (own * self.rgb[at] + theirs * other.rgb[at]) / alpha.max(f64::MIN_POSITIVE)
        };
        Self { rgb: [part(0), part(1), part(2)], alpha }
    }

    /// Resulting colour on an opaque background.
    pub fn over(self, below: Self) -> Self {
        let part = |at: usize| self.alpha * self.rgb[at] + (1.0 - self.alpha) * below.rgb[at];
        Self { rgb: [part(0), part(1), part(2)], alpha: 1.0 }
    }

    fn luminance(self) -> f64 {
        let [r, g, b] = self.rgb.map(|part| {
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }

    /// WCAG contrast ratio, from 1 to 21.
    pub fn contrast(self, other: Self) -> f64 {
        let (a, b) = (self.luminance(), other.luminance());
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }
}

/// Values are read as defined by CSS.
pub fn reads_as_css_does() -> Result<(), Failed> {
    let text = ":root{--a:light-dark(#fff,#000);--b:#808080}p,:is(a,b) \
                i{color:var(--a);border:1px solid var(--b)}@media print{q{background:color-mix(in \
                srgb,var(--b) 25%,transparent)}}s{background:linear-gradient(135deg,var(--a) \
                50%,transparent)}u{color:inherit}";
    let sheet = Sheet::of(text)?;
    let names = [
        "p border",
        "p color",
        "q background",
        ":is(a,b) i border",
        ":is(a,b) i color",
        "s background",
    ];
    let mut expected = names.to_vec();
    expected.sort_unstable();
    if sheet.names() != expected {
        return Err(format!("{:?}", sheet.names()).into());
    }
    let [light, dark] = sheet.shades("p color")?[0];
    let [mixed, _] = sheet.shades("q background")?[0];
    let seen = mixed.over(light).rgb[0];
    // A quarter of grey on white.
    let grey = 0.25 * 128.0 / 255.0 + 0.75;
    if light.contrast(dark) != 21.0 || mixed.alpha != 0.25 || (seen - grey).abs() > 1e-12 {
        return Err(format!("{mixed:?}, {seen}").into());
    }
    match Sheet::of("p{color:red}") {
        Err(_) => Ok(()),
        Ok(_) => Err("a colour with a name is accepted".into()),
    }
}
