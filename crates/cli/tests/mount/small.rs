//! Small files: opened ahead of programs that walk their folder, believed for as long as was said,
//! and of a tree that does not change read without the daemon.

use std::fs::{self, File, Permissions};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Mounted, bytes, eventually, folder, forerun};

/// Enough for a run to be seen, and for its window to grow.
const FILES: u32 = 200;

/// The content of a file of this number: from nothing to some blocks, in versions.
fn content(number: u32, version: u32) -> Vec<u8> {
    let length = (number * 977) % 60_000 * u32::from(!number.is_multiple_of(50));
    bytes(
        length as usize + version as usize,
        u64::from(number * 31 + version),
    )
}

struct Walk {
    mounted: Mounted,
    socket: PathBuf,
}

impl Walk {
    fn new(flags: &[&str]) -> Option<Self> {
        let folder = folder();
        let inner = folder.path().join("source/folder");
        fs::create_dir(&inner).unwrap();
        for number in 0..FILES {
            fs::write(inner.join(number.to_string()), content(number, 0)).unwrap();
        }
        let socket = folder.path().join("control");
        let mut all = vec!["--control", socket.to_str().unwrap()];
        all.extend(flags);
        let mounted = Mounted::of(folder, &all)?;
        Some(Self { mounted, socket })
    }

    fn source(&self, number: u32) -> PathBuf {
        self.mounted.source(format!("folder/{number}"))
    }

    fn point(&self, number: u32) -> PathBuf {
        self.mounted.point(format!("folder/{number}"))
    }

    /// The files in the order in which the mount lists them.
    fn listed(&self) -> Vec<u32> {
        let names = fs::read_dir(self.mounted.point("folder")).unwrap();
        let number = |name: &std::ffi::OsStr| std::str::from_utf8(name.as_bytes()).unwrap().parse();
        names
            .map(|entry| number(&entry.unwrap().file_name()).unwrap())
            .collect()
    }

    fn count(&self, name: &str) -> u64 {
        let words = ["ctl".as_ref(), self.socket.as_os_str(), "stats".as_ref()];
        let (code, said) = forerun(&words);
        assert_eq!(code, 0, "{said}");
        let report: serde_json::Value = serde_json::from_str(&said).unwrap();
        report["counters"][name].as_u64().unwrap()
    }

    fn reads_right(&self, number: u32, version: u32) {
        let read = fs::read(self.point(number)).unwrap();
        assert!(read == content(number, version), "file {number} differs");
    }

    /// Reads the first files of a listing, until others are open ahead; those not read yet, at least half.
    /// Files ahead of a walk that pauses are closed after a while: it goes on after each look.
    fn until_ahead(&self) -> Vec<u32> {
        let mut left = self.listed();
        let read: Vec<u32> = left.drain(..20).collect();
        for number in read {
            self.reads_right(number, 0);
        }
        while self.count("files_ahead_open") == 0 {
            assert!(left.len() > FILES as usize / 2, "no file is opened ahead");
            self.reads_right(left.remove(0), 0);
        }
        left
    }
}

#[test]
fn files_read_in_the_order_of_their_listing_are_opened_ahead_and_right() {
    let Some(walk) = Walk::new(&["--emulate", "switching=2ms,rate=80MB/s"]) else {
        return;
    };
    for number in walk.listed() {
        walk.reads_right(number, 0);
    }
    let used = walk.count("files_ahead_used");
    assert!(used > u64::from(FILES / 2), "{used} were used");
    let ahead = walk.count("files_ahead");
    assert!(ahead <= u64::from(FILES), "{ahead} were opened ahead");
}

/// Where a file begins on its disk; none if its file system does not say.
fn begins(path: &Path) -> Option<u64> {
    let file = File::open(path).unwrap();
    forerun_io::position::of(file.as_fd()).map(|place| place.0)
}

/// The entries of each batch of files ahead in a journal: as the engine asked for them, and as they were opened.
fn batches(journal: &str) -> Vec<[Vec<usize>; 2]> {
    let mut batches: Vec<[Vec<usize>; 2]> = Vec::new();
    let mut is_asked = false;
    for line in journal.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let entry = |at: usize| words[at + 3].parse::<usize>().unwrap();
        if let Some(at) = words.iter().position(|word| *word == "open-ahead") {
            if !std::mem::replace(&mut is_asked, true) {
                batches.push(Default::default());
            }
            batches.last_mut().unwrap()[0].push(entry(at));
            continue;
        }
        is_asked = false;
        if let Some(at) = words.iter().position(|word| *word == "ahead")
            && words.get(at + 2) == Some(&"entry")
        {
            let entry = entry(at);
            let batch = batches.iter_mut().rev();
            let [_, opened] = batch
                .into_iter()
                .find(|[asked, _]| asked.contains(&entry))
                .unwrap();
            opened.push(entry);
        }
    }
    batches
}

#[test]
fn files_ahead_are_fetched_in_the_order_in_which_they_lie_on_the_disk() {
    let folder = folder();
    let inner = folder.path().join("source/folder");
    fs::create_dir(&inner).unwrap();
    let path = |number: u32| inner.join(number.to_string());
    (0..FILES).for_each(|number| fs::write(path(number), "").unwrap());
    // Written in another order than made, so numbers of inodes are not in the order of the disk.
    for number in (0..FILES).map(|number| number * 77 % FILES) {
        fs::write(path(number), content(number, 1)).unwrap();
        File::open(path(number)).unwrap().sync_all().unwrap();
    }
    let places: Vec<Option<u64>> = (0..FILES).map(|number| begins(&path(number))).collect();
    if places.iter().any(Option::is_none) {
        return super::skipped("needs a file system that gives places (FIEMAP)");
    }
    let journal = folder.path().join("journal");
    let Some(mounted) = Mounted::of(folder, &["--journal", journal.to_str().unwrap()]) else {
        return;
    };
    let listed = fs::read_dir(mounted.point("folder")).unwrap();
    let listed: Vec<PathBuf> = listed.map(|entry| entry.unwrap().path()).collect();
    listed.iter().for_each(|path| drop(fs::read(path).unwrap()));
    let place = |entry: &usize| {
        let name = listed[*entry].file_name().unwrap().to_str().unwrap();
        places[name.parse::<usize>().unwrap()].unwrap()
    };
    mounted.signal(rustix::process::Signal::TERM);
    let mut mounted = mounted;
    mounted.ended();
    let batches = batches(&fs::read_to_string(&journal).unwrap());
    let (mut files, mut other) = (0, 0);
    for [asked, opened] in batches {
        assert!(opened.is_sorted_by_key(place), "{asked:?}: {opened:?}");
        files += opened.len();
        other += usize::from(!asked.is_sorted_by_key(place));
    }
    assert!(
        files > FILES as usize / 2 && other > 2,
        "{files} files, {other} batches"
    );
}

#[test]
fn files_of_a_folder_that_nobody_lists_are_opened_ahead_too() {
    let Some(walk) = Walk::new(&[]) else { return };
    // In the order of their names, which the program has from elsewhere.
    let mut names: Vec<String> = (0..FILES).map(|number| number.to_string()).collect();
    names.sort();
    for name in names {
        walk.reads_right(name.parse().unwrap(), 0);
    }
    assert!(walk.count("files_ahead_used") > u64::from(FILES / 4));
}

#[test]
fn files_read_in_random_order_waste_next_to_nothing() {
    let Some(walk) = Walk::new(&[]) else { return };
    walk.listed();
    let mut state = 12_345_u32;
    for _ in 0..2 * FILES {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        walk.reads_right((state >> 8) % FILES, 0);
    }
    let wasted = walk.count("files_ahead_wasted") + walk.count("files_ahead_open");
    assert!(
        wasted <= 32 + u64::from(2 * FILES / 8),
        "{wasted} for nothing"
    );
}

#[test]
fn a_file_that_changed_after_it_was_opened_ahead_is_read_whole() {
    for round in 0..4 {
        let Some(walk) = Walk::new(&[]) else { return };
        let left = walk.until_ahead();
        for number in left {
            let source = walk.source(number);
            match (number + round) % 4 {
                0 => fs::write(&source, content(number, 1)).unwrap(),
                1 => {
                    // Replaced.
                    let new = walk.mounted.source("new");
                    fs::write(&new, content(number, 1)).unwrap();
                    fs::rename(&new, &source).unwrap();
                }
                2 => {
                    // Made anew, often under the same inode number.
                    fs::remove_file(&source).unwrap();
                    fs::write(&source, content(number, 1)).unwrap();
                }
                _ => {
                    walk.reads_right(number, 0);
                    continue;
                }
            }
            walk.reads_right(number, 1);
        }
    }
}

#[test]
fn a_file_that_was_removed_after_it_was_opened_ahead_is_gone() {
    let Some(walk) = Walk::new(&[]) else { return };
    for number in walk.until_ahead() {
        fs::remove_file(walk.source(number)).unwrap();
        let error = File::open(walk.point(number)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{number}");
    }
}

/// Any user.
const STRANGER: u32 = 54_321;

fn is_read_by_stranger(path: &Path) -> bool {
    let mut cat = Command::new("cat");
    let output = cat.arg(path).uid(STRANGER).gid(STRANGER).output();
    output.unwrap().status.success()
}

#[test]
fn a_file_that_was_closed_to_others_after_it_was_opened_ahead_is_refused_to_them() {
    let Some(walk) = Walk::new(&["--allow-other"]) else {
        return;
    };
    for folder in ["", "folder"] {
        let open = Permissions::from_mode(0o755);
        fs::set_permissions(walk.mounted.source(folder), open).unwrap();
    }
    let left = walk.until_ahead();
    for number in left.into_iter().take(20) {
        let closed = Permissions::from_mode(0o600);
        fs::set_permissions(walk.source(number), closed).unwrap();
        assert!(!is_read_by_stranger(&walk.point(number)), "{number}");
    }
}

#[test]
fn files_ahead_of_a_walk_that_stopped_are_closed() {
    let Some(walk) = Walk::new(&[]) else { return };
    walk.until_ahead();
    eventually("nothing is open ahead", || {
        walk.count("files_ahead_open") == 0
    });
    assert!(walk.count("files_ahead_wasted") > 0);
}

#[test]
fn a_walk_goes_on_when_descriptors_are_few() {
    let Some(walk) = Walk::new(&[]) else { return };
    let process = rustix::process::Pid::from_raw(walk.mounted.daemon.id().cast_signed());
    let limit = rustix::process::Rlimit {
        current: Some(64),
        maximum: Some(64),
    };
    let nofile = rustix::process::Resource::Nofile;
    rustix::process::prlimit(process, nofile, limit).unwrap();
    for _ in 0..3 {
        for number in walk.listed() {
            walk.reads_right(number, 0);
        }
    }
}

#[test]
fn a_name_is_missing_for_as_long_as_was_said() {
    for (flags, is_seen) in [(&[][..], true), (&["--negative-timeout", "9999s"], false)] {
        let Some(walk) = Walk::new(flags) else { return };
        let new = walk.mounted.point("folder/new");
        assert!(fs::metadata(&new).is_err());
        fs::write(walk.mounted.source("folder/new"), "new").unwrap();
        assert_eq!(fs::metadata(&new).is_ok(), is_seen, "{flags:?}");
    }
}

#[test]
fn attributes_are_believed_for_as_long_as_was_said_and_an_open_still_asks() {
    let Some(walk) = Walk::new(&["--attribute-timeout", "9999s"]) else {
        return;
    };
    let size = || fs::metadata(walk.point(1)).unwrap().len();
    let before = size();
    fs::write(walk.source(1), content(1, 7)).unwrap();
    assert_eq!(size(), before);
    walk.reads_right(1, 7);
}

#[test]
fn a_tree_that_does_not_change_is_read_without_the_daemon() {
    let Some(walk) = Walk::new(&["--unchanging"]) else {
        return;
    };
    for _ in 0..2 {
        for number in walk.listed() {
            walk.reads_right(number, 0);
        }
    }
    let file = File::open(walk.point(3)).unwrap();
    let mut piece = [0; 100];
    file.read_exact_at(&mut piece, 1000).unwrap();
    assert!(piece == content(3, 0)[1000..1100]);
    assert_eq!(
        file.metadata().unwrap().ino(),
        fs::metadata(walk.source(3)).unwrap().ino()
    );
    drop(file);
    // The daemon is held: requests to it wait for ever.
    let reads = walk.count("reads");
    walk.mounted.signal(rustix::process::Signal::STOP);
    let all: Vec<PathBuf> = (0..FILES).map(|number| walk.point(number)).collect();
    let read = super::silent::apart(move || {
        let read = all.iter().map(|path| fs::read(path).unwrap());
        read.collect::<Vec<_>>()
    });
    let read = read.recv_timeout(super::wait::PATIENCE);
    walk.mounted.signal(rustix::process::Signal::CONT);
    for (number, read) in (0..).zip(read.expect("files are read again while the daemon is held")) {
        assert!(read == content(number, 0), "file {number} differs");
    }
    assert_eq!(walk.count("reads"), reads);
}

#[test]
fn what_a_time_out_may_be_is_said() {
    let (code, said) =
        forerun(&["mount", "--attribute-timeout", "9000h", "a", "b"].map(AsRef::as_ref));
    assert_eq!(code, 2, "{said}");
    let (code, said) =
        forerun(&["mount", "--entry-timeout", "99999999s", "a", "b"].map(AsRef::as_ref));
    assert!(code == 2 && said.contains("must lie from 0s"), "{said}");
}
