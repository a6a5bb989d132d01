//! Formatting of numbers for readers.

/// Formats a number with three significant digits and a suffix `k`, `M`, `G` or `T`. Integers up to
/// 9,999 are printed in full.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let (scale, suffix) = match value.abs() {
        v if v >= 999.5e9 => (1e12, "T"),
        v if v >= 999.5e6 => (1e9, "G"),
        v if v >= 999.5e3 => (1e6, "M"),
        v if v >= 9_999.5 => (1e3, "k"),
        _ => (1.0, ""),
    };
    let scaled = value / scale;
    let digits = match scaled.abs() {
        v if v >= 99.95 || (suffix.is_empty() && scaled == scaled.trunc()) => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{scaled:.digits$}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits() {
        let cases = [
            (0.0, "0"),
            (7.0, "7"),
            (0.5, "0.50"),
            (12.34, "12.3"),
            (480.0, "480"),
            (1234.0, "1234"),
            (9_995.0, "9995"),
            (9_999.6, "10.0k"),
            (12_345.0, "12.3k"),
            (999_600.0, "1.00M"),
            (2.5e9, "2.50G"),
            (f64::NAN, "–"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }
}
