//! Files that change while they are read: the bytes of one read are of one version.
//!
//! The writer replaces the whole content with a single `pwrite(2)`, every page stamped with the
//! version; whatever a read returns must carry one stamp, and stamps must not go back. A direct
//! read sees such a write whole or not at all; where the file system has only buffered reads the
//! kernel itself tears them, so these tests are skipped there.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use forerun_baselines::PRESETS;
use forerun_core::{Bytes, preset};
use forerun_io::source::OpenFile;
use forerun_io::{BackendChoice, Config, Driver, Looks, Reader, backend, generated};

use crate::skipped::skipped;

const PAGE: usize = 4096;
const PAGES: usize = 512;
const CHANGES: u64 = 20;
/// Reads that go by between two changes.
const READS: u64 = 6;
const READERS: u64 = 3;
/// A wait that takes longer has failed.
const BOUND: Duration = Duration::from_secs(600);
/// Between two looks at a count.
const PAUSE: Duration = Duration::from_millis(1);

fn content(version: u64) -> Vec<u8> {
    let mut content = vec![0; PAGES * PAGE];
    for (page, bytes) in content.chunks_mut(PAGE).enumerate() {
        bytes[..8].copy_from_slice(&version.to_le_bytes());
        generated::fill(version, page as u64, 0, &mut bytes[8..]);
    }
    content
}

/// The version of bytes read from a page on, after a check that it is one version.
fn version_of(read: &[u8], first: usize) -> u64 {
    let version = u64::from_le_bytes(read[..8].try_into().unwrap());
    for (i, bytes) in read.chunks(PAGE).enumerate() {
        let stamp = u64::from_le_bytes(bytes[..8].try_into().unwrap());
        assert_eq!(
            stamp,
            version,
            "page {} of a read from page {first}",
            first + i
        );
        assert_eq!(
            generated::check(version, (first + i) as u64, 0, &bytes[8..]),
            Ok(())
        );
    }
    version
}

fn driver(backend: &str, preset: &preset::Preset) -> Driver {
    let mut config = Config::new(preset.settings(Bytes(6 << 20)).unwrap());
    config.backend = BackendChoice::named(backend).unwrap();
    config.looks = Looks::EachRead;
    Driver::new(config).unwrap()
}

/// Whether the file system under the temporary files reads directly.
fn direct(path: &Path) -> bool {
    let direct = OpenFile::open(path).unwrap().is_direct();
    if !direct {
        skipped("temporary files cannot be read directly here");
    }
    direct
}

/// Runs readers until the writer has made all its changes; the writer waits for reads in between.
fn race(
    driver: &Driver,
    path: &Path,
    mut change: impl FnMut(u64),
    read: impl Fn(&Reader, u64) + Sync,
) {
    let (reads, done) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for reader in 0..READERS {
            let (reads, done, read) = (&reads, &done, &read);
            scope.spawn(move || {
                let _ends = Ends(done);
                let opened = driver.open(path).unwrap();
                let mut turn = reader;
                while !done.load(Ordering::Relaxed) {
                    read(&opened, turn);
                    turn += READERS;
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for version in 1..=CHANGES {
            change(version);
            let (until, begun) = (reads.load(Ordering::Relaxed) + READS, Instant::now());
            while reads.load(Ordering::Relaxed) < until && !done.load(Ordering::Relaxed) {
                let waits = begun.elapsed() < BOUND;
                done.fetch_or(!waits, Ordering::Relaxed);
                assert!(waits, "{READS} reads take more than ten minutes");
                std::thread::park_timeout(PAUSE);
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// Sets a flag when a reader ends, so that one that panics lets the writer end, too.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_read_never_mixes_two_versions_of_a_rewritten_file() {
    let named = tempfile::NamedTempFile::new().unwrap();
    let writer = File::options().write(true).open(named.path()).unwrap();
    writer.write_all_at(&content(0), 0).unwrap();
    if !direct(named.path()) {
        return;
    }
    for entry in backend::LIST {
        for preset in PRESETS {
            let driver = driver(entry.name, preset);
            let newest = AtomicU64::new(0);
            let change = |version| {
                assert_eq!(writer.write_at(&content(version), 0).unwrap(), PAGES * PAGE);
            };
            writer.write_all_at(&content(0), 0).unwrap();
            race(&driver, named.path(), change, |reader, turn| {
                let first = turn as usize * 37 % PAGES;
                let pages = 1 + turn as usize * 61 % (PAGES - first);
                let before = newest.load(Ordering::SeqCst);
                let mut buf = vec![0; pages * PAGE];
                match reader.read_at(&mut buf, (first * PAGE) as u64) {
                    Ok(n) => {
                        assert_eq!(n, buf.len());
                        let version = version_of(&buf, first);
                        assert!(version >= before, "version {version} after {before}");
                        newest.fetch_max(version, Ordering::SeqCst);
                    }
                    Err(e) => assert_eq!(e.kind(), std::io::ErrorKind::ResourceBusy, "{e}"),
                }
            });
            let ledger = driver.finish().unwrap();
            ledger.check().unwrap();
            assert_eq!(
                ledger.refused_inputs, 0,
                "{} on {}",
                preset.name, entry.name
            );
        }
    }
}

#[test]
fn a_file_that_is_cut_and_grows_again_shows_only_what_was_written() {
    const BYTES: usize = PAGES * PAGE + 100;
    let named = tempfile::NamedTempFile::new().unwrap();
    let mut whole = vec![0; BYTES];
    generated::fill(9, 9, 0, &mut whole);
    let writer = File::options().write(true).open(named.path()).unwrap();
    writer.write_all_at(&whole, 0).unwrap();
    if !direct(named.path()) {
        return;
    }
    for entry in backend::LIST {
        let driver = driver(entry.name, &PRESETS[0]);
        writer.write_all_at(&whole, 0).unwrap();
        let change = |version: u64| {
            let end = version as usize * 9973 % BYTES;
            if version.is_multiple_of(2) {
                writer.set_len(end as u64).unwrap();
            } else {
                let size = writer.metadata().unwrap().len() as usize;
                writer.write_all_at(&whole[size..], size as u64).unwrap();
            }
        };
        race(&driver, named.path(), change, |reader, turn| {
            let offset = turn * 7919 % BYTES as u64;
            let mut buf = vec![0; 1 + turn as usize * 6007 % BYTES];
            match reader.read_at(&mut buf, offset) {
                Ok(n) => assert_eq!(generated::check(9, 9, offset, &buf[..n]), Ok(())),
                Err(e) => assert_eq!(e.kind(), std::io::ErrorKind::ResourceBusy, "{e}"),
            }
        });
        driver.finish().unwrap().check().unwrap();
    }
}
