//! The first read of an object whose version is not known: its answer tells the version.
//!
//! ```text
//! asked for            GET                             held, and read through the engine from there
//! 900..1000            0..4096                         0..1000
//! the last 500 KB      the last 500 KB and a block     the same
//! all                  0..4 MiB                        the first 4 MiB
//! ```

use std::error;
use std::iter;
use std::ops::Range;
use std::time::Instant;

use bytes::Bytes;
use forerun_io::source::remote::Held;
use futures_util::StreamExt;
use object_store::{Error, GetOptions, GetRange, GetResult, Result};

use crate::connection::Connection;
use crate::object::BLOCK;
use crate::source::ObjectSource;
use crate::table::{Known, Table};

/// A connection of 80 MB/s gives so much in twice the time of a round trip of 30 ms; the rest of a longer range is
/// fetched side by side.
pub(crate) const FIRST_MAX: u64 = 4 << 20;

/// The range to ask for in place of one, and its length at most; none where size and version have to be asked for
/// first.
fn widened(range: Option<&GetRange>) -> Option<(GetRange, u64)> {
    let bounded = |begin: u64, end: u64| {
        let begin = begin / BLOCK * BLOCK;
        let end = end.checked_next_multiple_of(BLOCK)?;
        let end = end.min(begin.checked_add(FIRST_MAX)?);
        Some((GetRange::Bounded(begin..end), end - begin))
    };
    match range {
        None => bounded(0, FIRST_MAX),
        Some(GetRange::Offset(begin)) => bounded(*begin, begin.checked_add(FIRST_MAX)?),
        Some(GetRange::Bounded(Range { start, end })) if start < end => bounded(*start, *end),
        Some(GetRange::Suffix(bytes)) if (1..=FIRST_MAX).contains(bytes) => {
            let bytes = bytes + BLOCK;
            Some((GetRange::Suffix(bytes), bytes))
        }
        Some(_) => None,
    }
}

/// Whether an error refuses the range, or HEAD: the request as it is may have another answer. Stores tell it in words
/// alone: `416 Range Not Satisfiable`, "non-partial response when range requested", "Requested 0..9, got 0..5",
/// `501 Not Implemented`. Words of an address do not count.
fn is_of_question(error: &Error) -> bool {
    let said = |error: &(dyn error::Error + 'static)| {
        let text = error.to_string().to_lowercase();
        let mut words = text.split_whitespace().filter(|word| !word.contains('/'));
        words.any(|word| word.contains("range"))
            || (text.starts_with("requested ") && text.contains(", got "))
            || ["method not allowed", "not implemented"]
                .iter()
                .any(|said| text.contains(said))
    };
    match error {
        Error::NotSupported { .. } | Error::NotImplemented { .. } => true,
        Error::Generic { source, .. } => {
            iter::successors(Some(&**source as &(dyn error::Error + 'static)), |error| {
                error.source()
            })
            .any(said)
        }
        _ => false,
    }
}

/// Asks for the version and a part of an object, which goes into the table. Nothing where the request has to be made
/// as it is: the version has no name, or the range was refused, perhaps because the object is empty.
///
/// # Errors
/// Those of the inner store but refusals of the range.
pub(crate) async fn open(
    connection: &Connection,
    table: &Table,
    location: &object_store::path::Path,
    options: GetOptions,
) -> Result<Option<ObjectSource>> {
    let asked = Instant::now();
    let part = widened(options.range.as_ref());
    let (range, bytes_max) = part.clone().unzip();
    let head = range.is_none();
    let options = GetOptions {
        range,
        head,
        ..options
    };
    let answer = match connection.inner.get_opts(location, options).await {
        Ok(answer) => answer,
        Err(error) if is_of_question(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let (meta, attributes) = (answer.meta.clone(), answer.attributes.clone());
    let Some(source) = table.version(&meta, asked, Some(attributes)) else {
        table.insert(location, Known::Unnamed, asked);
        return Ok(None);
    };
    match bytes_max {
        Some(most) => {
            let (offset, bytes) = collected(answer, most).await?;
            Ok(Some(source.with_held(Held::new(offset, bytes))))
        }
        None => Ok(Some(source)),
    }
}

/// Where the bytes of an answer begin, and at most so many of them.
async fn collected(answer: GetResult, most: u64) -> Result<(u64, Bytes)> {
    let (range, mut bytes) = (answer.range.clone(), Vec::new());
    let most = usize::try_from(most.min(range.end - range.start)).unwrap_or(usize::MAX);
    let mut pieces = answer.into_stream();
    while bytes.len() < most
        && let Some(piece) = pieces.next().await
    {
        let piece = piece?;
        let left = most - bytes.len();
        bytes.extend_from_slice(&piece[..piece.len().min(left)]);
    }
    Ok((range.start, bytes.into()))
}
