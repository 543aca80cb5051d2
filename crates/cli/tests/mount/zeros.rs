//! Files without a zero byte that are cut, rewritten and appended to while they are read: the kernel
//! fills pages up with zeros behind an end, and shows none of them.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use super::{Mounted, eventually};

/// One read. `EINTR` asks the program to try again.
fn read_at(file: &File, length: usize, offset: u64) -> Vec<u8> {
    let mut buffer = vec![0xee; length];
    loop {
        match file.read_at(&mut buffer, offset) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => panic!("{error}"),
            Ok(count) => {
                buffer.truncate(count);
                return buffer;
            }
        }
    }
}

#[track_caller]
fn has_no_zeros(bytes: &[u8], of: &str) {
    let zeros = bytes.iter().filter(|byte| **byte == 0).count();
    assert_eq!(zeros, 0, "{of}: zeros among {} bytes", bytes.len());
}

#[test]
fn a_file_cut_while_it_is_read_gives_no_zeros() {
    // The reads are under way when the file is cut: the device is slow.
    let slow = ["--emulate", "switching=200ms,rate=80MB/s"];
    let Some(mounted) = Mounted::new(&[&slow[..], &["--passthrough", "never"]].concat()) else {
        return;
    };
    for (number, (cut, opens, more)) in [(1000, false, 0), (1000, true, 0), (0, true, 50_000)]
        .into_iter()
        .cycle()
        .take(9)
        .enumerate()
    {
        let name = format!("{number}");
        let source = mounted.source(&name);
        fs::write(&source, vec![b'A'; 400_000]).unwrap();
        let file = File::open(mounted.point(&name)).unwrap();
        let (begun, begin) = channel();
        let reader = thread::spawn(move || {
            begun.send(()).unwrap();
            read_at(&file, 300_000, 0)
        });
        begin.recv().unwrap();
        let point = mounted.point(&name);
        // Its attributes are asked for by another program meanwhile.
        let _ = fs::metadata(&point);
        File::options()
            .write(true)
            .open(&source)
            .unwrap()
            .set_len(cut)
            .unwrap();
        if more > 0 {
            let mut source = File::options().append(true).open(&source).unwrap();
            source.write_all(&vec![b'B'; more]).unwrap();
        }
        if opens {
            drop(File::open(&point));
        }
        has_no_zeros(&reader.join().unwrap(), &format!("{number}, cut to {cut}"));
        let after = fs::read(&point).unwrap();
        has_no_zeros(&after, "afterwards");
        assert_eq!(after.len() as u64, cut + more as u64);
    }
}

/// Reads of two threads beside a file that is rewritten so often, at lengths that change.
fn rewritten(flags: &[&str]) {
    const LENGTHS: [usize; 5] = [200_000, 3000, 70_000, 9000, 400_000];
    let Some(mounted) = Mounted::new(flags) else {
        return;
    };
    let source = mounted.source("a");
    fs::write(&source, vec![b'A'; 9000]).unwrap();
    let over = AtomicBool::new(false);
    let read = |point: PathBuf, held: usize| {
        let mut reads = 0;
        while !over.load(Ordering::Relaxed) {
            let file = File::open(&point).unwrap();
            for round in 0..held {
                let bytes = read_at(&file, 500_000, 0);
                has_no_zeros(&bytes, &format!("read {reads}, {round} of its open"));
                reads += 1;
            }
        }
        reads
    };
    thread::scope(|scope| {
        let read = &read;
        let readers = [1, 4, 100].map(|held| {
            let point = mounted.point("a");
            scope.spawn(move || read(point, held))
        });
        for round in 0..400 {
            fs::write(&source, vec![b'A'; LENGTHS[round % LENGTHS.len()]]).unwrap();
            thread::yield_now();
        }
        over.store(true, Ordering::Relaxed);
        for reader in readers {
            assert!(reader.join().unwrap() > 0);
        }
    });
}

#[test]
fn a_file_rewritten_in_place_gives_no_zeros() {
    rewritten(&["--passthrough", "never"]);
}

#[test]
fn a_file_rewritten_in_place_gives_no_zeros_in_each_mode_and_preset() {
    rewritten(&[]);
    rewritten(&["--passthrough", "always"]);
    rewritten(&["--passthrough", "never", "--preset", "none"]);
}

#[test]
fn a_log_that_only_grows_is_followed_without_zeros() {
    let Some(mounted) = Mounted::new(&["--passthrough", "never"]) else {
        return;
    };
    let source = mounted.source("log");
    fs::write(&source, b"begin\n").unwrap();
    let mut log = File::options().append(true).open(&source).unwrap();
    let held = File::open(mounted.point("log")).unwrap();
    let mut written = 6;
    for round in 0..200_usize {
        let line = vec![b'a'; 1 + round * 37 % 900];
        log.write_all(&line).unwrap();
        written += line.len();
        // Each of them may tell the kernel the new size.
        let size = fs::metadata(mounted.point("log")).unwrap().len();
        assert!(size <= written as u64);
        has_no_zeros(&read_at(&held, 1 << 20, 0), "an open file");
        let whole = fs::read(mounted.point("log")).unwrap();
        has_no_zeros(&whole, "a new open");
        assert_eq!(whole.len(), written);
    }
    eventually("the end", || read_at(&held, 1 << 20, 0).len() == written);
}
