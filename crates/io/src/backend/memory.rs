//! The memory backend: reads on the submitting thread, one request after the other.
//!
//! A request has ended when [`Backend::submit`] returns, so a run on one thread makes the same
//! decisions every time; tests are built on that. Meant for generated content, which costs no
//! I/O; files work too, one blocking read after the other, which is not fit for anything else.

use std::io;
use std::sync::Arc;

use super::{Backend, Entry, Request, Setup, Sink, read_here};

/// The entry in [`super::LIST`].
pub const ENTRY: Entry = Entry {
    name: "memory",
    summary: "reads at once on the submitting thread; deterministic, for generated content",
    source: "smoltcp phy::Loopback; object_store InMemory",
    start,
};

struct Memory {
    sink: Arc<dyn Sink>,
}

fn start(sink: Arc<dyn Sink>, _setup: &Setup) -> io::Result<Arc<dyn Backend>> {
    Ok(Arc::new(Memory { sink }))
}

impl Backend for Memory {
    fn submit(&self, mut request: Box<Request>) {
        let outcome = read_here(&mut request);
        self.sink.completed(request, outcome);
    }

    fn stop(&self) {}
}
