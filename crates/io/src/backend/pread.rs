//! The pread backend: a pool of threads that block in `preadv(2)`.
//!
//! Works on every kernel and file system, for files that changed to buffered reading, and for
//! generated content; [`super::uring`] keeps a small pool of it for what has no descriptor.
//! Requests start in the order they were submitted.
//!
//! Not fit for many slow devices at once: sixteen requests that wait for one device keep the
//! others' waiting.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};

use super::{Backend, Entry, Request, Setup, Sink, read_here};

/// The entry in [`super::LIST`].
pub const ENTRY: Entry = Entry {
    name: "pread",
    summary: "a pool of 16 threads in preadv(2); works everywhere",
    source: "POSIX; fio's psync engine",
    start,
};

/// Enough to keep a queue of requests at any disk, few enough to be cheap when idle.
const THREADS: u32 = 16;

#[derive(Default)]
struct Queue {
    requests: VecDeque<Box<Request>>,
    stopping: bool,
}

struct Shared {
    sink: Arc<dyn Sink>,
    queue: Mutex<Queue>,
    arrived: Condvar,
}

/// See the [module](self).
pub(super) struct Pool {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

fn start(sink: Arc<dyn Sink>, setup: &Setup) -> io::Result<Arc<dyn Backend>> {
    Ok(Arc::new(Pool::start(
        sink,
        THREADS.min(setup.in_flight_max),
    )?))
}

impl Pool {
    pub(super) fn start(sink: Arc<dyn Sink>, threads: u32) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            sink,
            queue: Mutex::default(),
            arrived: Condvar::default(),
        });
        let pool = Self {
            shared,
            threads: Mutex::default(),
        };
        for i in 0..threads.max(1) {
            let shared = pool.shared.clone();
            let spawned = std::thread::Builder::new()
                .name(format!("forerun-pread-{i}"))
                .spawn(move || shared.work());
            match spawned {
                Ok(thread) => pool.threads.lock().push(thread),
                // Fewer threads are slower, none is an error.
                Err(e) if i == 0 => return Err(e),
                Err(_) => break,
            }
        }
        Ok(pool)
    }
}

impl Shared {
    fn work(&self) {
        while let Some(mut request) = self.next() {
            let outcome = read_here(&mut request);
            self.sink.completed(request, outcome);
        }
    }

    fn next(&self) -> Option<Box<Request>> {
        let mut queue = self.queue.lock();
        loop {
            if let Some(request) = queue.requests.pop_front() {
                return Some(request);
            }
            if queue.stopping {
                return None;
            }
            self.arrived.wait(&mut queue);
        }
    }
}

impl Backend for Pool {
    fn submit(&self, request: Box<Request>) {
        self.shared.queue.lock().requests.push_back(request);
        self.shared.arrived.notify_one();
    }

    fn stop(&self) {
        self.shared.queue.lock().stopping = true;
        self.shared.arrived.notify_all();
        for thread in self.threads.lock().drain(..) {
            // A panic in a worker was reported by its own thread; there is nothing to add.
            let _ = thread.join();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.stop();
    }
}
