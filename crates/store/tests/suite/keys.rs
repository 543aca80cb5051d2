//! Keys of a source that is busy, whose keys end soon, or whose keys are refused before they end.

use std::fs;
use std::time::{Duration, Instant, SystemTime};

use chrono::{DateTime, Utc};
use forerun_io::error::number;
use forerun_io::source::fetch;
use forerun_store::{Client, Limits};

use crate::credentials::{Home, SOURCE};
use crate::http_server;
use crate::scripted::run_again;
use crate::signed::{CONTENT, Server};

const ROLE: [(&str, &str); 1] = [("AWS_PROFILE", "role")];

/// A home whose profile `role` is had from the token service.
fn with_role() -> Home {
    let home = Home::new(
        SOURCE,
        "[profile role]\nrole_arn = arn:role\nsource_profile = base\n",
    );
    home.server.take("BASE", "se/cret+=", None);
    home
}

#[test]
fn a_source_that_is_busy_for_a_moment_is_asked_again() {
    let home = with_role();
    home.server.be_busy(2);
    home.reads(&ROLE, &["AssumeRole"; 3]);
}

#[test]
fn a_service_of_keys_that_is_not_there_is_told_before_the_patience_is_over() {
    let role = "[profile role]\nrole_arn = arn:role\nsource_profile = base\n";
    let keys = "[profile role]\naws_access_key_id = K\naws_secret_access_key = x\n";
    let home = Home::new(SOURCE, keys);
    home.server.take("K", "x", None);
    // Longer than any test may take.
    let limits = Limits {
        deadline: Duration::from_secs(86_400),
        ..Limits::default()
    };
    // No server listens on the discard port of loopback.
    let service = ("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:9");
    let client = home.client_within(limits, &[ROLE[0], service]);
    let object = client.open("s3://b/k").unwrap();
    // Of a store that has answered, with keys that are had from the service from here on.
    fs::write(home.path().join(".aws/config"), role).unwrap();
    home.server.forget("K");
    let refused = fetch(&object, 0, 100).unwrap_err();
    assert_eq!(number(&refused), Some(libc::EACCES), "{refused}");
    let client = home.client_within(limits, &[ROLE[0], service]);
    let refused = client.open("s3://b/k").unwrap_err().to_string();
    assert!(refused.contains("no keys: role arn:role"), "{refused}");
}

/// Their store knows before their time that they have ended.
#[test]
fn keys_that_were_taken_and_are_refused_are_had_again_once_a_minute() {
    let home = with_role();
    let client = home.client(&ROLE);
    let object = client.open("s3://b/k").unwrap();
    let asked = || home.server.asked().len();
    assert_eq!(asked(), 1);
    home.server.end_sessions();
    let begun = Instant::now();
    assert_eq!(fetch(&object, 0, 100).unwrap(), CONTENT);
    assert_eq!(asked(), 2);
    home.server.end_sessions();
    let again = fetch(&object, 0, 100).map_err(|error| number(&error));
    // Of a machine that stood still for a minute.
    let is_late = begun.elapsed() >= Duration::from_secs(60);
    assert!(is_late || again == Err(Some(libc::EACCES)), "{again:?}");
    assert!(is_late || asked() == 2, "a store may refuse for good");
    // By HEAD, of another client.
    let client = home.client(&ROLE);
    let before = asked();
    assert!(client.open("s3://b/k").is_ok());
    home.server.end_sessions();
    assert!(client.open("s3://b/k").is_ok());
    assert_eq!(asked(), before + 2);
    // Keys that no answer came for are no other ones when they are asked for again.
    home.server.refuse(403, "AccessDenied", "");
    assert!(home.client(&ROLE).open("s3://b/k").is_err());
    assert_eq!(asked(), before + 3);
}

/// The store refuses one object for good, and the keys are valid for all others.
#[test]
fn keys_of_a_source_that_has_no_others_are_kept_when_a_request_is_refused() {
    let home = with_role();
    let object = home.client(&ROLE).open("s3://b/k").unwrap();
    home.server.forget("BASE");
    home.server.refuse(403, "AccessDenied", "");
    let refused = fetch(&object, 0, 100).unwrap_err();
    assert_eq!(number(&refused), Some(libc::EACCES), "{refused}");
    assert_eq!(home.server.asked(), ["AssumeRole"; 2]);
    home.server.allow();
    assert_eq!(fetch(&object, 0, 100).unwrap(), CONTENT);
    assert_eq!(home.server.asked(), ["AssumeRole"; 2]);
}

#[test]
fn a_program_whose_keys_end_soon_does_not_run_for_each_request() {
    let home = Home::new(
        "",
        "[default]\ncredential_process = echo x >> HOME/runs; cat HOME/keys\n",
    );
    home.server.take("P", "s", None);
    let until = DateTime::<Utc>::from(SystemTime::now() + Duration::from_secs(200)).to_rfc3339();
    let keys = format!(
        "{{\"Version\":1,\"AccessKeyId\":\"P\",\"SecretAccessKey\":\"s\",\"Expiration\":\"{until}\"}}"
    );
    fs::write(home.path().join("keys"), keys).unwrap();
    let object = home.client(&[]).open("s3://b/k").unwrap();
    for _ in 0..50 {
        assert_eq!(fetch(&object, 0, 100).unwrap(), CONTENT);
    }
    let runs = fs::read_to_string(home.path().join("runs")).unwrap();
    assert!(runs.lines().count() <= 2, "{runs}");
}

/// The proxy would read the token of the service and the keys. In a process of its own, for the variable.
#[test]
fn no_service_of_the_machine_is_asked_through_a_proxy() {
    const CHILD: &str = "FORERUN_TEST_SERVER";
    const NAME: &str = "keys::no_service_of_the_machine_is_asked_through_a_proxy";
    if let Ok(url) = std::env::var(CHILD) {
        let set = [
            ("HOME", "/absent"),
            ("AWS_ENDPOINT_URL", &url),
            (
                "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                &format!("{url}/container"),
            ),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "of-container"),
            ("FORERUN_METADATA", "1"),
            ("AZURE_STORAGE_ACCOUNT_NAME", "account"),
            ("AZURE_STORAGE_ENDPOINT", &url),
            ("AZURE_MSI_ENDPOINT", "http://169.254.255.254/container"),
        ];
        let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
        // No machine has to be there, and none is waited for.
        let limits = Limits {
            deadline: Duration::from_secs(2),
            ..Limits::default()
        };
        let client = Client::with_variables(limits, set).unwrap();
        for url in ["s3://b/k", "az://b/k"] {
            assert!(client.open(url).is_err(), "the proxy has no objects");
        }
        return;
    }
    let (server, proxy) = (Server::start(), http_server::Server::start());
    run_again(
        NAME,
        [(CHILD, &server.url("")), ("HTTP_PROXY", &proxy.url(""))],
    );
    assert_eq!(server.asked(), ["/container"]);
    let lines = proxy.lines().join("\n");
    assert!(
        lines.contains("/b/k"),
        "the store is asked through it: {lines}"
    );
    assert!(!lines.contains("container"), "{lines}");
}
