//! Backward, strided and random reads by one reader, on the emulated 8 ms / 80 MB/s disk.

use forerun_core::Bytes;
use forerun_sim::random::Random;
use forerun_sim::workload::{Step, Steps, Workload};
use forerun_sim::{Report, Scene, device};

use crate::stage::{DISK, MEMORY, run, settings};

fn bytes_wasted(report: &Report) -> u64 {
    report.ledger.wasted() * 4096
}

/// Throughput of the default over that of demand reads alone.
fn gain(workload: &str) -> f64 {
    let (none, ours) = (run("none", DISK, workload), run("forerun", DISK, workload));
    let gain = none.elapsed.0 as f64 / ours.elapsed.0 as f64;
    println!(
        "{gain:.3}x {workload}: {:.1} MB/s, {} requests, {} windows, {} gap blocks, {} bytes wasted",
        ours.throughput_bytes_per_second() as f64 / 1e6,
        ours.ledger.requests,
        ours.ledger.windows,
        ours.ledger.gaps,
        bytes_wasted(&ours)
    );
    gain
}

fn strided(read: u64, stride: u64, backward: u8) -> String {
    format!("strided(read_bytes={read},stride_bytes={stride},backward={backward})")
}

#[test]
fn backward_reads_run_in_windows() {
    for (read, least) in [
        (65536, 5.0),
        (4096, 5.0),
        (100_000, 5.0),
        (16384, 5.0),
        (1 << 20, 1.0),
    ] {
        assert!(gain(&strided(read, read, 1)) >= least, "{read}");
    }
}

#[test]
fn cheap_gaps_are_read_through_and_wide_ones_left_out() {
    for backward in [0, 1] {
        for (read, stride, least) in [
            (16384, 65536, 4.0),
            (4096, 65536, 4.0),
            (10_000, 100_000, 3.0),
            (4096, 1 << 20, 0.98),
            (1 << 20, 3 << 20, 0.98),
        ] {
            assert!(
                gain(&strided(read, stride, backward)) >= least,
                "{read} of {stride}"
            );
        }
    }
}

/// A reader that leaves out as much as it reads begins as a stream: its windows hold its blocks. Once they do so
/// no more it is a stride at once, and not after a window's length of single reads.
#[test]
fn strides_that_read_half_of_a_file_never_lose_their_windows() {
    for (device, count, rest) in [
        (DISK, 1, 1),
        (DISK, 2, 2),
        ("object_store", 1, 1),
        ("object_store", 2, 2),
        ("object_store", 4, 4),
        ("object_store", 7, 5),
    ] {
        let reads = (0..1500).map(|number| (number * (count + rest), count));
        let reads = Listed {
            think_ns: 1_000_000 * count,
            ..Listed::blocks(reads)
        };
        let report = reads.run("forerun", device);
        let misses = report.ledger.misses / count;
        assert!(
            misses <= 30,
            "{count} of {}, {device}: {misses} of 1500 reads missed",
            count + rest
        );
    }
}

#[test]
fn random_reads_are_as_fast_as_alone() {
    for read in [4096, 16384, 65536] {
        assert!(
            gain(&format!("random(read_bytes={read})")) >= 0.98,
            "{read}"
        );
    }
}

/// Reads of one open file, in order.
#[derive(Debug)]
struct Listed {
    file_bytes: u64,
    reads: Vec<(u64, u64)>,
    /// Computing behind each read.
    think_ns: u64,
}

impl Workload for Listed {
    fn files(&self) -> Vec<Bytes> {
        vec![Bytes(self.file_bytes)]
    }

    fn steps(&self, _reader: usize) -> Steps<'_> {
        let reads = self.reads.iter();
        Box::new(reads.map(|&(offset, bytes)| Step::read(offset, bytes, self.think_ns)))
    }
}

const BLOCK: u64 = 4096;

impl Listed {
    /// Reads of these blocks in a file of 400 MB.
    fn blocks(reads: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let bytes = |(block, count)| (block * BLOCK, count * BLOCK);
        Self {
            file_bytes: 400_000_000,
            reads: reads.into_iter().map(bytes).collect(),
            think_ns: 0,
        }
    }

    fn run(&self, preset: &str, device: &str) -> Report {
        let device = device::parse(device).unwrap();
        let scene = Scene::new(settings(preset, MEMORY), device, self);
        let report = scene.run(&mut ()).unwrap();
        report.ledger.check().unwrap();
        report
    }

    /// Device time of demand reads alone, and of the default.
    fn busy(&self, device: &str) -> (u64, u64) {
        let busy = |preset| {
            let report = self.run(preset, device);
            report.devices.iter().map(|d| d.usage.busy.0).sum()
        };
        (busy("none"), busy("forerun"))
    }

    fn gain(&self, name: &str) -> f64 {
        let (alone, ours) = self.busy(DISK);
        let gain = alone as f64 / ours as f64;
        println!("{gain:.3}x {name}");
        gain
    }
}

#[test]
fn two_columns_of_a_table_are_read_in_windows() {
    // Rows of 64 KiB, of which two columns are read; rows of 4 MB are too far apart.
    let table = |row: u64| (0..400).flat_map(move |i| [(i * row, 2), (i * row + row / 3, 2)]);
    assert!(Listed::blocks(table(16)).gain("two columns, rows of 64 KiB") >= 4.0);
    assert!(Listed::blocks(table(240)).gain("two columns, rows of 960 KiB") >= 0.98);
}

#[test]
fn slices_of_an_array_are_read_in_windows() {
    let slices = |rows: u64, reads: u64| {
        (0..rows).flat_map(move |row| (0..reads).map(move |i| (row * 2000 + i * 12, 2)))
    };
    assert!(Listed::blocks(slices(20, 60)).gain("slices of 60 pieces") >= 4.0);
    assert!(Listed::blocks(slices(45, 10)).gain("slices of 10 pieces") > 1.3);
}

#[test]
fn readers_in_turn_through_one_open_file_have_a_window_each() {
    let strided = |i: u64| (0..4).map(move |thread| (thread * 20_000 + i * 24, 4));
    let reads = Listed::blocks((0..300).flat_map(strided));
    assert!(reads.gain("four strided readers in turn") >= 3.0);
    let backward = |i: u64| (1..4).map(move |thread| (thread * 20_000 - i * 16, 16));
    let reads = Listed::blocks((0..300).flat_map(backward));
    assert!(reads.gain("three backward readers in turn") >= 3.0);
    let mixed = |i: u64| [(i * 16, 16), (40_000 - i * 16, 16), (50_000 + i * 24, 4)];
    let reads = Listed::blocks((0..300).flat_map(mixed));
    assert!(reads.gain("one forward, one backward, one strided") >= 3.0);
}

/// Runs of reads with any distance, of any length, at any place, and single reads between them.
fn any_pattern(random: &mut Random) -> Listed {
    let blocks = 97_000;
    let mut reads = Vec::new();
    let longest = 1 << random.between(0, 7);
    while reads.len() < 400 {
        let count = 1 << random.between(0, 6);
        let furthest = 1 << random.between(1, 11);
        let step = random.between(1, furthest);
        let is_backward = random.between(0, 1) == 1;
        let mut at = random.between(0, blocks);
        for _ in 0..random.between(1, longest) {
            reads.push((at, count));
            // Upward at least behind the read: a sequential one has its own rule, and bound.
            at = match is_backward {
                true => at.saturating_sub(step),
                false => at + step.max(count + 1),
            };
            if at == 0 || at > blocks {
                break;
            }
        }
    }
    Listed::blocks(reads)
}

#[test]
fn no_pattern_costs_more_than_a_twentieth_of_device_time() {
    let mut worst = 0.0_f64;
    for seed in 0..60 {
        let pattern = any_pattern(&mut Random::new(seed));
        let (alone, ours) = pattern.busy(DISK);
        let ratio = ours as f64 / alone as f64;
        worst = worst.max(ratio);
        assert!(ratio <= 1.05, "seed {seed}: {ratio:.3}");
    }
    println!("seeds 0..60: at most {worst:.3} of demand reads alone");
}
