//! Reports and requests of a running mount: control socket, metrics, `top`, fstab.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use snapbox::cmd::cargo_bin;

use super::{Mounted, bytes, can_mount, eventually, folder, forerun, is_mounted, take_off, wait};

fn ctl(socket: &Path, words: &[&str]) -> serde_json::Value {
    let mut arguments = vec!["ctl".as_ref(), socket.as_ref()];
    arguments.extend(words.iter().map(|word| std::ffi::OsStr::new(*word)));
    let (code, said) = forerun(&arguments);
    assert_eq!(code, 0, "{said}");
    serde_json::from_str(&said).unwrap()
}

#[test]
fn counters_add_up_and_open_files_are_listed() {
    let folder = folder();
    fs::write(folder.path().join("source/a"), bytes(1 << 20, 1)).unwrap();
    let socket = folder.path().join("control");
    let control = ["--control", socket.to_str().unwrap()];
    let flags = [&control[..], &["--passthrough", "never"]].concat();
    let Some(mounted) = Mounted::of(folder, &flags) else {
        return;
    };
    let mut file = File::open(mounted.point("a")).unwrap();
    file.read_to_end(&mut Vec::new()).unwrap();
    let report = ctl(&socket, &["stats"]);
    let count = |name: &str| report["counters"][name].as_u64().unwrap();
    assert_eq!(count("reads"), 256);
    assert_eq!(
        count("reads"),
        count("hits") + count("late_hits") + count("misses")
    );
    let open = &report["open_files"][0];
    assert_eq!(open["path"], "a");
    assert_eq!(open["process"], std::process::id());
    assert_eq!(open["read_bytes"], 1 << 20);
    assert_eq!(
        fs::metadata(&socket).unwrap().permissions().mode() & 0o077,
        0
    );
    let (code, said) = forerun(&["top".as_ref(), "--once".as_ref(), socket.as_ref()]);
    assert!(
        code == 0 && said.contains("hits") && said.contains(" a"),
        "{said}"
    );
    // Rates of the second in which it was asked, in which nothing was read.
    assert!(
        said.contains("rates over ") && said.contains("\nread     0 B/s "),
        "{said}"
    );
}

#[test]
fn streams_windows_and_device_queues_are_seen_while_a_slow_read_goes_on() {
    let folder = folder();
    // A quarter of an hour at this disk's rate, so the test sees the middle of it.
    let long = File::create(folder.path().join("source/a")).unwrap();
    long.set_len(1 << 30).unwrap();
    let socket = folder.path().join("control");
    let slow = [
        "--emulate",
        "switching=20ms,rate=1MB/s",
        "--control",
        socket.to_str().unwrap(),
    ];
    let Some(mounted) = Mounted::of(folder, &slow) else {
        return;
    };
    let mut reader = Command::new("cat")
        .arg(mounted.point("a"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut seen = serde_json::Value::Null;
    eventually("a stream ahead of its reader", || {
        let report = ctl(&socket, &["stats"]);
        seen = report["open_files"][0]["streams"][0].clone();
        let busy = report["queues"][0]["in_flight"].as_u64() > Some(0);
        let ahead = seen["ahead_bytes"].as_u64() > Some(0);
        busy && report["queues"][0]["device"] == "emulated" && ahead
    });
    let number = |name: &str| seen[name].as_u64().unwrap();
    assert_eq!(number("begin_bytes"), 0);
    assert!(number("window_bytes") > 0);
    assert!(number("window_async_bytes") <= number("window_bytes"));
    reader.kill().unwrap();
    reader.wait().unwrap();
    let (code, said) = forerun(&["top".as_ref(), "--once".as_ref(), socket.as_ref()]);
    assert!(
        code == 0 && said.contains("\nemulated ") && said.contains("WINDOW"),
        "{said}"
    );
}

#[test]
fn the_costs_of_a_disk_are_estimated_from_its_requests_and_shown() {
    let folder = folder();
    for (name, seed) in [("a", 1), ("b", 2)] {
        fs::write(
            folder.path().join("source").join(name),
            bytes(24 << 20, seed),
        )
        .unwrap();
    }
    let socket = folder.path().join("control");
    let port = super::port::address();
    let flags = [
        "--emulate",
        "switching=8ms,rate=80MB/s",
        "--control",
        socket.to_str().unwrap(),
        "--metrics",
        &port.to_string(),
    ];
    let Some(mounted) = Mounted::of(folder, &flags) else {
        return;
    };
    let mut files = ["a", "b"].map(|name| File::open(mounted.point(name)).unwrap());
    let mut piece = vec![0; 128 << 10];
    // More than 32 requests, which are figures.
    for _ in 0..192 {
        for file in &mut files {
            file.read_exact(&mut piece).unwrap();
        }
    }
    let report = ctl(&socket, &["stats"]);
    let estimate = &report["queues"][0]["estimate"];
    assert_eq!(estimate["basis"], "requests", "{report}");
    let requests = estimate["requests"].as_u64().unwrap();
    assert!(
        requests > 0 && requests <= report["counters"]["requests"].as_u64().unwrap(),
        "{report}"
    );
    for figure in ["switching_ns", "rate_bytes_per_second", "depth_bytes"] {
        assert!(estimate[figure].as_u64() > Some(0), "{figure}: {report}");
    }
    // The emulation tells that it is a disk, and requests that wait for each other may have shown
    // it too.
    assert_eq!(estimate["servers"], 1, "{report}");
    for (figure, origins) in [
        ("switching", &["requests"][..]),
        ("rate", &["requests"]),
        ("servers", &["told", "requests"]),
    ] {
        let origin = estimate["from"][figure].as_str().unwrap();
        assert!(origins.contains(&origin), "{figure}: {report}");
    }
    let (code, said) = forerun(&["top".as_ref(), "--once".as_ref(), socket.as_ref()]);
    let line = said.lines().find(|line| line.starts_with("emulated "));
    assert!(
        code == 0 && line.is_some_and(|line| line.contains(" requests")),
        "{said}"
    );
    let page = super::metrics::get(port, "/metrics");
    let value = |name: &str| -> f64 {
        let mut lines = page
            .lines()
            .filter(|line| line.contains("device=\"emulated\""));
        let line = lines.find(|line| line.starts_with(&format!("forerun_{name}{{")));
        let line = line.unwrap_or_else(|| panic!("{name} is missing:\n{page}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert!(value("device_switching_seconds") < 60.0);
    assert!(value("device_rate_bytes_per_second") > 1e3);
    let is_told = ["told", "requests"].iter().any(|origin| {
        page.contains(&format!(
            "switching=\"requests\",rate=\"requests\",servers=\"{origin}\"}} 1"
        ))
    });
    assert!(is_told, "{page}");
    assert!(value("device_servers") == 1.0 && value("device_estimate_requests_total") > 0.0);
}

#[test]
fn the_kernels_readahead_and_the_memory_in_use_can_be_changed() {
    let folder = folder();
    let socket = folder.path().join("control");
    let flags = [
        "--control",
        socket.to_str().unwrap(),
        "--kernel-readahead",
        "256KiB",
    ];
    let Some(_mounted) = Mounted::of(folder, &flags) else {
        return;
    };
    let readahead = |limits: &serde_json::Value| limits["kernel_readahead_bytes"].as_u64();
    eventually("what was asked for", || {
        readahead(&ctl(&socket, &["limits"])) == Some(256 << 10)
    });
    let set = ctl(&socket, &["set", "--kernel-readahead", "64KiB"]);
    assert_eq!(readahead(&set), Some(64 << 10));
    assert_eq!(ctl(&socket, &["limits"]), set);
    let less = ctl(&socket, &["set", "--memory", "16MiB"]);
    assert_eq!(less["memory_limit_bytes"].as_u64(), Some(16 << 20));
    for (refused, why) in [
        (
            "--memory=1TiB",
            "control: --memory 1TiB: must be at least [..] and at most 32MiB",
        ),
        (
            "--memory=1KiB",
            "control: --memory 1KiB: must be at least [..] and at most 32MiB",
        ),
        ("--kernel-readahead=256", "'256' for '--kernel-readahead"),
        ("--kernel-readahead=3KiB", "must be a multiple of 4KiB"),
        ("--kernel-readahead=1GiB", "from 0 to 64MiB"),
    ] {
        let words = ["ctl".as_ref(), socket.as_os_str(), "set".as_ref()];
        let (code, said) = forerun(&[&words[..], &[refused.as_ref()]].concat());
        let parts = why.split("[..]");
        assert!(
            code == 2 && { parts }.all(|part| said.contains(part)),
            "{refused}: {code}, {said}"
        );
    }
    // Other programs speak to the socket, too.
    let mut client = UnixStream::connect(&socket).unwrap();
    client
        .write_all(b"{\"set_kernel_readahead\":{\"bytes\":256}}\n")
        .unwrap();
    let mut said = String::new();
    client.read_to_string(&mut said).unwrap();
    assert!(said.contains("--kernel-readahead 256B: must be"), "{said}");
    assert_eq!(ctl(&socket, &["limits"])["kernel_readahead_bytes"], 65_536);
}

#[test]
fn a_client_that_talks_nonsense_is_told_so() {
    let folder = folder();
    let socket = folder.path().join("control");
    let Some(_mounted) = Mounted::of(folder, &["--control", socket.to_str().unwrap()]) else {
        return;
    };
    for nonsense in ["\n", "hello\n", "{\"stats\":1}\n", "\"halt\"\n"] {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.write_all(nonsense.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("{\"error\":"), "{nonsense}: {answer}");
    }
    drop(UnixStream::connect(&socket).unwrap());
    assert!(ctl(&socket, &["limits"])["memory_bytes"].is_u64());
}

/// `mount -f` passes the flag on.
#[test]
fn a_fake_mount_of_an_fstab_checks_its_arguments_and_mounts_nothing() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    symlink(cargo_bin!("forerun"), path("mount.forerun")).unwrap();
    for (options, code) in [("rw,memory=16MiB", 0), ("memory=1", 2), ("nosuch", 2)] {
        let output = Command::new(path("mount.forerun"))
            .args([path("source"), path("point")])
            .args(["-s", "-f", "-n", "-v", "-o", options])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(code), "{options}: {output:?}");
        assert!(!is_mounted(&path("point")));
    }
}

#[test]
fn mount_8_finds_the_fstab_name() {
    if !can_mount() {
        return;
    }
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("source/a"), "a").unwrap();
    symlink(cargo_bin!("forerun"), path("mount.forerun")).unwrap();
    let output = Command::new(path("mount.forerun"))
        .args([path("source"), path("point")])
        .args([
            "-o",
            "rw,memory=16MiB,allow_other,noexec,x-systemd.automount",
        ])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(is_mounted(&path("point")));
    assert_eq!(fs::read(path("point/a")).unwrap(), b"a");
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let point = path("point").to_str().unwrap().to_owned();
    let line = mounts.lines().find(|line| line.contains(&point)).unwrap();
    for word in ["fuse.forerun", "ro,", "noexec", "nosuid", "allow_other"] {
        assert!(line.contains(word), "{line}");
    }
    take_off(&path("point"));
    wait::mounts("it ends", || !is_mounted(&path("point")));
}
