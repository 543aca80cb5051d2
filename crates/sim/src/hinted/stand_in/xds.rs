//! xds: 25 planar slices through a volume of data.
//!
//! Known (Kimbrel et al. 1996, section 3.1, Table 3): 25 slices at random orientations from a
//! file of 64 MB; 10,435 reads of 5392 blocks, which is 417 blocks a slice; 30.8 s of computing.
//!
//! Follows: fixed horizon takes 33.5 s on five disks (Table 2), 2.7 s more than the computing,
//! which are 5400 fetches at half a millisecond: about as many as there are blocks. So a block that
//! is read again is still cached, from a slice shortly before.
//!
//! Assumed: the volume is 400 x 400 x 400 bytes, rows along x, so that a block holds 20 rows and a
//! slice across them reads a block, or a few in a row, out of every layer, at a stride that
//! depends on its orientation:
//!
//! ```text
//! layer z      ..........##..........     20 blocks of 20 rows
//! layer z+1    .........##...........
//! layer z+2    ........##............
//! ```
//!
//! A slice is a square piece of a plane around a point, as large for all as makes the reads of
//! Table 3. It reads each of its blocks once, in the order of the file. The points go through the
//! volume layer by layer, at random within each, so that slices cross those before and after them.
//! That gives about the distinct blocks of Table 3; they are made exact by reading a neighbour
//! instead. Compute times are exponential.

use forerun_core::Nanos;

use super::{Accesses, StandIn};
use crate::random::Random;

const SLICES: usize = 25;
/// Of the volume, in voxels of a byte.
const SIDE: i64 = 400;
const BLOCKS: u32 = ((SIDE * SIDE * SIDE) as u64).div_ceil(8192) as u32;
/// How far points stay away from the faces.
const MARGIN: i64 = SIDE / 10;
/// Vectors in the plane are this long, times the number of voxels.
const UNIT: i64 = 1 << 16;

/// See the [module](self).
pub const XDS: StandIn = StandIn {
    name: "xds",
    summary: "slices through a volume: strides and short runs",
    reads: 10_435,
    distinct: 5392,
    compute: Nanos(30_800_000_000),
    accesses: |trace, random| accesses(trace, slices_in_order, random),
};

/// xds without its fit: slices come in any order.
pub const XDS_ANY: StandIn = StandIn {
    name: "xds, slices in any order",
    accesses: |trace, random| accesses(trace, slices_in_any_order, random),
    ..XDS
};

/// A point of a plane, and two unit vectors in it at right angles.
#[derive(Clone, Copy, Debug)]
struct Plane {
    point: [i64; 3],
    across: [i64; 3],
    down: [i64; 3],
}

fn accesses(
    trace: &StandIn,
    order: fn(&mut Random) -> Vec<usize>,
    random: &mut Random,
) -> Accesses {
    let order = order(random).into_iter();
    let planes: Vec<Plane> = order.map(|number| Plane::random(number, random)).collect();
    let read = |half: i64| -> Vec<Vec<u32>> { planes.iter().map(|p| p.slice(half)).collect() };
    let count = |half: i64| read(half).iter().map(Vec::len).sum::<usize>();
    let (mut low, mut high) = (1, SIDE);
    while low + 1 < high {
        let half = low.midpoint(high);
        if count(half) < trace.reads as usize {
            low = half;
        } else {
            high = half;
        }
    }
    let mut slices = read(high);
    thin(&mut slices, trace.reads as usize);
    let mut order: Vec<u32> = slices.concat();
    settle(&mut order, trace.distinct);
    let reads = order.into_iter().map(|block| (0, block)).collect();
    Accesses::exponential(vec![BLOCKS], reads, random)
}

fn slices_in_order(_: &mut Random) -> Vec<usize> {
    (0..SLICES).collect()
}

fn slices_in_any_order(random: &mut Random) -> Vec<usize> {
    let mut order = slices_in_order(random);
    for at in (1..order.len()).rev() {
        order.swap(at, random.below(at as u64 + 1) as usize);
    }
    order
}

/// Takes blocks off the ends of slices, in turns, until so many are left.
fn thin(slices: &mut [Vec<u32>], reads: usize) {
    let mut surplus = slices.iter().map(Vec::len).sum::<usize>() - reads;
    while surplus > 0 {
        for slice in slices.iter_mut() {
            if surplus > 0 && slice.pop().is_some() {
                surplus -= 1;
            }
        }
    }
}

/// Replaces reads until there are so many distinct blocks: a block read only once by the one before
/// it, or one read before by the next that never was.
fn settle(order: &mut [u32], distinct: u32) {
    let mut counts = vec![0u32; BLOCKS as usize];
    for block in order.iter() {
        counts[*block as usize] += 1;
    }
    let mut have = counts.iter().filter(|count| **count > 0).count() as u32;
    for at in 1..order.len() {
        let old = order[at] as usize;
        if have > distinct && counts[old] == 1 {
            order[at] = order[at - 1];
            have -= 1;
        } else if have < distinct && counts[old] > 1 {
            let free = (old..counts.len()).find(|block| counts[*block] == 0);
            let Some(free) = free.or_else(|| counts.iter().position(|count| *count == 0)) else {
                return;
            };
            order[at] = free as u32;
            have += 1;
        } else {
            continue;
        }
        counts[old] -= 1;
        counts[order[at] as usize] += 1;
    }
}

impl Plane {
    /// The plane of slice `number`.
    fn random(number: usize, random: &mut Random) -> Self {
        let layer = (2 * number as i64 + 1) * SIDE / (2 * SLICES as i64);
        let mut within = || random.between(MARGIN as u64, (SIDE - MARGIN) as u64) as i64;
        let point = [within(), within(), layer];
        let across = direction(random);
        // Any other direction, made orthogonal to the first.
        let other = direction(random);
        let along = dot(across, other);
        let rest = [0, 1, 2].map(|i| other[i] - across[i] * along / UNIT);
        Self {
            point,
            across,
            down: unit(rest).unwrap_or([0, 0, UNIT]),
        }
    }

    /// The blocks under a square of `2 * half` voxels a side, in the order of the file.
    fn slice(&self, half: i64) -> Vec<u32> {
        let mut touched = vec![false; BLOCKS as usize];
        for row in -half..half {
            for column in -half..half {
                let at = [0, 1, 2].map(|i| {
                    let step = self.across[i] * column + self.down[i] * row;
                    self.point[i] + step.div_euclid(UNIT)
                });
                if at.iter().all(|voxel| (0..SIDE).contains(voxel)) {
                    let byte = (at[2] * SIDE + at[1]) * SIDE + at[0];
                    touched[(byte / 8192) as usize] = true;
                }
            }
        }
        let read = (0..BLOCKS).filter(|block| touched[*block as usize]);
        read.collect()
    }
}

fn dot(a: [i64; 3], b: [i64; 3]) -> i64 {
    (a[0] * b[0] + a[1] * b[1] + a[2] * b[2]) / UNIT
}

/// A direction, all alike: points of a cube, those outside the ball refused.
fn direction(random: &mut Random) -> [i64; 3] {
    loop {
        let at = [0; 3].map(|_| random.between(0, 2 * UNIT as u64) as i64 - UNIT);
        if let Some(unit) = unit(at).filter(|_| dot(at, at) <= UNIT) {
            return unit;
        }
    }
}

/// A vector made as long as the unit; none for one too short to have a direction.
fn unit(vector: [i64; 3]) -> Option<[i64; 3]> {
    let square: i64 = vector.iter().map(|part| part * part).sum();
    let length = square.isqrt();
    (length > UNIT / 64).then(|| vector.map(|part| part * UNIT / length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_along_the_layers_reads_runs_and_one_across_them_strides() {
        let plane = |across, down| Plane {
            point: [SIDE / 2; 3],
            across,
            down,
        };
        let [x, y, z] = [[UNIT, 0, 0], [0, UNIT, 0], [0, 0, UNIT]];
        let along = plane(x, y).slice(50);
        assert!(
            along.windows(2).all(|pair| pair[1] == pair[0] + 1),
            "{along:?}"
        );
        let across = plane(x, z).slice(50);
        let layer = SIDE * SIDE / 8192;
        let strides = across
            .windows(2)
            .filter(|pair| i64::from(pair[1] - pair[0]) >= layer);
        assert!(strides.count() >= 99, "{across:?}");
    }

    #[test]
    fn few_reads_are_moved_to_make_the_distinct_blocks_exact() {
        let trace = XDS.trace(1);
        let moved = trace
            .references
            .windows(2)
            .filter(|pair| pair[0].block == pair[1].block);
        assert!(moved.count() < trace.references.len() / 20);
    }
}
