//! Files of every kind that lies differently, with blocks that all differ.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const BLOCK: usize = 4096;

pub(crate) struct Files {
    root: PathBuf,
}

/// Bytes that tell the file and the place apart: no block equals another.
fn content(file: u64, at: u64, bytes: usize) -> Vec<u8> {
    let mut state = file << 40 | at;
    let word = || {
        // SplitMix64 (Steele, Lea and Flood 2014).
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)).to_le_bytes()
    };
    let words = std::iter::repeat_with(word).take(bytes.div_ceil(8));
    let mut all: Vec<u8> = words.flatten().collect();
    all.truncate(bytes);
    all
}

impl Files {
    /// Twice: in pieces means between the pieces of another.
    pub(crate) const NAMES: [&'static str; 7] = [
        "whole",
        "pieces",
        "between",
        "holes",
        "compressed",
        "inline",
        "unwritten",
    ];

    /// Appends to the file in pieces.
    pub(crate) const PIECES: usize = 60;

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Writes all of them.
    pub(crate) fn write(root: PathBuf) -> Self {
        let files = Self { root };
        // Over several stripes of each profile, and an end inside of a block.
        let whole = content(1, 0, (24 << 20) + 1234);
        let mut file = File::create(files.path("whole")).unwrap();
        file.write_all(&whole).unwrap();
        file.sync_all().unwrap();
        files.write_pieces();
        files.write_holes();
        files.write_compressed();
        fs::write(files.path("inline"), content(6, 0, 900)).unwrap();
        let file = File::create(files.path("unwritten")).unwrap();
        // SAFETY: plain numbers and an open descriptor.
        let failed = unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, 1 << 20) };
        assert_eq!(failed, 0);
        files
    }

    /// Two files grow by turns, each piece on the disk before the next is written.
    fn write_pieces(&self) {
        let mut two = ["pieces", "between"].map(|name| File::create(self.path(name)).unwrap());
        let mut at = 0;
        for piece in 0..Self::PIECES {
            let bytes = BLOCK * (1 + piece * 7 % 41);
            for (file, which) in two.iter_mut().zip(2..) {
                file.write_all(&content(which, at, bytes)).unwrap();
                file.sync_all().unwrap();
            }
            at += bytes as u64;
        }
    }

    fn write_holes(&self) {
        let mut file = File::create(self.path("holes")).unwrap();
        for (at, bytes) in [(12 << 10, 4096), (1 << 20, 300 << 10), (3 << 20, 70 << 10)] {
            file.seek(SeekFrom::Start(at)).unwrap();
            file.write_all(&content(4, at, bytes)).unwrap();
        }
        file.set_len(5 << 20).unwrap();
        file.sync_all().unwrap();
    }

    fn write_compressed(&self) {
        let path = self.path("compressed");
        File::create(&path).unwrap();
        let property = ["property", "set", path_text(&path), "compression", "zstd"];
        let status = Command::new("btrfs").args(property).status().unwrap();
        assert!(status.success());
        let mut file = File::options().write(true).open(&path).unwrap();
        file.write_all(&b"one line, a thousand times over\n".repeat(32 << 10))
            .unwrap();
        file.sync_all().unwrap();
    }
}

/// Reads the first MiB past the page cache; returns the number of the thread that did.
pub(crate) fn read_direct(path: &Path) -> u64 {
    const BYTES: usize = 1 << 20;
    let mut file = File::options();
    let file = file
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(path)
        .unwrap();
    let mut buffer = vec![0_u8; BYTES + BLOCK];
    let skip = buffer.as_ptr().align_offset(BLOCK);
    file.read_exact_at(&mut buffer[skip..skip + BYTES], 0)
        .unwrap();
    // SAFETY: it has no arguments and cannot fail.
    let thread = unsafe { libc::gettid() };
    thread as u64
}

fn path_text(path: &Path) -> &str {
    path.to_str().unwrap()
}
