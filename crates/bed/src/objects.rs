//! `forerun-bed store`: an S3 server on loopback, behind a model of the network.
//!
//! Problem: programs that read object stores differ by how they wait for a network, and loopback
//! has none to wait for. A proxy with delays adds copies of its own and ends at 600 to 700 MB/s on
//! two processors.
//!
//! Mechanism: the objects are computed (a [`catalogue`] of names, sizes and one piece of noise), so
//! that a body costs one `send` from memory; a [`network`] decides when its bytes may leave. One
//! thread a connection:
//!
//! ```text
//! request ->  wait for the first byte  ->  head  ->  piece | wait | piece | wait | ...
//!             --first-byte, 30 ms                    share = min(--connection-rate, --rate / bodies)
//! ```
//!
//! Waits are for absolute moments, at real-time priority where that is given, and a body that was
//! late catches up, so rates hold however busy the machine is. A receiver that does not read leaves
//! its share to the others. One [`fault`] may go with an answer.
//!
//! Example: `forerun-bed store --objects large=1x1GB`, then
//! `curl http://127.0.0.1:PORT/bed/large/000000`. Connections cost nothing to make, signatures are
//! not checked, and nothing can be written.

pub mod answer;
pub mod catalogue;
pub mod command;
pub mod fault;
pub mod network;
pub mod request;

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use forerun_core::Nanos;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::sockopt;
use serde::Serialize;

use crate::clock::{self, Bell, Priority};
use crate::failure::Failure;
use answer::{Answer, Body};
use catalogue::Catalogue;
use fault::{Fault, Faults};
use network::{Flow, Network};
use request::{HEAD_MAX, Request};

/// Bytes that leave at once: 1.6 ms at 80 MB/s, so that a thread wakes 3,000 times a second at
/// 400 MB/s in all, a tenth of a processor. Larger pieces would show in the time of small bodies.
const PIECE: u64 = 128 << 10;
/// Until connections are taken again after descriptors or memory ran out.
const PAUSE: Duration = Duration::from_millis(10);

/// The longest wait for a piece. Its moment comes sooner when other bodies end meanwhile.
const WAIT_MAX: u64 = 4_000_000;

/// A slow body has this share of a connection's rate.
const SLOW: u64 = 16;

/// The properties of a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// From a request to the first byte of its answer.
    pub first_byte: Nanos,
    /// Of one connection, bytes a second.
    pub connection_rate: u64,
    /// Of all together, bytes a second.
    pub rate: u64,
    /// One in so many answers goes wrong.
    pub faults: Faults,
}

/// Counters of a store, as `GET /-/counters` answers them.
#[derive(Default, Debug)]
struct Meter {
    requests: AtomicU64,
    body_bytes: AtomicU64,
    faults: AtomicU64,
    connections: AtomicU64,
    in_flight: AtomicU64,
    in_flight_most: AtomicU64,
    late_ns: AtomicU64,
}

#[derive(Serialize)]
struct Counters {
    requests: u64,
    body_bytes: u64,
    faults: u64,
    connections: u64,
    in_flight_most: u64,
    late_ns: u64,
}

impl Meter {
    /// All of them; the most requests in flight count anew from those of now on.
    fn counters(&self) -> Counters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            requests: read(&self.requests),
            body_bytes: read(&self.body_bytes),
            faults: read(&self.faults),
            connections: read(&self.connections),
            in_flight_most: self
                .in_flight_most
                .swap(read(&self.in_flight), Ordering::Relaxed),
            late_ns: read(&self.late_ns),
        }
    }
}

/// A store that serves.
#[derive(Debug)]
struct Store {
    catalogue: Catalogue,
    options: Options,
    network: Mutex<Network>,
    meter: Meter,
}

/// Serves until the process ends. The first line of `out` is the address.
///
/// # Errors
/// The port is taken; no more threads or descriptors.
pub fn run(
    port: u16,
    catalogue: Catalogue,
    options: Options,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let listener = TcpListener::bind(("127.0.0.1", port));
    let listener = listener
        .map_err(|error| Failure::Run(format!("cannot listen on 127.0.0.1:{port}: {error}")))?;
    let served = serve(&listener, catalogue, options, out);
    served.map_err(|error| Failure::Run(format!("the store ended: {error}")))
}

fn serve(
    listener: &TcpListener,
    catalogue: Catalogue,
    options: Options,
    out: &mut dyn Write,
) -> io::Result<()> {
    // Threads started later inherit the priority; without it times are as exact as the load permits.
    let _ = clock::be_punctual(Priority::Disk);
    let store = Arc::new(Store {
        network: Mutex::new(Network::new(options.connection_rate, options.rate)),
        catalogue,
        options,
        meter: Meter::default(),
    });
    writeln!(out, "http://{}", listener.local_addr()?)?;
    out.flush()?;
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if passes(&error) => {
                thread::sleep(PAUSE);
                continue;
            }
            Err(error) => return Err(error),
        };
        let store = store.clone();
        store.meter.connections.fetch_add(1, Ordering::Relaxed);
        // Without a thread the connection is closed, which its client sees.
        let _ = thread::Builder::new().spawn(move || {
            // A client that goes away ends its connection and nothing else.
            let _ = store.connection(stream);
        });
    }
}

/// Whether connections can be taken again once others have ended.
fn passes(error: &io::Error) -> bool {
    let passing = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOBUFS,
        Errno::NOMEM,
        Errno::CONNABORTED,
        Errno::INTR,
    ];
    Errno::from_io_error(error).is_some_and(|errno| passing.contains(&errno))
}

impl Store {
    fn network(&self) -> MutexGuard<'_, Network> {
        self.network.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connection(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut unread = Vec::new();
        while let Some(request) = next_request(&mut stream, &mut unread)? {
            let arrived = clock::now();
            let is_kept = match self.own(&request) {
                Some(answer) => self.send_all(&mut stream, &request, &answer).map(|()| true),
                None => self.modelled(&mut stream, &request, arrived),
            };
            // The body of another request is not read.
            if !is_kept? || !request.is_reading {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Answers about the store itself, for measurements: outside of the model.
    fn own(&self, request: &Request) -> Option<Answer> {
        match request.path.as_str() {
            "/-/counters" => {
                let text = serde_json::to_string(&self.meter.counters()).unwrap_or_default();
                Some(Answer::text(200, "application/json", text))
            }
            "/-/noise" => Some(Answer::noise()),
            _ => None,
        }
    }

    fn send_all(
        &self,
        stream: &mut TcpStream,
        request: &Request,
        answer: &Answer,
    ) -> io::Result<()> {
        send(stream, answer.head.as_bytes())?;
        if request.is_head {
            return Ok(());
        }
        let mut sent = 0;
        while sent < answer.body.bytes() {
            let piece = answer.body.piece(&self.catalogue, sent, u64::MAX);
            send(stream, piece)?;
            sent += piece.len() as u64;
        }
        Ok(())
    }

    /// Whether the connection is kept.
    fn modelled(
        &self,
        stream: &mut TcpStream,
        request: &Request,
        arrived: Nanos,
    ) -> io::Result<bool> {
        let meter = &self.meter;
        let number = meter.requests.fetch_add(1, Ordering::Relaxed);
        let flying = meter.in_flight.fetch_add(1, Ordering::Relaxed) + 1;
        meter.in_flight_most.fetch_max(flying, Ordering::Relaxed);
        let ended = self.answer(stream, request, arrived, number);
        meter.in_flight.fetch_sub(1, Ordering::Relaxed);
        ended
    }

    fn answer(
        &self,
        stream: &mut TcpStream,
        request: &Request,
        arrived: Nanos,
        number: u64,
    ) -> io::Result<bool> {
        let fault = self.options.faults.of(number);
        let first = Nanos(arrived.0.saturating_add(self.options.first_byte.0));
        wait_until(first);
        let late = clock::now().0.saturating_sub(first.0);
        self.meter.late_ns.fetch_add(late, Ordering::Relaxed);
        let answer = match fault {
            Some(Fault::Status(status)) => Answer::error(status),
            _ => Answer::to(request, &self.catalogue),
        };
        let all = if request.is_head {
            0
        } else {
            answer.body.bytes()
        };
        // No body is slow or cut where there is none.
        let fault = fault.filter(|fault| all > 0 || !fault.is_of_body());
        if fault.is_some() {
            self.meter.faults.fetch_add(1, Ordering::Relaxed);
        }
        if fault == Some(Fault::Reset) {
            // Without lingering, the end of a connection is a reset.
            sockopt::set_socket_linger(&*stream, Some(Duration::ZERO))?;
            return Ok(false);
        }
        send(stream, answer.head.as_bytes())?;
        match fault {
            Some(Fault::Slow) => self.slow(stream, &answer.body)?,
            Some(Fault::Truncated) => self.paced(stream, &answer.body, all / 2)?,
            _ => self.paced(stream, &answer.body, all)?,
        }
        Ok(!matches!(fault, Some(Fault::Truncated)))
    }

    /// Sends bytes as the network releases them.
    fn paced(&self, stream: &mut TcpStream, body: &Body, end: u64) -> io::Result<()> {
        let mut sent = 0;
        while sent < end {
            let flow = self.network().join(clock::now(), end - sent);
            let ended = self.flow(stream, body, &flow, &mut sent, end);
            self.network().leave(clock::now(), &flow);
            ended?;
            if sent < end {
                // The receiver is behind: its share is the others' until it reads again.
                await_writable(stream)?;
            }
        }
        Ok(())
    }

    /// Sends bytes of one flow until it ends, or the receiver is full.
    fn flow(
        &self,
        stream: &mut TcpStream,
        body: &Body,
        flow: &Flow,
        sent: &mut u64,
        end: u64,
    ) -> io::Result<()> {
        let begin = *sent;
        loop {
            let now = clock::now();
            let wanted = (*sent - begin + PIECE).min(end - begin);
            let (released, when) = {
                let mut network = self.network();
                let released = network.released(now, flow);
                (released, network.when(now, flow, wanted))
            };
            if released < wanted {
                wait_until(Nanos(when.0.min(now.0 + WAIT_MAX)));
                continue;
            }
            while *sent - begin < released {
                let piece = body.piece(&self.catalogue, *sent, begin + released - *sent);
                match stream.write(piece) {
                    Ok(written) => {
                        *sent += written as u64;
                        let body_bytes = &self.meter.body_bytes;
                        body_bytes.fetch_add(written as u64, Ordering::Relaxed);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            if *sent == end {
                return Ok(());
            }
        }
    }

    /// Sends a body at a small part of a connection's rate, beside all others.
    fn slow(&self, stream: &mut TcpStream, body: &Body) -> io::Result<()> {
        let rate = (self.options.connection_rate / SLOW).max(1);
        let began = clock::now();
        let mut sent = 0;
        while sent < body.bytes() {
            let piece = body.piece(&self.catalogue, sent, PIECE / SLOW);
            sent += piece.len() as u64;
            let after = u128::from(sent) * 1_000_000_000 / u128::from(rate);
            let after = u64::try_from(after).unwrap_or(u64::MAX);
            wait_until(Nanos(began.0.saturating_add(after)));
            send(stream, piece)?;
            let body_bytes = &self.meter.body_bytes;
            body_bytes.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn wait_until(moment: Nanos) {
    let bell = Bell::default();
    while clock::now() < moment {
        bell.wait(bell.count(), Some(moment));
    }
}

fn await_flags(stream: &TcpStream, flags: PollFlags) -> io::Result<()> {
    match poll(&mut [PollFd::new(stream, flags)], None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn await_writable(stream: &TcpStream) -> io::Result<()> {
    await_flags(stream, PollFlags::OUT)
}

/// Sends all of it, however long the receiver takes.
fn send(stream: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => await_writable(stream)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The next request, or nothing at the end of the connection.
fn next_request(stream: &mut TcpStream, unread: &mut Vec<u8>) -> io::Result<Option<Request>> {
    let mut part = [0; 4096];
    loop {
        match Request::parse(unread) {
            Ok(Some((request, length))) => {
                unread.drain(..length);
                return Ok(Some(request));
            }
            Ok(None) if unread.len() < HEAD_MAX => {}
            Ok(None) | Err(_) => {
                send(stream, Answer::error(400).head.as_bytes())?;
                return Ok(None);
            }
        }
        match stream.read(&mut part) {
            Ok(0) => return Ok(None),
            Ok(read) => unread.extend_from_slice(&part[..read]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                await_flags(stream, PollFlags::IN)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_in_flight_begin_anew_with_those_in_flight() {
        let meter = Meter::default();
        meter.in_flight.store(3, Ordering::Relaxed);
        meter.in_flight_most.store(5, Ordering::Relaxed);
        let most = || meter.counters().in_flight_most;
        assert_eq!((most(), most(), most()), (5, 3, 3));
    }
}
