//! The counters of a mount for Prometheus, over HTTP.
//!
//! A page that any program may ask for must not cost the mount its memory, threads or descriptors.
//! So one thread serves a bounded number of connections ([`server`]), each with a bounded request
//! and a bounded time ([`connection`]), and makes the page ([`page`]) at most ten times a second.
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
mod connection;
mod family;
pub mod page;
mod server;

use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use self::server::Server;
use super::report::Watched;
use crate::failure::Failure;

/// How long a page is served again. Prometheus asks every few seconds; a client that asks in a loop
/// must not keep the engine's lock busy.
const PAGE_AGE_MAX: Duration = Duration::from_millis(100);

/// The stack of the thread: a page is text on the heap.
const STACK_BYTES: usize = 256 << 10;

/// The metrics of a running mount. They end with the process.
#[derive(Debug)]
pub struct Metrics {
    _address: SocketAddr,
}

impl Metrics {
    /// Serves them at this address.
    ///
    /// # Errors
    /// The address is taken, or not this machine's.
    pub fn start(address: SocketAddr, watched: Arc<Watched>) -> Result<Self, Failure> {
        let refused = |e: &dyn fmt::Display| Failure::Usage(format!("--metrics {address}: {e}"));
        if let Some(warning) = address::warning(address) {
            tracing::warn!("{warning}");
        }
        let listener = TcpListener::bind(address).map_err(|e| refused(&e))?;
        let mut recent: Option<(Instant, Arc<[u8]>)> = None;
        let page = move || {
            let now = Instant::now();
            if let Some((made, page)) = &recent
                && now.duration_since(*made) < PAGE_AGE_MAX
            {
                return page.clone();
            }
            let page: Arc<[u8]> = page::of(&watched).into_bytes().into();
            recent = Some((now, page.clone()));
            page
        };
        let mut server = Server::new(listener, page).map_err(|e| refused(&e))?;
        let thread = thread::Builder::new()
            .name("forerun-metrics".into())
            .stack_size(STACK_BYTES)
            .spawn(move || server.run());
        thread.map_err(|e| refused(&e))?;
        Ok(Self { _address: address })
    }
}
