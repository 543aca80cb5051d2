//! Rights are those of the source at the time of the open: not those of a second ago, and not those
//! of an earlier file that had the same name and the same inode number.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Mounted, can_mount, folder};

/// Any user.
const STRANGER: u32 = 54_321;

const ROUNDS: u32 = 12;

/// A stranger's bytes of a file; none if refused.
fn read_by_stranger(path: &Path) -> Option<Vec<u8>> {
    let output = Command::new("cat")
        .arg(path)
        .uid(STRANGER)
        .gid(STRANGER)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    output.status.success().then_some(output.stdout)
}

/// A mount that a stranger may enter.
fn open_to_all() -> Option<Mounted> {
    if !can_mount() {
        return None;
    }
    let folder = folder();
    fs::set_permissions(folder.path().join("source"), Permissions::from_mode(0o755)).unwrap();
    Mounted::of(folder, &["--allow-other"])
}

fn publish(path: &Path) {
    let _ = fs::remove_file(path);
    fs::write(path, "public").unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
}

/// Closes a published file to strangers in some way, again and again; the kernel has just checked a
/// stranger's right to it when that happens.
fn is_refused_at_once(close: impl Fn(&Path)) {
    let Some(mounted) = open_to_all() else {
        return;
    };
    let (source, point) = (mounted.source("a"), mounted.point("a"));
    for round in 0..ROUNDS {
        publish(&source);
        // The kernel itself refuses a file closed a moment ago, by its cached attributes.
        super::eventually("a published file", || {
            read_by_stranger(&point).is_some_and(|content| content == b"public")
        });
        close(&source);
        assert_eq!(read_by_stranger(&point), None, "round {round}");
        let own = fs::read(&point).unwrap();
        assert_eq!(own, fs::read(&source).unwrap(), "round {round}");
    }
}

#[test]
fn a_file_closed_to_others_is_refused_to_them_at_once() {
    is_refused_at_once(|path| {
        fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
        fs::write(path, "secret").unwrap();
    });
}

#[test]
fn a_file_given_to_another_owner_is_refused_at_once() {
    is_refused_at_once(|path| {
        // Strangers were let in as strangers, the group is not.
        fs::set_permissions(path, Permissions::from_mode(0o604)).unwrap();
        chown(path, None, Some(STRANGER)).unwrap();
        fs::write(path, "secret").unwrap();
    });
}

#[test]
fn a_new_file_under_an_old_name_and_inode_number_is_opened_with_its_own_rights() {
    let reused = std::cell::Cell::new(0);
    is_refused_at_once(|path| {
        let before = fs::metadata(path).unwrap().ino();
        fs::remove_file(path).unwrap();
        let mut options = fs::File::options();
        let file = options.write(true).create_new(true).mode(0o600).open(path);
        std::io::Write::write_all(&mut file.unwrap(), b"secret").unwrap();
        reused.set(reused.get() + u32::from(fs::metadata(path).unwrap().ino() == before));
    });
    println!("inode numbers used again: {} of {ROUNDS}", reused.get());
}

#[test]
fn a_file_opened_to_others_is_open_to_them_at_once() {
    let Some(mounted) = open_to_all() else {
        return;
    };
    let (source, point) = (mounted.source("a"), mounted.point("a"));
    for round in 0..ROUNDS {
        publish(&source);
        fs::set_permissions(&source, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read_by_stranger(&point), None, "round {round}");
        fs::set_permissions(&source, Permissions::from_mode(0o644)).unwrap();
        // The kernel refuses this by itself, from the attributes it has, for a second at most.
        super::eventually("the right", || read_by_stranger(&point).is_some());
    }
}

#[test]
fn an_access_list_taken_away_is_gone_at_once() {
    let Some(mounted) = open_to_all() else {
        return;
    };
    let (source, point) = (mounted.source("a"), mounted.point("a"));
    for round in 0..ROUNDS {
        publish(&source);
        fs::set_permissions(&source, Permissions::from_mode(0o640)).unwrap();
        let flags = rustix::fs::XattrFlags::empty();
        if let Err(error) = rustix::fs::setxattr(&source, ACCESS_LIST, &stranger_reads(), flags) {
            crate::skipped::skipped(format!("needs access lists: {error}"));
            return;
        }
        super::eventually("the right", || read_by_stranger(&point).is_some());
        let mode = fs::metadata(&source).unwrap().mode();
        rustix::fs::removexattr(&source, ACCESS_LIST).unwrap();
        assert_eq!(fs::metadata(&source).unwrap().mode(), mode, "round {round}");
        assert_eq!(read_by_stranger(&point), None, "round {round}");
    }
}

const ACCESS_LIST: &str = "system.posix_acl_access";

/// The list of a file of mode 0640 that a stranger may read: tag, permissions and id of each entry.
fn stranger_reads() -> Vec<u8> {
    let nobody = u32::MAX;
    let entries: [(u16, u16, u32); 5] = [
        (0x01, 6, nobody),
        (0x02, 4, STRANGER),
        (0x04, 4, nobody),
        (0x10, 4, nobody),
        (0x20, 0, nobody),
    ];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(permissions.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    list
}

#[test]
fn a_folder_closed_to_others_is_not_listed_by_them() {
    let Some(mounted) = open_to_all() else {
        return;
    };
    let (source, point) = (mounted.source("d"), mounted.point("d"));
    fs::create_dir(&source).unwrap();
    let lists = || {
        let listed = Command::new("ls")
            .arg(&point)
            .uid(STRANGER)
            .gid(STRANGER)
            .output();
        listed.unwrap().status.success()
    };
    for round in 0..ROUNDS {
        fs::set_permissions(&source, Permissions::from_mode(0o755)).unwrap();
        super::eventually("the right", lists);
        fs::set_permissions(&source, Permissions::from_mode(0o700)).unwrap();
        assert!(!lists(), "round {round}");
    }
}
