//! Keys for requests, had from their source when they are needed and had again before they end.
//!
//! ```text
//! GET, no keys yet         source asked: keys until 12:00
//! GET at 11:54             the same keys
//! GET at 11:55             source asked again; if it fails, the same keys until 12:00
//! ```
//!
//! One request to a source is under way; others wait for it. It has [`WAIT`] for all its steps.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use http_body_util::BodyExt;
use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::client::{HttpClient, HttpConnector, HttpRequest, HttpRequestBody};
use object_store::{ClientOptions, CredentialProvider, Error};
use reqwest::{Method, Url};
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::{Authorization, Keys, Origin};
use crate::Limits;
use crate::connector::Connector;
use crate::listed::element;

/// Keys are had again so long before their end, as AWS's own programs do.
const EARLY: Duration = Duration::from_secs(300);

/// For all steps of a source: less than the 20 s that a question to a store has.
const WAIT: Duration = Duration::from_secs(15);

/// Longest answer of a program or service, in bytes.
const ANSWER_MAX: u64 = 64 << 10;

/// Keys cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("{origin}: {why}")]
pub(crate) struct NoKeys {
    origin: String,
    why: String,
}

/// Addresses of services, where they are not those of AWS.
#[derive(Clone, Default, Debug)]
pub(crate) struct Services {
    pub(crate) region: String,
    pub(crate) sts: Option<String>,
    pub(crate) sso: Option<String>,
}

struct Kept {
    keys: Arc<AwsCredential>,
    until: Option<SystemTime>,
}

impl Kept {
    fn lasts(&self, long: Duration) -> bool {
        self.until
            .is_none_or(|until| until > SystemTime::now() + long)
    }
}

/// See the [module](self).
pub(crate) struct Provider {
    origin: Origin,
    services: Services,
    limits: Limits,
    kept: Mutex<Option<Kept>>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Provider {{ {} }}", self.origin)
    }
}

/// Keys and their end.
type Had = (Keys, Option<SystemTime>);

#[async_trait]
impl CredentialProvider for Provider {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let mut kept = self.kept.lock().await;
        if let Some(kept) = kept.as_ref().filter(|kept| kept.lasts(EARLY)) {
            return Ok(kept.keys.clone());
        }
        let had = timeout(WAIT, self.had(&self.origin)).await;
        let had = had.unwrap_or_else(|_| Err(format!("no answer for {} s", WAIT.as_secs())));
        match had.and_then(checked) {
            Ok((keys, until)) => {
                let keys = Arc::new(AwsCredential {
                    key_id: keys.id,
                    secret_key: keys.secret,
                    token: keys.token,
                });
                *kept = Some(Kept {
                    keys: keys.clone(),
                    until,
                });
                Ok(keys)
            }
            Err(why) => match kept.as_ref().filter(|kept| kept.lasts(Duration::ZERO)) {
                Some(kept) => Ok(kept.keys.clone()),
                None => {
                    let origin = self.origin.to_string();
                    let source = Box::new(NoKeys { origin, why });
                    Err(Error::Generic {
                        store: "S3",
                        source,
                    })
                }
            },
        }
    }
}

/// Keys that can stand in a header, and have not ended.
fn checked((keys, until): Had) -> Result<Had, String> {
    let is_plain =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_plain(&keys.id) || !is_plain(&keys.secret) || !keys.token.as_deref().is_none_or(is_plain)
    {
        return Err("its keys have characters that no key has, or none".to_owned());
    }
    match until.filter(|until| *until <= SystemTime::now()) {
        Some(until) => Err(format!(
            "its keys ended {}",
            DateTime::<Utc>::from(until).format("%F %T UTC")
        )),
        None => Ok((keys, until)),
    }
}

impl Provider {
    pub(crate) fn new(origin: Origin, services: Services, limits: &Limits) -> Self {
        Self {
            origin,
            services,
            limits: *limits,
            kept: Mutex::default(),
        }
    }

    async fn had(&self, origin: &Origin) -> Result<Had, String> {
        match origin {
            Origin::Keys { keys, .. } => Ok((keys.clone(), None)),
            Origin::WebIdentity {
                file,
                role,
                session,
                ..
            } => {
                let token = read(file).await?;
                let query = [
                    ("Action", "AssumeRoleWithWebIdentity"),
                    ("RoleArn", role),
                    ("RoleSessionName", session),
                    ("WebIdentityToken", &token),
                ];
                self.of_sts(&query, None).await
            }
            Origin::Role {
                role,
                session,
                external,
                seconds,
                by,
                ..
            } => {
                // Boxed, as a role may be had by a role.
                let (keys, _) = checked(Box::pin(self.had(by)).await?)?;
                let mut query = vec![
                    ("Action", "AssumeRole"),
                    ("RoleArn", role),
                    ("RoleSessionName", session),
                ];
                query.extend(external.as_deref().map(|id| ("ExternalId", id)));
                query.extend(
                    seconds
                        .as_deref()
                        .map(|seconds| ("DurationSeconds", seconds)),
                );
                self.of_sts(&query, Some(keys)).await
            }
            Origin::Login {
                folder,
                start,
                region,
                account,
                role,
                ..
            } => {
                let (folder, start) = (folder.clone(), start.clone());
                let token = spawn_blocking(move || login(&folder, &start)).await;
                let token = token.map_err(|error| error.to_string())??;
                let usual = format!("https://portal.sso.{region}.amazonaws.com");
                let base = self.services.sso.as_deref().unwrap_or(&usual);
                let query = [("role_name", role), ("account_id", account)];
                let url = address(
                    &format!("{}/federation/credentials", base.trim_end_matches('/')),
                    &query,
                )?;
                let headers = [("x-amz-sso_bearer_token", &*token)];
                let answer = json(&self.ask(&Method::GET, &url, &headers, None).await?)?;
                of_login(&answer["roleCredentials"])
            }
            Origin::Program { command, .. } => {
                let answer = json(&run(command).await?)?;
                match answer["Version"].as_u64() {
                    Some(1) => of_json(&answer),
                    _ => Err("its output has no \"Version\": 1".to_owned()),
                }
            }
            Origin::Container { url, authorization } => {
                let text = match authorization {
                    Authorization::Not => None,
                    Authorization::Text(text) => Some(text.clone()),
                    Authorization::File(file) => Some(read(file).await?),
                };
                let headers = text.as_ref().map(|text| ("authorization", &**text));
                let url = address(url, &[] as &[(&str, &str)])?;
                let headers: Vec<_> = headers.into_iter().collect();
                of_json(&json(&self.ask(&Method::GET, &url, &headers, None).await?)?)
            }
            Origin::Instance { url } => self.of_instance(url).await,
        }
    }

    async fn of_instance(&self, base: &str) -> Result<Had, String> {
        let url = |path: &str| address(&format!("{base}/latest/{path}"), &[] as &[(&str, &str)]);
        let lasts = [("x-aws-ec2-metadata-token-ttl-seconds", "600")];
        let token = self
            .ask(&Method::PUT, &url("api/token")?, &lasts, None)
            .await?;
        let with = [("x-aws-ec2-metadata-token", token.trim())];
        let roles = "meta-data/iam/security-credentials/";
        let role = self.ask(&Method::GET, &url(roles)?, &with, None).await?;
        let role = role.lines().next().unwrap_or_default().trim();
        if role.is_empty() {
            return Err("the instance has no role".to_owned());
        }
        let keys = url(&format!("{roles}{role}"))?;
        of_json(&json(&self.ask(&Method::GET, &keys, &with, None).await?)?)
    }

    async fn of_sts(&self, query: &[(&str, &str)], keys: Option<Keys>) -> Result<Had, String> {
        let region = &self.services.region;
        let usual = format!("https://sts.{region}.amazonaws.com");
        let base = self.services.sts.as_deref().unwrap_or(&usual);
        let version = [("Version", "2011-06-15")];
        let query: Vec<_> = query.iter().chain(&version).copied().collect();
        let url = address(base, &query)?;
        let answer = self.ask(&Method::POST, &url, &[], keys).await?;
        let of = |name| {
            let text = element(&answer, name);
            let text = text.ok_or_else(|| format!("{} answered without {name}", shown(&url)));
            text.map(str::to_owned)
        };
        let keys = Keys {
            id: of("AccessKeyId")?,
            secret: of("SecretAccessKey")?,
            token: Some(of("SessionToken")?),
        };
        Ok((keys, Some(time(&of("Expiration")?)?)))
    }

    /// The text of an answer with status 200.
    async fn ask(
        &self,
        method: &Method,
        url: &Url,
        headers: &[(&'static str, &str)],
        keys: Option<Keys>,
    ) -> Result<String, String> {
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.method_mut() = method.clone();
        *request.uri_mut() = url
            .as_str()
            .parse()
            .map_err(|_| format!("{url}: is no address"))?;
        for (name, value) in headers {
            let value = value.trim().parse();
            let value =
                value.map_err(|_| "a token with characters that no token has".to_owned())?;
            request.headers_mut().insert(*name, value);
        }
        if let Some(keys) = keys {
            let keys = AwsCredential {
                key_id: keys.id,
                secret_key: keys.secret,
                token: keys.token,
            };
            let signed = AwsAuthorizer::new(&keys, "sts", &self.services.region)
                .try_authorize(&mut request, None);
            signed.map_err(|error| error.to_string())?;
        }
        let client = self.client(url).map_err(|error| error.to_string())?;
        let failed = |why: &dyn fmt::Display| format!("{}: {why}", shown(url));
        let answer = client.execute(request).await;
        let answer = answer.map_err(|error| failed(&crate::failure::chain(&error)))?;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await;
        let body = body.map_err(|error| failed(&crate::failure::chain(&error)))?;
        let text = String::from_utf8_lossy(&body.to_bytes()).into_owned();
        if status == 200 {
            return Ok(text);
        }
        let said = [element(&text, "Code"), element(&text, "Message")];
        let said: Vec<_> = said.into_iter().flatten().collect();
        let said = if said.is_empty() {
            text.chars().take(200).collect()
        } else {
            said.join(": ")
        };
        Err(failed(&format!("status {status} {said}").trim_end()))
    }

    fn client(&self, url: &Url) -> object_store::Result<HttpClient> {
        let limits = Limits {
            requests: 1,
            ..self.limits
        };
        Connector(limits).connect(&ClientOptions::new().with_allow_http(url.scheme() == "http"))
    }
}

/// An address for people: its query has secrets.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.to_string()
}

fn address(base: &str, query: &[(impl AsRef<str>, impl AsRef<str>)]) -> Result<Url, String> {
    let parsed = Url::parse(base)
        .ok()
        .filter(|url| ["http", "https"].contains(&url.scheme()));
    let mut url = parsed.ok_or_else(|| format!("{base:?} is no address of http or https"))?;
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    Ok(url)
}

async fn read(file: &Path) -> Result<String, String> {
    let path = file.to_owned();
    let read = spawn_blocking(move || fs::read_to_string(path)).await;
    let read = read.map_err(|error| error.to_string())?;
    let text = read.map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(text.trim().to_owned())
}

/// The output of a program.
async fn run(command: &str) -> Result<String, String> {
    let mut program = Command::new("/bin/sh");
    program.args(["-c", command]).stdin(Stdio::null());
    program
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .kill_on_drop(true);
    let mut program = program.spawn().map_err(|error| error.to_string())?;
    let mut output = Vec::new();
    if let Some(stdout) = program.stdout.take() {
        let read = stdout.take(ANSWER_MAX).read_to_end(&mut output).await;
        read.map_err(|error| error.to_string())?;
    }
    if output.len() as u64 == ANSWER_MAX {
        return Err(format!("its output has more than {} KiB", ANSWER_MAX >> 10));
    }
    let status = program.wait().await.map_err(|error| error.to_string())?;
    if !status.success() {
        return Err(format!("it failed with {status}"));
    }
    String::from_utf8(output).map_err(|_| "its output is no text".to_owned())
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("an answer that is no JSON: {error}"))
}

/// The form of programs, containers and instances.
fn of_json(answer: &Value) -> Result<Had, String> {
    let text = |name| answer[name].as_str().map(str::to_owned);
    let needed = |name| text(name).ok_or_else(|| format!("an answer without {name}"));
    let keys = Keys {
        id: needed("AccessKeyId")?,
        secret: needed("SecretAccessKey")?,
        token: text("SessionToken").or_else(|| text("Token")),
    };
    let until = text("Expiration").map(|text| time(&text)).transpose()?;
    Ok((keys, until))
}

fn of_login(answer: &Value) -> Result<Had, String> {
    let needed = |name| {
        let text = answer[name].as_str().map(str::to_owned);
        text.ok_or_else(|| format!("an answer without {name}"))
    };
    let keys = Keys {
        id: needed("accessKeyId")?,
        secret: needed("secretAccessKey")?,
        token: Some(needed("sessionToken")?),
    };
    let until = answer["expiration"].as_u64();
    let until = until.and_then(|ms| SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(ms)));
    Ok((keys, Some(until.ok_or("an answer without expiration")?)))
}

fn time(text: &str) -> Result<SystemTime, String> {
    let time = DateTime::parse_from_rfc3339(text);
    time.map(Into::into)
        .map_err(|_| format!("{text:?} is no time of RFC 3339"))
}

/// The token of a login that has not ended, among the caches of all logins.
fn login(folder: &Path, start: &str) -> Result<String, String> {
    let again = format!(
        "no login of {start} in {}: aws sso login makes one",
        folder.display()
    );
    let files = fs::read_dir(folder).map_err(|_| again.clone())?;
    let mut newest: Option<(SystemTime, String)> = None;
    for file in files.flatten() {
        let cache = fs::read_to_string(file.path()).ok();
        let Some(cache) = cache.and_then(|text| json(&text).ok()) else {
            continue;
        };
        let text = |name: &str| cache[name].as_str();
        // Files of other kinds are in the folder, too.
        let (Some(of), Some(token), Some(until)) = (
            text("startUrl"),
            text("accessToken"),
            text("expiresAt").and_then(|text| time(text).ok()),
        ) else {
            continue;
        };
        let is_of = of.trim_end_matches(['/', '#']) == start.trim_end_matches(['/', '#']);
        if is_of && newest.as_ref().is_none_or(|(newest, _)| *newest < until) {
            newest = Some((until, token.to_owned()));
        }
    }
    match newest {
        Some((until, token)) if until > SystemTime::now() => Ok(token),
        Some(_) => Err(format!(
            "the login of {start} has ended: aws sso login renews it"
        )),
        None => Err(again),
    }
}
