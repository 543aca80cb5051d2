//! A part of an object that comes with the answer to its opening.
//!
//! Problem: a small object, or the footer of a large one, costs two round trips: a question about size and version,
//! then a range. Mechanism: the question is a range, whose answer has size and version in its headers. Its bytes are
//! held until each was read once, by the engine, which then has them in its memory.
//!
//! ```text
//! open_part(url, First(4 MiB))   GET, bytes 0-4194303    206, 0-999/1000, ETag "a1"
//! read 0..1000                   held: no request
//! ```

use std::io;
use std::sync::{Mutex, PoisonError};

use forerun_io::arena::Target;
use futures_util::StreamExt;
use object_store::path::Path;
use object_store::{Error, GetOptions, GetRange, ObjectMeta};

use crate::attempts::may_pass;
use crate::connector::Refused;
use crate::failure::{self, causes};
use crate::store::Connected;

/// Bytes that are asked for at an opening.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// So many from the beginning.
    First(u64),
    /// So many at the end. Azure has no such ranges.
    Last(u64),
}

/// Bytes from an offset on.
#[derive(Debug)]
struct Bytes {
    offset: u64,
    bytes: Vec<u8>,
    /// How many were not read yet.
    left: usize,
}

/// The bytes of a part, until they were read.
#[derive(Debug, Default)]
pub(crate) struct Held(Mutex<Option<Bytes>>);

impl Held {
    pub(crate) fn new(offset: u64, bytes: Vec<u8>) -> Self {
        let left = bytes.len();
        let bytes = Bytes {
            offset,
            bytes,
            left,
        };
        Self(Mutex::new((left > 0).then_some(bytes)))
    }

    /// Fills the front of `from..to` of a target that begins at an offset of the object; how far it came.
    pub(crate) fn fill(&self, target: &mut Target, offset: u64, from: usize, to: usize) -> usize {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(part) = &mut *held else {
            return from;
        };
        let skip = (offset + from as u64).checked_sub(part.offset);
        let skip = skip.and_then(|skip| usize::try_from(skip).ok());
        let bytes = skip.and_then(|skip| part.bytes.get(skip..));
        let Some(bytes) = bytes.filter(|_| from < to) else {
            return from;
        };
        let end = to.min(from.saturating_add(bytes.len()));
        target.fill(from, end, |at, memory| {
            memory.copy_from_slice(&bytes[at - from..][..memory.len()]);
        });
        part.left = part.left.saturating_sub(end - from);
        if part.left == 0 {
            *held = None;
        }
        end
    }
}

/// Asks for a part; it is held as far as it is there. None if the object has no such range, or its store no such
/// ranges.
pub(crate) async fn opened(
    with: &Connected,
    key: &Path,
    part: Part,
) -> object_store::Result<Option<(ObjectMeta, Held)>> {
    let range = match part {
        Part::First(bytes) => GetRange::Bounded(0..bytes),
        Part::Last(bytes) => GetRange::Suffix(bytes),
    };
    let options = GetOptions {
        range: Some(range),
        ..GetOptions::default()
    };
    let answer = match with.objects.get_opts(key, options).await {
        Ok(answer) => answer,
        Err(error) if is_of_range(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let (meta, range) = (answer.meta.clone(), answer.range.clone());
    let expected = match part {
        Part::First(bytes) => 0..bytes.min(meta.size),
        Part::Last(bytes) => meta.size.saturating_sub(bytes)..meta.size,
    };
    let length = usize::try_from(expected.end - expected.start).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    let mut pieces = answer.into_stream();
    // Of another range than the one that was asked for, nothing is held. Bytes behind the range are left: they may have
    // no end. Behind a fault the engine asks for the rest.
    while range == expected
        && bytes.len() < length
        && let Some(Ok(piece)) = pieces.next().await
    {
        bytes.extend_from_slice(&piece);
    }
    bytes.truncate(length);
    Ok(Some((meta, Held::new(range.start, bytes))))
}

/// Whether an answer is about the range alone: no refusal of the object, and none that passes.
fn is_of_range(error: &Error) -> bool {
    let is_refused = causes(error).any(|cause| cause.is::<Refused>());
    let has_reason = failure::of(error).kind() != io::ErrorKind::Other;
    !is_refused && !has_reason && !may_pass(error)
}
