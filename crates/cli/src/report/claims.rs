//! Claims of papers, as `forerun-lab reproduce --format json` has them: our numbers beside the published ones.
//!
//! Claims have units of their own, so the figure shows the quotient: ours over published, a row a claim, 1 in the middle.

use std::fmt::Write;

use serde_json::Value;

use super::figure::STYLE;
use super::points::Row;
use super::text::{escaped, number, shortened};

/// Most rows of a figure; the table has all.
const ROWS_MAX: usize = 40;
/// Quotients beyond are drawn at the end of the scale.
const SCALE: f64 = 4.0;

/// A claim.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The paper's name.
    pub paper: String,
    /// Its own name, as W2.
    pub id: String,
    /// Its words.
    pub what: String,
    /// Published numbers.
    pub published: Vec<f64>,
    /// Ours.
    pub measured: Vec<f64>,
    /// Whether ours are near enough.
    pub verdict: String,
}

/// Whether a row is one.
#[must_use]
pub fn is_claim(row: &Row) -> bool {
    row.contains_key("paper") && row.contains_key("claim")
}

fn numbers(value: Option<&Value>) -> Vec<f64> {
    match value {
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_f64).collect(),
        Some(one) => one.as_f64().into_iter().collect(),
        None => Vec::new(),
    }
}

impl Claim {
    /// Of a row.
    #[must_use]
    pub fn of(row: &Row) -> Self {
        let text = |name: &str| {
            row.get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        Self {
            paper: text("paper"),
            id: text("id"),
            what: text("claim"),
            published: numbers(row.get("published")),
            measured: numbers(row.get("measured")),
            verdict: text("verdict"),
        }
    }

    /// Ours over published, number by number; of one number beside a range, over the nearer end if it lies outside.
    fn quotients(&self) -> Vec<f64> {
        let pairs: Vec<(f64, f64)> = match (&self.measured[..], &self.published[..]) {
            ([ours], [low, high]) => vec![(*ours, ours.max(*low).min(*high))],
            (ours, published) => ours
                .iter()
                .copied()
                .zip(published.iter().copied())
                .collect(),
        };
        let all = pairs.iter().map(|(ours, published)| ours / published);
        all.filter(|quotient| quotient.is_finite() && *quotient > 0.0)
            .collect()
    }
}

/// Claims by paper, in the order of the rows.
#[must_use]
pub fn by_paper(claims: &[Claim]) -> Vec<(&str, Vec<&Claim>)> {
    let mut papers: Vec<(&str, Vec<&Claim>)> = Vec::new();
    for claim in claims {
        match papers.iter_mut().find(|(paper, _)| *paper == claim.paper) {
            Some((_, own)) => own.push(claim),
            None => papers.push((&claim.paper, vec![claim])),
        }
    }
    papers
}

/// The figure of a paper's claims; `alone` as a file of its own.
#[must_use]
pub fn svg(paper: &str, claims: &[&Claim], alone: bool) -> String {
    const ROW: f64 = 18.0;
    const TOP: f64 = 62.0;
    let shown = claims
        .iter()
        .filter(|claim| !claim.quotients().is_empty())
        .take(ROWS_MAX);
    let shown: Vec<_> = shown.collect();
    let bottom = TOP + ROW * shown.len() as f64;
    let at = |quotient: f64| {
        let share = quotient.clamp(1.0 / SCALE, SCALE).log(SCALE);
        260.0 + share * 185.0
    };
    let style = if alone {
        format!(
            "<style>{STYLE}.fig{{background:#fff}}@media(prefers-color-scheme:dark){{.fig{{background:#16181c}}}}</style>"
        )
    } else {
        String::new()
    };
    let mut svg = format!(
        "<svg class=\"fig\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 460 {:.0}\" role=\"img\" aria-label=\"{1}\">\
         {style}<text class=\"title\" x=\"4\" y=\"15\">Ours over published</text>\
         <text class=\"soft\" x=\"4\" y=\"31\">{1}, number by number, logarithmic</text>",
        bottom + 12.0,
        escaped(&shortened(paper, 40))
    );
    for tick in [0.25, 0.5, 1.0, 2.0, 4.0] {
        let class = if tick == 1.0 { "axis" } else { "grid" };
        let _ = write!(
            svg,
            "<line class=\"{class}\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{1}\" y2=\"{bottom:.1}\"/>\
             <text class=\"soft\" x=\"{0:.1}\" y=\"{2}\" text-anchor=\"middle\">{3}</text>",
            at(tick),
            TOP - 8.0,
            TOP - 14.0,
            number(tick)
        );
    }
    for (row, claim) in shown.iter().enumerate() {
        let y = TOP + ROW * (row as f64 + 0.5);
        let colour = if claim.verdict.starts_with("met") {
            2
        } else {
            1
        };
        let _ = write!(
            svg,
            "<text x=\"4\" y=\"{:.1}\">{}</text>",
            y + 4.0,
            escaped(&shortened(&claim.id, 8))
        );
        for quotient in claim.quotients() {
            let x = at(quotient);
            let mark = match colour {
                2 => format!(
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" style=\"fill:var(--c2)\"/>"
                ),
                _ => format!(
                    "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"7\" height=\"7\" style=\"fill:var(--c1)\"/>",
                    x - 3.5,
                    y - 3.5
                ),
            };
            svg += &mark;
        }
    }
    svg + "</svg>\n"
}

/// The numbers as a file.
#[must_use]
pub fn csv(claims: &[&Claim]) -> String {
    let mut text = "id,number,published,measured\n".to_owned();
    for claim in claims {
        for (at, (published, measured)) in claim.published.iter().zip(&claim.measured).enumerate() {
            let id = claim.id.replace([',', '"', '\n', '\r'], " ");
            let _ = writeln!(text, "{id},{},{published},{measured}", at + 1);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_compared_with_its_own_and_one_with_a_range() {
        let claim = |measured: &[f64], published: &[f64]| Claim {
            paper: "p".to_owned(),
            id: "P1".to_owned(),
            what: String::new(),
            published: published.to_vec(),
            measured: measured.to_vec(),
            verdict: "met".to_owned(),
        };
        assert_eq!(claim(&[2.0, 3.0], &[1.0, 6.0]).quotients(), [2.0, 0.5]);
        assert_eq!(claim(&[2.0], &[1.0, 6.0]).quotients(), [1.0]);
        assert_eq!(claim(&[12.0], &[1.0, 6.0]).quotients(), [2.0]);
        assert_eq!(claim(&[1.0, 2.0], &[0.0, 2.0]).quotients(), [1.0]);
    }
}
