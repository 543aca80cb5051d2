//! The guard: the rules of an engine, checked on every output.
//!
//! The world shows it each fetch, completion and answer. It keeps the extents in flight
//! in an ordered map by (file, first block), so that only overlap with the neighbours needs a
//! check. The rules:
//!
//! - a fetch has a free number, lies inside its file, on its file's device, in frames marked as
//!   filling, and **no block is fetched twice at once**;
//! - a served block is resident and not filling;
//! - an error is shown only where a fetch of that very block has just failed with it;
//! - at the end nothing is in flight, and no frame is pinned or waits to be filled.

use std::collections::{BTreeMap, btree_map};

use forerun_core::table::{Frame, Table, flag};
use forerun_core::units::Extent;
use forerun_core::{Block, ErrorCode, Fetch, FileId, RequestId};

/// Fetches in flight, and the one that has just failed.
#[derive(Debug, Default)]
pub(super) struct Guard {
    fetches: BTreeMap<RequestId, Fetch>,
    /// (file, first block) of everything in flight, and its end.
    extents: BTreeMap<(FileId, Block), u64>,
    failing: Option<(Extent, ErrorCode)>,
}

/// A broken rule, in words.
pub(super) type Rule = Result<(), String>;

impl Guard {
    /// The run is over: nothing may be under way any more.
    pub(super) fn at_rest(&self, table: &Table) -> Rule {
        if let Some(request) = self.fetches.keys().next() {
            return Err(format!("request {request} never ended"));
        }
        let held = |frame: &Frame| table.flags(*frame) & (flag::PINNED | flag::FILLING) != 0;
        match (0..table.frames()).map(Frame).find(held) {
            Some(frame) => Err(format!("frame {} is still held at the end", frame.0)),
            None => Ok(()),
        }
    }

    /// A fetch starts, of a file with this many blocks.
    pub(super) fn fetch(&mut self, fetch: &Fetch, blocks: u64, table: &Table) -> Rule {
        let extent = fetch.extent;
        if extent.count == 0 || extent.end() > blocks {
            return Err(format!(
                "fetch of {extent}, but the file has {blocks} blocks"
            ));
        }
        if self.overlaps(&extent) {
            return Err(format!("fetch of {extent} while part of it is in flight"));
        }
        let filling = |block| {
            table
                .find(extent.file, block)
                .is_some_and(|found| found.flags & flag::FILLING != 0)
        };
        if let Some(block) = extent.blocks().find(|block| !filling(*block)) {
            return Err(format!(
                "fetch of {extent}, but block {block} has no frame to fill"
            ));
        }
        match self.fetches.entry(fetch.request) {
            btree_map::Entry::Occupied(_) => Err(format!(
                "request {} started again while in flight",
                fetch.request
            )),
            btree_map::Entry::Vacant(slot) => {
                slot.insert(*fetch);
                self.extents
                    .insert((extent.file, extent.first), extent.end());
                Ok(())
            }
        }
    }

    /// A fetch ended; it is in flight no more.
    pub(super) fn completed(&mut self, request: RequestId) -> Option<Fetch> {
        let fetch = self.fetches.remove(&request)?;
        self.extents
            .remove(&(fetch.extent.file, fetch.extent.first));
        Some(fetch)
    }

    /// The failure in the engine's next input, if any.
    pub(super) fn set_failing(&mut self, failing: Option<(Extent, ErrorCode)>) {
        self.failing = failing;
    }

    /// Blocks are served.
    pub(super) fn served(&self, extent: &Extent, table: &Table) -> Rule {
        let resident = |block| {
            table
                .find(extent.file, block)
                .is_some_and(|found| found.flags & flag::FILLING == 0)
        };
        match extent.blocks().find(|block| !resident(*block)) {
            Some(block) => Err(format!(
                "block {block} of {extent} served, but it is not resident"
            )),
            None => Ok(()),
        }
    }

    /// A read of this block is answered with an error.
    pub(super) fn failed(&self, file: FileId, block: Block, error: ErrorCode) -> Rule {
        match self.failing {
            Some((extent, code))
                if code == error && extent.file == file && extent.contains(block) =>
            {
                Ok(())
            }
            _ => Err(format!(
                "error {error} for block {block} of file {file}, which did not fail"
            )),
        }
    }

    /// Whether part of the extent is in flight. Those in flight do not overlap, so only the last
    /// one that begins before the extent's end can reach into it.
    fn overlaps(&self, extent: &Extent) -> bool {
        let last = Block(u32::try_from(extent.end().saturating_sub(1)).unwrap_or(u32::MAX));
        let before = self
            .extents
            .range((extent.file, Block(0))..=(extent.file, last));
        before
            .last()
            .is_some_and(|(_, end)| *end > u64::from(extent.first.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(first: u32, count: u32) -> Extent {
        Extent {
            file: FileId(1),
            first: Block(first),
            count,
        }
    }

    #[test]
    fn overlap_is_found_on_both_sides_and_neighbours_are_not_overlap() {
        let mut guard = Guard::default();
        guard.extents.insert((FileId(1), Block(10)), 20);
        for (first, count) in [(0, 11), (19, 1), (5, 50), (12, 2), (10, 10)] {
            assert!(guard.overlaps(&extent(first, count)), "{first} {count}");
        }
        for (first, count) in [(0, 10), (20, 5)] {
            assert!(!guard.overlaps(&extent(first, count)), "{first} {count}");
        }
        assert!(!guard.overlaps(&Extent {
            file: FileId(0),
            ..extent(0, 100)
        }));
    }

    #[test]
    fn an_error_nobody_caused_is_a_broken_rule() {
        let mut guard = Guard::default();
        guard.set_failing(Some((extent(4, 4), ErrorCode(5))));
        assert!(guard.failed(FileId(1), Block(5), ErrorCode(5)).is_ok());
        assert!(guard.failed(FileId(1), Block(8), ErrorCode(5)).is_err());
        assert!(guard.failed(FileId(1), Block(5), ErrorCode(6)).is_err());
    }
}
