//! The metrics: the page is what docs/METRICS.md says, and no client exhausts the daemon.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use snapbox::cmd::cargo_bin;

use super::port::address;
use super::{Mounted, bytes, eventually, folder};

/// Idle clients, and bytes of a header line that another sends.
const CONNECTIONS: usize = 5000;
const HEADER_BYTES: usize = 300_000_000;

/// Most that the server may take under any number of connections.
const THREADS_MAX: u64 = 8;
const MEMORY_MAX_KIB: u64 = 8 << 10;

/// A mount that serves metrics, with a file `a` of 256 blocks; none if this machine cannot mount.
fn mounted(more: &[&str]) -> Option<(Mounted, SocketAddr)> {
    let folder = folder();
    fs::write(folder.path().join("source/a"), bytes(1 << 20, 1)).unwrap();
    let address = address();
    let port = address.port().to_string();
    let never = ["--passthrough", "never"];
    let flags = [&["--metrics", port.as_str()], &never[..], more].concat();
    Some((Mounted::of(folder, &flags)?, address))
}

pub(super) fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Resident memory of the daemon, in KiB.
fn memory(mounted: &Mounted) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", mounted.daemon.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.unwrap()
        .split_whitespace()
        .next()
        .unwrap()
        .parse()
        .unwrap()
}

/// Threads of the daemon, but for those that take requests of the kernel: they begin at any moment
/// after the mount is seen.
fn threads(mounted: &Mounted) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{}/task", mounted.daemon.id())).unwrap();
    let names = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("comm")));
    // One that ended meanwhile has no name any more.
    names
        .flatten()
        .filter(|name| !name.starts_with("fuser-"))
        .count() as u64
}

/// The device of each sample of a family.
fn devices(text: &str, family: &str) -> Vec<String> {
    let samples = text.lines().filter(|line| line.starts_with(family));
    let device = samples.map(|line| line.split("device=\"").nth(1).unwrap().split('"').next());
    device.map(|name| name.unwrap().to_owned()).collect()
}

#[test]
fn each_disk_of_an_array_has_a_name_of_its_own() {
    let emulated = "switching=1ms,rate=300MB/s,disks=3,strip=64KiB";
    for (flags, names) in [
        (
            ["--emulate", emulated],
            ["emulated 1", "emulated 2", "emulated 3"].as_slice(),
        ),
        (["--stripe", "strip=64KiB,disks=2"], &["disk 1", "disk 2"]),
        (["--emulate", "switching=1ms,rate=300MB/s"], &["emulated"]),
    ] {
        let Some((mounted, address)) = mounted(&flags) else {
            return;
        };
        fs::read(mounted.point("a")).unwrap();
        let text = get(address, "/metrics");
        for family in ["forerun_fetches_queued{", "forerun_device_estimate_info{"] {
            assert_eq!(devices(&text, family), names, "{text}");
        }
        let shown = Command::new(cargo_bin!("forerun"))
            .args(["top", "--once"])
            .arg(mounted.point(""))
            .env("FORERUN_RUNTIME_DIR", mounted.folder.path().join("run"))
            .output()
            .unwrap();
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        let has = |name: &&str| shown.contains(&format!("\n{name} "));
        assert!(names.iter().all(has), "{shown}");
    }
}

#[test]
fn prometheus_gets_the_counters_in_base_units_with_the_mount_as_a_label() {
    let Some((mounted, address)) = mounted(&[]) else {
        return;
    };
    fs::read(mounted.point("a")).unwrap();
    let text = get(address, "/metrics");
    let mount = mounted.point("");
    let mount = mount.to_str().unwrap().trim_end_matches('/');
    let sum = |name: &str| {
        let lines = text.lines().filter(|line| line.starts_with(name));
        let value = |line: &str| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
        lines.map(value).sum::<f64>()
    };
    assert_eq!(
        sum("forerun_read_bytes_total{"),
        f64::from(1 << 20),
        "{text}"
    );
    assert_eq!(sum("forerun_demand_failed_bytes_total{"), 0.0);
    assert_eq!(
        sum("forerun_prefetched_bytes_total{"),
        sum("forerun_prefetch_ended_bytes_total{") + sum("forerun_prefetch_pending_bytes{")
    );
    for line in [
        "# TYPE forerun_read_bytes counter".to_owned(),
        "# UNIT forerun_read_bytes bytes".to_owned(),
        "# TYPE forerun_prefetch_pending_bytes gauge".to_owned(),
        format!("forerun_memory_waits_total{{mount=\"{mount}\"}} 0.0"),
        "# EOF".to_owned(),
    ] {
        assert!(
            text.lines().any(|l| l == line),
            "{line} is missing in\n{text}"
        );
    }
    for part in [
        "forerun_build_info{",
        "version=\"0.1.0\"",
        "preset=\"mount\"",
        "_ns",
        "process_open_fds ",
    ] {
        assert_eq!(text.contains(part), part != "_ns", "{part}:\n{text}");
    }
    assert!(get(address, "/").contains("<a href=\"/metrics\">"));
    assert!(get(address, "/other").starts_with("HTTP/1.1 404"));
}

/// A page that was made after this was called: pages are served again for a while.
fn made_now(address: SocketAddr) -> String {
    let made = |page: &str| {
        let line = page
            .lines()
            .find(|line| line.starts_with("forerun_uptime_seconds{"));
        line.unwrap().to_owned()
    };
    let before = made(&get(address, "/metrics"));
    let mut page = String::new();
    eventually("a new page", || {
        page = get(address, "/metrics");
        made(&page) != before
    });
    page
}

/// The histogram of read times on a page: bounds with cumulative counts, sum, count.
fn read_times(page: &str) -> (Vec<(f64, f64)>, f64, f64) {
    let of = |end: &str| {
        let begin = format!("forerun_read_duration_seconds_{end}{{");
        let lines = page.lines().filter(move |line| line.starts_with(&begin));
        lines.map(|line| {
            let value = line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
            let bound = line
                .split("le=\"")
                .nth(1)
                .and_then(|rest| rest.split('"').next());
            let bound = bound.map(|bound| bound.trim_start_matches('+').to_lowercase());
            (bound.map_or(0.0, |bound| bound.parse().unwrap()), value)
        })
    };
    let single = |end: &str| of(end).next().unwrap().1;
    (of("bucket").collect(), single("sum"), single("count"))
}

#[test]
fn a_read_is_counted_in_the_bucket_of_the_time_it_took() {
    const SWITCHING: f64 = 0.06;
    let folder = folder();
    fs::write(folder.path().join("source/a"), "of one page").unwrap();
    let address = address();
    let port = address.port().to_string();
    let slow = ["--metrics", &port, "--emulate", "switching=60ms,rate=1GB/s"];
    let Some(mounted) = Mounted::of(folder, &slow) else {
        return;
    };
    let (buckets, sum, count) = read_times(&made_now(address));
    assert!(buckets.len() > 10 && buckets.is_sorted_by(|a, b| a.0 < b.0));
    assert_eq!(
        (buckets.last().unwrap().0, sum, count),
        (f64::INFINITY, 0.0, 0.0)
    );
    let begun = Instant::now();
    fs::read(mounted.point("a")).unwrap();
    let longest = begun.elapsed().as_secs_f64();
    let (buckets, sum, count) = read_times(&made_now(address));
    println!("{sum} s, the program {longest} s: {buckets:?}");
    assert_eq!((count, buckets.last().unwrap().1), (1.0, 1.0));
    assert!((SWITCHING..=longest).contains(&sum), "{sum}");
    let of_it = buckets.iter().find(|(bound, _)| *bound >= sum).unwrap().0;
    for (bound, counted) in &buckets {
        assert_eq!(*counted, f64::from(*bound >= of_it), "{bound}");
    }
    // Reads that the page cache answers never come here.
    fs::read(mounted.point("a")).unwrap();
    assert_eq!(read_times(&made_now(address)).2, 1.0);
}

#[test]
fn as_many_reads_are_counted_as_the_kernel_asked_for() {
    let folder = folder();
    fs::write(folder.path().join("source/a"), bytes(3 << 20, 1)).unwrap();
    let (socket, address) = (folder.path().join("control"), address());
    let port = address.port().to_string();
    let flags = ["--metrics", &port, "--control", socket.to_str().unwrap()];
    let flags = [&flags[..], &["--passthrough", "never"]].concat();
    let Some(mounted) = Mounted::of(folder, &flags) else {
        return;
    };
    let mut open = fs::File::open(mounted.point("a")).unwrap();
    open.read_to_end(&mut Vec::new()).unwrap();
    let (code, said) = super::forerun(&["ctl".as_ref(), socket.as_ref(), "stats".as_ref()]);
    assert_eq!(code, 0, "{said}");
    let report: serde_json::Value = serde_json::from_str(&said).unwrap();
    let requests = report["open_files"][0]["requests"].as_f64().unwrap();
    let (buckets, _, count) = read_times(&made_now(address));
    assert!(requests > 1.0);
    assert_eq!((count, buckets.last().unwrap().1), (requests, requests));
}

#[test]
fn every_metric_is_in_the_document_and_nothing_else_is() {
    let emulated = ["--emulate", "switching=1us,rate=10GB/s"];
    let Some((mounted, address)) = mounted(&emulated) else {
        return;
    };
    fs::read(mounted.point("a")).unwrap();
    let text = get(address, "/metrics");
    let mut served = BTreeMap::new();
    for line in text.lines() {
        if let Some(words) = line.strip_prefix("# TYPE ") {
            let (name, kind) = words.split_once(' ').unwrap();
            let end = if kind == "counter" { "_total" } else { "" };
            served.insert(format!("{name}{end}"), kind.to_owned());
        }
    }
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/METRICS.md");
    let document = fs::read_to_string(document).unwrap();
    let rows = document.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        let (kind, _) = rest.split_once(" | ")?;
        // Those of a watch: crates/cli/tests/watch.
        let is_of_mount = !name.starts_with("forerun_watch_");
        is_of_mount.then(|| (name.to_owned(), kind.to_owned()))
    });
    assert_eq!(served, rows.collect());
}

/// Lets this process have so many descriptors; the daemon's limit stays. False if it may not.
fn may_have_descriptors(wanted: u64) -> bool {
    let limit = getrlimit(Resource::Nofile);
    let enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= wanted);
    if enough(limit.current) {
        return true;
    }
    let raised = Rlimit {
        current: Some(wanted),
        maximum: match enough(limit.maximum) {
            true => limit.maximum,
            // For the privileged only.
            false => Some(wanted),
        },
    };
    setrlimit(Resource::Nofile, raised).is_ok()
}

#[test]
fn thousands_of_idle_connections_and_an_endless_header_cost_the_daemon_next_to_nothing() {
    let Some((mounted, address)) = mounted(&[]) else {
        return;
    };
    if !may_have_descriptors(CONNECTIONS as u64 + 500) {
        return super::skipped("needs 5500 descriptors: raise ulimit -Hn");
    }
    get(address, "/metrics");
    let before = (threads(&mounted), memory(&mounted));
    let cost = |when: &str| {
        let threads = threads(&mounted).saturating_sub(before.0);
        let memory = memory(&mounted).saturating_sub(before.1);
        println!("{when}: {threads} threads and {memory} KiB more");
        assert!(threads <= THREADS_MAX, "{when}: {threads} threads");
        assert!(memory <= MEMORY_MAX_KIB, "{when}: {memory} KiB");
    };
    let connect = || TcpStream::connect(address).unwrap();
    let idle: Vec<_> = (0..CONNECTIONS).map(|_| connect()).collect();
    cost("with all connections");
    assert!(get(address, "/metrics").ends_with("# EOF\n"), "meanwhile");
    // Each was accepted or waits, and a client is answered whichever it was.
    let mut endless = connect();
    let begun = b"GET /metrics HTTP/1.1\r\nX: ";
    let piece = vec![b'a'; 1 << 20];
    let mut sent = begun.len();
    let mut refused = endless.write_all(begun).is_err();
    while !refused && sent < HEADER_BYTES {
        refused = endless.write_all(&piece).is_err();
        sent += piece.len();
        cost("within a header line");
    }
    assert!(refused, "the server has read {sent} bytes of one line");
    assert!(get(address, "/metrics").ends_with("# EOF\n"), "afterwards");
    cost("afterwards");
    drop((idle, endless));
    assert!(get(address, "/metrics").ends_with("# EOF\n"), "at the end");
    assert_eq!(fs::read(mounted.point("a")).unwrap(), bytes(1 << 20, 1));
}

#[test]
fn without_descriptors_the_metrics_wait_and_work_again_afterwards() {
    let Some((mounted, address)) = mounted(&[]) else {
        return;
    };
    assert!(get(address, "/metrics").ends_with("# EOF\n"));
    let process = Pid::from_raw(mounted.daemon.id().cast_signed());
    let before = prlimit(process, Resource::Nofile, getrlimit(Resource::Nofile)).unwrap();
    let limit = |current| {
        let new = Rlimit {
            current: Some(current),
            ..before
        };
        prlimit(process, Resource::Nofile, new).unwrap();
    };
    // No descriptor at all: a limit below those that are open.
    limit(1);
    let waiting: Vec<_> = (0..100)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let mut asks = TcpStream::connect(address).unwrap();
    asks.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    limit(before.current.unwrap_or(1024));
    let mut answer = String::new();
    asks.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("# EOF\n"), "{answer}");
    drop(waiting);
    assert!(get(address, "/metrics").ends_with("# EOF\n"));
}

#[test]
fn an_address_that_others_reach_is_warned_about() {
    let folder = folder();
    let (source, point) = (folder.path().join("missing"), folder.path().join("point"));
    // The warning comes with the mount, which needs the right to mount; the address itself does
    // not.
    let (code, said) = super::forerun(&[
        "mount".as_ref(),
        "--metrics=nonsense".as_ref(),
        source.as_ref(),
        point.as_ref(),
    ]);
    assert!(
        code == 2 && said.contains("as in 9898 or 127.0.0.1:9898"),
        "{said}"
    );
    if !super::can_mount() {
        return;
    }
    let open = format!("--metrics=0.0.0.0:{}", address().port());
    let (code, said) = super::forerun(&[
        "mount".as_ref(),
        open.as_ref(),
        "--memory=16MiB".as_ref(),
        folder.path().join("source").as_ref(),
        point.as_ref(),
    ]);
    super::run("umount", &[point.as_ref()]);
    assert!(
        code == 0 && said.contains("can be read by anybody"),
        "{said}"
    );
}
