//! Layout: devices and positions of files.
//!
//! File i lies on device i modulo their number, or all files lie on one array of all devices. On a
//! device files follow each other, each at a block boundary and with one block between, so that no
//! read runs from one file into the next (packed ones with none); on an array each at a stripe,
//! with one stripe between. Files are contiguous, unless an array is asked for fragments.

use forerun_core::layout::{Array, LIST, Layout, LayoutMap, MappedExtent};
use forerun_core::spec::{Choice, ChoiceError};
use forerun_core::units::Extent;
use forerun_core::{Block, Bytes, DeviceId, FileId, Placement};

use super::WorldError;
use crate::random::Random;

/// A file of the world.
#[derive(Debug)]
pub(super) struct File {
    pub(super) placement: Placement,
    layout: LayoutMap,
    pub(super) bytes: Bytes,
    pub(super) blocks: u64,
    /// The reader that last asked for a part of it; pays for fetches of it.
    pub(super) last_reader: Option<usize>,
}

/// Location of an extent, if one device holds it in one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceExtent {
    pub(super) at: Bytes,
    /// Its bytes: the last block of a file may be partial.
    pub(super) bytes: Bytes,
}

/// All files on one array of all devices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Striping {
    /// Its layout.
    pub layout: Choice<Box<dyn Layout>>,
    /// Files lie in pieces all over it; else each in one run, from a row of strips on.
    pub fragments: Option<Fragments>,
}

/// Files in pieces, in a random order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragments {
    /// Mean length of a piece; they are evenly between one block and twice as much.
    pub mean: Bytes,
    /// Decides lengths and order.
    pub seed: u64,
}

/// Extents of files on an array, for workloads that have them: offsets and addresses.
type Places = Vec<Vec<(Bytes, Bytes)>>;

impl Striping {
    /// Contiguous files on RAID-0.
    ///
    /// # Errors
    /// A strip out of range.
    pub fn raid0(strip: Bytes) -> Result<Self, ChoiceError> {
        let layout = Choice::parse("layout", LIST, "raid0")?.with("strip_bytes", strip.0)?;
        Ok(Self {
            layout,
            fragments: None,
        })
    }
}

impl File {
    /// Position of an extent on this device. None if it is not one run of it.
    pub(super) fn run_of(
        &self,
        extent: &Extent,
        device: DeviceId,
        block_bytes: u64,
    ) -> Option<DeviceExtent> {
        let start = u64::from(extent.first.0) * block_bytes;
        let end = (extent.end() * block_bytes).min(self.bytes.0);
        let bytes = Bytes(end.saturating_sub(start));
        let copies = (0..self.layout.copies(start)).map(|copy| self.layout.copy(start, copy));
        let mut there = copies.filter(|place| place.device == device && bytes <= place.run);
        there.next().map(|place| DeviceExtent {
            at: place.position,
            bytes,
        })
    }
}

/// Start of each file on a single device.
pub(crate) fn begins(sizes: &[Bytes], block_bytes: u64, is_packed: bool) -> Vec<u64> {
    let mut next = 0u64;
    let begins = sizes.iter().map(|bytes| {
        let begin = next;
        let gap = u64::from(!is_packed);
        let blocks = bytes.0.div_ceil(block_bytes).saturating_add(gap);
        next = next.saturating_add(blocks.saturating_mul(block_bytes));
        begin
    });
    begins.collect()
}

/// Lays the files out over a given number of devices, one by one or all on one array.
pub(super) fn place(
    sizes: &[Bytes],
    devices: usize,
    striping: Option<&Striping>,
    places: Option<Places>,
    block_bytes: u64,
    is_packed: bool,
) -> Result<Vec<File>, WorldError> {
    if sizes.len() > FileId::LIMIT as usize {
        return Err(WorldError::Count(sizes.len()));
    }
    let placements = match striping {
        Some(striping) => on_array(sizes, devices, striping, places, block_bytes)?,
        None => one_by_one(sizes, devices, block_bytes, is_packed),
    };
    let files = sizes.iter().zip(placements).enumerate();
    let files = files.map(|(at, (&bytes, placement))| {
        let blocks = bytes.0.div_ceil(block_bytes);
        if blocks > u64::from(u32::MAX) {
            return Err(WorldError::FileSize(at));
        }
        let layout = LayoutMap::new(&placement, block_bytes as u32);
        Ok(File {
            layout: layout.ok_or(WorldError::Fragments(at))?,
            placement,
            bytes,
            blocks,
            last_reader: None,
        })
    });
    files.collect()
}

fn one_by_one(
    sizes: &[Bytes],
    devices: usize,
    block_bytes: u64,
    is_packed: bool,
) -> Vec<Placement> {
    let mut next = vec![0u64; devices];
    let placements = sizes.iter().enumerate().map(|(at, bytes)| {
        let device = at % devices;
        let location = Bytes(next[device]);
        let blocks = bytes.0.div_ceil(block_bytes);
        let blocks = blocks.saturating_add(u64::from(!is_packed));
        next[device] = location
            .0
            .saturating_add(blocks.saturating_mul(block_bytes));
        Placement::linear(DeviceId(device as u16), location)
    });
    placements.collect()
}

fn on_array(
    sizes: &[Bytes],
    devices: usize,
    striping: &Striping,
    places: Option<Places>,
    block_bytes: u64,
) -> Result<Vec<Placement>, WorldError> {
    let refused = || WorldError::Striping(striping.layout.to_string(), devices);
    // No more than 2^16 are allowed.
    let numbers = (0..devices).map(|device| DeviceId(device as u16));
    let array = Array {
        layout: striping.layout.clone(),
        members: numbers.map(|device| (device, Bytes(0))).collect(),
    };
    let whole = Placement::on(array);
    let map = LayoutMap::new(&whole, block_bytes as u32).ok_or_else(refused)?;
    let row = map.strip(Block(0)).map_or(1, |strip| strip.stripe);
    let row = u64::from(row) * block_bytes;
    let placed = |extents| Placement {
        extents,
        ..whole.clone()
    };
    if let Some(places) = places {
        let extents = |file: Vec<(Bytes, Bytes)>| {
            let extents = file.into_iter().map(|(offset, at)| extent(offset.0, at.0));
            placed(extents.collect())
        };
        return Ok(places.into_iter().map(extents).collect());
    }
    if let Some(fragments) = &striping.fragments {
        let extents = scattered(sizes, fragments, block_bytes);
        return Ok(extents.into_iter().map(placed).collect());
    }
    let mut next = 0u64;
    let placements = sizes.iter().map(|bytes| {
        let at = Bytes(next);
        let rows = bytes.0.div_ceil(row).saturating_add(1);
        next = next.saturating_add(rows.saturating_mul(row));
        placed(match at {
            Bytes(0) => Vec::new(),
            at => vec![extent(0, at.0)],
        })
    });
    Ok(placements.collect())
}

fn extent(offset: u64, at: u64) -> MappedExtent {
    MappedExtent {
        offset: Bytes(offset),
        array: 0,
        at: Bytes(at),
    }
}

/// The extents of each file, whose pieces lie one behind the other in a random order.
fn scattered(sizes: &[Bytes], fragments: &Fragments, block_bytes: u64) -> Vec<Vec<MappedExtent>> {
    let mut random = Random::new(fragments.seed);
    let most = (2 * fragments.mean.0 / block_bytes).max(2) - 1;
    let mut pieces: Vec<(u64, usize, u64, u64)> = Vec::new();
    for (file, bytes) in sizes.iter().enumerate() {
        let (mut at, blocks) = (0, bytes.0.div_ceil(block_bytes));
        while at < blocks {
            let count = random.between(1, most).min(blocks - at);
            pieces.push((random.number(), file, at, count));
            at += count;
        }
    }
    pieces.sort_unstable();
    let mut extents = vec![Vec::new(); sizes.len()];
    let mut next = 0;
    for (_, file, at, count) in pieces {
        extents[file].push(extent(at * block_bytes, next * block_bytes));
        next += count;
    }
    for extents in &mut extents {
        extents.sort_unstable_by_key(|extent| extent.offset);
    }
    extents
}
