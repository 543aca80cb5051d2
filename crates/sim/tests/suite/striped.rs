//! Files striped over several devices behind one layout.
//!
//! Four emulated disks of 8 ms and 80 MB/s, strips of 64 KiB, so 320 MB/s at most. MB = 10^6 bytes.

use forerun_baselines::PRESETS;
use forerun_core::Bytes;
use forerun_sim::replay::replay;
use forerun_sim::world::Striping;
use forerun_sim::{Record, Report, Scene, Text, device, workload};

use crate::stage::{DISK, MEMORY, settings};

const DISKS: usize = 4;
const STRIP: Bytes = Bytes(64 << 10);

fn striped(preset: &str, workload: &str, record: &mut dyn Record) -> Report {
    let built = workload::parse(workload).unwrap();
    let disk = || device::parse(DISK).unwrap();
    let mut scene = Scene::new(settings(preset, MEMORY), disk(), &*built);
    scene.devices.extend((1..DISKS).map(|_| disk()));
    scene.striping = Striping::raid0(STRIP).ok();
    let run = scene.run(record);
    run.unwrap_or_else(|error| panic!("{preset} {workload}: {error}"))
}

fn megabytes_per_second(preset: &str, readers: usize, file_bytes: u64) -> f64 {
    let workload = format!("many-readers(readers={readers},file_bytes={file_bytes})");
    let report = striped(preset, &workload, &mut ());
    assert!(report.ledger.memory_peak.0 <= MEMORY);
    let busy: Vec<u64> = report.devices.iter().map(|d| d.usage.busy.0).collect();
    let (least, most) = (busy.iter().min().unwrap(), busy.iter().max().unwrap());
    assert!(least * 10 >= most * 8, "every disk works: {busy:?}");
    let rate = report.throughput_bytes_per_second() as f64 / 1e6;
    println!("{preset}, {readers} readers over {DISKS} disks: {rate:.1} MB/s");
    rate
}

#[test]
fn one_reader_has_the_rate_of_all_disks() {
    let rate = megabytes_per_second("forerun", 1, 512_000_000);
    assert!(rate >= 280.0, "{rate:.1} of 320 MB/s");
}

#[test]
fn many_readers_have_more_than_the_kernels_readahead_gives_them() {
    for readers in [8, 32] {
        let ours = megabytes_per_second("forerun", readers, 64_000_000);
        let linux = megabytes_per_second("linux-2.6.24", readers, 64_000_000);
        assert!(
            ours >= 3.0 * linux,
            "{readers}: {ours:.1} of {linux:.1} MB/s"
        );
    }
}

/// Every preset, every byte: the world's guard checks each fetch against the layout.
#[test]
fn striped_runs_replay_line_by_line_with_every_preset() {
    for preset in PRESETS {
        for workload in crate::stage::SMALL {
            let mut text = Text::new(String::new());
            striped(preset.name, workload, &mut text);
            let text = text.finish().unwrap();
            assert!(text.contains("layout raid0(strip_bytes=65536) members 0:0,1:0,2:0,3:0"));
            let replayed = replay(text.as_bytes());
            let replayed = replayed.unwrap_or_else(|e| panic!("{} {workload}: {e}", preset.name));
            assert!(replayed.complete);
        }
    }
}

/// A reader has another one beside it, which reads the pointers to its data: one process, one
/// clock, and each pointer once.
#[test]
fn pointers_are_read_by_the_process_that_needs_them() {
    const BYTES: u64 = 3 << 22;
    for preset in ["seqp", "msp+saseqp", "forerun"] {
        let workload = format!("iozone(total_bytes={BYTES},streams=2,think_ns=1000)");
        let report = striped(preset, &workload, &mut ());
        let [one, other, pointers, others] = report.readers.as_slice() else {
            panic!("{preset}: {:?}", report.readers);
        };
        for (reader, beside) in [(one, pointers), (other, others)] {
            assert_eq!(reader.bytes.0, BYTES / 2);
            // Behind 12 blocks one, behind 1,024 more two.
            assert_eq!((beside.bytes.0, beside.reads), (3 * 4096, 2), "{preset}");
            assert_eq!(reader.elapsed, beside.elapsed);
            assert!(reader.adds_up() && beside.adds_up());
        }
    }
}

#[test]
fn a_strip_that_cuts_blocks_is_refused_by_name() {
    let built = workload::parse("sequential").unwrap();
    let disk = || device::parse(DISK).unwrap();
    let mut scene = Scene::new(settings("forerun", MEMORY), disk(), &*built);
    scene.striping = Striping::raid0(Bytes(6000)).ok();
    let error = scene.run(&mut ()).unwrap_err().to_string();
    assert!(
        error.contains("raid0(strip_bytes=6000) over 1 devices"),
        "{error}"
    );
}
