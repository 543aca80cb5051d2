//! Objects of an HTTP server: whole, changed while they are read, and with every fault a network has.

mod http_server;

use std::io::ErrorKind;
use std::time::Duration;

use forerun_core::{Bytes, preset};
use forerun_io::error::number;
use forerun_io::source::http::{Client, Limits};
use forerun_io::{Config, Driver, Reader, generated};
use http_server::{Fault, Server};
use std::sync::Arc;

const BYTES: usize = 3 * (1 << 20) + 777;

fn content(version: u64) -> Vec<u8> {
    let mut bytes = vec![0; BYTES];
    generated::fill(version, 0, 0, &mut bytes);
    bytes
}

/// As little patience as a test has: a tenth of a second is the shortest pause.
fn client() -> Client {
    Client::new(Limits {
        deadline: Duration::from_secs(20),
        ..Limits::default()
    })
}

fn driver(memory: u64) -> Driver {
    let settings = preset::default().settings(Bytes(memory)).unwrap();
    Driver::new(Config::new(settings)).unwrap()
}

fn open(driver: &Driver, client: &Client, url: &str) -> Reader {
    driver
        .open_source(Arc::new(client.open(url).unwrap()))
        .unwrap()
}

fn read_all(reader: &Reader) -> std::io::Result<Vec<u8>> {
    let (mut all, mut piece) = (Vec::new(), vec![0; 100_000]);
    loop {
        match reader.read_at(&mut piece, all.len() as u64)? {
            0 => return Ok(all),
            n => all.extend(&piece[..n]),
        }
    }
}

#[test]
fn an_object_is_read_whole_ahead_of_its_reader_and_each_byte_once() {
    let server = Server::start();
    server.put("/a", "1", content(1));
    let driver = driver(8 << 20);
    let reader = open(&driver, &client(), &server.url("/a"));
    assert!(read_all(&reader).unwrap() == content(1));
    let (requests, bytes) = server.counts();
    // One byte to open it.
    assert_eq!(bytes, BYTES as u64 + 1);
    assert!(requests < 40, "{requests} requests for 770 blocks");
    drop(reader);
    let ledger = driver.finish().unwrap();
    ledger.check().unwrap();
    assert!(ledger.used > 400, "fetched ahead and used: {ledger:?}");
}

/// One at a time, the first would wait for the others for ever.
#[test]
fn requests_to_a_server_that_is_not_known_yet_go_out_side_by_side() {
    let server = Server::start();
    let paths: Vec<_> = (0..8).map(|number| format!("/{number}")).collect();
    let driver = driver(64 << 20);
    let client = Client::default();
    let readers = paths.iter().map(|path| {
        server.put(path, "1", content(1));
        open(&driver, &client, &server.url(path))
    });
    let readers: Vec<_> = readers.collect();
    server.hold(8);
    std::thread::scope(|scope| {
        for reader in &readers {
            scope.spawn(|| assert_eq!(reader.read_at(&mut [0; 4096], 0).unwrap(), 4096));
        }
    });
}

#[test]
fn an_empty_object_ends_at_once() {
    let server = Server::start();
    server.put("/empty", "1", Vec::new());
    let driver = driver(1 << 20);
    let reader = open(&driver, &client(), &server.url("/empty"));
    assert_eq!(reader.read_at(&mut [0; 10], 0).unwrap(), 0);
}

#[test]
fn passing_faults_are_not_seen_by_a_reader() {
    let server = Server::start();
    server.put("/a", "1", content(1));
    let driver = driver(8 << 20);
    let reader = open(&driver, &client(), &server.url("/a"));
    server.fail([
        Fault::Status(503, None),
        Fault::Cut(1000),
        Fault::Reset,
        Fault::Status(429, Some(1)),
        Fault::Status(500, None),
        Fault::Cut(0),
    ]);
    assert!(read_all(&reader).unwrap() == content(1));
    assert_eq!(server.faults_left(), 0);
}

#[test]
fn a_replaced_object_is_an_error_to_its_readers_and_new_to_the_next_open() {
    let server = Server::start();
    server.put("/a", "1", content(1));
    let (driver, client) = (driver(1 << 20), client());
    let old = open(&driver, &client, &server.url("/a"));
    let mut piece = vec![0; 100_000];
    assert_eq!(old.read_at(&mut piece, 0).unwrap(), piece.len());
    assert!(piece == content(1)[..piece.len()]);
    server.put("/a", "2", content(2));
    // Resident blocks are of the old version; the others cannot be had any more.
    let error = read_all(&old)
        .map(|all| assert!(all == content(1)))
        .unwrap_err();
    assert_eq!(number(&error), Some(libc::ESTALE), "{error}");
    let new = open(&driver, &client, &server.url("/a"));
    assert!(read_all(&new).unwrap() == content(2));
    server.delete("/a");
    let error = new.read_at(&mut piece, 0).unwrap_err();
    assert_eq!(number(&error), Some(libc::ENOENT), "{error}");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().starts_with(&server.url("/a")), "{error}");
}

#[test]
fn refusals_reach_the_reader_as_what_they_are() {
    let server = Server::start();
    server.put("/a", "1", content(1));
    let refused = [
        (Fault::Status(401, None), libc::EACCES),
        (Fault::Status(403, None), libc::EACCES),
        (Fault::Status(410, None), libc::ENOENT),
        (Fault::Status(416, None), libc::EIO),
        (Fault::Status(400, None), libc::EIO),
        (Fault::Whole, libc::EIO),
    ];
    for (fault, expected) in refused {
        // A driver each, so that nothing is resident.
        let driver = driver(1 << 20);
        let reader = open(&driver, &client(), &server.url("/a"));
        let mut byte = [0];
        server.fail_always(Some(fault));
        let error = reader.read_at(&mut byte, 1_500_000).unwrap_err();
        server.fail_always(None);
        assert_eq!(number(&error), Some(expected), "{fault:?}: {error}");
        assert!(error.to_string().starts_with(&server.url("/a")), "{error}");
        // The next one is not refused.
        assert_eq!(reader.read_at(&mut byte, 1_500_000).unwrap(), 1);
    }
}

#[test]
fn what_cannot_be_opened_is_named() {
    let server = Server::start();
    let client = Client::new(Limits {
        deadline: Duration::from_millis(50),
        ..Limits::default()
    });
    let refused = |url: &str| client.open(url).unwrap_err().to_string();
    let absent = refused(&server.url("/absent"));
    assert!(
        absent.contains("/absent") && absent.contains("No such file"),
        "{absent}"
    );
    let https = refused("https://127.0.0.1/a");
    assert!(
        https.contains("https://127.0.0.1/a: an address begins with http://"),
        "{https}"
    );
    server.put("/a", "1", content(1));
    server.fail([Fault::Whole]);
    let whole = refused(&server.url("/a"));
    assert!(whole.contains("200"), "{whole}");
    server.fail([Fault::Status(503, None), Fault::Status(503, None)]);
    let busy = refused(&server.url("/a"));
    assert!(busy.contains("503"), "{busy}");
    // No server listens on the discard port of loopback.
    let nobody = refused("http://127.0.0.1:9/a");
    assert!(nobody.contains("127.0.0.1:9"), "{nobody}");
}

#[test]
fn a_failed_prefetch_is_counted_and_no_reader_sees_it() {
    let server = Server::start();
    server.put("/a", "1", content(1));
    let driver = driver(8 << 20);
    let reader = open(&driver, &client(), &server.url("/a"));
    let (mut piece, mut at) = (vec![0; 4096], 0);
    let whole = content(1);
    // Readers of the beginning get the fetches going, all of which fail from now on but these.
    while server.counts().0 < 3 {
        assert_eq!(reader.read_at(&mut piece, at as u64).unwrap(), piece.len());
        at += piece.len();
    }
    server.fail_always(Some(Fault::Status(403, None)));
    let error = loop {
        match reader.read_at(&mut piece, at as u64) {
            Ok(n) => {
                assert!(piece[..n] == whole[at..at + n]);
                at += n;
            }
            Err(error) => break error,
        }
    };
    assert_eq!(number(&error), Some(libc::EACCES), "{error}");
    server.fail_always(None);
    while at < BYTES {
        let n = reader.read_at(&mut piece, at as u64).unwrap();
        assert!(piece[..n] == whole[at..at + n]);
        at += n;
    }
    drop(reader);
    let ledger = driver.finish().unwrap();
    ledger.check().unwrap();
    assert!(ledger.failed > 0, "{ledger:?}");
}
