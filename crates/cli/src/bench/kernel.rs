//! The candidate `kernel`: plain buffered `pread(2)` on a cold page cache, Linux's own readahead.
//!
//! Called by `commands::bench`. Before a run the pages of each file are dropped with
//! `POSIX_FADV_DONTNEED`, which needs no privilege and leaves other files alone. It drops no page that is
//! mapped or of tmpfs, so a sample of places tells whether the files are cold. Requests and
//! bytes are the block device's own counters over the run, so other users of the device are in
//! them; hits, waste and memory are not shown by the kernel and stay empty.
//!
//! It does not set `read_ahead_kb`: it measures the system as it stands.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::Path;

use indicatif::ProgressBar;
use rustix::fs::{Advice, fadvise, major, minor};

use super::plan::Plan;
use super::readers::{self, Source};
use super::server;
use super::{DeviceUse, Measured, SourceCache};
use crate::failure::Failure;
use crate::files::plain;
use crate::resident::{self, RESIDENT_MAX};

/// Sectors in `/sys/dev/block/*/stat` are of this size on every device.
const SECTOR_BYTES: u64 = 512;

impl Source for File {
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }
}

/// Runs the plan once.
///
/// # Errors
/// A file that cannot be opened or read, or holds wrong bytes.
pub fn run(plan: &Plan, bar: &ProgressBar) -> Result<Measured, Failure> {
    let source_cache = drop_pages(plan)?;
    // Of a whole workload each file is opened when its process comes.
    let files = match plan.whole {
        Some(_) => vec![open(plan, 0)?],
        None => {
            let files = plan.readers.iter().map(|&file| open(plan, file));
            files.collect::<Result<Vec<_>, _>>()?
        }
    };
    let device = files.first().and_then(device_of);
    let before = device.and_then(counters);
    let times = match plan.whole {
        Some(_) => server::run(plan, bar, &|file| open(plan, file))?,
        None => readers::run(plan, bar, files)?,
    };
    let used = device
        .and_then(counters)
        .zip(before)
        .map(|(after, before)| DeviceUse {
            requests: after.requests.saturating_sub(before.requests),
            bytes: after.bytes.saturating_sub(before.bytes),
        });
    Ok(Measured {
        elapsed: times.elapsed,
        readers: times.readers,
        bytes: times.bytes,
        responses: times.responses,
        is_saturated: false,
        device: used,
        emulated: None,
        ledger: None,
        estimate: None,
        block_bytes: 4096,
        source_cache,
    })
}

fn path_of(plan: &Plan, file: usize) -> &Path {
    let path = plan.content.files()[file].path.as_deref();
    path.unwrap_or("".as_ref())
}

fn open(plan: &Plan, file: usize) -> Result<File, Failure> {
    let path = path_of(plan, file);
    File::open(path).map_err(|e| Failure::unusable(path, plain(&e)))
}

/// Drops the pages of all files, and says whether they are gone.
fn drop_pages(plan: &Plan) -> Result<SourceCache, Failure> {
    let count = plan.content.files().len();
    (0..count).try_for_each(|file| drop_pages_of(plan, file))?;
    let sizes = plan.content.files().iter().map(|file| file.bytes);
    let paths = (0..count).map(|file| path_of(plan, file).to_owned());
    let files: Vec<_> = paths.zip(sizes).collect();
    if resident::percent("".as_ref(), &files) > RESIDENT_MAX {
        return Ok(SourceCache::Buffered);
    }
    // The places that were looked at.
    (0..count).try_for_each(|file| drop_pages_of(plan, file))?;
    Ok(SourceCache::Dropped)
}

fn drop_pages_of(plan: &Plan, file: usize) -> Result<(), Failure> {
    let (path, file) = (path_of(plan, file), open(plan, file)?);
    // Pages that were not written yet are not dropped. Where this fails, the sample tells.
    let _ = file.sync_data();
    fadvise(&file, 0, None, Advice::DontNeed)
        .map_err(|e| Failure::broken(path, format!("cannot be dropped from the page cache: {e}")))
}

/// The device a file lies on, or the block device it is.
fn device_of(file: &File) -> Option<u64> {
    let there = file.metadata().ok()?;
    Some(if there.file_type().is_block_device() {
        there.rdev()
    } else {
        there.dev()
    })
}

/// Counters of a block device since the system started, if it has any: file systems that lie on
/// none, or on several, do not.
fn counters(device: u64) -> Option<DeviceUse> {
    let path = format!("/sys/dev/block/{}:{}/stat", major(device), minor(device));
    parse_counters(&fs::read_to_string(path).ok()?)
}

/// Reads completed are the first number, sectors read the third (Documentation/block/stat.rst).
fn parse_counters(text: &str) -> Option<DeviceUse> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
    let requests = numbers.next()?.ok()?;
    let sectors = numbers.nth(1)?.ok()?;
    Some(DeviceUse {
        requests,
        bytes: sectors.saturating_mul(SECTOR_BYTES),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_layers_counters_are_read_by_position() {
        let text = "  110  7  2048  40  5 6 7 8 0 9 10";
        assert_eq!(
            parse_counters(text),
            Some(DeviceUse {
                requests: 110,
                bytes: 1 << 20
            })
        );
        assert_eq!(parse_counters("1 2"), None);
        assert_eq!(parse_counters(""), None);
    }
}
