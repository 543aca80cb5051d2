//! A server of small questions: one thread, a bounded number of connections.
//!
//! Used by the [control socket](super::control) and the [metrics](super::metrics), to which any program
//! on the machine can connect, so every resource has a limit. Of [`CONNECTIONS_MAX`]
//! connections the next one takes the place of the one that is longest without asking: 5,000 idle
//! clients cost 32 descriptors and do not keep Prometheus out, which asks as it connects. No
//! connection lives longer than [`PATIENCE`], and none is waited for: a client that sends a byte a
//! second, or takes its answer slowly, delays no other. Where the process has no descriptor left, the server
//! gives up one of its own, or tries again after [`BACKOFF`]; it never ends.
//!
//! ```text
//! poll: listener readable --> accept, serve at once, else keep it
//!       connection ready  --> serve on
//!       deadline          --> close
//! ```

pub(super) mod connection;

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use self::connection::{Answer, Connection};
use super::caught;

/// Some Prometheus servers, some people with curl; each holds a descriptor of the daemon's.
pub(super) const CONNECTIONS_MAX: usize = 32;

/// How long a connection may last: Prometheus' own limit for a scrape is 10 s, and its request and a
/// page of some kB take milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long the server waits where a connection cannot be accepted for want of a descriptor: the
/// listener stays readable, and asking again at once would be a busy loop.
const BACKOFF: Duration = Duration::from_millis(100);

/// Connections accepted between two looks at the others.
const ACCEPTED_AT_ONCE: usize = 64;

/// The questions of a server, and their answers.
pub(super) trait Protocol {
    /// A client.
    type Stream: Read + Write + AsFd;

    /// The socket that clients connect to, which does not block.
    fn listener(&self) -> BorrowedFd<'_>;

    /// The next client.
    fn accept(&self) -> io::Result<Self::Stream>;

    /// A client's request as far as it came.
    fn asked(&mut self, request: &[u8], client: &Self::Stream) -> Asked;
}

/// The fate of a request.
pub(super) enum Asked {
    /// It has not ended yet.
    Partly,
    /// It is answered, and the connection closed.
    Answered(Answer),
    /// Another thread answers it, on a descriptor of its own.
    Passed,
}

/// See the [module](self).
pub(super) struct Server<P: Protocol> {
    protocol: P,
    /// In the order in which they were accepted, which is that of their deadlines.
    connections: Vec<Connection<P::Stream>>,
    /// Until then nothing is accepted.
    backs_off: Option<Instant>,
}

impl<P: Protocol> Server<P> {
    /// Has no connections yet.
    pub(super) fn new(protocol: P) -> Self {
        Self {
            protocol,
            connections: Vec::with_capacity(CONNECTIONS_MAX),
            backs_off: None,
        }
    }

    /// Serves for ever.
    pub(super) fn run(&mut self) {
        loop {
            let mut turned = Ok(());
            if !caught(|| turned = self.turn()) {
                // One of them made it panic, and would again.
                self.connections.clear();
            }
            if let Err(error) = turned {
                tracing::debug!("clients: {error}");
                std::thread::sleep(BACKOFF);
            }
        }
    }

    /// Waits for something to do, and does it.
    fn turn(&mut self) -> io::Result<()> {
        let ready = self.wait()?;
        let mut ready = ready.into_iter();
        let comes = ready.next().unwrap_or(false);
        for (connection, ready) in self.connections.iter_mut().zip(ready) {
            if ready {
                connection.advance(&mut self.protocol);
            }
        }
        let now = Instant::now();
        self.connections
            .retain(|connection| !connection.has_ended() && connection.deadline > now);
        if comes {
            self.accept(now);
        }
        Ok(())
    }

    /// Whether the listener is ready, and each connection; or that it is time to look again.
    fn wait(&mut self) -> io::Result<Vec<bool>> {
        let now = Instant::now();
        self.backs_off = self.backs_off.filter(|until| *until > now);
        let deadlines = self.connections.iter().map(|c| c.deadline);
        let until = deadlines.chain(self.backs_off).min();
        let timeout = until.map(|until| Timespec {
            tv_sec: until.saturating_duration_since(now).as_secs().cast_signed(),
            tv_nsec: until.saturating_duration_since(now).subsec_nanos().into(),
        });
        let accepts = match self.backs_off {
            Some(_) => PollFlags::empty(),
            None => PollFlags::IN,
        };
        let mut polled = vec![PollFd::from_borrowed_fd(self.protocol.listener(), accepts)];
        polled.extend(self.connections.iter().map(|connection| {
            let flags = if connection.is_reading() {
                PollFlags::IN
            } else {
                PollFlags::OUT
            };
            PollFd::from_borrowed_fd(connection.stream.as_fd(), flags)
        }));
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(polled.iter().map(|fd| !fd.revents().is_empty()).collect())
    }

    fn accept(&mut self, now: Instant) {
        for _ in 0..ACCEPTED_AT_ONCE {
            let stream = match self.protocol.accept() {
                Ok(stream) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if is_shortage(&error) => {
                    if !self.give_up_one() {
                        tracing::debug!("clients: {error}");
                        self.backs_off = Some(now + BACKOFF);
                        return;
                    }
                    continue;
                }
                // It went away before it was accepted.
                Err(_) => continue,
            };
            if rustix::io::ioctl_fionbio(&stream, true).is_err() {
                continue;
            }
            let mut connection = Connection::new(stream, now + PATIENCE);
            connection.advance(&mut self.protocol);
            if connection.has_ended() {
                continue;
            }
            if self.connections.len() == CONNECTIONS_MAX {
                self.give_up_one();
            }
            self.connections.push(connection);
        }
    }

    /// Closes the connection that is longest without asking, else the one that takes its answer
    /// longest; whether there was one.
    fn give_up_one(&mut self) -> bool {
        let silent = self.connections.iter().position(Connection::is_reading);
        match silent.or((!self.connections.is_empty()).then_some(0)) {
            Some(index) => drop(self.connections.remove(index)),
            None => return false,
        }
        true
    }
}

/// Whether the process or the system is short of descriptors or memory.
fn is_shortage(error: &io::Error) -> bool {
    let shortages = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|errno| shortages.contains(&errno))
}
