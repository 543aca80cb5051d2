//! Ports for programs that are told one before they listen, and do not tell the one that they get for port 0.
//!
//! One that was bound to and let go may be another's before its program listens: the kernel gives it to the next
//! `bind` to port 0, of which tests make many. So they come from below 32768, of which the kernel gives none away by
//! itself; no two of a process are the same, and processes begin far apart.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

const FIRST: u32 = 10_000;
const PORTS: u32 = 22_000;

/// An address of this machine without a listener, which no other test has.
pub(crate) fn address() -> SocketAddr {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    // A prime: the processes of one run have numbers side by side.
    let begin = std::process::id().wrapping_mul(7919);
    loop {
        let number = begin.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(FIRST + number % PORTS).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}
