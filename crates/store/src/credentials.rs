//! Credentials, found where other programs find them; and nothing asks a metadata service unasked.
//!
//! | store | variables and files |
//! | --- | --- |
//! | `s3://` | those of AWS's own programs, in their order (`docs/STORES.md`), and `AWS_REGION`, `AWS_ENDPOINT_URL` and the others of [`object_store`] |
//! | `gs://` | `GOOGLE_SERVICE_ACCOUNT`, `GOOGLE_APPLICATION_CREDENTIALS`, `~/.config/gcloud/application_default_credentials.json` |
//! | `az://` | `AZURE_STORAGE_CONNECTION_STRING`, `AZURE_STORAGE_ACCOUNT_NAME`, `AZURE_STORAGE_ACCOUNT_KEY`, `AZURE_STORAGE_SAS_TOKEN`, `AZURE_CLIENT_ID` and the like |
//!
//! Without any of them, or with a part of a set, requests are not signed: public objects can be read. So they are with
//! `FORERUN_ANONYMOUS=1`, or of [`anonymous`](crate::Client::anonymous) clients. On a machine of a cloud, where credentials come from a metadata address, `FORERUN_METADATA=1` says so.

use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object_store::aws::{AwsCredential, AwsCredentialProvider};
use object_store::azure::{AzureCredential, AzureCredentialProvider};
use object_store::gcp::{GcpCredential, GcpCredentialProvider};

use crate::aws::profiles::Profiles;
use crate::aws::{self, Origin};
use crate::google::Account;
use crate::named_file;

/// Tells that a metadata service may be asked.
pub(crate) const METADATA: &str = "FORERUN_METADATA";

/// Tells that no request is to be signed.
pub(crate) const ANONYMOUS: &str = "FORERUN_ANONYMOUS";

/// The environment: variables by name.
pub(crate) type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// How requests to a store are signed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Signed {
    /// The variables say how, or a metadata service that may be asked.
    ByVariables,
    /// By a key that the variables hold.
    ByKey,
    /// By a file of credentials.
    ByFile(String),
    /// By an account of another cloud, at Google.
    ByAccount(Box<Account>),
    /// By keys of AWS.
    Aws(Origin),
    /// With the reason.
    Not(String),
}

impl Signed {
    /// Whether keys come from a source that may have others the next time; variables may name one.
    pub(crate) fn has_source(&self) -> bool {
        let is_key = matches!(self, Self::ByKey | Self::Aws(Origin::Keys { .. }));
        !is_key && !matches!(self, Self::Not(_))
    }
}

/// A source of keys, of a client.
pub(crate) enum KeySource {
    Aws(AwsCredentialProvider),
    Azure(AzureCredentialProvider),
    Google(GcpCredentialProvider),
}

/// The keys of a source.
#[derive(PartialEq)]
pub(crate) enum Given {
    Aws(Arc<AwsCredential>),
    Azure(Arc<AzureCredential>),
    Google(Arc<GcpCredential>),
}

impl KeySource {
    /// The keys that requests are signed with now.
    pub(crate) async fn give(&self) -> object_store::Result<Given> {
        Ok(match self {
            Self::Aws(source) => Given::Aws(source.get_credential().await?),
            Self::Azure(source) => Given::Azure(source.get_credential().await?),
            Self::Google(source) => Given::Google(source.get_credential().await?),
        })
    }
}

impl fmt::Display for Signed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByVariables | Self::ByKey => f.write_str("signed with credentials of variables"),
            Self::ByFile(file) => write!(f, "signed with credentials of {file}"),
            Self::ByAccount(account) => write!(f, "signed with {account}"),
            Self::Aws(origin) => write!(f, "signed with {origin}"),
            Self::Not(why) => write!(f, "not signed: {why}"),
        }
    }
}

/// The contents of files, as far as a change is to be seen.
#[derive(PartialEq, Eq)]
pub(crate) struct Contents(Vec<Option<u64>>);

impl Contents {
    pub(crate) fn of(files: &[PathBuf]) -> Self {
        let hash = |file: &PathBuf| {
            let bytes = named_file::bytes(file).ok()?;
            Some(BuildHasherDefault::<DefaultHasher>::new().hash_one(bytes))
        };
        Self(files.iter().map(hash).collect())
    }
}

/// Variables that name a file of credentials of Google.
pub(crate) const FILES_OF_GOOGLE: [&str; 3] = [
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_SERVICE_ACCOUNT",
    "GOOGLE_SERVICE_ACCOUNT_PATH",
];

/// The files that credentials of a store may come from.
pub(crate) fn files(scheme: &str, variables: Variables<'_>) -> Vec<PathBuf> {
    let mut files = match scheme {
        "s3" => files_of_aws(variables).into(),
        "gs" => vec![home(variables).join(GCLOUD)],
        _ => Vec::new(),
    };
    let named: &[&str] = match scheme {
        "s3" => &[
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        ],
        "gs" => &FILES_OF_GOOGLE,
        "az" => &["AZURE_FEDERATED_TOKEN_FILE"],
        _ => &[],
    };
    files.extend(
        named
            .iter()
            .filter_map(|name| variables(name))
            .map(PathBuf::from),
    );
    files
}

/// The home of the user. The daemons of fstab and of systemd have no such variable: it is that of the list of users.
pub(crate) fn home(variables: Variables<'_>) -> PathBuf {
    let home = variables("HOME").filter(|home| !home.is_empty());
    let listed = || {
        let user = std::fs::metadata("/proc/self").ok()?.uid();
        home_of(user, &std::fs::read_to_string("/etc/passwd").ok()?)
    };
    home.map(PathBuf::from)
        .or_else(listed)
        .unwrap_or_else(|| PathBuf::from("/"))
}

/// The home of a user in a list of users, as `passwd(5)` has it.
fn home_of(user: u32, list: &str) -> Option<PathBuf> {
    list.lines().find_map(|line| {
        let mut fields = line.split(':').skip(2);
        let is_of = fields.next()?.parse() == Ok(user);
        let home = fields.nth(2).filter(|home| home.starts_with('/'))?;
        is_of.then(|| PathBuf::from(home))
    })
}

/// The two files of AWS's own programs: of keys, and of settings.
pub(crate) fn files_of_aws(variables: Variables<'_>) -> [PathBuf; 2] {
    let of = |variable, name| {
        let named = variables(variable).filter(|path| !path.is_empty());
        named.map_or_else(|| home(variables).join(".aws").join(name), PathBuf::from)
    };
    [
        of("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
        of("AWS_CONFIG_FILE", "config"),
    ]
}

/// The variable that says that no request is to be signed.
fn anonymous(variables: Variables<'_>) -> Option<Signed> {
    let is_set =
        |name: &&str| variables(name).is_some_and(|value| ["1", "true"].contains(&&*value));
    let names = [ANONYMOUS, "AWS_SKIP_SIGNATURE", "AWS_NO_SIGN_REQUEST"];
    let set = names.into_iter().find(is_set)?;
    let or_flag = if set == ANONYMOUS {
        " or --anonymous"
    } else {
        ""
    };
    Some(Signed::Not(format!("{set}{or_flag} is set")))
}

/// The file of Google's own commands, below the home.
const GCLOUD: &str = ".config/gcloud/application_default_credentials.json";

/// Settings of S3 in files, beside its keys.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Profile {
    pub(crate) region: Option<String>,
    pub(crate) endpoint: Option<String>,
}

/// How the variables sign, if one of these sets is there as a whole: with a part of one, a client would go on to ask a
/// metadata service. Sets of one variable that is a key are `keys`.
fn by_variables(variables: Variables<'_>, keys: &[&[&str]], sets: &[&[&str]]) -> Option<Signed> {
    let is_set = |name: &&str| variables(name).is_some_and(|value| !value.is_empty());
    let is_any = |sets: &[&[&str]]| sets.iter().any(|set| set.iter().all(is_set));
    let is_told = variables(METADATA).is_some_and(|value| value == "1");
    if is_any(keys) {
        return Some(Signed::ByKey);
    }
    (is_told || is_any(sets)).then_some(Signed::ByVariables)
}

/// How requests to S3 are signed, and the region and endpoint of the profile.
///
/// # Errors
/// Credentials that are there in part, or cannot be read; in words.
pub(crate) fn s3(variables: Variables<'_>) -> Result<(Signed, Profile), String> {
    let profiles = Profiles::read(variables);
    // Its region and endpoint are asked for, too, whatever signs.
    profiles.check_asked()?;
    let profile = Profile {
        region: profiles.value(profiles.name(), "region"),
        endpoint: profiles.value(profiles.name(), "endpoint_url"),
    };
    let signed = match anonymous(variables) {
        Some(not) => not,
        None => aws::origin(variables, &profiles)?
            .map_or_else(|| Signed::Not(aws::looked_at(&profiles)), Signed::Aws),
    };
    Ok((signed, profile))
}

/// How requests to Google's store are signed.
///
/// # Errors
/// A file of an account that is not supported; in words.
pub(crate) fn gs(variables: Variables<'_>) -> Result<Signed, String> {
    let known: [&[&str]; 5] = [
        &["GOOGLE_APPLICATION_CREDENTIALS"],
        &["GOOGLE_SERVICE_ACCOUNT"],
        &["GOOGLE_SERVICE_ACCOUNT_PATH"],
        // Keys.
        &["GOOGLE_SERVICE_ACCOUNT_KEY"],
        &["GOOGLE_BEARER_TOKEN"],
    ];
    if let Some(not) = anonymous(variables) {
        return Ok(not);
    }
    let account = |file: &Path| {
        let account = Account::of(file)?;
        Ok::<_, String>(account.map(|account| Signed::ByAccount(Box::new(account))))
    };
    let named = FILES_OF_GOOGLE.iter().filter_map(|name| variables(name));
    if let Some(named) = named.into_iter().find(|path| !path.is_empty())
        && let Some(account) = account(Path::new(&named))?
    {
        return Ok(account);
    }
    if let Some(signed) = by_variables(variables, &known[3..], &known[..3]) {
        return Ok(signed);
    }
    let file = home(variables).join(GCLOUD);
    if let Some(account) = account(&file)? {
        return Ok(account);
    }
    Ok(match file.to_str().filter(|_| file.exists()) {
        Some(file) => Signed::ByFile(file.to_owned()),
        None => Signed::Not(format!(
            "no credentials in {} or in {}; on a machine of Google, {METADATA}=1 asks its service",
            known.map(|set| set[0]).join(", "),
            file.display()
        )),
    })
}

pub(crate) fn az(variables: Variables<'_>) -> Signed {
    let known: [&[&str]; 8] = [
        &["AZURE_STORAGE_ACCOUNT_KEY"],
        &["AZURE_STORAGE_ACCESS_KEY"],
        &["AZURE_STORAGE_SAS_TOKEN"],
        &["AZURE_STORAGE_SAS_KEY"],
        &["AZURE_STORAGE_TOKEN"],
        // No keys, but the rights to have some.
        &["AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_TENANT_ID"],
        &[
            "AZURE_STORAGE_CLIENT_ID",
            "AZURE_STORAGE_CLIENT_SECRET",
            "AZURE_STORAGE_TENANT_ID",
        ],
        &[
            "AZURE_CLIENT_ID",
            "AZURE_TENANT_ID",
            "AZURE_FEDERATED_TOKEN_FILE",
        ],
    ];
    if let Some(not) = anonymous(variables) {
        return not;
    }
    by_variables(variables, &known[..5], &known[5..]).unwrap_or_else(|| {
        Signed::Not(format!(
            "no credentials in AZURE_STORAGE_CONNECTION_STRING, or in {}; on a machine of Azure, {METADATA}=1 asks its service",
            known.map(|set| set.join(" with ")).join(", ")
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(pairs: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
        let pairs: Vec<(String, String)> = pairs
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect();
        move |name: &str| {
            let found = pairs.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone())
        }
    }

    /// Whether requests are not signed.
    fn is_not(signed: &Signed) -> bool {
        matches!(signed, Signed::Not(_))
    }

    #[test]
    fn nothing_is_signed_by_a_metadata_service_that_nothing_names() {
        let none = set(&[("HOME", "/absent")]);
        assert!(is_not(&s3(&none).unwrap().0) && is_not(&gs(&none).unwrap()) && is_not(&az(&none)));
        let told = set(&[("HOME", "/absent"), (METADATA, "1")]);
        let instance = Origin::Instance {
            url: "http://169.254.169.254".to_owned(),
        };
        assert_eq!(s3(&told).unwrap().0, Signed::Aws(instance));
        assert_eq!(gs(&told).unwrap(), Signed::ByVariables);
        assert_eq!(az(&told), Signed::ByVariables);
    }

    #[test]
    fn a_daemon_without_a_variable_has_the_home_of_the_list_of_users() {
        let list =
            "r:x:0:0:r:/r:/bin/sh\n\nx:y\nd:*:7:7:::/none\nu:x:1000:1000:a,b:/homes/u:/bin/sh\n";
        assert_eq!(home_of(0, list), Some("/r".into()));
        assert_eq!(home_of(1000, list), Some("/homes/u".into()));
        assert_eq!(home_of(7, list), None);
        assert_eq!(home_of(8, list), None);
        assert!(home(&set(&[("HOME", "")])).is_absolute());
        assert_eq!(home(&set(&[("HOME", "/a")])), PathBuf::from("/a"));
    }

    #[test]
    fn a_part_of_a_set_is_no_credential() {
        for name in [
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "AWS_ROLE_ARN",
            "AZURE_CLIENT_ID",
            "AZURE_TENANT_ID",
            "AZURE_FEDERATED_TOKEN_FILE",
            "SERVICE_ACCOUNT",
        ] {
            let pairs = [("HOME", "/absent"), (name, "x")];
            let part = set(&pairs);
            assert!(is_not(&s3(&part).unwrap().0), "{name}");
            assert!(is_not(&gs(&part).unwrap()) && is_not(&az(&part)), "{name}");
        }
        let empty = set(&[("AZURE_STORAGE_ACCOUNT_KEY", "")]);
        assert!(is_not(&az(&empty)));
    }

    #[test]
    fn a_key_that_a_variable_holds_has_no_source() {
        for key in ["AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN"] {
            assert!(!az(&set(&[(key, "x")])).has_source(), "{key}");
        }
        for key in ["GOOGLE_BEARER_TOKEN", "GOOGLE_SERVICE_ACCOUNT_KEY"] {
            let signed = gs(&set(&[("HOME", "/absent"), (key, "x")])).unwrap();
            assert!(!signed.has_source(), "{key}");
        }
        let told = set(&[("HOME", "/absent"), (METADATA, "1")]);
        assert!(az(&told).has_source() && gs(&told).unwrap().has_source());
    }

    #[test]
    fn requests_are_not_signed_on_request() {
        let pairs = [
            ("FORERUN_ANONYMOUS", "1"),
            ("AWS_ACCESS_KEY_ID", "a"),
            ("GOOGLE_SERVICE_ACCOUNT", "b"),
            ("AZURE_STORAGE_ACCOUNT_KEY", "c"),
        ];
        let set = set(&pairs);
        for signed in [s3(&set).unwrap().0, gs(&set).unwrap(), az(&set)] {
            assert_eq!(
                signed.to_string(),
                "not signed: FORERUN_ANONYMOUS or --anonymous is set"
            );
        }
    }

    #[test]
    fn a_profile_of_the_files_gives_region_and_endpoint() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config");
        let text = "[profile other]\nregion = eu-west-1\nendpoint_url = http://127.0.0.1:1\n";
        std::fs::write(&config, text).unwrap();
        let files = [
            ("AWS_SHARED_CREDENTIALS_FILE", "/absent"),
            ("AWS_CONFIG_FILE", config.to_str().unwrap()),
        ];
        assert_eq!(s3(&set(&files)).unwrap().1, Profile::default());
        let other = [files[0], files[1], ("AWS_PROFILE", "other")];
        let (_, profile) = s3(&set(&other)).unwrap();
        assert_eq!(profile.region.as_deref(), Some("eu-west-1"));
        assert_eq!(profile.endpoint.as_deref(), Some("http://127.0.0.1:1"));
    }
}
