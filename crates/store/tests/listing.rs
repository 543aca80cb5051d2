//! Listings far larger than memory: a program of its own, whose memory nothing else uses.

#[expect(dead_code, reason = "objects and faults are in the other program")]
mod http_server;

use forerun_io::source::tree::Entry;
use forerun_store::{Client, Limits};
use http_server::Server;

fn client(server: &Server) -> Client {
    let endpoint = ("AWS_ENDPOINT_URL".to_owned(), server.url(""));
    Client::with_variables(Limits::default(), [endpoint]).unwrap()
}

/// The most memory of this process so far, in KiB.
fn memory_peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

#[test]
fn a_million_keys_are_listed_with_a_page_in_memory() {
    let server = Server::start();
    server.list(1_000_000);
    let mut all = client(&server).list("s3://b").unwrap();
    let folder = ("folder".to_owned(), Entry::Folder);
    assert_eq!(all.next().unwrap().unwrap(), folder);
    let before = memory_peak();
    for (key, entry) in (0..1_000_000).zip(all.by_ref()) {
        let (name, entry) = entry.unwrap();
        let Entry::Object(stat) = entry else {
            panic!("{name} is no object");
        };
        assert_eq!((name, stat.bytes), (format!("k{key:06}"), key));
    }
    assert!(all.next().is_none());
    // As strings alone they are 30 MB.
    let grown = memory_peak() - before;
    assert!(grown < 16 << 10, "{grown} KiB");
}
