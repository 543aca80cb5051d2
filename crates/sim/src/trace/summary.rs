//! A trace's contents in one pass, as `forerun trace info` prints them.
//!
//! Counts, integers only. A request is *sequential* if it begins where the one before on its
//! device ended (for blocks: is the next number). Distinct blocks are counted exactly, in about 19
//! bytes each; everything else takes no memory to speak of, so a trace may be of any length.

use std::collections::BTreeMap;

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
    /// References to blocks: a request counts once for each block it touches.
    pub references: u64,
    /// Different blocks, those of different devices apart.
    pub distinct_blocks: u64,
    /// The lowest block.
    pub first_block: u64,
    /// The highest one.
    pub last_block: u64,
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

impl Summary {
    /// Of all requests of a trace, in blocks of this size.
    ///
    /// # Errors
    /// The first one that cannot be read.
    pub fn of<E>(
        records: impl IntoIterator<Item = Result<Record, E>>,
        block_bytes: u32,
    ) -> Result<Self, E> {
        let mut survey = Survey {
            block_bytes,
            summary: Self {
                least_bytes: u32::MAX,
                first_block: u64::MAX,
                first_ns: u64::MAX,
                ..Self::default()
            },
            devices: BTreeMap::new(),
        };
        for record in records {
            survey.add(&record?);
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

    /// From the lowest to the highest block, both included.
    #[must_use]
    pub fn span_blocks(&self) -> u64 {
        if self.requests == 0 {
            return 0;
        }
        (self.last_block - self.first_block).saturating_add(1)
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
}

/// Counts of a device.
#[derive(Default)]
struct Seen {
    blocks: Numbering,
    /// Where the last request ended.
    end: Option<Place>,
}

impl Survey {
    fn add(&mut self, record: &Record) {
        self.extent(record);
        self.times(record);
        let seen = self.devices.entry(record.device).or_default();
        let summary = &mut self.summary;
        summary.sequential += u64::from(seen.end == Some(record.place));
        seen.end = match record.place {
            Place::Block(number) => number.checked_add(1).map(Place::Block),
            Place::Byte(at) => at.checked_add(record.bytes.into()).map(Place::Byte),
        };
        let blocks = record.blocks(self.block_bytes);
        summary.first_block = summary.first_block.min(*blocks.start());
        summary.last_block = summary.last_block.max(*blocks.end());
        for block in blocks {
            summary.references += 1;
            seen.blocks.number(block);
        }
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
        let blocks = self.devices.values().map(|seen| seen.blocks.len() as u64);
        self.summary.distinct_blocks = blocks.sum();
        self.summary.devices = self.devices.len() as u64;
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
        let Ok(summary) = Summary::of(read, 4096);
        assert_eq!(
            (summary.requests, summary.reads, summary.devices),
            (3, 3, 2)
        );
        assert_eq!((summary.references, summary.distinct_blocks), (4, 4));
        assert_eq!(
            (summary.sequential, summary.sequential_per_mille()),
            (1, 333)
        );
        assert_eq!((summary.span_blocks(), summary.duration_ns()), (3, 4));
        assert_eq!((summary.mean_bytes(), summary.least_bytes), (4266, 512));
    }

    #[test]
    fn nothing_has_a_summary_of_zeros() {
        let Ok(summary) = Summary::of(std::iter::empty::<Result<_, Infallible>>(), 4096);
        assert_eq!(summary, Summary::default());
        assert_eq!(summary.span_blocks() + summary.duration_ns(), 0);
    }
}
