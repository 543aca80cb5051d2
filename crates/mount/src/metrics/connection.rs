//! One connection to the metrics: a request within bounds, an answer, the end.
//!
//! Driven by the [server](super::server), which calls it when its socket is readable or writable;
//! it never waits. Its memory is bounded: a request of [`REQUEST_BYTES_MAX`], and one answer.
//!
//! ```text
//! reading --blank line--> answer chosen --> writing --all sent--> ended
//!    |  too long: 431        GET /metrics 200, GET / 200, other paths 404, other methods 405
//!    +--> ended: closed by the client, an error, or past its deadline
//! ```
//!
//! It understands as much of HTTP/1.1 (RFC 9112) as a scrape needs: the request line and the end of
//! the headers. It closes after each answer, and does not read bodies.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Instant;

/// Prometheus sends 300 bytes; a bearer token may be some thousands. A longer request is no scrape.
pub(super) const REQUEST_BYTES_MAX: usize = 8 << 10;

/// The OpenMetrics text format.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// For people who open the address in a browser.
const INDEX: &str = "<!doctype html><title>forerun</title>\
                     <p>The counters of this mount are at <a href=\"/metrics\">/metrics</a>.\n";

/// The body of the page.
pub(super) type Page = Arc<[u8]>;

/// See the [module](self).
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    /// Deadline at which it is closed in any state.
    pub(super) deadline: Instant,
    state: State,
}

enum State {
    Reading(Vec<u8>),
    Writing { answer: Answer, sent: usize },
    Ended,
}

/// The head, and the body unless only the head was asked for.
struct Answer {
    head: Vec<u8>,
    body: Page,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, deadline: Instant) -> Self {
        let state = State::Reading(Vec::new());
        Self {
            stream,
            deadline,
            state,
        }
    }

    /// Whether it waits for the client to ask; else it waits for it to take the answer.
    pub(super) fn is_reading(&self) -> bool {
        matches!(self.state, State::Reading(_))
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// Goes on as far as it can without waiting. `page` makes the page if that is asked for.
    pub(super) fn advance(&mut self, page: &mut dyn FnMut() -> Page) {
        let went = self.receive(page).and_then(|()| self.send());
        match went {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // A client that went away gets no answer.
            Err(_) => self.state = State::Ended,
            Ok(()) => {}
        }
    }

    fn receive(&mut self, page: &mut dyn FnMut() -> Page) -> io::Result<()> {
        let State::Reading(request) = &mut self.state else {
            return Ok(());
        };
        let mut piece = [0; 1024];
        loop {
            let count = match self.stream.read(&mut piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            request.extend_from_slice(&piece[..count]);
            let answer = if has_end(request) {
                answer(request, page)
            } else if request.len() > REQUEST_BYTES_MAX {
                text(
                    "431 Request Header Fields Too Large",
                    "the request is too long\n",
                )
            } else {
                continue;
            };
            self.state = State::Writing { answer, sent: 0 };
            return Ok(());
        }
    }

    fn send(&mut self) -> io::Result<()> {
        let State::Writing { answer, sent } = &mut self.state else {
            return Ok(());
        };
        loop {
            let rest = match answer.head.get(*sent..) {
                Some(rest) if !rest.is_empty() => rest,
                _ => &answer.body[*sent - answer.head.len()..],
            };
            if rest.is_empty() {
                break;
            }
            match self.stream.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => *sent += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.state = State::Ended;
        self.stream.shutdown(Shutdown::Write)
    }
}

/// Whether the headers have ended: with an empty line.
fn has_end(request: &[u8]) -> bool {
    request.windows(4).any(|four| four == b"\r\n\r\n")
        || request.windows(2).any(|two| two == b"\n\n")
}

fn answer(request: &[u8], page: &mut dyn FnMut() -> Page) -> Answer {
    let line = request.split(|byte| *byte == b'\n').next().unwrap_or(&[]);
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_ascii_whitespace();
    let (method, target) = (words.next(), words.next().unwrap_or_default());
    let is_http = words.next().is_some_and(|word| word.starts_with("HTTP/1."));
    // A query is allowed and ignored, as Prometheus' `params` may add one.
    let path = target.split('?').next().unwrap_or_default();
    let mut answer = match (method, path) {
        _ if !is_http => text("400 Bad Request", "not a request of HTTP/1\n"),
        (Some("GET" | "HEAD"), "/metrics") => whole("200 OK", OPEN_METRICS, page()),
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
        let answer = answer(request.as_bytes(), &mut || b"page"[..].into());
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
    fn headers_end_with_an_empty_line() {
        assert!(has_end(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert!(has_end(b"GET / HTTP/1.1\n\n"));
        assert!(!has_end(b"GET / HTTP/1.1\r\nHost: a\r\n"));
        assert!(!has_end(b""));
    }
}
