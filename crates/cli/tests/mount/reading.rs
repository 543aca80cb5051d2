//! Bytes: read in any way, they are those of the source.
//!
//! In the manner of `fsx`: random reads of every kind from many threads for FORERUN_FSX_SECONDS
//! (ten unless given), each compared. Memory for the engine is small, so that blocks are given up
//! and fetched again all the time.

use std::fs::{self, File};
use std::io::{IoSliceMut, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use rustix::fs::{OFlags, sendfile};
use rustix::process::Signal;

use super::{Mounted, bytes, eventually, folder, forerun, skipped, wait};

/// Sizes around blocks and requests, and two that do not fit the engine's memory together.
const SIZES: &[usize] = &[
    0,
    1,
    4095,
    4096,
    4097,
    131_072,
    1_048_589,
    24 << 20,
    (24 << 20) + 1234,
];

/// No read is longer.
const READ_MAX: usize = 3 << 20;

#[expect(
    clippy::disallowed_methods,
    reason = "how long to try is for whoever runs the test"
)]
fn seconds() -> u64 {
    std::env::var("FORERUN_FSX_SECONDS")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(10)
}

/// Where to read and how much: anywhere, mostly a little, sometimes past the end.
fn range(random: &mut Rng, size: usize) -> (u64, usize) {
    let length = READ_MAX >> random.u32(0..20);
    let at = random.usize(0..size + 5000);
    (at as u64, random.usize(0..=length))
}

fn expected(whole: &[u8], at: u64, length: usize) -> &[u8] {
    let from = (at as usize).min(whole.len());
    &whole[from..(from + length).min(whole.len())]
}

fn by_pread(file: &File, at: u64, length: usize) -> Vec<u8> {
    let mut buffer = vec![0; length];
    let mut done = 0;
    while done < length {
        match file.read_at(&mut buffer[done..], at + done as u64).unwrap() {
            0 => break,
            count => done += count,
        }
    }
    buffer.truncate(done);
    buffer
}

fn by_readv(file: &mut File, at: u64, length: usize) -> Vec<u8> {
    file.seek(SeekFrom::Start(at)).unwrap();
    let mut pieces = [
        vec![0; length / 3],
        vec![0; 1],
        vec![0; length - length / 3],
    ];
    let mut slices: Vec<_> = pieces.iter_mut().map(|p| IoSliceMut::new(p)).collect();
    let count = file.read_vectored(&mut slices).unwrap();
    let mut joined = pieces.concat();
    joined.truncate(count);
    joined
}

/// `sendfile` into a file without a name.
fn by_sendfile(file: &File, at: u64, length: usize) -> Vec<u8> {
    let to = tempfile::tempfile().unwrap();
    let mut offset = at;
    while offset < at + length as u64 {
        let left = length - (offset - at) as usize;
        if sendfile(&to, file, Some(&mut offset), left).unwrap() == 0 {
            break;
        }
    }
    content_of(to)
}

/// As copying programs do: `copy_file_range`, which the kernel refuses between different file
/// systems, and then the fallback.
fn by_copying(mut file: &File, at: u64, length: usize) -> Vec<u8> {
    let mut to = tempfile::tempfile().unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    std::io::copy(&mut file.take(length as u64), &mut to).unwrap();
    content_of(to)
}

fn content_of(mut file: File) -> Vec<u8> {
    let mut content = Vec::new();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_end(&mut content).unwrap();
    content
}

fn by_direct(file: &File, at: u64, length: usize) -> (u64, Vec<u8>) {
    let (at, length) = (at / 4096 * 4096, length.div_ceil(4096) * 4096);
    let mut buffer = vec![0_u8; length + 4096];
    let begin = buffer.as_ptr().align_offset(4096);
    let count = file
        .read_at(&mut buffer[begin..begin + length], at)
        .unwrap();
    (at, buffer[begin..begin + count].to_vec())
}

fn check_once(random: &mut Rng, path: &Path, whole: &[u8]) {
    let (at, length) = range(random, whole.len());
    let mut file = File::open(path).unwrap();
    let direct = || {
        File::options()
            .read(true)
            .custom_flags(OFlags::DIRECT.bits().cast_signed())
            .open(path)
            .unwrap()
    };
    let (how, at, got) = match random.u8(0..6) {
        0 | 1 => ("pread", at, by_pread(&file, at, length)),
        2 => ("readv", at, by_readv(&mut file, at, length)),
        3 => ("sendfile", at, by_sendfile(&file, at, length)),
        4 => ("copy", at, by_copying(&file, at, length)),
        _ => {
            let (at, got) = by_direct(&direct(), at, length);
            ("O_DIRECT", at, got)
        }
    };
    let wanted = expected(whole, at, got.len().max(1));
    assert!(
        got == wanted[..got.len().min(wanted.len())] && got.len() <= wanted.len(),
        "{how} of {} at {at}, {length} bytes: differs",
        path.display()
    );
    let complete = at as usize + length >= whole.len() || got.len() >= length.min(1);
    assert!(
        complete,
        "{how} of {} at {at}: {} of {length} bytes",
        path.display(),
        got.len()
    );
}

/// Reads mapped files at random until it is told to stop, in a process of its own: mapping is not
/// safe code here.
const MAPPING: &str = "
import mmap, os, random, sys, time
a, b, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
end = time.time() + seconds
n = 0
while n == 0 or time.time() < end:
    name = random.choice(os.listdir(a))
    size = os.path.getsize(os.path.join(a, name))
    if size == 0: continue
    maps = []
    for folder in (a, b):
        with open(os.path.join(folder, name), 'rb') as f:
            maps.append(mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ))
    for _ in range(20):
        at = random.randrange(size)
        length = random.choice((1, 100, 4096, 70000, 2000000))
        if maps[0][at:at + length] != maps[1][at:at + length]:
            sys.exit('mmap of %s at %d differs' % (name, at))
        n += 1
print(n)
";

#[test]
fn no_byte_differs_whichever_way_it_is_read() {
    reads_are_right(&["--passthrough", "never"]);
}

/// Reads files of all sizes in all ways, through a mount with these flags.
#[allow(clippy::print_stdout, reason = "part of tests")]
pub(crate) fn reads_are_right(flags: &[&str]) {
    let folder = folder();
    let contents: Vec<_> = (0..)
        .zip(SIZES)
        .map(|(seed, size)| bytes(*size, seed))
        .collect();
    for (number, content) in contents.iter().enumerate() {
        fs::write(folder.path().join(format!("source/{number}")), content).unwrap();
    }
    let Some(mounted) = Mounted::of(folder, flags) else {
        return;
    };
    let seed = Rng::new().get_seed();
    let seconds = seconds();
    println!("seed {seed}, {seconds} s");
    let mapping = Command::new("python3")
        .args(["-c", MAPPING])
        .args([mounted.source(""), mounted.point("")])
        .arg(seconds.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mounted_ref, contents_ref) = (&mounted, &contents);
    let reads: u64 = thread::scope(|scope| {
        let work = |thread: u64| {
            let mut random = Rng::with_seed(seed ^ thread);
            let mut reads = 0;
            // One at least, however late a thread comes to run.
            while reads == 0 || Instant::now() < end {
                let number = random.usize(0..SIZES.len());
                let path = mounted_ref.point(number.to_string());
                check_once(&mut random, &path, &contents_ref[number]);
                reads += 1;
                if random.u32(0..200) == 0 {
                    // Pages of the kernel are read again from us.
                    let file = File::open(&path).unwrap();
                    let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
                }
            }
            reads
        };
        let threads: Vec<_> = (0..8)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    println!("{reads} reads");
    match mapping {
        Ok(child) => {
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{said}");
        }
        Err(error) => skipped(format_args!("mmap: no python3 ({error})")),
    }
}

#[test]
fn holes_are_zeros_and_far_ends_are_found() {
    let folder = folder();
    let file = File::create(folder.path().join("source/sparse")).unwrap();
    file.set_len((1 << 40) + 5).unwrap();
    file.write_at(b"island", 1 << 39).unwrap();
    file.write_at(b"the end", (1 << 40) - 2).unwrap();
    let Some(mounted) = Mounted::of(folder, &[]) else {
        return;
    };
    let file = File::open(mounted.point("sparse")).unwrap();
    let read = |at, length| by_pread(&file, at, length);
    assert_eq!(read((1 << 39) - 3, 12), b"\0\0\0island\0\0\0");
    assert_eq!(read((1 << 40) - 2, 100), b"the end");
    assert!(read(12_345_678, 1 << 20).iter().all(|byte| *byte == 0));
    let mut small = Vec::new();
    File::open(mounted.point("sparse"))
        .unwrap()
        .take(1 << 24)
        .read_to_end(&mut small)
        .unwrap();
    assert!(small.len() == 1 << 24 && small.iter().all(|byte| *byte == 0));
}

#[test]
fn five_thousand_files_are_open_at_once() {
    let folder = folder();
    for i in 0..5000 {
        fs::write(folder.path().join(format!("source/{i}")), i.to_string()).unwrap();
    }
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    if limit.maximum.is_some_and(|most| most < 12_000) {
        skipped(format_args!(
            "descriptors are limited to {:?}",
            limit.maximum
        ));
        return;
    }
    let soft = rustix::process::Rlimit {
        current: limit.maximum,
        ..limit
    };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, soft).unwrap();
    let Some(mounted) = Mounted::of(folder, &[]) else {
        return;
    };
    let files: Vec<_> = (0..5000)
        .map(|i| File::open(mounted.point(i.to_string())).unwrap())
        .collect();
    for (i, file) in files.iter().enumerate().rev() {
        assert_eq!(by_pread(file, 0, 100), i.to_string().as_bytes());
    }
}

/// Cuts a mount's daemon off when dropped, so that programs waiting for it go on with an error.
struct CutOff<'a>(&'a Mounted);

impl Drop for CutOff<'_> {
    fn drop(&mut self) {
        self.0.signal(Signal::KILL);
    }
}

/// Every first read takes the disk more than a minute, one after the other: an hour for all, of
/// which the test needs the first moments, and half of the readers still wait after half of it.
#[test]
fn reads_that_wait_for_the_disk_do_not_hold_up_other_files() {
    let folder = folder();
    for i in 0..64 {
        fs::write(folder.path().join(format!("source/{i}")), bytes(100_000, i)).unwrap();
    }
    fs::write(folder.path().join("source/empty"), "").unwrap();
    let socket = folder.path().join("control");
    let stuck = ["--emulate", "switching=60s,rate=1kB/s", "--control"];
    let flags = [stuck.as_slice(), &[socket.to_str().unwrap()]].concat();
    let Some(mounted) = Mounted::of(folder, &flags) else {
        return;
    };
    thread::scope(|scope| {
        let cut_off = CutOff(&mounted);
        for i in 0..64 {
            let path = mounted.point(i.to_string());
            scope.spawn(move || {
                // Ends with the daemon, most likely in an error; a late program cannot open it any
                // more.
                let _ = File::open(path).and_then(|mut file| file.read_to_end(&mut Vec::new()));
            });
        }
        eventually("half of them wait", || {
            let (_, said) = forerun(&["ctl".as_ref(), socket.as_ref(), "stats".as_ref()]);
            let report: serde_json::Value = serde_json::from_str(&said).unwrap();
            report["queues"][0]["queued"].as_u64() >= Some(32)
        });
        let (end, ended) = channel();
        let (empty, point) = (mounted.point("empty"), mounted.point(""));
        // A thread of its own: if it hangs, the test ends nevertheless.
        thread::spawn(move || {
            assert_eq!(fs::read(empty).unwrap(), b"");
            end.send(fs::read_dir(point).unwrap().count()).unwrap();
        });
        assert_eq!(ended.recv_timeout(wait::PATIENCE), Ok(65));
        drop(cut_off);
    });
}

#[test]
fn holes_are_found_where_the_source_has_them() {
    let folder = folder();
    let file = File::create(folder.path().join("source/sparse")).unwrap();
    file.set_len(10 << 20).unwrap();
    file.write_at(&[1; 4096], 4 << 20).unwrap();
    file.sync_all().unwrap();
    let Some(mounted) = Mounted::of(folder, &[]) else {
        return;
    };
    let seek = |path: std::path::PathBuf, from| {
        rustix::fs::seek(File::open(path).unwrap(), from).map_err(|e| e.raw_os_error())
    };
    for at in [0, 1 << 20, 4 << 20, 5 << 20, 11 << 20] {
        for from in [
            rustix::fs::SeekFrom::Data(at),
            rustix::fs::SeekFrom::Hole(at),
        ] {
            let same = seek(mounted.source("sparse"), from);
            assert_eq!(seek(mounted.point("sparse"), from), same, "{from:?}");
        }
    }
}
