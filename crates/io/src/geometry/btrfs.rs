//! The chunks of a btrfs: where its addresses lie on its devices.
//!
//! btrfs has an address space of its own, cut into chunks of a gigabyte or so. A chunk is an array: a
//! profile, a strip of 64 KiB, and for each member a device and a place there. The chunk tree (tree 3,
//! object 256, type 228) lists them, for root. Address `o` behind the beginning of a chunk of `n` members,
//! in strip `k = o div 64 KiB` (`map_blocks` of Linux 6.18 `fs/btrfs/volumes.c`; found so on each
//! block of the test's files):
//!
//! ```text
//! raid0           member k mod n                row k div n
//! raid10          group  k mod (n/2)            row k div (n/2), both members of the group
//! raid5, raid6    d = n - 1, n - 2              row r = k div d, member (k mod d + r) mod n
//! raid1, c3, c4   every member                  at o
//! single, dup     the first member              at o
//! ```
//!
//! The tree is read once for a file system, and again when one of its leaves is younger than the reading: a
//! search for leaves from a transaction on finds nothing, in 2 us, while no chunk comes or goes.

use std::collections::HashMap;
use std::io;

use forerun_core::Bytes;

use super::ioctl::Page;
use super::space::Space;
use super::tables::{half, stored_short, stored_word, text, word};
use super::{DiskArray, DiskMember, Level, Refusal, Rotation};

/// `BTRFS_CHUNK_TREE_OBJECTID`, `BTRFS_FIRST_CHUNK_TREE_OBJECTID`, `BTRFS_CHUNK_ITEM_KEY`.
const CHUNK_TREE: u64 = 3;
const CHUNKS: u64 = 256;
const CHUNK_ITEM: u32 = 228;

/// `struct btrfs_ioctl_search_key`, `_search_header`, and `struct btrfs_chunk` before its stripes.
const KEY_BYTES: usize = 104;
const ITEMS_AT: usize = 64;
const HEAD_BYTES: usize = 32;
const CHUNK_BYTES: usize = 48;
const STRIPE_BYTES: usize = 32;

/// Block group flags, by `linux/btrfs_tree.h`: data, system, metadata.
const TYPES: u64 = 0x7;
const RAID0: u64 = 0x8;
const RAID1: u64 = 0x10;
const DUP: u64 = 0x20;
const RAID10: u64 = 0x40;
const RAID5: u64 = 0x80;
const RAID6: u64 = 0x100;
const RAID1C3: u64 = 0x200;
const RAID1C4: u64 = 0x400;

/// A chunk as the tree has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Chunk {
    pub(super) begin: u64,
    pub(super) bytes: u64,
    pub(super) strip: u64,
    pub(super) kind: u64,
    pub(super) sub_stripes: u16,
    /// Device and place there.
    pub(super) stripes: Vec<(u64, u64)>,
}

/// Which btrfs a file is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Identity {
    pub(super) id: [u8; 16],
    /// The transaction under way or the last one; 0 on kernels before 5.11.
    pub(super) generation: u64,
}

/// `struct btrfs_ioctl_fs_info_args` asks for the generation by a flag.
pub(super) fn ask_identity() -> [u8; 1024] {
    let mut buffer = [0; 1024];
    let generation: u64 = 1 << 1;
    buffer[48..56].copy_from_slice(&generation.to_ne_bytes());
    buffer
}

pub(super) fn identity(buffer: &[u8; 1024]) -> Identity {
    let mut id = [0; 16];
    id.copy_from_slice(&buffer[16..32]);
    Identity {
        id,
        generation: word(buffer, 56),
    }
}

/// As its folder under `/sys/fs/btrfs` is called.
pub(super) fn uuid(id: &[u8; 16]) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    for (at, byte) in id.iter().enumerate() {
        let dash = if matches!(at, 4 | 6 | 8 | 10) {
            "-"
        } else {
            ""
        };
        // Writing to memory cannot fail.
        let _ = write!(text, "{dash}{byte:02x}");
    }
    text
}

/// A search for chunks that begin here or later, in leaves of this transaction or later ones.
fn search(begin: u64, transaction: u64) -> Box<Page> {
    let mut page = Box::new([0; 4096]);
    let words = [
        CHUNK_TREE,
        CHUNKS,
        CHUNKS,
        begin,
        u64::MAX,
        transaction,
        u64::MAX,
    ];
    for (field, word) in words.iter().enumerate() {
        page[field * 8..field * 8 + 8].copy_from_slice(&word.to_ne_bytes());
    }
    let items = 4096_u32;
    for (at, value) in [(56, CHUNK_ITEM), (60, CHUNK_ITEM), (ITEMS_AT, items)] {
        page[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    page
}

/// The chunks in an answer.
fn parse(page: &Page) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    let mut at = KEY_BYTES;
    for _ in 0..half(page, ITEMS_AT) {
        let (begin, kind) = (word(page, at + 16), half(page, at + 24));
        let bytes = half(page, at + 28) as usize;
        at += HEAD_BYTES;
        let end = at.saturating_add(bytes);
        if end > page.len() {
            break;
        }
        let item = &page[at..end];
        at = end;
        let count = usize::from(stored_short(item, 44));
        if kind != CHUNK_ITEM || item.len() < CHUNK_BYTES + count * STRIPE_BYTES {
            continue;
        }
        let stripe = |index: usize| {
            let at = CHUNK_BYTES + index * STRIPE_BYTES;
            (stored_word(item, at), stored_word(item, at + 8))
        };
        chunks.push(Chunk {
            begin,
            bytes: stored_word(item, 0),
            strip: stored_word(item, 16),
            kind: stored_word(item, 24),
            sub_stripes: stored_short(item, 46),
            stripes: (0..count).map(stripe).collect(),
        });
    }
    chunks
}

/// All chunks; `ask` fills a page in.
pub(super) fn chunks(ask: &mut dyn FnMut(&mut Page) -> io::Result<()>) -> io::Result<Vec<Chunk>> {
    let mut all = Vec::new();
    let mut begin = 0;
    loop {
        let mut page = search(begin, 0);
        ask(&mut page)?;
        let found = parse(&page);
        let Some(last) = found.last().map(|chunk| chunk.begin) else {
            return Ok(all);
        };
        all.extend(found.into_iter().filter(|chunk| chunk.begin >= begin));
        match last.checked_add(1).filter(|next| *next > begin) {
            Some(next) => begin = next,
            None => return Ok(all),
        }
    }
}

/// Whether a leaf with chunks is of this transaction or a later one.
pub(super) fn is_younger(
    transaction: u64,
    ask: &mut dyn FnMut(&mut Page) -> io::Result<()>,
) -> io::Result<bool> {
    let mut page = search(0, transaction);
    ask(&mut page)?;
    Ok(half(&page[..], ITEMS_AT) > 0)
}

/// The question for a device of this number.
pub(super) fn ask_device(device: u64) -> Box<Page> {
    let mut page = Box::new([0; 4096]);
    page[..8].copy_from_slice(&device.to_ne_bytes());
    page
}

/// The path of a device; empty if it is missing.
pub(super) fn device_path(page: &Page) -> String {
    text(page, 4096 - 1024, 1024)
}

/// The devices of the chunks, each once.
pub(super) fn devices(chunks: &[Chunk]) -> Vec<u64> {
    let all = chunks.iter().flat_map(|chunk| &chunk.stripes);
    let mut devices: Vec<u64> = all.map(|(device, _)| *device).collect();
    devices.sort_unstable();
    devices.dedup();
    devices
}

/// A device of the file system, as others see it.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// Its disk, and where it begins there.
    pub(super) member: DiskMember,
    /// With all below it.
    pub(super) below: Space,
}

/// The address space; `devices` are those that are there.
pub(super) fn space(chunks: &[Chunk], devices: &HashMap<u64, Known>) -> Result<Space, Refusal> {
    let mut space = Space::default();
    for chunk in chunks {
        let level = level(chunk)?;
        let has_copies = matches!(level, Level::Raid1 | Level::Dup);
        let there: Vec<(&Known, u64)> = chunk
            .stripes
            .iter()
            .filter_map(|(device, begin)| Some((devices.get(device)?, *begin)))
            .collect();
        let is_whole = there.len() == chunk.stripes.len();
        match &there[..] {
            [(device, begin), ..] if level == Level::Linear || (has_copies && there.len() == 1) => {
                space.embed(chunk.begin, chunk.bytes, &device.below, *begin);
            }
            [_, ..] if is_whole || has_copies => {
                let member = |(device, begin): &(&Known, u64)| DiskMember {
                    begin: Bytes(device.member.begin.0.saturating_add(*begin)),
                    ..device.member.clone()
                };
                let array = DiskArray {
                    level,
                    strip: Bytes(if has_copies { 0 } else { chunk.strip }),
                    members: there.iter().map(member).collect(),
                };
                space.push(chunk.begin, chunk.bytes, array);
            }
            _ => space.push_missing(chunk.begin, chunk.bytes),
        }
    }
    Ok(space.sorted())
}

fn level(chunk: &Chunk) -> Result<Level, Refusal> {
    let copies = u8::try_from(chunk.sub_stripes).unwrap_or(0);
    match chunk.kind & !TYPES {
        0 => Ok(Level::Linear),
        RAID0 if chunk.strip > 0 => Ok(Level::Raid0),
        RAID1 | RAID1C3 | RAID1C4 => Ok(Level::Raid1),
        DUP => Ok(Level::Dup),
        RAID10 if chunk.strip > 0 && copies > 0 => Ok(Level::Raid10 { copies }),
        RAID5 if chunk.strip > 0 => Ok(Level::Raid5(Rotation::Right)),
        RAID6 if chunk.strip > 0 => Ok(Level::Raid6(Rotation::Right)),
        other => Err(Refusal::Profile(other)),
    }
}

#[cfg(test)]
pub(super) mod tests;
