//! Counts of a policy over references: all of them, or a sample with the error it may have.
//!
//! A *miniature simulation* (Waldspurger et al., Cache Modeling and Optimization using Miniature Simulations,
//! USENIX ATC 2017) counts a sample of a share R of the objects in a cache of R times the capacity. Its misses over
//! R times all references are the estimate, which corrects for a sample with too many or too few references
//! (SHARDS-adj). The error is that of eight parts of the sample, each counted in an eighth of its cache:
//!
//! ```text
//! estimate +- 2.365 * (standard deviation of the eight parts) / sqrt(8)       Student's t, 7 degrees, 95 %
//! ```

use core::str::FromStr;

use forerun_core::spec::{Choice, ChoiceError, Knows, Spec};

use super::distances::Distances;
use super::optimum::Uses;
use super::policy::{Build, LIST, lru};
use super::recency::Recency;
use super::references::{References, WHOLE};

/// Counts of references.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// References.
    pub references: u64,
    /// Of these, the misses.
    pub misses: u64,
    /// The weight of all.
    pub weight: u64,
    /// The weight of the misses.
    pub missed_weight: u64,
}

impl Counts {
    /// Adds a reference.
    pub fn add(&mut self, weight: u32, is_hit: bool) {
        self.references += 1;
        self.weight += u64::from(weight);
        self.misses += u64::from(!is_hit);
        self.missed_weight += if is_hit { 0 } else { u64::from(weight) };
    }
}

/// A ratio, and half the width of the interval that holds it with 95 %.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Ratio {
    /// The ratio.
    pub value: f64,
    /// Half the interval; 0 for an exact count.
    pub error: f64,
}

/// What a policy counted in a cache.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Counting {
    /// The counts of the references that were counted.
    pub counts: Counts,
    /// Misses over references.
    pub miss_ratio: Ratio,
    /// Missed weight over weight.
    pub byte_miss_ratio: Ratio,
}

/// A policy that is counted: one that knows the past, or the optimum.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Counter {
    /// Belady's optimum, for objects of one weight.
    Optimum,
    /// A policy of the list.
    Policy(Choice<Build>),
}

/// The optimum, beside the policies.
pub static OPTIMUM: Spec = Spec {
    name: "opt",
    summary: "gives up the object whose next use is farthest",
    source: "Belady 1966 (MIN)",
    unfit: "objects of several sizes, for which no optimum is known",
    knows: Knows::Clairvoyant,
    params: &[],
};

impl FromStr for Counter {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        if text == OPTIMUM.name {
            return Ok(Self::Optimum);
        }
        let mut parsed = Choice::parse("policy", LIST, text);
        if let Err(ChoiceError::Unknown { known, .. }) = &mut parsed {
            known.push(OPTIMUM.name);
        }
        parsed.map(Self::Policy)
    }
}

/// Parts of a sample.
const PARTS: u64 = 8;
/// The least capacity of which a part of a sample has any: below it the parts would be counted without a cache.
#[must_use]
pub fn least_capacity(sample_per_million: u32) -> u64 {
    match sample_per_million {
        WHOLE.. => 1,
        sample => (PARTS * u64::from(WHOLE)).div_ceil(sample.max(1).into()),
    }
}

/// The least sample of which each part has some of this capacity; none if that takes all objects.
#[must_use]
pub fn least_sample(capacity: u64) -> Option<u32> {
    let least = (PARTS * u64::from(WHOLE)).div_ceil(capacity.max(1));
    u32::try_from(least).ok().filter(|least| *least < WHOLE)
}

/// Student's t for seven degrees of freedom, 95 % on both sides.
const T: f64 = 2.365;

/// A reference: its object and its weight.
type Items<'a> = &'a mut dyn Iterator<Item = (u32, u32)>;

impl Counter {
    /// Counts it in caches of these capacities; the first `warm_up` of all references fill them alone.
    #[must_use]
    pub fn count(
        &self,
        references: &References,
        capacities: &[u64],
        warm_up: u64,
    ) -> Vec<Counting> {
        let is_lru = matches!(self, Self::Policy(choice) if choice.spec().name == lru::NAME);
        let counted = references.counted();
        let is_exact = counted.sample_per_million >= WHOLE;
        if is_lru && is_exact && !counted.by_sizes {
            return match capacities {
                [capacity] => vec![lru_at(references, *capacity, warm_up)],
                _ => lru_at_all(references, capacities, warm_up),
            };
        }
        if *self == Self::Optimum && is_exact {
            return optimum_at_all(&references.uses(), capacities, warm_up);
        }
        let of = |capacity: &u64| self.count_one(references, *capacity, warm_up);
        capacities.iter().map(of).collect()
    }

    /// The same of the last policy: the references are gone afterwards, so that the optimum need not keep them beside
    /// their next uses.
    #[must_use]
    pub fn count_last(
        &self,
        references: &mut References,
        capacities: &[u64],
        warm_up: u64,
    ) -> Vec<Counting> {
        if *self == Self::Optimum && references.counted().sample_per_million >= WHOLE {
            return optimum_at_all(&references.take_uses(), capacities, warm_up);
        }
        self.count(references, capacities, warm_up)
    }

    fn run(&self, capacity: u64, items: Items<'_>, warm: u64, objects: usize) -> Counts {
        match self {
            Self::Optimum => {
                let uses = Uses::of(items.map(|(object, _)| object).collect());
                uses.count(capacity, warm)
            }
            Self::Policy(choice) => {
                let mut policy = choice.build()(capacity, objects);
                let mut counts = Counts::default();
                for (at, (object, weight)) in (0..).zip(items) {
                    let is_hit = policy.reference(object, weight);
                    if at >= warm {
                        counts.add(weight, is_hit);
                    }
                }
                counts
            }
        }
    }

    fn count_one(&self, references: &References, capacity: u64, warm_up: u64) -> Counting {
        let sample = references.counted().sample_per_million;
        let warm = scaled(warm_up, sample, 1);
        let objects = references.distinct();
        let scaled_to = |parts| scaled(capacity, sample, parts);
        let counts = self.run(scaled_to(1), &mut references.iter(), warm, objects);
        if sample >= WHOLE {
            return exact(counts);
        }
        let part = |part: u64| {
            let mut own = references
                .iter()
                .filter(|(object, _)| references.group(*object, PARTS) == part);
            self.run(scaled_to(PARTS), &mut own, warm / PARTS, objects)
        };
        let parts: Vec<Counts> = (0..PARTS).map(part).collect();
        let share = f64::from(sample) / f64::from(WHOLE);
        let eighth = share / PARTS as f64;
        let ratio = |missed: fn(&Counts) -> u64, all: f64| {
            let estimates = parts
                .iter()
                .map(|counts| over(missed(counts), all * eighth));
            let estimates: Vec<f64> = estimates.collect();
            Ratio {
                value: over(missed(&counts), all * share).min(1.0),
                error: T * deviation(&estimates) / (PARTS as f64).sqrt(),
            }
        };
        let (all, all_weight) = expected(references, warm_up);
        Counting {
            counts,
            miss_ratio: ratio(|counts| counts.misses, all),
            byte_miss_ratio: ratio(|counts| counts.missed_weight, all_weight),
        }
    }
}

/// How many of the kept references are counted behind a warm-up of so many of all: the references of a sample stand for
/// as many as its share says.
#[must_use]
pub fn left(references: &References, warm_up: u64) -> u64 {
    let warm = scaled(warm_up, references.counted().sample_per_million, 1);
    match references.all() > warm_up {
        true => references.kept().saturating_sub(warm),
        false => 0,
    }
}

/// A number of the whole, of a part of a sample.
fn scaled(number: u64, sample: u32, parts: u64) -> u64 {
    let part = u128::from(number) * u128::from(sample) / (u128::from(WHOLE) * u128::from(parts));
    u64::try_from(part).unwrap_or(number)
}

fn exact(counts: Counts) -> Counting {
    let ratio = |part: u64, whole: u64| Ratio {
        value: over(part, whole as f64),
        error: 0.0,
    };
    Counting {
        counts,
        miss_ratio: ratio(counts.misses, counts.references),
        byte_miss_ratio: ratio(counts.missed_weight, counts.weight),
    }
}

/// The optimum at all capacities, from the same next uses.
fn optimum_at_all(uses: &Uses, capacities: &[u64], warm_up: u64) -> Vec<Counting> {
    let of = |capacity: &u64| exact(uses.count(*capacity, warm_up));
    capacities.iter().map(of).collect()
}

/// LRU at one capacity, in lists without weights.
fn lru_at(references: &References, capacity: u64, warm_up: u64) -> Counting {
    let capacity = usize::try_from(capacity).unwrap_or(usize::MAX);
    let mut recency = Recency::with_blocks(capacity, references.distinct());
    let (mut at, mut counts) = (0, Counts::default());
    for batch in references.objects().chunks(Recency::BATCH) {
        recency.look_ahead(batch);
        for object in batch {
            let is_hit = recency.touch(*object);
            if at >= warm_up {
                counts.add(1, is_hit);
            }
            at += 1;
        }
    }
    exact(counts)
}

/// LRU at all capacities, from one pass.
fn lru_at_all(references: &References, capacities: &[u64], warm_up: u64) -> Vec<Counting> {
    let mut distances = Distances::default();
    for (at, (object, weight)) in (0..).zip(references.iter()) {
        distances.reference(object, weight, at >= warm_up);
    }
    let counted = references.kept().saturating_sub(warm_up);
    let of = |capacity: &u64| {
        let misses = counted - distances.hits(*capacity).0;
        exact(Counts {
            references: counted,
            misses,
            weight: counted,
            missed_weight: misses,
        })
    };
    capacities.iter().map(of).collect()
}

/// All references and their weight after the warm-up.
fn expected(references: &References, warm_up: u64) -> (f64, f64) {
    let left = references.all().saturating_sub(warm_up) as f64;
    let all = (references.all() as f64).max(1.0);
    (left, references.all_weight() as f64 * left / all)
}

fn over(part: u64, whole: f64) -> f64 {
    if whole > 0.0 {
        part as f64 / whole
    } else {
        0.0
    }
}

/// The standard deviation of a sample.
fn deviation(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>();
    (squares / (count - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_sample_have_some_of_the_least_capacity_and_none_of_less() {
        assert_eq!(least_capacity(WHOLE), 1);
        for sample in [1, 7, 10_000, 333_333, WHOLE - 1] {
            let least = least_capacity(sample);
            assert!(scaled(least, sample, PARTS) > 0, "{sample}");
            assert_eq!(scaled(least - 1, sample, PARTS), 0, "{sample}");
        }
        assert_eq!(least_capacity(10_000), 800);
        assert_eq!((least_sample(800), least_sample(8)), (Some(10_000), None));
        for capacity in [9, 79, 1_000_000_007] {
            let sample = least_sample(capacity).unwrap();
            assert!(scaled(capacity, sample, PARTS) > 0, "{capacity}");
            assert_eq!(scaled(capacity, sample - 1, PARTS), 0, "{capacity}");
        }
    }
}
