//! One version of an object, and reads of its ranges through the engine.
//!
//! Problem: the engine answers one read at a time in the order of its blocks, and a request brings 1 MiB; a column
//! chunk of 8 MiB, or a row group of chunks, would come piece after piece. Mechanism: ranges whose gap costs less than a
//! request are joined, cut into pieces of a request's length, and all pieces are awaited at once without memory of the
//! engine's. Each is copied as soon as it is there, before it can be given up again.
//!
//! ```text
//! ranges   0..3M   3.1M..5M   80M..81M       a request costs as much as 1 MiB
//! joined   0..5M              80M..81M
//! pieces   0..1M  1M..2M  2M..3M  3M..4M  4M..5M  80M..81M
//! ```
//!
//! A piece that the engine cannot have (its request failed, or the engine has ended) has the error that the inner
//! store gave; without one it is asked for past the engine.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use forerun_io::{Driver, Reader};
use futures_util::StreamExt;
use futures_util::stream;
use object_store::{ObjectMeta, Result};
use tokio::sync::oneshot;

use crate::connection::failed;
use crate::source::{ObjectSource, is_same};

/// A request of the engine is no longer.
const PIECE: u64 = 1 << 20;

/// Announced at once. A reader may be 12 pieces away from its place in the order where the memory is 64 MiB, and other
/// reads come between.
const ANNOUNCED_MAX: u64 = 8 * PIECE;

/// A block of the engine, as it is by default.
pub(crate) const BLOCK: u64 = 4096;

/// Gaps that the inner stores of `object_store` join at most: no more bytes are fetched than without the engine.
const GAP_MAX: u64 = 1 << 20;

/// A piece that was given up before it was copied is awaited anew so often, before it is asked for past the engine.
const LOST_MAX: u32 = 16;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) source: Arc<ObjectSource>,
    reader: OnceLock<Reader>,
}

/// A part of a range.
#[derive(Clone, Debug)]
struct Piece {
    /// The number of its range.
    of: usize,
    /// Where it begins in the range.
    at: usize,
    range: Range<u64>,
    /// The part of the range that is announced with it.
    announced: Option<Range<u64>>,
}

impl Object {
    pub(crate) fn new(source: Arc<ObjectSource>) -> Self {
        let reader = OnceLock::new();
        Self { source, reader }
    }

    /// Whether it is open in the engine.
    pub(crate) fn is_open(&self) -> bool {
        self.reader.get().is_some()
    }

    /// Its ETag.
    pub(crate) fn tag(&self) -> Option<&str> {
        self.source.meta.e_tag.as_deref()
    }

    /// Whether an answer is of it.
    pub(crate) fn is_version(&self, meta: &ObjectMeta) -> bool {
        is_same(&self.source.meta, meta)
    }

    /// Opens it in the engine, which asks nothing of the store.
    fn reader(&self, driver: &Driver) -> Result<&Reader> {
        if let Some(reader) = self.reader.get() {
            return Ok(reader);
        }
        let opened = driver.open_source(self.source.clone()).map_err(failed)?;
        // Of two that open it at once one lets go of its reader.
        Ok(self.reader.get_or_init(|| opened))
    }

    /// The bytes of ranges that lie within the object, so many pieces at once; of announced ones nothing else is
    /// fetched. Called on the connection's threads.
    ///
    /// # Errors
    /// Those of the inner store.
    pub(crate) async fn read(
        &self,
        driver: &Driver,
        ranges: Vec<Range<u64>>,
        at_once: usize,
        is_announced: bool,
    ) -> Result<Vec<Bytes>> {
        let reader = self.reader(driver)?;
        let joined = joined(&ranges, gap(driver, reader));
        let read = self.source.begin_read(&joined);
        let mut bytes = Vec::with_capacity(joined.len());
        for range in &joined {
            bytes.push(zeroed(range)?);
        }
        let pieces: Vec<Piece> = joined.iter().enumerate().flat_map(pieces).collect();
        let awaited = stream::iter(pieces).map(|piece| async {
            if !reader.is_resident(piece.range.start, length(&piece.range)) {
                if let Some(part) = piece.announced.as_ref().filter(|_| is_announced) {
                    announce(driver, reader, part);
                }
                let awaited = came(reader, &piece.range, true).await;
                return (piece, awaited);
            }
            (piece, Awaited::Resident)
        });
        let mut awaited = awaited.buffer_unordered(at_once.max(1));
        while let Some((piece, awaited_as)) = awaited.next().await {
            let end = piece.at + length(&piece.range);
            let into = &mut bytes[piece.of][piece.at..end];
            self.copy(reader, &piece.range, into, awaited_as, read)
                .await?;
        }
        let bytes: Vec<Bytes> = bytes.into_iter().map(Bytes::from).collect();
        Ok(ranges
            .iter()
            .map(|range| cut(range, &joined, &bytes))
            .collect())
    }

    /// Copies a piece that was awaited.
    async fn copy(
        &self,
        reader: &Reader,
        range: &Range<u64>,
        into: &mut [u8],
        mut awaited_as: Awaited,
        read: u64,
    ) -> Result<()> {
        for _ in 0..LOST_MAX {
            let is_fresh = awaited_as == Awaited::Resident;
            if awaited_as == Awaited::Failed {
                break;
            }
            if reader.read_resident_at(into, range.start, is_fresh) == Some(into.len()) {
                return Ok(());
            }
            awaited_as = came(reader, range, is_fresh).await;
        }
        if let Some(error) = self.source.failure(range, read) {
            return Err(error);
        }
        let answer = self.source.get(range.clone()).await?.bytes().await?;
        if answer.len() != into.len() {
            let (told, asked) = (answer.len(), into.len());
            return Err(failed(format!("{told} bytes for a range of {asked}")));
        }
        into.copy_from_slice(&answer);
        Ok(())
    }
}

/// How the wait for a piece ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Awaited {
    /// There was none.
    Resident,
    Came,
    Failed,
}

/// Tells the engine that a part is read right now, and that nothing follows from it: pieces asked for at once look like
/// a stream, behind whose end it would fetch ahead. 22 MB were fetched for 8 MiB.
fn announce(driver: &Driver, reader: &Reader, part: &Range<u64>) {
    // Without room for a hint it is a read like any other.
    let _ = driver.hint([(reader, part.start, part.end - part.start)]);
}

/// Has a piece fetched; `fresh` if its bytes are asked for the first time.
async fn came(reader: &Reader, range: &Range<u64>, fresh: bool) -> Awaited {
    let (sender, came) = oneshot::channel();
    reader.when_resident(range.start, length(range), fresh, |is_there| {
        // It fails if nothing waits any more.
        let _ = sender.send(is_there);
    });
    match came.await {
        Ok(true) => Awaited::Came,
        _ => Awaited::Failed,
    }
}

/// The gap that costs less than a request.
fn gap(driver: &Driver, reader: &Reader) -> u64 {
    let told = || forerun_io::source::remote::profile(1);
    let profile = reader.device().and_then(|device| driver.measured(device));
    let Some(profile) = profile.or_else(told) else {
        return 0;
    };
    let zero = forerun_core::Bytes(0);
    profile.competitive_depth(zero, zero).0.min(GAP_MAX)
}

/// Ranges that cover these, in the order of their places.
fn joined(ranges: &[Range<u64>], gap: u64) -> Vec<Range<u64>> {
    let mut sorted = ranges.to_vec();
    sorted.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match joined.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(gap) => {
                last.end = last.end.max(range.end);
            }
            _ => joined.push(range),
        }
    }
    joined
}

/// The bytes of one of the ranges that were joined.
fn cut(range: &Range<u64>, joined: &[Range<u64>], bytes: &[Bytes]) -> Bytes {
    let at = joined
        .partition_point(|one| one.start <= range.start)
        .saturating_sub(1);
    let (Some(one), Some(bytes)) = (joined.get(at), bytes.get(at)) else {
        return Bytes::new();
    };
    let begin = length(&(one.start..range.start));
    bytes.slice(begin..begin + length(range))
}

/// Pieces of a range. They end where blocks of the engine end, so that none takes a request for a block more.
///
/// A range of one piece is a read like any other. A longer one is announced in parts of equal length, from half of
/// [`ANNOUNCED_MAX`] on: no hint is shorter than a piece, because the first one of an order gives their greatest length.
fn pieces((of, range): (usize, &Range<u64>)) -> Vec<Piece> {
    let first = range.start / BLOCK * BLOCK;
    let count = (range.end - first).div_ceil(ANNOUNCED_MAX).max(1);
    let part_bytes = (range.end - first).div_ceil(count).next_multiple_of(BLOCK);
    let mut pieces = Vec::new();
    for part in (first..range.end).step_by(length(&(0..part_bytes))) {
        let part = part..range.end.min(part + part_bytes);
        for begin in part.clone().step_by(PIECE as usize) {
            let piece = begin.max(range.start)..part.end.min(begin + PIECE);
            let announces = begin == part.start && part.end - part.start > PIECE;
            pieces.push(Piece {
                of,
                at: length(&(range.start..piece.start)),
                range: piece,
                announced: announces.then(|| part.clone()),
            });
        }
    }
    pieces
}

/// Its length; of a range of bytes in memory.
fn length(range: &Range<u64>) -> usize {
    usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX)
}

/// Memory for a range, or an error where there is none.
fn zeroed(range: &Range<u64>) -> Result<Vec<u8>> {
    let bytes = length(range);
    let mut memory = Vec::new();
    memory.try_reserve_exact(bytes).map_err(failed)?;
    memory.resize(bytes, 0);
    Ok(memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_over_gaps_that_cost_less_than_a_request_and_cut_out_again() {
        let ranges = [900..1000, 0..300, 200..250, 310..400, 2000..2001];
        assert_eq!(joined(&ranges, 10), [0..400, 900..1000, 2000..2001]);
        assert_eq!(
            joined(&ranges, 9),
            [0..300, 310..400, 900..1000, 2000..2001]
        );
        let all = joined(&ranges, u64::MAX);
        assert_eq!(all, std::slice::from_ref(&(0..2001)));
        let content: Vec<u8> = (0..2001_u32).map(|at| at as u8).collect();
        for gap in [0, 10, 600] {
            let joined = joined(&ranges, gap);
            let of = |range: &Range<u64>| {
                Bytes::copy_from_slice(&content[range.start as usize..range.end as usize])
            };
            let bytes: Vec<Bytes> = joined.iter().map(of).collect();
            for range in &ranges {
                assert_eq!(
                    cut(range, &joined, &bytes),
                    of(range),
                    "{range:?}, gap {gap}"
                );
            }
        }
    }

    #[test]
    fn pieces_cover_a_range_without_gap_or_overlap() {
        for range in [
            5..6,
            0..PIECE,
            7..PIECE + 8,
            3..5 * PIECE + 3,
            9..8 * PIECE + 8200,
        ] {
            let pieces = pieces((0, &range));
            let mut next = range.start;
            for piece in &pieces {
                assert_eq!(piece.range.start, next);
                assert_eq!(piece.at as u64, next - range.start);
                assert!(!piece.range.is_empty() && length(&piece.range) <= PIECE as usize);
                next = piece.range.end;
            }
            assert_eq!(next, range.end);
            let parts: Vec<_> = pieces
                .iter()
                .filter_map(|piece| piece.announced.clone())
                .collect();
            let is_long = |part: &Range<u64>| part.end - part.start > PIECE;
            assert!(parts.iter().all(is_long), "{parts:?} of {range:?}");
            assert_eq!(
                parts.is_empty(),
                range.end - range.start / BLOCK * BLOCK <= PIECE
            );
            let begin = parts.first().map(|part| part.start);
            assert!(begin.is_none_or(|begin| begin == range.start / BLOCK * BLOCK));
            assert!(parts.windows(2).all(|two| two[0].end == two[1].start));
        }
    }
}
