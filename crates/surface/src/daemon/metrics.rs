//! The counters of a daemon for Prometheus, over HTTP.
//!
//! A page that any program may ask for must not cost the daemon its memory, threads or descriptors.
//! So one thread serves a bounded number of connections ([`clients`](super::clients)), each with a bounded request
//! and a bounded time, and has the page made at most ten times a second. Families that mounts and watches share are in
//! [`page`].
//!
//! ```text
//! forerun-metrics: poll --> accept --> request <= 8 KiB, 5 s --> page --> answer, close
//!                             |
//!                             +-- 33rd connection: the one that is silent longest is closed
//! ```
//!
//! Loopback unless the user names another address ([`address`]), which is worth a warning: the page
//! has no password. Names, units and meanings stand in `docs/METRICS.md`.

pub mod address;
pub mod family;
mod http;
pub mod page;

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use self::http::Page;
use super::clients::{Asked, Protocol, Server};
use crate::failure::Failure;

/// How long a page is served again. Prometheus asks every few seconds; a client that asks in a loop
/// must not keep the engine's lock busy.
const PAGE_AGE_MAX: Duration = Duration::from_millis(100);

/// The stack of the thread: a page is text on the heap.
const STACK_BYTES: usize = 256 << 10;

/// The metrics of a running daemon. They end with the process.
#[derive(Debug)]
pub struct Metrics {
    _address: SocketAddr,
}

impl Metrics {
    /// Serves the text that is made by `of`, at this address; where that makes none, the daemon does not answer.
    ///
    /// # Errors
    /// The address is taken, or not this machine's.
    pub fn start(
        address: SocketAddr,
        mut of: impl FnMut() -> Option<String> + Send + 'static,
    ) -> Result<Self, Failure> {
        let refused = |e: &dyn fmt::Display| Failure::Usage(format!("--metrics {address}: {e}"));
        if let Some(warning) = address::warning(address) {
            tracing::warn!("{warning}");
        }
        let listener = TcpListener::bind(address).map_err(|e| refused(&e))?;
        listener.set_nonblocking(true).map_err(|e| refused(&e))?;
        let mut recent: Option<(Instant, Arc<[u8]>)> = None;
        let page = move || {
            let now = Instant::now();
            if let Some((made, page)) = &recent
                && now.duration_since(*made) < PAGE_AGE_MAX
            {
                return Some(page.clone());
            }
            let page: Arc<[u8]> = of()?.into_bytes().into();
            recent = Some((now, page.clone()));
            Some(page)
        };
        let mut server = Server::new(Scrapes { listener, page });
        let thread = thread::Builder::new()
            .name("forerun-metrics".into())
            .stack_size(STACK_BYTES)
            .spawn(move || server.run());
        thread.map_err(|e| refused(&e))?;
        Ok(Self { _address: address })
    }
}

/// The questions of Prometheus.
struct Scrapes<F> {
    listener: TcpListener,
    page: F,
}

impl<F: FnMut() -> Option<Page>> Protocol for Scrapes<F> {
    type Stream = TcpStream;

    fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    fn accept(&self) -> io::Result<TcpStream> {
        self.listener.accept().map(|(stream, _)| stream)
    }

    fn asked(&mut self, request: &[u8], _: &TcpStream) -> Asked {
        http::answer(request, &mut self.page).map_or(Asked::Partly, Asked::Answered)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Shutdown, SocketAddr, TcpStream};

    use super::http::REQUEST_BYTES_MAX;
    use super::*;
    use crate::daemon::clients::CONNECTIONS_MAX;

    /// A server with a page of a given size, which runs as long as the tests.
    fn served(bytes: usize) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let page: Page = vec![b'x'; bytes].into();
        listener.set_nonblocking(true).unwrap();
        let page = move || Some(page.clone());
        let mut server = Server::new(Scrapes { listener, page });
        std::thread::spawn(move || server.run());
        address
    }

    fn get(address: SocketAddr) -> Vec<u8> {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    }

    #[test]
    fn more_idle_clients_than_places_keep_nobody_out() {
        let address = served(1000);
        let idle: Vec<_> = (0..4 * CONNECTIONS_MAX)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        assert!(get(address).ends_with(b"xxxx"));
        // All but the last ones were closed for it.
        let mut first = &idle[0];
        assert!(matches!(first.read(&mut [0]), Ok(0) | Err(_)));
    }

    #[test]
    fn a_request_without_end_is_refused_at_its_limit() {
        let address = served(1000);
        let mut stream = TcpStream::connect(address).unwrap();
        // The server closes in the middle of it: unread bytes may come back as an error.
        let _ = stream.write_all(&vec![b'a'; 2 * REQUEST_BYTES_MAX]);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431"));
        assert!(get(address).ends_with(b"xxxx"));
    }

    #[test]
    fn a_request_in_pieces_and_an_answer_larger_than_the_sockets_buffers_arrive_whole() {
        let bytes = 8 << 20;
        let address = served(bytes);
        let mut stream = TcpStream::connect(address).unwrap();
        for byte in b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" {
            stream.write_all(&[*byte]).unwrap();
        }
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let head = format!("Content-Length: {bytes}\r\nConnection: close\r\n\r\n");
        let end = answer.len() - bytes;
        assert!(answer[..end].ends_with(head.as_bytes()));
    }
}
