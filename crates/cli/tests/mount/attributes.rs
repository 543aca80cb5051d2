//! A mounted tree looks like its source: attributes, names, links, extended attributes, rights.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use rustix::fs::{FileType, Mode, XattrFlags, makedev, mknodat};

use super::{Mounted, folder, has_fusermount, skipped, take_off};

fn assert_same_attributes(a: &Path, b: &Path) {
    let of = |path: &Path| {
        let m = fs::symlink_metadata(path).unwrap();
        (
            (
                m.ino(),
                m.mode(),
                m.nlink(),
                m.uid(),
                m.gid(),
                m.rdev(),
                m.size(),
                m.blocks(),
            ),
            (
                m.mtime(),
                m.mtime_nsec(),
                m.ctime(),
                m.ctime_nsec(),
                m.blksize(),
            ),
        )
    };
    assert_eq!(of(a), of(b), "{}", a.display());
}

fn assert_same_tree(a: &Path, b: &Path) {
    assert_same_attributes(a, b);
    if !fs::symlink_metadata(a).unwrap().is_dir() {
        return;
    }
    let names = |path: &Path| {
        let mut names: Vec<(OsString, u64, bool)> = fs::read_dir(path)
            .unwrap()
            .map(|entry| {
                use std::os::unix::fs::DirEntryExt;
                let entry = entry.unwrap();
                (
                    entry.file_name(),
                    entry.ino(),
                    entry.file_type().unwrap().is_dir(),
                )
            })
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(a), names(b));
    for (name, _, _) in names(a) {
        assert_same_tree(&a.join(&name), &b.join(&name));
    }
}

#[test]
fn everything_a_source_can_hold_looks_the_same() {
    let folder = folder();
    let source = folder.path().join("source");
    let path = |name: &str| source.join(name);
    fs::create_dir_all(path("a/b/c")).unwrap();
    fs::write(path("a/file"), "content").unwrap();
    fs::hard_link(path("a/file"), path("a/b/twin")).unwrap();
    fs::write(source.join(OsStr::from_bytes(b"not \xff\xfe text\n")), "x").unwrap();
    fs::write(path(&"n".repeat(255)), "").unwrap();
    symlink("a/file", path("link")).unwrap();
    symlink("/nowhere/at/all", path("broken")).unwrap();
    for i in 0..1000 {
        fs::write(path(&format!("a/b/c/{i}")), "").unwrap();
    }
    let sparse = File::create(path("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    fs::set_permissions(path("a/file"), fs::Permissions::from_mode(0o4751)).unwrap();
    std::os::unix::fs::chown(path("a/file"), Some(1234), Some(5678)).unwrap();
    let times = fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH);
    File::options()
        .write(true)
        .open(path("a/b/c/7"))
        .unwrap()
        .set_times(times)
        .unwrap();
    let make = |name: &str, kind, device| {
        let mode = Mode::from_raw_mode(0o600);
        mknodat(rustix::fs::CWD, path(name), kind, mode, device).unwrap();
    };
    make("fifo", FileType::Fifo, 0);
    make("socket", FileType::Socket, 0);
    make("device", FileType::CharacterDevice, makedev(259, 70_000));
    let Some(mounted) = Mounted::of(folder, &[]) else {
        return;
    };
    assert_same_tree(&mounted.source(""), &mounted.point(""));
    assert_eq!(
        fs::read_link(mounted.point("broken")).unwrap(),
        Path::new("/nowhere/at/all")
    );
    assert_eq!(fs::read(mounted.point("link")).unwrap(), b"content");
    assert!(
        fs::metadata(mounted.point("fifo"))
            .unwrap()
            .file_type()
            .is_fifo()
    );
    let device = File::open(mounted.point("device")).unwrap_err();
    assert_eq!(
        device.kind(),
        std::io::ErrorKind::PermissionDenied,
        "no devices below a mount"
    );
}

#[test]
fn extended_attributes_come_through() {
    let folder = folder();
    let (file, link) = (
        folder.path().join("source/a"),
        folder.path().join("source/l"),
    );
    fs::write(&file, "").unwrap();
    symlink("a", &link).unwrap();
    let set = |path: &Path, name: &str, value: &[u8]| {
        rustix::fs::lsetxattr(path, name, value, XattrFlags::empty())
    };
    if set(&file, "user.small", b"\0value\xff").is_err() {
        skipped("no extended attributes here");
        return;
    }
    set(&file, "user.large", &[7; 2000]).unwrap();
    set(&link, "trusted.link", b"of the link").unwrap();
    let Some(mounted) = Mounted::of(folder, &[]) else {
        return;
    };
    let get = |name: &str, attribute: &str| {
        let mut value = vec![0; 4096];
        let bytes = rustix::fs::lgetxattr(mounted.point(name), attribute, &mut value[..]);
        bytes.map(|bytes| value[..bytes].to_vec())
    };
    assert_eq!(get("a", "user.small").unwrap(), b"\0value\xff");
    assert_eq!(get("a", "user.large").unwrap(), [7; 2000]);
    assert_eq!(
        get("a", "user.none").unwrap_err(),
        rustix::io::Errno::NODATA
    );
    assert_eq!(get("l", "trusted.link").unwrap(), b"of the link");
    let list = |path: &Path| {
        let mut names = vec![0; 4096];
        let bytes = rustix::fs::llistxattr(path, &mut names[..]).unwrap();
        names[..bytes].to_vec()
    };
    assert_eq!(list(&mounted.point("a")), list(&mounted.source("a")));
    let mut short = [0; 3];
    let error = rustix::fs::lgetxattr(mounted.point("a"), "user.small", &mut short).unwrap_err();
    assert_eq!(error, rustix::io::Errno::RANGE);
}

#[test]
fn space_is_that_of_the_source() {
    let Some(mounted) = Mounted::new(&[]) else {
        return;
    };
    let a = rustix::fs::statvfs(mounted.source("")).unwrap();
    let b = rustix::fs::statvfs(mounted.point("")).unwrap();
    assert_eq!(
        (a.f_blocks, a.f_files, a.f_bsize),
        (b.f_blocks, b.f_files, b.f_bsize)
    );
    assert_eq!((a.f_frsize, a.f_namemax), (b.f_frsize, b.f_namemax));
}

#[test]
fn nothing_can_be_written() {
    let folder = folder();
    fs::write(folder.path().join("source/a"), "a").unwrap();
    let Some(mounted) = Mounted::of(folder, &["-o", "rw"]) else {
        return;
    };
    let read_only = |result: std::io::Result<()>| {
        assert_eq!(
            result.unwrap_err().kind(),
            std::io::ErrorKind::ReadOnlyFilesystem
        );
    };
    let (a, b) = (mounted.point("a"), mounted.point("b"));
    read_only(fs::write(&a, "b"));
    read_only(fs::write(&b, "b"));
    read_only(fs::remove_file(&a));
    read_only(fs::rename(&a, &b));
    read_only(fs::create_dir(&b));
    read_only(symlink("a", &b));
    read_only(fs::hard_link(&a, &b));
    read_only(fs::set_permissions(&a, fs::Permissions::from_mode(0o777)));
    assert_eq!(fs::read(mounted.source("a")).unwrap(), b"a");
}

/// A file's attributes as a user without rights sees them; none if there is no way to be one.
fn as_nobody(path: &Path) -> Option<bool> {
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "cat"])
        .arg(path);
    Some(command.output().ok()?.status.success())
}

/// Adds user 65534 to a file's access list; whether the file system has such lists.
fn let_nobody_read(path: &Path) -> bool {
    let (owner, user, group, mask, other) = (1_u16, 2_u16, 4_u16, 0x10_u16, 0x20_u16);
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in [
        (owner, 6_u16, u32::MAX),
        (user, 4, 65_534),
        (group, 0, u32::MAX),
        (mask, 4, u32::MAX),
        (other, 0, u32::MAX),
    ] {
        list.extend(tag.to_le_bytes());
        list.extend(rights.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    let name = "system.posix_acl_access";
    rustix::fs::lsetxattr(path, name, &list, XattrFlags::empty()).is_ok()
}

#[test]
fn a_user_sees_what_the_user_may_see_and_not_what_the_daemon_may() {
    let folder = folder();
    let source = folder.path().join("source");
    fs::set_permissions(&source, fs::Permissions::from_mode(0o755)).unwrap();
    for (name, mode) in [("open", 0o644), ("shut", 0o600), ("listed", 0o600)] {
        fs::write(source.join(name), name).unwrap();
        fs::set_permissions(source.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::create_dir(source.join("private")).unwrap();
    fs::write(source.join("private/a"), "a").unwrap();
    fs::set_permissions(source.join("private"), fs::Permissions::from_mode(0o700)).unwrap();
    let granted = let_nobody_read(&source.join("listed"));
    let Some(mounted) = Mounted::of(folder, &["--allow-other"]) else {
        return;
    };
    if as_nobody(Path::new("/dev/null")) != Some(true) {
        skipped("cannot be another user");
        return;
    }
    assert_eq!(as_nobody(&mounted.point("open")), Some(true));
    assert_eq!(as_nobody(&mounted.point("shut")), Some(false));
    assert_eq!(as_nobody(&mounted.point("private/a")), Some(false));
    assert_eq!(as_nobody(&mounted.point("listed")), Some(granted));
}

#[test]
fn without_leave_other_users_are_kept_out() {
    let folder = folder();
    fs::write(folder.path().join("source/a"), "a").unwrap();
    let Some(mounted) = Mounted::of(folder, &[]) else {
        return;
    };
    if as_nobody(Path::new("/dev/null")) != Some(true) {
        skipped("cannot be another user");
        return;
    }
    assert_eq!(as_nobody(&mounted.point("a")), Some(false));
}

#[test]
fn the_mount_point_may_lie_inside_the_source() {
    let folder = folder();
    let inside = folder.path().join("source/inside");
    fs::create_dir(&inside).unwrap();
    fs::write(folder.path().join("source/a"), "a").unwrap();
    fs::remove_dir(folder.path().join("point")).unwrap();
    symlink("source/inside", folder.path().join("point")).unwrap();
    if !super::can_mount() {
        return;
    }
    let (code, said) = super::forerun(&[
        "mount".as_ref(),
        folder.path().join("source").as_ref(),
        folder.path().join("point").as_ref(),
    ]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(fs::read(inside.join("a")).unwrap(), b"a");
    assert_eq!(fs::read_dir(inside.join("inside")).unwrap().count(), 0);
    take_off(&inside);
}

/// Everything a user without rights does: mount, read, and take the mount off again, the second
/// time over one whose daemon was killed.
const AS_A_USER: &str = r#"
set -e
mknod "$1/fuse" c 10 229
chmod 666 "$1/fuse"
mount --bind "$1/fuse" /dev/fuse
chown 65534:65534 "$1/source" "$1/point"
# The build may lie in a home that others may not enter.
cp "$2" "$1/program"
me="setpriv --reuid=65534 --regid=65534 --clear-groups"
$me "$1/program" mount "$1/source" "$1/point"
test "$($me cat "$1/point/a")" = content
daemon=$(grep -lz "^$1/point$" /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3 | while read -r p; do
  test "$(stat -c %u "/proc/$p" 2>/dev/null)" = 65534 && echo "$p"; done)
$me kill -9 $daemon
while $me stat -f "$1/point" >/dev/null 2>&1; do :; done
$me "$1/program" mount "$1/source" "$1/point"
test "$($me cat "$1/point/a")" = content
$me fusermount3 -u "$1/point"
echo done
"#;

#[test]
fn someone_who_is_not_root_mounts_with_fusermount3() {
    if !super::can_mount() {
        return;
    }
    if !has_fusermount() {
        skipped("no fusermount3");
        return;
    }
    let folder = folder();
    fs::write(folder.path().join("source/a"), "content").unwrap();
    // In a mount name space of its own, where /dev/fuse is for everyone, as on most machines.
    let output = Command::new("unshare")
        .args([
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            AS_A_USER,
            "sh",
        ])
        .arg(folder.path())
        .arg(snapbox::cmd::cargo_bin!("forerun"))
        .output();
    let Ok(output) = output else {
        skipped("no unshare");
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("not found") {
        skipped(said);
        return;
    }
    assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n", "{said}");
}
