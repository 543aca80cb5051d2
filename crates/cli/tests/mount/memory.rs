//! Memory: the whole daemon stays within `--memory`, however many readers wait at a time.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::OFlags;

use super::{Mounted, bytes, eventually, folder, forerun, skipped};

/// Memory on top of `--memory`: the program's own code, 6 MiB, which is the page cache's and
/// shared, and a little for it to grow.
const CODE: u64 = 8 << 20;

/// The most the daemon ever had in memory.
fn peak(mounted: &Mounted) -> u64 {
    memory(mounted, "VmHWM:")
}

/// The daemon's resident memory.
fn resident(mounted: &Mounted) -> u64 {
    memory(mounted, "VmRSS:")
}

fn memory(mounted: &Mounted, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", mounted.daemon.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
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

/// Has each of so many readers read a file of its own from a disk that cannot keep up; the most
/// memory the daemon had, which is never more than it may, or none if this machine cannot mount.
fn crowd(memory: u64, readers: u64, file_bytes: usize, others: &[&str]) -> Option<u64> {
    let folder = folder();
    for reader in 0..readers {
        let path = folder.path().join(format!("source/{reader}"));
        fs::write(path, bytes(file_bytes, reader)).unwrap();
    }
    let said = memory.to_string();
    let slow = ["--emulate", "switching=1ms,rate=400MB/s", "--memory", &said];
    let mounted = Mounted::of(folder, &[&slow, others].concat())?;
    thread::scope(|scope| {
        for reader in 0..readers {
            let path = mounted.point(reader.to_string());
            scope.spawn(move || check(&path, &bytes(file_bytes, reader), reader % 8 == 0));
        }
    });
    let peak = peak(&mounted);
    assert!(peak <= memory + CODE, "{peak} bytes with --memory {memory}");
    Some(peak)
}

#[test]
fn two_hundred_and_fifty_six_readers_stay_within_32_mib() {
    crowd(32 << 20, 256, 400_000, &[]);
}

#[test]
fn readers_stay_within_the_least_memory_there_can_be() {
    crowd(9 << 20, 32, 1_500_000, &[]);
}

#[test]
fn a_few_readers_use_what_they_were_given_and_no_more() {
    // 96 MB in all: no frame stays untouched in any order of reads, if read blocks may stay as long
    // as there is memory. The rest is for buffers and answers, which these readers need little of.
    let memory = 64 << 20;
    let keep = ["--reclaim", "exclusive"];
    let peak = crowd(memory, 16, 6_000_000, &keep);
    assert!(peak.is_none_or(|peak| peak > memory / 4 * 3), "{peak:?}");
}

/// Reads here and there until it is told to stop, past the page cache, so that the daemon reads,
/// and compares; how many reads there were.
fn read_anywhere(path: &Path, content: &[u8], seed: u64, ended: &AtomicBool) -> u64 {
    let flags = OFlags::DIRECT.bits().cast_signed();
    let options = File::options().read(true).custom_flags(flags).clone();
    let file = options.open(path).unwrap();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut buffer = vec![0; (1 << 19) + 4096];
    let begin = buffer.as_ptr().align_offset(4096);
    let mut reads = 0;
    while !ended.load(Ordering::Relaxed) {
        let length = random.usize(1..=128) << 12;
        let at = random.usize(0..(content.len() - length) >> 12) << 12;
        let buffer = &mut buffer[begin..begin + length];
        file.read_exact_at(buffer, at as u64).unwrap();
        assert!(
            buffer == &content[at..at + length],
            "{length} bytes at {at}"
        );
        reads += 1;
    }
    reads
}

/// Ends the readers when dropped, also by a failure.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_mount_told_to_use_less_gives_its_memory_back_while_reads_go_on() {
    let (before, after) = (128 << 20, 32 << 20);
    let folder = folder();
    let content = bytes(160 << 20, 1);
    fs::write(folder.path().join("source/a"), &content).unwrap();
    let socket = folder.path().join("control");
    let said = before.to_string();
    let control = socket.to_str().unwrap();
    // Read blocks stay as long as there is memory.
    let flags = [
        "--memory",
        &said,
        "--control",
        control,
        "--reclaim",
        "exclusive",
    ];
    let Some(mounted) = Mounted::of(folder, &flags) else {
        return;
    };
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let path = mounted.point("a");
    let set = |bytes: u64| {
        let size = bytes.to_string();
        let words = ["ctl", socket.to_str().unwrap(), "set", "--memory", &size];
        let (code, said) = forerun(&words.map(AsRef::as_ref));
        assert_eq!(code, 0, "{said}");
    };
    check(&path, &content, true);
    let filled = resident(&mounted);
    assert!(
        filled > before / 4 * 3,
        "{filled} bytes: there is nothing to give back"
    );
    let ended = AtomicBool::new(false);
    let mut seen = Vec::new();
    // Pages that are given up go by and by; once they are gone no others come.
    let is_given_back = || {
        eventually("memory is given back", || {
            resident(&mounted) <= after + CODE
        });
    };
    thread::scope(|scope| {
        let read = |number| {
            let (path, content, ended) = (&path, &content, &ended);
            scope.spawn(move || read_anywhere(path, content, seed ^ number, ended))
        };
        let readers: Vec<_> = (0..4).map(read).collect();
        let end = End(&ended);
        set(after);
        is_given_back();
        // Reads of the whole file beside the random ones: every frame has a new block many times.
        for _ in 0..2 {
            check(&path, &content, true);
            seen.push(resident(&mounted));
        }
        set(before);
        check(&path, &content, true);
        set(after);
        is_given_back();
        check(&path, &content, true);
        drop(end);
        let reads: u64 = readers
            .into_iter()
            .map(|reader| reader.join().unwrap())
            .sum();
        assert!(reads > 0);
    });
    seen.push(resident(&mounted));
    println!("{filled} bytes, then {seen:?}");
    assert!(seen.iter().all(|now| *now <= after + CODE), "{seen:?}");
}

/// Linux 6.18 drops folders that no program has in use when it is asked to.
#[test]
fn folders_beyond_the_limit_are_forgotten_but_the_one_a_program_stands_in() {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release.split(['.', '-']).map_while(|n| n.parse().ok());
    let mut number = || numbers.next().unwrap_or_default();
    let version: (u32, u32) = (number(), number());
    if version < (6, 18) {
        return skipped(format!("Linux {} keeps folders", release.trim()));
    }
    let folder = folder();
    // A thousand more than the kernel may remember.
    let names = || (0..17_400).map(|number| format!("many/{number}"));
    fs::create_dir(folder.path().join("source/many")).unwrap();
    names().for_each(|name| fs::create_dir(folder.path().join("source").join(name)).unwrap());
    let control = folder.path().join("control");
    let socket = ["--control".as_ref(), control.as_os_str()].map(|word| word.to_str().unwrap());
    let Some(mounted) = Mounted::of(folder, &socket) else {
        return;
    };
    let first = mounted.point("many/0");
    let mut stands = Command::new("cat");
    let stands = stands.current_dir(&first).stdin(Stdio::piped());
    let mut stands = stands.spawn().unwrap();
    for name in names() {
        assert!(fs::metadata(mounted.point(name)).unwrap().is_dir());
    }
    eventually("folders are forgotten", || {
        let (code, said) = forerun(&["ctl".as_ref(), control.as_ref(), "stats".as_ref()]);
        assert_eq!(code, 0, "{said}");
        let report: serde_json::Value = serde_json::from_str(&said).unwrap();
        report["known_files"].as_u64().unwrap() < 16_400
    });
    let stood = fs::read_link(format!("/proc/{}/cwd", stands.id())).unwrap();
    assert_eq!(stood, first);
    drop(stands.stdin.take());
    stands.wait().unwrap();
    for name in names().step_by(1000) {
        assert!(fs::metadata(mounted.point(name)).unwrap().is_dir());
    }
}
