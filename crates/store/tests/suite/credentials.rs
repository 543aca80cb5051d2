//! Credentials from each source, with a server that checks the signatures made with them; and messages of refusals.

use std::fs;
use std::path::Path;
use std::time::Duration;

use forerun_io::source::{Source, fetch};
use forerun_store::{Client, Limits};
use tempfile::TempDir;

use crate::signed::{AZURE, CONTENT, Server, base64};

/// A home with both files, and the server as the store and all services.
pub(crate) struct Home {
    pub(crate) server: Server,
    folder: TempDir,
}

impl Home {
    pub(crate) fn new(credentials: &str, config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let aws = folder.path().join(".aws");
        fs::create_dir_all(aws.join("sso/cache")).unwrap();
        for (name, text) in [("credentials", credentials), ("config", config)] {
            fs::write(
                aws.join(name),
                text.replace("HOME", folder.path().to_str().unwrap()),
            )
            .unwrap();
        }
        let server = Server::start();
        Self { server, folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The bytes of the object, or the message of the error.
    fn read(&self, variables: &[(&str, &str)]) -> Result<Vec<u8>, String> {
        self.read_of("s3", variables)
    }

    pub(crate) fn client(&self, variables: &[(&str, &str)]) -> Client {
        self.client_within(Limits::default(), variables)
    }

    pub(crate) fn client_within(&self, limits: Limits, variables: &[(&str, &str)]) -> Client {
        let home = self.path().to_str().unwrap();
        let url = self.server.url("");
        let set = [("HOME", home), ("AWS_ENDPOINT_URL", &url)];
        let set = set.iter().chain(variables);
        let set = set.map(|(name, value)| {
            (
                (*name).to_owned(),
                value.replace("SERVER", &url).replace("HOME", home),
            )
        });
        Client::with_variables(limits, set).unwrap()
    }

    fn read_of(&self, scheme: &str, variables: &[(&str, &str)]) -> Result<Vec<u8>, String> {
        let object = self
            .client(variables)
            .open(&format!("{scheme}://b/k"))
            .map_err(|error| error.to_string())?;
        assert_eq!(object.bytes().unwrap(), CONTENT.len() as u64);
        fetch(&object, 0, 100).map_err(|error| error.to_string())
    }

    /// The object was read, with one round of these requests to services.
    pub(crate) fn reads(&self, variables: &[(&str, &str)], asked: &[&str]) {
        assert_eq!(self.read(variables).as_deref(), Ok(CONTENT));
        assert_eq!(self.server.asked(), asked);
    }

    fn refused(&self, variables: &[(&str, &str)], parts: &[&str]) {
        let message = self.read(variables).unwrap_err();
        for part in parts {
            let part = part.replace("HOME", self.path().to_str().unwrap());
            assert!(message.contains(&part), "{message}\nhas no {part}");
        }
    }
}

pub(crate) const SOURCE: &str =
    "[base]\naws_access_key_id = BASE\naws_secret_access_key = se/cret+=\n";

#[test]
fn keys_of_variables_and_of_profiles_sign() {
    let home = Home::new(
        SOURCE,
        "[profile late]\naws_access_key_id=LATE\naws_secret_access_key=x\naws_session_token=t/+=\n",
    );
    home.server.take("BASE", "se/cret+=", None);
    home.server.take("LATE", "x", Some("t/+="));
    home.reads(
        &[
            ("AWS_ACCESS_KEY_ID", "BASE"),
            ("AWS_SECRET_ACCESS_KEY", "se/cret+="),
        ],
        &[],
    );
    home.reads(&[("AWS_PROFILE", "base")], &[]);
    home.reads(&[("AWS_PROFILE", "late")], &[]);
}

#[test]
fn half_a_key_a_profile_that_is_not_there_and_a_file_that_is_none_are_refused() {
    let config =
        "[profile id]\naws_access_key_id=BASE\n[profile secret]\naws_secret_access_key=x\n";
    let home = Home::new(SOURCE, config);
    home.refused(&[("AWS_PROFILE", "id")], &["without aws_secret"]);
    home.refused(&[("AWS_PROFILE", "secret")], &["without aws_access"]);
    // Its region is asked for, too, though the keys are there, or none are wanted.
    let nosuch = ("AWS_PROFILE", "nosuch");
    let why = ["AWS_PROFILE: no profile \"nosuch\""];
    let [id, secret] = [("AWS_ACCESS_KEY_ID", "B"), ("AWS_SECRET_ACCESS_KEY", "s")];
    home.refused(&[id, secret, nosuch], &why);
    home.refused(&[("FORERUN_ANONYMOUS", "1"), nosuch], &why);
    let why = ["/dev/zero: a pipe or a device in place of a file"];
    home.refused(&[("AWS_SHARED_CREDENTIALS_FILE", "/dev/zero")], &why);
    home.refused(&[("AWS_WEB_IDENTITY_TOKEN_FILE", "/dev/zero")], &why);
}

#[test]
fn a_role_is_had_by_the_keys_of_another_profile_and_by_itself() {
    let config = "[profile role]\nrole_arn = arn:role\nsource_profile = base\nexternal_id = e\n\
                  [profile twice]\nrole_arn = arn:role\nsource_profile = role\n\
                  [profile own]\nrole_arn=arn:role\nsource_profile=own\naws_access_key_id=BASE\naws_secret_access_key=se/cret+=\n\
                  [profile around]\nrole_arn=arn:role\nsource_profile=back\n[profile back]\nrole_arn=arn:role\nsource_profile=around\n\
                  [profile variables]\nrole_arn=arn:role\ncredential_source=Environment\n\
                  [profile odd]\nrole_arn=arn:role\ncredential_source=Nowhere\n\
                  [profile device]\nrole_arn=arn:role\nsource_profile=base\nmfa_serial=x\n\
                  [profile half]\nrole_arn=arn:role\n[profile gone]\nrole_arn=arn:role\nsource_profile=nosuch\n\
                  [profile refused]\nrole_arn=arn:other\nsource_profile=base\n";
    let home = Home::new(SOURCE, config);
    home.server.take("BASE", "se/cret+=", None);
    home.reads(&[("AWS_PROFILE", "role")], &["AssumeRole"]);
    home.reads(&[("AWS_PROFILE", "own")], &["AssumeRole"; 2]);
    home.reads(&[("AWS_PROFILE", "twice")], &["AssumeRole"; 4]);
    home.refused(&[("AWS_PROFILE", "around")], &["more than 5 roles"]);
    home.refused(
        &[("AWS_PROFILE", "variables")],
        &["profile variables: no keys for role_arn"],
    );
    home.refused(
        &[("AWS_PROFILE", "odd")],
        &["credential_source \"Nowhere\": must be Environment"],
    );
    home.refused(&[("AWS_PROFILE", "device")], &["mfa_serial"]);
    home.refused(
        &[("AWS_PROFILE", "half")],
        &["role_arn without source_profile"],
    );
    home.refused(&[("AWS_PROFILE", "gone")], &["no profile \"nosuch\""]);
    home.refused(
        &[("AWS_PROFILE", "refused")],
        &["role arn:other of", "status 403 AccessDenied: in a test"],
    );
}

#[test]
fn a_token_of_an_identity_is_had_a_role_for() {
    let home = Home::new(
        "",
        "[default]\nregion=eu-west-1\n[profile w]\nrole_arn=arn:role\nweb_identity_token_file=HOME/token\n",
    );
    fs::write(home.path().join("token"), "identity\n").unwrap();
    let asked = "AssumeRoleWithWebIdentity";
    home.reads(
        &[
            ("AWS_WEB_IDENTITY_TOKEN_FILE", "HOME/token"),
            ("AWS_ROLE_ARN", "arn:role"),
        ],
        &[asked],
    );
    home.reads(&[("AWS_PROFILE", "w")], &[asked; 2]);
    fs::remove_file(home.path().join("token")).unwrap();
    home.refused(
        &[("AWS_PROFILE", "w")],
        &[
            "role arn:role of HOME/.aws/config, profile w",
            "HOME/token: No such file",
        ],
    );
}

#[test]
fn a_login_is_found_in_its_cache_until_it_ends() {
    let config = "[profile old]\nsso_start_url=https://x/start\nsso_region=eu-west-1\nsso_account_id=123\nsso_role_name=reader\n\
                  [sso-session s]\nsso_start_url = https://x/start/\nsso_region = eu-west-1\n\
                  [profile new]\nsso_session=s\nsso_account_id=123\nsso_role_name=reader\n\
                  [profile none]\nsso_session=t\nsso_account_id=123\nsso_role_name=reader\n\
                  [profile half]\nsso_session=s\nsso_account_id=123\n";
    let home = Home::new("", config);
    let cache = home.path().join(".aws/sso/cache");
    home.refused(
        &[("AWS_PROFILE", "new")],
        &["profile new: no login of https://x/start", "aws sso login"],
    );
    for (name, text) in [
        ("rubbish.json", "{"),
        ("empty.json", ""),
        ("client.json", "{\"clientId\":\"x\"}"),
    ] {
        fs::write(cache.join(name), text).unwrap();
    }
    let login = |until: &str, token: &str| {
        format!(
            "{{\"startUrl\":\"https://x/start\",\"accessToken\":\"{token}\",\"expiresAt\":\"{until}\"}}"
        )
    };
    fs::write(cache.join("a.json"), login("2001-01-01T00:00:00Z", "ended")).unwrap();
    home.refused(&[("AWS_PROFILE", "new")], &["has ended: aws sso login"]);
    fs::write(
        cache.join("b.json"),
        login("2999-01-01T00:00:00Z", "bearer"),
    )
    .unwrap();
    home.reads(&[("AWS_PROFILE", "new")], &["/federation/credentials"]);
    home.reads(&[("AWS_PROFILE", "old")], &["/federation/credentials"; 2]);
    home.refused(
        &[("AWS_PROFILE", "none")],
        &["sso-session \"t\" has no sso_start_url"],
    );
    home.refused(
        &[("AWS_PROFILE", "half")],
        &["profile half has a login without sso_role_name"],
    );
}

#[test]
fn a_program_gives_keys_or_its_failure_is_told() {
    let config = "[profile p]\ncredential_process = /bin/cat HOME/keys\n[profile f]\ncredential_process=exit 3\n\
                  [profile e]\ncredential_process=yes\n";
    let home = Home::new("", config);
    home.server.take("P", "s", Some("t"));
    let put = |text: &str| fs::write(home.path().join("keys"), text).unwrap();
    let of = [("AWS_PROFILE", "p")];
    let keys = "\"AccessKeyId\":\"P\",\"SecretAccessKey\":\"s\",\"SessionToken\":\"t\"";
    put(&format!("{{\"Version\":1,{keys}}}"));
    home.reads(&of, &[]);
    put(&format!(
        "{{\"Version\":1,{keys},\"Expiration\":\"2999-01-01T00:00:00+00:00\"}}"
    ));
    home.reads(&of, &[]);
    let at = "keys of the credential_process of HOME/.aws/config, profile p";
    for (text, why) in [
        ("", "no JSON"),
        ("rubbish", "no JSON"),
        ("{\"Version\":2}", "no \"Version\": 1"),
        (
            "{\"Version\":1,\"AccessKeyId\":\"P\"}",
            "without SecretAccessKey",
        ),
        (
            "{\"Version\":1,\"AccessKeyId\":\"P\",\"SecretAccessKey\":\"a\\nb\"}",
            "characters that no key has",
        ),
    ] {
        put(text);
        home.refused(&of, &[at, why]);
    }
    put(&format!("{{\"Version\":1,{keys},\"Expiration\":\"soon\"}}"));
    home.refused(&of, &[at, "\"soon\" is no time"]);
    put(&format!(
        "{{\"Version\":1,{keys},\"Expiration\":\"2001-02-03T04:05:06Z\"}}"
    ));
    home.refused(&of, &[at, "ended 2001-02-03 04:05:06 UTC"]);
    home.refused(&[("AWS_PROFILE", "f")], &["failed with exit status: 3"]);
    home.refused(&[("AWS_PROFILE", "e")], &["more than 64 KiB"]);
}

#[test]
fn a_container_and_an_instance_give_keys_the_latter_on_request_alone() {
    let home = Home::new("", "");
    let full = ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "SERVER/container");
    home.reads(
        &[full, ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "of-container")],
        &["/container"],
    );
    fs::write(home.path().join("token"), "of-container\n").unwrap();
    home.reads(
        &[
            full,
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "HOME/token"),
        ],
        &["/container"; 2],
    );
    home.refused(&[full], &["the container's service", "status 404"]);
    let far = "http://192.0.2.1/keys";
    home.refused(
        &[("AWS_CONTAINER_CREDENTIALS_FULL_URI", far)],
        &[far, "must be https, or http of loopback"],
    );
    let home = Home::new("", "");
    let instance = ("AWS_EC2_METADATA_SERVICE_ENDPOINT", "SERVER/");
    home.refused(
        &[instance],
        &[
            "not signed: no keys in AWS_ACCESS_KEY_ID",
            "FORERUN_METADATA=1 asks",
        ],
    );
    assert!(home.server.asked().is_empty());
    let roles = "/latest/meta-data/iam/security-credentials/";
    let asked = ["/latest/api/token", roles, &format!("{roles}role")];
    home.reads(&[instance, ("FORERUN_METADATA", "1")], &asked);
}

#[test]
fn files_and_profiles_that_cannot_be_used_are_named() {
    let home = Home::new(
        SOURCE,
        "[profile other]\nregion=x\n[sso-session s]\nsso_region=x\n",
    );
    home.refused(
        &[("AWS_PROFILE", "nosuch")],
        &[
            "AWS_PROFILE: no profile \"nosuch\" in",
            "there are base, other",
        ],
    );
    home.refused(
        &[("AWS_ACCESS_KEY_ID", "A")],
        &["AWS_SECRET_ACCESS_KEY is not"],
    );
    home.refused(
        &[("AWS_SECRET_ACCESS_KEY", "A")],
        &["AWS_ACCESS_KEY_ID is not"],
    );
    home.refused(
        &[
            ("AWS_ACCESS_KEY_ID", "A\nB"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
        ],
        &["characters that no key has"],
    );
    let home = Home::new("[default\naws_access_key_id = X\n", "");
    home.refused(&[], &["HOME/.aws/credentials: line "]);
    let home = Home::new("", "");
    let config = home.path().join(".aws/config");
    fs::write(&config, b"[default]\nregion=\xff\n").unwrap();
    home.refused(&[], &["HOME/.aws/config: no text of UTF-8"]);
    fs::remove_file(&config).unwrap();
    fs::create_dir(&config).unwrap();
    home.refused(&[], &["HOME/.aws/config: a directory"]);
    let home = Home::new("", "");
    home.refused(&[("AWS_PROFILE", "x")], &["there are none"]);
    home.server.open_to_all();
    home.reads(&[("HOME", "/nonexistent")], &[]);
    home.reads(&[("HOME", "/dev/null")], &[]);
}

#[test]
fn a_refusal_says_the_source_and_the_remedy() {
    let home = Home::new(SOURCE, "");
    let base = [("AWS_PROFILE", "base")];
    let of = "HOME/.aws/credentials, profile base";
    home.refused(
        &base,
        &[
            "signed with keys of",
            of,
            "InvalidAccessKeyId",
            "the store has no such key",
        ],
    );
    home.server.take("BASE", "another", None);
    home.refused(
        &base,
        &["SignatureDoesNotMatch", "the secret is not that of the key"],
    );
    home.server.take("BASE", "se/cret+=", None);
    let remedies = [
        (403, "AccessDenied", "", "reading it is not permitted"),
        (403, "RequestTimeTooSkewed", "", "the clock of this machine"),
        (400, "ExpiredToken", "", "the session has ended"),
        (
            400,
            "AuthorizationHeaderMalformed",
            "<Region>eu-west-9</Region>",
            "is in region eu-west-9: set AWS_REGION",
        ),
        (301, "PermanentRedirect", "", "is in another region"),
        (
            301,
            "PermanentRedirect",
            "x-amz-bucket-region: eu-west-9\r\n",
            "is in region eu-west-9: set AWS_REGION=eu-west-9",
        ),
        (404, "NoSuchBucket", "", "there is no such bucket"),
    ];
    for (status, code, more, remedy) in remedies {
        home.server.refuse(status, code, more);
        home.refused(&base, &["s3://b/k", code, remedy]);
    }
}

#[test]
fn a_server_that_is_not_there_is_told_with_its_endpoint_before_the_patience_is_over() {
    let told = |endpoint: &str| {
        let set = [
            ("AWS_ENDPOINT_URL", endpoint),
            ("AWS_ACCESS_KEY_ID", "a"),
            ("AWS_SECRET_ACCESS_KEY", "b"),
        ];
        let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
        // Longer than any test may take.
        let limits = Limits {
            deadline: Duration::from_secs(86_400),
            ..Limits::default()
        };
        let client = Client::with_variables(limits, set).unwrap();
        [client.open("s3://b/k").err(), client.tree("s3://b").err()]
            .map(|error| error.unwrap().to_string())
    };
    // No server listens on the discard port of loopback; one that is free now may be another test's.
    let endpoint = "http://127.0.0.1:9";
    let [object, tree] = told(endpoint);
    let refused = format!("no server at {endpoint}: Connection refused");
    assert_eq!(object, format!("s3://b/k: {refused}"));
    assert_eq!(tree, format!("s3://b: {refused}"));
    // No resolver asks others for this name, so that its answer is the same without a network.
    for message in told("http://-:9000") {
        assert!(message.contains(": no host -: "), "{message}");
    }
}

#[test]
fn azure_is_read_by_a_key_a_signature_and_an_identity() {
    let home = Home::new("", "");
    fs::write(home.path().join("token"), "identity").unwrap();
    let read = |variables: &[(&str, &str)]| home.read_of("az", variables);
    let key = base64(AZURE);
    let account = ("AZURE_STORAGE_ACCOUNT_NAME", "account");
    let endpoint = ("AZURE_STORAGE_ENDPOINT", "SERVER");
    let string = |with: &str| format!("AccountName=account;{with};BlobEndpoint=SERVER/");
    let (by_key, by_sas) = (
        string(&format!("AccountKey={key}")),
        string("SharedAccessSignature=sv=2023&sig=of%2Bsas"),
    );
    for variables in [
        &[account, endpoint, ("AZURE_STORAGE_ACCOUNT_KEY", &*key)][..],
        &[
            account,
            endpoint,
            ("AZURE_STORAGE_SAS_TOKEN", "sv=2023&sig=of%2Bsas"),
        ],
        &[("AZURE_STORAGE_CONNECTION_STRING", &*by_key)],
        &[("AZURE_STORAGE_CONNECTION_STRING", &*by_sas)],
        &[
            account,
            endpoint,
            ("AZURE_CLIENT_ID", "client"),
            ("AZURE_TENANT_ID", "tenant"),
            ("AZURE_FEDERATED_TOKEN_FILE", "HOME/token"),
            ("AZURE_AUTHORITY_HOST", "SERVER"),
        ],
    ] {
        assert_eq!(read(variables).as_deref(), Ok(CONTENT), "{variables:?}");
    }
    let wrong = string(&format!("AccountKey={}", base64(b"another")));
    let message = read(&[("AZURE_STORAGE_CONNECTION_STRING", &wrong)]).unwrap_err();
    assert!(
        message.contains("AuthenticationFailed: the key or token is wrong"),
        "{message}"
    );
    let message = read(&[account, endpoint]).unwrap_err();
    assert!(
        message.contains("not signed: no credentials in AZURE_STORAGE_CONNECTION_STRING"),
        "{message}"
    );
    let message = read(&[("AZURE_STORAGE_CONNECTION_STRING", "nonsense")]).unwrap_err();
    assert!(
        message.starts_with("az://b/k: AZURE_STORAGE_CONNECTION_STRING: a part"),
        "{message}"
    );
}

#[test]
fn public_objects_are_read_without_credentials_and_by_request_in_spite_of_them() {
    let home = Home::new(
        "[default]\naws_access_key_id = GONE\naws_secret_access_key = x\n",
        "",
    );
    home.server.open_to_all();
    home.refused(&[], &["InvalidAccessKeyId"]);
    home.reads(&[("FORERUN_ANONYMOUS", "1")], &[]);
    let anonymous = [("FORERUN_ANONYMOUS", "1"), ("GOOGLE_BASE_URL", "SERVER")];
    assert_eq!(home.read_of("gs", &anonymous).as_deref(), Ok(CONTENT));
    let google = [("GOOGLE_BASE_URL", "SERVER")];
    assert_eq!(home.read_of("gs", &google).as_deref(), Ok(CONTENT));
    let file = [
        google[0],
        ("GOOGLE_APPLICATION_CREDENTIALS", "HOME/.aws/config"),
    ];
    let message = home.read_of("gs", &file).unwrap_err();
    assert!(message.starts_with("gs://b/k: "), "{message}");
}

/// Files of type `external_account`: a token of a file or of an address is exchanged, and stands for an account or not.
#[test]
fn an_account_of_another_provider_is_exchanged_at_google() {
    let home = Home::new("", "");
    fs::write(home.path().join("token"), "of-provider\n").unwrap();
    let url = home.server.url("");
    let put = |source: &str, more: &str| {
        let text = format!(
            "{{\"type\":\"external_account\",\"audience\":\"//audience\",\"subject_token_type\":\"jwt\",\"token_url\":\
             \"{url}/v1/token\",\"credential_source\":{source}{more}}}"
        );
        fs::write(home.path().join("external"), text).unwrap();
    };
    let of_file = format!("{{\"file\":\"{}/token\"}}", home.path().display());
    let of_address = format!(
        "{{\"url\":\"{url}/identity\",\"headers\":{{\"metadata\":\"yes\"}},\"format\":{{\"type\":\"json\",\
         \"subject_token_field_name\":\"id\"}}}}"
    );
    let account =
        format!(",\"service_account_impersonation_url\":\"{url}/account:generateAccessToken\"");
    let of = [
        ("GOOGLE_BASE_URL", "SERVER"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "HOME/external"),
    ];
    for (source, more) in [(&of_file, ""), (&of_file, &*account), (&of_address, "")] {
        put(source, more);
        assert_eq!(
            home.read_of("gs", &of).as_deref(),
            Ok(CONTENT),
            "{source}{more}"
        );
    }
    assert_eq!(
        home.server.asked(),
        [
            "/v1/token",
            "/v1/token",
            "/account:generateAccessToken",
            "/identity",
            "/v1/token"
        ]
    );
    fs::write(home.path().join("token"), "of another").unwrap();
    put(&of_file, "");
    let message = home.read_of("gs", &of).unwrap_err();
    let expected = format!(
        "no keys: the external account of {}/external: {url}/v1/token: status 404",
        home.path().display()
    );
    assert!(message.contains(&expected), "{message}");
    put("{\"environment_id\":\"aws1\"}", "");
    let message = home.read_of("gs", &of).unwrap_err();
    assert!(
        message.contains("external: credential_source must have \"file\" or \"url\""),
        "{message}"
    );
}

/// A program that does not answer is ended with all that it started, its failure names it, and requests that came
/// meanwhile do not run it again.
#[test]
fn a_program_that_hangs_is_ended_and_asked_once_for_all_that_wait() {
    let config = "[default]\ncredential_process = echo $$ >> HOME/runs; sleep 1000; echo {}\n";
    let home = Home::new("", config);
    let client = home.client(&[]);
    std::thread::scope(|scope| {
        let open = || client.open("s3://b/k").unwrap_err().to_string();
        let opens: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
        let at = format!(
            "keys of the credential_process of {}/.aws/config",
            home.path().display()
        );
        for message in opens.into_iter().map(|open| open.join().unwrap()) {
            assert!(message.contains(&at), "{message}");
            assert!(message.contains("no answer for 15 s"), "{message}");
        }
    });
    let runs = fs::read_to_string(home.path().join("runs")).unwrap();
    assert_eq!(runs.lines().count(), 1, "{runs}");
    let group: i32 = runs.trim().parse().unwrap();
    let left = || {
        let names = fs::read_dir("/proc").unwrap().flatten();
        let stats = names.filter_map(|name| fs::read_to_string(name.path().join("stat")).ok());
        stats
            .filter(|stat| {
                let fields: Vec<_> = stat.rsplit(") ").next().unwrap().split(' ').collect();
                fields[2].parse() == Ok(group) && fields[0] != "Z"
            })
            .count()
    };
    let until = std::time::Instant::now() + std::time::Duration::from_secs(600);
    while left() > 0 && std::time::Instant::now() < until {
        std::thread::yield_now();
    }
    assert_eq!(left(), 0, "programs of the group are left");
}
