//! Credentials, found where other programs find them; and nothing asks a metadata service unasked.
//!
//! | store | variables | files |
//! | --- | --- | --- |
//! | `s3://` | `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_WEB_IDENTITY_TOKEN_FILE`, `AWS_REGION`, `AWS_ENDPOINT_URL`, and the others of [`object_store`] | `~/.aws/credentials` and `~/.aws/config`, or where `AWS_SHARED_CREDENTIALS_FILE` and `AWS_CONFIG_FILE` say, profile `AWS_PROFILE` |
//! | `gs://` | `GOOGLE_SERVICE_ACCOUNT`, `GOOGLE_APPLICATION_CREDENTIALS` | `~/.config/gcloud/application_default_credentials.json` |
//! | `az://` | `AZURE_STORAGE_ACCOUNT_NAME`, `AZURE_STORAGE_ACCOUNT_KEY`, `AZURE_STORAGE_SAS_TOKEN`, `AZURE_CLIENT_ID` and the like | |
//!
//! Without any of them, or with a part of a set, requests are not signed: public objects can be read. On a machine of a cloud,
//! where credentials come from a metadata address, `FORERUN_METADATA=1` says so.

use std::fmt;
use std::fs::File;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::Read;
use std::path::{Path, PathBuf};

use ini::Ini;

/// Tells that a metadata service may be asked.
const METADATA: &str = "FORERUN_METADATA";

/// The environment: variables by name.
pub(crate) type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// How requests to a store are signed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Signed {
    /// The variables say how, or a metadata service that may be asked.
    ByVariables,
    /// By a file of credentials.
    ByFile(String),
    /// By keys of a profile.
    Keys {
        id: String,
        secret: String,
        token: Option<String>,
        /// The file and profile they are of.
        of: String,
    },
    Not,
}

impl fmt::Display for Signed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByVariables => f.write_str("signed with credentials of variables"),
            Self::ByFile(file) => write!(f, "signed with credentials of {file}"),
            Self::Keys { of, .. } => write!(f, "signed with keys of {of}"),
            Self::Not => f.write_str("not signed: there are no credentials"),
        }
    }
}

/// The contents of files, as far as a change is to be seen.
#[derive(PartialEq, Eq)]
pub(crate) struct Contents(Vec<Option<u64>>);

impl Contents {
    pub(crate) fn of(files: &[PathBuf]) -> Self {
        const BYTES_MAX: u64 = 1 << 20;
        let hash = |file: &PathBuf| {
            let mut bytes = Vec::new();
            let file = File::open(file).ok()?;
            file.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
            Some(BuildHasherDefault::<DefaultHasher>::new().hash_one(bytes))
        };
        Self(files.iter().map(hash).collect())
    }
}

/// The files that credentials of a store may come from.
pub(crate) fn files(scheme: &str, variables: Variables<'_>) -> Vec<PathBuf> {
    let home = variables("HOME").map(PathBuf::from).unwrap_or_default();
    let of_aws = |variable, name| {
        let named = variables(variable).map(PathBuf::from);
        named.unwrap_or_else(|| home.join(".aws").join(name))
    };
    let mut files = match scheme {
        "s3" => vec![
            of_aws("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
            of_aws("AWS_CONFIG_FILE", "config"),
        ],
        "gs" => vec![home.join(GCLOUD)],
        _ => Vec::new(),
    };
    let named: &[&str] = match scheme {
        "s3" => &[
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        ],
        "gs" => &[
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GOOGLE_SERVICE_ACCOUNT",
            "GOOGLE_SERVICE_ACCOUNT_PATH",
        ],
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

/// The file of Google's own commands, below the home.
const GCLOUD: &str = ".config/gcloud/application_default_credentials.json";

/// Settings of S3 in files, beside its keys.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Profile {
    pub(crate) region: Option<String>,
    pub(crate) endpoint: Option<String>,
}

/// Whether one of these sets is there as a whole: with a part of one, a client would go on to ask a metadata
/// service.
fn has_all_of(variables: Variables<'_>, sets: &[&[&str]]) -> bool {
    let is_set = |name: &&str| variables(name).is_some_and(|value| !value.is_empty());
    let is_told = variables(METADATA).is_some_and(|value| value == "1");
    is_told || sets.iter().any(|set| set.iter().all(is_set))
}

/// How requests to S3 are signed, and the region and endpoint of the profile.
pub(crate) fn s3(variables: Variables<'_>) -> (Signed, Profile) {
    let mut files = files("s3", variables);
    files.truncate(2);
    let name = variables("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
    let keys = section_of(&files[0]);
    let config = section_of(&files[1]);
    let configured = |key| {
        let long = format!("profile {name}");
        config(&long, key).or_else(|| config(&name, key))
    };
    let profile = Profile {
        region: configured("region"),
        endpoint: configured("endpoint_url"),
    };
    // A key without its secret is refused by name.
    let known: [&[&str]; 4] = [
        &["AWS_ACCESS_KEY_ID"],
        &["AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"],
        &["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"],
        &[
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        ],
    ];
    if has_all_of(variables, &known) {
        return (Signed::ByVariables, profile);
    }
    let key = |key| keys(&name, key).or_else(|| configured(key));
    let pair = key("aws_access_key_id").zip(key("aws_secret_access_key"));
    let signed = pair.map_or(Signed::Not, |(id, secret)| Signed::Keys {
        id,
        secret,
        token: key("aws_session_token"),
        of: format!("{}, profile {name}", files[0].display()),
    });
    (signed, profile)
}

/// Looks values up in a file, which need not be there: section and key.
fn section_of(path: &Path) -> impl Fn(&str, &str) -> Option<String> {
    let ini = Ini::load_from_file(path).ok();
    move |section, key| Some(ini.as_ref()?.get_from(Some(section), key)?.to_owned())
}

pub(crate) fn gs(variables: Variables<'_>) -> Signed {
    let known: [&[&str]; 5] = [
        &["GOOGLE_APPLICATION_CREDENTIALS"],
        &["GOOGLE_SERVICE_ACCOUNT"],
        &["GOOGLE_SERVICE_ACCOUNT_PATH"],
        &["GOOGLE_SERVICE_ACCOUNT_KEY"],
        &["GOOGLE_BEARER_TOKEN"],
    ];
    if has_all_of(variables, &known) {
        return Signed::ByVariables;
    }
    let home = variables("HOME").map(PathBuf::from).unwrap_or_default();
    let file = home.join(GCLOUD);
    match file.to_str().filter(|_| file.exists()) {
        Some(file) => Signed::ByFile(file.to_owned()),
        None => Signed::Not,
    }
}

pub(crate) fn az(variables: Variables<'_>) -> Signed {
    let known: [&[&str]; 8] = [
        &["AZURE_STORAGE_ACCOUNT_KEY"],
        &["AZURE_STORAGE_ACCESS_KEY"],
        &["AZURE_STORAGE_SAS_TOKEN"],
        &["AZURE_STORAGE_SAS_KEY"],
        &["AZURE_STORAGE_TOKEN"],
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
    match has_all_of(variables, &known) {
        true => Signed::ByVariables,
        false => Signed::Not,
    }
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

    #[test]
    fn nothing_is_signed_by_a_metadata_service_that_nothing_names() {
        let none = set(&[("HOME", "/absent")]);
        assert_eq!(s3(&none).0, Signed::Not);
        assert_eq!(gs(&none), Signed::Not);
        assert_eq!(az(&none), Signed::Not);
        let told = set(&[("HOME", "/absent"), (METADATA, "1")]);
        assert_eq!(s3(&told).0, Signed::ByVariables);
        assert_eq!(gs(&told), Signed::ByVariables);
        assert_eq!(az(&told), Signed::ByVariables);
    }

    #[test]
    fn a_part_of_a_set_is_no_credential() {
        for name in [
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            "AWS_ROLE_ARN",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "AZURE_CLIENT_ID",
            "AZURE_TENANT_ID",
            "AZURE_FEDERATED_TOKEN_FILE",
            "SERVICE_ACCOUNT",
        ] {
            let pairs = [("HOME", "/absent"), (name, "x")];
            let part = set(&pairs);
            assert_eq!(s3(&part).0, Signed::Not, "{name}");
            assert_eq!(gs(&part), Signed::Not, "{name}");
            assert_eq!(az(&part), Signed::Not, "{name}");
        }
        let pairs = [("AWS_WEB_IDENTITY_TOKEN_FILE", "x"), ("AWS_ROLE_ARN", "y")];
        let whole = set(&pairs);
        assert_eq!(s3(&whole).0, Signed::ByVariables);
        let pairs = [("AZURE_STORAGE_ACCOUNT_KEY", "")];
        let empty = set(&pairs);
        assert_eq!(az(&empty), Signed::Not);
    }

    #[test]
    fn a_profile_of_the_files_gives_keys_region_and_endpoint_and_variables_go_first() {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys");
        let config = folder.path().join("config");
        let text = "[default]\naws_access_key_id = A\naws_secret_access_key = B\n\
                    [other]\naws_access_key_id=C\naws_secret_access_key=D+/=\naws_session_token=E\n";
        std::fs::write(&keys, text).unwrap();
        let text = "[profile other]\nregion = eu-west-1\nendpoint_url = http://127.0.0.1:1\n";
        std::fs::write(&config, text).unwrap();
        let files = [
            ("AWS_SHARED_CREDENTIALS_FILE", keys.to_str().unwrap()),
            ("AWS_CONFIG_FILE", config.to_str().unwrap()),
        ];
        let (signed, profile) = s3(&set(&files));
        let token = None;
        let (id, secret) = ("A".to_owned(), "B".to_owned());
        let of_profile = |name| format!("{}, profile {name}", keys.display());
        let of = of_profile("default");
        let expected = Signed::Keys {
            id,
            secret,
            token,
            of,
        };
        assert_eq!(signed, expected);
        assert_eq!(profile, Profile::default());
        let other = [files[0], files[1], ("AWS_PROFILE", "other")];
        let (signed, profile) = s3(&set(&other));
        let (id, secret) = ("C".to_owned(), "D+/=".to_owned());
        let token = Some("E".to_owned());
        let of = of_profile("other");
        let expected = Signed::Keys {
            id,
            secret,
            token,
            of,
        };
        assert_eq!(signed, expected);
        assert_eq!(profile.region.as_deref(), Some("eu-west-1"));
        assert_eq!(profile.endpoint.as_deref(), Some("http://127.0.0.1:1"));
        let variables = [files[0], files[1], ("AWS_ACCESS_KEY_ID", "F")];
        assert_eq!(s3(&set(&variables)).0, Signed::ByVariables);
    }
}
