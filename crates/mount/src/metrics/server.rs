//! The server of the metrics: one thread, a bounded number of connections.
//!
//! Any program on the machine can connect, so every resource has a limit. Of [`CONNECTIONS_MAX`]
//! connections the next one takes the place of the one that is longest without asking: 5,000 idle
//! clients cost 32 descriptors and do not keep Prometheus out, which asks as it connects. No
//! connection lives longer than [`PATIENCE`]. Where the process has no descriptor left, the server
//! gives up one of its own, or tries again after [`BACKOFF`]; it never ends.
//!
//! ```text
//! poll: listener readable --> accept, serve at once, else keep it
//!       connection ready  --> serve on
//!       deadline          --> close
//! ```

use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::connection::{Connection, Page};

/// Some Prometheus servers, some people with curl; each holds a descriptor of the mount's.
pub(super) const CONNECTIONS_MAX: usize = 32;

/// How long a connection may last: Prometheus' own limit for a scrape is 10 s, and its request and a
/// page of some kB take milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long the server waits where a connection cannot be accepted for want of a descriptor: the
/// listener stays readable, and asking again at once would be a busy loop.
const BACKOFF: Duration = Duration::from_millis(100);

/// Connections accepted between two looks at the others.
const ACCEPTED_AT_ONCE: usize = 64;

/// See the [module](self).
pub(super) struct Server<F> {
    listener: TcpListener,
    page: F,
    /// In the order in which they were accepted, which is that of their deadlines.
    connections: Vec<Connection>,
    /// Until then nothing is accepted.
    backs_off: Option<Instant>,
}

impl<F: FnMut() -> Page> Server<F> {
    /// Serves the output of `page`.
    pub(super) fn new(listener: TcpListener, page: F) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            page,
            connections: Vec::with_capacity(CONNECTIONS_MAX),
            backs_off: None,
        })
    }

    /// Serves for ever.
    pub(super) fn run(&mut self) {
        loop {
            if let Err(error) = self.turn() {
                tracing::debug!("metrics: {error}");
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
                connection.advance(&mut self.page);
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
        let mut polled = vec![PollFd::from_borrowed_fd(self.listener.as_fd(), accepts)];
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
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if is_shortage(&error) => {
                    if !self.give_up_one() {
                        tracing::debug!("metrics: {error}");
                        self.backs_off = Some(now + BACKOFF);
                        return;
                    }
                    continue;
                }
                // It went away before it was accepted.
                Err(_) => continue,
            };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            let mut connection = Connection::new(stream, now + PATIENCE);
            connection.advance(&mut self.page);
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

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Shutdown, SocketAddr, TcpStream};

    use super::super::connection::REQUEST_BYTES_MAX;
    use super::*;

    /// A server with a page of a given size, which runs as long as the tests.
    fn served(bytes: usize) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let page: Page = vec![b'x'; bytes].into();
        let mut server = Server::new(listener, move || page.clone()).unwrap();
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
