//! Addresses of objects, and the stores they lead to.
//!
//! ```text
//! s3://bucket/a/b     scheme s3, base s3://bucket, key a/b
//! http://host/a?b     scheme http, base http://host, no key: the address as it is
//! ```
//!
//! Keys of `s3`, `gs` and `az` stand as they are, as in the stores' own commands. A key with an empty
//! part (`//`), a part `.` or `..`, or a control character is refused, because clients of stores disagree on it.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use forerun_io::source::remote::{self, SCHEMES};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::list::PaginatedListStore;
use object_store::path::Path;
use object_store::{ClientOptions, ObjectStore, RetryConfig};

use crate::aws::provider::{Provider, Services};
use crate::connector::Connector;
use crate::credentials::{self, KeySource, Profile, Signed};
use crate::web::WebAddress;
use crate::{Endpoint, Limits, StoreError, azure, google};

/// HTTP has the user and password of an address alone.
const WITHOUT_KEYS: &str = "not signed: there are no credentials for HTTP but those of the address";

/// Of a bucket, as of a part of an address (RFC 3986, section 3.3); the client of S3 panics at another one.
const PUNCTUATION: &str = "-._~!$&'()*+,;=:@";

/// Variables of the environment, by name.
pub(crate) type Variables = BTreeMap<String, String>;

/// See the [module](self).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Address {
    pub(crate) url: String,
    /// The part before the key.
    pub(crate) base: String,
    pub(crate) scheme: &'static str,
    pub(crate) key: Path,
    /// Of HTTP, in place of a key.
    pub(crate) web: Option<WebAddress>,
}

/// A client, if it has listings as a client of them, the source of its credentials in words, and the one that can be
/// asked again.
pub(crate) type Connection = (
    Arc<dyn ObjectStore>,
    Option<Arc<dyn PaginatedListStore>>,
    String,
    Option<KeySource>,
);

impl Address {
    /// Of an object.
    pub(crate) fn of(url: &str) -> Result<Self, StoreError> {
        let address = Self::of_folder(url)?;
        let is_folder = match &address.web {
            Some(web) => !web.names_object(),
            None => address.key.as_ref().is_empty() || url.ends_with('/'),
        };
        match is_folder {
            true => Err(StoreError::address(
                url,
                "names no object: a key must follow",
            )),
            false => Ok(address),
        }
    }

    /// Of a folder: a prefix of keys.
    pub(crate) fn of_folder(url: &str) -> Result<Self, StoreError> {
        let refused = |why: &str| StoreError::address(url, why);
        let schemes = || {
            format!(
                "begins with none of {}",
                SCHEMES.map(|s| s.to_owned() + "://").join(", ")
            )
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(|| refused(&schemes()))?;
        let known = SCHEMES.into_iter().find(|known| *known == scheme);
        let scheme = known.ok_or_else(|| refused(&schemes()))?;
        let is_http = scheme.starts_with("http");
        let ends: &[char] = if is_http { &['/', '?', '#'] } else { &['/'] };
        let bucket = rest.split(ends).next().unwrap_or(rest);
        let key = rest[bucket.len()..].strip_prefix('/').unwrap_or("");
        if bucket.is_empty() {
            return Err(refused("names no bucket"));
        }
        let is_of_uri = |c: char| c.is_ascii_alphanumeric() || PUNCTUATION.contains(c);
        if !is_http && !bucket.chars().all(is_of_uri) {
            return Err(refused(&format!(
                "bucket {bucket:?}: must have letters and digits of ASCII and any of {PUNCTUATION} alone"
            )));
        }
        let (key, web) = match is_http {
            true => (
                Path::default(),
                Some(WebAddress::of(url).map_err(|why| refused(&why))?),
            ),
            false if key.starts_with('/') => {
                return Err(refused("begins its key with an empty part"));
            }
            false => {
                let key = Path::parse(key);
                (key.map_err(|error| StoreError::address(url, error))?, None)
            }
        };
        Ok(Self {
            url: remote::without_passwords(url),
            base: format!("{scheme}://{bucket}"),
            scheme,
            key,
            web,
        })
    }

    /// The beginning of keys below it.
    pub(crate) fn prefix(&self) -> String {
        match self.key.as_ref() {
            "" => String::new(),
            key => format!("{key}/"),
        }
    }

    /// A path below it; none if no key of an object can be that.
    pub(crate) fn below(&self, path: &str) -> Option<Self> {
        let key = Path::parse(self.prefix() + path).ok()?;
        Some(Self {
            url: format!("{}/{key}", self.base),
            key,
            ..self.clone()
        })
    }

    fn bucket(&self) -> &str {
        self.base.split_once("://").map_or("", |(_, bucket)| bucket)
    }

    /// No connection yet.
    pub(crate) fn connect(
        &self,
        limits: &Limits,
        set: &Variables,
    ) -> Result<Connection, StoreError> {
        let connected = match self.scheme {
            "s3" => return self.s3(limits, set),
            "gs" => return self.gs(limits, set),
            "az" => {
                let connection = azure::connection(set);
                let set = &connection.map_err(|why| StoreError::address(&self.url, why))?;
                let variables = |name: &str| set.get(name).cloned();
                let is_plain = |name| variables(name).is_some_and(|url| url.starts_with("http://"));
                let signed = credentials::az(&variables);
                let builder = configured(set, "AZURE_", MicrosoftAzureBuilder::with_config)
                    .with_container_name(self.bucket())
                    .with_skip_signature(matches!(signed, Signed::Not(_)))
                    .with_retry(no_retries())
                    .with_http_connector(Connector::new(limits))
                    .with_client_options(plain(is_plain("AZURE_STORAGE_ENDPOINT")));
                builder.build().map(|store| {
                    let source = KeySource::Azure(store.credentials().clone());
                    both(store, &signed, source)
                })
            }
            _ => {
                let builder = HttpBuilder::new()
                    .with_url(&self.base)
                    .with_retry(no_retries())
                    .with_http_connector(Connector::new(limits))
                    .with_client_options(plain(self.scheme == "http"));
                builder
                    .build()
                    .map(|store| (Arc::new(store) as _, None, WITHOUT_KEYS.to_owned(), None))
            }
        };
        connected.map_err(|error| StoreError::address(&self.url, error))
    }

    fn gs(&self, limits: &Limits, set: &Variables) -> Result<Connection, StoreError> {
        let variables = |name: &str| set.get(name).cloned();
        let refused = |why: &dyn ToString| StoreError::address(&self.url, why.to_string());
        let signed = credentials::gs(&variables).map_err(|why| refused(&why))?;
        // The client refuses files of accounts that are not Google's.
        let is_file = |name: &String| credentials::FILES_OF_GOOGLE.contains(&name.as_str());
        let mut set = set.clone();
        let is_by_variables = [Signed::ByVariables, Signed::ByKey].contains(&signed);
        set.retain(|name, _| !is_file(name) || is_by_variables);
        let builder = configured(&set, "GOOGLE_", GoogleCloudStorageBuilder::with_config);
        let builder = match &signed {
            Signed::ByFile(file) => builder.with_application_credentials(file),
            Signed::ByAccount(account) => {
                let provider = google::Provider::new((**account).clone(), limits);
                builder.with_credentials(Arc::new(provider))
            }
            signed => builder.with_skip_signature(matches!(signed, Signed::Not(_))),
        };
        // An endpoint that is given so, as for S3.
        let base = variables("GOOGLE_BASE_URL");
        let is_plain = base.is_some_and(|url| url.starts_with("http://"));
        let builder = builder
            .with_bucket_name(self.bucket())
            .with_retry(no_retries())
            .with_http_connector(Connector::new(limits).with_bytes_as_stored())
            .with_client_options(plain(is_plain));
        let built = builder.build().map(|store| {
            let source = KeySource::Google(store.credentials().clone());
            both(store, &signed, source)
        });
        built.map_err(|error| refused(&error))
    }

    /// See [`Client::endpoint`](crate::Client::endpoint).
    pub(crate) fn endpoint(&self, set: &Variables) -> Result<Endpoint, StoreError> {
        let refused = |why: &str| StoreError::address(&self.url, why);
        if self.scheme != "s3" {
            return Err(refused("is no address of S3"));
        }
        let variables = |name: &str| set.get(name).cloned();
        let (signed, profile) = credentials::s3(&variables).map_err(|why| refused(&why))?;
        let (url, region) = of_s3(&variables, &profile);
        Ok(Endpoint {
            url,
            region,
            is_signed: !matches!(signed, Signed::Not(_)),
        })
    }

    fn s3(&self, limits: &Limits, set: &Variables) -> Result<Connection, StoreError> {
        let variables = |name: &str| set.get(name).cloned();
        let refused = |why: String| StoreError::address(&self.url, why);
        let (signed, profile) = credentials::s3(&variables).map_err(refused)?;
        let builder = configured(set, "AWS_", AmazonS3Builder::with_config);
        let mut builder = builder.with_bucket_name(self.bucket());
        let (endpoint, region) = of_s3(&variables, &profile);
        if let Some(region) = &region {
            builder = builder.with_region(region);
        }
        if let Some(url) = &endpoint {
            // The client of S3 takes it as it is, and panics at the first request if it is none.
            let any = ClientOptions::new().with_allow_http(true);
            let parsed = HttpBuilder::new()
                .with_url(url)
                .with_client_options(any)
                .build();
            let is_http = url.starts_with("http://") || url.starts_with("https://");
            let is_split = url.contains(|c: char| c.is_whitespace() || c.is_control());
            if parsed.is_err() || !is_http || is_split {
                let why = format!("{url:?} is no endpoint: give one as http://host:port");
                return Err(StoreError::address(&self.url, why));
            }
        }
        let is_plain = endpoint
            .as_ref()
            .is_some_and(|url| url.starts_with("http://"));
        if let Some(endpoint) = endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        builder = match &signed {
            Signed::Not(_) => builder.with_skip_signature(true),
            Signed::Aws(origin) => {
                let of = |name| ["AWS_ENDPOINT_URL_", name].concat();
                let service = |name| {
                    let named =
                        [of(name), "AWS_ENDPOINT_URL".to_owned()].map(|name| variables(&name));
                    named.into_iter().flatten().find(|url| !url.is_empty())
                };
                let services = Services {
                    region: region.unwrap_or_else(|| "us-east-1".to_owned()),
                    sts: service("STS"),
                    sso: service("SSO"),
                };
                builder.with_credentials(Arc::new(Provider::new(origin.clone(), services, limits)))
            }
            _ => builder,
        };
        let builder = builder
            .with_retry(no_retries())
            .with_http_connector(Connector::new(limits))
            .with_client_options(plain(is_plain));
        let built = builder.build().map(|store| {
            let source = KeySource::Aws(store.credentials().clone());
            both(store, &signed, source)
        });
        built.map_err(|error| StoreError::address(&self.url, error))
    }
}

/// Endpoint and region of S3, by variables and by the profile.
fn of_s3(
    variables: credentials::Variables<'_>,
    profile: &Profile,
) -> (Option<String>, Option<String>) {
    let first = |names: &[&str], of_profile: &Option<String>| {
        let values = names.iter().filter_map(|name| variables(name));
        let mut values = values.chain(of_profile.clone());
        values.find(|value| !value.is_empty())
    };
    let endpoints = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];
    let regions = ["AWS_REGION", "AWS_DEFAULT_REGION"];
    (
        first(&endpoints, &profile.endpoint),
        first(&regions, &profile.region),
    )
}

/// A builder with the variables of its store.
fn configured<B: Default, K: FromStr>(
    set: &Variables,
    begin: &str,
    with: impl Fn(B, K, String) -> B,
) -> B {
    // An empty one is none, as for other programs.
    let is_set = |(name, value): &(&String, &String)| name.starts_with(begin) && !value.is_empty();
    let of_store = set.iter().filter(is_set);
    of_store.fold(B::default(), |builder, (name, value)| {
        match name.to_ascii_lowercase().parse() {
            Ok(key) => with(builder, key, value.clone()),
            Err(_) => builder,
        }
    })
}

fn both<S: ObjectStore + PaginatedListStore>(
    store: S,
    signed: &Signed,
    source: KeySource,
) -> Connection {
    let store = Arc::new(store);
    let source = signed.has_source().then_some(source);
    (store.clone(), Some(store), signed.to_string(), source)
}

/// Attempts are counted in one place: by the object that is read.
fn no_retries() -> RetryConfig {
    RetryConfig {
        max_retries: 0,
        ..RetryConfig::default()
    }
}

/// All else is the [connector's](Connector).
fn plain(is_allowed: bool) -> ClientOptions {
    ClientOptions::new().with_allow_http(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_that_is_no_address_is_refused_and_an_empty_one_is_none() {
        let connect = |name: &str, value: &str| {
            let set = Variables::from([(name.to_owned(), value.to_owned())]);
            let address = Address::of("s3://b/k").unwrap();
            address.connect(&Limits::default(), &set).map(drop)
        };
        for name in ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"] {
            assert!(connect(name, "").is_ok(), "{name}");
            assert!(connect(name, "http://127.0.0.1:1").is_ok(), "{name}");
            for wrong in [
                "nonsense",
                "/a",
                "http://",
                "http://[",
                "://",
                "127.0.0.1:80",
                "a: b",
                "x:y z",
                "http://a\tb",
                "ftp://x",
            ] {
                let refused = connect(name, wrong).unwrap_err().to_string();
                assert!(
                    refused.starts_with("s3://b/k: "),
                    "{name}={wrong}: {refused}"
                );
                assert!(refused.contains(&format!("{wrong:?}")), "{name}: {refused}");
            }
        }
    }

    #[test]
    fn a_bucket_that_no_address_can_have_is_refused_by_name() {
        for scheme in ["s3", "gs", "az"] {
            for wrong in [
                "my bucket",
                "b?x",
                "b#x",
                "a%zz",
                "b\u{fc}",
                "a\tb",
                "a[b",
                "a\\b",
            ] {
                for url in [
                    format!("{scheme}://{wrong}/k"),
                    format!("{scheme}://{wrong}"),
                ] {
                    let refused = Address::of_folder(&url).unwrap_err().to_string();
                    let bucket = format!("bucket {wrong:?}: must have letters");
                    assert!(
                        refused.contains(&bucket) && refused.contains("-._~"),
                        "{refused}"
                    );
                }
            }
            for right in ["$web", "b.example", "B_1", "example.com:b"] {
                assert!(
                    Address::of(&format!("{scheme}://{right}/k")).is_ok(),
                    "{right}"
                );
            }
        }
    }

    #[test]
    fn an_address_is_a_base_and_a_key_as_its_scheme_writes_it() {
        let of = |url| {
            let address = Address::of(url).unwrap();
            (address.base, address.key.to_string())
        };
        let is = |base: &str, key: &str| (base.to_owned(), key.to_owned());
        assert_eq!(of("s3://b/a/c d%20"), is("s3://b", "a/c d%20"));
        assert_eq!(of("gs://b/k"), is("gs://b", "k"));
        for url in [
            "https://h:1/a%20b//c/../%ff",
            "https://h:1/a b?v=1&w=%2F",
            "https://h:1?v",
            "https://h:1/a/",
        ] {
            assert_eq!(of(url), is("https://h:1", ""), "{url}");
        }
    }

    #[test]
    fn what_is_no_address_of_an_object_is_refused_by_name() {
        for url in [
            "",
            "s3",
            "s3:/b/k",
            "ftp://b/k",
            "s3://",
            "s3://b",
            "s3://b/",
            "s3://b/k/",
            "s3:///k",
            "s3://b//k",
            "s3://b//",
            "s3://b/a//c",
            "s3://b/../k",
            "s3://b/a/./c",
            "s3://b/a\nb",
            "http://h",
            "http://h/",
            "http://h/a#b",
            "http://h/a\tb",
            "http://h:x/a",
            "http://?v",
        ] {
            let error = Address::of(url).unwrap_err().to_string();
            assert!(error.starts_with(&remote::shown(url)), "{url}: {error}");
        }
        assert!(
            Address::of_folder("s3://b")
                .unwrap()
                .key
                .as_ref()
                .is_empty()
        );
    }
}
