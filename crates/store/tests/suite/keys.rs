//! Keys of a source that is busy, whose keys end soon, or whose keys are refused before they end.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use chrono::{DateTime, Utc};
use forerun_io::error::number;
use forerun_io::source::fetch;
use forerun_store::{Client, Limits};

use crate::credentials::{Home, SOURCE};
use crate::http_server;
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
