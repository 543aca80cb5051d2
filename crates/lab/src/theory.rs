//! The theorems of Kimbrel et al. 1996 on small random instances, against the exhaustive optimum.
//!
//! An instance has at most 8 blocks, 3 disks and 14 references; half of them start with a full
//! cache, as the theory has it. The test `hinted_theory` draws the same ones and looks closer. With
//! F the fetch time, K the cache and d the disks:
//!
//! ```text
//! aggressive           at most d (1 + F/K) times the optimum      (Theorem 1)
//!   on one disk        at most min(1 + F/K, 2) times              (Cao et al. 1995)
//! reverse aggressive   at most 1 + F d/K times                    (Theorem 2)
//! every method         never below the optimum
//! ```
//!
//! The bounds are so wide that fixed horizon, of which no theorem speaks, keeps them as well. The
//! sum of each method's times, over the sum of the optima, tells them apart.

use forerun_baselines::METHODS;
use forerun_core::hinted::BlockNo;
use forerun_core::{Bytes, DeviceId, Nanos};

use super::Broken;
use forerun_sim::hinted::Setup;
use forerun_sim::hinted::optimum::optimum;
use forerun_sim::hinted::unit::{self, Instance};
use forerun_sim::hinted::{Place, Reads, Reference};
use forerun_sim::random::Random;

/// Most disks of an instance.
const DISKS_MAX: u16 = 3;

/// Result of the instances.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Bounds {
    /// Instances that were checked.
    pub instances: u64,
    /// Times that a bound did not hold.
    pub broken: u64,
    /// Sum of the optima.
    pub optimum_units: u64,
    /// Sum of the units of aggressive.
    pub aggressive_units: u64,
    /// Sum of the units of reverse aggressive.
    pub reverse_units: u64,
    /// Sum of the units of fixed horizon, its horizon F.
    pub horizon_units: u64,
    /// Times that fixed horizon broke a bound of the two theorems.
    pub horizon_broken: u64,
}

/// An instance, and its run's parameters.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// References, places and F.
    pub instance: Instance,
    /// d.
    pub disks: u16,
    /// K.
    pub cache_blocks: u32,
}

/// Instance `number` of a seed, on at most a given number of disks.
#[must_use]
pub fn draw(seed: u64, number: u64, disks_max: u16) -> Drawn {
    let mut random = Random::part(seed, number);
    let disks = random.between(1, disks_max.into()) as u16;
    let blocks = random.between(2, 8) as u32;
    let cache_blocks = random.between(1, u64::from(blocks - 1).min(5)) as u32;
    let references = random.between(3, 14);
    let reference = |random: &mut Random| Reference {
        block: BlockNo(random.below(u64::from(blocks)) as u32),
        compute: Nanos(1),
    };
    let place = |random: &mut Random| Place {
        disk: DeviceId(random.below(u64::from(disks)) as u16),
        at: Bytes(0),
    };
    let reads = Reads {
        references: (0..references).map(|_| reference(&mut random)).collect(),
        places: (0..blocks).map(|_| place(&mut random)).collect(),
    };
    let warm = match random.below(4) {
        0 => 0,
        1 => random.between(0, u64::from(cache_blocks)) as u32,
        _ => cache_blocks,
    };
    let first = random.below(u64::from(blocks)) as u32;
    Drawn {
        instance: Instance {
            reads,
            warm: (0..warm).map(|i| BlockNo((first + i) % blocks)).collect(),
            fetch_units: random.between(1, 4),
        },
        disks,
        cache_blocks,
    }
}

impl Drawn {
    fn elapsed(&self, policy: &str) -> Result<u64, Broken> {
        let setup = Setup::of(policy, self.disks, self.cache_blocks, &METHODS)?;
        Ok(unit::run(&setup, &self.instance)?.elapsed_units)
    }

    fn check(&self, bounds: &mut Bounds) -> Result<(), Broken> {
        let f = self.instance.fetch_units;
        let (k, d) = (u64::from(self.cache_blocks), u64::from(self.disks));
        // Every drawn instance is small enough to be searched.
        let Some(best) = optimum(&self.instance, self.cache_blocks) else {
            return Ok(());
        };
        let aggressive = self.elapsed("aggressive(batch_blocks=1)")?;
        let percent = f * 100;
        let reverse = self.elapsed(&format!(
            "reverse-aggressive(fetch_percent={percent},batch_blocks=1,reverse_batch_blocks=1)"
        ))?;
        let horizon = self.elapsed(&format!("fixed-horizon(horizon_refs={f})"))?;
        let horizon_held = [
            horizon * k <= best * d * (k + f),
            horizon * k <= best * (k + f * d),
        ];
        let held = [
            aggressive >= best,
            reverse >= best,
            aggressive * k <= best * d * (k + f),
            d > 1 || aggressive <= 2 * best,
            reverse * k <= best * (k + f * d),
        ];
        bounds.instances += 1;
        bounds.broken += held.iter().filter(|held| !**held).count() as u64;
        bounds.optimum_units += best;
        bounds.aggressive_units += aggressive;
        bounds.reverse_units += reverse;
        bounds.horizon_units += horizon;
        bounds.horizon_broken += horizon_held.iter().filter(|held| !**held).count() as u64;
        Ok(())
    }
}

/// Checks a given number of instances.
///
/// # Errors
/// See [`Broken`].
pub fn check(seed: u64, instances: u64) -> Result<Bounds, Broken> {
    let mut bounds = Bounds::default();
    for number in 0..instances {
        draw(seed, number, DISKS_MAX).check(&mut bounds)?;
    }
    Ok(bounds)
}

/// Figure 1: A, C, E, F on one disk and b, d on the other; K = 4, F = 2.
#[must_use]
pub fn figure_1() -> Drawn {
    let reference = |block| Reference {
        block: BlockNo(block),
        compute: Nanos(0),
    };
    let place = |disk| Place {
        disk: DeviceId(disk),
        at: Bytes(0),
    };
    Drawn {
        instance: Instance {
            reads: Reads {
                references: (0..6).map(reference).collect(),
                places: [0, 1, 0, 1, 0, 0].map(place).to_vec(),
            },
            warm: [0, 1, 3, 5].map(BlockNo).to_vec(),
            fetch_units: 2,
        },
        disks: 2,
        cache_blocks: 4,
    }
}

/// Units of aggressive for it, and the optimum.
///
/// # Errors
/// See [`Broken`].
pub fn figure_1_units() -> Result<[u64; 2], Broken> {
    let drawn = figure_1();
    let best = optimum(&drawn.instance, drawn.cache_blocks).unwrap_or(0);
    Ok([drawn.elapsed("aggressive(batch_blocks=1)")?, best])
}
