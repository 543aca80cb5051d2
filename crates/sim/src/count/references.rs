//! The references of a trace, numbered once and kept, for policies that are counted over and over.
//!
//! ```text
//! Record, Record, ..  ->  [writes left out]  ->  blocks or objects  ->  [sample by hash]  ->  numbers, weights
//! ```
//!
//! A request counts once for each block it touches. By *sizes* an object weighs its bytes, as its request says,
//! and a block of a range weighs a block; otherwise each weighs 1. 4 bytes a reference are kept, 8 by sizes, beside
//! 14 to 21 a different object.
//!
//! A sample keeps the objects whose hash lies below a share of all hashes, with all their references (Waldspurger
//! et al., SHARDS, FAST 2015); what is left out is only counted.

use std::collections::BTreeMap;

use super::Numbering;
use super::optimum::Uses;
use crate::random::mix;
use crate::trace::{Op, Place, Record};

/// How records become references.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counted {
    /// Size of a block of a range.
    pub block_bytes: u32,
    /// Whether writes count as reads.
    pub with_writes: bool,
    /// Whether objects weigh their bytes.
    pub by_sizes: bool,
    /// Objects kept of a million.
    pub sample_per_million: u32,
    /// Most memory.
    pub memory_bytes: u64,
}

/// All hashes, a million parts of which are a sample.
pub const WHOLE: u32 = 1_000_000;

/// Why references cannot be kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReferencesError {
    /// They take more memory than there is.
    Memory {
        /// References that were kept.
        references: u64,
        /// Different objects they are of.
        objects: u64,
    },
    /// More devices than are told apart.
    Devices,
    /// By sizes, a request without a size.
    Size,
}

impl core::fmt::Display for ReferencesError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Memory {
                references,
                objects,
            } => {
                write!(
                    f,
                    "no room for more than {references} references to {objects} objects"
                )
            }
            Self::Devices => write!(f, "more than {DEVICES_MAX} devices"),
            Self::Size => {
                f.write_str("a request has no size, so objects cannot be counted by sizes")
            }
        }
    }
}

impl core::error::Error for ReferencesError {}

/// Most devices: as many spaces as a [`Numbering`] has.
const DEVICES_MAX: usize = 1 << 16;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct References {
    counted: Counted,
    numbering: Numbering,
    /// The devices of the trace, numbered in the order of first use.
    devices: BTreeMap<u32, u16>,
    /// The device of the request before, and its number.
    device: Option<(u32, u16)>,
    /// References that have no number yet: device, block and weight. Lookups of a batch overlap.
    pending: Vec<(u16, u64, u32)>,
    objects: Vec<u32>,
    /// By sizes, the weight of each reference.
    weights: Vec<u32>,
    /// All references, with those that the sample leaves out, and their bytes.
    all: u64,
    all_weight: u64,
    /// The weight of all different objects, each as it was first used.
    distinct_weight: u64,
    writes: u64,
}

impl References {
    /// Bytes of a kept reference, of its weight, and of a different object with what policies keep of it.
    const REFERENCE: u64 = 4;
    const OBJECT: u64 = 64;

    /// None yet.
    #[must_use]
    pub fn new(counted: Counted) -> Self {
        Self {
            counted,
            numbering: Numbering::default(),
            devices: BTreeMap::new(),
            device: None,
            pending: Vec::with_capacity(Numbering::BATCH),
            objects: Vec::new(),
            weights: Vec::new(),
            all: 0,
            all_weight: 0,
            distinct_weight: 0,
            writes: 0,
        }
    }

    /// Adds the references of a request; the last ones are there after [`Self::end`].
    ///
    /// # Errors
    /// See [`ReferencesError`].
    pub fn add(&mut self, record: &Record) -> Result<(), ReferencesError> {
        if record.op == Op::Write && !self.counted.with_writes {
            self.writes += 1;
            return Ok(());
        }
        let device = self.device(record.device)?;
        let weight = match record.place {
            _ if !self.counted.by_sizes => 1,
            Place::Byte(_) => self.counted.block_bytes,
            Place::Block(_) if record.bytes == 0 => return Err(ReferencesError::Size),
            Place::Block(_) => record.bytes,
        };
        for block in record.blocks(self.counted.block_bytes) {
            self.all += 1;
            self.all_weight += u64::from(weight);
            if self.is_sampled(record.device, block) {
                self.pending.push((device, block, weight));
                if self.pending.len() == Numbering::BATCH {
                    self.keep_pending()?;
                }
            }
        }
        Ok(())
    }

    fn device(&mut self, device: u32) -> Result<u16, ReferencesError> {
        if let Some((_, number)) = self.device.filter(|(known, _)| *known == device) {
            return Ok(number);
        }
        let next = u16::try_from(self.devices.len()).ok();
        let known = self.devices.get(&device).copied();
        let number = known.or(next).ok_or(ReferencesError::Devices)?;
        self.devices.insert(device, number);
        self.device = Some((device, number));
        Ok(number)
    }

    fn keep_pending(&mut self) -> Result<(), ReferencesError> {
        let mut pending = core::mem::take(&mut self.pending);
        let keys = pending.iter().map(|(device, block, _)| (*device, *block));
        self.numbering.look_ahead(keys);
        let mut all = pending.drain(..);
        let kept = all.try_for_each(|(device, block, weight)| self.keep(device, block, weight));
        drop(all);
        self.pending = pending;
        kept
    }

    fn is_sampled(&self, device: u32, block: u64) -> bool {
        if self.counted.sample_per_million >= WHOLE {
            return true;
        }
        let hash = mix(block ^ u64::from(device).rotate_right(16) ^ SEED);
        let part = (u128::from(hash) * u128::from(WHOLE)) >> 64;
        part < u128::from(self.counted.sample_per_million)
    }

    fn keep(&mut self, device: u16, block: u64, weight: u32) -> Result<(), ReferencesError> {
        let known = self.numbering.len();
        let number = self.numbering.number_in(device, block);
        let (references, objects) = (self.objects.len() as u64, self.numbering.len() as u64);
        let each = Self::REFERENCE * if self.counted.by_sizes { 2 } else { 1 };
        let taken = each * references + Self::OBJECT * objects;
        let number = number.filter(|_| taken <= self.counted.memory_bytes);
        let number = number.ok_or(ReferencesError::Memory {
            references,
            objects,
        })?;
        if self.numbering.len() > known {
            self.distinct_weight += u64::from(weight);
        }
        self.objects.push(number);
        if self.counted.by_sizes {
            self.weights.push(weight);
        }
        Ok(())
    }

    /// Each reference that is kept: its object and its weight.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let weights = self.weights.iter().copied();
        let weights = weights.chain(core::iter::repeat(1));
        self.objects.iter().copied().zip(weights)
    }

    /// The next use of each reference.
    pub(super) fn uses(&self) -> Uses {
        Uses::of(self.objects.clone())
    }

    /// The same, in the place of the references.
    pub(super) fn take_uses(&mut self) -> Uses {
        Uses::of(core::mem::take(&mut self.objects))
    }

    /// Keeps the last references, once all were added, and frees the lookup of objects.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn end(&mut self) -> Result<(), ReferencesError> {
        self.keep_pending()?;
        self.numbering.forget_lookup();
        Ok(())
    }

    /// The object of each reference that is kept.
    #[must_use]
    pub fn objects(&self) -> &[u32] {
        &self.objects
    }

    /// How many are kept.
    #[must_use]
    pub fn kept(&self) -> u64 {
        self.objects.len() as u64
    }

    /// How many there were, with those that the sample leaves out.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.all
    }

    /// The weight of all.
    #[must_use]
    pub fn all_weight(&self) -> u64 {
        self.all_weight
    }

    /// Writes that were left out.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Different objects that are kept.
    #[must_use]
    pub fn distinct(&self) -> usize {
        self.numbering.len()
    }

    /// The weight of all different objects; of a sample, as many as it stands for.
    #[must_use]
    pub fn footprint(&self) -> u64 {
        let whole = u128::from(self.distinct_weight) * u128::from(WHOLE);
        let whole = whole / u128::from(self.counted.sample_per_million.max(1));
        u64::try_from(whole).unwrap_or(u64::MAX)
    }

    /// How they came about.
    #[must_use]
    pub fn counted(&self) -> Counted {
        self.counted
    }

    /// The group of an object of a sample, of a number of groups of about the same size.
    pub(super) fn group(&self, object: u32, groups: u64) -> u64 {
        let id = self.numbering.ids()[object as usize];
        let space = u64::from(self.numbering.space(object));
        mix(mix(id ^ space.rotate_right(16) ^ SEED)) % groups
    }
}

/// Other hashes than those of the numbering's table.
const SEED: u64 = 0x5348_4152_4453;

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Counted = Counted {
        block_bytes: 4096,
        with_writes: false,
        by_sizes: false,
        sample_per_million: WHOLE,
        memory_bytes: 1 << 30,
    };

    #[test]
    fn a_request_counts_once_for_each_block() {
        let mut references = References::new(ALL);
        let mut write = Record::block(1);
        write.op = Op::Write;
        for record in [Record::range(4000, 200).unwrap(), Record::block(1), write] {
            references.add(&record).unwrap();
        }
        references.end().unwrap();
        let found: Vec<_> = references.iter().collect();
        assert_eq!(found, [(0, 1), (1, 1), (1, 1)]);
        assert_eq!((references.writes(), references.footprint()), (1, 2));
    }

    #[test]
    fn devices_of_any_numbers_are_told_apart_and_too_many_are_refused() {
        let mut references = References::new(ALL);
        let of = |device: u32| Record {
            device,
            ..Record::block(1)
        };
        for device in [0x80_0000, 0, u32::MAX, 0x80_0000] {
            references.add(&of(device)).unwrap();
        }
        references.end().unwrap();
        assert_eq!(references.objects(), [0, 1, 2, 0]);
        let refused = (1..).find_map(|device| {
            let error = references.add(&of(device)).err()?;
            Some((device, error.to_string()))
        });
        // Two of the three from above, and 65,534 others.
        assert_eq!(
            refused,
            Some((65_534, "more than 65536 devices".to_owned()))
        );
    }

    #[test]
    fn by_sizes_an_object_weighs_its_bytes() {
        let by_sizes = Counted {
            by_sizes: true,
            ..ALL
        };
        let mut references = References::new(by_sizes);
        let sized = |bytes| Record {
            bytes,
            ..Record::block(7)
        };
        references.add(&sized(100)).unwrap();
        references.add(&sized(50)).unwrap();
        references.add(&Record::range(0, 1).unwrap()).unwrap();
        references.end().unwrap();
        let found: Vec<_> = references.iter().collect();
        assert_eq!(found, [(0, 100), (0, 50), (1, 4096)]);
        assert_eq!(references.footprint(), 4196);
        assert_eq!(references.add(&sized(0)), Err(ReferencesError::Size));
    }

    #[test]
    fn a_sample_is_its_share_of_the_objects_with_all_their_references() {
        let tenth = Counted {
            sample_per_million: WHOLE / 10,
            ..ALL
        };
        let mut references = References::new(tenth);
        for at in 0..200_000u64 {
            references.add(&Record::block(at % 100_000)).unwrap();
        }
        references.end().unwrap();
        let distinct = references.distinct() as u64;
        assert!((9_700..10_300).contains(&distinct), "{distinct}");
        assert_eq!(
            (references.kept(), references.all()),
            (2 * distinct, 200_000)
        );
        assert_eq!(references.footprint(), distinct * 10);
    }

    #[test]
    fn more_than_there_is_memory_for_is_an_error() {
        let few = Counted {
            memory_bytes: 1000,
            ..ALL
        };
        let mut references = References::new(few);
        let error = (0..).find_map(|at| references.add(&Record::block(at)).err());
        let wanted = ReferencesError::Memory {
            references: 14,
            objects: 15,
        };
        assert_eq!(error, Some(wanted));
    }
}
