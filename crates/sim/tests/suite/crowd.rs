//! Many readers in little memory: the table is as it stands in `golden/crowd.txt`, and no crowd is
//! slower than fewer readers.
//!
//! All of it takes minutes: the example `crowd` writes it, and FORERUN_CROWD=all compares it whole.
//! Otherwise an array with few readers.

mod table;

const GOLDEN: &str = include_str!("../golden/crowd.txt");

#[expect(clippy::disallowed_methods, reason = "asks for minutes of work")]
#[test]
fn the_table_of_crowds_is_as_published() {
    assert!(GOLDEN.starts_with(table::HEAD));
    let is_whole = std::env::var("FORERUN_CROWD").is_ok_and(|value| value == "all");
    for device in table::DEVICES {
        for mib in table::MEMORIES {
            let is_quick = device.0.starts_with("array") && *mib == 16;
            let rows = match (is_whole, is_quick) {
                (true, _) => usize::MAX,
                (false, true) => 2,
                (false, false) => 0,
            };
            for row in table::rows(*device, *mib).take(rows) {
                assert!(
                    GOLDEN.lines().any(|line| line == row),
                    "not as published: {row}"
                );
            }
        }
    }
}

/// A device serves a crowd nearly as well as a few: an array of disks that the files fill loses a third to
/// shorter slices, and in 16 MiB the entries of 4,096 readers take a quarter. Where memory is the bound, windows of
/// equal length whatever the number of readers have up to a third more of a store whose connections are taken.
#[test]
fn no_crowd_collapses_and_an_lru_of_whole_windows_is_better_on_a_store_at_most() {
    for line in GOLDEN.lines().skip(1) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [device, mib, readers, _, lru, forerun, of_fewer] = words[..] else {
            panic!("{line}");
        };
        let [lru, forerun, of_fewer] = [lru, forerun, of_fewer].map(|word| word.parse::<f64>());
        let least = match (device, mib, readers) {
            ("array:ibm_36gb_10k", ..) => 0.66,
            ("object_store", "16", "4096") => 0.7,
            _ => 0.9,
        };
        assert!(of_fewer.unwrap() >= least, "{line}");
        // Streams are bounded, so the memory also keeps blocks after their read: felt where few
        // share it.
        let is_few = readers == "4" || (device, readers) == ("object_store", "64");
        // Slices of 64 readers of an array end as its costs fall out: from 0.94 of an LRU of whole windows to 5 times it.
        let is_array = (device, readers) == ("array:ibm_36gb_10k", "64");
        let is_crowded_store = device == "object_store" && mib != "256" && !is_few;
        let least = match (is_few, is_array, is_crowded_store) {
            (true, ..) => 0.82,
            (_, true, _) => 0.94,
            (.., true) => 0.68,
            _ => 0.96,
        };
        assert!(forerun.unwrap() >= least * lru.unwrap(), "{line}");
    }
}
