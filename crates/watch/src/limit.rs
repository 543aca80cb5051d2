//! Limit: the readahead of one open file, by way of the limit of its file system.
//!
//! `posix_fadvise(POSIX_FADV_NORMAL)` gives an open file the limit that its file system's bdi has at that instant. So a
//! file gets a window of its own in four steps, of some 50 us together:
//!
//! ```text
//! read the bdi's limit -> record it, tell the guardian -> raise it -> fadvise -> put it back, if ours still stands
//! ```
//!
//! The kernel keeps limits in whole pages of its own, so [`steering`](forerun_steering::Kernel::page) asks for no others.
//! A value that was written from elsewhere in between stays. A file opened within these microseconds has the raised limit;
//! it is [known](forerun_steering::limits) as one of ours, and put right when the kernel's readahead is asked for it next.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use forerun_surface::failure::Failure;
use forerun_surface::undo::guardian::Guardian;
use forerun_surface::undo::knob::Knob;
use forerun_surface::undo::record::Record;
use rustix::fs::{Advice, fadvise};

use crate::mounts::FileSystem;

/// KiB of a page as limits are counted here.
pub const PAGE_KIB: u32 = 4;

/// Pages of 4 KiB in one of the kernel's: 1, or 4 or 16 on some processors.
pub(crate) fn kernel_page() -> u32 {
    (rustix::param::page_size() as u32 >> 10) / PAGE_KIB
}

/// The limit of a file system.
#[derive(Debug)]
pub struct Limit {
    file: File,
    /// None in a dry run, which raises nothing.
    record: Option<Record>,
}

/// The limits of file systems, one for each bdi, and the place of each file system's.
pub(crate) fn of_all<'a>(
    folder: Option<&Path>,
    all: impl Iterator<Item = &'a FileSystem>,
) -> Result<(Vec<Limit>, Vec<usize>), Failure> {
    let (mut bdis, mut limits, mut places): (Vec<&str>, _, _) =
        (Vec::new(), Vec::new(), Vec::new());
    for at in all {
        let place = bdis.iter().position(|bdi| *bdi == at.bdi);
        if place.is_none() {
            // Read-ahead that a watch left raised, killed together with its guardian, is put back.
            let record = |folder| Record::of_bdi(folder, &at.bdi, [Knob::new(at.limit.clone())]);
            limits.push(Limit::open(&at.limit, folder.map(record).transpose()?)?);
            bdis.push(&at.bdi);
        }
        places.push(place.unwrap_or(limits.len() - 1));
    }
    Ok((limits, places))
}

impl Limit {
    /// That of a bdi, to be read alone where there is no record.
    ///
    /// # Errors
    /// It cannot be read, or not be written.
    pub fn open(path: &Path, record: Option<Record>) -> Result<Self, Failure> {
        let refused = |error: io::Error| match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                let why = "cannot be written: needs root, or CAP_DAC_OVERRIDE, and a writable /sys";
                Failure::unusable(path, why)
            }
            _ => Failure::unusable(path, error),
        };
        let file = File::options()
            .read(true)
            .write(record.is_some())
            .open(path);
        let limit = Self {
            file: file.map_err(refused)?,
            record,
        };
        limit.pages().map_err(refused)?;
        Ok(limit)
    }

    /// The record's path, for the guardian.
    #[must_use]
    pub fn record(&self) -> Option<&Path> {
        self.record.as_ref().map(Record::path)
    }

    /// The limit of the file system, in pages.
    ///
    /// # Errors
    /// The device is gone.
    pub fn pages(&self) -> io::Result<u32> {
        Ok(self.kib()? / PAGE_KIB)
    }

    /// Gives an open file this limit; false if the guardian does not listen, and nothing was done.
    ///
    /// # Errors
    /// The device is gone, or the file takes no advice.
    pub fn set(&mut self, file: &OwnedFd, pages: u32, guardian: &mut Guardian) -> io::Result<bool> {
        let own = self.pages()?;
        if own == pages {
            fadvise(file, 0, None, Advice::Normal)?;
            return Ok(true);
        }
        if self.record.is_none() || !guardian.is_told() {
            return Ok(false);
        }
        let (before, raised) = (own * PAGE_KIB, pages * PAGE_KIB);
        if let Some(record) = &mut self.record {
            record.note(0, before.to_string(), vec![raised.to_string()])?;
        }
        let advised = self.write(raised).and_then(|()| {
            fadvise(file, 0, None, Advice::Normal)?;
            Ok(())
        });
        self.lower(before, raised)?;
        if let Some(record) = &mut self.record {
            record.note(0, before.to_string(), Vec::new())?;
        }
        advised.map(|()| true)
    }

    fn lower(&self, before: u32, raised: u32) -> io::Result<()> {
        match self.kib()? == raised {
            true => self.write(before),
            false => Ok(()),
        }
    }

    fn kib(&self) -> io::Result<u32> {
        let mut text = [0; 16];
        let count = self.file.read_at(&mut text, 0)?;
        let text = std::str::from_utf8(&text[..count]).unwrap_or_default();
        text.trim()
            .parse()
            .map_err(|_| io::ErrorKind::InvalidData.into())
    }

    fn write(&self, kib: u32) -> io::Result<()> {
        self.file.write_all_at(format!("{kib}\n").as_bytes(), 0)
    }
}

/// Where nothing stands raised the record goes, also where a start fails.
impl Drop for Limit {
    fn drop(&mut self) {
        let record = self.record.as_ref();
        if let Some(record) = record.filter(|of| of.changes().iter().all(|of| of.ours.is_empty())) {
            record.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use forerun_steering::disks::Spread;

    use super::*;

    /// A file in place of that in sysfs.
    fn limit(folder: &Path) -> Limit {
        let path = folder.join("read_ahead_kb");
        std::fs::write(&path, "128\n").unwrap();
        let record = Record::create(&folder.join("record"), [Knob::new(path.clone())]).unwrap();
        Limit::open(&path, Some(record)).unwrap()
    }

    #[test]
    fn a_change_of_the_administrator_stays() {
        let folder = tempfile::tempdir().unwrap();
        let limit = limit(folder.path());
        limit.write(4096).unwrap();
        limit.lower(128, 4096).unwrap();
        assert_eq!(limit.kib().unwrap(), 128);
        limit.write(512).unwrap();
        limit.lower(128, 4096).unwrap();
        assert_eq!(
            limit.pages().unwrap(),
            128,
            "512 KiB, which is the device's from now on"
        );
    }

    #[test]
    fn partitions_of_one_disk_have_one_limit() {
        let folder = tempfile::tempdir().unwrap();
        let of = |device: u32, bdi: &str| {
            let limit = folder.path().join(bdi).join("read_ahead_kb");
            std::fs::create_dir_all(limit.parent().unwrap()).unwrap();
            std::fs::write(&limit, "128\n").unwrap();
            FileSystem {
                device,
                kind: "ext4".into(),
                point: "/".into(),
                bdi: bdi.into(),
                limit,
                queues: vec![8 << 20],
                disks: vec![(8 << 20, true)],
                spread: Spread::Striped,
                below: None,
            }
        };
        let all = [of(1, "8:0"), of(2, "8:0"), of(3, "8:16")];
        let records = folder.path().join("records");
        for folder in [None, Some(&*records)] {
            let (limits, places) = of_all(folder, all.iter()).unwrap();
            assert_eq!((limits.len(), &places[..]), (2, &[0, 0, 1][..]));
            let has_records = limits.iter().all(|limit| limit.record().is_some());
            assert_eq!(has_records, folder.is_some());
        }
        let left = std::fs::read_dir(&records).unwrap().count();
        assert_eq!(left, 0, "nothing was raised");
    }

    #[test]
    fn the_record_of_a_limit_goes_unless_the_limit_stands_raised() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        let mut raised = limit(folder.path());
        let record = raised.record.as_mut().unwrap();
        record.note(0, "128".into(), vec!["4096".into()]).unwrap();
        drop(raised);
        assert!(path.exists());
        drop(limit(folder.path()));
        assert!(!path.exists());
    }
}
