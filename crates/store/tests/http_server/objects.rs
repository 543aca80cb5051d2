//! Tests of every client of objects: each reads the same objects, behind the same faults, of the server beside this file.
//!
//! The program of tests has a test of each name for each client: `of_every_client` in `suite/main.rs`.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use forerun_core::{Bytes, preset};
use forerun_io::error::number;
use forerun_io::source::remote::Limits;
use forerun_io::{Config, Driver, Reader, generated};

use super::{Fault, Server};

pub(crate) const BYTES: usize = 3 * (1 << 20) + 777;

/// A client of one server.
pub(crate) trait Client {
    /// The address of the object at a path of the server.
    fn address(&self, path: &str) -> String;
    fn open(&self, driver: &Driver, path: &str) -> Reader;
    /// Bytes that it reads of an object to open it.
    fn bytes_to_open(&self) -> u64;
}

/// As little patience as a test has: a tenth of a second is the shortest pause.
pub(crate) fn limits() -> Limits {
    Limits {
        deadline: Duration::from_secs(20),
        ..Limits::default()
    }
}

/// A server that is only late is asked twice, which changes no byte.
pub(crate) fn impatient_limits() -> Limits {
    Limits {
        silence: Duration::from_millis(500),
        ..limits()
    }
}

/// Makes a client of a server.
pub(crate) type Make = fn(&Server) -> Box<dyn Client>;

pub(crate) fn content(version: u64) -> Vec<u8> {
    let mut bytes = vec![0; BYTES];
    generated::fill(version, 0, 0, &mut bytes);
    bytes
}

pub(crate) fn driver(memory: u64) -> Driver {
    let settings = preset::default().settings(Bytes(memory)).unwrap();
    Driver::new(Config::new(settings)).unwrap()
}

pub(crate) fn read_all(reader: &Reader) -> std::io::Result<Vec<u8>> {
    let (mut all, mut piece) = (Vec::new(), vec![0; 100_000]);
    loop {
        match reader.read_at(&mut piece, all.len() as u64)? {
            0 => return Ok(all),
            n => all.extend(&piece[..n]),
        }
    }
}

pub(crate) fn an_object_is_read_whole_ahead_of_its_reader_and_each_byte_once(make: Make) {
    let server = Server::start();
    server.put("/b/a", "1", content(1));
    let (driver, client) = (driver(8 << 20), make(&server));
    let reader = client.open(&driver, "/b/a");
    assert!(read_all(&reader).unwrap() == content(1));
    let (requests, bytes) = server.counts();
    assert_eq!(bytes, BYTES as u64 + client.bytes_to_open());
    assert!(requests < 40, "{requests} requests for 770 blocks");
    drop(reader);
    let ledger = driver.finish().unwrap();
    ledger.check().unwrap();
    assert!(ledger.used > 400, "fetched ahead and used: {ledger:?}");
}

/// One at a time, the first would wait for the others for ever.
pub(crate) fn requests_to_a_server_that_is_not_known_yet_go_out_side_by_side(make: Make) {
    let server = Server::start();
    let (driver, client) = (driver(64 << 20), make(&server));
    let readers = (0..8).map(|number| {
        let path = format!("/b/{number}");
        server.put(&path, "1", content(1));
        client.open(&driver, &path)
    });
    let readers: Vec<_> = readers.collect();
    server.hold(8);
    std::thread::scope(|scope| {
        for reader in &readers {
            scope.spawn(|| assert_eq!(reader.read_at(&mut [0; 4096], 0).unwrap(), 4096));
        }
    });
}

/// One at a time, the first would wait for the others for ever. They lie so far apart that no window of one has
/// blocks of another.
pub(crate) fn ranges_of_one_object_are_under_way_side_by_side(make: Make) {
    const APART: u64 = 1 << 30;
    let server = Server::start();
    let driver = driver(64 << 20);
    server.put_zeros("/b/a", 8 * APART);
    let reader = make(&server).open(&driver, "/b/a");
    server.hold(8);
    std::thread::scope(|scope| {
        for part in 0..8 {
            let reader = &reader;
            let read = move || reader.read_at(&mut [1; 4096], part * APART).unwrap();
            scope.spawn(move || assert_eq!(read(), 4096));
        }
    });
}

/// 5 TiB, the largest of S3.
pub(crate) fn the_largest_object_is_read_at_its_end_and_not_beyond(make: Make) {
    let (server, size) = (Server::start(), 5 << 40);
    server.put_zeros("/b/a", size);
    let driver = driver(8 << 20);
    let reader = make(&server).open(&driver, "/b/a");
    assert_eq!(reader.size(), size);
    let mut end = [1; 100];
    assert_eq!(reader.read_at(&mut end, size - 10).unwrap(), 10);
    assert_eq!((end[..10].iter().sum::<u8>(), end[10]), (0, 1));
    for beyond in [size, u64::MAX] {
        assert_eq!(reader.read_at(&mut end, beyond).unwrap(), 0);
    }
}

/// The client gives up after its silence; that the test ends is the property.
pub(crate) fn a_body_that_stalls_is_asked_for_again(impatient: Make) {
    let server = Server::start();
    server.put("/b/a", "1", content(1));
    let driver = driver(8 << 20);
    let reader = impatient(&server).open(&driver, "/b/a");
    server.fail([Fault::Stall(1000), Fault::Stall(0)]);
    assert!(read_all(&reader).unwrap() == content(1));
    assert_eq!(server.faults_left(), 0);
}

pub(crate) fn an_empty_object_ends_at_once(make: Make) {
    let server = Server::start();
    server.put("/b/empty", "1", Vec::new());
    let driver = driver(1 << 20);
    let reader = make(&server).open(&driver, "/b/empty");
    assert_eq!(reader.read_at(&mut [0; 10], 0).unwrap(), 0);
}

pub(crate) fn passing_faults_are_not_seen_by_a_reader_or_at_opening(make: Make) {
    let server = Server::start();
    server.put("/b/a", "1", content(1));
    let driver = driver(8 << 20);
    server.fail([Fault::Status(503, None), Fault::Reset]);
    let reader = make(&server).open(&driver, "/b/a");
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

/// The reader waits no shorter; how much longer is the machine's.
pub(crate) fn a_server_that_asks_for_a_second_gets_it(make: Make) {
    let server = Server::start();
    server.put("/b/a", "1", content(1));
    let driver = driver(8 << 20);
    let reader = make(&server).open(&driver, "/b/a");
    server.fail([Fault::Status(429, Some(1))]);
    let begun = Instant::now();
    assert_eq!(reader.read_at(&mut [0; 10], 0).unwrap(), 10);
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

/// No shorter than without one, no longer than the deadline, and never a panic.
pub(crate) fn a_server_may_ask_for_any_pause(make: Make) {
    let server = Server::start();
    server.put("/b/a", "1", content(1));
    let client = make(&server);
    let first = driver(8 << 20);
    let reader = client.open(&first, "/b/a");
    server.fail([Fault::Status(503, Some(0)); 3]);
    let begun = Instant::now();
    assert_eq!(reader.read_at(&mut [0; 10], 0).unwrap(), 10);
    let waited = begun.elapsed();
    assert!(waited >= Duration::from_millis(700), "{waited:?}");
    for seconds in [u64::MAX, i64::MAX as u64, 1 << 40, 3600] {
        // A driver each, so that nothing is resident.
        let driver = driver(1 << 20);
        let reader = client.open(&driver, "/b/a");
        server.fail_always(Some(Fault::Status(503, Some(seconds))));
        let error = reader.read_at(&mut [0], 2_000_000).unwrap_err();
        assert_eq!(number(&error), Some(libc::EIO), "{seconds}: {error}");
        server.fail_always(None);
        assert_eq!(reader.read_at(&mut [0], 2_000_000).unwrap(), 1);
    }
}

pub(crate) fn bytes_behind_the_range_are_left(make: Make) {
    let server = Server::start();
    server.put("/b/a", "1", content(1));
    let driver = driver(8 << 20);
    let reader = make(&server).open(&driver, "/b/a");
    server.fail_always(Some(Fault::Endless));
    assert!(read_all(&reader).unwrap() == content(1));
}

pub(crate) fn an_object_of_another_size_is_refused(make: Make) {
    let server = Server::start();
    server.put("/b/a", "1", content(1));
    let client = make(&server);
    for total in [BYTES as u64 + 1, 1 << 60, u64::MAX] {
        let driver = driver(1 << 20);
        let reader = client.open(&driver, "/b/a");
        server.fail_always(Some(Fault::Total(total)));
        let error = reader.read_at(&mut [0], 0).unwrap_err();
        assert_eq!(number(&error), Some(libc::EIO), "{total}: {error}");
        server.fail_always(None);
    }
}

/// The other one could be asked for another object, and told secrets.
pub(crate) fn a_redirect_stays_with_its_server(make: Make) {
    let (server, other) = (Server::start(), Server::start());
    for server in [&server, &other] {
        server.put("/b/a", "1", content(1));
    }
    let leaked = |address: String| -> &'static str { address.leak() };
    let client = make(&server);
    let driver = driver(8 << 20);
    for to in ["/b/a".to_owned(), server.url("/b/a")] {
        let reader = client.open(&driver, "/b/a");
        server.fail([Fault::Redirect(leaked(to))]);
        assert_eq!(reader.read_at(&mut [0; 10], 0).unwrap(), 10);
    }
    let port = other.url("/b/a").replace("127.0.0.1", "localhost");
    for to in [
        other.url("/b/a"),
        port,
        other.url("/b/a")["http:".len()..].to_owned(),
        server.url("/b/a").replace("http:", "https:"),
        "/b/a/again".to_owned(),
    ] {
        let reader = client.open(&driver, "/b/a");
        server.fail_always(Some(Fault::Redirect(leaked(to.clone()))));
        let error = reader.read_at(&mut [0], 1_500_000).unwrap_err();
        assert_eq!(number(&error), Some(libc::EIO), "{to}: {error}");
        server.fail_always(None);
    }
    assert_eq!(other.counts(), (0, 0));
}

pub(crate) fn a_replaced_object_is_an_error_to_its_readers_and_new_to_the_next_open(make: Make) {
    let server = Server::start();
    server.put("/b/a", "1", content(1));
    let (driver, client) = (driver(1 << 20), make(&server));
    let old = client.open(&driver, "/b/a");
    let mut piece = vec![0; 100_000];
    assert_eq!(old.read_at(&mut piece, 0).unwrap(), piece.len());
    assert!(piece == content(1)[..piece.len()]);
    server.put("/b/a", "2", content(2));
    // Resident blocks are of the old version; the others cannot be had any more.
    let error = read_all(&old)
        .map(|all| assert!(all == content(1)))
        .unwrap_err();
    assert_eq!(number(&error), Some(libc::ESTALE), "{error}");
    let new = client.open(&driver, "/b/a");
    assert!(read_all(&new).unwrap() == content(2));
    server.delete("/b/a");
    let error = new.read_at(&mut piece, 0).unwrap_err();
    assert_eq!(number(&error), Some(libc::ENOENT), "{error}");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let address = client.address("/b/a");
    assert!(error.to_string().starts_with(&address), "{error}");
}

/// Shorter, so that a range lies behind its end, and longer.
pub(crate) fn a_replaced_object_of_another_size_is_told_by_its_tag_where_conditions_are_ignored(
    make: Make,
) {
    let server = Server::start();
    server.ignore_conditions();
    let client = make(&server);
    let last = BYTES as u64 - 1;
    for size in [1, BYTES / 2, BYTES - 1, BYTES + 1] {
        server.put("/b/a", "1", content(1));
        let driver = driver(1 << 20);
        let reader = client.open(&driver, "/b/a");
        server.put("/b/a", "2", vec![0; size]);
        for at in [last, 0] {
            let error = reader.read_at(&mut [0], at).unwrap_err();
            assert_eq!(
                number(&error),
                Some(libc::ESTALE),
                "{size} at {at}: {error}"
            );
        }
    }
}

pub(crate) fn refusals_reach_the_reader_as_what_they_are(make: Make) {
    let server = Server::start();
    server.put("/b/a", "1", content(1));
    let client = make(&server);
    let refused = [
        (Fault::Status(401, None), libc::EACCES),
        (Fault::Status(403, None), libc::EACCES),
        (
            Fault::Text(403, "<Error><Code>AccessDenied</Code></Error>"),
            libc::EACCES,
        ),
        (Fault::Status(404, None), libc::ENOENT),
        (Fault::Status(412, None), libc::ESTALE),
        (Fault::Status(416, None), libc::EIO),
        (Fault::Status(400, None), libc::EIO),
        (Fault::Whole, libc::EIO),
        // The server may have ignored the condition: it could be another version.
        (Fault::Untagged, libc::ESTALE),
        (Fault::Weak, libc::ESTALE),
        (Fault::Shifted, libc::EIO),
    ];
    for (fault, expected) in refused {
        // A driver each, so that nothing is resident.
        let driver = driver(1 << 20);
        let reader = client.open(&driver, "/b/a");
        let mut byte = [0];
        server.fail_always(Some(fault));
        let error = reader.read_at(&mut byte, 1_500_000).unwrap_err();
        server.fail_always(None);
        assert_eq!(number(&error), Some(expected), "{fault:?}: {error}");
        let address = client.address("/b/a");
        assert!(error.to_string().starts_with(&address), "{error}");
        // The next one is not refused.
        assert_eq!(reader.read_at(&mut byte, 1_500_000).unwrap(), 1);
    }
}
