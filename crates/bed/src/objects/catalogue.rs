//! The objects of a store: names, sizes and versions; their bytes follow from a seed, or are those of files.
//!
//! All bytes come from one piece of noise, of [`NOISE_BYTES`]; an object begins somewhere in it and
//! goes round as often as it is long. A body is sent from there without a copy. The length of the
//! noise is a prime, so that no two ranges of equal alignment are alike, and a reader that got bytes
//! of another place notices. Files are read once, into memory, so that no disk is measured.
//!
//! Place and version of an object follow from the seed, its name and its size, of a file from its name and bytes, and
//! from nothing beside it: `many/000007` is the same object, whichever others there are.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use crate::args;
use crate::content::{self, BLOCK_BYTES};
use crate::failure::Failure;

/// The largest prime below 16 MiB: the noise stays in memory at little cost.
pub const NOISE_BYTES: u64 = 16_777_213;

/// The most objects of one group.
const COUNT_MAX: u64 = 1_000_000;

/// The largest object of S3, 5 TiB.
const BYTES_MAX: u64 = 5 << 40;

/// Objects of one size, by the names `NAME/000000` onwards.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// The first part of the names.
    pub name: String,
    /// How many.
    pub count: u64,
    /// How large each is.
    pub bytes: u64,
}

/// An object.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its name in the bucket.
    pub key: String,
    /// How large it is.
    pub bytes: u64,
    /// Where its bytes are.
    pub place: Place,
    /// Its version, with quotes.
    pub version: String,
}

/// Where an object begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In the noise.
    Noise(u64),
    /// In the bytes of the files.
    Files(u64),
}

/// The objects of a bucket, by name.
#[derive(Debug)]
pub struct Catalogue {
    /// The name of the bucket.
    pub bucket: String,
    objects: Vec<Object>,
    noise: Vec<u8>,
    /// All files, one behind the other.
    files: Vec<u8>,
}

/// A group as people type it: `large=1x1GB`.
///
/// # Errors
/// No name, no count or no size, or more than S3 has.
pub fn group(text: &str) -> Result<Group, String> {
    let wanted = || {
        format!(
            "`{text}`: give a name, 1 to {COUNT_MAX} objects and the size of each, at most 5 TiB, as \
             large=1x1GB"
        )
    };
    let (name, rest) = text.split_once('=').ok_or_else(wanted)?;
    let (count, bytes) = rest.split_once('x').ok_or_else(wanted)?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let count = count.parse().ok().filter(|c| (1..=COUNT_MAX).contains(c));
    let bytes = args::bytes(bytes).ok().filter(|b| *b <= BYTES_MAX);
    match (count, bytes) {
        (Some(count), Some(bytes)) if !name.is_empty() && name.chars().all(is_name) => Ok(Group {
            name: name.to_owned(),
            count,
            bytes,
        }),
        _ => Err(wanted()),
    }
}

/// The name of a file below a folder.
fn key<'a>(folder: &Path, path: &'a Path) -> Result<&'a str, Failure> {
    let key = path.strip_prefix(folder).ok().and_then(Path::to_str);
    key.ok_or_else(|| Failure::unusable(path, "its path is no text"))
}

/// A word that follows from these bytes.
fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    let begun = content::tag(seed, bytes.len() as u64, 0);
    words.fold(begun, |hash, word| content::tag(hash, word, 0))
}

/// A version in the form of an object that was uploaded in parts: not a digest of its bytes.
fn in_parts(version: u64) -> String {
    format!("\"{version:032x}-2\"")
}

impl Catalogue {
    /// The objects of these groups.
    #[must_use]
    pub fn new(bucket: &str, groups: &[Group], seed: u64) -> Self {
        let names = groups.iter().flat_map(|group| {
            let key = |number| format!("{}/{number:06}", group.name);
            (0..group.count).map(move |number| (key(number), group.bytes))
        });
        let mut objects: Vec<_> = names
            .map(|(key, bytes)| {
                let begin = hash(seed, key.as_bytes());
                Object {
                    key,
                    bytes,
                    place: Place::Noise(begin % NOISE_BYTES),
                    version: in_parts(content::tag(begin, bytes, 0)),
                }
            })
            .collect();
        objects.sort_by(|one, other| one.key.cmp(&other.key));
        objects.dedup_by(|one, other| one.key == other.key);
        let mut noise = vec![0; NOISE_BYTES as usize];
        for (index, block) in noise.chunks_mut(BLOCK_BYTES).enumerate() {
            content::expand(content::tag(seed, 0, index as u64), block);
        }
        Self {
            bucket: bucket.to_owned(),
            objects,
            noise,
            files: Vec::new(),
        }
    }

    /// The same, with the files below a folder as objects by their paths there. An empty folder is an empty object
    /// whose name ends in `/`, as the consoles of stores make it. Links to folders, and files that are none, are left out.
    ///
    /// # Errors
    /// A file that cannot be read, or whose path is no text; by its path.
    pub fn with_files(mut self, folder: &Path) -> Result<Self, Failure> {
        let mut folders = vec![folder.to_owned()];
        while let Some(at) = folders.pop() {
            let refused = |error: io::Error| Failure::unusable(&at, error);
            let mut is_empty = true;
            for entry in fs::read_dir(&at).map_err(refused)? {
                let path = entry.map_err(refused)?.path();
                is_empty = false;
                let kind = fs::symlink_metadata(&path).map_err(refused)?;
                // A link to a folder may lead back to one above, and a pipe has no end.
                if kind.is_dir() {
                    folders.push(path);
                } else if path.is_file() {
                    self.add_file(folder, &path)?;
                }
            }
            if is_empty && at != folder {
                self.add(format!("{}/", key(folder, &at)?), 0);
            }
        }
        self.objects.sort_by(|one, other| one.key.cmp(&other.key));
        self.objects.dedup_by(|one, other| one.key == other.key);
        Ok(self)
    }

    fn add_file(&mut self, folder: &Path, path: &Path) -> Result<(), Failure> {
        let key = key(folder, path)?;
        let file = File::open(path).and_then(|mut file| file.read_to_end(&mut self.files));
        let bytes = file.map_err(|error| Failure::unusable(path, error))?;
        self.add(key.to_owned(), bytes);
        Ok(())
    }

    /// An object of the last so many bytes of the files.
    fn add(&mut self, key: String, bytes: usize) {
        let begin = self.files.len() - bytes;
        let version = hash(hash(0, key.as_bytes()), &self.files[begin..]);
        self.objects.push(Object {
            key,
            bytes: bytes as u64,
            place: Place::Files(begin as u64),
            version: in_parts(version),
        });
    }

    /// The object of this name.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<&Object> {
        let found = self.objects.binary_search_by(|o| o.key.as_str().cmp(key));
        found.ok().map(|index| &self.objects[index])
    }

    /// The objects whose names come after this one and begin with the prefix.
    #[must_use]
    pub fn after<'a>(&'a self, key: &str, prefix: &'a str) -> &'a [Object] {
        let begins = |o: &Object| o.key.starts_with(prefix);
        let first = |o: &Object| o.key.as_str() <= key || (o.key.as_str() < prefix && !begins(o));
        let objects = &self.objects[self.objects.partition_point(first)..];
        &objects[..objects.partition_point(begins)]
    }

    /// Bytes of the files from a place on.
    #[must_use]
    pub fn stored(&self, place: u64, bytes: u64) -> &[u8] {
        &self.files[place as usize..][..bytes as usize]
    }

    /// Bytes of the noise from a place on, going round: some of them, at least one.
    #[must_use]
    pub fn noise(&self, place: u64, bytes_max: u64) -> &[u8] {
        let begin = place % NOISE_BYTES;
        let end = begin.saturating_add(bytes_max).min(NOISE_BYTES);
        &self.noise[begin as usize..end as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue() -> Catalogue {
        let groups = ["b=3x1MB", "a=1x1GB"].map(|text| group(text).unwrap());
        Catalogue::new("bed", &groups, 7)
    }

    #[test]
    fn objects_have_names_in_order_and_versions_of_their_own() {
        let catalogue = catalogue();
        let keys = |prefix, after| {
            let objects = catalogue.after(after, prefix).iter();
            objects.map(|o| o.key.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(
            keys("", ""),
            ["a/000000", "b/000000", "b/000001", "b/000002"]
        );
        assert_eq!(keys("b/", ""), ["b/000000", "b/000001", "b/000002"]);
        assert_eq!(keys("b/", "b/000001"), ["b/000002"]);
        assert_eq!(keys("c", ""), [""; 0]);
        let version = |key| &catalogue.find(key).unwrap().version;
        assert_ne!(version("b/000000"), version("b/000001"));
        assert!(catalogue.find("b/000003").is_none());
    }

    #[test]
    fn files_are_objects_by_their_paths() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("f")).unwrap();
        fs::create_dir(folder.path().join("empty")).unwrap();
        fs::write(folder.path().join("f/one"), "first").unwrap();
        fs::write(folder.path().join("two"), "second").unwrap();
        let link = |to: &str, name: &str| {
            std::os::unix::fs::symlink(to, folder.path().join("f").join(name)).unwrap();
        };
        link("one", "linked");
        link("..", "loop");
        link("/dev/null", "device");
        let catalogue = catalogue().with_files(folder.path()).unwrap();
        for (key, bytes) in [
            ("f/one", "first"),
            ("f/linked", "first"),
            ("two", "second"),
            ("empty/", ""),
        ] {
            let object = catalogue.find(key).unwrap();
            let Place::Files(begin) = object.place else {
                panic!("{object:?}");
            };
            assert_eq!(catalogue.stored(begin, object.bytes), bytes.as_bytes());
        }
        assert_eq!(
            catalogue.after("f/", "f/").len(),
            2,
            "no folder by a link, no device"
        );
        assert!(catalogue.find("a/000000").is_some());
        let refused = super::tests::catalogue().with_files(&folder.path().join("no"));
        assert!(refused.unwrap_err().to_string().contains("no"));
    }

    #[test]
    fn place_and_version_of_an_object_follow_from_it_and_from_nothing_beside_it() {
        let of = |groups: &[&str], seed| {
            let groups: Vec<_> = groups.iter().map(|text| group(text).unwrap()).collect();
            let catalogue = Catalogue::new("bed", &groups, seed);
            let object = catalogue.find("b/000001").unwrap();
            (object.place, object.version.clone())
        };
        let alone = of(&["b=2x1MB"], 7);
        assert_eq!(of(&["a=3x1GB", "b=9x1MB"], 7), alone);
        assert_ne!(of(&["b=2x1MB"], 8).0, alone.0);
        let of_other_size = of(&["b=2x2MB"], 7);
        assert_eq!(of_other_size.0, alone.0);
        assert_ne!(of_other_size.1, alone.1);
    }

    #[test]
    fn the_version_of_a_file_follows_from_its_name_and_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let version = |written: &[(&str, &str)], key: &str| {
            for (name, bytes) in written {
                fs::write(folder.path().join(name), bytes).unwrap();
            }
            let catalogue = catalogue().with_files(folder.path()).unwrap();
            catalogue.find(key).unwrap().version.clone()
        };
        let first = version(&[("m", "a file of some words")], "m");
        let beside = [("a", "more"), ("z", "more"), ("n", "a file of some words")];
        assert_eq!(version(&beside, "m"), first);
        assert_ne!(version(&[], "n"), first, "another name");
        for bytes in ["a file of some wordz", "b file of some words", "a file", ""] {
            assert_ne!(version(&[("m", bytes)], "m"), first, "{bytes}");
        }
        assert_eq!(version(&beside, "z"), version(&[], "z"));
    }

    #[test]
    fn noise_goes_round_and_differs_between_places() {
        let catalogue = catalogue();
        assert_eq!(catalogue.noise(NOISE_BYTES - 2, 10).len(), 2);
        assert_eq!(catalogue.noise(NOISE_BYTES, 10), catalogue.noise(0, 10));
        assert_ne!(catalogue.noise(0, 64), catalogue.noise(1 << 20, 64));
    }

    #[test]
    fn a_group_that_is_none_is_refused_with_an_example() {
        for wrong in [
            "a",
            "a=1",
            "a=0x1MB",
            "=1x1MB",
            "a/b=1x1MB",
            "a=1x9000000GB",
        ] {
            assert!(group(wrong).unwrap_err().contains("large=1x1GB"), "{wrong}");
        }
    }
}
