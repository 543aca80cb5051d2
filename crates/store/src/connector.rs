//! Connections to stores.
//!
//! Problem: the clients of stores follow a redirect to any host, with headers and the old address in `Referer`, and
//! so tell that host a session token, a key of SSE-C or a SAS token. They read the body of a listing or of an error
//! to its end, which may never come. And their errors come without the headers of the answer.
//!
//! Mechanism: a service around connections that have no such habits.
//!
//! ```text
//! 307 to the same scheme, host and port     followed, at most 5 times
//! 307 to another                            the request fails
//! a body that is no range                   fails behind 8 MiB; that of a listing is looked at first, and keys
//!                                           that have no name are taken out
//! http://169.254.169.254/..                 asked without a proxy, which would read the keys of this machine
//! 429 or 503, Retry-After: 1                1 s is left with the attempt that is under way in the same task
//! x-amz-meta-a: \xff                        a header that is no text of ASCII is left out: clients refuse the answer
//! ```

use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use forerun_io::source::remote::retry_after;
use http_body_util::{BodyExt, Limited};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use object_store::{ClientConfigKey, ClientOptions, Error};
use reqwest::Url;
use reqwest::dns::{Name, Resolve, Resolving};
use reqwest::header::{ACCEPT_ENCODING, HeaderValue};
use reqwest::redirect::{Action, Attempt, Policy};
use tokio::net::lookup_host;

use crate::Limits;
use crate::failure;
use crate::listed;
use crate::nameless;
use crate::web::{WebAddress, bare};

/// The longest body that is no range: a page of 1,000 keys of 1 KiB, in XML, has a quarter of it.
const BODY_MAX: usize = 8 << 20;

/// Redirects of one request.
const REDIRECTS_MAX: usize = 5;

/// An answer that is not used, and would be the same the next time.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Refused(pub(crate) String);

/// A host without an address.
#[derive(Debug, thiserror::Error)]
#[error("no host {name}: {why}")]
pub(crate) struct NoAddress {
    name: String,
    why: std::io::Error,
}

tokio::task_local! {
    static ASKED: Cell<Option<Duration>>;
}

/// The outcome of an attempt, and the time that a server asked for meanwhile.
pub(crate) async fn noted<T>(attempt: impl Future<Output = T>) -> (T, Option<Duration>) {
    let noting = async {
        let outcome = attempt.await;
        (outcome, ASKED.with(Cell::take))
    };
    ASKED.scope(Cell::new(None), noting).await
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    limits: Limits,
    has_proxy: bool,
    as_stored: bool,
}

impl Connector {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            limits: *limits,
            has_proxy: true,
            as_stored: false,
        }
    }

    /// No request goes through a proxy, whatever the environment says. Requests to services of the machine's link do not
    /// anyway.
    pub(crate) fn without_proxy(self) -> Self {
        Self {
            has_proxy: false,
            ..self
        }
    }

    /// Objects that are stored as gzip are asked for so: Google Cloud Storage unpacks them otherwise, and tells no
    /// length.
    pub(crate) fn with_bytes_as_stored(self) -> Self {
        Self {
            as_stored: true,
            ..self
        }
    }
}

impl Connector {
    fn client(&self, is_plain: bool) -> reqwest::Result<reqwest::Client> {
        let client = reqwest::Client::builder()
            .user_agent(concat!("forerun/", env!("CARGO_PKG_VERSION")))
            .https_only(!is_plain)
            .http1_only()
            .redirect(Policy::custom(redirect))
            .referer(false)
            .connect_timeout(self.limits.connect)
            .read_timeout(self.limits.silence)
            .timeout(self.limits.deadline)
            .pool_max_idle_per_host(self.limits.requests.max(1) as usize)
            .pool_idle_timeout(Duration::from_secs(60))
            .dns_resolver(Arc::new(InTurn::default()));
        match self.has_proxy {
            true => client.build(),
            false => client.no_proxy().build(),
        }
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let plain = options.get_config_value(&ClientConfigKey::AllowHttp);
        let client = self.client(plain.as_deref() == Some("true"));
        let client = client.map_err(|error| Error::Generic {
            store: "HTTP",
            source: error.into(),
        })?;
        Ok(HttpClient::new(Guarded {
            requests: HttpClient::new(client.clone()),
            client,
            of_link: OnceLock::new(),
            connector: self.clone(),
        }))
    }
}

/// Whether a host is of the link of this machine, or of the addresses that AWS has for its services on IPv6. Other
/// unique-local addresses are of networks, whose servers a proxy may lead to.
pub(crate) fn is_of_link(host: &str) -> bool {
    match host.trim_matches(['[', ']']).parse() {
        Ok(IpAddr::V4(address)) => address.is_link_local(),
        Ok(IpAddr::V6(address)) => {
            address.is_unicast_link_local() || address.segments()[..2] == [0xfd00, 0xec2]
        }
        Err(_) => host == "metadata.google.internal",
    }
}

/// Follows a redirect that stays with its server.
fn redirect(attempt: Attempt<'_>) -> Action {
    let server = |url: &Url| {
        let host = url.host_str().map(str::to_owned);
        (url.scheme().to_owned(), host, url.port_or_known_default())
    };
    let stays = attempt.previous().first().map(server) == Some(server(attempt.url()));
    let why = match stays && attempt.previous().len() <= REDIRECTS_MAX {
        true => return attempt.follow(),
        false if stays => format!("more than {REDIRECTS_MAX} redirects"),
        false => {
            let (scheme, host, _) = server(attempt.url());
            let host = host.unwrap_or_default();
            format!("redirects to another server, {scheme}://{host}, which is not asked")
        }
    };
    attempt.error(Refused(why))
}

/// Addresses of a host, another one first each time: stores have many.
#[derive(Default)]
struct InTurn(Arc<AtomicUsize>);

impl Resolve for InTurn {
    fn resolve(&self, name: Name) -> Resolving {
        let turn = self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            // The client puts the port of the address in place of this one.
            let mut all = addresses(name.as_str()).await?;
            let first = turn % all.len().max(1);
            all.rotate_left(first);
            Ok(Box::new(all.into_iter()) as _)
        })
    }
}

async fn addresses(
    name: &str,
) -> Result<Vec<SocketAddr>, Box<dyn std::error::Error + Send + Sync>> {
    match lookup_host((name, 0)).await {
        Ok(all) => Ok(all.collect()),
        // The resolver has no answer, which is no answer that there is none.
        Err(why) if why.to_string().contains("Temporary failure") => Err(why.into()),
        Err(why) => Err(NoAddress {
            name: name.into(),
            why,
        }
        .into()),
    }
}

#[derive(Debug)]
struct Guarded {
    requests: HttpClient,
    client: reqwest::Client,
    /// For services of the link, once one is asked.
    of_link: OnceLock<HttpClient>,
    connector: Connector,
}

impl Guarded {
    /// The connections for a request.
    fn requests(&self, request: &HttpRequest) -> Result<&HttpClient, HttpError> {
        let uri = request.uri();
        let is_plain = uri.scheme_str() == Some("http");
        if !self.connector.has_proxy || !is_plain || !uri.host().is_some_and(is_of_link) {
            return Ok(&self.requests);
        }
        if let Some(of_link) = self.of_link.get() {
            return Ok(of_link);
        }
        let client = self.connector.clone().without_proxy().client(is_plain);
        let client = client.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        Ok(self.of_link.get_or_init(|| HttpClient::new(client)))
    }
}

#[async_trait]
impl HttpService for Guarded {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let range = request.headers().get("range").cloned();
        let asks_listing = listed::asks(&request);
        let web = request.extensions_mut().remove::<WebAddress>();
        if let Some(web) = &web {
            web.put(&self.client, &mut request)?;
        }
        if self.connector.as_stored && (range.is_some() || request.method() == "HEAD") {
            let headers = request.headers_mut();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let requests = self.requests(&request)?;
        let mut answer = requests.execute(request).await?;
        let odd = answer.headers().iter();
        let odd = odd.filter(|(_, value)| value.to_str().is_err());
        let odd: Vec<_> = odd.map(|(name, _)| name.clone()).collect();
        for name in odd {
            answer.headers_mut().remove(name);
        }
        if [429, 503].contains(&answer.status().as_u16()) {
            let text = answer.headers().get("retry-after");
            let pause = text.and_then(|text| retry_after(text.to_str().ok()?));
            // A request outside of attempts, for credentials, has no pause.
            let _ = ASKED.try_with(|asked| asked.set(pause));
        }
        if answer.status() == 301
            && let Some(region) = answer.headers().get("x-amz-bucket-region")
            && let Ok(region) = region.to_str()
        {
            let why = Refused(failure::other_region(region));
            return Err(HttpError::new(HttpErrorKind::Request, why));
        }
        if web.is_some() {
            answer = bare(answer, range.as_ref());
        }
        if range.is_some() && answer.status() == 206 {
            return Ok(answer);
        }
        let (mut head, body) = answer.into_parts();
        let body = Limited::new(body, BODY_MAX).map_err(of_body);
        if !asks_listing || !head.status.is_success() {
            return Ok(HttpResponse::from_parts(head, HttpResponseBody::new(body)));
        }
        let body = body.collect().await?.to_bytes();
        listed::check(head.status.as_u16(), &body)
            .map_err(|why| HttpError::new(HttpErrorKind::Decode, Refused(why)))?;
        let body = match nameless::taken_out(&body) {
            None => body.into(),
            Some((body, left_out)) => {
                head.extensions.insert(left_out);
                body.into()
            }
        };
        Ok(HttpResponse::from_parts(head, body))
    }
}

/// The error of a limited body.
fn of_body(error: Box<dyn std::error::Error + Send + Sync>) -> HttpError {
    error.downcast().map_or_else(
        |_| {
            let why = format!("an answer longer than {} MiB", BODY_MAX >> 20);
            HttpError::new(HttpErrorKind::Decode, Refused(why))
        },
        |error: Box<HttpError>| *error,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_of_clouds_are_on_the_link() {
        for near in [
            "169.254.169.254",
            "169.254.170.2",
            "[fd00:ec2::23]",
            "[fe80::1]",
            "metadata.google.internal",
        ] {
            assert!(is_of_link(near), "{near}");
        }
        for far in [
            "192.0.2.1",
            "127.0.0.1",
            "metadata.example",
            "[2001:db8::1]",
            "[fd12:3456::1]",
            "[fd00:ec3::23]",
        ] {
            assert!(!is_of_link(far), "{far}");
        }
    }
}
