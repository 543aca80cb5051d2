//! The suite of the shape methods: windows of one and of many readers on arrays of all sizes,
//! contiguous and in pieces, and on devices without strips.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::{Broken, Random, Rule, Rules};
use crate::layout::{LayoutMap, MappedExtent, Placement};
use crate::shape::{Shape, StripedWindow};
use crate::units::{Block, Bytes, DeviceId};

/// Windows of a run.
const WINDOWS: usize = 400;
/// Arrays, and runs of the file on each of them.
const ARRAYS: u16 = 3;
const RUNS: u64 = 256;
const BLOCK: u64 = 512;

/// A file in runs of one length on an array or a device, every other run far behind.
fn array(random: &mut Random, number: u16) -> Option<LayoutMap> {
    let members = 1 + random.below(16) as u16;
    let devices = (0..members).map(|member| DeviceId(number * 16 + member));
    let strip = Bytes((1 + random.below(64)) * BLOCK);
    let mut placement = match random.one_in(4) {
        true => Placement::linear(DeviceId(number * 16), Bytes(0)),
        false => Placement::raid0(strip, devices, Bytes(0)).ok()?,
    };
    let run = 1 + random.magnitude(14);
    let extents = (0..RUNS).map(|i| MappedExtent {
        offset: Bytes(i * run * BLOCK),
        array: 0,
        at: Bytes((((i % 2) << 40) + i * run) * BLOCK),
    });
    placement.extents = extents.collect();
    LayoutMap::new(&placement, BLOCK as u32)
}

fn draw<'a>(random: &mut Random, arrays: &'a [LayoutMap], at: &mut [u32]) -> StripedWindow<'a> {
    let which = random.below(arrays.len() as u64) as usize;
    if random.one_in(8) {
        at[which] = random.below(1 << 22) as u32;
    }
    let start = at[which];
    let size = 1 + random.magnitude(9);
    let end = u64::from(start) + size;
    at[which] = end as u32;
    StripedWindow {
        start: Block(start),
        end,
        wanted: u64::from(start) + random.below(size + 1),
        room: end + random.magnitude(12),
        layout: &arrays[which],
    }
}

/// Checks the shape method that `make` builds, but for some rules.
///
/// # Errors
/// The first rule it breaks.
pub fn shape(make: &dyn Fn() -> Box<dyn Shape>, seed: u64, but: &[Rule]) -> Result<(), Broken> {
    let rules = Rules { seed, but };
    let mut random = Random(seed);
    let arrays: Vec<LayoutMap> = (0..ARRAYS).filter_map(|n| array(&mut random, n)).collect();
    let (mut method, mut again) = (make(), make());
    let mut at = [0; ARRAYS as usize];
    for _ in 0..WINDOWS {
        let asked = draw(&mut random, &arrays, &mut at);
        let end = method.end(&asked);
        let how = || format!("{asked:?} ends at {end}");
        let is_inside = end > asked.start.0.into() && end <= asked.room;
        rules.check(Rule::EndInside, is_inside, how)?;
        let same = again.end(&asked) == end;
        rules.check(Rule::Deterministic, same, how)?;
        let last = asked.layout.strip(Block((end - 1) as u32));
        let is_right = match (end.cmp(&asked.end), last) {
            (core::cmp::Ordering::Equal, _) => true,
            (_, None) => false,
            (core::cmp::Ordering::Less, Some(strip)) => strip.left == 1 && end >= asked.wanted,
            (core::cmp::Ordering::Greater, Some(strip)) => {
                strip.left_of_stripe == 1 || end == asked.room
            }
        };
        rules.check(Rule::EndsWithStrip, is_right, how)?;
    }
    Ok(())
}
