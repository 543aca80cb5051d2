//! Where blocks of a trace lie: no layout tells a prefetcher what comes, and the engine's files lie where the
//! planner's blocks do.

use forerun_baselines::PRESETS;
use forerun_core::{Bytes, Nanos};
use forerun_sim::random::Random;
use forerun_sim::simulate::Outcome;
use forerun_sim::simulate::disk::Disk;
use forerun_sim::simulate::grid::{Grid, Refusal};
use forerun_sim::simulate::input::Input;
use forerun_sim::simulate::placing::{Layout, Order, Regions};
use forerun_sim::simulate::recorded::Room;
use forerun_sim::simulate::requests::{Manner, Open, Records, Source};
use forerun_sim::simulate::simulated::Simulated;
use forerun_sim::trace::{self, Record, TraceError};

const BLOCKS: u64 = 20_000;
const FRAMES: u32 = 640;

/// Numbers of blocks, each once, in random order: no method that goes by places can expect the next one.
fn shuffled() -> Vec<u64> {
    let mut random = Random::new(11);
    let mut numbers: Vec<u64> = (0..BLOCKS).collect();
    for at in (1..numbers.len()).rev() {
        numbers.swap(at, random.below(at as u64 + 1) as usize);
    }
    numbers
}

fn input(open: Open) -> Input {
    let manner = Manner {
        block_bytes: 8192,
        with_writes: false,
        think: None,
    };
    let source = Source { open, manner };
    let records = (source.open)().unwrap();
    let room = Room {
        keeps: false,
        ..Room::ENDLESS
    };
    Input::of_trace(records, source, room).unwrap()
}

/// The numbers over so many devices, of which each has its own.
fn permutation(devices: u32, is_named: bool) -> Input {
    let numbers = shuffled();
    input(Box::new(move || -> Result<Records<'static>, TraceError> {
        let record = move |number: u64| {
            let number = (number % u64::from(devices), number / u64::from(devices));
            let block = Record {
                device: number.0 as u32,
                is_named,
                ..Record::block(number.1)
            };
            Ok((None, block))
        };
        Ok(Box::new(numbers.clone().into_iter().map(record)))
    }))
}

/// The same as a log of fio over 16 files.
fn log() -> Input {
    let mut text = "fio version 3 iolog\n".to_owned();
    for file in 0..16 {
        text += &format!("0 /data/{file} add\n0 /data/{file} open\n");
    }
    for number in shuffled() {
        let (file, at) = (number % 16, number / 16 * 8192);
        text += &format!("0 /data/{file} read {at} 8192\n");
    }
    input(Box::new(move || -> Result<Records<'static>, TraceError> {
        let bytes = std::io::Cursor::new(text.clone().into_bytes());
        let records = trace::read("log", bytes, None, &trace::Options::default())?;
        Ok(Box::new(records.map(|record| Ok((None, record?)))))
    }))
}

fn outcome(grid: &Grid<'_>, preset: &str, disks: Option<u16>, blocks: u32) -> Outcome {
    let preset: Simulated = preset.parse().unwrap();
    let run = grid.plan(&preset, disks, blocks, &|_| ()).unwrap();
    grid.run(&run).unwrap().0
}

/// A method that knows no future holds some K of N blocks, and one of them is the next of M that are left with a
/// chance of K / M: K ln(N / K) hits in all, from the K-th reference on.
#[test]
fn no_preset_foresees_a_random_permutation() {
    let most = 1.1 * f64::from(FRAMES) * (BLOCKS as f64 / f64::from(FRAMES)).ln();
    let disk = Disk::named("hp97560", None).unwrap();
    for (what, input, disks, order) in [
        ("numbers", permutation(1, false), Some(1), Order::Address),
        ("packed", permutation(1, false), Some(1), Order::Packed),
        ("two devices", permutation(2, false), None, Order::Address),
        (
            "two on a disk",
            permutation(2, false),
            Some(1),
            Order::Packed,
        ),
        ("16 files", log(), Some(1), Order::Address),
        ("16 files on 3 disks", log(), Some(3), Order::Address),
    ] {
        let grid = Grid {
            layout: order.into(),
            ..Grid::new(&input, &disk, Nanos(0))
        };
        let none = outcome(&grid, "none", disks, FRAMES).elapsed as f64;
        let lru = std::iter::once("demand-lru");
        for preset in lru.chain(PRESETS.iter().map(|preset| preset.name)) {
            let found = outcome(&grid, preset, disks, FRAMES);
            let name = format!("{preset}, {what}");
            // Presets of the engine count pages of 4 KiB.
            let unit = if preset == "demand-lru" { 1 } else { 2 };
            assert_eq!(found.reads, unit * BLOCKS, "{name}");
            let hits = (found.hits + found.late_hits) as f64;
            let most = most * unit as f64;
            assert!(hits <= most, "{name}: {hits} hits, {most} at most");
            let elapsed = found.elapsed as f64;
            assert!(elapsed >= 0.9 * none, "{name}: {elapsed}, none {none}");
        }
    }
}

#[test]
fn a_preset_that_prefetches_is_refused_where_blocks_lie_in_the_order_of_first_use() {
    let disk = Disk::named("hp97560", None).unwrap();
    for devices in [1, 3] {
        for (is_named, order) in [
            (true, Order::Address),
            (true, Order::Packed),
            (true, Order::Dense),
            (false, Order::Dense),
        ] {
            let input = permutation(devices, is_named);
            let grid = Grid {
                layout: order.into(),
                ..Grid::new(&input, &disk, Nanos(0))
            };
            let plan = |name: &str| grid.plan(&name.parse().unwrap(), Some(2), 1280, &|_| ());
            let refusal = match is_named {
                true => Refusal::Addresses,
                false => Refusal::FirstUse,
            };
            for name in ["forerun", "linux-2.6.24", "cp"] {
                assert_eq!(plan(name).unwrap_err(), refusal, "{name}");
            }
            for name in ["none", "demand-lru"] {
                let refused = (order != Order::Dense).then_some(Refusal::Names);
                assert_eq!(plan(name).err(), refused, "{name}");
            }
        }
    }
}

/// Block by block on demand, without forgetting any: the engine asks each disk for what the planner does.
#[test]
fn files_of_the_engine_lie_where_the_blocks_of_the_planner_do() {
    let disk = Disk::named("hp97560", Some("fcfs")).unwrap();
    let input = permutation(3, false);
    for order in [Order::Address, Order::Packed, Order::Dense] {
        for regions in [None, Some(Regions::Concatenated), Some(Regions::Striped)] {
            for disks in [None, Some(1), Some(2), Some(3), Some(5)] {
                if regions == Some(Regions::Concatenated) && disks == Some(5) {
                    continue;
                }
                let grid = Grid {
                    layout: Layout { order, regions },
                    ..Grid::new(&input, &disk, Nanos(0))
                };
                let [lru, none] =
                    ["demand-lru", "none"].map(|name| outcome(&grid, name, disks, 60_000));
                let name = format!("{order:?} {regions:?} {disks:?}");
                assert_eq!((none.misses, lru.misses), (2 * BLOCKS, BLOCKS), "{name}");
                assert_eq!(none.elapsed, lru.elapsed, "{name}");
                assert_eq!(none.busy, lru.busy, "{name}");
                let parts = none.compute + none.driver + none.stall;
                assert_eq!(none.elapsed, parts, "{name}");
            }
        }
    }
}

#[test]
fn regions_one_behind_the_other_leave_no_disk_empty() {
    let disk = Disk::named("hp97560", None).unwrap();
    let input = permutation(2, false);
    let plan = |regions, disks| {
        let layout = Layout {
            order: Order::Address,
            regions,
        };
        let grid = Grid {
            layout,
            ..Grid::new(&input, &disk, Nanos(0))
        };
        let preset = "none".parse().unwrap();
        grid.plan(&preset, Some(disks), FRAMES, &|_| ()).err()
    };
    let idle = Refusal::Idle {
        disks: 3,
        regions: 2,
    };
    assert_eq!(plan(Some(Regions::Concatenated), 3), Some(idle));
    assert_eq!(plan(Some(Regions::Concatenated), 2), None);
    assert_eq!(plan(None, 3), None);
}

/// A block is the strip of an array, and an engine has pages of 4 KiB.
#[test]
fn strips_that_are_no_pages_are_refused_before_the_first_run() {
    let disk = Disk::named("hp97560", None).unwrap();
    let manner = |block_bytes| Manner {
        block_bytes,
        with_writes: false,
        think: None,
    };
    let strip = |bytes| {
        Some(Refusal::Strip {
            bytes: Bytes(bytes),
        })
    };
    for (block_bytes, refusal) in [(1000, None), (8192, None), (10_000, strip(10_000))] {
        let many = Input::of_workload("many-readers", manner(block_bytes), Room::ENDLESS).unwrap();
        let synth = Input::of_workload("synth", manner(block_bytes), Room::ENDLESS).unwrap();
        let refused = |input: &Input, preset: &str, disks| {
            let grid = Grid::new(input, &disk, Nanos(0));
            let plan = grid.plan(&preset.parse().unwrap(), Some(disks), 4096, &|_| ());
            plan.map(|run| drop(grid.run(&run).unwrap())).err()
        };
        for preset in ["none", "kernel"] {
            assert_eq!(refused(&many, preset, 2), refusal, "{block_bytes} {preset}");
        }
        assert_eq!(refused(&synth, "none", 2), refusal, "{block_bytes}");
        // One disk has no strips for a trace, and hinted methods have none of pages.
        assert_eq!(refused(&synth, "none", 1), None, "{block_bytes}");
        assert_eq!(refused(&synth, "forestall", 2), None, "{block_bytes}");
    }
}
