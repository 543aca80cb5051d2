//! The arrays of md, by their files in sysfs.
//!
//! Read when a file's device is one, without a right: `level`, `chunk_size` (bytes), `layout`, `raid_disks`,
//! `reshape_position`, and for each member `dev-*/slot`, `offset` (sectors from the member's beginning to
//! that of the data), `size` (KiB) and `state`. By `drivers/md/raid5.c`, `raid10.c`, `raid0.c` and `md.h`
//! of Linux 6.18, for `n` members and strip `k`:
//!
//! ```text
//! raid5, left-symmetric (2)    row r = k div (n-1), parity n-1 - r mod n, data behind it by turns
//! raid5, right-symmetric (3)   parity r mod n: btrfs's rotation with the members moved by one
//! raid6 (2, 3, 10)             the same with two parities; 10 has them the other way round
//! raid4, raid5/6 (4, 5)        parity first, last: RAID-0 over the others
//! raid10, near=c               groups of c members; far=c: the first copy is RAID-0 over all
//! ```
//!
//! Members of RAID-0 that differ in size make zones: the first over all members up to the end of the
//! smallest, the next over the others. Asymmetric rotations, the offset layout of RAID-10, and near copies
//! that do not divide the members are refused by their number, and arrays that are being reshaped.
//!
//! Not tried on real arrays: the kernel this was written on has no md.

use std::fs;
use std::path::{Path, PathBuf};

use forerun_core::Bytes;

use super::block::{SECTOR, System};
use super::space::Space;
use super::{DiskArray, DiskMember, Level, Refusal, Rotation};

/// More than md makes.
const MEMBERS_MAX: u64 = 1 << 12;

/// `layout` of RAID-0 with zones: 1 counts strips from the beginning of the array, 2 from that of the zone.
const ZONES_FROM_ARRAY: u64 = 1;
const ZONES_FROM_ZONE: u64 = 2;

/// An array as sysfs tells it.
struct Md<'a> {
    system: &'a System,
    /// `/sys/block/md0`.
    folder: &'a Path,
    name: String,
    level: String,
    layout: u32,
    strip: u64,
    /// By slot; none where there is none.
    members: Vec<Option<Member>>,
}

#[derive(Clone)]
struct Member {
    /// Its folder among the block devices.
    folder: PathBuf,
    /// Where the data begins, and how long it is.
    begin: u64,
    bytes: u64,
}

/// The address space of the array in this folder.
pub(super) fn space(system: &System, folder: &Path, level: u32) -> Result<Space, Refusal> {
    let md = Md::read(system, folder)?;
    match md.level.as_str() {
        "raid0" => md.zones(),
        "linear" => md.one_behind_the_other(level),
        "raid1" => md.copies(level),
        _ => {
            let (level, members) = md.strips()?;
            let members: Vec<DiskMember> = members
                .into_iter()
                .map(|member| md.member(member))
                .collect::<Result<_, _>>()?;
            Ok(Space::of(DiskArray {
                level,
                strip: Bytes(md.strip),
                members,
            }))
        }
    }
}

impl<'a> Md<'a> {
    fn read(system: &'a System, folder: &'a Path) -> Result<Self, Refusal> {
        let name = folder.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        let files = folder.join("md");
        let number = |name: &str| system.number(&files.join(name));
        // Levels without stripes have no such file, or `none` in it.
        let reshape = system.text(&files.join("reshape_position"));
        if reshape.is_ok_and(|position| position != "none") {
            return Err(Refusal::Reshape { name });
        }
        let level = system.text(&files.join("level"))?;
        let count = number("raid_disks")?.min(MEMBERS_MAX);
        let mut members = vec![None; count as usize];
        for (slot, member) in Self::members(system, &files)? {
            if let Some(place) = members.get_mut(slot as usize) {
                *place = Some(member);
            }
        }
        Ok(Self {
            system,
            folder,
            name,
            level,
            layout: number("layout").map_or(0, |layout| layout as u32),
            strip: number("chunk_size").unwrap_or(0),
            members,
        })
    }

    /// Those that have a slot and work.
    fn members(system: &System, files: &Path) -> Result<Vec<(u64, Member)>, Refusal> {
        let unreadable = |error: std::io::Error| Refusal::Sysfs {
            path: files.into(),
            why: error.to_string(),
        };
        let mut members = Vec::new();
        for entry in fs::read_dir(files).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            if !entry.file_name().to_string_lossy().starts_with("dev-") {
                continue;
            }
            let of = entry.path();
            // Spares have `none`; one that is being rebuilt has a slot and is not in sync.
            let Ok(slot) = system.number(&of.join("slot")) else {
                continue;
            };
            let state = system.text(&of.join("state"))?;
            if !state.split(',').any(|word| word == "in_sync") {
                continue;
            }
            let block = of.join("block");
            let folder = block.canonicalize().map_err(|error| Refusal::Sysfs {
                path: block,
                why: error.to_string(),
            })?;
            let begin = system.number(&of.join("offset"))?.saturating_mul(SECTOR);
            let bytes = system.number(&of.join("size"))?.saturating_mul(1024);
            let member = Member {
                folder,
                begin,
                bytes,
            };
            members.push((slot, member));
        }
        Ok(members)
    }

    fn member(&self, member: &Member) -> Result<DiskMember, Refusal> {
        self.system.member(&member.folder, member.begin)
    }

    /// All of them, of an array that cannot do without one.
    fn all(&self) -> Result<Vec<&Member>, Refusal> {
        let all: Option<Vec<_>> = self.members.iter().map(Option::as_ref).collect();
        all.filter(|all| !all.is_empty())
            .ok_or_else(|| Refusal::MemberMissing {
                array: self.name.clone(),
            })
    }

    fn unknown(&self) -> Refusal {
        Refusal::Level {
            name: self.name.clone(),
            level: self.level.clone(),
            layout: self.layout,
        }
    }

    /// The level with its members, in the order of the engine's layouts.
    fn strips(&self) -> Result<(Level, Vec<&Member>), Refusal> {
        let mut members = self.all()?;
        let count = members.len();
        if self.strip == 0 {
            return Err(self.unknown());
        }
        match (self.level.as_str(), self.layout) {
            ("raid5", 2) => Ok((Level::Raid5(Rotation::Left), members)),
            ("raid6", 2) => Ok((Level::Raid6(Rotation::Left), members)),
            ("raid5", 3) => {
                members.rotate_left(1);
                Ok((Level::Raid5(Rotation::Right), members))
            }
            ("raid6", 3) => {
                members.rotate_left(2 % count);
                Ok((Level::Raid6(Rotation::Right), members))
            }
            // Left-symmetric with Q before P: data begin one member sooner.
            ("raid6", 10) => {
                members.rotate_right(1);
                Ok((Level::Raid6(Rotation::Left), members))
            }
            ("raid4", _) | ("raid5", 5) if count > 1 => {
                members.truncate(count - 1);
                Ok((Level::Raid0, members))
            }
            ("raid5", 4) if count > 1 => Ok((Level::Raid0, members.split_off(1))),
            ("raid6", 5) if count > 2 => {
                members.truncate(count - 2);
                Ok((Level::Raid0, members))
            }
            ("raid6", 4) if count > 2 => Ok((Level::Raid0, members.split_off(2))),
            ("raid10", layout) => Ok((self.copied(layout, count)?, members)),
            _ => Err(self.unknown()),
        }
    }

    /// RAID-10 by its layout number: near copies, far copies times 256, and how far ones are placed.
    fn copied(&self, layout: u32, count: usize) -> Result<Level, Refusal> {
        let (near, far, placed) = (layout & 0xff, layout >> 8 & 0xff, layout >> 16);
        let copies = near as usize;
        match (near, far, placed) {
            (1, 1, _) => Ok(Level::Raid0),
            (2.., 1, 0) if count.is_multiple_of(copies) => Ok(Level::Raid10 {
                copies: copies as u8,
            }),
            // Reads take the copy with the lowest address while it is there.
            (1, 2.., 0) => Ok(Level::Raid0),
            _ => Err(self.unknown()),
        }
    }

    /// RAID-0 with its zones.
    fn zones(&self) -> Result<Space, Refusal> {
        let all = self.all()?;
        if self.strip == 0 {
            return Err(self.unknown());
        }
        let size = |member: &Member| member.bytes / self.strip * self.strip;
        let mut space = Space::default();
        let (mut begin, mut used) = (0_u64, 0);
        let mut left = all;
        left.retain(|member| size(member) > 0);
        while let Some(smallest) = left.iter().map(|member| size(member)).min() {
            let bytes = (smallest - used).saturating_mul(left.len() as u64);
            let mut members = left.clone();
            if begin > 0 {
                match u64::from(self.layout) {
                    ZONES_FROM_ARRAY => {
                        let turn = begin / self.strip % members.len() as u64;
                        members.rotate_left(turn as usize);
                    }
                    ZONES_FROM_ZONE => {}
                    _ => return Err(self.unknown()),
                }
            }
            let members = members.into_iter().map(|member| {
                let mut found = self.member(member)?;
                found.begin = Bytes(found.begin.0.saturating_add(used));
                Ok(found)
            });
            let array = DiskArray {
                level: Level::Raid0,
                strip: Bytes(self.strip),
                members: members.collect::<Result<_, _>>()?,
            };
            space.push(begin, bytes, array);
            begin = begin.saturating_add(bytes);
            used = smallest;
            left.retain(|member| size(member) > smallest);
        }
        Ok(space)
    }

    /// Linear: the members one behind the other, each with all below it.
    fn one_behind_the_other(&self, level: u32) -> Result<Space, Refusal> {
        let mut space = Space::default();
        let mut begin = 0_u64;
        for member in self.all()? {
            let device = self.system.device(&member.folder)?;
            let below = self.system.below_at(device.number, level)?;
            space.embed(begin, member.bytes, &below.space, member.begin);
            begin = begin.saturating_add(member.bytes);
        }
        Ok(space)
    }

    /// RAID-1: any of those that are there.
    fn copies(&self, level: u32) -> Result<Space, Refusal> {
        let there: Vec<_> = self.members.iter().flatten().collect();
        match &there[..] {
            [] => Err(Refusal::MemberMissing {
                array: self.folder.display().to_string(),
            }),
            [one] => {
                let device = self.system.device(&one.folder)?;
                let below = self.system.below_at(device.number, level)?;
                let mut space = Space::default();
                space.embed(0, one.bytes, &below.space, one.begin);
                Ok(space)
            }
            several => Ok(Space::of(DiskArray {
                level: Level::Raid1,
                strip: Bytes(0),
                members: several
                    .iter()
                    .map(|member| self.member(member))
                    .collect::<Result<_, _>>()?,
            })),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
