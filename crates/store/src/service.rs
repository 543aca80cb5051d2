//! Requests to services that give credentials, and the parts of their answers.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::time::SystemTime;

use chrono::DateTime;
use http_body_util::BodyExt;
use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::client::{HttpClient, HttpConnector, HttpError, HttpRequest, HttpRequestBody};
use object_store::{ClientOptions, Error};
use reqwest::header::HeaderName;
use reqwest::{Method, Url};
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::Limits;
use crate::attempts::may_pass;
use crate::aws::Keys;
use crate::connector::{Connector, is_of_link};
use crate::failure;
use crate::kept::Reason;
use crate::listed::element;
use crate::named_file;

/// A request.
pub(crate) struct Question<'a> {
    pub(crate) method: Method,
    pub(crate) url: &'a Url,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: String,
    /// Signs it for the token service of a region.
    pub(crate) signed: Option<(Keys, &'a str)>,
    /// Whether the service is the machine's own, whatever its address.
    pub(crate) is_own: bool,
}

impl<'a> Question<'a> {
    pub(crate) fn get(url: &'a Url, headers: &'a [(&'a str, &'a str)]) -> Self {
        Self {
            method: Method::GET,
            url,
            headers,
            body: String::new(),
            signed: None,
            is_own: false,
        }
    }

    /// A question whose body has these pairs.
    pub(crate) fn form(url: &'a Url, pairs: &[(&str, &str)]) -> Self {
        let mut form = url.clone();
        form.query_pairs_mut().clear().extend_pairs(pairs);
        Self {
            method: Method::POST,
            headers: &[("content-type", "application/x-www-form-urlencoded")],
            body: form.query().unwrap_or_default().to_owned(),
            ..Self::get(url, &[])
        }
    }
}

/// The text of an answer with status 200.
pub(crate) async fn ask(limits: &Limits, question: Question<'_>) -> Result<String, Reason> {
    let url = question.url;
    let client = client(limits, &question).map_err(|error| error.to_string())?;
    let failed = |why: &dyn fmt::Display| format!("{}: {why}", shown(url));
    let answer = client.execute(question.request()?).await;
    let broken = |error: HttpError| {
        let why = failed(&failure::chain(&error));
        let source = Box::new(error);
        let store = "HTTP";
        let error = Error::Generic { store, source };
        match may_pass(&error) {
            _ if failure::is_unreached(&failure::of(&error)) => Reason::unreached(why),
            true => Reason::passing(why),
            false => why.into(),
        }
    };
    let answer = answer.map_err(broken)?;
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await;
    let body = body.map_err(broken)?;
    let text = String::from_utf8_lossy(&body.to_bytes()).into_owned();
    if status == 200 {
        return Ok(text);
    }
    let said = [element(&text, "Code"), element(&text, "Message")];
    let said: Vec<_> = said.into_iter().flatten().collect();
    let said = match said.is_empty() {
        true => text.chars().take(200).collect(),
        false => said.join(": "),
    };
    let why = failed(&format!("status {status} {said}").trim_end());
    match failure::is_busy(status) {
        true => Err(Reason::passing(why)),
        false => Err(why.into()),
    }
}

impl Question<'_> {
    fn request(self) -> Result<HttpRequest, String> {
        let mut request = HttpRequest::new(HttpRequestBody::from(self.body.into_bytes()));
        *request.method_mut() = self.method;
        let parsed = self.url.as_str().parse();
        *request.uri_mut() = parsed.map_err(|_| format!("{}: is no address", shown(self.url)))?;
        for (name, value) in self.headers {
            let name: HeaderName = name
                .parse()
                .map_err(|_| format!("{name:?} is no name of a header"))?;
            let value = value.trim().parse();
            let value =
                value.map_err(|_| "a token with characters that no token has".to_owned())?;
            request.headers_mut().insert(name, value);
        }
        if let Some((keys, region)) = self.signed {
            let keys = AwsCredential {
                key_id: keys.id,
                secret_key: keys.secret,
                token: keys.token,
            };
            let signed = AwsAuthorizer::new(&keys, "sts", region).try_authorize(&mut request, None);
            signed.map_err(|error| error.to_string())?;
        }
        Ok(request)
    }
}

fn client(limits: &Limits, question: &Question<'_>) -> object_store::Result<HttpClient> {
    let connector = Connector::new(&Limits {
        requests: 1,
        ..*limits
    });
    let is_plain = question.url.scheme() == "http";
    // A proxy would read the keys.
    let connector = match is_plain && (question.is_own || is_here(question.url)) {
        true => connector.without_proxy(),
        false => connector,
    };
    connector.connect(&ClientOptions::new().with_allow_http(is_plain))
}

/// Whether an address is of this machine or its link.
fn is_here(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse();
    let is_loopback = address.is_ok_and(|address: IpAddr| address.is_loopback());
    host == "localhost" || is_loopback || is_of_link(host)
}

/// An address for people: its query has secrets.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.to_string()
}

/// An address with the pairs of a query.
pub(crate) fn address(
    base: &str,
    query: &[(impl AsRef<str>, impl AsRef<str>)],
) -> Result<Url, String> {
    let parsed = Url::parse(base)
        .ok()
        .filter(|url| ["http", "https"].contains(&url.scheme()));
    let mut url = parsed.ok_or_else(|| format!("{base:?} is no address of http or https"))?;
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    Ok(url)
}

/// No query.
pub(crate) const BARE: &[(&str, &str)] = &[];

/// The text of a file, which may lie on a server.
pub(crate) async fn read(file: &Path) -> Result<String, String> {
    let path = file.to_owned();
    let read = spawn_blocking(move || named_file::text(&path)).await;
    let read = read.map_err(|error| error.to_string())?;
    let text = read.map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(text.trim().to_owned())
}

pub(crate) fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("an answer that is no JSON: {error}"))
}

/// A text of an answer.
pub(crate) fn needed(answer: &Value, name: &str) -> Result<String, String> {
    let text = answer[name].as_str().map(str::to_owned);
    text.ok_or_else(|| format!("an answer without {name}"))
}

pub(crate) fn time(text: &str) -> Result<SystemTime, String> {
    let time = DateTime::parse_from_rfc3339(text);
    time.map(Into::into)
        .map_err(|_| format!("{text:?} is no time of RFC 3339"))
}
