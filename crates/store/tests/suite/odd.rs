//! Stores that answer otherwise than others of their kind.

use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use forerun_io::error::number;
use forerun_io::source::fetch;
use forerun_store::{Client, Limits};

use crate::http_server::objects::{content, limits};
use crate::http_server::{Fault, Server};
use crate::scripted::{Scripted, object, run_again, status};

const OLD: &[u8] = b"of the first";
const NEW: &[u8] = b"of the other";

#[test]
fn a_header_that_is_no_text_does_not_keep_an_object_from_its_reader() {
    let headers = "ETag: \"1\"\r\nx-amz-meta-a: \u{e9}\r\nx-goog-meta-a: \u{e9}\r\nx-ms-meta-a: \u{e9}\r\n\
                   Content-Disposition: attachment; filename=\u{e9}\r\n";
    let server = Scripted::start(move |head| object(head, headers, OLD));
    for scheme in ["s3", "gs", "az"] {
        let url = format!("{scheme}://b/k");
        let object = server.client().open(&url).unwrap();
        assert_eq!(fetch(&object, 0, 100).unwrap(), OLD, "{scheme}");
    }
}

/// Google Cloud Storage unpacks such an object for a client that does not take gzip, and tells no length.
#[test]
fn an_object_that_is_stored_as_gzip_is_read_as_it_is_stored() {
    let server = Scripted::start(|head| {
        let headers = "ETag: \"1\"\r\nContent-Encoding: gzip\r\n";
        let stored = object(head, headers, OLD);
        if head.contains("accept-encoding: gzip\n") {
            return stored;
        }
        let text = String::from_utf8(stored).unwrap();
        let length = text.lines().find(|line| line.starts_with("Content-Length"));
        text.replace(length.unwrap(), "X-Unpacked: 1").into()
    });
    let object = server.client().open("gs://b/k").unwrap();
    assert_eq!(fetch(&object, 0, 100).unwrap(), OLD);
    // Servers before a store of S3 may pack for such a client, and ranges would be of the packed bytes.
    assert!(server.client().open("s3://b/k").is_err());
}

/// Of AWS, without the right `s3:GetObjectVersion`.
#[test]
fn a_version_whose_number_is_refused_is_read_by_its_tag() {
    let is_replaced = Arc::new(AtomicBool::new(false));
    let replaced = is_replaced.clone();
    let server = Scripted::start(move |head| {
        let (tag, content) = match replaced.load(Ordering::Relaxed) {
            true => ("\"2\"", NEW),
            false => ("\"1\"", OLD),
        };
        let condition = head
            .lines()
            .find_map(|line| line.strip_prefix("if-match: "));
        if head.contains("versionId=") {
            return status(403);
        }
        if condition.is_some_and(|wanted| wanted != tag) {
            return status(412);
        }
        let headers = format!("ETag: {tag}\r\nx-amz-version-id: v1\r\n");
        object(head, &headers, content)
    });
    let object = server.client().open("s3://b/k").unwrap();
    for _ in 0..3 {
        assert_eq!(fetch(&object, 0, 100).unwrap(), OLD);
    }
    assert_eq!(server.count("versionId="), 1, "it is refused the next time");
    assert_eq!(server.count("if-match: \"1\"\n"), 3);
    is_replaced.store(true, Ordering::Relaxed);
    let error = fetch(&object, 0, 100).unwrap_err();
    assert_eq!(number(&error), Some(libc::ESTALE), "{error}");
}

/// A gateway that tells numbers of versions, and knows no request by one.
#[test]
fn a_version_whose_number_is_not_known_is_read_by_its_tag() {
    let server = Scripted::start(|head| {
        let headers = "ETag: \"1\"\r\nx-amz-version-id: v1\r\n";
        match head.contains("versionId=") {
            true => status(501),
            false => object(head, headers, OLD),
        }
    });
    let object = server.client().open("s3://b/k").unwrap();
    for _ in 0..3 {
        assert_eq!(fetch(&object, 0, 100).unwrap(), OLD);
    }
    assert_eq!(server.count("versionId="), 1);
}

/// A gateway that tells numbers at HEAD alone, and does not know them at GET. Both objects have one size.
#[test]
fn an_answer_that_names_no_version_is_told_by_its_tag() {
    let is_replaced = Arc::new(AtomicBool::new(false));
    let replaced = is_replaced.clone();
    let server = Scripted::start(move |head| {
        let (tag, content) = match replaced.load(Ordering::Relaxed) {
            true => ("ETag: \"2\"\r\n", NEW),
            false => ("ETag: \"1\"\r\n", OLD),
        };
        let number = match head.starts_with("HEAD") {
            true => "x-amz-version-id: v1\r\n",
            false => "",
        };
        object(head, &format!("{tag}{number}"), content)
    });
    let object = server.client().open("s3://b/k").unwrap();
    assert_eq!(fetch(&object, 0, 100).unwrap(), OLD);
    is_replaced.store(true, Ordering::Relaxed);
    let error = fetch(&object, 0, 100).unwrap_err();
    assert_eq!(number(&error), Some(libc::ESTALE), "{error}");
}

#[test]
fn an_empty_token_is_the_end_of_a_listing() {
    let page = |key: &str, next: &str| {
        let text = format!(
            "<ListBucketResult><Contents><Key>{key}</Key><LastModified>2024-01-01T00:00:00Z</LastModified>\
             <ETag>\"1\"</ETag><Size>1</Size></Contents>{next}</ListBucketResult>"
        );
        let bytes = text.len();
        format!("HTTP/1.1 200 -\r\nContent-Length: {bytes}\r\n\r\n{text}").into_bytes()
    };
    let last = "<IsTruncated>false</IsTruncated><NextContinuationToken></NextContinuationToken>";
    let first = "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>";
    let server = Scripted::start(move |head| match head.contains("continuation-token=t") {
        true => page("b", last),
        false => page("a", first),
    });
    let names = server.client().list("s3://b").unwrap();
    let names: Vec<_> = names.map(|name| name.unwrap().0).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(server.count("GET"), 2);
}

#[test]
fn a_method_or_a_version_that_a_server_does_not_know_is_asked_for_once() {
    let server = Server::start();
    server.put("/a", "1", content(1));
    let client = Client::with_variables(limits(), []).unwrap();
    for status in [501, 505] {
        server.fail_always(Some(Fault::Status(status, None)));
        let before = server.counts().0;
        let error = client.open(&server.url("/a")).unwrap_err().to_string();
        assert!(error.contains(&status.to_string()), "{error}");
        assert_eq!(server.counts().0, before + 1, "{error}");
    }
}

/// It would be no server of TLS the next time.
/// How often a server is asked that begins with these bytes, the last of them from then on, and the error of that.
fn handshakes(answers: &'static [&[u8]]) -> (usize, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/a", listener.local_addr().unwrap());
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for mut stream in listener.incoming().map_while(Result::ok) {
            let before = counted.fetch_add(1, Ordering::Relaxed);
            let _ = stream.write_all(answers[before.min(answers.len() - 1)]);
            open.push(stream);
        }
    });
    let client = Client::with_variables(Limits::default(), []).unwrap();
    let error = client.open(&url).unwrap_err().to_string();
    (connections.load(Ordering::Relaxed), error)
}

const NO_TLS: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\r\n";

#[test]
fn a_server_that_speaks_no_tls_is_asked_once() {
    let (asked, error) = handshakes(&[NO_TLS]);
    assert_eq!(asked, 1, "{error}");
}

/// As a server does that is just replaced.
#[test]
fn a_handshake_that_a_server_ends_with_an_alert_is_begun_again() {
    // Of the kind `internal_error`.
    const ALERT: &[u8] = &[21, 3, 3, 0, 2, 2, 80];
    let (asked, error) = handshakes(&[ALERT, NO_TLS]);
    assert_eq!(asked, 2, "{error}");
}

/// It would ask the next time. In a process of its own, for the variable.
#[test]
fn a_proxy_that_asks_for_a_password_is_asked_once() {
    const CHILD: &str = "FORERUN_TEST_PROXY";
    const NAME: &str = "odd::a_proxy_that_asks_for_a_password_is_asked_once";
    if std::env::var(CHILD).is_ok() {
        let client = Client::with_variables(Limits::default(), []).unwrap();
        let error = client.open("https://store.example/a").unwrap_err();
        let error = error.to_string();
        assert!(error.contains("proxy authorization required"), "{error}");
        return;
    }
    let proxy = Scripted::start(|_| status(407));
    run_again(NAME, [(CHILD, "1"), ("HTTPS_PROXY", &proxy.address)]);
    assert_eq!(proxy.count("CONNECT"), 1);
}

/// A token in the address of a request keeps it out of messages.
#[test]
fn a_refused_connection_is_told_where_the_address_is_a_secret() {
    // No server listens on the discard port of loopback.
    let set = [
        ("AZURE_STORAGE_ACCOUNT_NAME", "account"),
        ("AZURE_STORAGE_ENDPOINT", "http://127.0.0.1:9"),
        ("AZURE_STORAGE_SAS_TOKEN", "sv=2023&sig=secret"),
    ];
    let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let client = Client::with_variables(Limits::default(), set).unwrap();
    let error = client.open("az://b/k").unwrap_err().to_string();
    assert_eq!(error, "az://b/k: no server: Connection refused");
}

/// A store that is not AWS's may answer for a bucket that it has not as for a key, or without a text.
#[test]
fn a_listing_that_is_not_found_tells_that_there_is_no_such_bucket() {
    let texts = ["", "<Error><Code>NoSuchKey</Code></Error>"];
    for text in texts {
        let server = Scripted::start(move |_| {
            let length = text.len();
            format!("HTTP/1.1 404 -\r\nContent-Length: {length}\r\n\r\n{text}").into()
        });
        for scheme in ["s3", "gs", "az"] {
            for url in [format!("{scheme}://b"), format!("{scheme}://b/below/it")] {
                let tree = server.client().tree(&url).err().unwrap().to_string();
                let listing = server.client().list(&url).unwrap().next().unwrap();
                for error in [tree, listing.unwrap_err().to_string()] {
                    let said =
                        format!("{url}: not found: there is no such bucket, or no store at ");
                    assert!(error.starts_with(&said), "{error}");
                }
            }
        }
    }
}
