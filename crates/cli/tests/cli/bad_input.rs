//! Bad input: each a message that names the value and the accepted ones, and exit code 2.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use snapbox::cmd::cargo_bin;
use snapbox::{assert_data_eq, str};

use super::{Folder, forerun};

/// The binary's answers to each of these, as a table of commands and answers. Each is refused with
/// code 2, and nothing goes to stdout. The end that all messages about arguments have is left out.
fn refused(commands: &[&str]) -> String {
    const HELP: &str = "\n\nFor more information, try '--help'.\n";
    let mut table = String::new();
    for command in commands {
        let refused = forerun(command).code(2).stdout_eq("");
        let said = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
        let is_about_arguments = said.starts_with("error: ");
        let text = said.strip_suffix(HELP);
        assert_eq!(text.is_some(), is_about_arguments, "{command}: {said}");
        let text = text.unwrap_or(said.trim_end());
        table.push_str(&format!("$ forerun {command}\n{text}\n"));
    }
    table
}

#[test]
fn a_log_filter_that_cannot_be_read_is_named() {
    let mut command = Command::new(cargo_bin!("forerun"));
    let output = command
        .arg("list")
        .env("FORERUN_LOG", "forerun_io=loud")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.starts_with("forerun: FORERUN_LOG=forerun_io=loud: "),
        "{said}"
    );
}

#[test]
fn commands_for_files_alone_refuse_addresses_by_name() {
    for command in ["layout s3://b/a", "layout https://h/a"] {
        let output = forerun(command).code(2).get_output().clone();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.contains("address of an object, which read, profile, bench, try and mount take"),
            "{said}"
        );
    }
}

#[test]
fn a_missing_file() {
    let said = refused(&[
        "read /nowhere/file",
        "bench /nowhere/file",
        "profile /nowhere/file",
        "replay /nowhere/file",
        "read --profile /nowhere/file Cargo.toml",
    ]);
    assert_data_eq!(
        said,
        str![[r#"
$ forerun read /nowhere/file
forerun: /nowhere/file: no such file
$ forerun bench /nowhere/file
forerun: /nowhere/file: no such file
$ forerun profile /nowhere/file
forerun: /nowhere/file: no such file
$ forerun replay /nowhere/file
forerun: /nowhere/file: no such file
$ forerun read --profile /nowhere/file Cargo.toml
forerun: /nowhere/file: no such file

"#]]
    );
}

#[test]
fn a_directory() {
    let said = refused(&[
        "read /",
        "read Cargo.toml src",
        "profile /",
        "replay /",
        "bench / /",
    ]);
    assert_data_eq!(
        said,
        str![[r#"
$ forerun read /
forerun: /: is a directory: name its files, as /*
$ forerun read Cargo.toml src
forerun: src: is a directory: name its files, as src/*
$ forerun profile /
forerun: /: is a directory: name a large file in it, which need not be used for anything else
$ forerun replay /
forerun: /: is a directory
$ forerun bench / /
forerun: /: is a directory: name it alone, to make files in, or its files, as /*

"#]]
    );
}

#[test]
fn neither_file_nor_directory() {
    let said = refused(&["read /dev/null", "profile /dev/null"]);
    assert_data_eq!(
        said,
        str![[r#"
$ forerun read /dev/null
forerun: /dev/null: is neither a regular file nor a block device
$ forerun profile /dev/null
forerun: /dev/null: is neither a regular file nor a block device

"#]]
    );
}

/// Root may read everything, so as root the binary runs as the user `nobody`; if that user cannot
/// reach the binary, the test says so and uses a name that leads to itself, which no user can open.
#[test]
fn an_unreadable_file() {
    let folder = Folder::new();
    let file = folder.file("secret", b"secret");
    fs::set_permissions(&file, Permissions::from_mode(0o000)).unwrap();
    let mut command = Command::new(cargo_bin!("forerun"));
    if rustix::process::geteuid().is_root() {
        fs::set_permissions(folder.path(""), Permissions::from_mode(0o755)).unwrap();
        command.uid(65_534).gid(65_534);
    }
    match command.args(["read", &file]).output() {
        Ok(output) => {
            let message = String::from_utf8_lossy(&output.stderr);
            assert_eq!(message, format!("forerun: {file}: permission denied\n"));
            assert_eq!(output.status.code(), Some(2));
            assert!(output.stdout.is_empty());
        }
        Err(e) => crate::skipped::skipped(format!("the user nobody cannot run the binary: {e}")),
    }
    let circle = folder.name("circle");
    std::os::unix::fs::symlink(&circle, &circle).unwrap();
    forerun(&format!("read {circle}"))
        .code(2)
        .stdout_eq("")
        .stderr_eq(str![[r#"
forerun: [..]/circle: Too many levels of symbolic links

"#]]);
}

#[test]
fn too_little_memory_or_too_much() {
    let said = refused(&[
        "read --memory 0 Cargo.toml",
        "bench --memory 64KiB",
        "bench --memory 1000TiB",
    ]);
    assert_data_eq!(
        said,
        str![[r#"
$ forerun read --memory 0 Cargo.toml
forerun: --memory 0B: must be at least 271372 bytes (266KiB)
$ forerun bench --memory 64KiB
forerun: --memory 64KiB: must be at least 271372 bytes (266KiB)
$ forerun bench --memory 1000TiB
forerun: --memory 1000TiB: must be at most 64GiB

"#]]
    );
}

#[test]
fn an_unknown_preset() {
    let said = refused(&[
        "read --preset forrun Cargo.toml",
        "bench --preset cp,linux-2.6.23",
    ]);
    assert_data_eq!(
        said,
        str![[r#"
$ forerun read --preset forrun Cargo.toml
error: invalid value 'forrun' for '--preset <NAME>': no preset "forrun": nearest are forerun, mount, once
$ forerun bench --preset cp,linux-2.6.23
error: invalid value 'linux-2.6.23' for '--preset <A,B,..>': no preset "linux-2.6.23": nearest are linux-2.6.24, linux-2.6.3, linux-2.6.22, kernel, or with --hints a hinted method

"#]]
    );
}

#[test]
fn unknown_methods_and_parameters() {
    let said = refused(&[
        "bench --depth deep",
        "bench --depth fixed(depth_bytes=1)",
        "bench --depth fixed(depth_bytes=-1)",
        "bench --depth fixed(depth=4096)",
        "bench --pattern zigzag",
        "bench --pattern strided(backward=2)",
        "bench --backend tape --file-bytes 1",
    ]);
    assert_data_eq!(
        said,
        str![[r#"
$ forerun bench --depth deep
error: invalid value 'deep' for '--depth <METHOD>': no depth method "deep": there is growing, fixed, competitive, turn
$ forerun bench --depth fixed(depth_bytes=1)
error: invalid value 'fixed(depth_bytes=1)' for '--depth <METHOD>': depth_bytes=1: must be a whole number from 512 to 1073741824
$ forerun bench --depth fixed(depth_bytes=-1)
error: invalid value 'fixed(depth_bytes=-1)' for '--depth <METHOD>': depth_bytes="-1": must be a whole number from 512 to 1073741824
$ forerun bench --depth fixed(depth=4096)
error: invalid value 'fixed(depth=4096)' for '--depth <METHOD>': fixed has no parameter "depth": it takes depth_bytes
$ forerun bench --pattern zigzag
error: invalid value 'zigzag' for '--pattern <NAME>': no pattern "zigzag": there is sequential, interleaved, intermixed, strided, random, reordered, shuffled, one-whole, one-rand, two-rand, four-64kb, clients
$ forerun bench --pattern strided(backward=2)
error: invalid value 'strided(backward=2)' for '--pattern <NAME>': backward=2: must be a whole number from 0 to 1
$ forerun bench --backend tape --file-bytes 1
error: invalid value 'tape' for '--backend <NAME>': no backend "tape": there is auto, uring, pread, memory

"#]]
    );
}

#[test]
fn malformed_sizes_times_and_counts() {
    let said = refused(&[
        "read --length 12parsec Cargo.toml",
        "read --offset=-1 Cargo.toml",
        "read --read-bytes 0 Cargo.toml",
        "bench --file-bytes 1.2.3M",
        "bench --file-bytes 100TiB",
        "bench --think 8",
        "bench --readers 0",
        "bench --runs many",
        "bench --longest-wait 0s",
        "bench --longest-wait 2h",
        "bench --longest-wait 1s --preset linux-2.6.24 --file-bytes 1",
    ]);
    assert_data_eq!(
        said,
        str![[r#"
$ forerun read --length 12parsec Cargo.toml
error: invalid value '12parsec' for '--length <SIZE>': "parsec" is not a unit of size: write it as in 64KiB, 1MiB or 100MB
$ forerun read --offset=-1 Cargo.toml
error: invalid value '-1' for '--offset <SIZE>': "-1" is less than 0: write it as in 64KiB, 1MiB or 100MB
$ forerun read --read-bytes 0 Cargo.toml
error: invalid value '0' for '--read-bytes <SIZE>': must lie from 1 to 1073741824 bytes
$ forerun bench --file-bytes 1.2.3M
error: invalid value '1.2.3M' for '--file-bytes <SIZE>': "1.2.3M" is not a size: write a number and a unit, as in 64KiB, 1MiB or 100MB
$ forerun bench --file-bytes 100TiB
forerun: --file-bytes 100TiB: must lie from 0B to 2TiB
$ forerun bench --think 8
error: invalid value '8' for '--think <TIME>': "8" has no unit: write it as in 8ms, 200us or 1.5s
$ forerun bench --readers 0
error: invalid value '0' for '--readers <N>': must be a whole number from 1 to 16384
$ forerun bench --runs many
error: invalid value 'many' for '--runs <N>': must be a whole number from 1 to 1000
$ forerun bench --longest-wait 0s
error: invalid value '0s' for '--longest-wait <TIME>': must lie from 1ms to 3600s
$ forerun bench --longest-wait 2h
error: invalid value '2h' for '--longest-wait <TIME>': must lie from 1ms to 3600s
$ forerun bench --longest-wait 1s --preset linux-2.6.24 --file-bytes 1
forerun: --longest-wait: readers have no turns with --dispatch fifo

"#]]
    );
}

#[test]
fn malformed_emulation() {
    let said = refused(&[
        "bench --emulate 8ms",
        "bench --emulate switching=8ms",
        "bench --emulate switching=8ms,rate=1B/s",
    ]);
    assert_data_eq!(
        said,
        str![[r#"
$ forerun bench --emulate 8ms
error: invalid value '8ms' for '--emulate <COST>': "8ms" is not of the form switching=8ms,rate=80MB/s[,servers=1][,disks=4,strip=64KiB]
$ forerun bench --emulate switching=8ms
error: invalid value 'switching=8ms' for '--emulate <COST>': rate is missing: give at least switching and rate, as in switching=8ms,rate=80MB/s
$ forerun bench --emulate switching=8ms,rate=1B/s
error: invalid value 'switching=8ms,rate=1B/s' for '--emulate <COST>': rate_bytes_per_second=1: must be a whole number from 1000 to 1000000000000

"#]]
    );
}

#[test]
fn hints_that_cannot_be_given() {
    let said = refused(&[
        "bench --preset forestall",
        "bench --wrong-percent 5",
        "bench --hints --wrong-percent 101",
        "bench --hints --hinted forstall",
        "bench --hints --hinted forestall(horizon_refs=9999999)",
        "bench --pattern random(reads=3,reads=4)",
        "bench --hints --shared --readers 2",
        "bench --pattern shuffled(files=3)",
        "bench --disks 2",
        "bench --disks 1025 --emulate switching=8ms,rate=80MB/s",
    ]);
    assert_data_eq!(
        said,
        str![[r#"
$ forerun bench --preset forestall
forerun: --preset forestall: follows hints, and there are none: give --hints
$ forerun bench --wrong-percent 5
error: the following required arguments were not provided:
  --hints

Usage: forerun bench --hints --wrong-percent <N> [DIR|FILE]...
$ forerun bench --hints --wrong-percent 101
error: invalid value '101' for '--wrong-percent <N>': must be a whole number from 0 to 100
$ forerun bench --hints --hinted forstall
error: invalid value 'forstall' for '--hinted <METHOD>': no hinted method "forstall": there is forestall, demand-lru, demand-opt, fixed-horizon, aggressive, reverse-aggressive
$ forerun bench --hints --hinted forestall(horizon_refs=9999999)
error: invalid value 'forestall(horizon_refs=9999999)' for '--hinted <METHOD>': horizon_refs=9999999: must be a whole number from 0 to 1048576
$ forerun bench --pattern random(reads=3,reads=4)
error: invalid value 'random(reads=3,reads=4)' for '--pattern <NAME>': reads is given twice
$ forerun bench --hints --shared --readers 2
forerun: --pattern shuffled: one process reads all files: leave --shared out, one reader a file
$ forerun bench --pattern shuffled(files=3)
error: invalid value 'shuffled(files=3)' for '--pattern <NAME>': files is set by --readers
$ forerun bench --disks 2
error: the following required arguments were not provided:
  --emulate <COST>

Usage: forerun bench --emulate <COST> --disks <N> [DIR|FILE]...
$ forerun bench --disks 1025 --emulate switching=8ms,rate=80MB/s
error: invalid value '1025' for '--disks <N>': must be a whole number from 1 to 1024

"#]]
    );
}

#[test]
fn what_cannot_be_combined() {
    let said = refused(&[
        "bench --preset kernel",
        "bench --preset kernel --emulate switching=8ms,rate=80MB/s Cargo.toml",
        "bench --preset kernel --clock virtual",
        "bench --clock virtual Cargo.toml",
        "bench --journal /nowhere/j --preset cp,ap",
        "bench --journal /nowhere/j --runs 2",
        "bench --journal /nowhere/j",
        "read --next-file history Cargo.toml",
        "bench --next-file none",
    ]);
    assert_data_eq!(
        said,
        str![[r#"
$ forerun bench --preset kernel
forerun: --preset kernel: the kernel reads real files only: give a DIR or FILE
$ forerun bench --preset kernel --emulate switching=8ms,rate=80MB/s Cargo.toml
forerun: --preset kernel: the kernel cannot be slowed down by --emulate; linux-2.6.24 can be
$ forerun bench --preset kernel --clock virtual
forerun: --preset kernel: its page cache is modelled by `forerun simulate` alone; linux-2.6.24 is its algorithm
$ forerun bench --clock virtual Cargo.toml
forerun: --clock virtual: reads no real files: leave DIR and FILE out and give --file-bytes
$ forerun bench --journal /nowhere/j --preset cp,ap
forerun: --journal: records one run of one engine: give one preset (not kernel) and one run
$ forerun bench --journal /nowhere/j --runs 2
forerun: --journal: records one run of one engine: give one preset (not kernel) and one run
$ forerun bench --journal /nowhere/j
forerun: /nowhere/j: no such directory
$ forerun read --next-file history Cargo.toml
forerun: --next-file history(confirm=2,files=4096,bytes=0,links=65536): programs walk folders below a mount only
$ forerun bench --next-file none
forerun: --next-file none: programs walk folders below a mount only

"#]]
    );
}

#[test]
fn a_profile_that_is_none_is_one_line_and_nothing_of_it_reaches_the_terminal() {
    let folder = Folder::new();
    let said = |content: &[u8]| {
        let file = folder.file("wrong", content);
        let output = Command::new(cargo_bin!("forerun"))
            .args(["read", "--profile", &file, "Cargo.toml"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        let message = String::from_utf8(output.stderr).unwrap();
        let message = message.strip_prefix(&format!("forerun: {file}: "));
        message.unwrap().to_owned()
    };
    let misspelt = b"[[switching]]\ndistance_bytes = 0\nswitching_ms = 8\n";
    assert_eq!(
        said(misspelt),
        "not a profile: line 3: unknown field `switching_ms`, expected `distance_bytes` or `switching_ns`\n"
    );
    assert_eq!(said(b"servers = 1\n\x1b[2J = 7\n"), "is not text\n");
    assert_eq!(said(&[0; 1000]), "is not text\n");
    assert_eq!(said(b"\x89PNG\r\n\x1a\n"), "is not text\n");
    assert_eq!(said(&[b'a'; 300_000]), "larger than 262144 bytes\n");
    let one_key = said(&[b'a'; 200_000]);
    assert!(one_key.starts_with("not a profile: line 1: "), "{one_key}");
    assert!(one_key.len() < 100, "{one_key}");
}

#[test]
fn more_open_files_than_descriptors() {
    let folder = Folder::new();
    let command = format!(
        "ulimit -n 40; exec {} bench --readers 100 --file-bytes 4KiB {}",
        cargo_bin!("forerun").display(),
        folder.name("")
    );
    let output = Command::new("sh").args(["-c", &command]).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(
        message.contains("too many open files (the limit is 40"),
        "{message}"
    );
}

#[test]
fn an_output_that_would_replace_an_input() {
    let folder = Folder::new();
    let file = folder.file("a", &super::bytes(16 << 20));
    for command in [
        format!("read --journal {file} {file}"),
        format!("bench --journal {file} {file}"),
        format!("profile {file} -o {file}"),
    ] {
        forerun(&command)
            .code(2)
            .stdout_eq("")
            .stderr_eq("forerun: [..]/a: is to be read, so it is not written\n");
    }
    assert!(fs::read(&file).unwrap() == super::bytes(16 << 20));
}

#[test]
fn a_journal_replaces_a_journal_and_no_other_file() {
    let folder = Folder::new();
    let (file, kept, journal) = (
        folder.file("a", &super::bytes(1 << 20)),
        folder.file("film", b"\0\0\0 ftyp"),
        folder.name("journal"),
    );
    let made = folder.name("made");
    fs::create_dir(&made).unwrap();
    for command in [
        format!("read --journal {kept} {file}"),
        format!("bench --journal {kept} --file-bytes 1MB"),
        format!("bench --journal {kept} --file-bytes 1MB {made}"),
        format!("bench --journal {kept} --file-bytes 1MB --clock virtual"),
        format!("watch --journal {kept} {made}"),
    ] {
        forerun(&command).code(2).stdout_eq("").stderr_eq(
            "forerun: [..]/film: exists already and is no journal: a journal replaces journals only\n",
        );
    }
    assert_eq!(fs::read(&kept).unwrap(), b"\0\0\0 ftyp");
    assert_eq!(fs::read_dir(&made).unwrap().count(), 0);
    for _ in 0..2 {
        forerun(&format!("read --journal {journal} {file}")).success();
        forerun(&format!("replay {journal}")).success();
    }
}

#[test]
fn nothing_is_made_before_all_arguments_are_looked_at() {
    let folder = Folder::new();
    let (made, missing) = (folder.name("made"), folder.name("missing/out"));
    fs::create_dir(&made).unwrap();
    let rows = folder.file("rows", b"{}\n");
    let trace = folder.file("t", b"0,8,512,r,0.1\n");
    let plan = folder.file(
        "plan.toml",
        format!("trace = {trace:?}\npreset = \"none\"\n").as_bytes(),
    );
    let refused = |command: &str, why: &str| {
        forerun(command)
            .code(2)
            .stderr_eq(format!("forerun: {why}\n"));
    };
    refused(
        &format!("bench --file-bytes 1MB {made} --profile {missing}"),
        "[..]missing/out: no such file",
    );
    for command in [
        format!("bench --file-bytes 1MB {made} --journal"),
        format!("trace convert {trace} --to plain -o"),
        "trace sample web -o".to_owned(),
        format!("report {rows} -o"),
        format!("sweep {plan} -o"),
        "doctor --bundle".to_owned(),
        "man --output".to_owned(),
    ] {
        let why = "[..]missing/out: no such directory";
        refused(&format!("{command} {missing}"), why);
    }
    refused(
        &format!("man --output {trace}"),
        "[..]/t: is not a directory",
    );
    assert_eq!(fs::read_dir(&made).unwrap().count(), 0);
    assert_eq!(fs::read_dir(folder.name("")).unwrap().count(), 4);
}
