//! Objects of a store that speaks S3: whole, replaced while they are read, and with the faults a network has.

use std::sync::Arc;

use forerun_io::error::number;
use forerun_io::source::fetch;
use forerun_io::source::tree::Tree;
use forerun_io::{Driver, Reader};
use forerun_store::{Client, Limits, Part};

use crate::http_server::objects::{self, BYTES, content, driver};
use crate::http_server::{Fault, Server};

/// Of the bucket `b` on this server; nothing of the machine's environment is used.
fn client(server: &Server) -> Client {
    client_with(objects::limits(), server)
}

fn client_with(limits: Limits, server: &Server) -> Client {
    let variables = [
        ("AWS_ENDPOINT_URL", server.url("")),
        ("AWS_ACCESS_KEY_ID", "key".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value));
    Client::with_variables(limits, variables).unwrap()
}

fn open(driver: &Driver, client: &Client, url: &str) -> Reader {
    let object = client.open(url).unwrap();
    driver.open_source(Arc::new(object)).unwrap()
}

/// The client of this program: `/b/key` is `s3://b/key`.
struct S3(Client);

impl objects::Client for S3 {
    fn address(&self, path: &str) -> String {
        format!("s3:/{path}")
    }

    fn open(&self, driver: &Driver, path: &str) -> Reader {
        open(driver, &self.0, &self.address(path))
    }

    fn bytes_to_open(&self) -> u64 {
        0
    }
}

fn make(server: &Server) -> Box<dyn objects::Client> {
    Box::new(S3(client(server)))
}

fn impatient(server: &Server) -> Box<dyn objects::Client> {
    Box::new(S3(client_with(objects::impatient_limits(), server)))
}

of_every_client!();

/// Google Cloud Storage is asked for generations, of which a replaced one is not there.
#[test]
fn a_generation_that_was_replaced_is_stale_and_one_that_was_deleted_is_not_there() {
    let server = Server::start();
    server.tell_generations();
    let variables = [("GOOGLE_BASE_URL".to_owned(), server.url(""))];
    let client = Client::with_variables(objects::limits(), variables).unwrap();
    server.put("/b/a", "1", content(1));
    let object = client.open("gs://b/a").unwrap();
    assert_eq!(fetch(&object, 0, 10).unwrap(), content(1)[..10]);
    let failed = || number(&fetch(&object, 0, 10).unwrap_err());
    server.put("/b/a", "2", content(2));
    assert_eq!(failed(), Some(libc::ESTALE));
    server.delete("/b/a");
    assert_eq!(failed(), Some(libc::ENOENT));
    // Of the same size, so that the number alone tells.
    server.ignore_conditions();
    server.put("/b/a", "2", content(2));
    assert_eq!(failed(), Some(libc::ESTALE));
}

#[test]
fn a_part_comes_with_the_opening_and_is_of_the_version_that_is_read() {
    let server = Server::start();
    let all = content(1);
    server.put("/b/a", "1", all.clone());
    let client = client(&server);
    for bytes in [4096, 1 << 20, BYTES as u64, u64::MAX] {
        let before = server.counts().0;
        let object = client.open_part("s3://b/a", Part::First(bytes)).unwrap();
        let held = BYTES.min(usize::try_from(bytes).unwrap_or(usize::MAX));
        let length = u32::try_from(held).unwrap();
        assert_eq!(fetch(&object, 0, length).unwrap(), all[..held]);
        assert_eq!(server.counts().0, before + 1, "{bytes}");
        // The bytes that were read are held no more.
        assert_eq!(fetch(&object, 0, 1).unwrap(), all[..1]);
        assert_eq!(server.counts().0, before + 2, "{bytes}");
    }
    let object = client.open_part("s3://b/a", Part::First(4096)).unwrap();
    server.put("/b/a", "2", content(2));
    assert_eq!(fetch(&object, 0, 4096).unwrap(), all[..4096]);
    let error = fetch(&object, 4096, 1).unwrap_err();
    assert_eq!(number(&error), Some(libc::ESTALE), "{error}");
    // One that has no such range is opened as any other.
    server.put("/b/empty", "1", Vec::new());
    let object = client.open_part("s3://b/empty", Part::First(10)).unwrap();
    assert!(fetch(&object, 0, 10).unwrap().is_empty());
    let error = client.open_part("s3://b/none", Part::First(10));
    assert!(error.unwrap_err().to_string().contains("s3://b/none"));
}

#[test]
fn bytes_behind_a_part_are_left() {
    let server = Server::start();
    server.put("/b/a", "1", content(1)[..10].to_vec());
    server.fail_always(Some(Fault::Unended));
    let object = client(&server).open_part("s3://b/a", Part::First(1 << 20));
    assert_eq!(fetch(&object.unwrap(), 0, 10).unwrap(), content(1)[..10]);
    assert_eq!(server.counts().0, 1);
}

#[test]
fn of_a_part_that_is_cut_off_the_rest_alone_is_asked_for() {
    let server = Server::start();
    server.put("/b/a", "1", content(1));
    let client = client(&server);
    server.fail_always(Some(Fault::Cut(4096)));
    let object = client.open_part("s3://b/a", Part::First(8192)).unwrap();
    server.fail_always(None);
    let before = server.counts().0;
    assert_eq!(fetch(&object, 0, 4096).unwrap(), content(1)[..4096]);
    assert_eq!(server.counts().0, before);
    assert_eq!(fetch(&object, 4096, 4096).unwrap(), content(1)[4096..8192]);
    assert_eq!(server.counts().0, before + 1);
    // Also of one range, which leaves nothing held.
    server.fail_always(Some(Fault::Cut(4096)));
    let object = client.open_part("s3://b/a", Part::First(8192)).unwrap();
    server.fail_always(None);
    let before = server.counts();
    assert_eq!(fetch(&object, 0, 8192).unwrap(), content(1)[..8192]);
    assert_eq!(server.counts(), (before.0 + 1, before.1 + 4096));
    assert_eq!(fetch(&object, 0, 1).unwrap(), content(1)[..1]);
    assert_eq!(server.counts(), (before.0 + 2, before.1 + 8192));
}

/// An answer to HEAD has no text, so a refused one is asked for once more; that of a part has it.
#[test]
fn a_refused_opening_asks_no_more_than_the_reason_takes() {
    let server = Server::start();
    server.put("/b/a", "1", content(1));
    let denied = "<Error><Code>AccessDenied</Code></Error>";
    for (fault, least) in [
        (Fault::Text(403, denied), 1),
        (Fault::Status(403, None), 1),
        (Fault::Status(404, None), 1),
        (Fault::Redirect("http://127.0.0.1:1/b/a"), 1),
    ] {
        let client = client(&server);
        server.fail_always(Some(fault));
        let before = server.counts().0;
        let error = client.open_part("s3://b/a", Part::First(10)).unwrap_err();
        let asked = server.counts().0 - before;
        assert_eq!(asked, least, "{fault:?}: {error}");
        let before = server.counts().0;
        let error = client.open("s3://b/a").unwrap_err();
        let asked = server.counts().0 - before;
        assert!(asked <= least + 1, "{fault:?}: {asked} requests, {error}");
        server.fail_always(None);
    }
}

/// Another place could be another object.
#[test]
fn a_redirect_is_not_followed() {
    let server = Server::start();
    server.put("/b/a", "1", content(1));
    let driver = driver(1 << 20);
    let reader = open(&driver, &client(&server), "s3://b/a");
    server.fail_always(Some(Fault::Status(301, None)));
    let error = reader.read_at(&mut [0], 0).unwrap_err();
    assert_eq!(number(&error), Some(libc::EIO), "{error}");
}

/// Also by HEAD and by a listing; and no secret is told to the other server.
#[test]
fn no_question_goes_to_another_server() {
    let (server, other) = (Server::start(), Server::start());
    server.put("/b/a", "1", content(1));
    let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let client = Client::with_variables(
        objects::limits(),
        [
            set("AWS_ENDPOINT_URL", &server.url("")),
            set("AWS_ACCESS_KEY_ID", "key"),
            set("AWS_SECRET_ACCESS_KEY", "secret"),
            set("AWS_SESSION_TOKEN", "token"),
            set("AWS_SERVER_SIDE_ENCRYPTION", "sse-c"),
            set(
                "AWS_SSE_CUSTOMER_KEY_BASE64",
                "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
            ),
        ],
    );
    let client = client.unwrap();
    let object = client.open("s3://b/a").unwrap();
    server.fail_always(Some(Fault::Redirect(other.url("/b/a").leak())));
    let refused = [
        client.open("s3://b/a").unwrap_err().to_string(),
        client.tree("s3://b").unwrap_err().to_string(),
        client
            .list("s3://b")
            .unwrap()
            .next()
            .unwrap()
            .unwrap_err()
            .to_string(),
        fetch(&object, 0, 10).unwrap_err().to_string(),
    ];
    for refused in refused {
        assert!(refused.contains("redirects to another server"), "{refused}");
    }
    assert_eq!(other.counts(), (0, 0));
    let told = server.lines().join(" ");
    assert!(told.contains("x-amz-security-token") && told.contains("customer-key"));
}

#[test]
fn an_answer_that_does_not_end_is_refused() {
    let server = Server::start();
    server.list(5);
    let client = client(&server);
    server.fail_always(Some(Fault::Endless));
    let refused = [
        client.list("s3://b").unwrap().next().unwrap().map(drop),
        client.tree("s3://b").map(drop),
    ];
    for refused in refused {
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("longer than 8 MiB"), "{refused}");
    }
    let (requests, _) = server.counts();
    assert_eq!(requests, 2, "it would not end the next time");
}

/// The file of keys is written anew, and the server takes the new ones alone.
#[test]
fn credentials_that_changed_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys");
    let server = Server::start();
    server.put("/b/a", "1", content(1));
    let rotate = |key: &str| {
        let keys = format!(
            "[default]\naws_access_key_id={key}\naws_secret_access_key=s\naws_session_token=t{key}\n"
        );
        std::fs::write(&file, keys).unwrap();
    };
    rotate("A");
    let variables = [
        ("AWS_ENDPOINT_URL", server.url("")),
        ("AWS_SHARED_CREDENTIALS_FILE", file.display().to_string()),
        ("AWS_CONFIG_FILE", "/absent".to_owned()),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value));
    let client = Client::with_variables(objects::limits(), variables).unwrap();
    for refused in [401, 403, 400] {
        rotate("A");
        server.accept("A", refused);
        let (driver, tree) = (driver(1 << 20), client.tree("s3://b").unwrap());
        let reader = open(&driver, &client, "s3://b/a");
        assert_eq!(reader.read_at(&mut [0], 0).unwrap(), 1);
        // By each kind of request.
        rotate("B");
        server.accept("B", refused);
        assert_eq!(reader.read_at(&mut [0], 1_000_000).unwrap(), 1);
        rotate("C");
        server.accept("C", refused);
        assert!(tree.find("a").unwrap().is_some(), "{refused}");
        rotate("D");
        server.accept("D", refused);
        assert_eq!(tree.list("").unwrap().count(), 1, "{refused}");
        rotate("E");
        server.accept("E", refused);
        assert!(client.open("s3://b/a").is_ok(), "{refused}");
        // A file that did not change is not used again.
        server.accept("F", refused);
        let (before, _) = server.counts();
        let error = client.open("s3://b/a").unwrap_err().to_string();
        // A GET asks for the reason, which an answer to HEAD does not have.
        assert_eq!(server.counts().0, before + 2, "{error}");
        if refused != 400 {
            let by = format!(
                "s3://b/a: signed with keys of {}, profile default",
                file.display()
            );
            assert!(error.starts_with(&by), "{error}");
        }
        assert!(!error.contains("secret"), "{error}");
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

#[test]
fn a_listing_that_fails_says_so_at_its_end() {
    let server = Server::start();
    server.list(2_500);
    let mut all = client(&server).list("s3://b/").unwrap();
    // The last key of a page is held back: the next one could have a folder of its name.
    assert_eq!(all.by_ref().take(1000).filter(Result::is_ok).count(), 1000);
    server.fail_always(Some(Fault::Status(403, None)));
    let error = all.next().unwrap().unwrap_err().to_string();
    assert!(error.starts_with("s3://b/: "), "{error}");
    assert!(all.next().is_none());
}

/// A program that mirrors a folder would delete its copy.
#[test]
fn an_answer_that_is_no_listing_is_an_error_and_no_empty_folder() {
    const PAGE: &str = "<ListBucketResult><IsTruncated>true</IsTruncated><NextMarker>k</NextMarker><Contents><Key>k</Key>\
        <LastModified>2024-01-01T00:00:00Z</LastModified><ETag>1</ETag><Size>1</Size></Contents></ListBucketResult>";
    for (status, text, why) in [
        (200, "<html><body>Please log in</body></html>", "<html>"),
        (200, "<Error><Code>InternalError</Code></Error>", "<Error>"),
        (206, "<ListBucketResult></ListBucketResult>", "206"),
        (200, PAGE, "without a token"),
    ] {
        let server = Server::start();
        server.list(5);
        let mut all = client(&server).list("s3://b/").unwrap();
        server.fail_always(Some(Fault::Text(status, text)));
        let error = all.next().unwrap().unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
        assert!(all.next().is_none());
    }
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
