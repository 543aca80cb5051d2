//! Memory: the whole daemon stays within `--memory`, however many readers wait at a time.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::thread;

use rustix::fs::OFlags;

use super::{Mounted, bytes, folder};

/// What comes on top of `--memory`: the program's own code, 6 MiB, which is the page cache's and
/// shared, and a little for it to grow.
const CODE: u64 = 8 << 20;

/// The most the daemon ever had in memory.
fn peak(mounted: &Mounted) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", mounted.daemon.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.unwrap().trim().strip_suffix(" kB").unwrap();
    kib.trim().parse::<u64>().unwrap() << 10
}

/// Reads a file from front to back, some in the pieces `cat` uses, some past the page cache in the
/// longest requests there are, and compares.
fn check(path: &Path, content: &[u8], direct: bool) {
    let flags = if direct {
        OFlags::DIRECT
    } else {
        OFlags::empty()
    };
    let file = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .unwrap();
    let piece = if direct { 1 << 20 } else { 128 << 10 };
    let mut buffer = vec![0; piece + 4096];
    let begin = buffer.as_ptr().align_offset(4096);
    let buffer = &mut buffer[begin..begin + piece];
    let mut at = 0;
    loop {
        let count = file.read_at(buffer, at as u64).unwrap();
        assert!(buffer[..count] == content[at..at + count], "at {at}");
        at += count;
        if count == 0 {
            return assert_eq!(at, content.len());
        }
    }
}

/// Has each of so many readers read a file of its own from a disk that cannot keep up.
fn crowd(memory: u64, readers: u64, file_bytes: usize) {
    let folder = folder();
    for reader in 0..readers {
        let path = folder.path().join(format!("source/{reader}"));
        fs::write(path, bytes(file_bytes, reader)).unwrap();
    }
    let said = memory.to_string();
    let slow = ["--emulate", "switching=1ms,rate=400MB/s", "--memory", &said];
    let Some(mounted) = Mounted::of(folder, &slow) else {
        return;
    };
    thread::scope(|scope| {
        for reader in 0..readers {
            let path = mounted.point(reader.to_string());
            scope.spawn(move || check(&path, &bytes(file_bytes, reader), reader % 8 == 0));
        }
    });
    let peak = peak(&mounted);
    assert!(peak <= memory + CODE, "{peak} bytes with --memory {memory}");
}

#[test]
fn two_hundred_and_fifty_six_readers_stay_within_32_mib() {
    crowd(32 << 20, 256, 400_000);
}

#[test]
fn readers_stay_within_the_least_memory_there_can_be() {
    crowd(9 << 20, 32, 1_500_000);
}

#[test]
fn a_few_readers_use_what_they_were_given_and_no_more() {
    crowd(64 << 20, 16, 6_000_000);
}
