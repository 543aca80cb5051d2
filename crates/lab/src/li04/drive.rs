//! C1 and C2: figures of the modelled drive before any server runs.

use forerun_core::{Bytes, Nanos};

use super::super::Answer;
use super::super::numbers::{answer, rounded};
use forerun_sim::device::{self, Device, Request};
use forerun_sim::random::Random;

/// Places drawn: the mean is within a hundredth of a percent of that of ten times as many.
const PLACES: u64 = 20_000;
const SEED: u64 = 3;

fn disk() -> Option<Box<dyn Device>> {
    device::from_toml(include_str!("../../../sim/models/ibm_36gb_10k.toml"))
        .ok()
        .map(|model| model.build())
}

/// The mean of switching cost times rate, over pairs of random places.
pub(super) fn c1() -> Answer {
    let Some(disk) = disk() else {
        return answer(Vec::new(), "the model of the drive was refused");
    };
    let (profile, capacity) = (disk.profile(), disk.capacity().unwrap_or(Bytes(1)));
    let mut random = Random::new(SEED);
    let depths = (0..PLACES).map(|_| {
        let [from, to] = [0; 2].map(|_| random.below(capacity.0));
        let distance = Bytes(from.abs_diff(to));
        profile.competitive_depth(distance, Bytes(to)).0 as f64
    });
    let mean = depths.sum::<f64>() / PLACES as f64 / 1e3;
    let note = "KB of 1,000 bytes: the mean over pairs of random places of seek, half a revolution and rate there, on a \
                drive whose mean seek, revolution and mean rate are the published measurements";
    answer(vec![rounded(mean, 1)], note)
}

/// Streams of the mean length of each benchmark at random places, each read by one request.
pub(super) fn c2() -> Answer {
    let block = 64 << 10;
    let (whole, part) = ((64 * block, 64 * block), (block, 64 * block));
    let measured = [whole, part, part, (block, block)].map(|(least, most)| optimum(least, most));
    let note = "MB/s of 10^6 bytes. The paper's estimate is mean length over mean length by rate and one switch; here \
                4,000 streams are read at random places of the modelled drive, each by one request";
    answer(measured.to_vec(), note)
}

pub(super) fn optimum(least: u64, most: u64) -> f64 {
    let Some(mut disk) = disk() else { return 0.0 };
    let room = disk
        .capacity()
        .map_or(1, |capacity| capacity.0)
        .saturating_sub(2 * most);
    let mut random = Random::new(SEED);
    let (mut now, mut total, mut done) = (Nanos(0), 0, Vec::new());
    for id in 0..4_000 {
        let bytes = Bytes(random.between(least, most) / 4096 * 4096);
        let at = Bytes(random.below(room) / 4096 * 4096);
        disk.submit(now, Request::new(id, at, bytes));
        while let Some(next) = disk.next_event() {
            now = next;
            disk.advance(now, &mut done);
        }
        total += bytes.0;
    }
    rounded(total as f64 * 1e3 / now.0.max(1) as f64, 1)
}
