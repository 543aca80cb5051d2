//! Objects of a store by their addresses, in the commands that read files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use forerun::profile_file;
use serde_json::Value;
use snapbox::cmd::cargo_bin;

use super::Folder;
use super::http_server::Server;
use super::http_server::objects::{BYTES, content};

/// The binary, whose only store is this server.
fn forerun(server: &Server, arguments: &str) -> (i32, String, String) {
    let output = Command::new(cargo_bin!("forerun"))
        .args(arguments.split_whitespace())
        .env("AWS_ENDPOINT_URL", server.url(""))
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    (code, text(output.stdout), text(output.stderr))
}

#[test]
fn a_bench_reads_objects_with_each_preset_and_each_byte_of_them() {
    let server = Server::start();
    server.put("/b/one", "1", content(1));
    server.put("/b/two", "2", content(2));
    let words = "bench s3://b/one s3://b/two --preset none,forerun --format json --memory 4MiB";
    let (code, rows, said) = forerun(&server, words);
    assert_eq!((code, said.as_str()), (0, ""), "{rows}");
    let rows: Vec<Value> = rows
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let presets: Vec<&str> = rows
        .iter()
        .filter_map(|row| row["preset"].as_str())
        .collect();
    assert_eq!(presets, ["none", "forerun"]);
    for row in &rows {
        assert_eq!(row["bytes"], 2 * BYTES, "{row}");
    }
}

#[test]
fn the_device_of_objects_is_named_as_a_store() {
    let server = Server::start();
    server.put("/b/one", "1", vec![b'1'; 100_000]);
    let (code, _, said) = forerun(&server, "read --stats s3://b/one");
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("\ndevice store  "), "{said}");
}

#[test]
fn a_read_that_has_its_bytes_ends_though_requests_ahead_of_it_are_never_answered() {
    let server = Server::start();
    server.put_zeros("/b/one", 64 << 20);
    server.is_silent_from(1 << 20);
    let (code, bytes, said) = forerun(&server, "read --length 1MiB s3://b/one");
    assert_eq!((code, bytes.len()), (0, 1 << 20), "{said}");
    let (unanswered, _) = server.waiting();
    assert!(unanswered > 0, "nothing was fetched ahead");
}

#[test]
fn a_bench_of_a_folder_reads_the_objects_below_it() {
    let server = Server::start();
    server.list(3);
    for key in 0..3 {
        server.put(&format!("/b/k{key:06}"), "1", vec![1; key]);
    }
    let words = "bench s3://b/ --preset none --format json --memory 4MiB --pattern sequential";
    let (code, rows, said) = forerun(&server, words);
    assert_eq!((code, said.as_str()), (0, ""), "{rows}");
    let row: Value = serde_json::from_str(&rows).unwrap();
    assert_eq!(
        (&row["readers"], &row["bytes"]),
        (&3.into(), &3.into()),
        "{row}"
    );
}

#[test]
fn the_kernel_and_objects_that_are_not_there_are_refused_by_name() {
    let server = Server::start();
    server.put("/b/one", "1", content(1));
    for (words, expected) in [
        (
            "bench s3://b/one --preset kernel",
            "forerun: --preset kernel: the kernel reads no objects of stores\n",
        ),
        (
            "bench s3://b/none",
            "forerun: s3://b/none: No such file or directory (os error 2)\n",
        ),
        (
            "profile s3://b/none",
            "forerun: s3://b/none: No such file or directory (os error 2)\n",
        ),
        (
            "profile s3://b/one",
            "forerun: s3://b/one: 3146505B are too few to measure: must be at least 16MiB\n",
        ),
    ] {
        assert_eq!(
            forerun(&server, words),
            (2, String::new(), expected.to_owned()),
            "{words}"
        );
    }
}

#[test]
fn a_profile_of_a_store_is_measured_written_and_taken() {
    let server = Server::start();
    server.put("/b/large", "1", vec![7; 17 << 20]);
    let folder = Folder::new();
    let profile = folder.name("store.toml");
    let (code, said, error) = forerun(&server, &format!("profile s3://b/large -o {profile}"));
    assert_eq!((code, error.as_str()), (0, ""), "{said}");
    assert!(
        said.contains("s3://b/large, ") && said.contains("none is advised"),
        "{said}"
    );
    let written = profile_file::load(profile.as_ref()).unwrap();
    assert!((1..=64).contains(&written.servers()), "{said}");
    let words = format!("read s3://b/large --profile {profile} --length 1MiB");
    assert_eq!(forerun(&server, &words).0, 0);
}

/// An address that ends in `/` stands for the objects directly below it, without those that have no name.
#[test]
fn a_folder_of_objects_is_read_whatever_other_keys_it_has() {
    let server = Server::start();
    for (key, content) in [
        ("a", "1"),
        ("b", "2"),
        ("k", "hidden"),
        ("k/x", "deeper"),
        ("z ", "3"),
    ] {
        server.put(&format!("/b/d/{key}"), "1", content.into());
    }
    for number in 0..40 {
        for key in ["/x", "../x", "c\u{1}"] {
            server.put(&format!("/b/d/{key}{number}"), "1", vec![b'x']);
        }
    }
    server.put(&format!("/b/d/l{}", "n".repeat(300)), "1", b"long".to_vec());
    let (code, read, said) = forerun(&server, "read s3://b/d/");
    assert_eq!((code, read.as_str()), (0, "12long3"), "{said}");
    assert_eq!(said.matches("left out").count(), 3, "{said}");
    let (code, read, said) = forerun(&server, "read s3://b/none/");
    assert_eq!((code, read.as_str()), (2, ""), "{said}");
    assert!(
        said.contains("s3://b/none/: there is no object directly below it"),
        "{said}"
    );
}

#[test]
fn a_later_object_that_is_missing_is_found_before_anything_is_written() {
    let (server, folder) = (Server::start(), Folder::new());
    let file = folder.file("a", b"file ");
    for key in 0..40 {
        server.put(&format!("/b/k{key}"), "1", format!("{key} ").into());
    }
    let all: Vec<String> = (0..40).map(|key| format!("s3://b/k{key}")).collect();
    let (first, all) = (&all[0], all.join(" "));
    let journal = folder.name("journal");
    for words in [
        format!("{first} s3://b/none"),
        format!("{file} {first} s3://b/none s3://b/other"),
        format!("s3://b/none {file}"),
        format!("{all} s3://b/none {first}"),
    ] {
        let (code, read, said) = forerun(&server, &format!("read --journal {journal} {words}"));
        assert_eq!((code, read.as_str()), (2, ""), "{words}: {said}");
        assert!(
            said.contains("s3://b/none: No such file"),
            "{words}: {said}"
        );
        assert!(!folder.path("journal").exists(), "{words}");
    }
    let (code, read, said) = forerun(&server, &format!("read {all} {file} {first}"));
    let numbers: String = (0..40).map(|key| format!("{key} ")).collect();
    assert_eq!((code, read), (0, numbers + "file 0 "), "{said}");
}

/// A flag that says nothing about the paths is refused before anything is opened.
#[test]
fn a_flag_that_does_nothing_for_the_paths_is_bad_input() {
    let (server, folder) = (Server::start(), Folder::new());
    let (file, point) = (folder.file("file", &[1; 5000]), folder.path("point"));
    fs::create_dir(&point).unwrap();
    let (point, dir) = (point.display(), folder.name(""));
    let web = server.url("/b/a");
    for (words, why) in [
        (format!("try --anonymous {dir}"), "--anonymous"),
        (format!("read --anonymous {file}"), "--anonymous"),
        (format!("read --anonymous {web}"), "--anonymous"),
        (format!("profile --anonymous {file}"), "--anonymous"),
        (
            format!("bench --anonymous {file} --preset none"),
            "--anonymous",
        ),
        ("bench --anonymous --preset none".to_owned(), "--anonymous"),
        (format!("mount --anonymous {dir} {point}"), "--anonymous"),
        (format!("mount -o anonymous {dir} {point}"), "--anonymous"),
        (
            "read --stripe strip=64KiB,disks=4 s3://b/a".to_owned(),
            "--stripe",
        ),
        ("read --backend pread s3://b/a".to_owned(), "--backend"),
        (format!("mount --backend pread s3://b {point}"), "--backend"),
        (
            format!("mount --passthrough always s3://b {point}"),
            "--passthrough always",
        ),
    ] {
        let (code, read, said) = forerun(&server, &words);
        assert_eq!((code, read.as_str()), (2, ""), "{words}: {said}");
        assert!(said.contains(&format!("{why}: ")), "{words}: {said}");
    }
    assert_eq!(server.counts().0, 0);
}

/// A trial of objects, by a program that finds the other programs of this folder alone.
fn trial(server: &Server, path: &Folder, words: &str) -> (Option<i32>, String) {
    let output = Command::new(cargo_bin!("forerun"))
        .args([
            "try",
            "--seconds",
            "15",
            "--readers",
            "2",
            "--memory",
            "16MiB",
        ])
        .args(words.split_whitespace())
        .env("AWS_ENDPOINT_URL", server.url(""))
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("FORERUN_RUNTIME_DIR", path.path("run"))
        .env("PATH", path.path(""))
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn a_trial_reads_objects_by_ranges_and_through_forerun_and_names_a_peer_that_cannot() {
    let (server, path) = (Server::start(), Folder::new());
    for key in 0..3 {
        server.put(&format!("/b/p/f/{key}"), "1", vec![1; 3 << 20]);
    }
    let (code, said) = trial(&server, &path, "s3://b/p");
    assert_eq!(code, Some(0), "{said}");
    for words in [
        "s3://b/p: 3 objects, 9.44 MB. Read in turns, for at most 15 s",
        "Neither rclone, s3fs-fuse nor Python's s3fs is installed",
        "\n1 reader, ranges ",
        "\n2 readers, ranges ",
        "\nBeside ranges: ",
    ] {
        assert!(said.contains(words), "{words}:\n{said}");
    }
    let rclone = path.file(
        "rclone",
        b"#!/bin/sh\n[ $1 = version ] || { echo no such remote >&2; exit 3; }\n",
    );
    fs::set_permissions(rclone, fs::Permissions::from_mode(0o755)).unwrap();
    let (code, said) = trial(&server, &path, "s3://b/p");
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("Without rclone, which cannot read this: no such remote\n"),
        "{said}"
    );
    assert!(
        said.contains("\nBeside ranges: ") && !said.contains("Beside rclone"),
        "{said}"
    );
    let (code, said) = trial(&server, &path, "s3://b/none");
    assert_eq!(code, Some(2), "{said}");
    server.put("/b/q/small", "1", vec![1; 100]);
    let (code, said) = trial(&server, &path, "s3://b/q");
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("100 bytes in 1 files are too few to measure"),
        "{said}"
    );
}

/// The exit code alone.
fn code_of(server: &Server, words: &str) -> Option<i32> {
    let output = Command::new(cargo_bin!("forerun"))
        .args(words.split_whitespace())
        .env("AWS_ENDPOINT_URL", server.url(""))
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .output()
        .unwrap();
    output.status.code()
}

/// The flag counts, although there are credentials.
#[test]
fn no_request_is_signed_where_the_user_says_so() {
    let server = Server::start();
    server.put("/b/one", "1", content(1));
    let signed = || {
        let lines = server.lines().into_iter();
        lines
            .filter(|line| line.to_lowercase().starts_with("authorization:"))
            .count()
    };
    for words in [
        "read s3://b/one",
        "bench s3://b/one --preset none --memory 4MiB",
    ] {
        // The object has bytes that are no text.
        let code = code_of(&server, &format!("{words} --anonymous"));
        assert_eq!(code, Some(0), "{words}");
        assert_eq!(signed(), 0, "{words}");
    }
    assert_eq!(code_of(&server, "read s3://b/one"), Some(0));
    assert!(signed() > 0);
}
