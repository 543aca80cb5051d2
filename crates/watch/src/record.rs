//! Record: which limit stands raised, so that another process can put it back.
//!
//! One file a file system, below the runtime folder. It is written before a limit is raised and after it was put back,
//! by one `pwrite` of one line, and locked by the watch that runs:
//!
//! ```text
//! forerun-watch 1 BOOT-ID 8:0 128 4096 17      before, raised (0: nothing is), how often so far
//! ```
//!
//! Read by the guardian and by the next start. Both write the old limit only where the raised one still stands: a
//! value that somebody set meanwhile stays. After a reboot the record tells nothing, because the kernel's limits are
//! new.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use forerun_surface::failure::Failure;
use rustix::fs::FlockOperation;

const NAME: &str = "forerun-watch 1";
/// A line is filled up with spaces to so many bytes, so that a shorter one leaves nothing of the one before.
const BYTES: usize = 160;

/// A limit that stands raised, or did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Raised {
    boot: String,
    bdi: String,
    /// The limit before, in KiB.
    pub before: u32,
    /// The raised one; 0 if nothing is raised.
    pub raised: u32,
    /// How often one was raised so far.
    pub count: u64,
}

/// The file of one file system.
#[derive(Debug)]
pub struct Record {
    file: File,
    path: PathBuf,
    boot: String,
    bdi: String,
    count: u64,
}

impl Record {
    /// Makes it, or takes over the one that a watch left behind, whose limit is put back first.
    ///
    /// # Errors
    /// Another watch runs on this file system, or the folder cannot be written.
    pub fn open(folder: &Path, bdi: &str) -> Result<Self, Failure> {
        let path = folder.join(format!("watch-{bdi}"));
        let refused = |error: io::Error| Failure::unusable(&path, error);
        fs::create_dir_all(folder).map_err(refused)?;
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&path)
            .map_err(refused)?;
        let lock = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
        if lock.is_err() {
            let why = "another `forerun watch` runs on this file system";
            return Err(Failure::unusable(&path, why));
        }
        let boot = boot().map_err(refused)?;
        put_back(&file, &limit_of(bdi)).map_err(refused)?;
        let record = Self {
            file,
            path: path.clone(),
            boot,
            bdi: bdi.to_owned(),
            count: 0,
        };
        record.write(0, 0).map_err(refused)?;
        Ok(record)
    }

    /// Its path, for the guardian.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A limit is about to be raised.
    pub(crate) fn raises(&mut self, before: u32, raised: u32) -> io::Result<()> {
        self.count += 1;
        self.write(before, raised)
    }

    /// It was put back.
    pub(crate) fn is_back(&self, before: u32) -> io::Result<()> {
        self.write(before, 0)
    }

    /// The watch ends, and nothing is raised.
    pub fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }

    fn write(&self, before: u32, raised: u32) -> io::Result<()> {
        let (boot, bdi, count) = (&self.boot, &self.bdi, self.count);
        let line = format!("{NAME} {boot} {bdi} {before} {raised} {count}");
        let line = format!("{line:<width$}\n", width = BYTES - 1);
        self.file.write_all_at(line.as_bytes(), 0)
    }
}

/// The line of a record; none if it is of another boot, or no record.
pub(crate) fn read(file: &File) -> io::Result<Option<Raised>> {
    let mut bytes = [0; BYTES];
    let count = file.read_at(&mut bytes, 0)?;
    let text = String::from_utf8_lossy(&bytes[..count]);
    let raised = parse(&text).filter(|raised| boot().is_ok_and(|boot| boot == raised.boot));
    Ok(raised)
}

fn parse(text: &str) -> Option<Raised> {
    let mut words = text.strip_prefix(NAME)?.split_ascii_whitespace();
    let raised = Raised {
        boot: words.next()?.to_owned(),
        bdi: words.next()?.to_owned(),
        before: words.next()?.parse().ok()?,
        raised: words.next()?.parse().ok()?,
        count: words.next()?.parse().ok()?,
    };
    // A bdi is a name below a folder, not a way out of it.
    (!raised.bdi.contains('/') && words.next().is_none()).then_some(raised)
}

/// Puts the limit of a record back, if the raised one stands; whether it did.
pub(crate) fn put_back(record: &File, limit: &Path) -> io::Result<bool> {
    let Some(raised) = read(record)?.filter(|raised| raised.raised > 0) else {
        return Ok(false);
    };
    let stands = fs::read_to_string(limit)?.trim().parse() == Ok(raised.raised);
    if stands {
        fs::write(limit, raised.before.to_string())?;
    }
    Ok(stands)
}

/// Where the limit of a bdi stands.
pub(crate) fn limit_of(bdi: &str) -> PathBuf {
    Path::new("/sys/class/bdi").join(bdi).join("read_ahead_kb")
}

/// The limit of the bdi that a record names.
pub(crate) fn limit_in(record: &File) -> io::Result<Option<PathBuf>> {
    Ok(read(record)?.map(|raised| limit_of(&raised.bdi)))
}

fn boot() -> io::Result<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(folder: &Path) -> Record {
        Record::open(folder, "none:such").unwrap()
    }

    #[test]
    fn a_limit_is_put_back_where_the_raised_one_stands_and_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let limit = folder.path().join("read_ahead_kb");
        let mut record = record(folder.path());
        for (found, left, is_put_back) in [("4096", "128", true), ("512", "512", false)] {
            fs::write(&limit, found).unwrap();
            record.raises(128, 4096).unwrap();
            assert_eq!(put_back(&record.file, &limit).unwrap(), is_put_back);
            assert_eq!(fs::read_to_string(&limit).unwrap().trim(), left);
            record.is_back(128).unwrap();
            assert!(
                !put_back(&record.file, &limit).unwrap(),
                "nothing is raised"
            );
        }
    }

    #[test]
    fn a_record_of_another_boot_tells_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut record = record(folder.path());
        record.boot = "another".into();
        record.raises(128, 4096).unwrap();
        assert_eq!(read(&record.file).unwrap(), None);
    }

    #[test]
    fn two_watches_of_one_file_system_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let first = record(folder.path());
        let message = Record::open(folder.path(), "none:such")
            .unwrap_err()
            .to_string();
        assert!(message.contains("another `forerun watch`"), "{message}");
        drop(first);
        assert!(Record::open(folder.path(), "none:such").is_ok());
    }

    proptest! {
        #[test]
        fn any_line_is_read_or_refused(text in "(forerun-watch 1 )?[a-z0-9:/ -]{0,60}") {
            if let Some(raised) = parse(&text) {
                prop_assert!(!raised.bdi.contains('/'));
            }
        }
    }
}
