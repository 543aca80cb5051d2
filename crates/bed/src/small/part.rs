//! Programs that read one part of each file: its beginning (type sniffers), its middle (thumbnails) or its end (footers).
//!
//! Called by [`program`](super::program). The files are opened in the order of their names, by one thread, or by two that
//! take the next one each.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use crate::bed::Files;
use crate::failure::{At, Failure};
use crate::fill;
use crate::joined::joined;

/// Files from this size on have parts: a program that reads smaller ones reads them whole.
pub(super) const FROM_BYTES: u64 = 1 << 20;

/// A part of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Head,
    Middle,
    Tail,
}

impl Part {
    /// Where it begins in a file, and its length: a header, a picture, a footer.
    fn of(self, file_bytes: u64) -> (u64, usize) {
        match self {
            Self::Head => (0, 4 << 10),
            Self::Middle => (file_bytes / 2, 16 << 10),
            Self::Tail => (file_bytes.saturating_sub(64 << 10), 64 << 10),
        }
    }

    /// Reads it of all files, and gives the seconds it took.
    pub(super) fn read(self, root: &Path, files: &Files, threads: usize) -> Result<f64, Failure> {
        let mut paths: Vec<PathBuf> = (0..files.count)
            .map(|number| root.join(fill::path(files, number)))
            .collect();
        paths.sort();
        // A program that knows no sizes lists the folders.
        for folder in fs::read_dir(root).at(root)? {
            let folder = folder.at(root)?.path();
            if folder.is_dir() {
                fs::read_dir(&folder).at(&folder)?.count();
            }
        }
        let next = AtomicUsize::new(0);
        let began = Instant::now();
        thread::scope(|scope| {
            let read = || {
                while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                    self.read_one(path).at(path)?;
                }
                Ok(())
            };
            let start = |_| thread::Builder::new().spawn_scoped(scope, read);
            let readers: io::Result<Vec<_>> = (0..threads).map(start).collect();
            readers
                .at(root)?
                .into_iter()
                .try_for_each(|reader| joined(reader.join()))
        })?;
        Ok(began.elapsed().as_secs_f64())
    }

    fn read_one(self, path: &Path) -> io::Result<()> {
        let file = File::open(path)?;
        let (offset, bytes) = self.of(file.metadata()?.len());
        file.read_exact_at(&mut vec![0; bytes], offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_of_every_file_and_one_that_is_short_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let files = Files::flat(5, FROM_BYTES, 5);
        fill::run(root.path(), &files).unwrap();
        for part in [Part::Head, Part::Middle, Part::Tail] {
            let (offset, bytes) = part.of(FROM_BYTES);
            assert!(offset + bytes as u64 <= FROM_BYTES, "{part:?}");
            for threads in [1, 2] {
                assert!(part.read(root.path(), &files, threads).unwrap() > 0.0);
            }
        }
        fs::write(root.path().join(fill::path(&files, 3)), "short").unwrap();
        for part in [Part::Head, Part::Middle, Part::Tail] {
            assert!(part.read(root.path(), &files, 2).is_err(), "{part:?}");
        }
    }
}
