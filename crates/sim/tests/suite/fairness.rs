//! Waiting times of many readers: streams share alike, and others do not wait for a round.
//!
//! 64 streams keep an 8 ms / 80 MB/s disk busy in slices of 3.0 MB, 45 ms each with the switch; a round of
//! all takes 3 s.

use forerun_baselines::METHODS;
use forerun_core::spec::Choice;
use forerun_core::{Bytes, Nanos};
use forerun_sim::random::Random;
use forerun_sim::report::{ReaderReport, Report};
use forerun_sim::workload::many_readers::ManyReaders;
use forerun_sim::workload::{Step, Steps, Workload};
use forerun_sim::{Scene, device};

use crate::stage::{DISK, MEMORY, settings};

/// Streams, and one more process that comes with them and does something else, in so many files.
#[derive(Debug)]
struct Beside {
    streams: ManyReaders,
    file_bytes: u64,
    files: usize,
    other: Vec<Step>,
}

impl Workload for Beside {
    fn files(&self) -> Vec<Bytes> {
        let mut files = self.streams.files();
        files.extend(vec![Bytes(self.file_bytes); self.files]);
        files
    }

    fn readers(&self) -> Vec<usize> {
        (0..self.streams.readers + self.files).collect()
    }

    fn owner(&self, reader: usize) -> usize {
        reader.min(self.streams.readers)
    }

    fn steps(&self, reader: usize) -> Steps<'_> {
        if reader < self.streams.readers {
            self.streams.steps(reader)
        } else if reader == self.streams.readers {
            Box::new(self.other.iter().copied())
        } else {
            Box::new(core::iter::empty())
        }
    }
}

fn streams(readers: usize) -> ManyReaders {
    ManyReaders {
        file_bytes: 100_000_000,
        read_bytes: 64 << 10,
        think_ns: 0,
        readers,
        shared: false,
    }
}

/// All readers, and the one that is not a stream.
fn run(workload: &Beside) -> (Report, ReaderReport) {
    let device = device::parse(DISK).unwrap();
    let report = Scene::new(settings("forerun", MEMORY), device, workload)
        .run(&mut ())
        .unwrap();
    let other = report.readers.last().cloned().unwrap();
    (report, other)
}

#[test]
fn streams_that_keep_up_end_together() {
    let workload = Beside {
        streams: streams(64),
        file_bytes: 0,
        files: 1,
        other: Vec::new(),
    };
    let (report, _) = run(&workload);
    let elapsed = |r: &ReaderReport| r.elapsed.0 as f64;
    let streams = &report.readers[..64];
    let mean = streams.iter().map(elapsed).sum::<f64>() / 64.0;
    let slowest = streams.iter().map(elapsed).fold(0.0, f64::max);
    assert!(
        slowest / mean < 1.15,
        "slowest {:.2} of the mean",
        slowest / mean
    );
}

/// A page a second waits for the slice under way. By age alone it would wait a round.
#[test]
fn a_single_read_waits_for_a_slice_not_for_a_round() {
    let page = |n: u64| Step::read(n * 7_919 % 20_000 * 4096, 4096, 1_000_000_000);
    let workload = Beside {
        streams: streams(64),
        file_bytes: 100_000_000,
        files: 1,
        other: (0..60).map(page).collect(),
    };
    let (report, other) = run(&workload);
    let wait = other.stall.0 / other.reads;
    println!("a page waits for {} ms", wait / 1_000_000);
    assert!(wait < 100_000_000, "a page waits for {}", Nanos(wait));
    let rate = report.throughput_bytes_per_second() as f64 / 1e6;
    assert!(rate > 64.0, "the streams get {rate:.1} MB/s");
}

/// Pages at random, one after the other, in one file or in one of their own: due like a stream's each would wait for
/// half a second of work beside 64 streams. Single reads go before them, with an eighth of the work, and cut a run of
/// three depths short.
#[test]
fn single_reads_one_after_the_other_wait_for_twelve_switches() {
    for (streams_beside, switching_ms, rate, files) in [
        (1, 8, 80, 1),
        (10, 8, 80, 1),
        (10, 8, 80, 200),
        (33, 8, 80, 1),
        (64, 8, 80, 1),
        (64, 8, 80, 3),
        (64, 8, 80, 200),
        (256, 8, 80, 1),
        (64, 4, 200, 1),
        (64, 4, 200, 400),
        (10, 12, 40, 1),
    ] {
        let device =
            format!("switching(cost_ns={switching_ms}000000,rate_bytes_per_second={rate}000000)");
        let page = |n: u64| {
            let step = Step::read(n * 7_919 % 20_000 * 4096, 4096, 0);
            match n as usize % files {
                0 => step,
                other => step.on(streams_beside + other),
            }
        };
        let of = |other: Vec<Step>| {
            let workload = Beside {
                streams: ManyReaders {
                    file_bytes: 8 << 30,
                    ..streams(streams_beside)
                },
                file_bytes: 100_000_000,
                files,
                other,
            };
            let device = device::parse(&device).unwrap();
            let mut scene = Scene::new(settings("forerun", MEMORY), device, &workload);
            scene.until = Some(Nanos(10_000_000_000));
            scene.run(&mut ()).unwrap()
        };
        let report = of((1..10_000).map(page).collect());
        let others = &report.readers[streams_beside..];
        let longest = others.iter().map(|other| other.longest_stall.0).max();
        let longest = longest.unwrap_or(0);
        let rate = |report: &Report| report.device_bytes().0 as f64 / 10e6;
        let (alone, beside) = (rate(&of(Vec::new())), rate(&report));
        let waits = format!(
            "{streams_beside} streams of {device}, {alone:.1} MB/s: a page in {files} files waits for {} ms at most, beside {beside:.1}",
            longest / 1_000_000
        );
        println!("{waits}");
        assert!(longest <= 12 * switching_ms * 1_000_000, "{waits}");
        // A page that is never answered has no stall.
        let reads: u64 = others.iter().map(|other| other.reads).sum();
        assert!(reads * 12 * switching_ms >= 9_000, "{reads} pages, {waits}");
        assert!(beside >= 0.7 * alone, "{waits}");
    }
}

/// Readers at random, each with another read as soon as it has one, of one of these lengths.
#[derive(Debug)]
struct AtRandom {
    readers: usize,
    reads: u64,
    pages: &'static [u64],
}

impl Workload for AtRandom {
    fn files(&self) -> Vec<Bytes> {
        vec![Bytes(50_000_000); self.readers]
    }

    fn readers(&self) -> Vec<usize> {
        (0..self.readers).collect()
    }

    fn steps(&self, reader: usize) -> Steps<'_> {
        let mut random = Random::new(reader as u64);
        let read = move |_| {
            let pages = self.pages[random.between(0, self.pages.len() as u64 - 1) as usize];
            Step::read(random.between(0, 12_000) * 4096, pages * 4096, 0)
        };
        Box::new((0..self.reads).map(read))
    }
}

/// The drive sorts its own requests, and most of a crowd wait here: in the order of turns they would take a quarter
/// longer.
#[test]
fn a_crowd_at_random_is_nearly_as_fast_as_if_the_drive_had_it_all_and_none_is_forgotten() {
    const PAGE: &[u64] = &[1];
    for (device, readers, pages) in [
        ("ibm_36gb_10k", 64, PAGE),
        ("seagate_146gb_10k", 64, PAGE),
        ("cheetah_15k_st373454", 64, PAGE),
        ("cheetah_15k_st373454", 200, PAGE),
        ("switching", 16, PAGE),
        ("array:ibm_36gb_10k", 16, PAGE),
        ("array:ibm_36gb_10k", 200, PAGE),
        ("array:hp97560", 64, PAGE),
        // Requests that continue the last one cost this drive a revolution.
        ("hitachi_t7k250_160", 90, &[12]),
        ("hitachi_t7k250_160", 64, &[1, 4, 12]),
        ("seagate_146gb_10k", 200, &[1, 12]),
        ("ibm_36gb_10k", 64, &[1, 16, 64]),
    ] {
        let workload = AtRandom {
            readers,
            reads: 20_000 / readers as u64,
            pages,
        };
        let run = |preset| {
            let device = device::parse(device).unwrap();
            let scene = Scene::new(settings(preset, MEMORY), device, &workload);
            scene.run(&mut ()).unwrap()
        };
        let (alone, ours) = (run("none"), run("forerun"));
        let times = ours.elapsed.0 as f64 / alone.elapsed.0 as f64;
        let longest = ours
            .readers
            .iter()
            .map(|reader| reader.longest_stall.0)
            .max();
        let longest = longest.unwrap() as f64 / 1e9;
        println!(
            "{readers} readers of {device}, {pages:?}: {times:.3} of the time, a read waits for {longest:.2} s at most"
        );
        assert!(times <= 1.1, "{readers} of {device}, {pages:?}: {times:.3}");
        assert!(longest <= 3.0, "{readers} of {device}: {longest:.2} s");
    }
}

/// Streams that keep up have a turn each in three seconds, where slices of three depths allow it: 64 on a
/// disk of 15 ms and 40 MB/s take four, 256 on one of 8 ms and 80 MB/s eight, in which some have two turns.
#[test]
fn a_stream_waits_no_longer_than_a_round() {
    for (readers, switching_ms, rate, bound) in [
        (10, 8, 80, 3.0),
        (20, 8, 80, 3.0),
        (40, 8, 80, 3.0),
        (64, 8, 80, 3.0),
        (64, 4, 160, 3.1),
        (64, 15, 40, 4.4),
        (256, 8, 80, 11.5),
    ] {
        let device =
            format!("switching(cost_ns={switching_ms}000000,rate_bytes_per_second={rate}000000)");
        let workload = ManyReaders {
            file_bytes: 20_000_000,
            ..streams(readers)
        };
        let scene = Scene::new(
            settings("forerun", MEMORY),
            device::parse(&device).unwrap(),
            &workload,
        );
        let report = scene.run(&mut ()).unwrap();
        let waits = report.readers.iter().map(|reader| reader.longest_stall);
        let longest = waits.max().unwrap().0 as f64 / 1e9;
        let rate = report.throughput_bytes_per_second() as f64 / 1e6;
        println!("{readers} readers of {device}: {longest:.2} s, {rate:.1} MB/s");
        assert!(longest <= bound, "{readers} of {device}: {longest:.2} s");
    }
}

/// A film at 1 MB/s, less than half its share of the disk, among 32 greedy streams: it waits while
/// its windows grow, then plays on. By age alone each window would wait for a round.
#[test]
fn a_slow_stream_does_not_starve_among_fast_ones() {
    let frame = |n: u64| Step::read(n * 65_536, 65_536, 65_536_000);
    let workload = Beside {
        streams: streams(32),
        file_bytes: 60_000_000,
        files: 1,
        other: (0..900).map(frame).collect(),
    };
    let (_, other) = run(&workload);
    let late = other.elapsed.0 as f64 / other.compute.0 as f64;
    println!("a film of 60 s takes {late:.3} of its time");
    assert!(late < 1.3, "it takes {late:.3} times as long");
}

/// One reader asks for 1024 blocks at a time, which take the disk 52 ms; slices are one competitive
/// depth, 8 ms. The blocks go to the disk in pieces. A page of another reader waits until the run
/// of pieces is a depth past its slice, which it mostly is, for the two pieces at the disk, and for
/// its own switch; not until there is no piece left.
#[test]
fn a_long_request_is_finished_a_depth_past_its_slice_at_most() {
    let page = |n: u64| Step::read(n * 7_919 % 2_000 * 4096, 4096, 150_000_000);
    let workload = Beside {
        streams: ManyReaders {
            file_bytes: 200_000_000,
            read_bytes: 8 << 20,
            ..streams(1)
        },
        file_bytes: 10_000_000,
        files: 1,
        other: (0..15).map(page).collect(),
    };
    let mut settings = settings("forerun", MEMORY);
    settings.detect = Choice::parse("detect", METHODS.detect, "none").unwrap();
    let slices = "continuing(slice_switches=1,longest_wait_ms=1)";
    settings.dispatch = Choice::parse("dispatch", METHODS.dispatch, slices).unwrap();
    settings.request_max = Bytes(65_536);
    let device = device::parse(DISK).unwrap();
    let report = Scene::new(settings, device, &workload)
        .run(&mut ())
        .unwrap();
    let other = report.readers[1];
    let wait = other.stall.0 / other.reads;
    println!("a page waits for {} us", wait / 1000);
    assert!(wait < 16_000_000, "a page waits for {}", Nanos(wait));
}
