//! The discovery: asks for a file's geometry, and remembers the parts that files have in common.
//!
//! One for a process; any thread asks it. The chunks of a btrfs and the stack below a block device are
//! kept. On a btrfs of four disks the first file took 300 us, further ones 5 us in one run and 200 in
//! 300 extents; on a disk 50 and 2. Kept for how long:
//!
//! ```text
//! chunks of a btrfs    until a leaf of its chunk tree is younger (asked at each file, 2 us), or an
//!                      extent lies in none of them; 60 s, because a device that is replaced changes none
//! block devices        60 s: a reshape of md, a table of dm that was replaced
//! extents of a file    not here: the geometry is the caller's, which asks `is_still`
//! ```
//!
//! A balance, a defragmentation or a write to a copy-on-write file moves extents while the file is open.
//! [`Discovery::is_still`] compares the first 64 extents by one call; a reader that stays asks it now and
//! then, and one that opens a file again before it uses the old geometry. A move behind those extents
//! goes unnoticed, and costs order, not content.
//!
//! No call is made while a lock is held.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use forerun_core::Bytes;
use forerun_core::layout::map::EXTENTS_MAX;

use super::block::{Below, System};
use super::fiemap::{self, Extents};
use super::ioctl::{self, Attributes};
use super::space::Space;
use super::{
    BlockDevice, CopyChoice, FileExtent, Geometry, GeometrySource, Refusal, UNIT_BYTES, btrfs,
};
use crate::clock::coarse_seconds;
use crate::served::file_system;
use crate::sync::Mutex;

/// How long devices and their stack are believed: they change by an administrator's hand, and to read
/// them takes less than a millisecond.
const BLOCK_SECONDS: u64 = 60;

const BTRFS: u32 = 0x9123_683e;

/// `f_type` of file systems on one block device whose FIEMAP gives addresses of that, by
/// `linux/magic.h`. Files of XFS on its real-time device are not told from others.
const ON_ONE_DEVICE: &[u32] = &[
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x4d44,      // FAT
    0x2011_bab0, // exFAT
    0x7366_746e, // NTFS
    0x3153_464a, // JFS
];

/// A btrfs that was met.
#[derive(Clone, Debug)]
struct Chunks {
    /// When they were read.
    second: u64,
    /// The transaction under way when they were read.
    generation: u64,
    map: AddressMap,
}

/// The address space of a file system, and how it reads copies.
#[derive(Clone, Debug)]
struct AddressMap {
    space: Arc<Space>,
    copy_choice: CopyChoice,
}

impl AddressMap {
    fn map(&self, extents: &Extents, bytes: u64) -> Result<Geometry, Refusal> {
        let geometry = map(extents, bytes, &self.space, GeometrySource::Btrfs)?;
        Ok(Geometry {
            copy_choice: self.copy_choice,
            ..geometry
        })
    }
}

/// The layers below a device, and when they were read.
type Read = (u64, Arc<Below>);

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Discovery {
    system: System,
    btrfs: Mutex<HashMap<[u8; 16], Chunks>>,
    devices: Mutex<HashMap<(u32, u32), Read>>,
}

impl Discovery {
    /// The geometry of an open file or block device. It waits for no server and reads no data.
    ///
    /// # Errors
    /// The missing knowledge or the refusal; the file can be read all the same.
    pub fn of(&self, file: BorrowedFd<'_>) -> Result<Geometry, Refusal> {
        let attributes = ioctl::attributes(file).map_err(Refusal::Attributes)?;
        if attributes.is_block_device {
            return self.of_device(&attributes);
        }
        if !attributes.is_regular {
            return Err(Refusal::NotAFile);
        }
        match file_system(file) {
            BTRFS => self.of_btrfs(file, attributes.bytes),
            kind if ON_ONE_DEVICE.contains(&kind) => {
                let below = self.below(attributes.device)?;
                let extents = extents(file, attributes.bytes)?;
                map(&extents, attributes.bytes, &below.space, below.source)
            }
            kind => Err(Refusal::FileSystem(kind)),
        }
    }

    /// Whether the first extents of a file still lie where its geometry says; one call.
    ///
    /// # Errors
    /// FIEMAP was refused.
    pub fn is_still(&self, geometry: &Geometry, file: BorrowedFd<'_>) -> Result<bool, Refusal> {
        let mut ask = ask(file);
        let is_still = geometry.beginning.is_still(&mut ask);
        is_still.map_err(Refusal::Fiemap)
    }

    fn of_device(&self, attributes: &Attributes) -> Result<Geometry, Refusal> {
        let below = self.below(attributes.device)?;
        // Offsets are signed, in the whole system.
        let bytes = self
            .system
            .bytes(attributes.device)?
            .min(i64::MAX as u64 / 2);
        map(&Extents::whole(bytes), bytes, &below.space, below.source)
    }

    /// Twice at most: if an address is in no chunk, a balance has made new ones meanwhile.
    fn of_btrfs(&self, file: BorrowedFd<'_>, bytes: u64) -> Result<Geometry, Refusal> {
        let mut buffer = btrfs::ask_identity();
        ioctl::fs_info(file, &mut buffer).map_err(|error| refused("FS_INFO", error))?;
        let identity = btrfs::identity(&buffer);
        let known = self.known(file, &identity)?;
        let is_known = known.is_some();
        let addresses = match known {
            Some(addresses) => addresses,
            None => self.read_chunks(file, &identity)?,
        };
        match addresses.map(&extents(file, bytes)?, bytes) {
            Err(Refusal::NoSuchAddress(_)) if is_known => {
                let addresses = self.read_chunks(file, &identity)?;
                addresses.map(&extents(file, bytes)?, bytes)
            }
            result => result,
        }
    }

    /// The chunks of a file system that was met, if none of them changed.
    fn known(
        &self,
        file: BorrowedFd<'_>,
        identity: &btrfs::Identity,
    ) -> Result<Option<AddressMap>, Refusal> {
        let Some(known) = self.btrfs.lock().get(&identity.id).cloned() else {
            return Ok(None);
        };
        if coarse_seconds() - known.second >= BLOCK_SECONDS {
            return Ok(None);
        }
        // In the transaction of the reading itself they may have changed behind it.
        let mut search = |page: &mut ioctl::Page| ioctl::tree_search(file, page);
        let is_younger = btrfs::is_younger(known.generation, &mut search);
        if is_younger.map_err(Refusal::TreeSearch)? {
            return Ok(None);
        }
        let mut all = self.btrfs.lock();
        if let Some(kept) = all.get_mut(&identity.id) {
            kept.generation = kept.generation.max(identity.generation);
        }
        Ok(Some(known.map))
    }

    fn read_chunks(
        &self,
        file: BorrowedFd<'_>,
        identity: &btrfs::Identity,
    ) -> Result<AddressMap, Refusal> {
        let uuid = btrfs::uuid(&identity.id);
        let folder = self.system.sys.join("fs/btrfs").join(uuid);
        if folder.join("features/raid_stripe_tree").exists() {
            return Err(Refusal::StripeTree);
        }
        // The chosen one stands in brackets.
        let policy = self.system.text(&folder.join("read_policy"));
        let copy_choice = match policy.is_ok_and(|policy| policy.contains("[pid]")) {
            true => CopyChoice::ThreadNumber,
            false => CopyChoice::Kernel,
        };
        let mut search = |page: &mut ioctl::Page| ioctl::tree_search(file, page);
        let chunks = btrfs::chunks(&mut search).map_err(Refusal::TreeSearch)?;
        let mut devices = HashMap::new();
        for id in btrfs::devices(&chunks) {
            let mut page = btrfs::ask_device(id);
            match ioctl::dev_info(file, &mut page) {
                Ok(()) => {}
                // A chunk on a device that was there a moment ago.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => continue,
                Err(error) => return Err(refused("DEV_INFO", error)),
            }
            let path = btrfs::device_path(&page);
            if path.is_empty() {
                continue;
            }
            let number = self.system.number_of(&path)?;
            let member = self.system.member_of(number, 0)?;
            // A device that hides the layer below it, as an encrypted one, is a disk.
            let below = match self.below(number) {
                Ok(below) => below.space.clone(),
                Err(_) => Space::disk(BlockDevice {
                    path: path.into(),
                    number,
                }),
            };
            devices.insert(id, btrfs::Known { member, below });
        }
        let map = AddressMap {
            space: Arc::new(btrfs::space(&chunks, &devices)?),
            copy_choice,
        };
        let read = Chunks {
            second: coarse_seconds(),
            generation: identity.generation,
            map: map.clone(),
        };
        self.btrfs.lock().insert(identity.id, read);
        Ok(map)
    }

    fn below(&self, device: (u32, u32)) -> Result<Arc<Below>, Refusal> {
        let now = coarse_seconds();
        if let Some((read, below)) = self.devices.lock().get(&device)
            && now - read < BLOCK_SECONDS
        {
            return Ok(below.clone());
        }
        let below = Arc::new(self.system.below(device)?);
        self.devices.lock().insert(device, (now, below.clone()));
        Ok(below)
    }
}

fn refused(call: &'static str, error: std::io::Error) -> Refusal {
    Refusal::Btrfs { call, error }
}

fn ask(
    file: BorrowedFd<'_>,
) -> impl FnMut(u64, usize, &mut ioctl::FiemapBuffer) -> std::io::Result<()> {
    move |start, count, buffer| ioctl::fiemap(file, start, count as u32, buffer)
}

fn extents(file: BorrowedFd<'_>, bytes: u64) -> Result<Extents, Refusal> {
    fiemap::all(bytes, &mut ask(file)).map_err(Refusal::Fiemap)
}

/// Gives extents of an address space their arrays.
pub(super) fn map(
    extents: &Extents,
    bytes: u64,
    space: &Space,
    source: GeometrySource,
) -> Result<Geometry, Refusal> {
    let mut geometry = Geometry {
        source,
        bytes: Bytes(bytes),
        arrays: Vec::new(),
        extents: Vec::new(),
        unknown_from: extents.unknown_from.map(Bytes),
        copy_choice: CopyChoice::Kernel,
        omitted: extents.omitted,
        beginning: extents.beginning,
    };
    // By the number in the space, the number in the geometry.
    let mut numbers: HashMap<usize, u16> = HashMap::new();
    for raw in &extents.kept {
        let mut done = 0;
        while done < raw.bytes {
            let address = raw.physical.saturating_add(done);
            let segment = space.find(address);
            let segment = segment.ok_or(Refusal::NoSuchAddress(address))?;
            let Some(number) = segment.array else {
                return Err(Refusal::MemberMissing {
                    array: format!("the chunk at {}", segment.begin),
                });
            };
            let length = (segment.end - address).min(raw.bytes - done);
            if geometry.extents.len() == EXTENTS_MAX {
                geometry.unknown_from = Some(Bytes(raw.logical + done));
                return Ok(geometry);
            }
            let array = *numbers.entry(number).or_insert_with(|| {
                geometry.arrays.push(space.arrays[number].clone());
                // Not more of them than extents.
                (geometry.arrays.len() - 1) as u16
            });
            let extent = FileExtent {
                offset: Bytes(raw.logical + done),
                array,
                at: Bytes(segment.at.saturating_add(address - segment.begin)),
                bytes: Bytes(length),
                flags: raw.flags,
            };
            push(&mut geometry, extent);
            done += length;
        }
    }
    Ok(geometry)
}

/// Appends an extent in whole units, or makes the last one longer.
fn push(geometry: &mut Geometry, mut extent: FileExtent) {
    // From the first unit that begins in it to the unit of its last byte, which may be that of the file. The
    // next one begins behind that unit, so no unit is in two.
    let begin = extent.offset.0.next_multiple_of(UNIT_BYTES);
    let end = extent.offset.0 + extent.bytes.0;
    if begin >= end {
        return;
    }
    let at = extent.at.0.saturating_add(begin - extent.offset.0);
    extent.at = Bytes(at / UNIT_BYTES * UNIT_BYTES);
    extent.offset = Bytes(begin);
    extent.bytes = Bytes(end.next_multiple_of(UNIT_BYTES) - begin);
    if let Some(last) = geometry.extents.last_mut() {
        let is_next = last.array == extent.array
            && last.offset.0 + last.bytes.0 == begin
            && last.at.0.checked_add(last.bytes.0) == Some(extent.at.0);
        if is_next {
            last.bytes = Bytes(last.bytes.0 + extent.bytes.0);
            last.flags |= extent.flags;
            return;
        }
    }
    geometry.extents.push(extent);
}

#[cfg(test)]
mod tests;
