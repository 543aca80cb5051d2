//! The files of a bench: given, made in a directory, or generated as they are read.
//!
//! Made and generated files hold the same bytes, a function of the seed, the file's index and the
//! position, so a reader can check every byte. A directory's files are named after their contents
//! and are made once; later benches find them there. Files the user gives are read but not checked:
//! their contents are unknown. Nothing is deleted.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use forerun_io::generated;
use rustix::fs::statvfs;

use crate::failure::Failure;
use crate::files::{self, NewFile, plain};
use crate::progress;
use crate::quantity::rough_size;
use crate::sources::{Sources, address, all_below};

/// Files are made in pieces of this size.
const PIECE_BYTES: usize = 1 << 20;

/// One file of a bench.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BenchFile {
    /// Where it lies; generated as it is read if nowhere.
    pub path: Option<PathBuf>,
    /// Its size.
    pub bytes: u64,
    /// Its index under the seed, if its bytes are known.
    pub index: Option<u64>,
}

/// See the [module](self).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Content {
    files: Vec<BenchFile>,
    seed: u64,
}

impl Content {
    /// Decides which files there are; none is made yet.
    ///
    /// # Errors
    /// A path that is no readable file, or a directory among other paths.
    pub fn new(
        paths: &[PathBuf],
        sources: &Sources,
        count: usize,
        bytes: u64,
        seed: u64,
    ) -> Result<Self, Failure> {
        let known = |path: Option<PathBuf>, i: usize| BenchFile {
            path,
            bytes,
            index: Some(i as u64),
        };
        let files = match paths {
            [] => (0..count).map(|i| known(None, i)).collect(),
            [folder] if folder.is_dir() => {
                let name = |i| folder.join(format!("forerun-bench-{seed}-{i}-{bytes}"));
                (0..count).map(|i| known(Some(name(i)), i)).collect()
            }
            given => given
                .iter()
                .map(|path| of_the_user(path, sources))
                .collect::<Result<_, _>>()?,
        };
        Ok(Self { files, seed })
    }

    /// Files of these sizes, in a folder or generated as they are read.
    #[must_use]
    pub fn of_sizes(folder: Option<&Path>, sizes: &[u64], seed: u64) -> Self {
        let file = |(index, bytes): (usize, &u64)| {
            let path = folder.map(|f| f.join(format!("forerun-bench-{seed}-{index}-{bytes}")));
            BenchFile {
                path,
                bytes: *bytes,
                index: Some(index as u64),
            }
        };
        let files = sizes.iter().enumerate().map(file).collect();
        Self { files, seed }
    }

    /// The files, at least one.
    #[must_use]
    pub fn files(&self) -> &[BenchFile] {
        &self.files
    }

    /// The seed under which their bytes are known.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The files that stay in a directory for later benches, as a shell names them, and how many
    /// bytes they have; none if there are none.
    #[must_use]
    pub fn left_behind(&self) -> Option<(String, u64)> {
        let folder = self.folder()?;
        let made = self.files.iter().filter(|file| file.index.is_some());
        let there = made.filter_map(|file| fs::metadata(file.path.as_deref()?).ok());
        let bytes = there.map(|there| there.len()).reduce(u64::saturating_add)?;
        let names = folder.join(format!("forerun-bench-{}-*", self.seed));
        Some((names.display().to_string(), bytes))
    }

    /// The directory in which files are made.
    fn folder(&self) -> Option<&Path> {
        let mut made = self.files.iter().filter(|file| file.index.is_some());
        made.find_map(|file| file.path.as_deref()?.parent())
    }

    /// Makes sure that the directory has room for so much.
    fn check_space(&self, bytes: u64) -> Result<(), Failure> {
        let Some((folder, told)) = self
            .folder()
            .and_then(|folder| Some((folder, statvfs(folder).ok()?)))
        else {
            return Ok(());
        };
        // Some file systems tell no size.
        if told.f_blocks == 0 {
            return Ok(());
        }
        let free = told.f_bavail.saturating_mul(told.f_frsize);
        match bytes > free {
            true => {
                let [bytes, free] = [bytes, free].map(|bytes| rough_size(bytes as f64));
                let why =
                    format!("{bytes} of files to make, and {free} are free: must be at most that");
                Err(Failure::unusable(folder, why))
            }
            false => Ok(()),
        }
    }

    /// Makes the files that should lie in a directory and do not.
    ///
    /// # Errors
    /// A file that cannot be written, or is there with another size; no room for all.
    pub fn make(&self) -> Result<(), Failure> {
        let wanted: Vec<_> = self
            .files
            .iter()
            .filter_map(missing)
            .collect::<Result<_, _>>()?;
        let sizes = wanted.iter().map(|(_, _, bytes)| *bytes);
        let bytes = sizes.fold(0, u64::saturating_add);
        self.check_space(bytes)?;
        let bar = progress::bytes("making files", Some(bytes));
        for (path, index, bytes) in wanted {
            make_one(path, self.seed, index, bytes, &|n| bar.inc(n))?;
        }
        bar.finish_and_clear();
        Ok(())
    }
}

/// A file or an object the user named, with its size; a block device's is where it ends.
fn of_the_user(path: &Path, sources: &Sources) -> Result<BenchFile, Failure> {
    let end = match address(path) {
        Some(url) => sources.object(url)?.bytes(),
        None if path.is_dir() => {
            let named = all_below(path);
            let why = format!(
                "is a directory: name it alone, to make files in, or its files, as {named}"
            );
            return Err(Failure::unusable(path, why));
        }
        None => {
            files::check(path)?;
            File::open(path).and_then(|mut file| file.seek(SeekFrom::End(0)))
        }
    };
    let bytes = end.map_err(|e| Failure::unusable(path, plain(&e)))?;
    Ok(BenchFile {
        path: Some(path.to_owned()),
        bytes,
        index: None,
    })
}

/// The file if it must be made.
fn missing(file: &BenchFile) -> Option<Result<(&Path, u64, u64), Failure>> {
    let (path, index) = (file.path.as_deref()?, file.index?);
    match fs::metadata(path) {
        Ok(there) if there.len() == file.bytes => None,
        Ok(there) => {
            let why = format!(
                "is there with {} bytes instead of {}",
                there.len(),
                file.bytes
            );
            Some(Err(Failure::unusable(path, why)))
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Some(Ok((path, index, file.bytes))),
        Err(e) => Some(Err(Failure::unusable(path, plain(&e)))),
    }
}

fn make_one(
    path: &Path,
    seed: u64,
    index: u64,
    bytes: u64,
    made: &dyn Fn(u64),
) -> Result<(), Failure> {
    let file = NewFile::create(path)?;
    let mut writer = file.writer()?;
    let mut piece = vec![0; PIECE_BYTES];
    for offset in (0..bytes).step_by(PIECE_BYTES) {
        let piece = &mut piece[..(bytes - offset).min(PIECE_BYTES as u64) as usize];
        generated::fill(seed, index, offset, piece);
        writer
            .write_all(piece)
            .map_err(|e| Failure::broken(path, plain(&e)))?;
        made(piece.len() as u64);
    }
    // On the device before the bench: dirty pages cannot be dropped from the page cache. And old, because a version
    // that was just modified may be read twice.
    let stored = writer.into_inner().map_err(io::IntoInnerError::into_error);
    let settled = |file: &File| file.set_modified(UNIX_EPOCH).and_then(|()| file.sync_all());
    stored
        .and_then(|file| settled(&file))
        .map_err(|e| Failure::broken(path, plain(&e)))?;
    file.finish()
}
