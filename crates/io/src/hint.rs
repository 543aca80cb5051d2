//! Hints: readers announce their next reads, in one order over all of them.
//!
//! Called by a program that knows the order before the reads: a sampler, a query plan, a playlist. The
//! engine's hinted policy then fetches and gives up by it; a preset without one is not told. Hints
//! bind no reader: a read that was not announced, or comes a little out of turn, is a read like any
//! other, and an announced block that is not read is passed over.

use forerun_core::{Block, Input, ReaderId};

use crate::driver::Driver;
use crate::engine_state::EngineState;
use crate::error::Error;
use crate::reader::Reader;

/// Hints handed in under one lock: some tens of microseconds in which no read can enter.
const AT_ONCE: usize = 256;

/// Blocks that a reader will read.
#[derive(Clone, Copy, Debug)]
struct AnnouncedRun {
    reader: ReaderId,
    first: Block,
    count: u32,
}

impl Driver {
    /// Announces that these bytes, as reader, offset and length, will be read next after those
    /// that were announced before. Says how many of them the engine took: all, or as many as there was room
    /// for; the rest can be announced once half of the known ones have been read. Bytes past the end of a file are
    /// left out. Hints of a file are dropped when it changes or its last reader closes.
    ///
    /// # Errors
    /// There was not room for one; the message names the limit.
    pub fn hint<'a>(
        &self,
        order: impl IntoIterator<Item = (&'a Reader, u64, u64)>,
    ) -> Result<usize, Error> {
        let shift = self.engine_host().block_shift;
        let run = |(reader, offset, bytes)| run_of(reader, offset, bytes, shift);
        let runs: Vec<Option<AnnouncedRun>> = order.into_iter().map(run).collect();
        let (mut taken, mut last) = (0, None);
        for some in runs.chunks(AT_ONCE) {
            let some_taken = self.engine_host().after_deferred(|state| state.hint(some));
            taken += some_taken;
            last = some[..some_taken].iter().flatten().last().or(last);
            if some_taken < some.len() {
                break;
            }
        }
        let limit = self.engine_host().after_deferred(|state| {
            if let Some(AnnouncedRun { reader, .. }) = last {
                state.end_hints(*reader);
            }
            state.hints_max()
        });
        match taken {
            0 if !runs.is_empty() => Err(Error::HintsFull { limit }),
            taken => Ok(taken),
        }
    }
}

/// The blocks that bytes lie in; none if no bytes that can be read are there.
fn run_of(reader: &Reader, offset: u64, bytes: u64, shift: u32) -> Option<AnnouncedRun> {
    let end = offset.saturating_add(bytes).min(reader.readable());
    if offset >= end {
        return None;
    }
    let first = offset >> shift;
    let count = end.div_ceil(1 << shift).checked_sub(first)?;
    let (first, count) = (u32::try_from(first).ok()?, u32::try_from(count).ok()?);
    let (reader, first) = (reader.id(), Block(first));
    Some(AnnouncedRun {
        reader,
        first,
        count,
    })
}

impl EngineState {
    /// Hands in hints; how many, until there is no room for the next. Those without blocks, that
    /// no policy wants, or that come after the end count as taken.
    fn hint(&mut self, runs: &[Option<AnnouncedRun>]) -> usize {
        if self.stopped {
            return runs.len();
        }
        for (at, run) in runs.iter().enumerate() {
            let Some(run) = run else { continue };
            match self.takes_hint(run.count) {
                Some(true) => self.hint_one(*run, true),
                Some(false) => return at,
                None => {}
            }
        }
        runs.len()
    }

    /// No hint follows at once: now something may be decided by them.
    fn end_hints(&mut self, reader: ReaderId) {
        if !self.stopped && self.takes_hint(0).is_some() {
            let (first, count) = (Block(0), 0);
            let run = AnnouncedRun {
                reader,
                first,
                count,
            };
            self.hint_one(run, false);
        }
    }

    fn hint_one(&mut self, run: AnnouncedRun, more: bool) {
        let AnnouncedRun {
            reader,
            first,
            count,
        } = run;
        self.feed(Input::Hint {
            reader,
            first,
            count,
            more,
        });
    }
}
