//! Prefetch memory: many sequential readers in little memory, by what is given up.
//!
//! 64 readers of 4 MB each on the object store, in 16 MiB: 256 KiB a reader. An order by access history
//! gives up blocks in the order of their arrival, and these are the next ones to be read. Li and Shen
//! 2005, section 4: the order among blocks fetched ahead is what thrashing depends on.

use forerun_core::reclaim;
use forerun_core::spec::Choice;
use forerun_sim::Report;

use crate::stage::{run_into, settings};

const READERS: &str = "many-readers(file_bytes=4000000,readers=64,think_ns=2000000)";

fn run(preset: &str, method: &str) -> Report {
    let mut settings = settings(preset, 16 << 20);
    settings.reclaim = Choice::parse("reclaim", reclaim::LIST, method).unwrap();
    let report = run_into(settings, "object_store", READERS, &mut ());
    let (rate, ledger) = (report.throughput_bytes_per_second(), &report.ledger);
    println!(
        "{preset:14}{method:30}{:7.1} MB/s, {:4} misses of blocks given up, {:5.1} MB fetched in vain",
        rate as f64 / 1e6,
        ledger.thrashed,
        ledger.wasted() as f64 * 4096.0 / 1e6
    );
    report
}

#[test]
fn the_last_blocks_of_the_longest_streams_are_a_better_sacrifice_than_the_oldest_blocks() {
    for preset in ["cp", "ap"] {
        let by_history = run(preset, "lru");
        let longest = run(preset, "longest");
        let rate = |report: &Report| report.throughput_bytes_per_second() as f64;
        let gain = rate(&longest) / rate(&by_history);
        assert!(gain > 1.25, "{preset}: {gain:.2}");
        let thrashed = [&longest, &by_history].map(|report| report.ledger.thrashed);
        assert!(thrashed[0] * 3 < thrashed[1], "{preset}: {thrashed:?}");
    }
}
