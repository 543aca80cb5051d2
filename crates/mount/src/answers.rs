//! The answers of a mount to the questions of its control socket.
//!
//! Called by the [control socket](super::control) on its one thread, so none of them waits for a file system:
//! [announcements](super::announcements) open files, and have a thread of their own.

use std::os::unix::net::UnixStream;
use std::sync::Arc;

use forerun_core::Bytes;
use forerun_surface::daemon::announced::Range;
use forerun_surface::quantity::size;

use super::announcements::Announcements;
use super::control::{Answer, Answers, Question};
use super::readahead;
use super::report::Watched;

/// See the [module](self).
#[derive(Debug)]
pub struct OfMount {
    watched: Arc<Watched>,
    announcements: Announcements,
}

impl OfMount {
    /// Those of this mount.
    #[must_use]
    pub fn new(watched: Arc<Watched>) -> Self {
        Self {
            announcements: Announcements::new(watched.clone()),
            watched,
        }
    }
}

impl Answers for OfMount {
    fn answer(&self, question: Question) -> Answer {
        let watched = &self.watched;
        match question {
            Question::Stats => match watched.report() {
                Some(report) => Answer::Stats(Box::new(report)),
                None => Answer::Error("the mount has ended".into()),
            },
            Question::SetKernelReadahead { bytes } => {
                let of = |why| format!("--kernel-readahead {}: {why}", size(Bytes(bytes)));
                let bytes = match readahead::check(Bytes(bytes)) {
                    Ok(bytes) => bytes,
                    Err(why) => return Answer::Refused(of(why)),
                };
                match readahead::set(watched.device(), bytes) {
                    Ok(()) => Answer::Limits(watched.limits()),
                    Err(error) => Answer::Error(of(error.to_string())),
                }
            }
            Question::SetMemory { bytes } => match watched.limit_memory(Bytes(bytes)) {
                Ok(()) => Answer::Limits(watched.limits()),
                Err(answer) => answer,
            },
            Question::Limits | Question::Hint { .. } => Answer::Limits(watched.limits()),
            Question::Pause | Question::Resume => {
                Answer::Refused("this is a mount: `forerun watch` alone can pause".into())
            }
        }
    }

    fn announced(
        &self,
        ranges: Vec<Range>,
        client: UnixStream,
    ) -> Result<(), (String, UnixStream)> {
        self.announcements.later(ranges, client)
    }
}
