//! Passing: readers of a watched file system that are known from the start to have no descriptors.
//!
//! File servers of the kernel and loop devices read past all descriptors. Named when a watch begins, before any of their
//! bytes was seen; how many these are is counted by [cause](crate::causes) from then on.

use std::fs;
use std::path::{Path, PathBuf};

use crate::mounts::{self, FileSystem};

/// File servers of the kernel, by the names of their threads.
const SERVERS: [&str; 2] = ["nfsd", "ksmbd"];

/// What reads these file systems so, in words.
#[must_use]
pub fn known(file_systems: &[FileSystem]) -> Vec<String> {
    let is_watched = |path: &Path| {
        let of = mounts::file_system(path);
        of.is_ok_and(|of| file_systems.iter().any(|own| own.device == of.device))
    };
    let loops = loops(Path::new("/sys/block"), is_watched);
    let loops = loops
        .into_iter()
        .map(|(name, file)| format!("{name} of {}", file.display()));
    let servers = servers(Path::new("/proc"));
    let servers = servers
        .into_iter()
        .map(|name| format!("{name}, if it serves these files"));
    loops.chain(servers).collect()
}

/// Loop devices with a file that is watched.
fn loops(block: &Path, is_watched: impl Fn(&Path) -> bool) -> Vec<(String, PathBuf)> {
    let of = |entry: fs::DirEntry| {
        let file = fs::read_to_string(entry.path().join("loop/backing_file")).ok()?;
        let file = PathBuf::from(file.trim_end_matches('\n'));
        let name = entry.file_name().to_string_lossy().into_owned();
        is_watched(&file).then_some((name, file))
    };
    let entries = fs::read_dir(block).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries.filter_map(of).collect();
    found.sort();
    found
}

/// The file servers that run.
fn servers(processes: &Path) -> Vec<&'static str> {
    let entries = fs::read_dir(processes).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| fs::read_to_string(entry.path().join("comm")).ok());
    let names: Vec<String> = names.collect();
    let runs = |server: &&str| {
        let is_it = |name: &String| {
            let name = name.trim_end();
            name == *server || name.starts_with(&format!("{server}-"))
        };
        names.iter().any(is_it)
    };
    SERVERS.into_iter().filter(runs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_of_watched_files_and_servers_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("block/loop0/loop/backing_file", "/data/image\n");
        put("block/loop1/loop/backing_file", "/other/image\n");
        put("block/sda/dev", "8:0\n");
        let found = loops(&folder.path().join("block"), |path| {
            path.starts_with("/data")
        });
        assert_eq!(found, [("loop0".to_owned(), PathBuf::from("/data/image"))]);
        put("proc/7/comm", "nfsd\n");
        put("proc/8/comm", "nfsdcld\n");
        put("proc/uptime", "1\n");
        assert_eq!(servers(&folder.path().join("proc")), ["nfsd"]);
        put("proc/9/comm", "ksmbd-io\n");
        assert_eq!(servers(&folder.path().join("proc")), SERVERS);
    }
}
