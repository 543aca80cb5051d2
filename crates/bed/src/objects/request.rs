//! Requests of HTTP/1.1, as far as reading S3 needs them.
//!
//! Called by the [store](super) for each; parsed by `httparse`. A body, if one is announced, is
//! refused with the request, since nothing can be written here.

use percent_encoding::percent_decode_str;

/// The longest head that is read.
pub const HEAD_MAX: usize = 64 << 10;

/// The most headers: the signed requests of SDKs have some twenty.
const HEADERS_MAX: usize = 96;

/// Bytes that are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Range {
    /// From the first on, to the last or the end.
    From(u64, Option<u64>),
    /// So many at the end.
    Last(u64),
}

/// A request.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Request {
    /// Whether the answer has a body.
    pub is_head: bool,
    /// Whether it reads: GET or HEAD.
    pub is_reading: bool,
    /// The path, decoded.
    pub path: String,
    /// Names and values, decoded.
    pub query: Vec<(String, String)>,
    /// `Range`, if it is one range of bytes; others are ignored, as RFC 9110 permits.
    pub range: Option<Range>,
    /// `If-Match`.
    pub if_match: Option<String>,
    /// `If-None-Match`.
    pub if_none_match: Option<String>,
}

/// A request that is none, or has a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

impl Request {
    /// The first request of these bytes and its length; nothing while its end is missing.
    ///
    /// # Errors
    /// It is no request, or a reading one with a body.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut parsed = httparse::Request::new(&mut headers);
        let status = parsed.parse(bytes).map_err(|_| Malformed)?;
        let httparse::Status::Complete(length) = status else {
            return Ok(None);
        };
        let method = parsed.method.unwrap_or_default();
        let target = parsed.path.unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut request = Self {
            is_head: method == "HEAD",
            is_reading: matches!(method, "GET" | "HEAD"),
            path: decoded(path).ok_or(Malformed)?,
            ..Self::default()
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = value.replace('+', " ");
            let pair = decoded(name).zip(decoded(&value)).ok_or(Malformed)?;
            request.query.push(pair);
        }
        for header in parsed.headers.iter() {
            let value = std::str::from_utf8(header.value).map_err(|_| Malformed)?;
            match header.name.to_ascii_lowercase().as_str() {
                "range" => request.range = range(value),
                "if-match" => request.if_match = Some(value.to_owned()),
                "if-none-match" => request.if_none_match = Some(value.to_owned()),
                "content-length" if request.is_reading && value.trim() != "0" => {
                    return Err(Malformed);
                }
                "transfer-encoding" if request.is_reading => return Err(Malformed),
                _ => {}
            }
        }
        Ok(Some((request, length)))
    }

    /// The value of this name in the query.
    #[must_use]
    pub fn asked(&self, name: &str) -> Option<&str> {
        let pair = self.query.iter().find(|(known, _)| known == name);
        pair.map(|(_, value)| value.as_str())
    }
}

fn decoded(text: &str) -> Option<String> {
    let decoded = percent_decode_str(text).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

fn range(text: &str) -> Option<Range> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    if first.is_empty() {
        return Some(Range::Last(last.parse().ok()?));
    }
    let first = first.parse().ok()?;
    let last = match last {
        "" => None,
        last => Some(last.parse().ok().filter(|last| *last >= first)?),
    };
    Some(Range::From(first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Request {
        Request::parse(text.as_bytes()).unwrap().unwrap().0
    }

    #[test]
    fn a_signed_ranged_request_is_read_and_its_length_is_known() {
        let text = "GET /bed/a%20b/c?list-type=2&prefix=x%2Fy HTTP/1.1\r\nHost: x\r\n\
                    Authorization: AWS4-HMAC-SHA256 x\r\nRange: bytes=5-9\r\nIf-Match: \"v\"\r\n\r\n";
        let (request, length) = Request::parse(text.as_bytes()).unwrap().unwrap();
        assert_eq!((request.path.as_str(), length), ("/bed/a b/c", text.len()));
        assert_eq!(request.range, Some(Range::From(5, Some(9))));
        assert_eq!(request.if_match.as_deref(), Some("\"v\""));
        assert_eq!(
            (request.asked("prefix"), request.asked("none")),
            (Some("x/y"), None)
        );
        assert_eq!(Request::parse(&text.as_bytes()[..40]), Ok(None));
    }

    #[test]
    fn ranges_of_all_three_forms_are_read_and_others_ignored() {
        let of = |value: &str| parsed(&format!("GET / HTTP/1.1\r\nRange: {value}\r\n\r\n")).range;
        assert_eq!(of("bytes=5-"), Some(Range::From(5, None)));
        assert_eq!(of("bytes=-5"), Some(Range::Last(5)));
        for ignored in [
            "bytes=9-5",
            "bytes=a-b",
            "bytes=0-1,3-4",
            "lines=0-1",
            "bytes=-",
        ] {
            assert_eq!(of(ignored), None, "{ignored}");
        }
    }

    #[test]
    fn a_body_and_bytes_that_are_no_request_are_refused() {
        for wrong in [
            "GET / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
            "\0\0\r\n\r\n",
            "GET\r\n\r\n",
        ] {
            assert_eq!(
                Request::parse(wrong.as_bytes()),
                Err(Malformed),
                "{wrong:?}"
            );
        }
    }
}
