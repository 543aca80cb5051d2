//! The mount's file system without a kernel: its view of a tree is that of `std::fs`.
//!
//! Trees are made from a seed by proptest: folders, files, sparse files and links, under names of
//! any bytes. Each is walked through [`SourceFs`] as the kernel would, and compared.

#[path = "../../skipped.rs"]
mod skipped;

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::Path;
use std::time::Duration;

use forerun_core::{Bytes, preset};
use forerun_io::{Config, Driver, FaultPlan};
use forerun_mount::fs::SourceFs;
use forerun_mount::fs::attributes::Attributes;
use forerun_mount::fs::covered::covered;
use forerun_mount::fs::nodes::{Node, ROOT};
use proptest::collection::vec;
use proptest::prelude::*;
use rustix::fs::{FileType, XattrFlags};
use rustix::io::Errno;

#[derive(Clone, Debug)]
enum Tree {
    Folder(Vec<(Vec<u8>, Tree)>),
    File(Vec<u8>),
    Sparse(u32),
    Link(Vec<u8>),
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    let any = vec(1_u8..=255, 1..40).prop_map(|mut bytes| {
        bytes
            .iter_mut()
            .filter(|byte| **byte == b'/')
            .for_each(|byte| *byte = b'_');
        bytes
    });
    any.prop_filter("a name of its own", |name| {
        !matches!(&name[..], b"." | b"..")
    })
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        vec(any::<u8>(), 0..20_000).prop_map(Tree::File),
        any::<u32>().prop_map(|bytes| Tree::Sparse(bytes >> 8)),
        vec(1_u8..=255, 1..60).prop_map(Tree::Link),
    ];
    leaf.prop_recursive(4, 40, 8, |inner| {
        vec((name(), inner), 0..8).prop_map(Tree::Folder)
    })
}

fn make(tree: &Tree, path: &Path) {
    match tree {
        Tree::Folder(children) => {
            fs::create_dir_all(path).unwrap();
            for (name, child) in children {
                let path = path.join(OsStr::from_bytes(name));
                if fs::symlink_metadata(&path).is_err() {
                    make(child, &path);
                }
            }
        }
        Tree::File(content) => fs::write(path, content).unwrap(),
        Tree::Sparse(bytes) => {
            let file = File::create(path).unwrap();
            file.set_len(u64::from(*bytes)).unwrap();
            file.write_at(b"x", u64::from(*bytes) / 2).unwrap();
        }
        Tree::Link(target) => symlink(OsStr::from_bytes(target), path).unwrap(),
    }
}

fn config() -> Config {
    let preset = preset::find(preset::DEFAULT).unwrap();
    Config::new(preset.settings(Bytes(8 << 20)).unwrap())
}

fn open(source: &Path) -> SourceFs {
    SourceFs::new(source, None, Driver::new(config()).unwrap(), 1000).unwrap()
}

fn assert_same(ours: &Attributes, theirs: &Metadata) {
    let times = |t: (i64, u32)| (t.0, i64::from(t.1));
    assert_eq!(ours.key.inode, theirs.ino());
    assert_eq!(ours.version.bytes, theirs.size());
    assert_eq!(
        times(ours.version.modified),
        (theirs.mtime(), theirs.mtime_nsec())
    );
    assert_eq!(
        times(ours.version.changed),
        (theirs.ctime(), theirs.ctime_nsec())
    );
    assert_eq!(u32::from(ours.permissions), theirs.mode() & 0o7777);
    assert_eq!(ours.kind, FileType::from_raw_mode(theirs.mode()));
    assert_eq!(u64::from(ours.links), theirs.nlink());
    assert_eq!((ours.user, ours.group), (theirs.uid(), theirs.gid()));
    assert_eq!(ours.sectors, theirs.blocks());
}

/// The names of a folder, a few at a time, as the kernel asks for them.
fn names(fs: &SourceFs, node: Node, at_once: usize) -> Vec<OsString> {
    let handle = fs.open_folder(node, 0).unwrap();
    let mut names = Vec::new();
    let mut from = 0;
    loop {
        let mut taken = 0;
        let folder = fs.listed(handle).unwrap();
        fs.read_folder(node, &folder, from, &mut |_, name| {
            if taken == at_once {
                return false;
            }
            names.push(name.name.clone());
            from = name.next;
            taken += 1;
            true
        })
        .unwrap();
        if taken == 0 {
            fs.release_folder(handle);
            return names;
        }
    }
}

fn read(fs: &SourceFs, handle: u64, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
    fs.open_file(handle)?.read(buffer, offset)
}

fn content(fs: &SourceFs, node: Node, piece: usize) -> Vec<u8> {
    let opened = fs.open(node, 0).unwrap();
    let (mut content, mut buffer) = (Vec::new(), vec![0; piece]);
    loop {
        let count = read(fs, opened.handle, &mut buffer, content.len() as u64).unwrap();
        content.extend_from_slice(&buffer[..count]);
        if count < piece {
            fs.release(opened.handle);
            return content;
        }
    }
}

fn compare(fs: &SourceFs, node: Node, path: &Path, at_once: usize) {
    let theirs = fs::symlink_metadata(path).unwrap();
    assert_same(&fs.attributes(node, 0).unwrap(), &theirs);
    if theirs.is_symlink() {
        let target = OsString::from_vec(fs.read_link(node).unwrap());
        assert_eq!(target, fs::read_link(path).unwrap());
    } else if theirs.is_file() {
        assert!(content(fs, node, 5000 * at_once) == fs::read(path).unwrap());
    } else {
        let ours = names(fs, node, at_once);
        let set: BTreeSet<_> = ours.iter().cloned().collect();
        assert_eq!(set.len(), ours.len(), "a name came twice");
        let mut expected: BTreeSet<_> = fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        expected.extend([".".into(), "..".into()]);
        assert_eq!(set, expected);
        for name in ours.iter().filter(|name| *name != "." && *name != "..") {
            let found = fs.lookup(node, name).unwrap();
            compare(fs, found.node, &path.join(name), at_once);
            fs.forget(found.node, 1);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_tree_is_what_std_says_it_is(tree in tree(), at_once in 1_usize..50) {
        let source = tempfile::tempdir().unwrap();
        make(&Tree::Folder(vec![(b"tree".to_vec(), tree)]), source.path());
        let fs = open(source.path());
        compare(&fs, ROOT, source.path(), at_once);
        prop_assert_eq!(fs.nodes().count(), 1, "something was not forgotten");
    }
}

#[test]
fn nothing_leads_out_of_the_source() {
    let outside = tempfile::tempdir().unwrap();
    let source = outside.path().join("source");
    fs::create_dir(&source).unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    symlink("..", source.join("up")).unwrap();
    symlink(outside.path().join("secret"), source.join("link")).unwrap();
    let fs = open(&source);
    for name in ["..", ".", "", "../secret", "up/secret", "/etc"] {
        assert_eq!(
            fs.lookup(ROOT, OsStr::new(name)).unwrap_err(),
            Errno::INVAL,
            "{name}"
        );
    }
    for (name, error) in [("up", Errno::NOTDIR), ("link", Errno::NOTDIR)] {
        let found = fs.lookup(ROOT, OsStr::new(name)).unwrap();
        assert_eq!(found.attributes.kind, FileType::Symlink);
        assert_eq!(
            fs.lookup(found.node, OsStr::new("secret")).unwrap_err(),
            error
        );
        assert!(fs.open(found.node, 0).is_err(), "{name} was followed");
        assert!(
            fs.open_folder(found.node, 0).is_err(),
            "{name} was followed"
        );
    }
}

#[test]
fn a_folder_swapped_for_a_link_leads_nowhere() {
    let outside = tempfile::tempdir().unwrap();
    let source = outside.path().join("source");
    fs::create_dir_all(source.join("a/b")).unwrap();
    fs::write(source.join("a/b/c"), "inside").unwrap();
    fs::create_dir_all(outside.path().join("b")).unwrap();
    fs::write(outside.path().join("b/c"), "outside").unwrap();
    let fs = open(&source);
    let a = fs.lookup(ROOT, OsStr::new("a")).unwrap().node;
    let b = fs.lookup(a, OsStr::new("b")).unwrap().node;
    let c = fs.lookup(b, OsStr::new("c")).unwrap().node;
    fs::rename(source.join("a"), source.join("z")).unwrap();
    symlink("..", source.join("a")).unwrap();
    match fs.open(c, 0) {
        // The folder's descriptor is kept, so the file is still found where it went.
        Ok(opened) => {
            let mut buffer = [0; 6];
            read(&fs, opened.handle, &mut buffer, 0).unwrap();
            assert_eq!(&buffer, b"inside");
        }
        Err(error) => assert_eq!(error, Errno::STALE),
    }
    let link = fs.lookup(ROOT, OsStr::new("a")).unwrap();
    assert_eq!(link.attributes.kind, FileType::Symlink);
    assert_eq!(
        fs.lookup(link.node, OsStr::new("b")).unwrap_err(),
        Errno::NOTDIR
    );
}

#[test]
fn a_file_that_moved_is_looked_up_again_and_an_open_one_needs_no_name() {
    let source = tempfile::tempdir().unwrap();
    let path = source.path().join("a");
    fs::write(&path, "one").unwrap();
    let fs = open(source.path());
    let node = fs.lookup(ROOT, OsStr::new("a")).unwrap().node;
    let opened = fs.open(node, 0).unwrap();
    fs::write(source.path().join("b"), "another").unwrap();
    fs::rename(source.path().join("b"), &path).unwrap();
    assert_eq!(
        fs.attributes(node, 0).unwrap().version.bytes,
        3,
        "the open file, not the new one"
    );
    let mut buffer = [0; 9];
    assert_eq!(read(&fs, opened.handle, &mut buffer, 0), Ok(3));
    fs.release(opened.handle);
    assert_eq!(fs.attributes(node, 0).unwrap_err(), Errno::STALE);
    assert_eq!(fs.open(node, 0).unwrap_err(), Errno::STALE);
    let found = fs.lookup(ROOT, OsStr::new("a")).unwrap();
    assert_ne!(found.node, node);
    assert_eq!(content(&fs, found.node, 100), b"another");
}

fn changed(fs: &SourceFs) -> Vec<Node> {
    let held = fs.held().into_values();
    held.flat_map(|held| fs.changed(&held)).collect()
}

#[test]
fn a_changed_file_is_noticed_once_and_its_cache_is_not_kept() {
    let source = tempfile::tempdir().unwrap();
    let path = source.path().join("a");
    fs::write(&path, "old content").unwrap();
    let fs = open(source.path());
    let node = fs.lookup(ROOT, OsStr::new("a")).unwrap().node;
    let first = fs.open(node, 0).unwrap();
    assert!(!first.unchanged, "the kernel has nothing yet");
    let mut buffer = [0; 11];
    read(&fs, first.handle, &mut buffer, 0).unwrap();
    assert!(fs.open(node, 0).unwrap().unchanged);
    assert!(changed(&fs).is_empty());
    fs::write(&path, "new content").unwrap();
    assert_eq!(changed(&fs), [node]);
    assert!(changed(&fs).is_empty());
    read(&fs, first.handle, &mut buffer, 0).unwrap();
    assert_eq!(&buffer, b"new content");
    fs::write(&path, "changed again").unwrap();
    assert!(!fs.open(node, 0).unwrap().unchanged);
}

#[test]
fn hard_links_are_one_file_and_other_devices_get_numbers_of_their_own() {
    let source = tempfile::tempdir().unwrap();
    fs::write(source.path().join("a"), "x").unwrap();
    fs::hard_link(source.path().join("a"), source.path().join("b")).unwrap();
    let fs = open(source.path());
    let node = |name: &str| fs.lookup(ROOT, OsStr::new(name)).unwrap().node;
    assert_eq!(node("a"), node("b"));
    fs::remove_file(source.path().join("b")).unwrap();
    assert_eq!(fs.attributes(node("a"), 0).unwrap().links, 1);
    let root = open(Path::new("/"));
    let proc = root.lookup(ROOT, OsStr::new("proc")).unwrap();
    assert!(proc.node.0 >> 63 == 1, "{:?}", proc.node);
    assert_eq!(
        root.lookup(ROOT, OsStr::new("proc")).unwrap().node,
        proc.node
    );
    root.forget(proc.node, 2);
    assert_eq!(root.nodes().count(), 1);
}

#[test]
fn what_the_mount_point_hides_is_shown_as_it_was() {
    let source = tempfile::tempdir().unwrap();
    let point = source.path().join("point");
    fs::create_dir(&point).unwrap();
    let hidden = covered(&point).unwrap();
    let moved = source.path().join("moved");
    fs::rename(&point, &moved).unwrap();
    fs::write(&point, "in its place").unwrap();
    let driver = Driver::new(config()).unwrap();
    let fs = SourceFs::new(source.path(), Some(hidden), driver, 1000).unwrap();
    let found = fs.lookup(ROOT, OsStr::new("point")).unwrap();
    assert_eq!(
        found.attributes.key.inode,
        fs::metadata(&moved).unwrap().ino()
    );
    assert_eq!(names(&fs, found.node, 10).len(), 2);
}

#[test]
fn an_error_of_the_disk_reaches_the_reader_and_the_next_file_is_fine() {
    let source = tempfile::tempdir().unwrap();
    fs::write(source.path().join("a"), vec![7; 1 << 20]).unwrap();
    let fault = FaultPlan {
        error_permille: 500,
        ..FaultPlan::default()
    };
    let driver = Driver::new({
        let mut config = config();
        config.lab.fault = Some(fault);
        config
    });
    let fs = SourceFs::new(source.path(), None, driver.unwrap(), 1000).unwrap();
    let node = fs.lookup(ROOT, OsStr::new("a")).unwrap().node;
    let (mut failed, mut fine) = (0, 0);
    for round in 0..200_u64 {
        let opened = fs.open(node, 0).unwrap();
        let mut buffer = [0; 4096];
        match read(&fs, opened.handle, &mut buffer, round * 37 % 256 * 4096) {
            Ok(count) => {
                assert_eq!(buffer[..count], [7; 4096][..count]);
                fine += 1;
            }
            Err(error) => {
                assert_eq!(error, Errno::IO);
                failed += 1;
            }
        }
        fs.release(opened.handle);
    }
    assert!(failed > 0 && fine > 0, "{failed} failed, {fine} fine");
    fs.engine()
        .take()
        .unwrap()
        .finish()
        .unwrap()
        .check()
        .unwrap();
    assert_eq!(fs.open(node, 0).unwrap_err(), Errno::SHUTDOWN);
}

/// Programs that list a folder ask for attributes that no file has; that a file has none is believed for a while, but not
/// beyond a change of it that the kernel was told of.
#[test]
fn that_a_file_has_no_attributes_is_believed_until_a_change_was_told() {
    let source = tempfile::tempdir().unwrap();
    let path = source.path().join("a");
    fs::write(&path, "content").unwrap();
    let fs = open(source.path());
    let node = fs.lookup(ROOT, OsStr::new("a")).unwrap().node;
    let before = fs.attributes(node, 1).unwrap();
    let (name, long) = (OsStr::new("user.a"), Duration::from_secs(3600));
    let none = || fs.xattr(node, name, long);
    assert_eq!(none(), Err(Errno::NODATA));
    // The clock of changes has ticks of some milliseconds.
    let changes = (0..).map(|change: u32| {
        let value = change.to_string();
        let set = rustix::fs::setxattr(&path, name, value.as_bytes(), XattrFlags::empty());
        set.map(|()| value)
    });
    let mut set = changes.skip_while(|set| {
        let changed = Attributes::of(File::open(&path).unwrap(), "")
            .unwrap()
            .version
            .changed;
        set.is_ok() && changed == before.version.changed
    });
    let Ok(value) = set.next().unwrap() else {
        return skipped::skipped("needs a file system with attributes of users");
    };
    let known = none();
    // File systems whose lists may lack some are asked each time.
    let is_believed = known == Err(Errno::NODATA);
    assert!(
        is_believed || known.as_deref() == Ok(value.as_bytes()),
        "{known:?}"
    );
    let now = fs.xattr(node, name, Duration::ZERO);
    assert_eq!(now.as_deref(), Ok(value.as_bytes()));
    fs.attributes(node, 1).unwrap();
    assert_eq!(none().as_deref(), Ok(value.as_bytes()));
}
