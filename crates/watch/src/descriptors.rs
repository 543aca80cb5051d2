//! Descriptors: the open file behind a read that was seen, found in the process that reads.
//!
//! An event names a thread, a file system and an inode. The descriptor is the one below /proc/PID/fdinfo with that
//! inode on a mount of that file system: by mount, because `st_dev` of btrfs subvolumes is another number than that of
//! the event, and by the table of mounts of that process, because a container or a service has one of its own. fdinfo is
//! text from the kernel's own tables, so no file of a server that hangs is touched.
//!
//! ```text
//! index of a process:   inode -> descriptors with it      made in one pass, kept while it proves right
//! a descriptor:         pidfd_open -> fdinfo read again -> pidfd_getfd -> fstat: still that file?
//! ```
//!
//! The pidfd comes first, so a number that belongs to another process by then is not found. Of several descriptors of
//! the file the one whose position is nearest to the page is taken, if no other is as near.
//!
//! A pass over 10^5 descriptors takes 0.3 s, so passes are paid from an allowance of a two-hundredth of the time.

mod tables;

use std::collections::{HashMap, VecDeque};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use forerun_steering::events::FileKey;
use forerun_surface::failure::Failure;
use rustix::fs::{AtFlags, FileType, StatxFlags};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::causes::Cause;
use crate::mounts;
use tables::{Tables, View};

/// Passes take this part of the time at most.
const ALLOWANCE_PART: u32 = 200;
/// What is saved up of it: the passes of many programs that begin together, of some hundred descriptors each.
const ALLOWANCE_MAX: Duration = Duration::from_millis(500);
/// A process with more descriptors has many: a pass over as many takes 5 ms.
const MANY: usize = 1024;
/// Of such a process so many are looked at first: the last that were found, and as many numbers from each on.
const RECENT: usize = 16;
const NEAR: i32 = 4;
/// A process with no more is looked through for a read whose descriptor is not known, in 0.2 ms.
const FEW: usize = 64;
/// Processes whose descriptors are remembered.
const PROCESSES_MAX: usize = 1024;

/// An open file of another process.
#[derive(Debug)]
pub struct Found {
    /// Its descriptor, a copy of ours.
    pub file: OwnedFd,
    /// Its number there.
    pub number: i32,
    /// Its size.
    pub bytes: u64,
    /// The number of its mount.
    pub mount: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Descriptors {
    processes: HashMap<u32, Known>,
    tables: Tables,
    allowance: Duration,
    since: Instant,
}

/// Descriptors of a process.
#[derive(Debug, Default)]
struct Known {
    by_inode: HashMap<u64, Vec<i32>>,
    count: usize,
    /// Those that were found last.
    recent: VecDeque<i32>,
}

/// The lines of fdinfo that count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Told {
    pub(crate) position: u64,
    pub(crate) mount: u64,
    pub(crate) inode: u64,
}

impl Default for Descriptors {
    fn default() -> Self {
        Self {
            processes: HashMap::new(),
            tables: Tables::default(),
            allowance: ALLOWANCE_MAX,
            since: Instant::now(),
        }
    }
}

impl Descriptors {
    /// The descriptor through which a process reads this page of a file.
    ///
    /// # Errors
    /// Why there is none.
    pub fn find(&mut self, process: u32, key: FileKey, page: u64) -> Result<Found, Cause> {
        let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
        // A process of another pid namespace has no number here.
        let pid = pid.ok_or(Cause::OtherNamespace)?;
        let handle = pidfd_open(pid, PidfdFlags::empty()).map_err(|_| Cause::Ended)?;
        let view = self
            .tables
            .view(process)
            .map_err(|error| of_error(&error))?;
        let number = self.number(process, &view, key, page)?;
        let file = pidfd_getfd(&handle, number, PidfdGetfdFlags::empty());
        let file = file.map_err(|error| match error {
            rustix::io::Errno::PERM => Cause::Refused,
            _ => Cause::Closed,
        })?;
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
        let told = rustix::fs::statx(&file, c"", AtFlags::EMPTY_PATH, wanted);
        let told = told.map_err(|_| Cause::Closed)?;
        let is_it = told.stx_ino == key.inode
            && self.is_on(&view, told.stx_mnt_id, key.device)
            && FileType::from_raw_mode(told.stx_mode.into()) == FileType::RegularFile;
        if let Some(known) = self.processes.get_mut(&process).filter(|_| is_it) {
            known.recent.retain(|recent| *recent != number);
            known.recent.push_front(number);
            known.recent.truncate(RECENT);
        }
        match is_it {
            true => Ok(Found {
                file,
                number,
                bytes: told.stx_size,
                mount: told.stx_mnt_id,
            }),
            false => Err(Cause::Closed),
        }
    }

    /// The file system of a mount that a process sees, if it is a wanted one. A table in which it is none may be older than the
    /// mount, or of a namespace of before that had the same number.
    pub(crate) fn device_of(
        &mut self,
        process: u32,
        mount: u64,
        is_wanted: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let view = self.tables.view(process).ok()?;
        let look = |own: &Self| {
            let of = own.tables.mount(&view, mount)?;
            Some(of.device).filter(|device| is_wanted(*device))
        };
        look(self).or_else(|| {
            self.tables.read_old(process, &view);
            look(self)
        })
    }

    /// A path that a process has for a file of a mount, as the path on the file system. The number may have been another mount's.
    pub(crate) fn inner(&mut self, process: u32, mount: u64, path: &Path) -> Option<PathBuf> {
        let view = self.tables.view(process).ok()?;
        self.tables.read_old(process, &view);
        let of = self.tables.mount(&view, mount)?;
        mounts::inner(&of.root, &of.point, path)
    }

    /// The descriptor of the only regular file that a process has open on these file systems; none if it has several, or
    /// too many descriptors to look at for each read.
    pub(crate) fn only_one(
        &mut self,
        process: u32,
        is_watched: impl Fn(u32) -> bool,
    ) -> Option<i32> {
        if self
            .processes
            .get(&process)
            .is_none_or(|known| known.count <= FEW)
        {
            self.pass(process).ok()?;
        }
        let known = self
            .processes
            .get(&process)
            .filter(|known| known.count <= FEW)?;
        let numbers: Vec<i32> = known.by_inode.values().flatten().copied().collect();
        let mut is_ours = |number: &i32| {
            let device = told(process, *number)
                .and_then(|told| self.device_of(process, told.mount, &is_watched));
            let file = || fs::metadata(format!("/proc/{process}/fd/{number}"));
            device.is_some() && file().is_ok_and(|file| file.is_file())
        };
        let mut ours = numbers.into_iter().filter(|number| is_ours(number));
        match (ours.next(), ours.next()) {
            (Some(number), None) => Some(number),
            _ => None,
        }
    }

    /// A process has ended, or its descriptors are others.
    pub fn forget(&mut self, process: u32) {
        self.processes.remove(&process);
    }

    /// The number of the descriptor, by what is remembered or by a pass.
    fn number(&mut self, process: u32, view: &View, key: FileKey, page: u64) -> Result<i32, Cause> {
        if !self.tables.has(view) {
            self.tables.read_old(process, view);
        }
        self.guess(process, key);
        if let Some(number) = self.remembered(process, view, key, page)? {
            return Ok(number);
        }
        self.pass(process)?;
        // A file system may have been mounted elsewhere since.
        self.tables.read_old(process, view);
        self.remembered(process, view, key, page)?
            .ok_or(Cause::NoDescriptor)
    }

    /// Of a process with many descriptors a file that was not seen yet is looked for where others were found, and
    /// right behind: a pass over all would be spared.
    fn guess(&mut self, process: u32, key: FileKey) {
        let Some(known) = self
            .processes
            .get_mut(&process)
            .filter(|known| known.count > MANY)
        else {
            return;
        };
        if known.by_inode.contains_key(&key.inode) {
            return;
        }
        let near = known
            .recent
            .iter()
            .flat_map(|number| *number..number.saturating_add(NEAR));
        let found = near
            .filter(|number| told(process, *number).is_some_and(|told| told.inode == key.inode));
        let mut found: Vec<i32> = found.collect();
        found.sort_unstable();
        found.dedup();
        if !found.is_empty() {
            known.by_inode.insert(key.inode, found);
        }
    }

    /// The number among those remembered, if they are still of that file.
    fn remembered(
        &self,
        process: u32,
        view: &View,
        key: FileKey,
        page: u64,
    ) -> Result<Option<i32>, Cause> {
        let known = self.processes.get(&process);
        let Some(numbers) = known.and_then(|known| known.by_inode.get(&key.inode)) else {
            return Ok(None);
        };
        let mut candidates = Vec::new();
        for number in numbers {
            let told = told(process, *number)
                .filter(|told| told.inode == key.inode && self.is_on(view, told.mount, key.device));
            if let Some(told) = told {
                candidates.push((*number, (told.position / 4096).abs_diff(page)));
            }
        }
        candidates.sort_by_key(|(_, distance)| *distance);
        match candidates[..] {
            [] => Ok(None),
            [(number, _)] => Ok(Some(number)),
            [(number, nearest), (other, second), ..]
                if nearest < second || is_same(process, number, other) =>
            {
                Ok(Some(number))
            }
            _ => Err(Cause::SeveralDescriptors),
        }
    }

    /// Lists the descriptors of a process, if there is time left for that.
    fn pass(&mut self, process: u32) -> Result<(), Cause> {
        let now = Instant::now();
        let gained = now.duration_since(self.since) / ALLOWANCE_PART;
        self.since = now;
        self.allowance = (self.allowance + gained).min(ALLOWANCE_MAX);
        if self.allowance.is_zero() {
            return Err(Cause::ManyDescriptors);
        }
        if self.processes.len() >= PROCESSES_MAX {
            self.processes.clear();
        }
        let listed = list(process);
        self.allowance = self.allowance.saturating_sub(now.elapsed());
        let mut listed = listed?;
        if let Some(before) = self.processes.remove(&process) {
            listed.recent = before.recent;
        }
        self.processes.insert(process, listed);
        Ok(())
    }

    fn is_on(&self, view: &View, mount: u64, device: u32) -> bool {
        let mount = self.tables.mount(view, mount);
        mount.is_some_and(|of| of.device == device)
    }
}

/// The descriptors of a process by inode.
fn list(process: u32) -> Result<Known, Cause> {
    let folder = fs::read_dir(format!("/proc/{process}/fdinfo"));
    let folder = folder.map_err(|error| of_error(&error))?;
    let mut listed = Known::default();
    for entry in folder.flatten() {
        let number = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if let Some(number) = number
            && let Some(told) = told(process, number)
        {
            listed.by_inode.entry(told.inode).or_default().push(number);
            listed.count += 1;
        }
    }
    Ok(listed)
}

fn of_error(error: &io::Error) -> Cause {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Cause::Refused,
        _ => Cause::Ended,
    }
}

/// What fdinfo says of a descriptor.
pub(crate) fn told(process: u32, number: i32) -> Option<Told> {
    let text = fs::read(format!("/proc/{process}/fdinfo/{number}")).ok()?;
    parse(&String::from_utf8_lossy(&text))
}

/// Whether a descriptor of a process is of this inode.
pub(crate) fn is_of(process: u32, number: i32, inode: u64) -> bool {
    told(process, number).is_some_and(|told| told.inode == inode)
}

/// `pos:`, `mnt_id:` and `ino:` stand in the first lines, before those of special files.
fn parse(text: &str) -> Option<Told> {
    let value = |key: &str| {
        let mut lines = text.lines().take(6);
        let value = lines.find_map(|line| line.strip_prefix(key))?;
        value.trim().parse().ok()
    };
    Some(Told {
        position: value("pos:")?,
        mount: value("mnt_id:")?,
        inode: value("ino:")?,
    })
}

/// Whether this kernel tells the inodes of descriptors.
///
/// # Errors
/// It is older than Linux 5.14: no reader would ever be found.
pub(crate) fn check() -> Result<(), Failure> {
    let own =
        File::open("/proc/self").map_err(|e| Failure::unusable(Path::new("/proc/self"), e))?;
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", own.as_raw_fd()));
    check_text(&text.unwrap_or_default())
}

fn check_text(fdinfo: &str) -> Result<(), Failure> {
    let old = "this kernel does not tell the inodes of descriptors (`ino:` in /proc/PID/fdinfo): Linux 5.14 or later is needed";
    parse(fdinfo)
        .map(drop)
        .ok_or_else(|| Failure::Usage(old.into()))
}

/// Whether two descriptors of a process are of one open file.
#[expect(unsafe_code, reason = "kcmp has no safe interface")]
fn is_same(process: u32, one: i32, other: i32) -> bool {
    const FILE: libc::c_int = 0;
    // SAFETY: the call takes and gives numbers alone.
    unsafe { libc::syscall(libc::SYS_kcmp, process, process, FILE, one, other) == 0 }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom};
    use std::os::unix::fs::MetadataExt;

    use forerun_surface::below::mounts::table_of;

    use super::tables::Mounted;
    use super::*;

    fn key(file: &File) -> FileKey {
        let told = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).unwrap();
        let table = table_of(std::process::id()).unwrap();
        let mount = table
            .iter()
            .find(|mount| mount.id == told.stx_mnt_id)
            .unwrap();
        FileKey {
            device: mounts::packed(mount.device),
            inode: file.metadata().unwrap().ino(),
        }
    }

    #[test]
    fn fdinfo_is_read_by_its_keys() {
        let text = "pos:\t4096\nflags:\t0100000\nmnt_id:\t29\nino:\t77\nlock:\t1: FLOCK\n";
        let told = Told {
            position: 4096,
            mount: 29,
            inode: 77,
        };
        assert_eq!(parse(text), Some(told));
    }

    #[test]
    fn a_kernel_that_does_not_tell_inodes_is_refused_by_its_version() {
        check().unwrap();
        let before = check_text("pos:\t0\nflags:\t0100000\nmnt_id:\t29\n").unwrap_err();
        assert!(matches!(before, Failure::Usage(_)));
        assert!(before.to_string().contains("Linux 5.14"), "{before}");
    }

    #[test]
    fn a_descriptor_is_found_and_another_file_under_its_number_is_not() {
        let own = std::process::id();
        let mut descriptors = Descriptors::default();
        // Its name keeps the inode's number from being another file's.
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("a")).unwrap();
        file.set_len(10_000).unwrap();
        let wanted = key(&file);
        let found = descriptors.find(own, wanted, 0).unwrap();
        assert_eq!((found.number, found.bytes), (file.as_raw_fd(), 10_000));
        // A copy of it is open as long as what was found.
        drop(found);
        let (number, other) = (file.as_raw_fd(), tempfile::tempfile().unwrap());
        // The number is given to another file, as a program does that closes and opens.
        rustix::io::dup2(
            &other,
            &mut std::mem::ManuallyDrop::new(OwnedFd::from(file)),
        )
        .unwrap();
        let gone = descriptors.find(own, wanted, 0).map(|found| found.number);
        assert_eq!(gone, Err(Cause::NoDescriptor));
        let other = key(&other);
        assert!(
            descriptors.find(own, other, 0).is_ok(),
            "two numbers of one open file, {number}"
        );
    }

    #[test]
    fn of_several_descriptors_the_one_at_the_page_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        File::create(&path).unwrap().set_len(1 << 20).unwrap();
        let mut files = [File::open(&path).unwrap(), File::open(&path).unwrap()];
        let (own, wanted) = (std::process::id(), key(&files[0]));
        let mut descriptors = Descriptors::default();
        let both = descriptors.find(own, wanted, 0).map(|found| found.number);
        assert_eq!(both, Err(Cause::SeveralDescriptors));
        files[1].seek(SeekFrom::Start(512 << 10)).unwrap();
        let found = descriptors.find(own, wanted, 130).unwrap();
        assert_eq!(found.number, files[1].as_raw_fd());
    }

    #[test]
    fn a_mount_that_is_newer_than_the_table_is_found() {
        let own = std::process::id();
        let file = File::open("/proc/self/exe").unwrap();
        let (device, number) = (key(&file).device, file.as_raw_fd());
        let mount = told(own, number).unwrap().mount;
        // The last number is of a mount that was taken off: its file system was another one.
        let other = Mounted {
            number: mount,
            device: device + 1,
            root: "/".into(),
            point: "/".into(),
        };
        for before in [vec![], vec![other]] {
            let read = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
            let mut descriptors = Descriptors {
                tables: Tables::with(own, read, before),
                ..Descriptors::default()
            };
            let found = descriptors.device_of(own, mount, |of| of == device);
            assert_eq!(found, Some(device));
            assert_eq!(descriptors.device_of(own, mount, |_| false), None);
        }
    }

    #[test]
    fn a_path_of_a_process_is_one_on_the_file_system() {
        let own = std::process::id();
        let bound = Mounted {
            number: 7,
            device: 1,
            root: "/data".into(),
            point: "/srv".into(),
        };
        // Read in an hour, so that it is not old.
        let read = Instant::now() + Duration::from_secs(3600);
        let mut descriptors = Descriptors {
            tables: Tables::with(own, read, vec![bound]),
            ..Descriptors::default()
        };
        let mut inner = |mount, path: &str| descriptors.inner(own, mount, path.as_ref());
        assert_eq!(inner(7, "/srv/a").as_deref(), Some("/data/a".as_ref()));
        assert_eq!((inner(7, "/srv2/a"), inner(8, "/srv/a")), (None, None));
    }

    #[test]
    fn a_process_that_has_ended_is_said_to_have() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let key = FileKey {
            device: 1,
            inode: 1,
        };
        let gone = Descriptors::default().find(child.id(), key, 0);
        assert_eq!(gone.map(|found| found.number), Err(Cause::Ended));
    }
}
