//! Linux's own readahead with the setting it has, and with another one.
//!
//! Called by `forerun profile` before it advises a `read_ahead_kb`. The competitive depth is right
//! for a device that serves one request at a time; on a fast one it was 64 kB where 8 MiB read 5 to
//! 9 times as fast. So both are tried: a part of the file, cold, in reads of 128 KiB through the
//! page cache, in turns.
//!
//! The setting is a device's, but the kernel copies it into each file as it is opened. So it is
//! changed for as long as an open takes, some microseconds, and put back before the first read:
//! neither an error nor a signal during the minutes of measuring leaves it changed.

use std::fs::{self, File};
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use forerun_core::Bytes;
use rustix::fs::{Advice, fadvise, major, minor};

/// The read size of programs that copy files.
const READ_BYTES: usize = 128 << 10;

/// How much is read each time: eight windows of the largest setting that is usual (8 MiB).
pub const PART: Bytes = Bytes(64 << 20);

/// The median of five is not moved by two interruptions.
const ROUNDS: u64 = 5;

/// Less is noise, also where it is in all of them.
const GAIN_PERCENT: u128 = 5;

/// A disk of 20 MB/s reads [`PART`] in that.
const DEADLINE: Duration = Duration::from_secs(3);

/// The setting of the device below a file.
#[derive(Debug)]
pub struct ReadAhead {
    path: PathBuf,
    /// The present value, in KiB.
    pub present: u64,
}

/// Bytes per second with two settings.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rates {
    /// With the present one and with the other, of one part after the other.
    pub pairs: Vec<(u64, u64)>,
}

impl Rates {
    /// The medians.
    #[must_use]
    pub fn medians(&self) -> (u64, u64) {
        let middle = |mut rates: Vec<u64>| {
            rates.sort_unstable();
            rates.get(rates.len() / 2).copied().unwrap_or_default()
        };
        let (present, other) = self.pairs.iter().copied().unzip();
        (middle(present), middle(other))
    }

    /// Whether the other one is faster: in all parts but one, and by [`GAIN_PERCENT`] in the
    /// middle.
    #[must_use]
    pub fn other_is_better(&self) -> bool {
        let faster = self.pairs.iter().filter(|(present, other)| other > present);
        let (present, other) = self.medians();
        let gain = u128::from(present) * (100 + GAIN_PERCENT) / 100;
        faster.count() + 1 >= self.pairs.len() && u128::from(other) > gain
    }
}

/// Puts the setting back.
struct Restored<'a>(&'a ReadAhead);

impl Drop for Restored<'_> {
    fn drop(&mut self) {
        let ReadAhead { path, present } = self.0;
        if let Err(e) = fs::write(path, present.to_string()) {
            tracing::error!(
                "{} was {present} and cannot be put back: {e}",
                path.display()
            );
        }
    }
}

impl ReadAhead {
    /// That of the device a file lies on, or of a block device; none if it has none.
    #[must_use]
    pub fn of(file: &Path) -> Option<Self> {
        let there = file.metadata().ok()?;
        let is_device = there.file_type().is_block_device();
        let device = if is_device { there.rdev() } else { there.dev() };
        let device = format!("{}:{}", major(device), minor(device));
        // That of a partition is its disk's. The file of the same name below the queue has the same value, but a write to
        // it freezes the queue on kernels of about 6.11 to 6.18.
        let disk =
            fs::read_to_string(format!("/sys/dev/block/{device}/../dev")).unwrap_or_default();
        let places = [device.as_str(), disk.trim()]
            .map(|number| format!("/sys/class/bdi/{number}/read_ahead_kb"));
        places.into_iter().find_map(|path| {
            let present = fs::read_to_string(&path).ok()?.trim().parse().ok()?;
            let path = path.into();
            Some(Self { path, present })
        })
    }

    /// Reads with the present setting and with this one, in turns.
    ///
    /// # Errors
    /// The setting cannot be changed, or a read failed.
    pub fn compare(&self, file: &Path, bytes: Bytes, kib: u64) -> io::Result<Rates> {
        // The first read also pays for memory that the system has to find.
        rate(&self.open(file, kib)?, 0)?;
        let mut rates = Rates::default();
        for round in 0..ROUNDS {
            let room = bytes.0.saturating_sub(PART.0);
            let start = room / ROUNDS * round / READ_BYTES as u64 * READ_BYTES as u64;
            let turn = |kib| rate(&self.open(file, kib)?, start);
            // The order changes: the first must not always be the same.
            let pair = if round % 2 == 0 {
                (turn(self.present)?, turn(kib)?)
            } else {
                let other = turn(kib)?;
                (turn(self.present)?, other)
            };
            rates.pairs.push(pair);
        }
        Ok(rates)
    }

    /// Opens a file that is read ahead by so much.
    fn open(&self, file: &Path, kib: u64) -> io::Result<File> {
        if kib == self.present {
            return File::open(file);
        }
        let _restored = Restored(self);
        fs::write(&self.path, kib.to_string())?;
        File::open(file)
    }
}

/// Bytes per second of a part that is in no cache of the system.
fn rate(file: &File, start: u64) -> io::Result<u64> {
    let drop_it = || fadvise(file, start, NonZeroU64::new(PART.0), Advice::DontNeed);
    drop_it()?;
    let mut buffer = vec![0; READ_BYTES];
    let (begun, mut done) = (Instant::now(), 0);
    while done < PART.0 && begun.elapsed() < DEADLINE {
        match file.read_at(&mut buffer, start + done)? {
            0 => break,
            count => done += count as u64,
        }
    }
    let time = begun.elapsed().as_nanos().max(1);
    // The next read finds the memory of this one, whichever setting it has.
    drop_it()?;
    Ok(u64::try_from(u128::from(done) * 1_000_000_000 / time).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_is_put_back_whether_or_not_the_open_works() {
        let folder = tempfile::tempdir().unwrap();
        let (knob, file) = (folder.path().join("knob"), folder.path().join("file"));
        fs::write(&knob, "128").unwrap();
        fs::write(&file, vec![7; 1 << 20]).unwrap();
        let read_ahead = ReadAhead {
            path: knob.clone(),
            present: 128,
        };
        read_ahead.open(&file, 4096).unwrap();
        assert_eq!(fs::read_to_string(&knob).unwrap(), "128");
        read_ahead
            .open(&folder.path().join("absent"), 4096)
            .unwrap_err();
        assert_eq!(fs::read_to_string(&knob).unwrap(), "128");
        let rates = read_ahead.compare(&file, Bytes(1 << 20), 4096).unwrap();
        assert!(rates.pairs.iter().all(|(a, b)| *a > 0 && *b > 0));
        assert_eq!(fs::read_to_string(&knob).unwrap(), "128");
    }

    #[test]
    fn one_setting_is_better_if_it_is_in_all_parts_but_one() {
        let is_better = |pairs: &[(u64, u64)]| {
            let pairs = pairs.to_vec();
            Rates { pairs }.other_is_better()
        };
        assert!(is_better(&[
            (40, 77),
            (41, 80),
            (90, 60),
            (40, 70),
            (42, 79)
        ]));
        assert!(!is_better(&[
            (40, 77),
            (91, 80),
            (90, 60),
            (40, 70),
            (42, 79)
        ]));
        assert!(!is_better(&[(80, 82); 5]), "2 % are noise");
        assert!(!is_better(&[(u64::MAX, u64::MAX); 5]));
    }
}
