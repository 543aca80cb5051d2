//! As much of HTTP/1.1 (RFC 9112) as a scrape needs: the request line, and the end of the headers.
//!
//! Used by the [metrics](super), behind the [server](super::super::clients) that reads requests and sends
//! answers. It closes after each answer, and does not read bodies.
//!
//! ```text
//! blank line --> GET /metrics 200, GET / 200, other paths 404, other methods 405      too long: 431
//!                                 no page: 503
//! ```

use std::sync::Arc;

use crate::daemon::clients::connection::Answer;

/// Prometheus sends 300 bytes; a bearer token may be some thousands. A longer request is no scrape.
pub(super) const REQUEST_BYTES_MAX: usize = 8 << 10;

/// The OpenMetrics text format.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// For people who open the address in a browser.
const INDEX: &str = "<!doctype html><title>forerun</title>\
                     <p>The counters are at <a href=\"/metrics\">/metrics</a>.\n";

/// The body of the page.
pub(super) type Page = Arc<[u8]>;

/// Whether the headers have ended: with an empty line.
fn has_end(request: &[u8]) -> bool {
    request.windows(4).any(|four| four == b"\r\n\r\n")
        || request.windows(2).any(|two| two == b"\n\n")
}

/// The answer to a request as far as it came; none before its end.
pub(super) fn answer(request: &[u8], page: &mut dyn FnMut() -> Option<Page>) -> Option<Answer> {
    if has_end(request) {
        Some(answer_to(request, page))
    } else if request.len() > REQUEST_BYTES_MAX {
        let status = "431 Request Header Fields Too Large";
        Some(text(status, "the request is too long\n"))
    } else {
        None
    }
}

fn answer_to(request: &[u8], page: &mut dyn FnMut() -> Option<Page>) -> Answer {
    let line = request.split(|byte| *byte == b'\n').next().unwrap_or(&[]);
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_ascii_whitespace();
    let (method, target) = (words.next(), words.next().unwrap_or_default());
    let is_http = words.next().is_some_and(|word| word.starts_with("HTTP/1."));
    // A query is allowed and ignored, as Prometheus' `params` may add one.
    let path = target.split('?').next().unwrap_or_default();
    let mut answer = match (method, path) {
        _ if !is_http => text("400 Bad Request", "not a request of HTTP/1\n"),
        (Some("GET" | "HEAD"), "/metrics") => match page() {
            Some(page) => whole("200 OK", OPEN_METRICS, page),
            None => text("503 Service Unavailable", "the daemon does not answer\n"),
        },
        (Some("GET" | "HEAD"), "/") => whole(
            "200 OK",
            "text/html; charset=utf-8",
            INDEX.as_bytes().into(),
        ),
        (Some("GET" | "HEAD"), _) => text("404 Not Found", "the counters are at /metrics\n"),
        _ => text(
            "405 Method Not Allowed",
            "the counters can be read: GET /metrics\n",
        ),
    };
    if method == Some("HEAD") {
        answer.body = [].into();
    }
    answer
}

fn text(status: &str, body: &str) -> Answer {
    whole(status, "text/plain; charset=utf-8", body.as_bytes().into())
}

fn whole(status: &str, content_type: &str, body: Page) -> Answer {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    Answer {
        head: head.into_bytes(),
        body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(request: &str) -> String {
        let answer = answer_to(request.as_bytes(), &mut || Some(b"page"[..].into()));
        let bytes = [&answer.head[..], &answer.body].concat();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn each_request_has_its_answer() {
        for (request, begin, end) in [
            ("GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 200", "page"),
            ("GET /metrics?a=b HTTP/1.0\r\n\r\n", "HTTP/1.1 200", "page"),
            (
                "HEAD /metrics HTTP/1.1\r\n\r\n",
                "HTTP/1.1 200",
                "close\r\n\r\n",
            ),
            ("GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 200", "</a>.\n"),
            ("GET /x HTTP/1.1\r\n\r\n", "HTTP/1.1 404", "/metrics\n"),
            (
                "POST /metrics HTTP/1.1\r\n\r\n",
                "HTTP/1.1 405",
                "/metrics\n",
            ),
            ("hello\n\n", "HTTP/1.1 400", "HTTP/1\n"),
            ("\n\n", "HTTP/1.1 400", "HTTP/1\n"),
        ] {
            let answer = answered(request);
            assert!(answer.starts_with(begin), "{request}: {answer}");
            assert!(answer.ends_with(end), "{request}: {answer}");
        }
    }

    #[test]
    fn a_daemon_that_does_not_answer_has_no_empty_page() {
        let answer = answer_to(b"GET /metrics HTTP/1.1\r\n\r\n", &mut || None);
        assert!(answer.head.starts_with(b"HTTP/1.1 503"));
        assert_eq!(&*answer.body, b"the daemon does not answer\n");
    }

    #[test]
    fn headers_end_with_an_empty_line() {
        assert!(has_end(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert!(has_end(b"GET / HTTP/1.1\n\n"));
        assert!(!has_end(b"GET / HTTP/1.1\r\nHost: a\r\n"));
        assert!(!has_end(b""));
    }
}
