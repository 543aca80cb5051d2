//! Threads for reads that would otherwise hold up everybody else.
//!
//! Called by the adapter when nearly all threads that take requests wait for data. Each read here
//! waits on a thread of its own, made when none is idle and ended when it was idle for a while.
//! With [`THREADS_MAX`] of them waiting, further reads queue: by then the device has more to choose
//! from than it can use.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::mount::lock;

/// Most threads. Each costs about 20 KiB; a thousand are four requests for each of 256 readers.
const THREADS_MAX: usize = 1024;

/// How long a thread stays without work: longer than the pauses of a busy reader.
const IDLE: Duration = Duration::from_secs(5);

/// A read, with everything it needs.
pub type Read = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Queue {
    reads: VecDeque<Read>,
    idle: usize,
    threads: usize,
}

/// See the [module](self).
#[derive(Default)]
pub struct Overflow {
    shared: Arc<(Mutex<Queue>, Condvar)>,
}

impl Overflow {
    /// Does a read on another thread.
    pub fn run(&self, read: Read) {
        let (queue, arrived) = &*self.shared;
        let mut queue = lock(queue);
        queue.reads.push_back(read);
        if queue.idle >= queue.reads.len() {
            arrived.notify_one();
        } else if queue.threads < THREADS_MAX && self.start() {
            queue.threads += 1;
        }
    }

    /// Starts a thread; if the system has none left the read waits for one that is there.
    fn start(&self) -> bool {
        let shared = self.shared.clone();
        let builder = thread::Builder::new()
            .name("forerun-read".into())
            .stack_size(256 << 10);
        builder.spawn(move || work(&shared)).is_ok()
    }
}

fn work((queue, arrived): &(Mutex<Queue>, Condvar)) {
    let mut held = lock(queue);
    loop {
        while let Some(read) = held.reads.pop_front() {
            drop(held);
            read();
            held = lock(queue);
        }
        held.idle += 1;
        let (back, waited) = arrived
            .wait_timeout(held, IDLE)
            .unwrap_or_else(PoisonError::into_inner);
        held = back;
        held.idle -= 1;
        if waited.timed_out() && held.reads.is_empty() {
            held.threads -= 1;
            return;
        }
    }
}

impl std::fmt::Debug for Overflow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let queue = lock(&self.shared.0);
        write!(
            f,
            "Overflow {{ threads: {}, waiting: {} }}",
            queue.threads,
            queue.reads.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn reads_that_wait_for_each_other_all_get_a_thread() {
        let overflow = Overflow::default();
        let all = Arc::new(Barrier::new(101));
        for _ in 0..100 {
            let all = all.clone();
            overflow.run(Box::new(move || {
                all.wait();
            }));
        }
        all.wait();
    }
}
