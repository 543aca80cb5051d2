//! Many readers in little memory: the table is as it stands in `golden/crowd.txt`, and no crowd is slower than
//! fewer readers.
//!
//! All of it takes minutes: the example `crowd` writes it, and FORERUN_CROWD=all compares it whole. Otherwise
//! the rows of an array.

mod table;

const GOLDEN: &str = include_str!("../golden/crowd.txt");

#[expect(clippy::disallowed_methods, reason = "asks for minutes of work")]
#[test]
fn the_table_of_crowds_is_as_published() {
    assert!(GOLDEN.starts_with(table::HEAD));
    let is_whole = std::env::var("FORERUN_CROWD").is_ok_and(|value| value == "all");
    for device in table::DEVICES {
        if is_whole || device.0.starts_with("array") {
            for row in table::rows(*device) {
                assert!(
                    GOLDEN.lines().any(|line| line == row),
                    "not as published: {row}"
                );
            }
        }
    }
}

#[test]
fn no_crowd_collapses_and_none_is_better_off_with_an_lru() {
    for line in GOLDEN.lines().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [.., lru, forerun, of_fewer] = words[..] else {
            panic!("{line}");
        };
        let [lru, forerun, of_fewer] = [lru, forerun, of_fewer].map(|word| word.parse::<f64>());
        assert!(of_fewer.unwrap() >= 0.74, "{line}");
        assert!(forerun.unwrap() >= OF_LRU * lru.unwrap(), "{line}");
    }
}
