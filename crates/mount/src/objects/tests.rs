//! The file system of a tree that fails, or tells of a name that was another one before.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::mem;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use forerun_core::{Bytes, preset};
use forerun_io::source::tree::{Age, Entry, Found, Names, Recalled, RecalledNames, Stat, Tree};
use forerun_io::source::{Generated, Source};
use forerun_io::{Config, Driver};
use rustix::io::Errno;

use super::ObjectFs;
use crate::fs::nodes::ROOT;
use crate::lock;
use crate::mounted::{Mounted, Refused};
use crate::trust::Trust;

/// Questions that wait for others, and how many there must be.
type Held = Mutex<(usize, Vec<(String, Found)>)>;

/// One object, `a`.
struct One {
    /// Every question fails with this.
    fails: Mutex<Option<i32>>,
    /// The version, as listings of this age and answers of now have it.
    listed: (u64, Instant),
    asked: Mutex<u64>,
    held: Held,
}

impl fmt::Debug for One {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("One")
    }
}

fn object(version: u64) -> Entry {
    Entry::Object(Stat {
        bytes: 10 + version,
        modified: SystemTime::UNIX_EPOCH,
        version: Some(version.to_string().into()),
    })
}

impl One {
    fn answer(&self, path: &str) -> io::Result<Option<Entry>> {
        self.checked()?;
        Ok((path == "a").then(|| object(*lock(&self.asked))))
    }

    fn checked(&self) -> io::Result<()> {
        match *lock(&self.fails) {
            Some(number) => Err(io::Error::from_raw_os_error(number)),
            None => Ok(()),
        }
    }
}

impl Tree for One {
    fn address(&self) -> &str {
        "s3://b"
    }

    fn find(&self, path: &str) -> io::Result<Option<Entry>> {
        assert_eq!(lock(&self.held).0, 0, "asked for one after the other");
        self.answer(path)
    }

    /// Held until all that are asked for side by side have come.
    fn find_then(&self, path: &str, then: Found) {
        let mut held = lock(&self.held);
        let (most, waiting) = &mut *held;
        waiting.push((path.to_owned(), then));
        if waiting.len() < *most {
            return;
        }
        let waiting = mem::take(waiting);
        drop(held);
        for (path, then) in waiting.into_iter().rev() {
            then(self.answer(&path));
        }
    }

    fn recall_then(&self, path: &str, _: Age, then: Recalled) {
        then(self.find(path).map(|entry| (entry, Instant::now())));
    }

    fn list(&self, _: &str) -> io::Result<Names> {
        unreachable!("a mount needs the time of each name")
    }

    fn list_recalled(&self, _: &str) -> io::Result<RecalledNames> {
        let (version, as_of) = self.listed;
        let one = Ok(("a".to_owned(), object(version), as_of));
        let fails = self.checked().err().map(Err);
        Ok(Box::new([one].into_iter().chain(fails)))
    }

    fn open(&self, _: &str, stat: &Stat) -> io::Result<Arc<dyn Source>> {
        Ok(Arc::new(Generated {
            seed: 1,
            index: 0,
            bytes: stat.bytes,
        }))
    }
}

fn mounted(listed: (u64, Instant), asked: u64) -> (Arc<One>, Arc<ObjectFs>) {
    let preset = preset::find(preset::DEFAULT).unwrap();
    let driver = Driver::new(Config::new(preset.settings(Bytes(8 << 20)).unwrap())).unwrap();
    let one = Arc::new(One {
        fails: Mutex::default(),
        listed,
        asked: asked.into(),
        held: Held::default(),
    });
    // Each look-up asks the store.
    let (attributes, entries) = (Duration::ZERO, Duration::ZERO);
    let trust = Trust {
        attributes,
        entries,
        ..Trust::default()
    };
    let fs = ObjectFs::new(one.clone(), driver, trust, 100);
    (one, Arc::new(fs))
}

/// The version of `a` that the kernel is told by a listing, and then opens; or its error.
fn listed_and_opened(fs: &Arc<ObjectFs>) -> Result<u64, Errno> {
    let handle = fs.open_folder(ROOT).unwrap();
    let mut node = None;
    let mut take = |name: &str, entry: &Entry, as_of, _| {
        if name == "a" {
            node = fs.listed(ROOT, name, entry, as_of).found;
        }
        true
    };
    fs.read_folder(ROOT, handle, 0, &mut take).unwrap();
    let (node, _) = node.unwrap();
    let (give, given) = channel();
    fs.open(node, 1, move |opened| give.send(opened).unwrap());
    let file = fs.open_file(given.recv().unwrap()?).unwrap();
    Ok(file.size - 10)
}

#[test]
fn a_store_that_says_not_found_has_failed_and_no_name_is_missing_or_the_last_one() {
    let (one, fs) = mounted((1, Instant::now()), 1);
    *lock(&one.fails) = Some(Errno::NOENT.raw_os_error());
    let handle = fs.open_folder(ROOT).unwrap();
    let from = Cell::new(0);
    let mut take = |_: &str, _: &Entry, _, next| {
        from.set(next);
        true
    };
    fs.read_folder(ROOT, handle, 0, &mut take).unwrap();
    let read = fs.read_folder(ROOT, handle, from.get(), &mut take);
    assert_eq!((read, from.get()), (Err(Errno::IO), 3));
    let (give, given) = channel();
    fs.look_up(ROOT, "b", move |found| give.send(found.err()).unwrap());
    assert_eq!(given.recv().unwrap(), Some(Errno::IO));
    let announced = |path: &str| {
        let mut opened = fs.open_announced(&[path.as_ref()]);
        opened.pop().unwrap().unwrap_err()
    };
    assert_eq!(announced("a"), Refused::Source(Errno::IO));
    *lock(&one.fails) = None;
    assert_eq!(announced("b"), Refused::Source(Errno::NOENT));
}

#[test]
fn a_name_of_an_old_page_is_asked_for_before_it_is_opened() {
    let old = Instant::now().checked_sub(Duration::from_secs(60));
    let old = old.expect("the machine is up for a minute");
    let (one, fs) = mounted((1, old), 2);
    assert_eq!(listed_and_opened(&fs), Err(Errno::STALE));
    *lock(&one.asked) = 1;
    assert_eq!(listed_and_opened(&fs), Ok(1));
    // Another version was found since, and the page tells of the old one.
    *lock(&one.asked) = 3;
    let (give, given) = channel();
    fs.look_up(ROOT, "a", move |found| give.send(found.err()).unwrap());
    assert_eq!(given.recv().unwrap(), None);
    assert_eq!(listed_and_opened(&fs), Ok(3));
}

/// The answers come last first, and each to its own path.
#[test]
fn announced_objects_are_looked_up_side_by_side() {
    let (one, fs) = mounted((1, Instant::now()), 1);
    lock(&one.held).0 = 3;
    let paths = ["a", "../a", "b", "a"].map(AsRef::as_ref);
    let opened = fs.open_announced(&paths);
    let opened: Vec<_> = opened.into_iter().map(|file| file.map(drop)).collect();
    let missing = Refused::Source(Errno::NOENT);
    assert_eq!(opened, [Ok(()), Err(Refused::Path), Err(missing), Ok(())]);
}
