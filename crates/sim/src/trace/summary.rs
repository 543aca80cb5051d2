//! A trace's contents in one pass, as `forerun trace info` prints them.
//!
//! Counts, integers only. A request is *sequential* if it begins where the one before on its
//! device ended (for blocks: is the next number). Distinct blocks are counted exactly, in at most
//! 32 bytes each, and a device takes 1 KiB; everything else takes no memory to speak of, so a trace
//! may be of any length. One with more blocks or devices than there is memory for is an error.

use std::collections::{BTreeMap, BTreeSet};

use forerun_core::Bytes;

use super::record::{Op, Place, Record};
use crate::count::Numbering;

/// See the [module](self).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Requests.
    pub requests: u64,
    /// Of them, reads; also requests without a direction.
    pub reads: u64,
    /// And writes.
    pub writes: u64,
    /// Bytes asked for; 0 where the format has no sizes.
    pub bytes: u64,
    /// The shortest request.
    pub least_bytes: u32,
    /// The longest.
    pub most_bytes: u32,
    /// Devices, or files.
    pub devices: u64,
    /// Processes, or threads; 0 where the format has none.
    pub processes: u64,
    /// References to blocks: a request counts once for each block it touches.
    pub references: u64,
    /// Different blocks, those of different devices apart.
    pub distinct_blocks: u64,
    /// From the lowest to the highest block of each device, both included, added up.
    pub span_blocks: u64,
    /// Requests that begin where the one before on their device ended.
    pub sequential: u64,
    /// Requests with a time of issue.
    pub timed: u64,
    /// The time of the first.
    pub first_ns: u64,
    /// The time of the last.
    pub last_ns: u64,
    /// Computing between requests, added up.
    pub compute_ns: u64,
    /// Requests with a response time.
    pub answered: u64,
    /// How long these took, added up.
    pub response_ns: u64,
}

/// Why a trace has no summary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SummaryError<E> {
    /// A request cannot be read.
    Read(E),
    /// So many different blocks take more memory than there is.
    Memory {
        /// Different blocks so far.
        blocks: u64,
        /// Devices they are of.
        devices: u64,
    },
}

impl Summary {
    /// Memory of a different block at most, while its table grows; a process takes less.
    const BLOCK: u64 = 32;
    /// What a device takes, its least table included.
    const DEVICE: u64 = 1024;

    /// Of all requests of a trace, in blocks of this size, in so much memory.
    ///
    /// # Errors
    /// The first request that cannot be read, or that there is no memory for.
    pub fn of<E>(
        records: impl IntoIterator<Item = Result<Record, E>>,
        block_bytes: u32,
        memory: Bytes,
    ) -> Result<Self, SummaryError<E>> {
        let mut survey = Survey {
            block_bytes,
            summary: Self {
                least_bytes: u32::MAX,
                first_ns: u64::MAX,
                ..Self::default()
            },
            devices: BTreeMap::new(),
            processes: BTreeSet::new(),
            memory,
        };
        for record in records {
            survey.add(&record.map_err(SummaryError::Read)?)?;
        }
        Ok(survey.end())
    }

    /// Mean bytes of a request.
    #[must_use]
    pub fn mean_bytes(&self) -> u64 {
        self.bytes / self.requests.max(1)
    }

    /// Sequential requests in a thousand.
    #[must_use]
    pub fn sequential_per_mille(&self) -> u64 {
        let share = u128::from(self.sequential) * 1000 / u128::from(self.requests.max(1));
        u64::try_from(share).unwrap_or(1000)
    }

    /// From the first to the last request.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.last_ns.saturating_sub(self.first_ns)
    }
}

struct Survey {
    block_bytes: u32,
    summary: Summary,
    devices: BTreeMap<u32, Seen>,
    processes: BTreeSet<u32>,
    memory: Bytes,
}

/// Counts of a device.
#[derive(Default)]
struct Seen {
    blocks: Numbering,
    /// Where the last request ended.
    end: Option<Place>,
    /// The lowest and the highest block.
    span: Option<(u64, u64)>,
}

impl Survey {
    fn add<E>(&mut self, record: &Record) -> Result<(), SummaryError<E>> {
        self.extent(record);
        self.times(record);
        self.processes.extend(record.process);
        let seen = self.devices.entry(record.device).or_default();
        let summary = &mut self.summary;
        summary.sequential += u64::from(seen.end == Some(record.place));
        seen.end = match record.place {
            Place::Block(number) => number.checked_add(1).map(Place::Block),
            Place::Byte(at) => at.checked_add(record.bytes.into()).map(Place::Byte),
        };
        let blocks = record.blocks(self.block_bytes);
        let (first, last) = seen.span.unwrap_or((u64::MAX, 0));
        seen.span = Some((first.min(*blocks.start()), last.max(*blocks.end())));
        let mut known = summary.distinct_blocks;
        for block in blocks {
            summary.references += 1;
            let before = seen.blocks.len();
            seen.blocks.number(block);
            known += u64::from(seen.blocks.len() > before);
            if known.saturating_mul(Summary::BLOCK) > self.memory.0 {
                break;
            }
        }
        summary.distinct_blocks = known;
        let devices = self.devices.len() as u64;
        let counted = known.saturating_add(self.processes.len() as u64);
        let taken = counted.saturating_mul(Summary::BLOCK) + devices * Summary::DEVICE;
        if taken > self.memory.0 {
            let blocks = known;
            return Err(SummaryError::Memory { blocks, devices });
        }
        Ok(())
    }

    fn extent(&mut self, record: &Record) {
        let summary = &mut self.summary;
        summary.requests += 1;
        match record.op {
            Op::Read => summary.reads += 1,
            Op::Write => summary.writes += 1,
        }
        summary.bytes = summary.bytes.saturating_add(record.bytes.into());
        summary.least_bytes = summary.least_bytes.min(record.bytes);
        summary.most_bytes = summary.most_bytes.max(record.bytes);
    }

    fn times(&mut self, record: &Record) {
        let summary = &mut self.summary;
        if let Some(arrival) = record.arrival {
            summary.timed += 1;
            summary.first_ns = summary.first_ns.min(arrival.0);
            summary.last_ns = summary.last_ns.max(arrival.0);
        }
        if let Some(compute) = record.compute {
            summary.compute_ns = summary.compute_ns.saturating_add(compute.0);
        }
        if let Some(response) = record.response {
            summary.answered += 1;
            summary.response_ns = summary.response_ns.saturating_add(response.0);
        }
    }

    fn end(mut self) -> Summary {
        self.summary.devices = self.devices.len() as u64;
        self.summary.processes = self.processes.len() as u64;
        let spans = self.devices.values().filter_map(|seen| seen.span);
        self.summary.span_blocks = spans.fold(0, |sum: u64, (first, last)| {
            sum.saturating_add((last - first).saturating_add(1))
        });
        if self.summary.requests == 0 {
            return Summary::default();
        }
        if self.summary.timed == 0 {
            self.summary.first_ns = 0;
        }
        self.summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::convert::Infallible;
    use forerun_core::Nanos;

    #[test]
    fn counts_of_a_small_trace() {
        let request = |device, offset, bytes, time| Record {
            device,
            arrival: Some(Nanos(time)),
            ..Record::range(offset, bytes).unwrap()
        };
        let records = [
            request(0, 4096, 8192, 5),
            request(1, 4096, 512, 6),
            request(0, 12288, 4096, 9),
        ];
        let read = records.map(Ok::<_, Infallible>);
        let summary = Summary::of(read, 4096, Bytes(1 << 20)).unwrap();
        assert_eq!(
            (summary.requests, summary.reads, summary.devices),
            (3, 3, 2)
        );
        assert_eq!((summary.references, summary.distinct_blocks), (4, 4));
        assert_eq!(
            (summary.sequential, summary.sequential_per_mille()),
            (1, 333)
        );
        // Blocks 1 to 3 of one device, and block 1 of the other.
        assert_eq!((summary.span_blocks, summary.duration_ns()), (4, 4));
        assert_eq!((summary.mean_bytes(), summary.least_bytes), (4266, 512));
    }

    #[test]
    fn nothing_has_a_summary_of_zeros() {
        let none = std::iter::empty::<Result<_, Infallible>>();
        let summary = Summary::of(none, 4096, Bytes(0)).unwrap();
        assert_eq!(summary, Summary::default());
        assert_eq!(summary.span_blocks + summary.duration_ns(), 0);
    }

    #[test]
    fn more_blocks_or_devices_than_there_is_memory_for_are_an_error() {
        let blocks = (0..).map(|number| Ok::<_, Infallible>(Record::block(number)));
        let devices = (0..).map(|device| {
            let block = Record::block(0);
            Ok::<_, Infallible>(Record { device, ..block })
        });
        let one = Record::range(0, u32::MAX).map(Ok::<_, Infallible>);
        for (found, blocks, devices) in [
            (Summary::of(blocks, 4096, Bytes(10_000)), 281, 1),
            (Summary::of(devices, 4096, Bytes(10_000)), 10, 10),
            (Summary::of(one, 1, Bytes(10_000)), 313, 1),
        ] {
            assert_eq!(found, Err(SummaryError::Memory { blocks, devices }));
        }
    }
}
