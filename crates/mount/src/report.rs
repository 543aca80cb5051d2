//! The state of a running mount: for the control socket, the metrics and `top`.
//!
//! Filled from the file system and the engine's ledger for each request; nothing is sampled in
//! between.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use forerun_core::engine::view::{DeviceView, StreamView};
use forerun_core::{Bytes, Ledger, Settings};
use forerun_io::{DeviceUse, Reader};
pub use forerun_surface::daemon::report::*;
use forerun_surface::daemon::status;

use super::budget::Budget;
use super::control::Answer;
use super::mounted::Mounted;
use super::read_times::ReadTimes;
use super::readahead;
use super::record::Recorder;
use crate::stats;

/// A mount and its options.
#[derive(Debug)]
pub struct Watched {
    /// Its file system.
    pub fs: Arc<dyn Mounted>,
    /// Times of its reads.
    pub times: Arc<ReadTimes>,
    /// Its source.
    pub source: PathBuf,
    /// The mount point.
    pub mountpoint: PathBuf,
    /// The device of the mount, once it is mounted.
    pub device: OnceLock<(u32, u32)>,
    /// The preset of its engine.
    pub preset: &'static str,
    /// The settings of its engine.
    pub settings: Settings,
    /// How its memory is divided.
    pub budget: Budget,
    /// Time of its start.
    pub begun: Instant,
    /// The record of its reads, if there is one.
    pub record: Option<Arc<Recorder>>,
}

impl Watched {
    /// The device of the mount, once it is mounted.
    #[must_use]
    pub fn device(&self) -> Option<(u32, u32)> {
        self.device.get().copied()
    }

    /// Its counters so far; none once it has ended.
    #[must_use]
    pub fn report(&self) -> Option<Report> {
        let (ledger, device) = self.fs.engine().counters()?;
        let (streams, queues) = self.fs.engine().under_way()?;
        Some(Report {
            source: self.source.to_string_lossy().into_owned(),
            mountpoint: self.mountpoint.to_string_lossy().into_owned(),
            elapsed_ns: u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX),
            block_bytes: u64::from(self.settings.block_bytes),
            counters: counters(&ledger),
            known_files: self.fs.known(),
            passthrough: self.passthrough(),
            open_files: self.open_files(&streams),
            device: device.map(|used| device_report(&used)),
            journal_error: self
                .fs
                .engine()
                .journal_error()
                .map(|error| error.to_string()),
            record: self.record.as_ref().map(|record| record.report()),
            queues: self.queues(&queues),
            watch: None,
        })
    }

    /// Which files the kernel reads from the source.
    #[must_use]
    pub fn passthrough(&self) -> PassthroughReport {
        let passthrough = self.fs.passthrough();
        let open = self.fs.open_files();
        PassthroughReport {
            mode: passthrough.mode(),
            possible: passthrough.is_possible(),
            open_files: open.iter().filter(|file| file.passthrough).count() as u64,
            opens: passthrough.opens(),
        }
    }

    fn open_files(&self, streams: &[StreamView]) -> Vec<OpenFileReport> {
        let unit = u64::from(self.settings.block_bytes);
        let report = |file: Arc<super::open_file::OpenFile>| {
            let (requests, read_bytes, at_bytes) = file.counts();
            let (process, program) = process_of(file.thread);
            let reader = file.reader();
            let mine = |view: &&StreamView| reader.is_some_and(|r| view.reader == r.id());
            let streams = streams.iter().filter(mine);
            OpenFileReport {
                path: self.fs.path(file.node).to_string_lossy().into_owned(),
                number: file.number,
                process,
                program,
                file_bytes: reader.map_or(file.size, Reader::size),
                passthrough: file.passthrough,
                requests,
                read_bytes,
                at_bytes,
                streams: streams.map(|view| stream_report(view, unit)).collect(),
            }
        };
        self.fs.open_files().into_iter().map(report).collect()
    }

    fn queues(&self, devices: &[(Option<u64>, DeviceView)]) -> Vec<QueueReport> {
        let engine = self.fs.engine();
        let names = engine.device_names(devices).into_iter();
        let report = |(device, queue): (String, &(Option<u64>, DeviceView))| QueueReport {
            device,
            queued: queue.1.queued,
            in_flight: queue.1.in_flight,
            estimate: Some(engine.estimate(queue)),
        };
        names.zip(devices).map(report).collect()
    }

    /// Lets the daemon use this much memory from now on.
    ///
    /// # Errors
    /// Out of range, or the mount has ended; in words.
    pub fn limit_memory(&self, memory: Bytes) -> Result<(), Answer> {
        let engine = self.budget.engine_within(memory, &self.settings);
        let engine = engine.map_err(Answer::Refused)?;
        let limited = self.fs.engine().limit_memory(engine);
        limited.map_err(Answer::Error)
    }

    /// Its limits.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let engine = self
            .fs
            .engine()
            .memory_limit()
            .unwrap_or(self.settings.memory);
        Limits {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            preset: self.preset.to_owned(),
            memory_bytes: self.budget.whole.0,
            memory_limit_bytes: engine.0 + self.budget.beside().0,
            engine_limit_bytes: engine.0,
            kernel_readahead_bytes: readahead::get(self.device()).ok().map(|b| b.0),
        }
    }
}

/// The process of a thread, and the name of its program: FUSE tells threads.
fn process_of(thread: u32) -> (u32, String) {
    let status = status::of(thread);
    let field = |name| status::field(&status, name).unwrap_or_default();
    let process = field("Tgid:").parse().unwrap_or(thread);
    (process, field("Name:").to_owned())
}

fn counters(ledger: &Ledger) -> serde_json::Map<String, serde_json::Value> {
    let named = stats::counters(ledger).into_iter();
    named
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect()
}

fn stream_report(view: &StreamView, unit: u64) -> StreamReport {
    StreamReport {
        begin_bytes: u64::from(view.begin.0) * unit,
        at_bytes: u64::from(view.at.0) * unit,
        ahead_bytes: view.ahead * unit,
        window_at_bytes: u64::from(view.window.start.0) * unit,
        window_bytes: u64::from(view.window.size) * unit,
        window_async_bytes: u64::from(view.window.async_size) * unit,
        waiting: view.waiting,
    }
}

fn device_report(used: &DeviceUse) -> DeviceReport {
    DeviceReport {
        requests: used.requests,
        bytes: used.bytes.0,
        busy_ns: used.busy.0,
    }
}
