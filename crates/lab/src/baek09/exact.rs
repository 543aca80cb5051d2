//! B1 and B2: the paper's two worked examples, which need no disk.

use forerun_baselines::METHODS;
use forerun_baselines::shape::stripe::Counter;
use forerun_core::layout::{LayoutMap, MappedExtent, Placement};
use forerun_core::shape::StripedWindow;
use forerun_core::spec::Choice;
use forerun_core::{Block, Bytes, DeviceId};

use super::super::Answer;
use super::super::numbers::answer;

/// Blocks of the file of Figures 3 and 4, and where on the array it begins.
const FILE: (u64, u64) = (20, 16);
/// Blocks of a strip, and disks with data: Figure 1.
const STRIP: u64 = 4;
const DISKS: u16 = 4;
/// Sizes of the windows that are decided; the last one again and again.
const RAMP: [u64; 3] = [1, 2, 4];

/// Bytes of a block: any that a strip of four is allowed to have.
const BLOCK: u64 = 4096;

/// How many requests all disks get, windows ended by this shape.
fn requests(shape: &str) -> Option<u64> {
    let mut shape = Choice::parse("shape", METHODS.shape, shape).ok()?.build();
    let disks = (0..DISKS).map(DeviceId);
    let mut placement = Placement::raid0(Bytes(STRIP * BLOCK), disks, Bytes(0)).ok()?;
    placement.extents.push(MappedExtent {
        offset: Bytes(0),
        array: 0,
        at: Bytes(FILE.1 * BLOCK),
    });
    let map = LayoutMap::new(&placement, BLOCK as u32)?;
    let (mut start, mut requests) = (0, 0);
    let mut sizes = RAMP.into_iter();
    let mut size = 0;
    while start < FILE.0 {
        size = sizes.next().unwrap_or(size);
        let end = (start + size).min(FILE.0);
        let window = StripedWindow {
            start: Block(start as u32),
            end,
            wanted: start + 1,
            room: FILE.0,
            layout: &map,
        };
        let end = shape.end(&window);
        let mut at = start;
        while at < end {
            let place = map.copy(at * BLOCK, 0);
            requests += 1;
            at += (place.run.0 / BLOCK).min(end - at);
        }
        start = end;
    }
    Some(requests)
}

pub(super) fn b1() -> Answer {
    let counted = ["whole", "strip"].map(|shape| requests(shape).unwrap_or(0) as f64);
    answer(
        counted.to_vec(),
        "requests of the windows as the shape stage ends them and the layout splits them",
    )
}

pub(super) fn b2() -> Answer {
    /// SC^max of Figure 7.
    const MOST: u64 = 42;
    let mut counter = Counter::default();
    let strips = [0, 4, 0, 4, 5, 0, 5, 6, 0, 6];
    let values = strips.map(|strip| {
        counter.step(strip, MOST);
        counter.value() as f64
    });
    answer(
        values.to_vec(),
        "with two slips of Figure 7 mended, as the text's own numbers have it: line 23 is max(0, SC - 1), \
         line 27 max(SPS - 1, 0), and before the first strip there was strip -1",
    )
}
