//! Keys that no file can have, and listings that contradict the objects, on a mount.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use snapbox::cmd::cargo_bin;

use super::http_server::Server;
use super::stores::{files, mount, put};
use super::{Mounted, bytes, can_mount, eventually, folder, is_mounted, wait};

/// Attributes are believed for longer than any test takes.
const BELIEVED: [&str; 4] = ["--entry-timeout", "3600s", "--attribute-timeout", "3600s"];

/// A mount whose messages go to a file.
fn mount_with_messages(server: &Server) -> Option<(Mounted, PathBuf)> {
    if !can_mount() {
        return None;
    }
    let folder = folder();
    let (point, said) = (folder.path().join("point"), folder.path().join("said"));
    let daemon = Command::new(cargo_bin!("forerun"))
        .args(["mount", "--foreground", "--memory", "32MiB", "s3://b/d"])
        .arg(&point)
        .env("AWS_ENDPOINT_URL", server.url(""))
        .env("FORERUN_RUNTIME_DIR", folder.path().join("run"))
        .stdin(Stdio::null())
        .stderr(File::create(&said).unwrap())
        .spawn()
        .unwrap();
    wait::mounts_while("the mount appears", &daemon, || {
        is_mounted(&point) && rustix::fs::statfs(&point).is_ok()
    });
    Some((Mounted { folder, daemon }, said))
}

#[test]
fn keys_that_no_file_can_have_are_left_out_with_a_line_for_each_reason() {
    let server = Server::start();
    let mut shown: Vec<String> = (0..1200).map(|number| format!("k{number:04}")).collect();
    shown.extend(["k/x", "..x", " blank ", "a&b<c>", "ü"].map(str::to_owned));
    for name in &shown {
        put(&server, &format!("d/{name}"), 1, name.clone().into_bytes());
    }
    // The folder `k` hides the object.
    put(&server, "d/k", 1, vec![1]);
    put(&server, "d/", 1, Vec::new());
    put(&server, "d/empty/", 1, Vec::new());
    for number in 0..500 {
        let long = format!("{}{number}", "n".repeat(300));
        for part in ["/x", "./x", "../x", "c\u{1}", "z\0"] {
            put(&server, &format!("d/{part}{number}"), 1, vec![1]);
        }
        put(&server, &format!("d/{long}"), 1, vec![1]);
        put(&server, &format!("d/k0007/{long}/x"), 1, vec![1]);
    }
    shown.retain(|name| name != "k0007");
    let Some((mounted, said)) = mount_with_messages(&server) else {
        return;
    };
    let read = files(&mounted.point(""));
    let mut names: Vec<_> = read.keys().map(|path| path.to_str().unwrap()).collect();
    names.sort_unstable();
    shown.sort();
    assert_eq!(names, shown);
    for (path, content) in &read {
        assert_eq!(content, path.to_str().unwrap().as_bytes());
    }
    assert_eq!(fs::read_dir(mounted.point("empty")).unwrap().count(), 0);
    assert_eq!(fs::read_dir(mounted.point("k0007")).unwrap().count(), 0);
    let (before, _) = server.counts();
    let long = "n".repeat(256);
    let refused = fs::metadata(mounted.point(&long)).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::ENAMETOOLONG));
    let no_text = Path::new(OsStr::from_bytes(b"\xff"));
    let refused = fs::metadata(mounted.point(no_text)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound);
    assert_eq!(server.counts().0, before, "no key is asked for");
    let refused = fs::metadata(mounted.point("c\u{1}7")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotFound);
    let said = fs::read_to_string(said).unwrap();
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("left out"))
        .collect();
    for reason in [
        "an empty part",
        "a part . or ..",
        "a control character",
        "(1 to 255)",
    ] {
        let count = lines.iter().filter(|line| line.contains(reason)).count();
        assert_eq!(count, 1, "{reason}: {said}");
    }
    assert_eq!(lines.len(), 4, "{said}");
}

#[test]
fn objects_replaced_or_deleted_after_their_listing_are_an_error_once() {
    let server = Server::start();
    for number in 0..6 {
        put(&server, &format!("f/k{number}"), 1, bytes(50_000, number));
    }
    let Some(mounted) = mount(&server, "s3://b", &BELIEVED) else {
        return;
    };
    let sizes = || -> Vec<u64> {
        let listed = fs::read_dir(mounted.point("f")).unwrap();
        listed
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .collect()
    };
    assert_eq!(sizes(), [50_000; 6]);
    put(&server, "f/k0", 2, bytes(50_000, 10));
    put(&server, "f/k1", 2, bytes(70_000, 11));
    put(&server, "f/k2", 2, bytes(10, 12));
    server.delete("/b/f/k3");
    let read = |name: &str| fs::read(mounted.point(format!("f/{name}")));
    for name in ["k0", "k1", "k2"] {
        assert_eq!(
            read(name).unwrap_err().raw_os_error(),
            Some(libc::ESTALE),
            "{name}"
        );
    }
    assert_eq!(read("k3").unwrap_err().kind(), ErrorKind::NotFound);
    // A program that tries again has the new ones.
    for (name, size, seed) in [("k0", 50_000, 10), ("k1", 70_000, 11), ("k2", 10, 12)] {
        assert!(read(name).unwrap() == bytes(size, seed), "{name}");
    }
    assert_eq!(read("k3").unwrap_err().kind(), ErrorKind::NotFound);
    assert!(fs::metadata(mounted.point("f/k3")).is_err());
    for (name, seed) in [("k4", 4), ("k5", 5)] {
        assert!(read(name).unwrap() == bytes(50_000, seed), "{name}");
    }
}

#[test]
fn a_listing_that_contradicts_its_objects_gives_an_error_and_then_the_bytes() {
    let server = Server::start();
    for (number, listed) in [(0, 20_000), (1, 100_000), (2, 50_001)] {
        let path = format!("f/k{number}");
        put(&server, &path, 1, bytes(50_000, number));
        server.lists_size(&format!("/b/{path}"), listed);
    }
    let Some(mounted) = mount(&server, "s3://b", &BELIEVED) else {
        return;
    };
    for _ in 0..2 {
        for entry in fs::read_dir(mounted.point("f")).unwrap() {
            let path = entry.unwrap().path();
            let number = path.to_str().unwrap().as_bytes().last().unwrap() - b'0';
            let expected = bytes(50_000, u64::from(number));
            let mut all = Vec::new();
            let opened = File::open(&path).and_then(|mut file| file.read_to_end(&mut all));
            // Bytes before the error are those of the object.
            assert!(
                opened.is_err() || all == expected,
                "{number}: {} bytes",
                all.len()
            );
            assert!(expected.starts_with(&all), "{number}");
            eventually("the object is read", || {
                fs::read(&path).is_ok_and(|read| read == expected)
            });
        }
    }
}
