//! Accounts of other clouds and identity providers at Google: files of type `external_account`.
//!
//! Problem: programs that run outside of Google have a token of their own identity provider, and no key of Google. The
//! client of stores refuses such a file as one of an unknown type.
//!
//! ```text
//! token of a file or an address  --token_url-->  token of Google  --service_account_impersonation_url-->  token of an account
//! ```
//!
//! The last step is left out where the file names no account. Sources that run a program or sign as AWS does are refused
//! by name.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use object_store::CredentialProvider;
use object_store::gcp::GcpCredential;
use reqwest::Method;
use serde_json::{Value, json};

use crate::Limits;
use crate::kept::{Kept, Reason};
use crate::named_file;
use crate::service::{BARE, Question, address, ask, json as parsed, needed, read, time};

/// The right that is asked for: to read objects.
const SCOPE: &str = "https://www.googleapis.com/auth/devstorage.read_only";

/// The right that a token needs that stands for an account.
const SCOPE_OF_ACCOUNTS: &str = "https://www.googleapis.com/auth/cloud-platform";

/// The source of the first token.
#[derive(Clone, PartialEq, Eq, Debug)]
enum First {
    File(PathBuf),
    Address(String, Vec<(String, String)>),
}

/// The fields of a file of type `external_account`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Account {
    file: PathBuf,
    audience: String,
    kind: String,
    token_url: String,
    first: First,
    /// The token is this field of an answer that is JSON.
    field: Option<String>,
    stands_for: Option<String>,
}

impl Account {
    /// The account of a file, if it is of this type; other types are the client's.
    ///
    /// # Errors
    /// It says something that is not supported, in words.
    pub(crate) fn of(file: &Path) -> Result<Option<Self>, String> {
        let text = named_file::text(file).ok();
        let value: Option<Value> = text.and_then(|text| serde_json::from_str(&text).ok());
        match value {
            Some(value) if value["type"] == "external_account" => {
                let account = Self::parse(file, &value);
                account
                    .map(Some)
                    .map_err(|why| format!("{}: {why}", file.display()))
            }
            _ => Ok(None),
        }
    }

    fn parse(file: &Path, value: &Value) -> Result<Self, String> {
        let of = |name: &str| match needed(value, name) {
            Ok(text) => Ok(text),
            Err(_) => Err(format!("has no {name:?}")),
        };
        let source = &value["credential_source"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let first = match (text(&source["file"]), text(&source["url"])) {
            (Some(path), _) => First::File(path.into()),
            (None, Some(url)) => {
                let headers = source["headers"].as_object().into_iter().flatten();
                let headers =
                    headers.filter_map(|(name, value)| Some((name.clone(), text(value)?)));
                First::Address(url, headers.collect())
            }
            (None, None) => {
                let why =
                    "must have \"file\" or \"url\": programs and keys of AWS are not supported";
                return Err(format!("credential_source {why}"));
            }
        };
        Ok(Self {
            file: file.to_owned(),
            audience: of("audience")?,
            kind: of("subject_token_type")?,
            token_url: of("token_url")?,
            first,
            field: text(&source["format"]["subject_token_field_name"]),
            stands_for: text(&value["service_account_impersonation_url"]),
        })
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the external account of {}", self.file.display())
    }
}

/// See the [module](self).
#[derive(Clone)]
pub(crate) struct Provider {
    account: Account,
    limits: Limits,
    kept: Arc<Kept<GcpCredential>>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Provider {{ {} }}", self.account)
    }
}

#[async_trait]
impl CredentialProvider for Provider {
    type Credential = GcpCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<GcpCredential>> {
        let had = || {
            let own = self.clone();
            async move {
                let (bearer, until) = own.had().await?;
                Ok((GcpCredential { bearer }, Some(until)))
            }
        };
        let origin = || self.account.to_string();
        self.kept.or_had("GCS", origin, had).await
    }
}

impl Provider {
    pub(crate) fn new(account: Account, limits: &Limits) -> Self {
        Self {
            account,
            limits: *limits,
            kept: Arc::default(),
        }
    }

    async fn had(&self) -> Result<(String, SystemTime), Reason> {
        let account = &self.account;
        let first = self.first().await?;
        let scope = match account.stands_for {
            Some(_) => SCOPE_OF_ACCOUNTS,
            None => SCOPE,
        };
        let pairs = [
            (
                "grant_type",
                "urn:ietf:params:oauth:grant-type:token-exchange",
            ),
            (
                "requested_token_type",
                "urn:ietf:params:oauth:token-type:access_token",
            ),
            ("audience", &account.audience),
            ("scope", scope),
            ("subject_token_type", &account.kind),
            ("subject_token", &first),
        ];
        let url = address(&account.token_url, BARE)?;
        let answer = parsed(&ask(&self.limits, Question::form(&url, &pairs)).await?)?;
        let token = needed(&answer, "access_token")?;
        let Some(stands_for) = &account.stands_for else {
            return Ok((token, SystemTime::now() + lasts(&answer)));
        };
        let url = address(stands_for, BARE)?;
        let bearer = format!("Bearer {token}");
        let headers = [
            ("authorization", &*bearer),
            ("content-type", "application/json"),
        ];
        let question = Question {
            method: Method::POST,
            body: json!({ "scope": [SCOPE] }).to_string(),
            ..Question::get(&url, &headers)
        };
        let answer = parsed(&ask(&self.limits, question).await?)?;
        let until = time(&needed(&answer, "expireTime")?)?;
        Ok((needed(&answer, "accessToken")?, until))
    }

    /// The token of the identity provider.
    async fn first(&self) -> Result<String, Reason> {
        let text = match &self.account.first {
            First::File(file) => read(file).await?,
            First::Address(url, headers) => {
                let url = address(url, BARE)?;
                let named = headers
                    .iter()
                    .map(|(name, value)| (name.as_str(), value.as_str()));
                let headers: Vec<_> = named.collect();
                ask(&self.limits, Question::get(&url, &headers)).await?
            }
        };
        match &self.account.field {
            Some(field) => Ok(needed(&parsed(&text)?, field)?),
            None => Ok(text.trim().to_owned()),
        }
    }
}

/// How long the token of an answer is valid: an hour, as Google's are, where the answer has no number.
fn lasts(answer: &Value) -> Duration {
    let seconds = answer["expires_in"].as_u64();
    // A longer one is beyond the clock.
    let seconds = seconds.filter(|seconds| u32::try_from(*seconds).is_ok());
    Duration::from_secs(seconds.unwrap_or(3600))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_without_a_number_of_seconds_ends_after_an_hour() {
        for (answer, seconds) in [
            (json!({"expires_in": 7}), 7),
            (json!({"expires_in": "7"}), 3600),
            (json!({"expires_in": u64::MAX}), 3600),
            (json!({}), 3600),
        ] {
            assert_eq!(lasts(&answer), Duration::from_secs(seconds), "{answer}");
        }
    }

    #[test]
    fn a_file_of_another_type_is_the_clients_and_one_in_part_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let of = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Account::of(&path)
        };
        for text in [
            "",
            "rubbish",
            "[]",
            "{\"type\":\"service_account\"}",
            "{\"type\":7}",
        ] {
            assert_eq!(of(text), Ok(None), "{text}");
        }
        assert_eq!(Account::of(folder.path()), Ok(None));
        let whole = json!({
            "type": "external_account", "audience": "a", "subject_token_type": "t",
            "token_url": "http://h", "credential_source": {"file": "/f"},
        });
        assert!(of(&whole.to_string()).unwrap().is_some());
        for name in [
            "audience",
            "subject_token_type",
            "token_url",
            "credential_source",
        ] {
            let mut part = whole.clone();
            part[name] = Value::Null;
            let refused = of(&part.to_string()).unwrap_err();
            let path = path.display().to_string();
            assert!(
                refused.starts_with(&path) && refused.contains(name),
                "{refused}"
            );
        }
    }
}
