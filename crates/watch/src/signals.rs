//! Signals of a watch: the end, a pause, and a pipe by which both and other threads wake its loop.
//!
//! SIGTERM, SIGINT and SIGHUP end it, SIGUSR1 lets it pause, SIGUSR2 go on. A SIGHUP that is
//! ignored at the start, as under `nohup`, stays ignored.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use forerun_surface::daemon::background::is_ignored;
use forerun_surface::failure::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXFSZ};

/// See the [module](self).
pub(crate) struct Signals {
    pub(crate) pipe: UnixStream,
    ends: Arc<AtomicBool>,
    /// Wakes the loop as a signal does.
    pub(crate) wake: UnixStream,
    pauses: Arc<AtomicBool>,
    resumes: Arc<AtomicBool>,
    pub(crate) is_paused: bool,
}

impl Signals {
    /// Catches them.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn new() -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::Run(format!("signals: {error}"));
        let (pipe, end) = UnixStream::pair().map_err(failed)?;
        pipe.set_nonblocking(true).map_err(failed)?;
        let (ends, pauses, resumes) =
            <(Arc<AtomicBool>, Arc<AtomicBool>, Arc<AtomicBool>)>::default();
        let flags = [
            (SIGTERM, &ends),
            (SIGINT, &ends),
            (SIGUSR1, &pauses),
            (SIGUSR2, &resumes),
        ];
        let hangup = (!is_ignored(SIGHUP)).then_some((SIGHUP, &ends));
        for (signal, flag) in flags.into_iter().chain(hangup) {
            signal_hook::flag::register(signal, flag.clone()).map_err(failed)?;
            let end = end.try_clone().map_err(failed)?;
            signal_hook::low_level::pipe::register(signal, end).map_err(failed)?;
        }
        // A journal that may not grow further (`ulimit -f`) is an error of the write, and not the end.
        signal_hook::flag::register(SIGXFSZ, Arc::default()).map_err(failed)?;
        // The signals' writes do not wait either.
        end.set_nonblocking(true).map_err(failed)?;
        Ok(Self {
            pipe,
            wake: end,
            ends,
            pauses,
            resumes,
            is_paused: false,
        })
    }

    /// The end of standard input is an end, too.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn end_with_input(&self) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::Run(format!("standard input: {error}"));
        let (ends, wake) = (self.ends.clone(), self.wake.try_clone().map_err(failed)?);
        let wait = move || {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            ends.store(true, Ordering::Relaxed);
            let _ = (&wake).write(b".");
        };
        let thread = std::thread::Builder::new().name("forerun-input".into());
        thread.spawn(wait).map(drop).map_err(failed)
    }

    /// Takes the signals that came; whether it is to end.
    pub(crate) fn take(&mut self) -> bool {
        let mut bytes = [0; 64];
        while (&self.pipe).read(&mut bytes).is_ok_and(|count| count > 0) {}
        if self.pauses.swap(false, Ordering::Relaxed) {
            self.is_paused = true;
        }
        if self.resumes.swap(false, Ordering::Relaxed) {
            self.is_paused = false;
        }
        self.ends.load(Ordering::Relaxed)
    }
}
