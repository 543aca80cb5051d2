//! Prefetch memory: many sequential readers in little memory, by the order of reclaim.
//!
//! 64 readers of 4 MB each on the object store, in 16 MiB: 256 KiB a reader. An order by access
//! history gives up blocks in the order of their arrival, and these are the next ones to be read.
//! Li and Shen 2005, section 4: the order among blocks fetched ahead is what thrashing depends on.

mod server;
mod table;

use forerun_baselines::METHODS;
use forerun_core::spec::Choice;
use forerun_sim::Report;

use crate::stage::{run_into, settings};

const READERS: &str = "many-readers(file_bytes=4000000,readers=64,think_ns=2000000)";

fn run(preset: &str, method: &str) -> Report {
    let mut settings = settings(preset, 16 << 20);
    settings.reclaim = Choice::parse("reclaim", METHODS.reclaim, method).unwrap();
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
        assert!(gain > 1.2, "{preset}: {gain:.2}");
        let thrashed = [&longest, &by_history].map(|report| report.ledger.thrashed);
        assert!(thrashed[0] * 3 < thrashed[1], "{preset}: {thrashed:?}");
    }
}

const GOLDEN: &str = include_str!("../golden/prefetch_memory.txt");

/// The rates of the published rows, in the order of [`table::cases`].
fn published() -> Vec<Vec<f64>> {
    let rows = GOLDEN.lines().skip(1).map(|line| {
        let words = line.split_whitespace().skip(4);
        let rates: Vec<f64> = words.map(|word| word.parse().unwrap()).collect();
        rates[..table::SYSTEMS.len()].to_vec()
    });
    rows.collect()
}

/// All rows take a minute: the example `prefetch_memory` writes them, and
/// FORERUN_PREFETCH_MEMORY=all compares them all. Otherwise those of 100 requests in 16 MiB.
#[expect(clippy::disallowed_methods, reason = "asks for a minute of work")]
#[test]
fn the_table_of_prefetch_memory_is_as_published() {
    assert!(GOLDEN.starts_with(table::HEAD));
    assert_eq!(published().len(), table::cases().count());
    let is_whole = std::env::var("FORERUN_PREFETCH_MEMORY").is_ok_and(|value| value == "all");
    for (case, line) in table::cases().zip(GOLDEN.lines().skip(1)) {
        if is_whole || (case.handlers, case.memory_mib) == (100, 16) {
            let row = case.row(&case.rates());
            assert_eq!(row, line, "not as published");
        }
    }
}

/// Li and Shen 2005, section 4.2, over all rows of the table: a prefetch cache gains, an order by
/// streams gains more, and where programs compute both gain most. No prefetch cache is below 0.96 of
/// an access history in any row.
///
/// Coldest+ is not the first of them here, as it is in the paper: each simulated request has a
/// processor of its own, so one that computes for 40 ms between two reads looks as cold as one that
/// has stopped. In the paper hundreds share two processors.
#[test]
fn a_prefetch_cache_gains_and_an_order_by_streams_gains_more() {
    let gain = |of: usize, over: usize, is_counted: fn(&table::Case) -> bool| {
        let rows = published().into_iter().zip(table::cases());
        let counted = rows.filter(|(_, case)| is_counted(case));
        let logarithms: Vec<f64> = counted
            .map(|(row, _)| f64::ln(row[of] / row[over]))
            .collect();
        f64::exp(logarithms.iter().sum::<f64>() / logarithms.len() as f64)
    };
    let (history, arrival) = (0, 1);
    let all = |_: &table::Case| true;
    let computes = |case: &table::Case| case.think_ms == 40;
    assert!(gain(arrival, history, all) > 1.03);
    for of in 2..=5 {
        let name = table::SYSTEMS[of];
        let [over_all, over_computing] = [gain(of, history, all), gain(of, history, computes)];
        let over_arrival = gain(of, arrival, computes);
        println!(
            "{name}: {over_all:.3}, {over_computing:.3} where requests compute for up to 40 ms"
        );
        println!("  {over_arrival:.3} of the order of arrival there");
        assert!(
            over_all > 1.06 && over_computing > 1.15 && over_arrival > 1.03,
            "{name}"
        );
        let worst = published().into_iter().map(|row| row[of] / row[history]);
        assert!(worst.fold(f64::MAX, f64::min) > 0.96, "{name}");
    }
    // Announced requests are known a little before they close their files, which says the same.
    assert!(gain(5, 4, all) > 1.0);
}

/// The best system of its row, hints included.
#[test]
fn the_default_is_at_least_98_percent_of_the_best() {
    for (row, case) in published().into_iter().zip(table::cases()) {
        let best = row.iter().copied().fold(0.0, f64::max);
        let forerun = row.last().copied().unwrap();
        assert!(forerun >= 0.98 * best, "{case:?}: {:.2}", forerun / best);
    }
}
