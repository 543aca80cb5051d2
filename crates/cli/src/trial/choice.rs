//! The choice among ways to read: the kernel as it is, with its best constant setting, with a watch, a mount.
//!
//! The simplest way that is good enough is the answer. Ways are ordered by how much they change, and each is compared
//! with the simplest one that stands:
//!
//! ```text
//! kernel 22 MB/s   tuned 59   forerun 65    tuned over kernel 2.7: taken; forerun over tuned 1.1: equal, so tuned
//! kernel 22 MB/s   tuned 59   forerun 76    forerun over tuned 1.3 in all turns: taken
//! ```
//!
//! A way is taken if it is faster with one number of readers and slower with none, by the rule of [`verdict`]: medians
//! of the turns beyond [`CLEAR`](verdict::CLEAR), and every turn on the same side.

use std::fmt::Write;

use super::TURNS;
use super::verdict::{self, Outcome, Row};
use crate::quantity::rough_size;

/// A way to read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Way {
    /// Its name.
    pub name: &'static str,
    /// The answer that takes it.
    pub answer: String,
}

/// The rates of all ways with a number of readers.
#[derive(Clone, PartialEq, Debug)]
pub struct Rates {
    /// Number of concurrent readers.
    pub readers: u32,
    /// For each way, of each turn.
    pub ways: Vec<Vec<f64>>,
}

/// How a way compares with another.
fn rows(all: &[Rates], other: usize, new: usize) -> Vec<Row> {
    let pair = |rates: &Rates| {
        Row::of(
            rates.readers,
            &[None],
            &[rates.ways[other].clone(), rates.ways[new].clone()],
        )
    };
    all.iter().flat_map(pair).collect()
}

/// The place of the way to take, and of each way the place of the one it was compared with.
fn choose(all: &[Rates], ways: usize) -> (usize, Vec<usize>) {
    let (mut chosen, mut beside) = (0, vec![0]);
    for next in 1..ways {
        beside.push(chosen);
        let outcomes: Vec<_> = rows(all, chosen, next).iter().map(Row::outcome).collect();
        if outcomes.contains(&Outcome::Faster) && !outcomes.contains(&Outcome::Slower) {
            chosen = next;
        }
    }
    (chosen, beside)
}

/// The table, a sentence for each comparison, the answer, and how equal was judged.
#[must_use]
pub fn text(all: &[Rates], ways: &[Way]) -> String {
    let mut text = format!("{:<14}", "");
    for way in ways {
        let _ = write!(text, "{:>15}", way.name);
    }
    text += "\n";
    for rates in all {
        let _ = write!(text, "{:<14}", verdict::readers(rates.readers));
        for rates in &rates.ways {
            let _ = write!(
                text,
                "{:>15}",
                format!("{}/s", rough_size(verdict::middle(rates)))
            );
        }
        text += "\n";
    }
    let (chosen, beside) = choose(all, ways.len());
    text += "\n";
    for (at, way) in ways.iter().enumerate().skip(1) {
        let (other, words) = (
            ways[beside[at]].name,
            verdict::in_words(&rows(all, beside[at], at)),
        );
        let _ = writeln!(text, "{} beside {other}: {words}.", way.name);
    }
    let _ = write!(
        text,
        "\n{}\n\nThe simplest of equal ways is taken. Two count as equal if their medians are within {} times of each \
         other,\nor if one is not faster in all of the {TURNS} turns.\n",
        ways[chosen].answer,
        verdict::CLEAR
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(readers: u32, ways: &[[f64; 2]]) -> Rates {
        let mega = |turns: &[f64; 2]| turns.iter().map(|rate| rate * 1e6).collect();
        Rates {
            readers,
            ways: ways.iter().map(mega).collect(),
        }
    }

    fn ways() -> Vec<Way> {
        ["kernel", "tuned kernel", "forerun"]
            .map(|name| Way {
                name,
                answer: format!("Take {name}."),
            })
            .to_vec()
    }

    #[test]
    fn the_simplest_way_is_taken_unless_another_is_clearly_faster() {
        let one = rates(1, &[[78.0, 78.0], [78.0, 78.0], [77.0, 77.0]]);
        for (many, chosen) in [
            ([[22.0, 22.0], [59.0, 60.0], [76.0, 75.0]], 2),
            ([[22.0, 22.0], [59.0, 60.0], [65.0, 66.0]], 1),
            ([[22.0, 22.0], [22.0, 23.0], [23.0, 22.0]], 0),
            // Beside the tuned kernel forerun is slower in one turn.
            ([[22.0, 22.0], [50.0, 60.0], [90.0, 58.0]], 1),
            // The tuned kernel is slower, forerun is not.
            ([[60.0, 60.0], [20.0, 20.0], [75.0, 75.0]], 2),
        ] {
            assert_eq!(
                choose(&[one.clone(), rates(16, &many)], 3).0,
                chosen,
                "{many:?}"
            );
        }
        let slower = rates(1, &[[78.0, 78.0], [78.0, 78.0], [40.0, 40.0]]);
        let many = rates(16, &[[22.0, 22.0], [59.0, 60.0], [76.0, 75.0]]);
        assert_eq!(choose(&[slower, many], 3).0, 1);
    }

    #[test]
    fn the_answer_has_all_rates_and_says_what_equal_is() {
        let all = [
            rates(1, &[[78.0, 78.0], [78.0, 78.0], [77.0, 77.0]]),
            rates(16, &[[22.0, 22.0], [59.0, 59.0], [65.0, 65.0]]),
        ];
        snapbox::assert_data_eq!(
            text(&all, &ways()),
            snapbox::str![[r#"
                       kernel   tuned kernel        forerun
1 reader            78.0 MB/s      78.0 MB/s      77.0 MB/s
16 readers          22.0 MB/s      59.0 MB/s      65.0 MB/s

tuned kernel beside kernel: faster with 16 readers (2.7 times), about as fast with 1 reader.
forerun beside tuned kernel: about as fast with 1 reader and 16 readers.

Take tuned kernel.

The simplest of equal ways is taken. Two count as equal if their medians are within 1.2 times of each other,
or if one is not faster in all of the 4 turns.

"#]]
        );
    }
}
