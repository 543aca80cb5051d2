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

use forerun_io::source::remote::Held;
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

/// Asks for a part; it is held as far as it is there. None if the object has no such range, or its store no such
/// ranges.
pub(crate) async fn opened(
    with: &Connected,
    key: &Path,
    part: Part,
) -> object_store::Result<Option<(ObjectMeta, Held<Vec<u8>>)>> {
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
