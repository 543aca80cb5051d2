//! The sample: files of the user, and the parts of each reader.
//!
//! A directory is walked until there are enough files for a sample; links and other file systems
//! are left out. Readers take whole files in turn. Where there are fewer files than readers, files
//! are cut into as many segments as it takes, as when several programs read different places of one
//! file.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::files::{self, plain};

/// A sample: more files are not read within a minute, and each is dropped from the cache by name.
pub(super) const FILES_MAX: usize = 4_000;

/// A walk takes no longer than that: the files found by then are the sample.
pub(super) const WALK_MAX: Duration = Duration::from_secs(3);

/// The least there must be to read: less is read before a window has grown.
const BYTES_MIN: u64 = 4 << 20;

/// A segment of a file is not shorter: shorter ones are random reads.
const SEGMENT_MIN: u64 = 1 << 20;

/// The files of a trial.
#[derive(Debug)]
pub struct Chosen {
    /// The directory that is mounted.
    pub folder: PathBuf,
    /// Files below it, relative to it, with their sizes.
    pub files: Vec<(PathBuf, u64)>,
    /// Not all of them are in the sample.
    pub is_sample: bool,
    /// Files and folders beside them that this user may not read.
    pub unreadable: u64,
}

/// A run of bytes of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The file, by its place in the list.
    pub file: PathBuf,
    /// Start position.
    pub offset: u64,
    /// Length.
    pub bytes: u64,
}

impl Chosen {
    /// Looks for files.
    ///
    /// # Errors
    /// It cannot be read, or there is too little.
    pub fn of(path: &Path) -> Result<Self, Failure> {
        let unusable = |e: &std::io::Error| Failure::unusable(path, plain(e));
        let real = path.canonicalize().map_err(|e| unusable(&e))?;
        let chosen = if real.is_dir() {
            walk(&real).map_err(|e| unusable(&e))?
        } else {
            files::check(&real)?;
            let bytes = fs::metadata(&real).map_err(|e| unusable(&e))?.len();
            let (Some(folder), Some(name)) = (real.parent(), real.file_name()) else {
                return Err(Failure::unusable(path, "is not a file"));
            };
            Self {
                folder: folder.to_owned(),
                files: vec![(name.into(), bytes)],
                is_sample: false,
                unreadable: 0,
            }
        };
        chosen.is_enough(path)?;
        Ok(chosen)
    }

    /// Whether there is enough to measure.
    ///
    /// # Errors
    /// Too little.
    pub(super) fn is_enough(&self, path: &Path) -> Result<(), Failure> {
        if self.bytes() >= BYTES_MIN {
            return Ok(());
        }
        let why = format!(
            "{} bytes in {} files{} are too few to measure: must be at least 4MiB",
            self.bytes(),
            self.files.len(),
            self.unreadable()
        );
        Err(Failure::unusable(path, why))
    }

    /// Those that may not be read, in words; nothing where all may be.
    #[must_use]
    pub fn unreadable(&self) -> String {
        match self.unreadable {
            0 => String::new(),
            count => format!(" ({count} more may not be read)"),
        }
    }

    /// Bytes of all files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Limit of concurrent readers: not more than there are segments for.
    #[must_use]
    pub fn readers_max(&self) -> u32 {
        let segments = |(_, bytes): &(PathBuf, u64)| (bytes / SEGMENT_MIN).max(1);
        let all: u64 = self.files.iter().map(segments).sum();
        u32::try_from(all).unwrap_or(u32::MAX)
    }

    /// The reads of each reader, in its order. Each round begins elsewhere.
    #[must_use]
    pub fn divide(&self, readers: u32, round: u32, rounds: u32) -> Vec<Vec<Part>> {
        let mut parts = self.segments(readers);
        let shift = parts.len() * round as usize / rounds as usize;
        parts.rotate_left(shift);
        if let [only] = &mut parts[..] {
            // One reader of one file: from another place, round the end.
            let at = only.bytes / u64::from(rounds) * u64::from(round);
            let front = Part {
                bytes: at,
                ..only.clone()
            };
            only.offset = at;
            only.bytes -= at;
            parts.push(front);
        }
        let mut divided = vec![Vec::new(); readers as usize];
        for (part, reader) in parts.into_iter().zip((0..readers as usize).cycle()) {
            divided[reader].push(part);
        }
        divided
    }

    /// All files, whole, or cut so that each reader has one.
    fn segments(&self, readers: u32) -> Vec<Part> {
        let cuts = (u64::from(readers)).div_ceil(self.files.len().max(1) as u64);
        let mut segments = Vec::new();
        for (file, bytes) in &self.files {
            let cuts = cuts.min(bytes / SEGMENT_MIN).max(1);
            let each = bytes / cuts;
            for cut in 0..cuts {
                let end = if cut + 1 == cuts {
                    *bytes
                } else {
                    (cut + 1) * each
                };
                segments.push(Part {
                    file: file.clone(),
                    offset: cut * each,
                    bytes: end - cut * each,
                });
            }
        }
        segments
    }
}

/// The files below a directory, in the order of its listings.
fn walk(folder: &Path) -> std::io::Result<Chosen> {
    let device = fs::metadata(folder)?.dev();
    let begun = Instant::now();
    let mut folders = VecDeque::from([PathBuf::new()]);
    let mut files = Vec::new();
    let mut is_sample = false;
    let mut unreadable = 0;
    'walk: while let Some(below) = folders.pop_front() {
        let entries = match fs::read_dir(folder.join(&below)) {
            Ok(entries) => entries,
            Err(error) if below.as_os_str().is_empty() => return Err(error),
            Err(_) => {
                unreadable += 1;
                continue;
            }
        };
        for entry in entries.flatten() {
            if files.len() == FILES_MAX || begun.elapsed() > WALK_MAX {
                is_sample = true;
                break 'walk;
            }
            let Ok(there) = entry.metadata() else {
                continue;
            };
            let path = below.join(entry.file_name());
            if there.is_dir() && there.dev() == device {
                folders.push_back(path);
            } else if there.is_file() && there.len() > 0 {
                match fs::File::open(entry.path()) {
                    Ok(_) => files.push((path, there.len())),
                    Err(_) => unreadable += 1,
                }
            }
        }
    }
    Ok(Chosen {
        folder: folder.to_owned(),
        files,
        is_sample,
        unreadable,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(sizes: &[u64]) -> Chosen {
        let file = |(index, bytes): (usize, &u64)| (PathBuf::from(index.to_string()), *bytes);
        Chosen {
            folder: "/".into(),
            files: sizes.iter().enumerate().map(file).collect(),
            is_sample: false,
            unreadable: 0,
        }
    }

    /// Every byte of every file is in exactly one part, however many read.
    #[test]
    fn the_parts_of_all_readers_are_the_files() {
        for sizes in [&[100 << 20][..], &[5 << 20, 7, 3 << 20], &[4 << 10; 100]] {
            let chosen = chosen(sizes);
            for readers in [1, 2, 3, 16]
                .into_iter()
                .filter(|n| *n <= chosen.readers_max())
            {
                for round in 0..4 {
                    let divided = chosen.divide(readers, round, 4);
                    assert_eq!(divided.len(), readers as usize);
                    assert!(divided.iter().all(|parts| !parts.is_empty()));
                    let mut parts: Vec<_> = divided.concat();
                    parts.retain(|part| part.bytes > 0);
                    parts.sort_by_key(|part| (part.file.clone(), part.offset));
                    for (file, bytes) in &chosen.files {
                        let of_file = parts.iter().filter(|part| &part.file == file);
                        let end = of_file.fold(0, |at, part| {
                            assert_eq!(part.offset, at);
                            at + part.bytes
                        });
                        assert_eq!(end, *bytes);
                    }
                }
            }
        }
    }

    #[test]
    fn rounds_begin_at_different_places() {
        let first =
            |chosen: &Chosen, readers, round| chosen.divide(readers, round, 4)[0][0].clone();
        for (chosen, readers) in [
            (chosen(&[100 << 20]), 1),
            (chosen(&[100 << 20]), 16),
            (chosen(&[1 << 20; 8]), 2),
        ] {
            let firsts: Vec<_> = (0..4).map(|round| first(&chosen, readers, round)).collect();
            for (index, one) in firsts.iter().enumerate() {
                assert!(!firsts[..index].contains(one), "{firsts:?}");
            }
        }
    }

    #[test]
    fn a_directory_is_walked_without_links_and_too_little_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("below")).unwrap();
        fs::write(folder.path().join("below/a"), vec![1; 5 << 20]).unwrap();
        std::os::unix::fs::symlink("below/a", folder.path().join("link")).unwrap();
        let chosen = Chosen::of(folder.path()).unwrap();
        assert_eq!(chosen.files, [("below/a".into(), 5 << 20)]);
        let file = Chosen::of(&folder.path().join("link")).unwrap();
        assert_eq!(file.files, [("a".into(), 5 << 20)]);
        fs::write(folder.path().join("below/a"), "").unwrap();
        let refused = Chosen::of(folder.path()).unwrap_err().to_string();
        assert!(refused.contains("too few"), "{refused}");
    }

    #[test]
    fn files_and_folders_that_may_not_be_read_are_counted_and_the_first_folder_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let closed = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        fs::create_dir(at("below")).unwrap();
        fs::write(at("a"), vec![1; 5 << 20]).unwrap();
        fs::write(at("b"), "b").unwrap();
        closed(&at("b"), 0);
        if fs::File::open(at("b")).is_ok() {
            println!("root may read all files: nothing tried");
            return;
        }
        closed(&at("below"), 0);
        let chosen = Chosen::of(folder.path()).unwrap();
        closed(folder.path(), 0);
        let refused = Chosen::of(folder.path()).unwrap_err().to_string();
        closed(folder.path(), 0o700);
        closed(&at("below"), 0o700);
        assert_eq!((chosen.files.len(), chosen.unreadable), (1, 2));
        assert_eq!(chosen.unreadable(), " (2 more may not be read)");
        assert!(refused.ends_with("permission denied"), "{refused}");
    }
}
