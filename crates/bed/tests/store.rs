//! `forerun-bed store` as clients meet it: bytes, versions, lists, faults; and no byte too early.
//!
//! Runs the binary as users do, and speaks HTTP by hand, so that no client's own repairs hide a fault.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

struct Store {
    process: Child,
    address: String,
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Store {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forerun-bed"));
        let command = command.arg("store").args(arguments);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").unwrap().to_owned();
        Self { process, address }
    }

    /// The answer to one request on a connection of its own; none if the connection was reset.
    fn get(&self, path: &str, headers: &str) -> Option<Answer> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let text = format!("GET {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n");
        stream.write_all(text.as_bytes()).unwrap();
        let mut lines = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if lines.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let length = header(&head, "Content-Length").unwrap().parse().unwrap();
        let mut body = Vec::new();
        lines.take(length).read_to_end(&mut body).unwrap();
        let status = head[9..12].parse().unwrap();
        Some(Answer { status, head, body })
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let line = |line: &'a str| line.strip_prefix(name)?.strip_prefix(": ");
    head.lines().find_map(line)
}

const QUICK: &[&str] = &["--first-byte", "1ms", "--objects", "a=3x1MB,b=1x40MB"];

#[test]
fn a_request_with_a_body_is_refused_as_one_that_writes() {
    let store = Store::start(QUICK);
    let mut stream = TcpStream::connect(&store.address).unwrap();
    let text = "PUT /bed/a/000009 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc";
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let mut reader = BufReader::new(stream);
    reader.read_until(b'\n', &mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 405"), "{answer:?}");
}

#[test]
fn ranges_are_those_of_the_whole_and_all_of_the_version_that_was_named() {
    let store = Store::start(QUICK);
    let whole = store.get("/bed/a/000001", "").unwrap();
    assert_eq!((whole.status, whole.body.len()), (200, 1_000_000));
    let version = header(&whole.head, "ETag").unwrap();
    let named = format!("Range: bytes=12345-67889\r\nIf-Match: {version}\r\n");
    let range = store.get("/bed/a/000001", &named).unwrap();
    assert_eq!(range.status, 206);
    assert_eq!(range.body, whole.body[12_345..67_890]);
    assert_eq!(store.get("/bed/a/000002", &named).unwrap().status, 412);
    // An object longer than the noise goes round in it.
    let shift = header(&whole.head, "x-amz-meta-shift")
        .unwrap()
        .parse::<usize>();
    let noise = store.get("/-/noise", "").unwrap().body;
    let place = shift.unwrap() % noise.len();
    assert!(
        whole
            .body
            .iter()
            .zip(noise.iter().cycle().skip(place))
            .all(|(a, b)| a == b)
    );
    let list = store.get("/bed?list-type=2&prefix=a/", "").unwrap().body;
    assert_eq!(String::from_utf8(list).unwrap().matches("<Key>").count(), 3);
}

#[test]
fn no_answer_and_no_body_is_early() {
    let arguments = [
        "--first-byte",
        "50ms",
        "--connection-rate",
        "20MB",
        "--rate",
        "20MB",
    ];
    let store = Store::start(&[&arguments[..], &["--objects", "a=2x4MB"]].concat());
    let began = Instant::now();
    // Two bodies of 4 MB share 20 MB/s.
    std::thread::scope(|scope| {
        for number in 0..2 {
            let path = format!("/bed/a/00000{number}");
            let store = &store;
            scope.spawn(move || assert_eq!(store.get(&path, "").unwrap().body.len(), 4_000_000));
        }
    });
    assert!(
        began.elapsed() >= Duration::from_millis(50 + 400),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn every_fault_reaches_the_client() {
    for (fault, expected) in [
        ("429=1", 429),
        ("503=1", 503),
        ("slow=1", 200),
        ("truncated=1", 200),
    ] {
        let store = Store::start(&[QUICK, &["--fault", fault]].concat());
        let answer = store.get("/bed/a/000000", "").unwrap();
        assert_eq!(answer.status, expected, "{fault}");
        let is_whole = answer.body.len() == 1_000_000;
        assert_eq!(
            is_whole,
            fault == "slow=1",
            "{fault}: {} bytes",
            answer.body.len()
        );
    }
    let store = Store::start(&[QUICK, &["--fault", "reset=1"]].concat());
    assert!(store.get("/bed/a/000000", "").is_none());
    let counters = store.get("/-/counters", "").unwrap().body;
    assert!(
        String::from_utf8(counters)
            .unwrap()
            .contains("\"faults\":1")
    );
}

#[test]
fn an_answer_without_a_body_is_whole_and_no_fault_of_a_body() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("empty"), "").unwrap();
    std::fs::write(folder.path().join("full"), "some bytes").unwrap();
    for (fault, got) in [("truncated=1", 5), ("slow=1", 10)] {
        let files = folder.path().to_str().unwrap();
        let store = Store::start(&["--first-byte", "1ms", "--files", files, "--fault", fault]);
        let mut stream = TcpStream::connect(&store.address).unwrap();
        for request in ["HEAD /bed/full", "GET /bed/empty", "GET /-/counters"] {
            write!(stream, "{request} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        }
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answers = String::new();
        stream.read_to_string(&mut answers).unwrap();
        assert_eq!(answers.matches("HTTP/1.1 200").count(), 3, "{answers}");
        assert!(answers.contains("\"faults\":0"), "{fault}: {answers}");
        assert_eq!(store.get("/bed/full", "").unwrap().body.len(), got);
        let counters = store.get("/-/counters", "").unwrap().body;
        assert!(
            String::from_utf8(counters)
                .unwrap()
                .contains("\"faults\":1")
        );
    }
}

#[test]
fn arguments_that_are_none_are_refused_with_the_accepted_ones() {
    for (option, value, named) in [
        ("--objects", "a=0x1MB", "1 to 1000000"),
        ("--fault", "404=3", "truncated"),
        ("--bucket", "a/b", "letters"),
        ("--first-byte", "30", "8ms"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forerun-bed"));
        let output = command.args(["store", option, value]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(value) && said.contains(named), "{said}");
    }
}
