//! Judges a read call: whether its bytes are one version of its file.
//!
//! Called by [`reader`](super::reader), and by [`writer`](super::writer) for the bytes. Every block
//! of 4 KiB begins with its content's number, its file and its place; all else in it follows from
//! those and the seed, so a wrong block says where it comes from:
//!
//! ```text
//! | content 4 B | file 4 B | block 8 B | words that follow from the three and the seed .. |
//! ```
//!
//! A call of 12 KiB at 0 gave blocks of contents 7, 7, 8: *mixed*. It gave 9,000 bytes of content
//! 7, whose end is at 20,000: *cut*, or *beyond* if the file ends earlier. All of content 5, which
//! had ended before the open: *stale*. Zeros where no version has a hole, as behind the end of a
//! shorter version in its last page: *zeros*. Blocks of another file of this run: *other_file*.
//! Anything else: *foreign*.

use crate::content::{self, BLOCK_BYTES};

use super::history::Version;

const HEADER_BYTES: usize = 16;

/// A read call that succeeded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) seed: u64,
    pub(super) file: u64,
    pub(super) offset: u64,
    pub(super) asked: usize,
    pub(super) bytes: &'a [u8],
}

/// The violation of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Wrong {
    pub(super) kind: &'static str,
    pub(super) text: String,
}

/// The bytes of a content from `offset` on.
pub(super) fn fill(seed: u64, file: u64, content: u32, offset: u64, bytes: &mut [u8]) {
    let version = Version {
        content,
        written: u64::MAX,
        ..Version::default()
    };
    fill_version(seed, file, &version, offset, bytes);
}

/// The bytes of a version from `offset` on, as if it had no end.
fn fill_version(seed: u64, file: u64, version: &Version, offset: u64, bytes: &mut [u8]) {
    let mut block = [0; BLOCK_BYTES];
    let (mut at, mut rest) = (offset, bytes);
    while !rest.is_empty() {
        let (index, skip) = place(at);
        let (piece, after) = rest.split_at_mut((BLOCK_BYTES - skip).min(rest.len()));
        let length = piece.len();
        fill_block(seed, file, version.content, index, &mut block);
        piece.copy_from_slice(&block[skip..skip + length]);
        let written = version.written.saturating_sub(at);
        let written = usize::try_from(written).unwrap_or(length).min(length);
        piece[written..].fill(0);
        at += length as u64;
        rest = after;
    }
}

fn place(at: u64) -> (u64, usize) {
    let size = BLOCK_BYTES as u64;
    (at / size, usize::try_from(at % size).unwrap_or(0))
}

fn fill_block(seed: u64, file: u64, content: u32, index: u64, block: &mut [u8; BLOCK_BYTES]) {
    let tag = content::tag(seed, file << 32 | u64::from(content), index);
    content::expand(tag, &mut block[HEADER_BYTES..]);
    let file = u32::try_from(file).unwrap_or(u32::MAX);
    block[..4].copy_from_slice(&content.to_le_bytes());
    block[4..8].copy_from_slice(&file.to_le_bytes());
    block[8..HEADER_BYTES].copy_from_slice(&index.to_le_bytes());
}

impl Call<'_> {
    /// Whether the call is right for a file that had this version all the time.
    pub(super) fn is_of(&self, version: &Version) -> bool {
        let left = version.length.saturating_sub(self.offset);
        if self.bytes.len() as u64 != left.min(self.asked as u64) {
            return false;
        }
        self.blocks()
            .all(|(at, piece)| self.matches(version, at, piece))
    }

    /// Pieces of the bytes, cut where blocks of the file end, with their places in it.
    fn blocks(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let head = (BLOCK_BYTES - place(self.offset).1).min(self.bytes.len());
        let (head, rest) = self.bytes.split_at(head);
        let pieces = [head].into_iter().filter(|head| !head.is_empty());
        let pieces = pieces.chain(rest.chunks(BLOCK_BYTES));
        pieces.scan(self.offset, |at, piece| {
            let from = *at;
            *at += piece.len() as u64;
            Some((from, piece))
        })
    }

    fn matches(&self, version: &Version, at: u64, piece: &[u8]) -> bool {
        let mut expected = [0; BLOCK_BYTES];
        let expected = &mut expected[..piece.len()];
        fill_version(self.seed, self.file, version, at, expected);
        expected == piece
    }

    /// Whether a file that was changed in place during the call, among these versions, can give
    /// this: each byte is one of theirs or was not written yet, and the end is not beyond all of
    /// theirs.
    pub(super) fn is_torn_between(&self, versions: &[Version]) -> bool {
        let end = self.offset + self.bytes.len() as u64;
        let longest = versions.iter().map(|v| v.length).max().unwrap_or(0);
        if end > longest && !self.bytes.is_empty() {
            return false;
        }
        let mut contents: Vec<u32> = versions.iter().map(|v| v.content).collect();
        contents.sort_unstable();
        contents.dedup();
        self.blocks().all(|(at, piece)| {
            let mut is_explained: Vec<bool> = piece.iter().map(|byte| *byte == 0).collect();
            let mut expected = [0; BLOCK_BYTES];
            for content in &contents {
                fill(
                    self.seed,
                    self.file,
                    *content,
                    at,
                    &mut expected[..piece.len()],
                );
                let bytes = piece.iter().zip(&expected);
                for (is_explained, (byte, expected)) in is_explained.iter_mut().zip(bytes) {
                    *is_explained |= byte == expected;
                }
            }
            is_explained.iter().all(|is_explained| *is_explained)
        })
    }

    /// The violation of a call that is of none of these versions.
    pub(super) fn wrong(&self, versions: &[Version]) -> Wrong {
        let found: Vec<Found> = self
            .blocks()
            .map(|(at, piece)| self.origin(versions, at, piece))
            .collect();
        let mut contents: Vec<u32> = found.iter().filter_map(Found::content).collect();
        contents.sort_unstable();
        contents.dedup();
        let end = self.offset + self.bytes.len() as u64;
        let of = |content: u32| versions.iter().filter(move |v| v.content == content);
        let is_known = |content: u32| of(content).next().is_some();
        let kind = match contents.as_slice() {
            _ if found.contains(&Found::OtherFile) => "other_file",
            _ if found.contains(&Found::Foreign) => "foreign",
            [_, _, ..] => "mixed",
            [content] if !is_known(*content) => "stale",
            _ if found.iter().any(Found::has_zeros) => "zeros",
            [] if versions.iter().all(|v| v.length < end) => "beyond",
            [content] if of(*content).all(|v| v.length < end) => "beyond",
            _ => "cut",
        };
        let text = format!(
            "file {} at {}: {} of {} bytes, contents {contents:?}",
            self.file,
            self.offset,
            self.bytes.len(),
            self.asked,
        );
        Wrong { kind, text }
    }

    fn origin(&self, versions: &[Version], at: u64, piece: &[u8]) -> Found {
        if let Some(version) = versions.iter().find(|v| self.matches(v, at, piece)) {
            return match version.written <= at {
                true => Found::Hole,
                false => Found::Content(version.content),
            };
        }
        if piece.iter().all(|byte| *byte == 0) {
            return Found::Zeros;
        }
        let header = piece.first_chunk::<HEADER_BYTES>();
        let Some([a, b, c, d, e, f, g, h, ..]) = header.filter(|_| place(at).1 == 0) else {
            return Found::Short;
        };
        let content = u32::from_le_bytes([*a, *b, *c, *d]);
        let file = u64::from(u32::from_le_bytes([*e, *f, *g, *h]));
        let mut expected = [0; BLOCK_BYTES];
        fill(self.seed, file, content, at, &mut expected);
        let same = piece
            .iter()
            .zip(&expected)
            .take_while(|(a, b)| a == b)
            .count();
        match &piece[same..] {
            _ if file != self.file && same >= 2 * HEADER_BYTES => Found::OtherFile,
            [] => Found::Content(content),
            rest if same >= HEADER_BYTES && rest.iter().all(|byte| *byte == 0) => {
                Found::Padded(content)
            }
            _ => Found::Foreign,
        }
    }
}

/// Origin of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    Content(u32),
    /// The beginning of a content, and then zeros where no version has any.
    Padded(u32),
    /// Zeros, as a version has them there.
    Hole,
    /// Too few bytes to tell.
    Short,
    OtherFile,
    /// Zeros where none has.
    Zeros,
    Foreign,
}

impl Found {
    fn content(&self) -> Option<u32> {
        match self {
            Self::Content(content) | Self::Padded(content) => Some(*content),
            _ => None,
        }
    }

    fn has_zeros(&self) -> bool {
        matches!(self, Self::Padded(_) | Self::Zeros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(content: u32, length: u64) -> Version {
        Version {
            incarnation: 1,
            content,
            written: length,
            length,
            is_public: true,
        }
    }

    fn bytes(content: u32, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        fill(9, 3, content, 0, &mut bytes);
        bytes
    }

    fn call(offset: u64, asked: usize, bytes: &[u8]) -> Call<'_> {
        Call {
            seed: 9,
            file: 3,
            offset,
            asked,
            bytes,
        }
    }

    #[test]
    fn a_call_of_one_version_is_right_wherever_it_begins_and_ends() {
        let version = version(7, 20_000);
        let whole = bytes(7, 20_000);
        for (from, asked) in [
            (0, 30_000),
            (0, 4_096),
            (5_000, 9_000),
            (19_999, 10),
            (20_000, 9),
        ] {
            let to = whole.len().min(from + asked);
            let call = call(from as u64, asked, &whole[from..to]);
            assert!(call.is_of(&version), "{from} {asked}");
            assert!(call.is_torn_between(&[version]));
        }
        let hole = Version {
            written: 15_000,
            ..version
        };
        let mut holed = whole.clone();
        holed[15_000..].fill(0);
        assert!(call(0, 30_000, &holed).is_of(&hole));
        assert!(!call(0, 30_000, &whole).is_of(&hole));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let (old, new) = (version(7, 20_000), version(8, 30_000));
        let (seven, eight) = (bytes(7, 20_000), bytes(8, 30_000));
        let check = |kind: &str, bytes: &[u8], versions: &[Version]| {
            let call = call(0, 1 << 20, bytes);
            assert!(versions.iter().all(|version| !call.is_of(version)));
            assert_eq!(call.wrong(versions).kind, kind);
        };
        let mut mixed = eight.clone();
        mixed[..8_192].copy_from_slice(&seven[..8_192]);
        check("mixed", &mixed, &[old, new]);
        check("mixed", &mixed, &[new]);
        check("cut", &eight[..20_000], &[new]);
        check("cut", &eight[..20_000], &[old, new]);
        check("cut", &[], &[old, new]);
        check("beyond", &bytes(8, 40_000), &[old, new]);
        check("beyond", &eight, &[version(7, 30_000), version(8, 20_000)]);
        check("stale", &seven, &[new]);
        let mut zeros = eight.clone();
        zeros[4_096..8_192].fill(0);
        check("zeros", &zeros, &[old, new]);
        let mut padded = eight.clone();
        padded[20_000..20_480].fill(0);
        check("zeros", &padded, &[old, new]);
        let mut foreign = eight.clone();
        foreign[5_000] ^= 1;
        check("foreign", &foreign, &[new]);
        assert!(!call(0, 1 << 20, &foreign).is_torn_between(&[old, new]));
        assert!(call(0, 1 << 20, &mixed).is_torn_between(&[old, new]));
        assert!(!call(0, 1 << 20, &mixed).is_torn_between(&[new]));
        assert!(!call(0, 1 << 20, &bytes(8, 40_000)).is_torn_between(&[old, new]));
    }

    #[test]
    fn bytes_of_another_place_or_file_are_told_from_others() {
        let whole = bytes(8, 30_000);
        let moved = call(4_096, 4_096, &whole[..4_096]);
        assert_eq!(moved.wrong(&[version(8, 30_000)]).kind, "foreign");
        let other = Call {
            file: 4,
            ..call(0, 1 << 20, &whole)
        };
        assert_eq!(other.wrong(&[version(8, 30_000)]).kind, "other_file");
    }
}
