//! The inner store, and the threads on which requests to it run.
//!
//! Problem: a query engine computes on the threads of its runtime, and a request that waits for one of them
//! is late; a runtime may also end before the store does, or rest between two calls, and with it the connections that
//! clients of HTTP keep for the next request of any thread. Mechanism: all calls of the inner store run on threads of
//! their own. A stream runs where its reader polls it, and its sockets, timers and tasks are on those threads. A call
//! that its caller lets go of is ended with it, and fetches end with the store: one that hangs would hold up the end of
//! the driver.

use std::future::poll_fn;
use std::num::NonZero;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{io, thread};

use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable, BoxFuture, select};
use futures_util::stream::{self, BoxStream};
use object_store::{Error, ObjectStore, Result};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::watch;

/// Most threads that move bytes from sockets to memory: those of the crate `forerun-store`.
const WORKERS_MAX: usize = 4;

/// Threads that look names of hosts up, and read files of local stores: as many as are read from one disk at once.
const BLOCKING_MAX: usize = 8;

/// The name of this crate in errors.
pub(crate) const NAME: &str = "forerun";

/// The program's store.
pub(crate) type Inner = Arc<dyn ObjectStore>;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) inner: Inner,
    /// The same for no other connection: two stores may have equal names.
    number: u64,
    threads: Handle,
    _threads: Threads,
    /// True once the store is gone.
    is_over: watch::Sender<bool>,
}

/// Ends the fetches of a connection when it is dropped.
#[derive(Debug)]
pub(crate) struct Fetches(pub(crate) Arc<Connection>);

impl Drop for Fetches {
    fn drop(&mut self) {
        self.0.is_over.send_replace(true);
    }
}

/// They end beside the last call, which may end on one of them.
#[derive(Debug)]
struct Threads(Option<Runtime>);

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Ends its task when it is dropped.
struct Ends(AbortHandle);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Connection {
    pub(crate) fn new(inner: Inner) -> io::Result<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        let mut builder = Builder::new_multi_thread();
        let builder = builder.worker_threads(processors.min(WORKERS_MAX));
        let builder = builder.thread_name("forerun-objects");
        let builder = builder.max_blocking_threads(BLOCKING_MAX);
        let runtime = builder.enable_all().build()?;
        Ok(Self {
            inner,
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            threads: runtime.handle().clone(),
            _threads: Threads(Some(runtime)),
            is_over: watch::Sender::new(false),
        })
    }

    /// The name of an object, which no other store has.
    pub(crate) fn name(&self, location: &object_store::path::Path) -> Arc<str> {
        format!("{} {}: {location}", self.inner, self.number).into()
    }

    /// Runs a task there that nothing waits for, as long as there is a store.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut is_over = self.is_over.subscribe();
        drop(self.threads.spawn(async move {
            let is_over = pin!(is_over.wait_for(|is_over| *is_over));
            select(pin!(task), is_over).await;
        }));
    }

    /// Runs a call there, until its caller lets go of it.
    ///
    /// # Errors
    /// Those of the call, or that it panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        call: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let (abort, asked) = AbortHandle::new_pair();
        let task = self.threads.spawn(Abortable::new(call, asked));
        let _ends = Ends(abort);
        match task.await {
            Ok(Ok(result)) => result,
            // Nothing but `Ends` ends it.
            Ok(Err(aborted)) => Err(failed(aborted)),
            Err(panicked) => Err(failed(panicked)),
        }
    }

    /// Runs a call of the inner store there.
    ///
    /// # Errors
    /// Those of [`run`](Self::run).
    pub(crate) async fn ask<T: Send + 'static, F>(&self, call: impl FnOnce(Inner) -> F) -> Result<T>
    where
        F: Future<Output = Result<T>> + Send + 'static,
    {
        self.run(call(self.inner.clone())).await
    }

    /// Polls a future of the inner store on this thread.
    pub(crate) fn here<'a, T: 'a>(
        &'a self,
        make: impl FnOnce() -> BoxFuture<'a, T>,
    ) -> impl Future<Output = T> + Send + 'a {
        let mut future = self.enter(make);
        poll_fn(move |context| self.enter(|| future.as_mut().poll(context)))
    }

    /// Polls a stream of the inner store where it is read.
    pub(crate) fn stream<T: 'static>(
        self: &Arc<Self>,
        make: impl FnOnce(&dyn ObjectStore) -> BoxStream<'static, T>,
    ) -> BoxStream<'static, T> {
        let (connection, mut stream) = (self.clone(), self.enter(|| make(&*self.inner)));
        stream::poll_fn(move |context| connection.enter(|| stream.poll_next_unpin(context))).boxed()
    }

    /// Polls a stream of the caller within the caller's runtime, if there is one.
    pub(crate) fn of_caller<T: 'static>(
        mut stream: BoxStream<'static, T>,
    ) -> BoxStream<'static, T> {
        let runtime = Handle::try_current().ok();
        let polled = stream::poll_fn(move |context| {
            let _runtime = runtime.as_ref().map(Handle::enter);
            stream.poll_next_unpin(context)
        });
        polled.boxed()
    }

    /// Sockets, timers and tasks of a call on this thread are on those threads.
    pub(crate) fn enter<T>(&self, call: impl FnOnce() -> T) -> T {
        let _threads = self.threads.enter();
        call()
    }
}

/// An error of this crate.
pub(crate) fn failed(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    let source = why.into();
    Error::Generic {
        store: NAME,
        source,
    }
}
