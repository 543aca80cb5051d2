//! The bytes, sizes and rights of files that the kernel reads from the source by itself are those
//! of the source, after every kind of change.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::{Advice, OFlags, fadvise};

use super::passthrough::{BYTES, cool, mounted, opens, passing, warm};
use super::reading::reads_are_right;
use super::{bytes, eventually, skipped};

/// Any user.
const STRANGER: u32 = 54_321;

#[test]
fn an_open_file_shows_every_change_at_once() {
    let Some(mounted) = passing("always") else {
        return;
    };
    let (source, point) = (mounted.source("a"), mounted.point("a"));
    let open = File::open(&point).unwrap();
    let read = || {
        let mut whole = vec![0; 2 * BYTES];
        let mut filled = 0;
        loop {
            match open.read_at(&mut whole[filled..], filled as u64).unwrap() {
                0 => break,
                count => filled += count,
            }
        }
        whole.truncate(filled);
        whole
    };
    let writer = File::options().write(true).open(&source).unwrap();
    for round in 0..50 {
        let content = bytes(BYTES / 2 + round * 4567 % 900_000, round as u64);
        match round % 3 {
            // Rewritten in place, then cut or grown.
            0 => writer.write_all_at(&content, 0).unwrap(),
            // Made empty first.
            1 => {
                writer.set_len(0).unwrap();
                writer.write_all_at(&content, 0).unwrap();
            }
            _ => {
                writer.set_len(1000).unwrap();
                (&writer).write_all(b"").unwrap();
                writer.write_all_at(&content, 0).unwrap();
            }
        }
        writer.set_len(content.len() as u64).unwrap();
        assert!(read() == content, "round {round}, open");
        assert!(
            fs::read(&point).unwrap() == content,
            "round {round}, opened"
        );
        assert_eq!(
            fs::metadata(&point).unwrap().len(),
            content.len() as u64,
            "round {round}: the open asked"
        );
    }
    writer.set_len(77).unwrap();
    eventually("the size, with no open", || {
        open.metadata().unwrap().len() == 77
    });
}

#[test]
fn a_size_is_looked_after_though_attributes_are_believed_for_long() {
    let flags = ["--attribute-timeout", "9999s", "--passthrough", "always"];
    let Some(mounted) = mounted(&flags) else {
        return;
    };
    let open = File::open(mounted.point("a")).unwrap();
    assert_eq!(open.metadata().unwrap().len(), BYTES as u64);
    let writer = File::options().write(true).open(mounted.source("a"));
    writer.unwrap().set_len(5).unwrap();
    eventually("the size", || open.metadata().unwrap().len() == 5);
}

#[test]
fn a_file_removed_or_replaced_is_read_to_its_end_by_whoever_has_it_open() {
    let Some(mounted) = passing("always") else {
        return;
    };
    let (source, point) = (mounted.source("a"), mounted.point("a"));
    for round in 0..20 {
        let old = fs::read(&source).unwrap();
        let open = File::open(&point).unwrap();
        let new = bytes(BYTES, 100 + round);
        if round % 2 == 0 {
            fs::write(mounted.source("b"), &new).unwrap();
            fs::rename(mounted.source("b"), &source).unwrap();
        } else {
            fs::remove_file(&source).unwrap();
            // Often of the same inode number, once that is free.
            fs::write(&source, &new).unwrap();
        }
        assert!(fs::read(&point).unwrap() == new, "round {round}");
        let mut read = vec![0; BYTES];
        open.read_exact_at(&mut read, 0).unwrap();
        assert!(read == old, "round {round}, open");
        let same = open.metadata().unwrap().ino() == fs::metadata(&source).unwrap().ino();
        assert!(!same, "round {round}");
    }
}

/// A file is read cached, through, and cached again, and changes in one of these.
#[test]
fn no_old_page_is_left_by_the_one_mode_for_the_other() {
    let Some(mounted) = passing("auto") else {
        return;
    };
    let (source, point) = (mounted.source("a"), mounted.point("a"));
    if !cool(&source) {
        return skipped("a page cache that cannot be emptied");
    }
    let write = |version: u64| {
        let writer = File::options().write(true).open(&source).unwrap();
        writer.write_all_at(&bytes(BYTES, version), 0).unwrap();
        writer.sync_all().unwrap();
    };
    let mut passed = 0;
    for round in 0..24_u64 {
        let (first, second) = (10 * round, 10 * round + 5);
        write(first);
        cool(&source);
        assert!(
            fs::read(&point).unwrap() == bytes(BYTES, first),
            "{round} cold"
        );
        if round % 3 == 0 {
            write(second);
        }
        warm(&source);
        let before = opens(&mounted);
        let open = File::open(&point).unwrap();
        // Unless the kernel has given up pages of the source since.
        let is_passed = opens(&mounted) > before;
        passed += u32::from(is_passed);
        if round % 2 == 0 {
            // Pages of the mount, while the file is passed through.
            fadvise(&open, 0, None, Advice::WillNeed).unwrap();
        }
        if round % 3 == 1 {
            write(second);
        }
        let mut read = vec![0; BYTES];
        open.read_exact_at(&mut read, 0).unwrap();
        let now = if round % 3 == 2 { first } else { second };
        // The engine keeps earlier bytes for a tenth of a second.
        let may_be_old = round % 3 == 1 && !is_passed && read == bytes(BYTES, first);
        assert!(may_be_old || read == bytes(BYTES, now), "{round} through");
        drop(open);
        let now = if round % 3 == 2 { second } else { now };
        write(now);
        cool(&source);
        assert!(
            fs::read(&point).unwrap() == bytes(BYTES, now),
            "{round} cold again"
        );
    }
    assert!(passed > 0, "no open was passed through");
}

#[test]
fn no_byte_differs_whichever_way_it_is_read_in_passthrough() {
    reads_are_right(&["--passthrough", "always"]);
}

#[test]
fn strangers_read_what_they_may_and_are_refused_at_once_what_they_may_not() {
    let Some(mounted) = mounted(&["--allow-other", "--passthrough", "always"]) else {
        return;
    };
    let path = mounted.source("a");
    fs::set_permissions(mounted.source(""), Permissions::from_mode(0o755)).unwrap();
    let read = || {
        let mut cat = Command::new("cat");
        let output = cat.arg(mounted.point("a")).uid(STRANGER).gid(STRANGER);
        let output = output.output().unwrap();
        output.status.success().then_some(output.stdout)
    };
    for round in 0..12 {
        let content = bytes(BYTES, round);
        fs::remove_file(&path).unwrap();
        fs::write(&path, &content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        // A right given is there within a second.
        eventually("the right", || read().as_ref() == Some(&content));
        let open = File::open(mounted.point("a")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "secret").unwrap();
        assert_eq!(read(), None, "round {round}");
        drop(open);
    }
}

#[test]
fn direct_reads_of_any_alignment_are_right() {
    let Some(mounted) = passing("always") else {
        return;
    };
    let content = bytes(BYTES, 1);
    let _also = File::open(mounted.point("a")).unwrap();
    let mut options = File::options();
    options
        .read(true)
        .custom_flags(OFlags::DIRECT.bits().cast_signed());
    let direct = options.open(mounted.point("a")).unwrap();
    for (at, length) in [(0, 4096), (1, 1), (4095, 70_000), (BYTES - 9, 9)] {
        let mut piece = vec![0; length + 1];
        let piece = &mut piece[1..];
        direct.read_exact_at(piece, at as u64).unwrap();
        assert!(*piece == content[at..at + length], "{at} {length}");
    }
}

#[test]
fn a_file_in_passthrough_is_read_to_its_end_though_the_daemon_was_killed() {
    let Some(mut mounted) = passing("always") else {
        return;
    };
    let open = File::open(mounted.point("a")).unwrap();
    mounted.daemon.kill().unwrap();
    mounted.daemon.wait().unwrap();
    let mut read = vec![0; BYTES];
    open.read_exact_at(&mut read, 0).unwrap();
    assert!(read == bytes(BYTES, 1));
}
