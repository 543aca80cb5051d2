//! Answers of a store: heads and bodies of S3's GET, HEAD and ListObjects.
//!
//! Called by the [store](super) once the first byte is due. Statuses and error codes are those of
//! S3: 206 with `Content-Range`, 416 for a range that begins behind the end, 412 and 304 for versions,
//! 404 `NoSuchKey` or `NoSuchBucket`, 405 for anything that writes.

use std::fmt::Write;

use super::catalogue::{Catalogue, NOISE_BYTES, Object, Place};
use super::request::{Range, Request};

/// The most names of one page, as S3 has it.
const PAGE_MAX: usize = 1000;

/// When everything was made: versions tell objects apart, times do not.
const MADE: &str = "Thu, 01 Jan 2026 00:00:00 GMT";
/// The same, in lists.
const MADE_IN_LISTS: &str = "2026-01-01T00:00:00.000Z";

/// A body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// Text.
    Text(String),
    /// So many bytes of the noise from a place on.
    Noise {
        /// The place.
        begin: u64,
        /// How many.
        bytes: u64,
    },
    /// So many bytes of the files from a place on.
    Stored {
        /// The place.
        begin: u64,
        /// How many.
        bytes: u64,
    },
}

impl Body {
    /// Its length.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::Noise { bytes, .. } | Self::Stored { bytes, .. } => *bytes,
        }
    }

    /// Bytes from an offset on: some of them, at least one before its end.
    #[must_use]
    pub fn piece<'a>(&'a self, catalogue: &'a Catalogue, offset: u64, most: u64) -> &'a [u8] {
        let most = most.min(self.bytes().saturating_sub(offset));
        match self {
            Self::Text(text) => &text.as_bytes()[offset as usize..][..most as usize],
            Self::Noise { begin, .. } => catalogue.noise(begin + offset, most),
            Self::Stored { begin, .. } => catalogue.stored(begin + offset, most),
        }
    }
}

/// An answer: the head with its empty line, and the body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// From the status to the empty line.
    pub head: String,
    /// The body, unless the request was HEAD.
    pub body: Body,
}

impl Answer {
    fn new(status: u16, headers: &str, body: Body) -> Self {
        let bytes = body.bytes();
        let head = format!(
            "HTTP/1.1 {status} {}\r\nServer: forerun-bed\r\nx-amz-request-id: 0\r\n{headers}\
             Content-Length: {bytes}\r\n\r\n",
            reason(status).1
        );
        Self { head, body }
    }

    /// A text.
    #[must_use]
    pub fn text(status: u16, kind: &str, text: String) -> Self {
        Self::new(
            status,
            &format!("Content-Type: {kind}\r\n"),
            Body::Text(text),
        )
    }

    /// All of the noise.
    #[must_use]
    pub fn noise() -> Self {
        let body = Body::Noise {
            begin: 0,
            bytes: NOISE_BYTES,
        };
        Self::new(200, "", body)
    }

    /// An error of S3.
    #[must_use]
    pub fn error(status: u16) -> Self {
        Self::error_of(status, reason(status).0)
    }

    fn error_of(status: u16, code: &str) -> Self {
        let (_, reason) = reason(status);
        let text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code>\
             <Message>{reason}</Message></Error>"
        );
        Self::text(status, "application/xml", text)
    }

    /// The answer to a request.
    #[must_use]
    pub fn to(request: &Request, catalogue: &Catalogue) -> Self {
        if !request.is_reading {
            return Self::error(405);
        }
        let path = request.path.strip_prefix('/').unwrap_or(&request.path);
        let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
        if bucket.is_empty() {
            return buckets(catalogue);
        }
        if bucket != catalogue.bucket {
            return Self::error_of(404, "NoSuchBucket");
        }
        if !key.is_empty() {
            let object = catalogue.find(key);
            return object.map_or_else(|| Self::error(404), |o| of_object(request, o));
        }
        if request.asked("location").is_some() {
            let text = "<LocationConstraint xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"/>";
            return Self::text(200, "application/xml", text.to_owned());
        }
        list(request, catalogue)
    }
}

/// S3's code, and the reason phrase.
const fn reason(status: u16) -> (&'static str, &'static str) {
    match status {
        200 => ("", "OK"),
        206 => ("", "Partial Content"),
        304 => ("NotModified", "Not Modified"),
        400 => ("InvalidRequest", "Bad Request"),
        404 => ("NoSuchKey", "Not Found"),
        405 => ("MethodNotAllowed", "Method Not Allowed"),
        412 => ("PreconditionFailed", "Precondition Failed"),
        416 => ("InvalidRange", "Range Not Satisfiable"),
        429 => ("TooManyRequests", "Too Many Requests"),
        _ => ("SlowDown", "Service Unavailable"),
    }
}

fn of_object(request: &Request, object: &Object) -> Answer {
    let matches = |wanted: &str| {
        let mut wanted = wanted.split(',').map(str::trim);
        wanted.any(|one| one == "*" || one.trim_matches('"') == object.version.trim_matches('"'))
    };
    if request
        .if_match
        .as_deref()
        .is_some_and(|wanted| !matches(wanted))
    {
        return Answer::error(412);
    }
    // A `String` takes whatever is written.
    let mut headers = format!(
        "ETag: {}\r\nLast-Modified: {MADE}\r\nAccept-Ranges: bytes\r\n\
         Content-Type: binary/octet-stream\r\n",
        object.version
    );
    if let Place::Noise(shift) = object.place {
        let _ = write!(headers, "x-amz-meta-shift: {shift}\r\n");
    }
    if request.if_none_match.as_deref().is_some_and(matches) {
        return Answer::new(304, &headers, Body::Text(String::new()));
    }
    let all = object.bytes;
    let (first, end) = match request.range {
        None => (0, all),
        Some(Range::From(first, last)) => (
            first,
            last.map_or(all, |last| last.saturating_add(1).min(all)),
        ),
        Some(Range::Last(bytes)) => (all.saturating_sub(bytes), all),
    };
    let status = if request.range.is_some() { 206 } else { 200 };
    if status == 206 {
        if first >= end {
            return Answer::error(416);
        }
        let _ = write!(
            headers,
            "Content-Range: bytes {first}-{}/{all}\r\n",
            end - 1
        );
    }
    let bytes = end - first;
    let body = match object.place {
        Place::Noise(shift) => Body::Noise {
            begin: shift + first,
            bytes,
        },
        Place::Files(begin) => Body::Stored {
            begin: begin + first,
            bytes,
        },
    };
    Answer::new(status, &headers, body)
}

fn buckets(catalogue: &Catalogue) -> Answer {
    let text = format!(
        "<ListAllMyBucketsResult><Owner><ID>bed</ID></Owner><Buckets><Bucket><Name>{}</Name>\
         <CreationDate>{MADE_IN_LISTS}</CreationDate></Bucket></Buckets></ListAllMyBucketsResult>",
        catalogue.bucket
    );
    Answer::text(200, "application/xml", text)
}

/// Text inside of XML.
fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

/// A page of names, by either version of ListObjects: the token of the next is the last name seen.
fn list(request: &Request, catalogue: &Catalogue) -> Answer {
    let is_second = request.asked("list-type") == Some("2");
    let asked = |name| request.asked(name).unwrap_or_default();
    let (prefix, delimiter) = (asked("prefix"), asked("delimiter"));
    let most = request.asked("max-keys").and_then(|most| most.parse().ok());
    let most = most.unwrap_or(PAGE_MAX).min(PAGE_MAX);
    let names = if is_second {
        ["continuation-token", "start-after"]
    } else {
        ["marker", "marker"]
    };
    let after = names.iter().find_map(|name| request.asked(name));
    let mut left = catalogue.after(after.unwrap_or_default(), prefix);
    let (mut contents, mut prefixes, mut count, mut last) = (String::new(), String::new(), 0, "");
    while let (Some(object), true) = (left.first(), count < most) {
        let rest = &object.key[prefix.len()..];
        let folder = rest.find(delimiter).filter(|_| !delimiter.is_empty());
        let seen = if let Some(at) = folder {
            let folder = &object.key[..prefix.len() + at + delimiter.len()];
            let name = escaped(folder);
            let _ = write!(
                prefixes,
                "<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>"
            );
            left.partition_point(|one| one.key.starts_with(folder))
        } else {
            let (key, version) = (escaped(&object.key), escaped(&object.version));
            let _ = write!(
                contents,
                "<Contents><Key>{key}</Key><LastModified>{MADE_IN_LISTS}</LastModified>\
                 <ETag>{version}</ETag><Size>{}</Size><StorageClass>STANDARD</StorageClass></Contents>",
                object.bytes
            );
            1
        };
        last = &left[seen - 1].key;
        left = &left[seen..];
        count += 1;
    }
    let more = !left.is_empty() && most > 0;
    let next = match (more, is_second) {
        (false, _) => String::new(),
        (true, true) => {
            let last = escaped(last);
            format!("<NextContinuationToken>{last}</NextContinuationToken>")
        }
        (true, false) => format!("<NextMarker>{}</NextMarker>", escaped(last)),
    };
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult \
         xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>{}</Name><Prefix>{}</Prefix>\
         <KeyCount>{count}</KeyCount><MaxKeys>{most}</MaxKeys><Delimiter>{}</Delimiter>\
         <IsTruncated>{more}</IsTruncated>{next}{contents}{prefixes}</ListBucketResult>",
        catalogue.bucket,
        escaped(prefix),
        escaped(delimiter)
    );
    Answer::text(200, "application/xml", text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::catalogue;

    fn catalogue() -> Catalogue {
        let groups = ["a=2500x1MB", "b=2x100B"].map(|text| catalogue::group(text).unwrap());
        Catalogue::new("bed", &groups, 7)
    }

    fn answer(path: &str, headers: &str) -> (Answer, String) {
        let text = format!("GET {path} HTTP/1.1\r\n{headers}\r\n");
        let (request, _) = Request::parse(text.as_bytes()).unwrap().unwrap();
        let catalogue = catalogue();
        let answer = Answer::to(&request, &catalogue);
        let body = answer.body.piece(&catalogue, 0, u64::MAX).to_vec();
        (answer, String::from_utf8(body).unwrap_or_default())
    }

    fn status(path: &str, headers: &str) -> u16 {
        answer(path, headers).0.head[9..12].parse().unwrap()
    }

    #[test]
    fn a_range_has_its_place_and_a_range_behind_the_end_is_416() {
        let (answer, _) = answer("/bed/b/000001", "Range: bytes=90-200\r\n");
        assert!(
            answer.head.contains("Content-Range: bytes 90-99/100\r\n"),
            "{}",
            answer.head
        );
        assert_eq!(answer.body.bytes(), 10);
        assert_eq!(status("/bed/b/000001", "Range: bytes=100-\r\n"), 416);
        assert_eq!(status("/bed/b/000001", "Range: bytes=-10\r\n"), 206);
        assert_eq!(status("/bed/b/000001", ""), 200);
    }

    #[test]
    fn versions_names_and_methods_have_the_statuses_of_s3() {
        let version = catalogue().find("b/000000").unwrap().version.clone();
        assert_eq!(
            status("/bed/b/000000", &format!("If-Match: {version}\r\n")),
            200
        );
        assert_eq!(
            status("/bed/b/000000", &format!("If-None-Match: {version}\r\n")),
            304
        );
        assert_eq!(status("/bed/b/000000", "If-Match: \"other\"\r\n"), 412);
        assert_eq!(status("/bed/b/000009", ""), 404);
        assert_eq!(status("/other/b/000000", ""), 404);
        for (path, code) in [
            ("/bed/c", "NoSuchKey"),
            ("/other/b/000000", "NoSuchBucket"),
            ("/other?list-type=2", "NoSuchBucket"),
        ] {
            let (_, body) = answer(path, "");
            assert!(body.contains(&format!("<Code>{code}</Code>")), "{body}");
        }
        let put = Request::parse(b"PUT /bed/x HTTP/1.1\r\n\r\n")
            .unwrap()
            .unwrap()
            .0;
        assert!(
            Answer::to(&put, &catalogue())
                .head
                .starts_with("HTTP/1.1 405")
        );
    }

    #[test]
    fn pages_of_a_list_have_every_name_once() {
        for version in ["list-type=2&continuation-token", "marker"] {
            let (mut names, mut after) = (0, String::new());
            loop {
                let (_, text) = answer(&format!("/bed?prefix=a/&{version}={after}"), "");
                names += text.matches("<Key>").count();
                let Some((_, last)) = text.rsplit_once("<Key>") else {
                    break;
                };
                after = last.split('<').next().unwrap().to_owned();
                if text.contains("<IsTruncated>false") {
                    break;
                }
            }
            assert_eq!(names, 2500);
        }
    }

    #[test]
    fn a_delimiter_makes_folders() {
        let (_, text) = answer("/bed?list-type=2&delimiter=/", "");
        assert!(text.contains("<Prefix>a/</Prefix>") && text.contains("<Prefix>b/</Prefix>"));
        assert!(
            text.contains("<KeyCount>2<") && !text.contains("<Key>"),
            "{text}"
        );
        let (_, text) = answer("/bed/?list-type=2&delimiter=/&max-keys=1", "");
        assert!(text.contains("<NextContinuationToken>a/002499<"), "{text}");
    }
}
