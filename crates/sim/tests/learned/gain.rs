//! Learned depth in the engine: rows of the table, all of which the example `learned_depth` writes.
//!
//! All of it takes a minute or two: FORERUN_LEARNED=all compares it whole. Otherwise the rows of
//! short requests, one at a time and eight.

use crate::table::{self, COMPOSITIONS};

const GOLDEN: &str = include_str!("../golden/learned_depth.txt");

/// Rows that take a fraction of a second each, and files of mixed sizes.
const QUICK: &[&str] = &[
    "Fixed(25)",
    "Fixed(400)",
    "Uniform(50)",
    "Lognormal(30)",
    "whole     8  Lognormal(200)",
];

#[expect(clippy::disallowed_methods, reason = "asks for minutes of work")]
#[test]
fn the_table_of_learned_depth_is_as_published() {
    assert!(GOLDEN.starts_with(table::HEAD));
    let is_whole = std::env::var("FORERUN_LEARNED").is_ok_and(|value| value == "all");
    for composition in COMPOSITIONS {
        for case in table::cases() {
            let name = table::name(composition, &case);
            if is_whole || QUICK.iter().any(|lengths| name.contains(lengths)) {
                let row = table::row(composition, &case);
                assert!(
                    GOLDEN.lines().any(|line| line == row),
                    "not as published: {row}"
                );
            }
        }
    }
}

/// The table's promise after 200 requests: on whole files, read side by side with the composition
/// of Li et al. 2004, 1.5 times the competitive depth and more; on pieces of random lengths, in
/// any, never below 0.97 of the better of the competitive depth and that of Linux.
#[test]
fn all_rows_keep_the_promise() {
    let mut kept = [0, 0];
    for line in GOLDEN.lines().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [composition, reads, at_once, ..] = words[..] else {
            panic!("{line}");
        };
        let [.., competitive, _, learned, over_competitive, over_better] = words[..] else {
            panic!("{line}");
        };
        let numbers = [competitive, learned, over_competitive, over_better];
        let [competitive, learned, over_competitive, over_better] =
            numbers.map(|word| word.parse::<f64>().expect(line));
        assert!(over_better >= 0.97, "{line}");
        if (composition, reads) == ("cp", "whole") && at_once != "1" {
            assert!(
                learned >= 1.495 * competitive && over_competitive >= 1.5,
                "{line}"
            );
            kept[0] += 1;
        }
        kept[1] += usize::from(reads == "pieces");
    }
    assert_eq!(kept, [8, 40]);
}
