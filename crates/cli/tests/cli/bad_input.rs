//! Bad input: each a message that names the value and what would be accepted, and exit code 2.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use snapbox::cmd::cargo_bin;
use snapbox::{assert_data_eq, str};

use super::{Folder, forerun};

#[test]
fn a_missing_file() {
    forerun("read /nowhere/file").code(2).stderr_eq(str![[r#"
forerun: /nowhere/file: no such file

"#]]);
    forerun("bench /nowhere/file").code(2).stderr_eq(str![[r#"
forerun: /nowhere/file: no such file

"#]]);
    forerun("profile /nowhere/file").code(2).stderr_eq(str![[r#"
forerun: /nowhere/file: no such file

"#]]);
    forerun("replay /nowhere/file").code(2).stderr_eq(str![[r#"
forerun: /nowhere/file: no such file

"#]]);
    forerun("read --profile /nowhere/file Cargo.toml")
        .code(2)
        .stderr_eq(str![[r#"
forerun: /nowhere/file: no such file

"#]]);
}

#[test]
fn a_directory() {
    forerun("read /").code(2).stderr_eq(str![[r#"
forerun: /: is a directory

"#]]);
    forerun("profile /").code(2).stderr_eq(str![[r#"
forerun: /: is a directory

"#]]);
    forerun("replay /").code(2).stderr_eq(str![[r#"
forerun: /: is a directory

"#]]);
    forerun("bench / /").code(2).stderr_eq(str![[r#"
forerun: /: is a directory

"#]]);
}

#[test]
fn neither_file_nor_directory() {
    forerun("read /dev/null").code(2).stderr_eq(str![[r#"
forerun: /dev/null: is neither a regular file nor a block device

"#]]);
    forerun("profile /dev/null").code(2).stderr_eq(str![[r#"
forerun: /dev/null: is neither a regular file nor a block device

"#]]);
}

/// Root may read everything, so as root the binary runs as nobody; where nobody cannot reach the
/// binary, the test says so and uses a name that leads to itself, which nobody at all can open.
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
        Err(e) => println!("not tried as nobody, who cannot run the binary: {e}"),
    }
    let circle = folder.name("circle");
    std::os::unix::fs::symlink(&circle, &circle).unwrap();
    forerun(&format!("read {circle}"))
        .code(2)
        .stdout_eq("")
        .stderr_eq(str![[r#"
forerun: [..]/circle: Too many levels of symbolic links (os error 40)

"#]]);
}

#[test]
fn too_little_memory_or_too_much() {
    forerun("read --memory 0 Cargo.toml")
        .code(2)
        .stderr_eq(str![[r#"
forerun: --memory 0B: must be at least 271372 bytes (266KiB)

"#]]);
    forerun("bench --memory 64KiB").code(2).stderr_eq(str![[r#"
forerun: --memory 64KiB: must be at least 271372 bytes (266KiB)

"#]]);
    forerun("bench --memory 1000TiB")
        .code(2)
        .stderr_eq(str![[r#"
forerun: --memory 1000TiB: must be at most 68982946134 bytes

"#]]);
}

#[test]
fn an_unknown_preset() {
    forerun("read --preset forrun Cargo.toml")
        .code(2)
        .stderr_eq(str![[r#"
error: invalid value 'forrun' for '--preset <NAME>': no preset "forrun": nearest are forerun, mount, none

For more information, try '--help'.

"#]]);
    forerun("bench --preset cp,linux-2.6.23")
        .code(2)
        .stderr_eq(str![[r#"
error: invalid value 'linux-2.6.23' for '--preset <A,B,..>': no preset "linux-2.6.23": nearest are linux-2.6.24, linux-2.6.22, one-block, kernel, or with --hints a hinted method

For more information, try '--help'.

"#]]);
}

#[test]
fn unknown_methods_and_parameters() {
    forerun("bench --depth deep").code(2).stderr_eq(str![[r#"
error: invalid value 'deep' for '--depth <METHOD>': no depth method "deep": there is fixed, competitive, growing

For more information, try '--help'.

"#]]);
    forerun("bench --depth fixed(depth_bytes=1)")
        .code(2)
        .stderr_eq(str![[r#"
error: invalid value 'fixed(depth_bytes=1)' for '--depth <METHOD>': depth_bytes=1: must lie from 512 to 1073741824

For more information, try '--help'.

"#]]);
    forerun("bench --depth fixed(depth=4096)")
        .code(2)
        .stderr_eq(str![[r#"
error: invalid value 'fixed(depth=4096)' for '--depth <METHOD>': fixed has no parameter "depth": it takes depth_bytes

For more information, try '--help'.

"#]]);
    forerun("bench --pattern zigzag").code(2).stderr_eq(str![[r#"
error: invalid value 'zigzag' for '--pattern <NAME>': no pattern "zigzag": there is sequential, interleaved, strided, random, reordered, shuffled

For more information, try '--help'.

"#]]);
    forerun("bench --pattern strided(backward=2)")
        .code(2)
        .stderr_eq(str![[r#"
error: invalid value 'strided(backward=2)' for '--pattern <NAME>': backward=2: must lie from 0 to 1

For more information, try '--help'.

"#]]);
    forerun("bench --backend tape --file-bytes 1")
        .code(2)
        .stderr_eq(str![[r#"
error: invalid value 'tape' for '--backend <NAME>': no backend "tape": there is auto, uring, pread, memory

For more information, try '--help'.

"#]]);
}

#[test]
fn malformed_sizes_times_and_counts() {
    forerun("read --length 12parsec Cargo.toml")
        .code(2)
        .stderr_eq(str![[r#"
error: invalid value '12parsec' for '--length <SIZE>': "parsec" is not a unit of size: write it as in 64KiB, 1MiB or 100MB

For more information, try '--help'.

"#]]);
    forerun("read --offset=-1 Cargo.toml")
        .code(2)
        .stderr_eq(str![[r#"
error: invalid value '-1' for '--offset <SIZE>': "-1" is not a size: write a number and a unit, as in 64KiB, 1MiB or 100MB

For more information, try '--help'.

"#]]);
    forerun("read --read-bytes 0 Cargo.toml")
        .code(2)
        .stderr_eq(str![[r#"
error: invalid value '0' for '--read-bytes <SIZE>': must lie from 1 to 1073741824 bytes

For more information, try '--help'.

"#]]);
    forerun("bench --file-bytes 1.2.3M")
        .code(2)
        .stderr_eq(str![[r#"
error: invalid value '1.2.3M' for '--file-bytes <SIZE>': "1.2.3M" is not a size: write a number and a unit, as in 64KiB, 1MiB or 100MB

For more information, try '--help'.

"#]]);
    forerun("bench --file-bytes 100TiB")
        .code(2)
        .stderr_eq(str![[r#"
forerun: --file-bytes 109951162777600: must lie from 0 to 2199023255552

"#]]);
    forerun("bench --think 8").code(2).stderr_eq(str![[r#"
error: invalid value '8' for '--think <TIME>': "8" has no unit: write it as in 8ms, 200us or 1.5s

For more information, try '--help'.

"#]]);
    forerun("bench --readers 0").code(2).stderr_eq(str![[r#"
error: invalid value '0' for '--readers <N>': must be a whole number from 1 to 16384

For more information, try '--help'.

"#]]);
    forerun("bench --runs many").code(2).stderr_eq(str![[r#"
error: invalid value 'many' for '--runs <N>': must be a whole number from 1 to 1000

For more information, try '--help'.

"#]]);
}

#[test]
fn malformed_emulation() {
    forerun("bench --emulate 8ms").code(2).stderr_eq(str![[r#"
error: invalid value '8ms' for '--emulate <COST>': "8ms" is not of the form switching=8ms,rate=80MB/s

For more information, try '--help'.

"#]]);
    forerun("bench --emulate switching=8ms")
        .code(2)
        .stderr_eq(str![[r#"
error: invalid value 'switching=8ms' for '--emulate <COST>': rate is missing: give both, as in switching=8ms,rate=80MB/s

For more information, try '--help'.

"#]]);
    forerun("bench --emulate switching=8ms,rate=1B/s")
        .code(2)
        .stderr_eq(str![[r#"
error: invalid value 'switching=8ms,rate=1B/s' for '--emulate <COST>': transfer rate of 1 bytes/s: must lie from 1000 to 1000000000000

For more information, try '--help'.

"#]]);
}

#[test]
fn hints_that_cannot_be_given() {
    let mut said = String::new();
    for bench in [
        "bench --preset forestall",
        "bench --wrong-percent 5",
        "bench --hints --wrong-percent 101",
        "bench --hints --hinted forstall",
        "bench --hints --hinted forestall(horizon_refs=9999999)",
        "bench --hints --shared --readers 2",
        "bench --pattern shuffled(files=3)",
        "bench --disks 2",
        "bench --disks 1025 --emulate switching=8ms,rate=80MB/s",
    ] {
        let output = forerun(bench).code(2).get_output().stderr.clone();
        said.push_str(&String::from_utf8(output).unwrap());
    }
    assert_data_eq!(
        said,
        str![[r#"
forerun: --preset forestall: follows hints, and there are none: give --hints
error: the following required arguments were not provided:
  --hints

Usage: forerun bench --hints --wrong-percent <N> [DIR|FILE]...

For more information, try '--help'.
error: invalid value '101' for '--wrong-percent <N>': 101 is not in 0..=100

For more information, try '--help'.
error: invalid value 'forstall' for '--hinted <METHOD>': no hinted method "forstall": there is demand-lru, demand-opt, fixed-horizon, aggressive, reverse-aggressive, forestall

For more information, try '--help'.
error: invalid value 'forestall(horizon_refs=9999999)' for '--hinted <METHOD>': horizon_refs=9999999: must lie from 0 to 1048576

For more information, try '--help'.
forerun: --pattern shuffled: one process reads all files: leave --shared out, one reader a file
error: invalid value 'shuffled(files=3)' for '--pattern <NAME>': files is set by --readers

For more information, try '--help'.
error: the following required arguments were not provided:
  --emulate <COST>

Usage: forerun bench --emulate <COST> --disks <N> [DIR|FILE]...

For more information, try '--help'.
error: invalid value '1025' for '--disks <N>': must be a whole number from 1 to 1024

For more information, try '--help'.

"#]]
    );
}

#[test]
fn what_cannot_be_combined() {
    forerun("bench --preset kernel").code(2).stderr_eq(str![[r#"
forerun: --preset kernel: the kernel reads real files only: give a DIR or FILE

"#]]);
    forerun("bench --preset kernel --emulate switching=8ms,rate=80MB/s Cargo.toml")
        .code(2)
        .stderr_eq(str![[r#"
forerun: --preset kernel: the kernel cannot be slowed down by --emulate; linux-2.6.24 can be

"#]]);
    forerun("bench --preset kernel --clock virtual")
        .code(2)
        .stderr_eq(str![[r#"
forerun: --preset kernel: the simulator does not model the kernel; linux-2.6.24 is its algorithm

"#]]);
    forerun("bench --clock virtual Cargo.toml")
        .code(2)
        .stderr_eq(str![[r#"
forerun: --clock virtual: reads no real files: leave DIR and FILE out and give --file-bytes

"#]]);
    forerun("bench --journal /nowhere/j --preset cp,ap")
        .code(2)
        .stderr_eq(str![[r#"
forerun: --journal: records one run of one engine: give one preset (not kernel) and one run

"#]]);
    forerun("bench --journal /nowhere/j --runs 2")
        .code(2)
        .stderr_eq(str![[r#"
forerun: --journal: records one run of one engine: give one preset (not kernel) and one run

"#]]);
    forerun("bench --journal /nowhere/j")
        .code(2)
        .stderr_eq(str![[r#"
forerun: /nowhere/j: no such directory

"#]]);
}

#[test]
fn a_profile_that_is_none() {
    let folder = Folder::new();
    let wrong = folder.file(
        "wrong.toml",
        b"[[switching]]\ndistance_bytes = 0\nswitching_ms = 8\n",
    );
    let output = Command::new(cargo_bin!("forerun"))
        .args(["read", "--profile", &wrong, "Cargo.toml"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("wrong.toml: not a profile"), "{message}");
    assert!(message.contains("switching_ms"), "{message}");
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
