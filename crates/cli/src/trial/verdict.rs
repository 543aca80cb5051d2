//! The verdict of a trial in words, from its rates.
//!
//! Rates on a machine that does other work move by tens of percent, so a difference counts only
//! where the pairs agree: the median ratio beyond [`CLEAR`], and no pair on the other side of
//! one. A median near one is "about as fast"; one beyond, with pairs that disagree, is no answer.

use std::fmt::Write;

use crate::quantity::rough_size;

/// From here on a difference is worth a mount: two runs of one candidate differ by less.
const CLEAR: f64 = 1.2;

/// One turn of both candidates over the same bytes, in bytes a second.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// Through the kernel.
    pub kernel: f64,
    /// Through forerun.
    pub forerun: f64,
}

/// How forerun compares with the kernel.
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
    /// The pairs of runs; at least one.
    pub pairs: Vec<Pair>,
}

impl Row {
    /// Ratios of forerun to the kernel, the smallest first.
    fn ratios(&self) -> Vec<f64> {
        let ratio = |pair: &Pair| pair.forerun / pair.kernel.max(1.0);
        let mut ratios: Vec<_> = self.pairs.iter().map(ratio).collect();
        ratios.sort_by(f64::total_cmp);
        ratios
    }

    /// How it went.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let ratios = self.ratios();
        match (ratios.first(), median(&ratios), ratios.last()) {
            (Some(least), middle, _) if middle >= CLEAR && *least > 1.0 => Outcome::Faster,
            (_, middle, Some(most)) if middle <= 1.0 / CLEAR && *most < 1.0 => Outcome::Slower,
            (_, middle, _) if middle < CLEAR && middle > 1.0 / CLEAR => Outcome::Same,
            _ => Outcome::Unclear,
        }
    }

    fn line(&self) -> String {
        let ratios = self.ratios();
        let rate = |of: fn(&Pair) -> f64| {
            let mut rates: Vec<_> = self.pairs.iter().map(of).collect();
            rates.sort_by(f64::total_cmp);
            format!("{}/s", rough_size(median(&rates)))
        };
        let word = match self.outcome() {
            Outcome::Faster => "faster",
            Outcome::Slower => "slower",
            Outcome::Same => "about as fast",
            Outcome::Unclear => "unclear",
        };
        let (kernel, forerun) = (rate(|pair| pair.kernel), rate(|pair| pair.forerun));
        let spread = match (ratios.first(), ratios.last()) {
            (Some(least), Some(most)) => format!(" ({least:.2} to {most:.2})"),
            _ => String::new(),
        };
        let ratio = median(&ratios);
        let readers = readers(self.readers);
        format!("{readers:<14}{kernel:>12}  {forerun:>12}   {ratio:.2} times{spread}, {word}")
    }
}

/// The middle of sorted values.
fn median(sorted: &[f64]) -> f64 {
    match sorted {
        [] => 0.0,
        _ => f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]),
    }
}

fn readers(count: u32) -> String {
    match count {
        1 => "1 reader".to_owned(),
        _ => format!("{count} readers"),
    }
}

/// The table of all workloads, the answer, and the command to use, which is `command` unless
/// nothing is gained. `is_rotational` is the kernel's flag of the device.
#[must_use]
pub fn text(rows: &[Row], command: &str, is_rotational: Option<bool>) -> String {
    let mut text = format!("{:<14}{:>12}  {:>12}\n", "", "kernel", "forerun");
    for row in rows {
        let _ = writeln!(text, "{}", row.line());
    }
    let of = |outcome: Outcome| {
        let rows = rows.iter().filter(|row| row.outcome() == outcome);
        let name = |row: &Row| {
            let times = median(&row.ratios());
            match outcome {
                Outcome::Same | Outcome::Unclear => readers(row.readers),
                _ => format!("{} ({times:.1} times)", readers(row.readers)),
            }
        };
        rows.map(name).collect::<Vec<_>>().join(" and ")
    };
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
        let pair = |(kernel, forerun): &(f64, f64)| Pair {
            kernel: kernel * 1e6,
            forerun: forerun * 1e6,
        };
        Row {
            readers,
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
16 readers       23.0 MB/s     75.0 MB/s   3.24 times (3.12 to 3.45), faster

forerun helps here: with 16 readers (3.2 times) programs get more.
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
}
