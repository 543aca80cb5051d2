//! The objects of a store: the sample, and a program that reads without reading ahead.
//!
//! ```text
//! s3://b/p    p/a, p/f/b, ..  listed once, with their versions     the sample, as files below a folder
//! a reader    GET 0..8 MiB    GET 8..16 MiB ..                     plain ranges, one after the other
//! ```

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use forerun_io::Source;
use forerun_io::source::fetch;
use forerun_io::source::tree::{Entry, Stat, Tree};

use super::files::{Chosen, FILES_MAX, Part, WALK_MAX};
use super::readers::{self, Open};
use super::side::{Run, Side};
use crate::failure::Failure;

/// A range of a program that reads an object in parts: that of AWS's own programs.
const RANGE_BYTES: u64 = 8 << 20;

/// The objects of a trial.
#[derive(Clone, Debug)]
pub struct Objects {
    tree: Arc<dyn Tree>,
    stats: Arc<HashMap<PathBuf, Stat>>,
}

impl Objects {
    /// Looks for objects below an address.
    ///
    /// # Errors
    /// A listing that fails, or too little to measure.
    pub fn of(tree: Arc<dyn Tree>) -> Result<(Self, Chosen), Failure> {
        let url = PathBuf::from(tree.address());
        let begun = Instant::now();
        let mut folders = VecDeque::from([String::new()]);
        let (mut files, mut stats, mut is_sample) = (Vec::new(), HashMap::new(), false);
        'walk: while let Some(folder) = folders.pop_front() {
            let failed = |e: io::Error| Failure::broken(&url, e.to_string());
            for name in tree.list(&folder).map_err(failed)? {
                if files.len() == FILES_MAX || begun.elapsed() > WALK_MAX {
                    is_sample = true;
                    break 'walk;
                }
                let (name, entry) = name.map_err(failed)?;
                let path = match folder.is_empty() {
                    true => name,
                    false => format!("{folder}/{name}"),
                };
                match entry {
                    Entry::Folder => folders.push_back(path),
                    Entry::Object(stat) if stat.bytes > 0 && stat.version.is_some() => {
                        files.push((PathBuf::from(&path), stat.bytes));
                        stats.insert(PathBuf::from(path), stat);
                    }
                    Entry::Object(_) => {}
                }
            }
        }
        let chosen = Chosen {
            folder: url.clone(),
            files,
            is_sample,
            unreadable: 0,
        };
        chosen.is_enough(&url)?;
        let stats = Arc::new(stats);
        Ok((Self { tree, stats }, chosen))
    }

    /// An object in the version that was listed.
    fn open(&self, name: &Path) -> Result<(Arc<dyn Source>, u64), Failure> {
        let failed = |e: io::Error| Failure::broken(name, e.to_string());
        let absent = || io::Error::from(io::ErrorKind::NotFound);
        let stat = self.stats.get(name).ok_or_else(absent).map_err(failed)?;
        let path = name.to_string_lossy();
        let source = self.tree.open(&path, stat).map_err(failed)?;
        Ok((source, stat.bytes))
    }
}

/// Plain ranges: each reader asks for one after the other, and waits for it.
#[derive(Clone, Debug)]
pub struct Ranges {
    /// The objects.
    pub objects: Objects,
}

impl Side for Ranges {
    fn begin(&self) -> Result<Box<dyn Run>, Failure> {
        Ok(Box::new(self.clone()))
    }
}

impl Run for Ranges {
    fn rate(&self, parts: &[Vec<Part>], each: Duration) -> Result<f64, Failure> {
        let open = |name: &Path| -> Result<Open, Failure> {
            let (source, bytes) = self.objects.open(name)?;
            let (mut held, mut from) = (Vec::new(), 0);
            Ok(Box::new(move |buffer: &mut [u8], at| {
                if at < from || at >= from + held.len() as u64 {
                    let wanted = RANGE_BYTES.min(bytes.saturating_sub(at)) as u32;
                    (held, from) = (fetch(&*source, at, wanted)?, at);
                }
                let rest = held.get((at - from) as usize..).unwrap_or_default();
                let count = rest.len().min(buffer.len());
                buffer[..count].copy_from_slice(&rest[..count]);
                Ok(count)
            }))
        };
        readers::rate(&open, parts, each)
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use forerun_io::source::Generated;
    use forerun_io::source::tree::Names;

    use super::*;

    const BYTES: u64 = 20 << 20;

    /// Two folders, with an object each and an empty one.
    #[derive(Debug)]
    struct Two;

    fn stat(bytes: u64) -> Stat {
        Stat {
            bytes,
            modified: SystemTime::UNIX_EPOCH,
            version: Some("1".into()),
        }
    }

    impl Tree for Two {
        fn address(&self) -> &str {
            "s3://b/p"
        }

        fn find(&self, _: &str) -> io::Result<Option<Entry>> {
            Ok(None)
        }

        fn list(&self, folder: &str) -> io::Result<Names> {
            let names = match folder {
                "" => vec![("f", Entry::Folder), ("a", Entry::Object(stat(BYTES)))],
                _ => vec![
                    ("b", Entry::Object(stat(BYTES))),
                    ("c", Entry::Object(stat(0))),
                ],
            };
            let names = names
                .into_iter()
                .map(|(name, entry)| Ok((name.to_owned(), entry)));
            Ok(Box::new(names.collect::<Vec<_>>().into_iter()))
        }

        fn open(&self, path: &str, stat: &Stat) -> io::Result<Arc<dyn Source>> {
            assert!(["a", "f/b"].contains(&path), "{path}");
            Ok(Arc::new(Generated {
                seed: 1,
                index: 0,
                bytes: stat.bytes,
            }))
        }
    }

    #[test]
    fn the_objects_of_all_folders_are_read_to_their_ends_by_ranges() {
        let (objects, chosen) = Objects::of(Arc::new(Two)).unwrap();
        assert_eq!(chosen.files, [("a".into(), BYTES), ("f/b".into(), BYTES)]);
        let parts = chosen.divide(1, 0, 4);
        let begun = Instant::now();
        let ranges = Ranges { objects };
        let rate = ranges
            .begin()
            .unwrap()
            .rate(&parts, Duration::from_secs(3600))
            .unwrap();
        let bytes = rate * begun.elapsed().as_secs_f64();
        assert!(bytes >= 2.0 * BYTES as f64, "{bytes}");
    }
}
