//! Objects of a store that speaks S3: whole, replaced while they are read, and with the faults a network has.

#[path = "../../io/tests/http_server/mod.rs"]
mod http_server;

use std::sync::Arc;
use std::time::Duration;

use forerun_core::{Bytes, preset};
use forerun_io::error::number;
use forerun_io::{Config, Driver, Reader, generated};
use forerun_store::{Client, Limits};
use http_server::{Fault, Server};

const BYTES: usize = 3 * (1 << 20) + 777;

fn content(version: u64) -> Vec<u8> {
    let mut bytes = vec![0; BYTES];
    generated::fill(version, 0, 0, &mut bytes);
    bytes
}

/// Of the bucket `b` on this server; nothing of the machine's environment is used.
fn client(server: &Server) -> Client {
    let limits = Limits {
        deadline: Duration::from_secs(20),
        ..Limits::default()
    };
    let variables = [
        ("AWS_ENDPOINT_URL", server.url("")),
        ("AWS_ACCESS_KEY_ID", "key".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value));
    Client::with_variables(limits, variables).unwrap()
}

fn driver(memory: u64) -> Driver {
    let settings = preset::default().settings(Bytes(memory)).unwrap();
    Driver::new(Config::new(settings)).unwrap()
}

fn open(driver: &Driver, client: &Client, url: &str) -> Reader {
    let object = client.open(url).unwrap();
    driver.open_source(Arc::new(object)).unwrap()
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
    server.put("/b/a/key", "1", content(1));
    let driver = driver(8 << 20);
    let reader = open(&driver, &client(&server), "s3://b/a/key");
    assert!(read_all(&reader).unwrap() == content(1));
    let (requests, bytes) = server.counts();
    assert_eq!(bytes, BYTES as u64);
    assert!(requests < 40, "{requests} requests for 770 blocks");
    drop(reader);
    let ledger = driver.finish().unwrap();
    ledger.check().unwrap();
    assert!(ledger.used > 400, "fetched ahead and used: {ledger:?}");
}

#[test]
fn an_object_of_http_is_read_by_the_same_client() {
    let server = Server::start();
    server.put("/a%20b", "1", content(1));
    let driver = driver(8 << 20);
    let reader = open(&driver, &client(&server), &server.url("/a%20b"));
    assert!(read_all(&reader).unwrap() == content(1));
}

#[test]
fn an_empty_object_ends_at_once() {
    let server = Server::start();
    server.put("/b/empty", "1", Vec::new());
    let driver = driver(1 << 20);
    let reader = open(&driver, &client(&server), "s3://b/empty");
    assert_eq!(reader.read_at(&mut [0; 10], 0).unwrap(), 0);
}

#[test]
fn passing_faults_are_not_seen_by_a_reader_or_at_opening() {
    let server = Server::start();
    server.put("/b/a", "1", content(1));
    let driver = driver(8 << 20);
    server.fail([Fault::Status(503, None), Fault::Reset]);
    let reader = open(&driver, &client(&server), "s3://b/a");
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
    server.put("/b/a", "1", content(1));
    let (driver, client) = (driver(1 << 20), client(&server));
    let old = open(&driver, &client, "s3://b/a");
    let mut piece = vec![0; 100_000];
    assert_eq!(old.read_at(&mut piece, 0).unwrap(), piece.len());
    assert!(piece == content(1)[..piece.len()]);
    server.put("/b/a", "2", content(2));
    let error = read_all(&old)
        .map(|all| assert!(all == content(1)))
        .unwrap_err();
    assert_eq!(number(&error), Some(libc::ESTALE), "{error}");
    let new = open(&driver, &client, "s3://b/a");
    assert!(read_all(&new).unwrap() == content(2));
    server.delete("/b/a");
    let error = new.read_at(&mut piece, 0).unwrap_err();
    assert_eq!(number(&error), Some(libc::ENOENT), "{error}");
    assert!(error.to_string().starts_with("s3://b/a"), "{error}");
}

#[test]
fn refusals_reach_the_reader_as_what_they_are() {
    let server = Server::start();
    server.put("/b/a", "1", content(1));
    let refused = [
        (Fault::Status(401, None), libc::EACCES),
        (Fault::Status(403, None), libc::EACCES),
        (Fault::Status(404, None), libc::ENOENT),
        (Fault::Status(412, None), libc::ESTALE),
        (Fault::Status(416, None), libc::EIO),
        (Fault::Status(400, None), libc::EIO),
        (Fault::Status(301, None), libc::EIO),
        (Fault::Whole, libc::EIO),
    ];
    let client = client(&server);
    for (fault, expected) in refused {
        // A driver each, so that nothing is resident.
        let driver = driver(1 << 20);
        let reader = open(&driver, &client, "s3://b/a");
        let mut byte = [0];
        server.fail_always(Some(fault));
        let error = reader.read_at(&mut byte, 1_500_000).unwrap_err();
        server.fail_always(None);
        assert_eq!(number(&error), Some(expected), "{fault:?}: {error}");
        assert!(error.to_string().starts_with("s3://b/a"), "{error}");
        assert_eq!(reader.read_at(&mut byte, 1_500_000).unwrap(), 1);
    }
}

#[test]
fn an_object_that_cannot_be_opened_is_named() {
    let server = Server::start();
    server.put("/b/weak", "1", Vec::new());
    let client = client(&server);
    for (url, why) in [
        ("s3://b/absent", "No such file"),
        ("s3://b/", "no object"),
        ("s3://b/a//c", "empty path segment"),
        ("ftp://b/a", "begins with none of s3://"),
    ] {
        let error = client.open(url).unwrap_err().to_string();
        assert!(error.starts_with(url) && error.contains(why), "{error}");
    }
}

/// One at a time, the first would wait for the others for ever.
#[test]
fn ranges_of_several_objects_are_under_way_at_once() {
    let server = Server::start();
    let driver = driver(64 << 20);
    let client = client(&server);
    let readers = (0..8).map(|number| {
        server.put(&format!("/b/{number}"), "1", content(1));
        open(&driver, &client, &format!("s3://b/{number}"))
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
fn a_listing_that_fails_says_so_at_its_end() {
    let server = Server::start();
    server.list(2_500);
    let mut all = client(&server).list("s3://b/").unwrap();
    assert_eq!(all.by_ref().take(1001).filter(Result::is_ok).count(), 1001);
    server.fail_always(Some(Fault::Status(403, None)));
    let error = all.next().unwrap().unwrap_err().to_string();
    assert!(error.starts_with("s3://b/: "), "{error}");
    assert!(all.next().is_none());
}

/// Whatever happens to an object while it is read, its reader gets one version of it or an error.
#[test]
fn a_reader_never_has_bytes_of_two_versions() {
    let seed = std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| u64::from(std::process::id()));
    let mut state = seed;
    // Steele et al. 2014, SplitMix64.
    let mut draw = move |below: u64| {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ z >> 31) % below
    };
    let server = Server::start();
    let client = client(&server);
    for round in 0..30 {
        let mut version = 10 * round;
        let put = |version: u64, bytes: usize| {
            let content = content(version)[..bytes].to_vec();
            server.put("/b/a", &version.to_string(), content);
        };
        put(version, BYTES);
        let driver = driver(1 << 20);
        let reader = open(&driver, &client, "s3://b/a");
        let mut piece = vec![0; 50_000];
        for _ in 0..8 {
            match draw(4) {
                0 => server.delete("/b/a"),
                1 => {
                    version += 1;
                    put(version, 1 + draw(BYTES as u64) as usize);
                }
                _ => {}
            }
            let at = draw(BYTES as u64) as usize;
            if let Ok(read) = reader.read_at(&mut piece, at as u64) {
                let expected = &content(10 * round)[at..(at + piece.len()).min(BYTES)];
                assert!(
                    piece[..read] == expected[..read],
                    "SEED={seed}, round {round}"
                );
                assert!(read > 0, "SEED={seed}, round {round}: an end at byte {at}");
            }
        }
    }
}
