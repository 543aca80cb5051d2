//! Listings beside open files and other mounts: a listing tells the kernel attributes that are right, or none.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{DirEntryExt, FileExt, MetadataExt};
use std::path::Path;

use super::{Mounted, eventually, folder, run};

/// The names of a folder with the numbers that the listing itself has.
fn numbers(folder: &Path) -> Vec<(String, u64)> {
    let names = fs::read_dir(folder).unwrap().map(|name| {
        let name = name.unwrap();
        (name.file_name().into_string().unwrap(), name.ino())
    });
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[test]
fn an_open_file_that_grows_is_read_on_after_its_folder_was_listed() {
    let Some(mounted) = Mounted::new(&["--passthrough", "never"]) else {
        return;
    };
    let (source, point) = (mounted.source("log"), mounted.point("log"));
    fs::write(&source, vec![b'a'; 3000]).unwrap();
    let held = File::open(&point).unwrap();
    let mut log = File::options().append(true).open(&source).unwrap();
    let mut buffer = [0; 1 << 16];
    let mut read = || held.read_at(&mut buffer, 0);
    assert_eq!(read().unwrap(), 3000);
    for round in 1..=5 {
        log.write_all(&[b'b'; 1000]).unwrap();
        let listed = numbers(&mounted.point(""));
        assert_eq!(listed, numbers(&mounted.source("")), "round {round}");
        let (shown, there) = (
            fs::metadata(&point).unwrap(),
            fs::metadata(&source).unwrap(),
        );
        assert_eq!(shown.mode(), there.mode(), "round {round}");
        assert_eq!(shown.ino(), there.ino(), "round {round}");
        eventually("the new end", || read().unwrap() == 3000 + round * 1000);
    }
}

#[test]
fn a_mount_below_the_source_has_its_own_attributes_right_after_a_listing() {
    let folder = folder();
    let below = folder.path().join("source/below");
    fs::create_dir(&below).unwrap();
    let Some(mounted) = Mounted::of(folder, &[]) else {
        return;
    };
    let words = ["-t", "tmpfs", "-o", "mode=751", "none"].map(OsStr::new);
    let made = run("mount", &[&words[..], &[below.as_ref()]].concat());
    assert!(made.status.success(), "{made:?}");
    let listed = fs::read_dir(mounted.point("")).unwrap();
    let listed: Vec<_> = listed.map(|name| name.unwrap().file_name()).collect();
    let shown = fs::metadata(mounted.point("below"));
    let there = fs::metadata(&below).unwrap();
    let taken = run("umount", &["-l".as_ref(), below.as_ref()]);
    assert!(taken.status.success(), "{taken:?}");
    assert_eq!(listed, ["below"]);
    let shown = shown.unwrap();
    assert_eq!(shown.mode(), there.mode());
    assert_eq!(shown.modified().unwrap(), there.modified().unwrap());
}
