//! Objects of HTTP servers, opened by their first byte.
//!
//! Problem: any server speaks HTTP. One may know no HEAD, answer a range with the whole object, or tell the end of a
//! range as the size of the object; and its addresses may have parts that a client of stores changes (`a//b`, `?v=1`).
//!
//! Mechanism: an object is opened by a range, as it is read, so a server that cannot be read is refused at once.
//! Each request goes to the address as it was given. Of an answer only the headers that are used are kept, and a range
//! that begins where it should may have another length: bytes behind it are left, others asked for again.
//!
//! ```text
//! GET, bytes 0-0    206, 0-0/1234, ETag "a1"    1,234 bytes in version "a1"
//!                   206, 0-0/1                  one byte, if there is no byte 1
//!                   416, or 200                 empty, if the whole object has no byte
//! ```

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use object_store::client::{HttpError, HttpErrorKind, HttpRequest, HttpResponse};
use object_store::path::Path;
use object_store::{Error, Extensions, GetOptions, GetRange, ObjectMeta};
use reqwest::Url;
use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderValue,
};

use crate::attempts::may_pass;
use crate::connector::Refused;
use crate::failure::status_of;
use crate::store::Connected;

/// The address of a request, for the connection: a client of stores would write it anew.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WebAddress(Url);

impl WebAddress {
    /// Of an address that names an object.
    pub(crate) fn of(url: &str) -> Result<Self, String> {
        if url.contains(char::is_control) {
            return Err("has a control character".to_owned());
        }
        if url.contains('#') {
            return Err("has a fragment, which is no part of an object's name".to_owned());
        }
        let url = Url::parse(url).map_err(|error| error.to_string())?;
        Ok(Self(url))
    }

    /// Whether it names more than a server.
    pub(crate) fn names_object(&self) -> bool {
        self.0.path() != "/" || self.0.query().is_some()
    }

    /// The options of a request to it.
    pub(crate) fn options(&self) -> GetOptions {
        let mut extensions = Extensions::new();
        extensions.insert(self.clone());
        GetOptions {
            extensions,
            ..GetOptions::default()
        }
    }

    /// Puts this address in a request, with the user and the password that stand in it.
    pub(crate) fn put(
        &self,
        client: &reqwest::Client,
        request: &mut HttpRequest,
    ) -> Result<(), HttpError> {
        let refused = |why: String| HttpError::new(HttpErrorKind::Decode, Refused(why));
        let built = client.get(self.0.clone()).build();
        let built = built.map_err(|error| refused(error.without_url().to_string()))?;
        match built.url().as_str().parse() {
            Ok(uri) => *request.uri_mut() = uri,
            Err(_) => return Err(refused("the address is none of HTTP".to_owned())),
        }
        let headers = request.headers_mut();
        headers.extend(built.headers().clone());
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        Ok(())
    }
}

/// An answer to a request for this range, without headers that are not used: a client of stores may refuse some. A
/// range in chunks has no length.
pub(crate) fn bare(mut answer: HttpResponse, asked: Option<&HeaderValue>) -> HttpResponse {
    let all = mem::replace(answer.headers_mut(), HeaderMap::new());
    let headers = answer.headers_mut();
    for name in [ETAG, CONTENT_RANGE, CONTENT_LENGTH] {
        if let Some(value) = all.get(&name) {
            headers.insert(name, value.clone());
        }
    }
    if let (Some(told), Some(asked)) = (headers.get(CONTENT_RANGE), asked) {
        let told = as_asked(told, asked).unwrap_or_else(|| told.clone());
        headers.insert(CONTENT_RANGE, told);
        let length = headers.entry(CONTENT_LENGTH);
        length.or_insert(HeaderValue::from_static("0"));
    }
    answer
}

/// A `Content-Range` that begins where it should, with the end that was asked for: the body tells how far it comes.
fn as_asked(told: &HeaderValue, asked: &HeaderValue) -> Option<HeaderValue> {
    let told = told.to_str().ok()?.trim();
    let (range, bytes) = told.strip_prefix("bytes ")?.split_once('/')?;
    let (begin, _) = range.split_once('-')?;
    let (from, to) = asked
        .to_str()
        .ok()?
        .strip_prefix("bytes=")?
        .split_once('-')?;
    let (to, end): (u64, u64) = (to.parse().ok()?, bytes.parse().ok()?);
    let last = to.min(end.checked_sub(1)?);
    let is_there = begin == from && from.parse::<u64>().ok()? <= last;
    let range = is_there.then(|| format!("bytes {from}-{last}/{bytes}"));
    HeaderValue::from_str(&range?).ok()
}

fn refused(why: &str) -> Error {
    Error::Generic {
        store: "HTTP",
        source: why.into(),
    }
}

/// Size and version of the object that is there now. See the [module](self).
pub(crate) async fn opened(with: Arc<Connected>, web: WebAddress) -> Result<ObjectMeta, Error> {
    let get = |range: Option<Range<u64>>| {
        let options = GetOptions {
            range: range.map(GetRange::Bounded),
            ..web.options()
        };
        let with = with.clone();
        async move { with.objects.get_opts(&Path::default(), options).await }
    };
    match get(Some(0..1)).await {
        // Some servers tell the end of the range that was asked for as the end of the object.
        Ok(first) if first.meta.size == 1 => match get(Some(1..2)).await {
            Err(error) if is_without_range(&error) => Ok(first.meta),
            Err(error) if status_of(&error).is_some() || may_pass(&error) => Err(error),
            _ => {
                let why = "Content-Range says 1 byte in all, and the object has more";
                Err(refused(why))
            }
        },
        Ok(first) => Ok(first.meta),
        Err(error) if is_without_range(&error) => match get(None).await {
            Ok(whole) if whole.meta.size == 0 => Ok(whole.meta),
            Ok(_) => Err(refused("the server does not answer ranges")),
            Err(error) => Err(error),
        },
        Err(error) => Err(error),
    }
}

/// Whether there is no such range, or the answer is no range: an empty object has no first byte.
fn is_without_range(error: &Error) -> bool {
    matches!(error, Error::NotSupported { .. }) || status_of(error) == Some(416)
}
