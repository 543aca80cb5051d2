//! `forerun read`: the bytes of the files, in order, and nothing else.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

use snapbox::cmd::cargo_bin;

use super::{Folder, bytes, forerun};

fn read(arguments: &str) -> Vec<u8> {
    let output = Command::new(cargo_bin!("forerun"))
        .arg("read")
        .args(arguments.split_whitespace())
        .output();
    let output = output.unwrap();
    assert!(
        output.status.success(),
        "{arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        output.stderr.is_empty(),
        "{arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

#[test]
fn files_come_out_as_they_are_one_after_the_other() {
    let folder = Folder::new();
    let (a, b) = (bytes(1_234_567), bytes(4096));
    let (one, two) = (folder.file("a", &a), folder.file("b", &b));
    for preset in ["forerun", "linux-2.6.22", "none"] {
        let read = read(&format!(
            "--preset {preset} --memory 1MiB {one} {two} {one}"
        ));
        assert!(read == [a.as_slice(), &b, &a].concat(), "{preset}");
    }
}

#[test]
fn odd_sizes_and_every_backend_give_the_same_bytes() {
    let folder = Folder::new();
    let whole = bytes(300_001);
    let file = folder.file("a", &whole);
    for backend in ["pread", "uring"] {
        for read_bytes in ["1000", "4096", "7777", "1MiB"] {
            let got = read(&format!(
                "--backend {backend} --read-bytes {read_bytes} {file}"
            ));
            assert!(got == whole, "{backend} {read_bytes}");
        }
    }
}

#[test]
fn a_range_is_cut_out_of_each_file_and_is_empty_past_the_end() {
    let folder = Folder::new();
    let whole = bytes(10_000);
    let file = folder.file("a", &whole);
    assert_eq!(
        read(&format!("--offset 4000 --length 200 {file}")),
        whole[4000..4200]
    );
    assert_eq!(
        read(&format!("--offset 9999 --length 1GiB {file}")),
        whole[9999..]
    );
    assert_eq!(
        read(&format!("--offset 4000 {file} {file}")),
        whole[4000..].repeat(2)
    );
    assert_eq!(read(&format!("--length 0 {file}")), b"");
    assert_eq!(read(&format!("--offset 10000 {file}")), b"");
    assert_eq!(read(&format!("--offset 18446744073709551615 {file}")), b"");
    assert_eq!(
        read(&format!("--offset 16777215TiB --length 16777215TiB {file}")),
        b""
    );
}

#[test]
fn an_empty_file_is_no_bytes() {
    let folder = Folder::new();
    let (empty, file) = (folder.file("empty", b""), folder.file("a", b"a"));
    assert_eq!(read(&empty), b"");
    assert_eq!(read(&format!("{empty} {file} {empty}")), b"a");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = Folder::new();
    let file = folder.file("a", &bytes(8 << 20));
    let mut child = Command::new(cargo_bin!("forerun"))
        .args(["read", &file])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(first, bytes(10)[..]);
}

#[test]
fn a_full_device_is_an_error() {
    let folder = Folder::new();
    let file = folder.file("a", &bytes(100));
    for words in [
        &["read", &file][..],
        &["--version"],
        &["--help"],
        &["help", "mount"],
    ] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = Command::new(cargo_bin!("forerun"))
            .args(words)
            .stdout(full)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(
            message.starts_with("forerun: cannot write the output: No space left"),
            "{words:?}: {message}"
        );
    }
}

#[test]
fn stats_add_up_and_leave_the_output_alone() {
    let folder = Folder::new();
    let whole = bytes(1 << 20);
    let file = folder.file("a", &whole);
    let output = Command::new(cargo_bin!("forerun"))
        .args(["read", "--stats", &file])
        .output()
        .unwrap();
    assert!(output.status.success() && output.stdout == whole);
    let text = String::from_utf8(output.stderr).unwrap();
    let value = |name: &str| -> u64 {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} is missing:\n{text}"))
            .parse()
            .unwrap()
    };
    assert_eq!(value("bytes"), 1 << 20);
    assert_eq!(value("reads"), 256);
    assert_eq!(
        value("reads"),
        value("hits") + value("late_hits") + value("misses")
    );
    assert!(value("memory_peak_bytes") <= 256 << 20);
    let device = text.lines().last().unwrap();
    assert!(
        device.starts_with("device ") && device.contains("  not enough requests to tell ("),
        "{text}"
    );
    // `requests` above are all; the others are named apart.
    assert!(device.ends_with(" measured requests)"), "{text}");
}

#[test]
fn a_later_file_that_is_missing_is_found_before_anything_is_written() {
    let folder = Folder::new();
    let (file, missing) = (folder.file("a", b"a"), folder.name("missing"));
    forerun(&format!("read {file} {missing}"))
        .code(2)
        .stdout_eq("");
}

#[test]
fn a_later_file_that_goes_away_is_a_failure_with_the_bytes_before_it_written() {
    let folder = Folder::new();
    let whole = bytes(4 << 20);
    let (file, later) = (folder.file("a", &whole), folder.file("b", b"b"));
    let mut child = Command::new(cargo_bin!("forerun"))
        .args(["read", &file, &later])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // All were looked at by then, and a pipe holds a part of the first alone.
    let mut read = vec![0];
    let mut output = child.stdout.take().unwrap();
    output.read_exact(&mut read).unwrap();
    fs::remove_file(&later).unwrap();
    output.read_to_end(&mut read).unwrap();
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains(&later) && read == whole, "{said}");
}

#[test]
fn an_emulated_device_takes_its_time() {
    let folder = Folder::new();
    let file = folder.file("a", &bytes(1 << 20));
    let begun = std::time::Instant::now();
    read(&format!("--emulate switching=1ms,rate=4MB/s {file}"));
    let elapsed = begun.elapsed();
    // A switch and the transfer are the least; how much the machine adds is the machine's.
    assert!(elapsed.as_micros() >= 1_000 + 262_144, "{elapsed:?}");
}

/// With it, objects are read: `crates/store`.
#[cfg(not(feature = "object-store"))]
#[test]
fn an_address_names_the_installations_that_read_it() {
    forerun("read s3://bucket/key")
        .code(2)
        .stdout_eq("")
        .stderr_eq(
            "forerun: s3://bucket/key: is an address, and this forerun was built without object stores: `make install`, \
             the packages and `cargo install --path crates/cli` have them\n",
        );
}
