//! The driver's timer: requests that hang are found though nothing else happens.
//!
//! Problem: a device that answers nothing brings no input, so requests of other files that wait for
//! it would wait for as long as it is silent. The engine has no clock; it is [told](EngineHost::look) time.
//!
//! Mechanism: a thread that sleeps while nothing is in flight, and looks every [`PERIOD`] while something is.
//!
//! ```text
//! a request goes out --> set --> every 250 ms: does one hang that others wait for? Input::Decide
//!                                              does a thread hang in a read? another one starts
//! nothing in flight <-- cleared
//! ```
//!
//! A driver whose clock only counts has none: its journals are to be equal line for line.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::engine_host::EngineHost;
use crate::sync::{AtomicBool, Condvar, Mutex, Ordering};

/// Between two looks. The engine lets a request hang for a second; a reader that waits for two of
/// them and two looks waits for less than three.
const PERIOD: Duration = Duration::from_millis(250);

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Alarm {
    is_set: AtomicBool,
    /// A thread looks.
    has_timer: AtomicBool,
    has_ended: Mutex<bool>,
    changed: Condvar,
}

impl Alarm {
    /// Requests are in flight from now on.
    pub(crate) fn set(&self) {
        if !self.is_set.load(Ordering::Relaxed) && !self.is_set.swap(true, Ordering::AcqRel) {
            let _ended = self.has_ended.lock();
            self.changed.notify_all();
        }
    }

    /// Whether something is looked at again though nothing else happens.
    pub(crate) fn has_timer(&self) -> bool {
        self.has_timer.load(Ordering::Relaxed)
    }

    /// None is. Called under the engine's lock, so that none goes out meanwhile.
    pub(crate) fn clear(&self) {
        self.is_set.store(false, Ordering::Release);
    }

    /// Waits until it is set; false at the end.
    fn wait(&self) -> bool {
        let mut ended = self.has_ended.lock();
        while !*ended && !self.is_set.load(Ordering::Acquire) {
            ended = self.changed.wait(ended);
        }
        !*ended
    }

    /// Waits for a period; false at the end.
    fn pause(&self) -> bool {
        let until = Instant::now() + PERIOD;
        let mut ended = self.has_ended.lock();
        while !*ended && Instant::now() < until {
            ended = self.changed.wait_until(ended, until);
        }
        !*ended
    }

    fn run(&self, engine_host: &Weak<EngineHost>) {
        while self.wait() && self.pause() {
            let Some(engine_host) = engine_host.upgrade() else {
                return;
            };
            engine_host.look_for_hung();
        }
    }
}

/// The thread. Ends by itself once this is dropped: it may be in a call of a reader.
pub(crate) struct Timer(Arc<Alarm>);

impl Timer {
    pub(crate) fn start(alarm: Arc<Alarm>, engine_host: Weak<EngineHost>) -> std::io::Result<Self> {
        let of_thread = alarm.clone();
        let builder = std::thread::Builder::new().name("forerun-timer".into());
        builder.spawn(move || of_thread.run(&engine_host))?;
        alarm.has_timer.store(true, Ordering::Relaxed);
        Ok(Self(alarm))
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        *self.0.has_ended.lock() = true;
        self.0.changed.notify_all();
    }
}
