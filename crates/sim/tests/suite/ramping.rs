//! Patterns that look random to a simple detector and are not must keep their windows growing.
//!
//! Ramping means: windows reach the limit; past the ramp the mean window is at least half the
//! limit; next to no block is missed. Each pattern on the kernel's preset and on both of ours.

use forerun_core::units::Extent;
use forerun_sim::workload;

use crate::stage::{DISK, Issued, RAMPING, issued, journal_in_order};

/// The limit in blocks: 128 KiB, or the bytes of 8 ms at 80 MB/s.
fn limit(preset: &str) -> u32 {
    match preset {
        "linux-2.6.24" => 32,
        _ => 640_000_u32.div_ceil(4096),
    }
}

/// Checks one stream's windows.
fn assert_ramped(windows: &[Extent], limit: u32, what: &str) {
    let sizes: Vec<u32> = windows.iter().map(|window| window.count).collect();
    let Some(reached) = sizes.iter().position(|size| *size >= limit) else {
        panic!("{what}: windows never reach {limit} blocks: {sizes:?}");
    };
    // The last window ends with the stream, wherever that is.
    let past = &sizes[reached..sizes.len().max(reached + 2) - 1];
    let mean = past.iter().sum::<u32>() / past.len() as u32;
    println!("{what}: mean {mean}");
    assert!(
        mean >= limit / 2,
        "{what}: mean {mean} of {limit} blocks: {sizes:?}"
    );
}

fn assert_ramps(text: &str, parts: u64) {
    for preset in RAMPING {
        assert_ramps_on(preset, text, parts);
    }
}

/// Runs the workload and checks the windows in each of `parts` equal parts of the file.
fn assert_ramps_on(preset: &str, text: &str, parts: u64) {
    let blocks = workload::parse(text).unwrap().files()[0].0.div_ceil(4096);
    // In order of arrival, where a window is one request; others cut it to reorder.
    let (report, journal) = journal_in_order(preset, DISK, text);
    let windows = issued(&journal);
    for part in 0..parts {
        let (from, to) = (part * blocks / parts, (part + 1) * blocks / parts);
        let own: Vec<Extent> = windows
            .iter()
            .map(|one| one.extent)
            .filter(|e| (from..to).contains(&u64::from(e.first.0)))
            .collect();
        assert_ramped(&own, limit(preset), &format!("{preset} {text} part {part}"));
    }
    let missed = |one: &&Issued| one.at.is_some_and(|at| one.extent.contains(at));
    let misses = windows.iter().filter(missed).count() as u64;
    let requests = report.device_requests();
    println!("{preset} {text}: {requests} requests, {misses} reads missed");
    assert!(
        misses * 100 <= blocks.max(100 * parts),
        "{preset} {text}: {misses} reads missed"
    );
}

#[test]
fn unaligned_reads_keep_ramping() {
    for read in [1000, 4097, 6000, 10_000] {
        assert_ramps(
            &format!("sequential(file_bytes=20000000,read_bytes={read})"),
            1,
        );
    }
}

#[test]
fn retried_reads_keep_ramping() {
    assert_ramps("retried(file_bytes=40000000)", 1);
    assert_ramps(
        "retried(file_bytes=40000000,ask_bytes=100000,take_bytes=1000)",
        1,
    );
}

/// A band wider than half the window cannot stay inside it, so each preset gets the bands it can
/// be asked for: 64 KiB on the kernel's 128 KiB, 256 KiB on ours.
#[test]
fn reordered_reads_keep_ramping() {
    for (read, band) in [
        (4096, 4),
        (4096, 8),
        (4096, 16),
        (16384, 4),
        (16384, 8),
        (65536, 4),
    ] {
        let text = format!("reordered(file_bytes=40000000,read_bytes={read},band={band})");
        for preset in RAMPING
            .into_iter()
            .filter(|p| read * band / 4096 <= limit(p) / 2)
        {
            assert_ramps_on(preset, &text, 1);
        }
    }
}

/// Each stream opens with two reads in a row, as the kernel needs it.
#[test]
fn interleaved_streams_keep_ramping() {
    for streams in [2_u64, 3, 4, 8, 16, 32, 64] {
        for order in [0, 1] {
            assert_ramps(&interleaved(streams, order, 2), streams);
        }
    }
}

/// In strict turn from the first read on no two reads of a stream ever meet: the kernel reads
/// such streams page by page. Ours looks at the blocks read before the missing one.
#[test]
fn streams_in_strict_turn_keep_ramping_on_forerun() {
    for streams in [2_u64, 3, 4, 8, 16, 32, 64] {
        assert_ramps_on("forerun", &interleaved(streams, 0, 1), streams);
    }
}

fn interleaved(streams: u64, random_order: u64, opening_reads: u64) -> String {
    format!(
        "interleaved(file_bytes={},read_bytes=16384,streams={streams},\
         opening_reads={opening_reads},random_order={random_order})",
        streams * (6 << 20)
    )
}
