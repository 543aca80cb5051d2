//! `forerun profile`: a real measurement of a small file, and errors that stop one.

use std::fs::{self, File};
use std::process::Command;

use forerun::profile_file;
use snapbox::cmd::cargo_bin;

use super::skipped::skipped;
use super::{Folder, bytes, forerun, output_of};

#[test]
fn a_measured_profile_is_printed_written_and_taken() {
    let folder = Folder::new();
    let (file, profile) = (
        folder.file("a", &bytes(24 << 20)),
        folder.name("profile.toml"),
    );
    File::open(&file).unwrap().sync_all().unwrap();
    let refused = Command::new(cargo_bin!("forerun"))
        .args(["profile", &file])
        .output()
        .unwrap();
    if String::from_utf8_lossy(&refused.stderr).contains("does not take direct reads") {
        skipped("temporary files cannot be read directly here");
        return;
    }
    let said = output_of(&format!("profile {file} -o {profile}"));
    for title in [
        "switching cost",
        "transfer rate",
        "competitive depth",
        "requests at once",
        "read_ahead_kb      ",
    ] {
        assert!(said.contains(title), "{said}");
    }
    let written = profile_file::load(profile.as_ref()).unwrap();
    assert!(written.servers() < forerun_core::profile::SERVERS_MAX);
    assert!(
        said.contains("stays: to try another takes a file of 64MiB"),
        "{said}"
    );
    assert!(written.switching_points().len() >= 3 && written.rate_points().len() >= 4);
    let text = fs::read_to_string(&profile).unwrap();
    assert!(text.starts_with("# Written by forerun"), "{text}");
    forerun(&format!("read --profile {profile} --preset cp {file}")).success();
    output_of(&format!(
        "bench --clock virtual --profile {profile} --file-bytes 1MB"
    ));
}

#[test]
fn too_small_a_file_names_the_least() {
    let folder = Folder::new();
    let file = folder.file("a", &bytes(100_000));
    forerun(&format!("profile {file}"))
        .code(2)
        .stdout_eq("")
        .stderr_eq("forerun: [..]/a: 100000B are too few to measure: must be at least 16MiB\n");
}

#[test]
fn holes_are_not_measured() {
    let folder = Folder::new();
    let file = folder.name("holes");
    File::create(&file).unwrap().set_len(64 << 20).unwrap();
    forerun(&format!("profile {file}"))
        .code(2)
        .stderr_eq("forerun: [..]/holes: only 0B of 64MiB are stored, the rest are holes\n");
}

#[test]
fn a_profile_that_cannot_be_written_is_found_before_measuring() {
    let folder = Folder::new();
    let file = folder.file("a", &bytes(16 << 20));
    forerun(&format!("profile {file} -o /nowhere/profile.toml"))
        .code(2)
        .stdout_eq("")
        .stderr_eq("forerun: /nowhere/profile.toml: no such directory\n");
}
