//! The suite of the shape methods: windows of one and of many readers on arrays of all sizes,
//! contiguous and in pieces, and on devices without strips.

use alloc::boxed::Box;
use alloc::format;

use super::{Broken, Random, Rule, Rules};
use crate::shape::{Shape, Strip, Strips};
use crate::units::{Block, DeviceId};

/// Windows of a run.
const WINDOWS: usize = 400;

/// An array on which a file lies in runs of `run` blocks, every other run far behind.
#[derive(Clone, Copy, Debug)]
struct StripedRun {
    strip: u32,
    data: u32,
    run: u32,
    array: u16,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    place: Option<StripedRun>,
    start: u32,
    end: u64,
    wanted: u64,
    room: u64,
}

impl StripedRun {
    /// The address of a block, and how many follow it in one run.
    fn address(&self, block: u32) -> (u64, u32) {
        let (run, within) = (block / self.run, block % self.run);
        let far = u64::from(run % 2) << 40;
        (far + u64::from(block), self.run - within)
    }
}

impl Strips for Asked {
    fn start(&self) -> Block {
        Block(self.start)
    }

    fn end(&self) -> u64 {
        self.end
    }

    fn wanted(&self) -> u64 {
        self.wanted
    }

    fn room(&self) -> u64 {
        self.room
    }

    fn array(&self) -> DeviceId {
        DeviceId(self.place.map_or(0, |place| place.array))
    }

    fn spread(&self) -> u32 {
        self.place.map_or(1, |place| place.data)
    }

    fn strip(&self, block: Block) -> Option<Strip> {
        let place = self.place?;
        let (address, left) = place.address(block.0);
        let (strip, stripe) = (u64::from(place.strip), u64::from(place.strip * place.data));
        Some(Strip {
            number: address / strip,
            left: ((strip - address % strip) as u32).min(left),
            left_of_stripe: ((stripe - address % stripe) as u32).min(left),
            stripe: stripe as u32,
        })
    }
}

fn draw(random: &mut Random, places: &[Option<StripedRun>; 3], at: &mut [u32; 3]) -> Asked {
    let which = random.below(3) as usize;
    if random.one_in(8) {
        at[which] = random.below(1 << 22) as u32;
    }
    let start = at[which];
    let size = 1 + random.magnitude(9);
    let end = u64::from(start) + size;
    at[which] = end as u32;
    Asked {
        place: places[which],
        start,
        end,
        wanted: u64::from(start) + random.below(size + 1),
        room: end + random.magnitude(12),
    }
}

/// Checks the shape method that `make` builds, but for some rules.
///
/// # Errors
/// The first rule it breaks.
pub fn shape(make: &dyn Fn() -> Box<dyn Shape>, seed: u64, but: &[Rule]) -> Result<(), Broken> {
    let rules = Rules { seed, but };
    let mut random = Random(seed);
    let mut place = |array| {
        let is_striped = !random.one_in(4);
        is_striped.then(|| StripedRun {
            strip: 1 + random.below(64) as u32,
            data: 1 + random.below(16) as u32,
            run: 1 + random.magnitude(20) as u32,
            array,
        })
    };
    let places = [place(0), place(1), None];
    let (mut method, mut again) = (make(), make());
    let mut at = [0; 3];
    for _ in 0..WINDOWS {
        let asked = draw(&mut random, &places, &mut at);
        let end = method.end(&asked);
        let how = || format!("{asked:?} ends at {end}");
        let is_inside = end > asked.start.into() && end <= asked.room;
        rules.check(Rule::EndInside, is_inside, how)?;
        let same = again.end(&asked) == end;
        rules.check(Rule::Deterministic, same, how)?;
        let last = asked.strip(Block((end - 1) as u32));
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
