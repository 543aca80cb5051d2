//! A driver that a task on a connection's threads works with.
//!
//! Problem: the end of a driver waits for its fetches, and these end on the connection's threads. A task whose caller
//! has let go of it, and of the store, may be the last that has the driver; its end would wait for its own thread.
//! Mechanism: there the driver ends on a thread of its own.

use std::ops::Deref;
use std::sync::Arc;
use std::thread;

use forerun_io::Driver;

/// See the [module](self).
pub(crate) struct DriverOfTask(Option<Arc<Driver>>);

impl DriverOfTask {
    pub(crate) fn new(driver: &Arc<Driver>) -> Self {
        Self(Some(driver.clone()))
    }
}

impl Deref for DriverOfTask {
    type Target = Driver;

    fn deref(&self) -> &Driver {
        let Some(driver) = &self.0 else {
            unreachable!("it is there until the end")
        };
        driver
    }
}

impl Drop for DriverOfTask {
    fn drop(&mut self) {
        if let Some(driver) = self.0.take().and_then(Arc::into_inner) {
            let thread = thread::Builder::new().name("forerun-end".into());
            // Where no thread can be started it ends here: the closure is dropped.
            let _ = thread.spawn(move || drop(driver));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::mpsc::{Sender, channel};
    use std::time::Duration;

    use forerun_core::{Bytes, preset};
    use forerun_io::Config;
    use forerun_io::arena::Target;
    use forerun_io::source::{Key, Pending, Source};

    /// A wait that takes longer has failed.
    const BOUND: Duration = Duration::from_secs(60);

    /// Hands its reads to the test.
    #[derive(Debug)]
    struct Held(Sender<Pending>);

    impl Source for Held {
        fn key(&self) -> Key {
            Key::Object {
                name: "held".into(),
                version: "1".into(),
            }
        }

        fn bytes(&self) -> io::Result<u64> {
            Ok(4096)
        }

        fn read(&self, _: &mut Target, _: u64, _: usize) -> io::Result<usize> {
            unreachable!("it takes its reads")
        }

        fn begin(self: Arc<Self>, pending: Pending) -> Option<Pending> {
            self.0.send(pending).err().map(|refused| refused.0)
        }
    }

    #[test]
    fn the_last_task_does_not_wait_for_the_fetches_of_its_driver() {
        let settings = preset::default().settings(Bytes(1 << 20)).unwrap();
        let driver = Arc::new(Driver::new(Config::new(settings)).unwrap());
        let (reads, begun) = channel();
        let reader = driver.open_source(Arc::new(Held(reads))).unwrap();
        let (tell, came) = channel();
        reader.when_resident(0, 4096, true, move |there| {
            let _ = tell.send(there);
        });
        let pending = begun.recv_timeout(BOUND).unwrap();
        let task = DriverOfTask::new(&driver);
        drop(driver);
        let (end, ended) = channel();
        thread::spawn(move || {
            drop(task);
            let _ = end.send(());
        });
        assert_eq!(ended.recv_timeout(BOUND), Ok(()));
        pending.end(Ok(4096));
        assert_eq!(came.recv_timeout(BOUND), Ok(true));
    }
}
