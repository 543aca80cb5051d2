//! Presets of the engine work in pages of 4 KiB, whatever the block that is counted.

use forerun_baselines::PRESETS;
use forerun_core::Nanos;
use forerun_sim::random::Random;
use forerun_sim::simulate::Outcome;
use forerun_sim::simulate::disk::Disk;
use forerun_sim::simulate::grid::Grid;
use forerun_sim::simulate::input::Input;
use forerun_sim::simulate::recorded::Room;
use forerun_sim::simulate::requests::{Manner, Records, Source};
use forerun_sim::trace::{Record, TraceError};

const MEMORY: u32 = 16 << 20;
const REQUEST: u64 = 128 << 10;
const VIEWERS: u64 = 8;

/// Viewers of files 1 GB apart, which read requests that are not aligned, each where the one before ends.
fn viewers(block_bytes: u32) -> Input {
    let open = || -> Result<Records<'static>, TraceError> {
        let mut random = Random::new(7);
        let mut ends = [0_u64; VIEWERS as usize];
        let record = move |_| {
            let viewer = random.below(VIEWERS);
            let begin = &mut ends[viewer as usize];
            let at = viewer * 1_000_000_000 + 1536 + *begin;
            *begin += REQUEST;
            Ok((None, Record::range(at, REQUEST as u32).unwrap()))
        };
        Ok(Box::new((0..1500).map(record)))
    };
    let manner = Manner {
        block_bytes,
        with_writes: false,
        think: Some(Nanos(1_000_000)),
    };
    let room = Room {
        keeps: false,
        ..Room::ENDLESS
    };
    let (records, open) = (open().unwrap(), Box::new(open));
    Input::of_trace(records, Source { open, manner }, room).unwrap()
}

#[test]
fn the_block_that_is_counted_decides_nothing_for_presets_of_the_engine() {
    let disk = Disk::named("seagate_146gb_10k", None).unwrap();
    let blocks = [512, 4096, 8192, 65_536, 1 << 20];
    let inputs = blocks.map(viewers);
    for preset in PRESETS {
        let outcomes: Vec<Outcome> = inputs
            .iter()
            .map(|input| {
                let grid = Grid::new(input, &disk, Nanos(25_000));
                let preset = preset.name.parse().unwrap();
                let frames = MEMORY / input.block_bytes;
                let run = grid.plan(&preset, None, frames, &|_| ()).unwrap();
                grid.run(&run).unwrap().0
            })
            .collect();
        for (block, outcome) in blocks.iter().zip(&outcomes) {
            let name = format!("{}, blocks of {block}", preset.name);
            // Requests are counted once, though none begins with a page.
            assert_eq!(outcome.reads, 1500 * REQUEST / 4096, "{name}");
            let all = [outcome, &outcomes[0]];
            for times in [
                all.map(|one| one.elapsed),
                all.map(|one| one.hits + one.late_hits),
                all.map(|one| one.fetches),
            ] {
                let [most, least] = [times[0].max(times[1]), times[0].min(times[1])];
                assert!(most - least <= least / 50, "{name}: {times:?}");
            }
        }
    }
}
