//! The tracer: one line for each request a device got.
//!
//! ```text
//! request device file offset bytes submitted_ns completed_ns outcome
//! 12 0 3 1048576 1048576 8123456 21230000 ok
//! ```
//!
//! Times are nanoseconds since the tracer was built, lines come in the order of completion. The
//! outcome is `ok`, `short` with the bytes that came, or `error` with its number. The outermost
//! wrapper, so it shows requests after faults and throttling. It writes under its own
//! lock on the completing thread: meant for looking, not for measuring.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;

use forerun_core::{Nanos, RequestId};

use super::Start;
use crate::backend::{Backend, Outcome, Request, Sink};
use crate::clock::nanos_since;
use crate::error::Error;
use crate::journal_file::written;
use crate::sync::Mutex;

/// The columns of a line, one word each.
pub const COLUMNS: &str = "request device file offset bytes submitted_ns completed_ns outcome";

struct Lines {
    write: Box<dyn Write + Send>,
    submitted: HashMap<RequestId, Nanos>,
    failed: Option<io::Error>,
}

/// State of the wrapper and its sink.
struct Record {
    start: Instant,
    lines: Mutex<Lines>,
    sink: Arc<dyn Sink>,
}

/// See the [module](self).
pub struct Tracer {
    record: Arc<Record>,
    inner: Arc<dyn Backend>,
}

impl Tracer {
    /// Wraps a backend and writes the head line.
    ///
    /// # Errors
    /// The wrapped backend cannot start.
    pub fn start(
        sink: Arc<dyn Sink>,
        write: Box<dyn Write + Send>,
        inner: Start<'_>,
    ) -> Result<Arc<Self>, Error> {
        let lines = Lines {
            write,
            submitted: HashMap::new(),
            failed: None,
        };
        let record = Arc::new(Record {
            start: Instant::now(),
            lines: Mutex::new(lines),
            sink,
        });
        record.lines.lock().line(COLUMNS);
        let inner = inner(record.clone())?;
        Ok(Arc::new(Self { record, inner }))
    }

    /// Writes the buffered lines out.
    ///
    /// # Errors
    /// The first error of any line.
    pub fn flush(&self) -> io::Result<()> {
        let mut lines = self.record.lines.lock();
        match lines.failed.take() {
            Some(error) => Err(error),
            None => lines.write.flush(),
        }
    }
}

impl Lines {
    fn line(&mut self, line: &str) {
        if self.failed.is_none() {
            self.failed = written(&mut *self.write, &format!("{line}\n")).err();
        }
    }
}

impl Backend for Tracer {
    fn submit(&self, request: Box<Request>) {
        let now = nanos_since(self.record.start);
        self.record
            .lines
            .lock()
            .submitted
            .insert(request.number, now);
        self.inner.submit(request);
    }

    fn look_for_hung(&self) {
        self.inner.look_for_hung();
    }

    fn stop(&self) {
        self.inner.stop();
    }
}

impl Sink for Record {
    fn completed(&self, request: Box<Request>, outcome: Outcome) {
        let ended = nanos_since(self.start);
        let told = match outcome {
            Ok(n) if n >= request.bytes => "ok".to_owned(),
            Ok(n) => format!("short {n}"),
            Err(error) => format!("error {error}"),
        };
        let mut lines = self.lines.lock();
        let begun = lines.submitted.remove(&request.number).unwrap_or(ended);
        let Request {
            number,
            device,
            file,
            ..
        } = &*request;
        let (offset, bytes) = (request.offset + request.skip as u64, request.wanted());
        lines.line(&format!(
            "{number} {device} {file} {offset} {bytes} {begun} {ended} {told}"
        ));
        drop(lines);
        self.sink.completed(request, outcome);
    }
}
