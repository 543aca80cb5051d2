//! The state of a watch as its users see it: the report of the control socket and of `top`, and the metrics.
//!
//! The report is a mount's where both have the same: counters of the engines, disks with their costs, and one open
//! file for each stream that is steered. Made when it is asked for; paths and names of programs are read then.

use std::path::Path;

use forerun_core::Ledger;
use forerun_steering::events::FileKey;
use forerun_surface::daemon::metrics::family::{Page, Sample};
use forerun_surface::daemon::metrics::page;
use forerun_surface::daemon::report::{
    FileSystemReport, Limits, NotSteeredReport, OpenFileReport, QueueReport, Report, StreamReport,
    WatchReport,
};
use forerun_surface::estimate::{Basis, Estimate};
use forerun_surface::stats;
use prometheus_client::registry::Unit;

use crate::asked::Told;
use crate::descriptors;
use crate::disks::Disks;
use crate::kernel::path_of;
use crate::limit::PAGE_KIB;
use crate::process;
use crate::streams::{Steered, Stream};
use crate::watch::Watch;
use crate::windows::{BLOCK_BYTES, PAGE_BYTES};

impl Watch {
    /// Its state now.
    pub(crate) fn told(&mut self) -> Told {
        let ledger = self.ledger();
        let counters = stats::counters(&ledger).into_iter();
        let queues = self.steering.disks.iter().flat_map(queues);
        let mut queues: Vec<QueueReport> = queues.collect();
        // Two file systems of one disk.
        queues.sort_by(|one, other| one.device.cmp(&other.device));
        queues.dedup_by(|one, other| one.device == other.device);
        let paths: Vec<String> = self.paths.iter().map(|path| text(path)).collect();
        let sources = self
            .file_systems
            .iter()
            .map(|of| format!("{} {}", of.at.kind, of.at.bdi));
        let steered = self.steering.streams.iter();
        let steered = steered.filter(|(_, stream)| matches!(stream.steered, Steered::By { .. }));
        let open_files = steered
            .map(|(key, stream)| open_file(key, stream))
            .collect::<Vec<_>>();
        let report = Report {
            source: sources.collect::<Vec<_>>().join(", "),
            mountpoint: paths.first().cloned().unwrap_or_default(),
            elapsed_ns: self.since_start(self.now()).0,
            block_bytes: BLOCK_BYTES.into(),
            counters: counters
                .map(|(name, value)| (name.to_owned(), value.into()))
                .collect(),
            known_files: open_files.len(),
            passthrough: Default::default(),
            open_files,
            device: None,
            journal_error: self.journal_error.clone(),
            record: None,
            queues,
            watch: Some(self.beside(paths)),
        };
        let limits = self.limits();
        Told {
            report,
            limits,
            ledger,
        }
    }

    /// Memory that is reckoned with, and the readahead of the first file system.
    fn limits(&mut self) -> Limits {
        let told = self
            .steering
            .engines
            .iter()
            .map(|engine| engine.windows.memory().0);
        let told = told.reduce(u64::saturating_add);
        let memory = self.steering.settings().memory.0;
        let own = self.file_systems.first();
        let own = own.and_then(|of| self.own_limit(of));
        Limits {
            version: env!("CARGO_PKG_VERSION").into(),
            preset: forerun_core::preset::default().name.into(),
            memory_bytes: memory,
            memory_limit_bytes: told.unwrap_or(memory),
            engine_limit_bytes: told.unwrap_or(memory),
            kernel_readahead_bytes: own.map(|pages| u64::from(pages * PAGE_KIB) << 10),
        }
    }

    /// The counters of all engines.
    pub(crate) fn ledger(&self) -> Ledger {
        stats::sum(
            self.steering
                .engines
                .iter()
                .map(|engine| engine.windows.ledger()),
        )
    }

    fn beside(&mut self, paths: Vec<String>) -> WatchReport {
        let steering = &self.steering;
        let file_systems = self.file_systems.iter().enumerate();
        let file_systems = file_systems.map(|(at, of)| FileSystemReport {
            point: text(&of.at.point),
            kind: of.at.kind.clone(),
            bdi: of.at.bdi.clone(),
            read_ahead_bytes: self
                .own_limit(of)
                .map(|pages| u64::from(pages * PAGE_KIB) << 10),
            is_fair: steering.is_fair(at),
        });
        let file_systems = file_systems.collect();
        let not_steered = self
            .causes
            .by_process()
            .into_iter()
            .map(|of| NotSteeredReport {
                cause: of.cause.to_string(),
                process: of.process,
                program: of.program,
                bytes: of.bytes,
            });
        let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let (counts, steered) = (&self.counts, &self.steering.counts);
        WatchReport {
            paths,
            is_dry: self.is_dry,
            is_paused: self.is_paused(),
            seeing: self.seeing().into(),
            events: counts.events,
            events_lost: counts.lost,
            streams: self.steering.streams.count() as u64,
            streams_begun: steered.streams,
            missed_bytes: steered.bytes + counts.unknown_bytes,
            limits_set: counts.set,
            setting_ns: nanos(counts.setting),
            limits_spared: counts.spared,
            held_most_ns: nanos(counts.held_most),
            pages_lost: steered.thrashed,
            not_steered: not_steered.collect(),
            file_systems,
        }
    }
}

/// Each disk with its costs and the requests that it works on.
fn queues(disks: &Disks) -> impl Iterator<Item = QueueReport> {
    disks
        .each()
        .map(|(number, in_flight, measure)| QueueReport {
            device: format!("{}:{}", number >> 20, number & 0xf_ffff),
            queued: 0,
            in_flight: u32::try_from(in_flight).unwrap_or(u32::MAX),
            estimate: Some(Estimate::new(
                measure.profile(),
                measure.confidence(),
                Basis::System,
            )),
        })
}

/// A stream, as the open file that it reads.
fn open_file(key: FileKey, stream: &Stream) -> OpenFileReport {
    let is_there = descriptors::is_of(stream.process, stream.number, key.inode);
    let path = match is_there {
        true => text(&path_of(stream.process, stream.number)),
        false => format!("inode {}", key.inode),
    };
    let at = stream.last.saturating_mul(PAGE_BYTES);
    let window = u64::from(stream.window) * PAGE_BYTES;
    OpenFileReport {
        path,
        number: u64::try_from(stream.number).unwrap_or_default(),
        process: stream.process,
        program: process::name_of(stream.process).unwrap_or_default(),
        file_bytes: stream.pages.saturating_mul(PAGE_BYTES),
        requests: stream.events,
        read_bytes: (stream.last - stream.first).saturating_mul(PAGE_BYTES),
        at_bytes: at,
        passthrough: false,
        streams: vec![StreamReport {
            begin_bytes: stream.first.saturating_mul(PAGE_BYTES),
            at_bytes: at,
            // The kernel keeps the window that is read and the one behind its mark.
            ahead_bytes: window,
            window_at_bytes: at,
            window_bytes: window,
            window_async_bytes: window,
            waiting: 0,
        }],
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The page of the metrics.
pub(crate) fn metrics(told: &Told) -> String {
    let mut page = Page::default();
    let Told { report, ledger, .. } = told;
    let watch = report.watch.clone().unwrap_or_default();
    page::build(&mut page);
    let labels = vec![
        ("source", report.source.clone()),
        ("seeing", watch.seeing.clone()),
    ];
    let sample = Sample { labels, value: 1.0 };
    let help = "The file systems of the watch and the events that tell of reads; always 1";
    page.family(false, ("watch_info", None), help, vec![sample]);
    let uptime = report.elapsed_ns as f64 / 1e9;
    page.gauge_of(
        "uptime",
        Unit::Seconds,
        "Time since the watch began",
        uptime,
    );
    let help = "Whether it sets nothing for now: paused, or a dry run";
    let is_paused = watch.is_paused || watch.is_dry;
    page.gauge("watch_paused", help, is_paused.into());
    page.counter("watch_events", "Events of the page cache", watch.events);
    let help = "Events that did not fit the ring";
    page.counter("watch_events_lost", help, watch.events_lost);
    page.gauge("watch_streams", "Streams that are followed", watch.streams);
    let help =
        "Bytes of the windows that were seen, which the kernel fetched because they were missing";
    page.bytes("watch_missed", help, watch.missed_bytes);
    not_steered(&mut page, &watch);
    let help = "Limits of open files that were set";
    page.counter("watch_limits_set", help, watch.limits_set);
    page.seconds(
        "watch_setting",
        "Time that it took to set them",
        watch.setting_ns,
    );
    let help = "Limits that would have been set, but for a pause or a dry run";
    page.counter("watch_limits_spared", help, watch.limits_spared);
    let help = "Pages that were read ahead and gone when their reader came: memory is short";
    page.counter("watch_pages_lost", help, watch.pages_lost);
    let fair = watch.file_systems.iter().filter(|of| of.is_fair);
    let help = "File systems whose disks have a fair scheduler for a while, for many readers";
    page.gauge("watch_fair_schedulers", help, fair.count() as u64);
    page::reading(&mut page, ledger, report.block_bytes);
    page::prefetching(&mut page, ledger, report.block_bytes);
    let disks = report.queues.iter();
    let disks = disks.map(|disk| {
        (
            disk.device.clone(),
            disk.estimate.clone().unwrap_or_default(),
        )
    });
    page::estimates(&mut page, &disks.collect::<Vec<_>>());
    let label = report.watch.as_ref().map(|watch| watch.paths.join(" "));
    page::text_of(("watch", label.unwrap_or_default()), page.0)
}

/// By cause alone: processes come and go, and each would be a series for good.
fn not_steered(page: &mut Page, watch: &WatchReport) {
    let mut samples: Vec<Sample> = Vec::new();
    for of in &watch.not_steered {
        let bytes = of.bytes as f64;
        let labels = vec![("cause", of.cause.clone())];
        match samples.iter_mut().find(|own| own.labels == labels) {
            Some(own) => own.value += bytes,
            None => samples.push(Sample {
                labels,
                value: bytes,
            }),
        }
    }
    let help = "Bytes of these that could not be steered, by cause";
    page.family(
        true,
        ("watch_not_steered", Some(Unit::Bytes)),
        help,
        samples,
    );
}
