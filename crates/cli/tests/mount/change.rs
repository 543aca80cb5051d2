//! Files that change in the source while they are read through the mount: every read is of one
//! version, and a second later it is of the new one.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

use super::{Mounted, bytes, eventually, folder, skipped};

fn mounted(content: &[u8]) -> Option<Mounted> {
    let folder = folder();
    fs::write(folder.path().join("source/a"), content).unwrap();
    Mounted::of(folder, &[])
}

fn read(file: &File, length: usize) -> Vec<u8> {
    let mut buffer = vec![0; length];
    let count = file.read_at(&mut buffer, 0).unwrap();
    buffer.truncate(count);
    buffer
}

#[test]
fn a_file_written_anew_is_seen_by_the_next_open_at_once() {
    let Some(mounted) = mounted(&bytes(300_000, 1)) else {
        return;
    };
    for seed in 2..12 {
        let content = bytes(300_000, seed);
        fs::write(mounted.source("a"), &content).unwrap();
        let file = File::open(mounted.point("a")).unwrap();
        assert!(read(&file, 300_000) == content, "version {seed}");
    }
}

#[test]
fn an_open_file_shows_a_change_within_seconds() {
    let Some(mounted) = mounted(&bytes(500_000, 1)) else {
        return;
    };
    let file = File::open(mounted.point("a")).unwrap();
    assert!(read(&file, 500_000) == bytes(500_000, 1));
    let new = bytes(500_000, 2);
    File::options()
        .write(true)
        .open(mounted.source("a"))
        .unwrap()
        .write_all_at(&new, 0)
        .unwrap();
    eventually("the new bytes", || read(&file, 500_000) == new);
}

#[test]
fn a_mapped_file_shows_a_change_within_seconds() {
    let Some(mounted) = mounted(&[b'1'; 8192]) else {
        return;
    };
    let script = "
import mmap, os, sys, time
with open(sys.argv[1], 'rb') as f: m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
assert m[5000:5001] == b'1'
print('mapped', flush=True)
end = time.time() + 600
while m[5000:5001] != b'2': assert time.time() < end; os.sched_yield()
";
    let child = Command::new("python3")
        .args(["-c", script])
        .arg(mounted.point("a"))
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        skipped("no python3");
        return;
    };
    let mut line = [0; 7];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
    let file = File::options()
        .write(true)
        .open(mounted.source("a"))
        .unwrap();
    file.write_all_at(&[b'2'; 8192], 0).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_file_that_shrinks_ends_where_it_ends() {
    let Some(mounted) = mounted(&bytes(5_000_000, 1)) else {
        return;
    };
    let file = File::open(mounted.point("a")).unwrap();
    assert_eq!(read(&file, 100).len(), 100);
    let source = File::options()
        .write(true)
        .open(mounted.source("a"))
        .unwrap();
    source.set_len(1000).unwrap();
    eventually("the new end", || {
        let mut buffer = [0; 10];
        file.read_at(&mut buffer, 2_000_000).unwrap() == 0
    });
    eventually("the new size", || {
        fs::metadata(mounted.point("a")).unwrap().len() == 1000
    });
    assert!(read(&file, 5000) == bytes(5_000_000, 1)[..1000]);
}

#[test]
fn a_file_that_grows_is_followed() {
    let Some(mounted) = mounted(b"") else {
        return;
    };
    let file = File::open(mounted.point("a")).unwrap();
    let source = File::options()
        .append(true)
        .open(mounted.source("a"))
        .unwrap();
    let mut written = Vec::new();
    for round in 0..4 {
        let more = bytes(10_001, round);
        std::io::Write::write_all(&mut &source, &more).unwrap();
        written.extend(more);
        eventually("the new end", || read(&file, 100_000) == written);
    }
}

#[test]
fn a_deleted_or_replaced_file_is_read_to_its_end_by_who_has_it_open() {
    let old = bytes(3_000_000, 1);
    let Some(mounted) = mounted(&old) else {
        return;
    };
    let file = File::open(mounted.point("a")).unwrap();
    assert!(read(&file, 1000) == old[..1000]);
    fs::write(mounted.source("b"), "another file").unwrap();
    fs::rename(mounted.source("b"), mounted.source("a")).unwrap();
    eventually("the new name", || {
        fs::read(mounted.point("a")).is_ok_and(|content| content == b"another file")
    });
    assert!(read(&file, 3_000_000) == old);
    fs::remove_file(mounted.source("a")).unwrap();
    eventually("the name goes", || {
        fs::metadata(mounted.point("a")).is_err()
    });
    let mut last = [0; 10];
    file.read_exact_at(&mut last, 2_999_990).unwrap();
    assert_eq!(last, old[2_999_990..]);
}

#[test]
fn a_file_in_a_folder_that_moved_is_found() {
    let folder = folder();
    let source = folder.path().join("source");
    fs::create_dir_all(source.join("x/y")).unwrap();
    fs::write(source.join("x/y/a"), "a").unwrap();
    let Some(mounted) = Mounted::of(folder, &[]) else {
        return;
    };
    assert_eq!(fs::read(mounted.point("x/y/a")).unwrap(), b"a");
    fs::rename(mounted.source("x/y"), mounted.source("z")).unwrap();
    eventually("the new path", || {
        fs::read(mounted.point("z/a")).is_ok_and(|a| a == b"a")
    });
    eventually("the old path goes", || {
        fs::metadata(mounted.point("x/y")).is_err()
    });
}
