//! One connection: a request within bounds, an answer, the end.
//!
//! Driven by the [server](super), which calls it when its socket is readable or writable;
//! it never waits. Its memory is bounded: a request of the protocol's longest, and one answer.
//!
//! ```text
//! reading --asked--> writing --all sent--> ended
//!    +--> ended: passed on, closed by the client, an error, or past its deadline
//! ```

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

use rustix::net::{Shutdown, shutdown};

use super::{Asked, Protocol};

/// See the [module](self).
pub(super) struct Connection<S> {
    pub(super) stream: S,
    /// Deadline at which it is closed in any state.
    pub(super) deadline: Instant,
    state: State,
}

enum State {
    Reading(Vec<u8>),
    Writing { answer: Answer, sent: usize },
    Ended,
}

/// An answer, in two parts, of which the second may be kept for others.
pub(crate) struct Answer {
    pub(crate) head: Vec<u8>,
    pub(crate) body: Arc<[u8]>,
}

impl<S: Read + Write + AsFd> Connection<S> {
    pub(super) fn new(stream: S, deadline: Instant) -> Self {
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

    /// Goes on as far as it can without waiting.
    pub(super) fn advance(&mut self, protocol: &mut impl Protocol<Stream = S>) {
        let went = self.receive(protocol).and_then(|()| self.send());
        match went {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // A client that went away gets no answer.
            Err(_) => self.state = State::Ended,
            Ok(()) => {}
        }
    }

    fn receive(&mut self, protocol: &mut impl Protocol<Stream = S>) -> io::Result<()> {
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
            self.state = match protocol.asked(request, &self.stream) {
                Asked::Partly => continue,
                Asked::Answered(answer) => State::Writing { answer, sent: 0 },
                Asked::Passed => State::Ended,
            };
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
        Ok(shutdown(&self.stream, Shutdown::Write)?)
    }
}
