//! The page of the metrics: the counters of a mount in the OpenMetrics text format.
//!
//! Names follow Prometheus' conventions: base units (seconds, bytes) end them, counters end in
//! `_total`, and every sample of the mount has its mount point as a label, so that the pages of
//! several mounts add up. The ledger counts blocks; here they are bytes. `docs/METRICS.md` lists
//! them, and a test compares the two.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use forerun_core::Ledger;
use forerun_core::engine::view::{DeviceView, StreamView};
use forerun_io::DeviceUse;
use prometheus_client::encoding::text;
use prometheus_client::registry::{Registry, Unit};

use super::family::{Families, Family, Page, Sample, Values, labelled};
use crate::estimate::{Basis, Estimate, device_name};
use crate::read_times::{BOUNDS, Counts};
use crate::report::Watched;

/// The text, as of now. After the end of the mount only the process is left.
pub(super) fn of(watched: &Arc<Watched>) -> String {
    let mount = watched.mountpoint.to_string_lossy().into_owned();
    let labels = [("mount".into(), mount.into())];
    let mut registry = Registry::with_prefix_and_labels("forerun", labels.into_iter());
    registry.register_collector(Box::new(Families(of_mount(watched))));
    let mut process = Registry::with_prefix("process");
    process.register_collector(Box::new(Families(of_process())));
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = text::encode_registry(&mut page, &registry);
    let _ = text::encode_registry(&mut page, &process);
    let _ = text::encode_eof(&mut page);
    page
}

fn of_mount(watched: &Watched) -> Vec<Family> {
    let mut page = Page::default();
    what_runs(&mut page, watched);
    let (Some((ledger, device)), Some((streams, queues))) = (
        watched.fs.engine().counters(),
        watched.fs.engine().under_way(),
    ) else {
        return page.0;
    };
    let unit = u64::from(watched.settings.block_bytes);
    reading(&mut page, &ledger, unit);
    page.0.push(read_durations(&watched.times.counts()));
    prefetching(&mut page, &ledger, unit);
    memory(&mut page, watched, &ledger, unit);
    under_way(&mut page, &streams, unit);
    devices(&mut page, watched, &queues, device);
    page.0
}

fn what_runs(page: &mut Page, watched: &Watched) {
    let of = |labels| vec![Sample { labels, value: 1.0 }];
    let version = ("version", env!("CARGO_PKG_VERSION").to_owned());
    let help = "The version that runs; always 1";
    page.family(false, ("build_info", None), help, of(vec![version]));
    let source = watched.source.to_string_lossy().into_owned();
    let passed = watched.passthrough();
    let labels = vec![
        ("source", source),
        ("preset", watched.preset.to_owned()),
        ("passthrough", passed.mode.name().to_owned()),
    ];
    let help = "The source of the mount, the preset of its engine and which files the kernel reads \
                from the source itself; always 1";
    page.family(false, ("mount_info", None), help, of(labels));
    let uptime = watched.begun.elapsed().as_secs_f64();
    page.gauge_of(
        "uptime",
        Unit::Seconds,
        "Time since the mount began",
        uptime,
    );
    let open = watched.fs.open_files().len() as u64;
    page.gauge("open_files", "Files open on the mount", open);
    let help = "Files of these that the kernel reads from the source itself";
    page.gauge("passthrough_open_files", help, passed.open_files);
    let help = "Times a file was opened so";
    page.counter("passthrough_opens", help, passed.opens);
    let known = watched.fs.known() as u64;
    page.gauge("known_files", "Files that the kernel knows of", known);
}

fn reading(page: &mut Page, ledger: &Ledger, unit: u64) {
    page.parts(
        true,
        "read",
        "Bytes of the blocks that were asked for, by where they were: resident (hit), on the way \
         (late_hit), or neither (miss)",
        "result",
        [
            ("hit", ledger.hits * unit),
            ("late_hit", ledger.late_hits * unit),
            ("miss", ledger.misses * unit),
        ],
    );
    let help = "Time that reads waited for blocks, added up over reads";
    page.seconds("read_stall", help, ledger.stall.0);
    let help = "Bytes fetched because a read asked for them";
    page.bytes("demanded", help, ledger.demanded * unit);
    let help = "Bytes of these whose fetch failed: errors of the source";
    page.bytes("demand_failed", help, ledger.demand_failed * unit);
    let help = "Requests handed to the devices";
    page.counter("fetches", help, ledger.requests);
    let help = "Bytes of all requests handed to the devices";
    page.bytes("fetched", help, ledger.request_bytes.0);
}

fn read_durations(counts: &Counts) -> Family {
    let bounds = BOUNDS.iter().map(Duration::as_secs_f64);
    let bounds = bounds.chain([f64::INFINITY]);
    Family {
        name: "read_duration",
        unit: Some(Unit::Seconds),
        help: "Time from a read request of the kernel to its answer, readahead and failures included",
        values: Values::Histogram(
            bounds.zip(counts.buckets).collect(),
            counts.sum.as_secs_f64(),
        ),
    }
}

fn files_ahead(page: &mut Page, ledger: &Ledger, unit: u64) {
    let help = "Files opened ahead of the programs that walk their folder";
    page.counter("files_ahead", help, ledger.files_ahead);
    let ended = [
        ("used", ledger.files_ahead_used),
        ("wasted", ledger.files_ahead_wasted),
    ];
    let samples = ended.map(|(outcome, count)| labelled("outcome", outcome, count));
    let help = "Of these, those of which a program read bytes that were fetched (used) and those closed without (wasted)";
    page.family(true, ("files_ahead_ended", None), help, samples.into());
    let help = "Bytes fetched of files opened ahead that were unread when those were closed";
    page.bytes("files_ahead_unread", help, ledger.files_ahead_unread * unit);
}

fn prefetching(page: &mut Page, ledger: &Ledger, unit: u64) {
    let help = "Bytes fetched before they were asked for";
    page.bytes("prefetched", help, ledger.prefetched * unit);
    page.parts(
        true,
        "prefetch_ended",
        "Bytes of these, by how they ended: read (used), given up before they were read \
         (evicted_unused), errors of the source (failed), or called off because their reader left \
         or their file changed (cancelled, which is healthy)",
        "outcome",
        [
            ("used", ledger.used * unit),
            ("evicted_unused", ledger.evicted_unused * unit),
            ("failed", ledger.failed * unit),
            ("cancelled", ledger.cancelled * unit),
        ],
    );
    page.parts(
        false,
        "prefetch_pending",
        "Bytes of these that are on the way (in_flight), or in memory and not read yet (resident)",
        "state",
        [
            ("in_flight", ledger.in_flight * unit),
            ("resident", ledger.resident_unused * unit),
        ],
    );
    let help = "Windows that were decided: runs to be fetched ahead";
    page.counter("windows", help, ledger.windows);
    files_ahead(page, ledger, unit);
    let help = "References that were announced";
    page.counter("hints", help, ledger.hints);
    let ended = [
        ("read", ledger.hints_read),
        ("missed", ledger.hints_missed),
        ("dropped", ledger.hints_dropped),
    ];
    let samples = ended.map(|(outcome, count)| labelled("outcome", outcome, count));
    let help = "Announced references, by how they ended";
    page.family(true, ("hints_ended", None), help, samples.into());
}

fn memory(page: &mut Page, watched: &Watched, ledger: &Ledger, unit: u64) {
    let limit = watched
        .fs
        .engine()
        .memory_limit()
        .unwrap_or(watched.settings.memory);
    let limit = (limit.0 + watched.budget.beside().0) as f64;
    let help = "Memory that the daemon may use now";
    page.gauge_of("memory_limit", Unit::Bytes, help, limit);
    let help = "Most memory that the engine has held at once, its bookkeeping included";
    page.gauge_of(
        "engine_memory_peak",
        Unit::Bytes,
        help,
        ledger.memory_peak.0 as f64,
    );
    let help = "Bytes given up to make room, or dropped because their file changed";
    page.bytes("evicted", help, ledger.evicted * unit);
    let help = "Bytes given up before their reader came, and fetched again: memory is short";
    page.bytes("thrashed", help, ledger.thrashed * unit);
    let help = "Prefetches that were cut or refused for want of memory";
    page.counter("prefetches_refused", help, ledger.refused_prefetches);
    let help = "Reads that waited for memory";
    page.counter("memory_waits", help, ledger.memory_waits);
}

fn under_way(page: &mut Page, streams: &[StreamView], unit: u64) {
    let help = "Runs that are fetched ahead";
    page.gauge("streams", help, streams.len() as u64);
    let ahead: u64 = streams.iter().map(|stream| stream.ahead).sum();
    let help = "Bytes fetched or on the way that no reader has come to";
    page.gauge_of("streams_ahead", Unit::Bytes, help, (ahead * unit) as f64);
    let waiting: u64 = streams.iter().map(|stream| u64::from(stream.waiting)).sum();
    let help = "Requests of the kernel that wait for bytes of a stream";
    page.gauge("reads_waiting", help, waiting);
}

fn devices(
    page: &mut Page,
    watched: &Watched,
    queues: &[(Option<u64>, DeviceView)],
    emulated: Option<DeviceUse>,
) {
    let of = |value: fn(&DeviceView) -> u64| {
        let sample = |(number, view): &(Option<u64>, DeviceView)| {
            labelled("device", &device_name(*number), value(view))
        };
        queues.iter().map(sample).collect()
    };
    let help = "Requests that wait in the engine for their turn, by device";
    let queued = of(|view| view.queued as u64);
    page.family(false, ("fetches_queued", None), help, queued);
    let help = "Requests that a device is working on";
    let in_flight = of(|view| view.in_flight.into());
    page.family(false, ("fetches_in_flight", None), help, in_flight);
    estimates(page, watched, queues);
    let Some(used) = emulated else { return };
    let help = "Requests that the emulated device carried out";
    page.counter("emulated_requests", help, used.requests);
    let help = "Bytes that the emulated device transferred";
    page.bytes("emulated", help, used.bytes.0);
    let help = "Time that the emulated device was busy";
    page.seconds("emulated_busy", help, used.busy.0);
}

/// The costs of each device as the engine takes them to be.
fn estimates(page: &mut Page, watched: &Watched, queues: &[(Option<u64>, DeviceView)]) {
    let estimate = |queue: &(Option<u64>, DeviceView)| {
        (device_name(queue.0), watched.fs.engine().estimate(queue))
    };
    let estimates: Vec<(String, Estimate)> = queues.iter().map(estimate).collect();
    let of = |value: fn(&Estimate) -> Option<f64>| {
        let sample = |(device, estimate): &(String, Estimate)| {
            let labels = vec![("device", device.clone())];
            value(estimate).map(|value| Sample { labels, value })
        };
        estimates.iter().filter_map(sample).collect()
    };
    let help = "Time a device is taken to need before it transfers from somewhere else";
    let switching = of(|estimate| Some(estimate.switching_ns as f64 / 1e9));
    let named = ("device_switching", Some(Unit::Seconds));
    page.family(false, named, help, switching);
    let help = "Transfer rate a device is taken to have";
    let rate = of(|estimate| Some(estimate.rate_bytes_per_second as f64));
    let unit = Unit::Other("bytes_per_second".into());
    page.family(false, ("device_rate", Some(unit)), help, rate);
    let help =
        "Requests a device is taken to work on at once; no sample as long as that is not known";
    let servers = of(|estimate| estimate.servers.map(f64::from));
    page.family(false, ("device_servers", None), help, servers);
    let help =
        "Completed requests that these estimates rest on; 0 if they are a profile or a guess";
    let requests = of(|estimate| Some(estimate.requests as f64));
    page.family(true, ("device_estimate_requests", None), help, requests);
    let help = "Origin of a device's switching cost, transfer rate and number of servers: completed \
                requests, told, system, assumed or unknown; always 1";
    let origins = estimates.iter().map(|(device, estimate)| {
        let from = estimate.from.unwrap_or_default();
        let labels = vec![
            ("device", device.clone()),
            ("switching", from.switching.word().to_owned()),
            ("rate", from.rate.word().to_owned()),
            (
                "servers",
                from.servers.map_or("unknown", Basis::word).to_owned(),
            ),
        ];
        Sample { labels, value: 1.0 }
    });
    page.family(
        false,
        ("device_estimate_info", None),
        help,
        origins.collect(),
    );
}

/// Values of every process, under the names Prometheus' own libraries use; those that the kernel
/// does not give are left out.
fn of_process() -> Vec<Family> {
    let mut page = Page::default();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse::<u64>().ok()
    };
    if let Some(kib) = field("VmRSS:") {
        let help = "Resident memory, the program's own code included";
        page.gauge_of("resident_memory", Unit::Bytes, help, (kib << 10) as f64);
    }
    if let Some(threads) = field("Threads:") {
        page.gauge("threads", "Threads of the daemon", threads);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        page.gauge("open_fds", "Open descriptors", open.count() as u64);
    }
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    if let Some(most) = limit.current {
        page.gauge("max_fds", "Descriptors that may be open", most);
    }
    page.0
}
