//! Prefetch memory: many sequential readers in little memory, by what is given up.
//!
//! 64 readers of 4 MB each on the object store, in 16 MiB: 256 KiB a reader. An order by access history
//! gives up blocks in the order of their arrival, and these are the next ones to be read. Li and Shen
//! 2005, section 4: the order among blocks fetched ahead is what thrashing depends on.

mod server;

use forerun_core::spec::Choice;
use forerun_core::{Nanos, detect, reclaim};
use forerun_sim::{Report, Scene, device};

use self::server::{Load, Server};
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

/// The five systems of Li and Shen.
const SYSTEMS: [&str; 5] = [
    "access-history",
    "pc-access-history",
    "pc-longest",
    "pc-coldest",
    "pc-coldest+",
];

/// The throughput of 20 s on one disk, in MB/s.
fn serve(preset: &str, memory: u64, server: &Server) -> f64 {
    let mut settings = settings(preset, memory << 20);
    // The two runs of a request lie in one open file.
    settings.detect = Choice::parse("detect", detect::LIST, "ondemand(context=1)").unwrap();
    let mut scene = Scene::new(settings, device::parse("hdd").unwrap(), server);
    scene.until = Some(Nanos(20_000_000_000));
    let report = scene.run(&mut ()).unwrap();
    let rate = report.bytes.0 as f64 / 20e6;
    print!(
        "  {preset} {rate:.1} MB/s ({} lost)",
        report.ledger.thrashed
    );
    rate
}

/// Li and Shen 2005, section 4.2: with many requests at a time every system with a prefetch cache is at
/// least the one without, and an order by streams at least the order of arrival. Coldest+ is not the
/// best of all here: each simulated request has a processor of its own, so one that computes for 40 ms
/// between two reads looks as cold as one that has stopped. In the paper hundreds share two
/// processors.
#[test]
fn with_too_little_memory_a_prefetch_cache_gains_and_an_order_by_streams_gains_more() {
    let (mut gains, mut by_order) = (1.0, [1.0; 3]);
    let rows = [
        (Load::OneWhole, 32, 16, 40),
        (Load::OneRand, 32, 16, 40),
        (Load::OneRand, 200, 64, 40),
        (Load::TwoRand, 32, 16, 4),
        (Load::TwoRand, 200, 64, 40),
    ];
    for (load, handlers, memory, think_ms) in rows {
        print!("{load:?}, {handlers} requests in {memory} MiB, up to {think_ms} ms:");
        let think_max = think_ms * 1_000_000;
        let server = Server {
            load,
            handlers,
            think_max,
        };
        let rates = SYSTEMS.map(|system| serve(system, memory, &server));
        println!();
        let [history, arrival, by_stream @ ..] = rates;
        assert!(arrival > 0.98 * history, "{rates:?}");
        assert!(
            by_stream.iter().all(|rate| *rate > 0.97 * arrival),
            "{rates:?}"
        );
        let [longest, coldest, by_cpu] = by_stream;
        assert!(by_cpu > 0.9 * coldest.max(longest), "{rates:?}");
        gains *= by_cpu / history;
        for (gain, rate) in by_order.iter_mut().zip(by_stream) {
            *gain *= rate / arrival;
        }
    }
    let mean = |product| f64::powf(product, 0.2);
    let (gain, by_order) = (mean(gains), by_order.map(mean));
    println!("in the mean: Coldest+ over AccessHistory {gain:.2}");
    println!("Longest, Coldest, Coldest+ over PC-AccessHistory {by_order:.2?}");
    assert!(gain > 1.2, "{gain:.2}");
    assert!(by_order.iter().all(|gain| *gain > 1.08), "{by_order:.2?}");
}
