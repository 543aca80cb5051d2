//! How much of some files is in the page cache.
//!
//! A sample of places is asked for with `RWF_NOWAIT`, which succeeds only where the page is there. A file system that is
//! memory (tmpfs) does not take it, and all of its files are there.

use std::fs::File;
use std::io::IoSliceMut;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, fadvise, fstatfs};
use rustix::io::{ReadWriteFlags, preadv2};

/// More of the files than this still resident, in percent, and a run is not a cold one.
pub const RESIDENT_MAX: usize = 25;

/// Places looked at: enough to tell a cached set of files from a cold one.
const SAMPLES: usize = 64;

/// File systems that are memory, tmpfs and ramfs, as `statfs(2)` names them.
const IN_MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58f6];

/// How much of these files with their sizes is in the page cache, in percent of the places looked at.
#[must_use]
pub fn percent(folder: &Path, files: &[(PathBuf, u64)]) -> usize {
    let all: u64 = files.iter().map(|(_, bytes)| bytes).sum();
    let step = (all / SAMPLES as u64).max(1);
    let (mut looked, mut resident, mut next, mut before) = (0, 0, step / 2, 0);
    for (name, bytes) in files {
        let end = before + bytes;
        if next < end
            && let Ok(file) = File::open(folder.join(name))
        {
            let is_memory = is_in_memory(&file);
            // A place that is not there is not read ahead of.
            let _ = fadvise(&file, 0, None, Advice::Random);
            while next < end {
                looked += 1;
                resident += usize::from(is_memory || is_resident(&file, next - before));
                next += step;
            }
        }
        next = next.max(end);
        before = end;
    }
    resident * 100 / looked.max(1)
}

fn is_in_memory(file: &File) -> bool {
    fstatfs(file).is_ok_and(|told| IN_MEMORY.contains(&(told.f_type as u32)))
}

fn is_resident(file: &File, offset: u64) -> bool {
    let mut byte = [0];
    let read = preadv2(
        file,
        &mut [IoSliceMut::new(&mut byte)],
        offset,
        ReadWriteFlags::NOWAIT,
    );
    read == Ok(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_memory_are_resident() {
        let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
            println!("no /dev/shm: nothing tried");
            return;
        };
        std::fs::write(folder.path().join("a"), vec![1; 1 << 20]).unwrap();
        let file = File::open(folder.path().join("a")).unwrap();
        if !is_in_memory(&file) {
            println!("/dev/shm is not memory: nothing tried");
            return;
        }
        assert_eq!(percent(folder.path(), &[("a".into(), 1 << 20)]), 100);
    }
}
