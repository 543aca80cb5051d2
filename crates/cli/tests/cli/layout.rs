//! `forerun layout`: the geometry of a file here, a reason where there is none, and refusals.

use std::process::Command;

use serde_json::Value;
use snapbox::str;

use super::{Folder, bytes, forerun, output_of};

#[test]
fn the_help() {
    forerun("layout -h").success().stdout_eq(str![[r#"
Show the devices, strips and extents of a file

Usage: forerun layout [OPTIONS] <FILE>

Arguments:
  <FILE>  A file, or a block device

Options:
      --json  Print one JSON object, with all arrays and extents
  -h, --help  Print help (see more with '--help')

"#]]);
}

#[test]
fn a_file_has_a_geometry_or_a_reason_in_words_and_in_json() {
    let folder = Folder::new();
    let file = folder.file("a", &bytes(3 << 20));
    std::fs::File::open(&file).unwrap().sync_all().unwrap();
    let said = output_of(&format!("layout {file}"));
    let json: Value = serde_json::from_str(&output_of(&format!("layout --json {file}"))).unwrap();
    assert_eq!(json["file"], *file);
    if let Some(refused) = json["refused"].as_str() {
        assert!(said.contains("layout      not known: ") && said.contains(refused));
        return assert_eq!(json["found_by"], Value::Null);
    }
    assert_eq!(json["bytes"], 3 << 20);
    assert!(said.contains("found by    FIEMAP and "), "{said}");
    let sum = |list: &str, field: &str| -> u64 {
        let items = json[list].as_array().unwrap().iter();
        items.map(|item| item[field].as_u64().unwrap()).sum()
    };
    let kinds = json["left_out"].as_object().unwrap().values();
    let left_out: u64 = kinds.map(|kind| kind["bytes"].as_u64().unwrap()).sum();
    assert_eq!(sum("extents", "length_bytes") + left_out, 3 << 20);
    assert!(sum("devices", "bytes") >= sum("extents", "length_bytes"));
}

#[test]
fn a_file_system_without_addresses_is_a_reason_and_no_failure() {
    forerun("layout /proc/self/status")
        .success()
        .stderr_eq("")
        .stdout_eq(str![[r#"
/proc/self/status

layout      not known: its file system (type 0x9fa0) is not known to give addresses of its device
            reads take the file for one run on one device

"#]]);
}

#[test]
fn a_file_of_one_hole_and_an_empty_one_have_no_place() {
    let folder = Folder::new();
    let (holes, empty) = (folder.name("holes"), folder.file("empty", b""));
    std::fs::File::create(&holes)
        .unwrap()
        .set_len(1 << 20)
        .unwrap();
    for file in [holes, empty] {
        let said = output_of(&format!("layout {file}"));
        let is_known = said.contains("layout      none: no part of it has a place on a device");
        assert!(is_known || said.contains("not known"), "{said}");
    }
}

#[test]
fn what_is_no_file_is_refused() {
    let folder = Folder::new();
    let pipe = folder.name("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let directory = folder.name("");
    for (path, why) in [
        ("/nowhere/file".to_owned(), "no such file"),
        (directory, "is a directory"),
        (pipe, "is neither a regular file nor a block device"),
    ] {
        forerun(&format!("layout {path}"))
            .code(2)
            .stdout_eq("")
            .stderr_eq(format!("forerun: {path}: {why}\n"));
    }
    forerun("layout").code(2).stdout_eq("");
}
