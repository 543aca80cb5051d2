//! Bytes fetched over bytes asked, by pattern: the price of reading ahead where it does not pay.

use std::collections::BTreeSet;

use forerun_sim::workload;

use crate::stage::{DISK, run};

/// Device bytes over the bytes of distinct pages touched. The gaps of a stride are left out: they
/// are read only where that takes the device less time, which `patterns` measures.
fn amplification(text: &str) -> f64 {
    let built = workload::parse(text).unwrap();
    let mut pages = BTreeSet::new();
    for step in built.steps(0) {
        pages.extend(step.offset.0 / 4096..(step.offset.0 + step.take.0).div_ceil(4096));
    }
    let report = run("forerun", DISK, text);
    let gaps = report.ledger.gaps * 4096;
    let ratio = (report.device_bytes().0 - gaps) as f64 / (pages.len() as f64 * 4096.0);
    println!("{ratio:.4} {text}");
    ratio
}

#[test]
fn one_sequential_reader_fetches_what_it_reads() {
    for read in [1000, 4096, 65536, 1 << 22] {
        assert!(amplification(&format!("sequential(read_bytes={read})")) <= 1.02);
    }
}

#[test]
fn reordered_and_interleaved_reads_fetch_little_more() {
    for band in [2, 8, 32] {
        assert!(amplification(&format!("reordered(band={band})")) <= 1.10);
    }
    for streams in [2, 10, 64] {
        for order in [0, 1] {
            let text = format!("interleaved(streams={streams},random_order={order})");
            assert!(amplification(&text) <= 1.10);
        }
    }
}

#[test]
fn random_reads_fetch_what_they_ask_for() {
    for read in [4096, 16384, 65536] {
        assert!(amplification(&format!("random(read_bytes={read},reads=1000)")) <= 1.05);
    }
}

#[test]
fn strided_and_backward_reads_do_not_amplify() {
    for backward in [0, 1] {
        for (read, stride) in [(16384, 65536), (4096, 8192), (4096, 12288), (65536, 65536)] {
            let text =
                format!("strided(read_bytes={read},stride_bytes={stride},backward={backward})");
            let limit = if backward == 0 && read == stride {
                1.02
            } else {
                1.05
            };
            assert!(amplification(&text) <= limit, "{text}");
        }
    }
}
