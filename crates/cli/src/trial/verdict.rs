//! The verdict of a trial in words, from its rates.
//!
//! Rates on a machine that does other work move by tens of percent, so a difference counts only
//! where the pairs agree: the ratio of the two median rates beyond [`CLEAR`], and no pair on the other side of
//! one. A ratio near one is "about as fast"; one beyond, with pairs that disagree, is no answer.

use std::fmt::Write;

use crate::quantity::rough_size;

/// From here on a difference is worth a mount: two runs of one candidate differ by less.
pub(super) const CLEAR: f64 = 1.2;

/// One turn of both candidates over the same bytes, in bytes a second.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// Through the kernel, or another program.
    pub other: f64,
    /// Through forerun.
    pub forerun: f64,
}

/// How forerun compares with the other candidate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Clearly faster, in every pair.
    Faster,
    /// Clearly slower, in every pair.
    Slower,
    /// Neither, and nearly the same in the middle.
    Same,
    /// Sometimes faster and sometimes slower.
    Unclear,
}

/// A workload, and how it went.
#[derive(Clone, Debug)]
pub struct Row {
    /// Number of concurrent readers.
    pub readers: u32,
    /// The other candidate of a store; none is the kernel.
    pub peer: Option<&'static str>,
    /// The pairs of runs; at least one.
    pub pairs: Vec<Pair>,
}

impl Row {
    /// The rows of one workload: forerun's rates, which come last, beside those of each other candidate.
    #[must_use]
    pub fn of(readers: u32, peers: &[Option<&'static str>], rates: &[Vec<f64>]) -> Vec<Self> {
        let Some((forerun, others)) = rates.split_last() else {
            return Vec::new();
        };
        let row = |(peer, rates): (&Option<&'static str>, &Vec<f64>)| Self {
            readers,
            peer: *peer,
            pairs: rates
                .iter()
                .zip(forerun)
                .map(|(&other, &forerun)| Pair { other, forerun })
                .collect(),
        };
        peers.iter().zip(others).map(row).collect()
    }

    /// The median rates of the other candidate and of forerun.
    fn rates(&self) -> (f64, f64) {
        let rate = |of: fn(&Pair) -> f64| middle(&self.pairs.iter().map(of).collect::<Vec<_>>());
        (rate(|pair| pair.other), rate(|pair| pair.forerun))
    }

    /// The quotient of the two rates.
    fn ratio(&self) -> f64 {
        let (other, forerun) = self.rates();
        forerun / other.max(1.0)
    }

    /// The smallest and the largest ratio of a pair.
    fn spread(&self) -> (f64, f64) {
        let ratios = self
            .pairs
            .iter()
            .map(|pair| pair.forerun / pair.other.max(1.0));
        ratios.fold((f64::INFINITY, 0.0), |(least, most), ratio| {
            (ratio.min(least), ratio.max(most))
        })
    }

    /// How it went.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let (ratio, (least, most)) = (self.ratio(), self.spread());
        if ratio >= CLEAR && least > 1.0 {
            Outcome::Faster
        } else if ratio <= 1.0 / CLEAR && most < 1.0 {
            Outcome::Slower
        } else if ratio < CLEAR && ratio > 1.0 / CLEAR {
            Outcome::Same
        } else {
            Outcome::Unclear
        }
    }

    fn name(&self) -> String {
        let readers = readers(self.readers);
        match self.peer {
            Some(peer) => format!("{readers}, {peer}"),
            None => readers,
        }
    }

    fn line(&self, width: usize) -> String {
        let word = match self.outcome() {
            Outcome::Faster => "faster",
            Outcome::Slower => "slower",
            Outcome::Same => "about as fast",
            Outcome::Unclear => "unclear",
        };
        let shown = |rate: f64| format!("{}/s", rough_size(rate));
        let (other, forerun) = self.rates();
        let (other, forerun) = (shown(other), shown(forerun));
        let (ratio, (least, most)) = (self.ratio(), self.spread());
        let name = self.name();
        format!(
            "{name:<width$}{other:>12}  {forerun:>12}   {ratio:.2} times ({least:.2} to {most:.2}), {word}"
        )
    }
}

/// The middle of values in any order.
pub(super) fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    median(&sorted)
}

/// The middle of sorted values.
fn median(sorted: &[f64]) -> f64 {
    match sorted {
        [] => 0.0,
        _ => f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]),
    }
}

pub(super) fn readers(count: u32) -> String {
    match count {
        1 => "1 reader".to_owned(),
        _ => format!("{count} readers"),
    }
}

/// The table of all workloads.
fn table(rows: &[Row], other: &str) -> String {
    let names = rows.iter().map(|row| row.name().len() + 2);
    let width = names.max().unwrap_or(0).max(14);
    let mut text = format!("{:<width$}{other:>12}  {:>12}\n", "", "forerun");
    for row in rows {
        let _ = writeln!(text, "{}", row.line(width));
    }
    text
}

/// The workloads that went so, in words.
fn with(rows: &[Row], outcome: Outcome) -> String {
    let rows = rows.iter().filter(|row| row.outcome() == outcome);
    let name = |row: &Row| match outcome {
        Outcome::Same | Outcome::Unclear => readers(row.readers),
        _ => format!("{} ({:.1} times)", readers(row.readers), row.ratio()),
    };
    rows.map(name).collect::<Vec<_>>().join(" and ")
}

/// The outcomes of workloads, each with its workloads.
pub(super) fn in_words(rows: &[Row]) -> String {
    let outcomes = [
        (Outcome::Faster, "faster"),
        (Outcome::Same, "about as fast"),
        (Outcome::Slower, "slower"),
        (Outcome::Unclear, "unclear, as runs differ too much,"),
    ];
    let parts = outcomes.map(|(outcome, word)| match with(rows, outcome) {
        with if with.is_empty() => with,
        with => format!("{word} with {with}"),
    });
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(", ")
}

/// The table of a store, a sentence for each other candidate, and the command to use, which is `command` unless nothing
/// is gained.
#[must_use]
pub fn text_of_store(rows: &[Row], command: &str) -> String {
    let mut text = table(rows, "other") + "\n";
    let mut peers: Vec<&str> = rows.iter().filter_map(|row| row.peer).collect();
    peers.sort_unstable();
    peers.dedup();
    for peer in peers {
        let of_peer = |row: &&Row| row.peer == Some(peer);
        let rows: Vec<Row> = rows.iter().filter(of_peer).cloned().collect();
        let _ = writeln!(text, "Beside {peer}: {}.", in_words(&rows));
    }
    let is_gained = rows.iter().any(|row| row.outcome() == Outcome::Faster);
    let is_lost = rows.iter().any(|row| row.outcome() == Outcome::Slower);
    if is_gained && !is_lost {
        let _ = writeln!(text, "To use it:\n  {command}");
    }
    text
}

/// The table of all workloads, the answer, and the command to use, which is `command` unless
/// nothing is gained. `is_rotational` is the kernel's flag of the device.
#[must_use]
pub fn text(rows: &[Row], command: &str, is_rotational: Option<bool>) -> String {
    let mut text = table(rows, "kernel");
    let of = |outcome: Outcome| with(rows, outcome);
    let (faster, slower) = (of(Outcome::Faster), of(Outcome::Slower));
    let answer = match (faster.is_empty(), slower.is_empty()) {
        (false, true) => format!("forerun helps here: with {faster} programs get more.\n"),
        (false, false) => {
            format!("It depends: forerun helps with {faster}, and is in the way with {slower}.\n")
        }
        (true, false) => format!(
            "forerun does not help here: it is slower with {slower}. Leave things as they are.\n"
        ),
        (true, true) if !of(Outcome::Unclear).is_empty() => format!(
            "No answer with {}: runs over the same files differ too much, most likely because other \
             programs use\nthe device. Try again when it is quiet, or for longer (--seconds 120).\n",
            of(Outcome::Unclear)
        ),
        (true, true) => {
            "forerun does not help here: it is about as fast as the kernel. Leave things as they \
             are.\n"
                .to_owned()
        }
    };
    let _ = write!(text, "\n{answer}");
    if faster.is_empty() {
        if is_rotational == Some(false) && of(Outcome::Unclear).is_empty() {
            text.push_str(
                "The device does not rotate and serves several requests at once, for which the kernel's \
                 own\nreadahead is enough.\n",
            );
        }
        return text;
    }
    let _ = writeln!(text, "To use it:\n  {command}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(readers: u32, pairs: &[(f64, f64)]) -> Row {
        let pair = |(other, forerun): &(f64, f64)| Pair {
            other: other * 1e6,
            forerun: forerun * 1e6,
        };
        Row {
            readers,
            peer: None,
            pairs: pairs.iter().map(pair).collect(),
        }
    }

    #[test]
    fn a_difference_counts_where_all_pairs_agree() {
        let outcome = |pairs: &[(f64, f64)]| row(1, pairs).outcome();
        assert_eq!(outcome(&[(20.0, 70.0), (21.0, 75.0)]), Outcome::Faster);
        assert_eq!(outcome(&[(20.0, 70.0), (21.0, 20.0)]), Outcome::Unclear);
        assert_eq!(outcome(&[(20.0, 10.0), (21.0, 22.0)]), Outcome::Unclear);
        assert_eq!(outcome(&[(100.0, 110.0), (100.0, 111.0)]), Outcome::Same);
        assert_eq!(outcome(&[(100.0, 50.0), (100.0, 60.0)]), Outcome::Slower);
        assert_eq!(outcome(&[(0.0, 0.0)]), Outcome::Slower);
    }

    #[test]
    fn the_answer_is_in_words_and_names_the_command_only_where_it_helps() {
        let (same, faster) = (
            row(1, &[(78.0, 78.0), (80.0, 79.0)]),
            row(
                16,
                &[(23.0, 75.0), (22.0, 76.0), (23.0, 74.0), (24.0, 75.0)],
            ),
        );
        snapbox::assert_data_eq!(
            text(
                &[same.clone(), faster.clone()],
                "forerun mount /data /fast",
                Some(true)
            ),
            snapbox::str![[r#"
                    kernel       forerun
1 reader         79.0 MB/s     78.5 MB/s   0.99 times (0.99 to 1.00), about as fast
16 readers       23.0 MB/s     75.0 MB/s   3.26 times (3.12 to 3.45), faster

forerun helps here: with 16 readers (3.3 times) programs get more.
To use it:
  forerun mount /data /fast

"#]]
        );
        let slower = row(16, &[(1000.0, 600.0)]);
        snapbox::assert_data_eq!(
            text(
                &[same.clone(), slower.clone()],
                "forerun mount /data /fast",
                Some(false)
            ),
            snapbox::str![[r#"
                    kernel       forerun
1 reader         79.0 MB/s     78.5 MB/s   0.99 times (0.99 to 1.00), about as fast
16 readers       1.00 GB/s    600.0 MB/s   0.60 times (0.60 to 0.60), slower

forerun does not help here: it is slower with 16 readers (0.6 times). Leave things as they are.
The device does not rotate and serves several requests at once, for which the kernel's own
readahead is enough.

"#]]
        );
        assert!(
            text(std::slice::from_ref(&same), "x", None).contains("about as fast as the kernel")
        );
        let unclear = row(1, &[(20.0, 70.0), (21.0, 20.0)]);
        assert!(text(&[same, unclear], "x", Some(false)).contains("No answer with 1 reader"));
        assert!(text(&[faster, slower], "x", None).starts_with(' '));
    }
    /// Medians of rates and medians of ratios differ: the ratio is that of the rates that stand beside it.
    #[test]
    fn the_ratio_is_the_quotient_of_the_rates_beside_it() {
        let row = row(
            1,
            &[
                (400.0, 68.0),
                (526.0, 150.0),
                (400.0, 150.8),
                (600.0, 160.0),
            ],
        );
        let line = row.line(14);
        assert!(
            line.contains("463.0 MB/s    150.4 MB/s   0.32 times (0.17 to 0.38)"),
            "{line}"
        );
    }

    #[test]
    fn a_store_has_a_sentence_for_each_other_candidate() {
        let rates = |scale: f64| vec![20e6 * scale, 21e6 * scale, 22e6 * scale, 21e6 * scale];
        let mut rows = Vec::new();
        for (readers, forerun) in [(1, 3.0), (16, 4.0)] {
            let all = [rates(1.0), rates(3.9), rates(forerun)];
            rows.extend(Row::of(readers, &[Some("ranges"), Some("rclone")], &all));
        }
        snapbox::assert_data_eq!(
            text_of_store(&rows, "forerun mount s3://b /fast"),
            snapbox::str![[r#"
                           other       forerun
1 reader, ranges       21.0 MB/s     63.0 MB/s   3.00 times (3.00 to 3.00), faster
1 reader, rclone       81.9 MB/s     63.0 MB/s   0.77 times (0.77 to 0.77), slower
16 readers, ranges     21.0 MB/s     84.0 MB/s   4.00 times (4.00 to 4.00), faster
16 readers, rclone     81.9 MB/s     84.0 MB/s   1.03 times (1.03 to 1.03), about as fast

Beside ranges: faster with 1 reader (3.0 times) and 16 readers (4.0 times).
Beside rclone: about as fast with 16 readers, slower with 1 reader (0.8 times).

"#]]
        );
    }
}
