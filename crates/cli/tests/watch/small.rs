//! Folders of small files on the same file system: filled ahead of a reader that walks them, and left alone otherwise.

use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;
use std::process::Command;

use rustix::fs::{Advice, fadvise};
use snapbox::cmd::cargo_bin;

use crate::{Disk, number, tool};

const PASSES: u32 = 10;

/// Files of a folder, of 3 to 60 kB: 10 MB.
const FILES: usize = 320;

/// The paths in the order of their names; the folder is made for the first time only.
fn files(disk: &Disk) -> Vec<PathBuf> {
    let folder = disk.point().join("folder");
    let path = |at: usize| folder.join(format!("file {at:03}"));
    if fs::create_dir(&folder).is_ok() {
        for at in 0..FILES {
            fs::write(path(at), content(at)).unwrap();
        }
        tool(&["sync", "-f", folder.to_str().unwrap()]).unwrap();
    }
    (0..FILES).map(path).collect()
}

fn content(at: usize) -> Vec<u8> {
    let bytes = 3_000 + at * 7_919 % 57_000;
    (0..bytes).map(|byte| (byte / 256 + at) as u8).collect()
}

/// Reads these files once, none of which is in memory, and compares each. They stay open until the last one is read: a
/// reader that never waits for its disk may have closed a file before the watch looks for its descriptor.
fn pass(paths: &[PathBuf], order: impl Iterator<Item = usize>) {
    for path in paths {
        fadvise(File::open(path).unwrap(), 0, None, Advice::DontNeed).unwrap();
    }
    let mut open = Vec::new();
    for at in order {
        let mut read = Vec::new();
        let mut file = File::open(&paths[at]).unwrap();
        file.read_to_end(&mut read).unwrap();
        open.push(file);
        assert!(read == content(at), "{}", paths[at].display());
    }
}

/// The account of a watch beside so many passes that a quarter of the files is filled: one that waits for a processor fills
/// late, and has more of them.
fn filled(disk: &Disk, flags: &[&str], pass: impl Fn()) -> String {
    for times in [1, 4, 16, 64] {
        let watching = disk.watch(flags);
        for _ in 0..times * PASSES {
            pass();
            // It has its turn.
            disk.stats();
        }
        let text = watching.end();
        if text.contains("small files: ") && number(&text, "small files: ") > FILES as u64 / 4 {
            return text;
        }
    }
    panic!("files are filled ahead");
}

/// Something mounted over a place, for as long as this is there.
pub(super) struct Over(PathBuf);

impl Over {
    pub(super) fn new(words: &[&str], place: PathBuf) -> Option<Self> {
        let mount = [&["mount"], words, &[place.to_str()?]].concat();
        tool(&mount).map(|_| Self(place))
    }
}

impl Drop for Over {
    fn drop(&mut self) {
        tool(&["umount", self.0.to_str().unwrap()]);
    }
}

/// Bytes that the loop device has read.
fn device_bytes(disk: &Disk) -> u64 {
    let stat = fs::read_to_string(disk.sys("stat")).unwrap();
    let sectors: u64 = stat
        .split_ascii_whitespace()
        .nth(2)
        .unwrap()
        .parse()
        .unwrap();
    sectors * 512
}

#[test]
fn a_folder_that_is_walked_is_filled_ahead_and_the_journal_says_so() {
    let Some(disk) = Disk::new() else { return };
    let paths = files(&disk);
    let journal = disk.folder.path().join("journal");
    let text = filled(&disk, &["--journal", journal.to_str().unwrap()], || {
        pass(&paths, 0..FILES);
    });
    assert_eq!(number(&text, "passed over "), 0, "{text}");
    let decided = fs::read_to_string(&journal).unwrap();
    assert!(decided.contains("ahead"), "no file ahead in the journal");
    let replayed = Command::new(cargo_bin!("forerun"))
        .arg("replay")
        .arg(&journal)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&replayed.stderr);
    assert!(replayed.status.success(), "{said}");
}

#[test]
fn random_order_costs_next_to_no_bytes() {
    let Some(disk) = Disk::new() else { return };
    let paths = files(&disk);
    // 97 and 320 have no common factor: each file once, no two of them side by side.
    let order = || (0..FILES).map(|at| at * 97 % FILES);
    let before = device_bytes(&disk);
    pass(&paths, order());
    let alone = device_bytes(&disk) - before;
    let watching = disk.watch(&[]);
    let before = device_bytes(&disk);
    (0..PASSES).for_each(|_| {
        pass(&paths, order());
        // A watch that waits for a processor has its turn.
        disk.stats();
    });
    let beside = device_bytes(&disk) - before;
    let text = watching.end();
    let most = alone * u64::from(PASSES) * 102 / 100;
    assert!(beside <= most, "{beside} of {alone} in each pass: {text}");
}

#[test]
fn a_folder_that_crosses_mounts_is_filled_but_for_what_lies_elsewhere() {
    let Some(disk) = Disk::new() else { return };
    let paths = files(&disk);
    let (inner, outer) = (disk.point().join("folder/inner"), disk.folder.path());
    fs::create_dir(&inner).unwrap();
    let _inner = Over::new(&["-t", "tmpfs", "none"], inner.clone()).unwrap();
    // The same content: a pass compares it.
    let other = outer.join("other");
    fs::write(&other, content(7)).unwrap();
    let _file = Over::new(&["--bind", other.to_str().unwrap()], paths[7].clone()).unwrap();
    fs::write(inner.join("small"), "small").unwrap();
    let text = filled(&disk, &[], || {
        pass(&paths, 0..FILES);
        assert_eq!(fs::read(inner.join("small")).unwrap(), b"small");
    });
    assert_eq!(number(&text, "passed over "), 0, "{text}");
    let folders = text.split_once(", in ").unwrap().1;
    assert!(folders.starts_with("1 listed folders"), "{text}");
}

#[test]
fn with_little_memory_no_file_is_filled_and_read_again() {
    let Some(disk) = Disk::new() else { return };
    let paths = files(&disk);
    let before = device_bytes(&disk);
    pass(&paths, 0..FILES);
    let alone = device_bytes(&disk) - before;
    let watching = disk.watch(&["--memory", "4MiB"]);
    let before = device_bytes(&disk);
    (0..PASSES).for_each(|_| pass(&paths, 0..FILES));
    let beside = device_bytes(&disk) - before;
    let text = watching.end();
    let most = alone * u64::from(PASSES) * 105 / 100;
    assert!(beside <= most, "{beside} of {alone} in each pass: {text}");
}
