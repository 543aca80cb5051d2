//! Objects of an HTTP server: whole, changed while they are read, and with every fault a network has.

use std::sync::Arc;
use std::time::{Duration, Instant};

use forerun_io::error::number;
use forerun_io::source::{Source, fetch};
use forerun_io::{Driver, Reader};
use forerun_store::{Client, Limits};

use crate::http_server::objects::{self, BYTES, content, driver, read_all};
use crate::http_server::{Fault, Server};

/// The client of this program, and its server.
struct Http {
    client: Client,
    base: String,
}

impl objects::Client for Http {
    fn address(&self, path: &str) -> String {
        self.base.clone() + path
    }

    fn open(&self, driver: &Driver, path: &str) -> Reader {
        let object = self.client.open(&self.address(path)).unwrap();
        driver.open_source(Arc::new(object)).unwrap()
    }

    /// The first one, with which its size and version come.
    fn bytes_to_open(&self) -> u64 {
        1
    }
}

fn with(limits: Limits, server: &Server) -> Box<dyn objects::Client> {
    let base = server.url("");
    Box::new(Http {
        client: client(limits),
        base,
    })
}

/// Nothing of the machine's environment is used.
fn client(limits: Limits) -> Client {
    Client::with_variables(limits, []).unwrap()
}

fn make(server: &Server) -> Box<dyn objects::Client> {
    with(objects::limits(), server)
}

fn impatient(server: &Server) -> Box<dyn objects::Client> {
    with(objects::impatient_limits(), server)
}

of_every_client!();

/// An object that was there and is not any more.
#[test]
fn a_gone_object_is_not_found() {
    let server = Server::start();
    server.put("/a", "1", content(1));
    let driver = driver(1 << 20);
    let reader = make(&server).open(&driver, "/a");
    server.fail_always(Some(Fault::Status(410, None)));
    let error = reader.read_at(&mut [0], 0).unwrap_err();
    assert_eq!(number(&error), Some(libc::ENOENT), "{error}");
}

/// The first range of a server that is silent has the whole deadline, others of the object a part of it: a machine that
/// stands still for the rest of it does not do so five times.
#[test]
fn a_reader_has_the_error_of_a_silent_server_after_one_deadline() {
    let server = Server::start();
    server.put("/a", "1", content(1));
    let deadline = Duration::from_secs(3);
    let client = client(Limits {
        deadline,
        ..Limits::default()
    });
    let object = client.open(&server.url("/a")).unwrap();
    server.hang(Some("a"));
    let waited = |offset| {
        let begun = Instant::now();
        assert!(fetch(&object, offset, 4096).is_err());
        begun.elapsed()
    };
    let first = waited(0);
    assert!(first >= deadline, "{first:?}");
    let others: Vec<_> = (0..5).map(|_| waited(100_000)).collect();
    assert!(others.iter().any(|other| *other < deadline), "{others:?}");
    server.hang(None);
    // A part of the deadline may be too short for one, the whole of it is there for the next.
    let bytes = (0..5).find_map(|_| fetch(&object, 0, 4096).ok());
    assert!(bytes.unwrap() == content(1)[..4096]);
    server.hang(Some("a"));
    let begun = Instant::now();
    assert!(fetch(&object, 0, 4096).is_err());
    assert!(begun.elapsed() >= deadline, "it answered meanwhile");
    server.hang(None);
}

/// Ranges of silent objects are given up, so that others have their memory, and asked for again.
#[test]
fn objects_of_a_silent_server_leave_memory_to_others_and_are_read_in_the_end() {
    const SILENT: usize = 30;
    let server = Server::start();
    server.put("/live", "1", content(2));
    let paths: Vec<_> = (0..SILENT)
        .map(|number| format!("/silent{number}"))
        .collect();
    for path in &paths {
        server.put(path, "1", content(1));
    }
    let requests = 8;
    let client = client(Limits {
        requests,
        ..Limits::default()
    });
    let driver = driver(16 << 20);
    let open = |path: &str| {
        let object = client.open(&server.url(path)).unwrap();
        driver.open_source(Arc::new(object)).unwrap()
    };
    let silent: Vec<_> = paths.iter().map(|path| open(path)).collect();
    let live = open("/live");
    server.hang(Some("silent"));
    std::thread::scope(|scope| {
        let reads: Vec<_> = silent
            .iter()
            .map(|reader| scope.spawn(move || read_all(reader).unwrap() == content(1)))
            .collect();
        server.wait_for(requests as usize);
        let bytes = read_all(&live);
        // Before anything can fail: it would be waited for.
        server.hang(None);
        assert!(bytes.unwrap() == content(2));
        for read in reads {
            assert!(read.join().unwrap());
        }
    });
}

#[test]
fn what_cannot_be_opened_is_named() {
    let server = Server::start();
    let client = client(objects::limits());
    let refused = |url: &str| client.open(url).unwrap_err().to_string();
    let absent = refused(&server.url("/absent"));
    assert!(
        absent.contains("/absent") && absent.contains("No such file"),
        "{absent}"
    );
    server.put("/a", "1", content(1));
    let tagless = [Fault::Untagged, Fault::Weak].map(|fault| {
        server.fail([fault]);
        refused(&server.url("/a"))
    });
    for tagless in tagless {
        assert!(tagless.contains("neither a strong ETag"), "{tagless}");
    }
    server.fail([Fault::Shifted]);
    let shifted = refused(&server.url("/a"));
    assert!(shifted.contains("/a: "), "{shifted}");
    server.fail_always(Some(Fault::Total(1)));
    let total = refused(&server.url("/a"));
    assert!(total.contains("says 1 byte in all"), "{total}");
    server.fail_always(Some(Fault::Redirect("http://me:secret@localhost:9/a")));
    let to = refused(&server.url("/a"));
    assert!(
        to.contains("redirects to another server, http://localhost"),
        "{to}"
    );
    assert!(!to.contains("secret"), "{to}");
    server.fail_always(None);
    // The next attempt would come after the deadline.
    server.fail([Fault::Status(503, Some(3600))]);
    let busy = refused(&server.url("/a"));
    assert!(busy.contains("503"), "{busy}");
    // No server listens on the discard port of loopback.
    let nobody = refused("http://me:secret@127.0.0.1:9/a");
    assert!(nobody.contains("http://me:***@127.0.0.1:9/a"), "{nobody}");
    assert!(!nobody.contains("secret"), "{nobody}");
}

/// Neither is an error an empty object, nor an empty object an error.
#[test]
fn an_empty_object_is_told_from_a_server_without_ranges() {
    let server = Server::start();
    server.put("/a", "1", content(1));
    server.put("/empty", "1", Vec::new());
    let client = client(objects::limits());
    for fault in [Fault::Whole, Fault::Status(416, None)] {
        server.fail([fault]);
        let error = client.open(&server.url("/a")).unwrap_err().to_string();
        assert!(
            error.contains("does not answer ranges"),
            "{fault:?}: {error}"
        );
        server.fail([fault]);
        let empty = client.open(&server.url("/empty")).unwrap();
        assert_eq!(empty.bytes().unwrap(), 0, "{fault:?}");
    }
    server.fail_always(Some(Fault::Status(416, None)));
    let error = client.open(&server.url("/empty")).unwrap_err().to_string();
    assert!(error.contains("416"), "{error}");
}

/// Also where a client of stores would change it, with its user and password, and without HEAD.
#[test]
fn an_address_goes_out_as_it_was_given() {
    let server = Server::start();
    let (driver, client) = (driver(8 << 20), client(objects::limits()));
    for (path, key) in [
        ("/a//b/c", "/a//b/c"),
        ("/a?v=1&w=%2F", "/a?v=1&w=/"),
        ("/a%2Fb/", "/a/b/"),
        ("/?v", "/?v"),
        ("/a%20b", "/a b"),
    ] {
        server.put(key, "1", content(1));
        let address = server.url(path).replace("http://", "http://me:secret@");
        let object = client.open(&address).unwrap();
        let reader = driver.open_source(Arc::new(object)).unwrap();
        assert!(read_all(&reader).unwrap() == content(1), "{path}");
        let lines = server.lines();
        let asked = format!("GET {path} HTTP/1.1");
        assert!(lines.contains(&asked), "{path}: {lines:?}");
    }
    let lines = server.lines();
    let count = |line: &str| {
        lines
            .iter()
            .filter(|l| l.eq_ignore_ascii_case(line))
            .count()
    };
    let requests = lines.iter().filter(|l| l.ends_with(" HTTP/1.1")).count();
    assert!(
        lines.iter().all(|line| !line.starts_with("HEAD")),
        "{lines:?}"
    );
    assert_eq!(count("authorization: Basic bWU6c2VjcmV0"), requests);
    assert_eq!(count("accept-encoding: identity"), requests);
}

/// A server may send less than was asked for (RFC 9110, section 15.3.7.1).
#[test]
fn a_range_that_comes_in_parts_is_read() {
    let server = Server::start();
    server.put("/a", "1", content(1));
    server.put("/one", "1", vec![7]);
    let (driver, client) = (driver(8 << 20), make(&server));
    let reader = client.open(&driver, "/a");
    server.fail_always(Some(Fault::Part(500_000)));
    assert!(read_all(&reader).unwrap() == content(1));
    assert_eq!(read_all(&client.open(&driver, "/one")).unwrap(), [7]);
}

/// Chunks in place of a length, and headers that have nothing to do with it.
#[test]
fn an_odd_answer_is_read() {
    let server = Server::start();
    server.put("/a", "1", content(1));
    server.fail_always(Some(Fault::Odd));
    let driver = driver(8 << 20);
    let reader = make(&server).open(&driver, "/a");
    assert!(read_all(&reader).unwrap() == content(1));
}

#[test]
fn a_failed_prefetch_is_counted_and_no_reader_sees_it() {
    let server = Server::start();
    server.put("/a", "1", content(1));
    let driver = driver(8 << 20);
    let reader = make(&server).open(&driver, "/a");
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
