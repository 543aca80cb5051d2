//! Readers that reach a folder by a bind mount, as a container does.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, fadvise};

use crate::{Disk, Over, counted, is_not_steered, number, wait::eventually};

/// Reads the file of a folder, cold.
fn read(folder: &Path) {
    let mut file = File::open(folder.join("big")).unwrap();
    fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    file.read_exact(&mut vec![0; 32 << 20]).unwrap();
}

/// A folder of the file system with a file, and where it is bound to.
fn folders(disk: &Disk) -> [PathBuf; 2] {
    let [folder, bound] = [
        disk.point().join("folder"),
        disk.folder.path().join("bound"),
    ];
    [&folder, &bound]
        .into_iter()
        .for_each(|at| fs::create_dir(at).unwrap());
    fs::rename(disk.point().join("file"), folder.join("big")).unwrap();
    [folder, bound]
}

#[test]
fn a_watched_folder_is_steered_by_a_bind_mount_that_comes_later() {
    for seeing in ["readahead", "block"] {
        let Some(disk) = Disk::new() else { return };
        let [folder, bound] = folders(&disk);
        let watching = disk.watch_at(&folder, &["--seeing", seeing]);
        // The table of mounts is known before.
        eventually("the watch has seen it", || {
            read(&folder);
            counted(&disk.stats_of(&folder)["watch"], "limits_set", 0)
        });
        let _bound = Over::new(&["--bind", folder.to_str().unwrap()], bound.clone()).unwrap();
        let set = |disk: &Disk| {
            disk.stats_of(&folder)["watch"]["limits_set"]
                .as_u64()
                .unwrap()
        };
        let before = set(&disk);
        eventually("the reader by the bind mount is steered", || {
            read(&bound);
            set(&disk) > before
        });
        let text = watching.end();
        assert!(number(&text, "limits set ") > before, "{text}");
    }
}

#[test]
fn a_folder_that_is_excluded_is_excluded_by_its_bind_mount() {
    let Some(disk) = Disk::new() else { return };
    let [folder, bound] = folders(&disk);
    let rule = format!("path={}", folder.display());
    let watching = disk.watch(&["--exclude", &rule]);
    let _bound = Over::new(&["--bind", folder.to_str().unwrap()], bound.clone()).unwrap();
    eventually("the watch has seen it", || {
        read(&bound);
        is_not_steered(&disk.stats()["watch"])
    });
    let text = watching.end();
    assert!(text.contains("excluded"), "{text}");
    assert_eq!(number(&text, "limits set "), 0, "{text}");
}
