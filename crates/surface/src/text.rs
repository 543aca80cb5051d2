//! Text of a page: escaped in this one place; numbers and sizes for people.

/// Text that is no markup, in HTML, SVG and their attributes. Characters that XML cannot have are left out.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            '\t' | '\n' | '\r' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// At most so many characters, the middle left out.
#[must_use]
pub fn shortened(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let (begin, end) = (most / 3, most - most / 3 - 1);
    let first: String = text.chars().take(begin).collect();
    let last: String = text.chars().skip(count - end).collect();
    format!("{first}\u{2026}{last}")
}

/// A number to three digits.
#[must_use]
pub fn number(value: f64) -> String {
    let size = value.abs();
    let text = match size {
        _ if !value.is_finite() => return "-".to_owned(),
        _ if size >= 1e7 => return format!("{value:.2e}"),
        _ if size >= 100.0 => return format!("{value:.0}"),
        _ if size >= 10.0 => format!("{value:.1}"),
        _ if size >= 1.0 => format!("{value:.2}"),
        _ if size >= 0.001 => format!("{value:.4}"),
        _ if size == 0.0 => return "0".to_owned(),
        _ => return format!("{value:.1e}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A size of memory, in units of 1024.
#[must_use]
pub fn memory(bytes: f64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let unit = units
        .iter()
        .find(|(_, shift)| bytes >= f64::from(1u32 << shift));
    match unit {
        Some((name, shift)) => format!("{} {name}", number(bytes / f64::from(1u32 << shift))),
        None => format!("{} B", number(bytes)),
    }
}

/// A difference in percent.
#[must_use]
pub fn percent(from: f64, to: f64) -> String {
    match from == to {
        true => "0 %".to_owned(),
        false if from == 0.0 => "from 0".to_owned(),
        false => format!("{:+.1} %", (to / from - 1.0) * 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_of_a_name_is_markup() {
        let hostile = "<script>'\"&\u{1b}[0m\u{0}";
        let text = escaped(hostile);
        assert!(!text.contains(['<', '>', '"', '\'', '\u{1b}', '\u{0}']));
        assert!(text.starts_with("&lt;script&gt;&#39;&quot;&amp;"));
    }

    #[test]
    fn numbers_have_three_digits_and_sizes_their_unit() {
        let all = [0.0, 0.00012, 0.5, 1.0, 35.96, 128.4, 2e9].map(number);
        assert_eq!(all, ["0", "1.2e-4", "0.5", "1", "36", "128", "2.00e9"]);
        assert_eq!(memory(1536.0), "1.5 KiB");
        assert_eq!(memory(67_108_864.0), "64 MiB");
        assert_eq!(shortened("abcdefghij", 7), "ab\u{2026}ghij");
    }
}
