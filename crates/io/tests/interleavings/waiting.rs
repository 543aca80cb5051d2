//! Waiting threads are woken, and queues are emptied: `wait`, `deferred_inputs`, `dispatch_queue`.

use std::sync::Arc;

use forerun_core::{Bytes, DeviceId, FileId, ReadId, RequestId, Served};
use loom::thread;

use crate::arena::{Arena, Target};
use crate::backend::Request;
use crate::deferred_inputs::{DeferredInput, DeferredInputs};
use crate::dispatch_queue::DispatchQueue;
use crate::explore;
use crate::sync::Mutex;
use crate::wait::Waiter;

const READ: ReadId = ReadId(2);

#[test]
fn a_reader_that_waits_is_woken_each_time() {
    explore(|| {
        let waiter = Arc::<Waiter>::default();
        for count in 1..=2 {
            let served = Served::Blocks { count };
            let answering = thread::spawn({
                let waiter = waiter.clone();
                move || {
                    waiter.answer(READ, served);
                    waiter.wake();
                }
            });
            assert_eq!(waiter.wait(), (READ, served));
            answering.join().unwrap();
        }
    });
}

/// As much of an engine as a release matters to: whether a read waits for memory.
#[derive(Default)]
struct Engine {
    wants: bool,
    freed: bool,
    taken: Vec<DeferredInput>,
}

impl Engine {
    fn drain(&mut self, deferred: &DeferredInputs) {
        deferred.take(&mut self.taken);
        self.freed |= !self.taken.is_empty();
        self.taken.clear();
    }

    fn starves(&self) -> bool {
        self.wants && !self.freed
    }
}

/// The engine behind its lock, entered as [`EngineHost`] is: deferred inputs go in first, and
/// on the way out their queue is told.
///
/// [`EngineHost`]: ../../src/engine_host.rs
#[derive(Default)]
struct Driver {
    deferred: DeferredInputs,
    engine: Mutex<Engine>,
}

impl Driver {
    fn enter(&self, work: impl FnOnce(&mut Engine)) {
        let mut engine = self.engine.lock();
        engine.drain(&self.deferred);
        work(&mut engine);
        while self.deferred.tell(engine.starves()) {
            engine.drain(&self.deferred);
        }
    }

    fn release(&self) {
        if self.deferred.queue(DeferredInput::Release(READ)) {
            self.enter(|_| ());
        }
    }
}

#[test]
fn no_read_starves_while_a_release_lies_at_the_door() {
    explore(|| {
        let driver = Arc::<Driver>::default();
        let releasing = thread::spawn({
            let driver = driver.clone();
            move || driver.release()
        });
        driver.enter(|engine| engine.wants = true);
        releasing.join().unwrap();
        assert!(!driver.engine.lock().starves());
    });
}

fn request(number: u32, arena: &Arc<Arena>) -> Box<Request> {
    Box::new(Request {
        number: RequestId(number),
        device: DeviceId(0),
        member: None,
        file: FileId(0),
        version: 0,
        source: None,
        position: Bytes(0),
        offset: 0,
        bytes: 0,
        target: Target::empty(arena.clone()),
        skip: 0,
        attempts: 0,
        tried: Vec::new(),
        given_up: None,
    })
}

/// Requests put in under a lock and handed over without it, as the driver does.
#[derive(Default)]
struct Sending {
    decided: Mutex<Vec<RequestId>>,
    queue_out: DispatchQueue,
    handed_over: Mutex<Vec<RequestId>>,
}

impl Sending {
    fn decide(&self, request: Box<Request>) {
        let mut decided = self.decided.lock();
        decided.push(request.number);
        self.queue_out.put(std::iter::once(request));
        drop(decided);
        while let Some(request) = self.queue_out.begin(|_| true) {
            self.handed_over.lock().push(request.number);
            self.queue_out.end();
        }
    }
}

#[test]
fn requests_are_handed_over_in_the_order_they_were_decided_and_none_is_left() {
    let arena = Arc::new(Arena::new(1, 512).unwrap());
    explore(move || {
        let sending = Arc::<Sending>::default();
        let other = thread::spawn({
            let (sending, arena) = (sending.clone(), arena.clone());
            move || sending.decide(request(1, &arena))
        });
        sending.decide(request(2, &arena));
        other.join().unwrap();
        assert_eq!(*sending.decided.lock(), *sending.handed_over.lock());
        assert_eq!(sending.decided.lock().len(), 2);
    });
}
