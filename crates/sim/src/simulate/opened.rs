//! Open files of a trace: each reader with each region that it reads.
//!
//! ```text
//! one       [0: region 0] [0: region 1] [0: region 2]     one process, and the first file makes the steps of all
//! device    [0: region 0] [1: region 1] [2: region 2]
//! pid       [0: region 0] [0: region 1] [1: region 1]     two processes, of which both read region 1
//! ```

use std::collections::BTreeMap;

use super::pacing::Readers;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct Opened {
    /// Reader and region of each, in the order of first use.
    all: Vec<(usize, u16)>,
    /// Where each of them stands.
    places: BTreeMap<(usize, u16), usize>,
    /// Where the first one of each reader stands.
    owners: BTreeMap<usize, usize>,
    /// Reader and region of the last read.
    last: Option<(usize, u16)>,
}

impl Opened {
    /// Most of them, as many as of devices: in a simulated host each has a stream of the engine, and its steps.
    pub const MAX: usize = 1 << 16;

    /// Those of so many regions by readers that are told by their region.
    #[must_use]
    pub fn of_regions(readers: Readers, regions: usize) -> Self {
        let mut opened = Self::default();
        for region in 0..u16::try_from(regions).unwrap_or(u16::MAX) {
            opened.add(readers.of(region, 0), region);
        }
        opened
    }

    /// A reader has read this region; one beyond the most is counted and no more are.
    pub fn add(&mut self, reader: usize, region: u16) {
        if self.last == Some((reader, region)) || self.is_full() {
            return;
        }
        self.last = Some((reader, region));
        let at = self.all.len();
        if *self.places.entry((reader, region)).or_insert(at) == at {
            self.all.push((reader, region));
            self.owners.entry(reader).or_insert(at);
        }
    }

    /// Whether there are more of them than there may be.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.all.len() > Self::MAX
    }

    /// The region of each.
    pub fn regions(&self) -> impl Iterator<Item = u16> + '_ {
        self.all.iter().map(|(_, region)| *region)
    }

    /// How many readers there are.
    #[must_use]
    pub fn readers(&self) -> usize {
        self.owners.len()
    }

    /// The open file by which a reader reads a region.
    #[must_use]
    pub fn place(&self, reader: usize, region: u16) -> Option<usize> {
        self.places.get(&(reader, region)).copied()
    }

    /// The reader of an open file, and the first one that it opened.
    #[must_use]
    pub fn owner(&self, place: usize) -> Option<(usize, usize)> {
        let (reader, _) = self.all.get(place)?;
        Some((*reader, *self.owners.get(reader)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_has_each_region_once_and_its_first_one_makes_all_steps() {
        let one = Opened::of_regions(Readers::One, 3);
        let device = Opened::of_regions(Readers::Device, 3);
        for region in 0..3_u16 {
            let at = usize::from(region);
            assert_eq!(
                (one.place(0, region), one.owner(at)),
                (Some(at), Some((0, 0)))
            );
            assert_eq!(
                (device.place(at, region), device.owner(at)),
                (Some(at), Some((at, at)))
            );
        }
        assert_eq!((one.readers(), device.readers()), (1, 3));
        let mut process = Opened::default();
        for (reader, region) in [(0, 0), (1, 1), (0, 1), (0, 0), (1, 1), (2, 0)] {
            process.add(reader, region);
        }
        assert_eq!(process.regions().collect::<Vec<_>>(), [0, 1, 1, 0]);
        let owners: Vec<_> = (0..5).map(|at| process.owner(at)).collect();
        assert_eq!(
            owners,
            [Some((0, 0)), Some((1, 1)), Some((0, 0)), Some((2, 3)), None]
        );
        assert_eq!((process.place(0, 1), process.place(2, 1)), (Some(2), None));
    }

    #[test]
    fn more_than_there_may_be_are_counted_no_further() {
        let mut opened = Opened::default();
        (0..Opened::MAX).for_each(|reader| opened.add(reader, 0));
        assert!(!opened.is_full());
        (0..10).for_each(|more| opened.add(Opened::MAX + more, 0));
        assert!(opened.is_full());
        assert_eq!(opened.regions().count(), Opened::MAX + 1);
    }
}
