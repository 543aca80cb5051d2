//! The page of a mount's metrics: its counters in the OpenMetrics text format.
//!
//! Families that a watch has, too, are in [`page`]; `docs/METRICS.md` lists all, and a test compares the two.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use forerun_core::Ledger;
use forerun_core::engine::view::{DeviceView, StreamView};
use forerun_io::DeviceUse;
use forerun_surface::daemon::metrics::family::{Family, Page, Sample, Values, labelled};
use forerun_surface::daemon::metrics::{Metrics, page};
use prometheus_client::registry::Unit;

use crate::failure::Failure;
use crate::read_times::{BOUNDS, Counts};
use crate::report::Watched;

/// Serves them at this address.
///
/// # Errors
/// The address is taken, or not this machine's.
pub fn start(address: SocketAddr, watched: Arc<Watched>) -> Result<Metrics, Failure> {
    Metrics::start(address, move || Some(of(&watched)))
}

/// The text, as of now. After the end of the mount only the process is left.
fn of(watched: &Watched) -> String {
    let mount = watched.mountpoint.to_string_lossy().into_owned();
    page::text_of(("mount", mount), of_mount(watched))
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
    page::reading(&mut page, &ledger, unit);
    page.0.push(read_durations(&watched.times.counts()));
    page::prefetching(&mut page, &ledger, unit);
    memory(&mut page, watched, &ledger, unit);
    under_way(&mut page, &streams, unit);
    let waiting = watched.fs.engine().reads_waiting();
    let help = "Requests of the kernel that wait for bytes";
    page.gauge("reads_waiting", help, waiting as u64);
    devices(&mut page, watched, &queues, device);
    page.0
}

fn what_runs(page: &mut Page, watched: &Watched) {
    let of = |labels| vec![Sample { labels, value: 1.0 }];
    page::build(page);
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
    let help = "Times a file was opened in passthrough";
    page.counter("passthrough_opens", help, passed.opens);
    let known = watched.fs.known() as u64;
    page.gauge("known_files", "Files that the kernel knows of", known);
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
}

fn devices(
    page: &mut Page,
    watched: &Watched,
    queues: &[(Option<u64>, DeviceView)],
    emulated: Option<DeviceUse>,
) {
    let names = watched.fs.engine().device_names(queues);
    let of = |value: fn(&DeviceView) -> u64| {
        let views = queues.iter().map(|(_, view)| view);
        let views = names.iter().zip(views);
        views
            .map(|(name, view)| labelled("device", name, value(view)))
            .collect()
    };
    let help = "Requests that wait in the engine for their turn, by device";
    let queued = of(|view| view.queued as u64);
    page.family(false, ("fetches_queued", None), help, queued);
    let help = "Requests that a device is working on";
    let in_flight = of(|view| view.in_flight.into());
    page.family(false, ("fetches_in_flight", None), help, in_flight);
    let estimates = queues
        .iter()
        .map(|queue| watched.fs.engine().estimate(queue));
    page::estimates(
        page,
        &names.iter().cloned().zip(estimates).collect::<Vec<_>>(),
    );
    let Some(used) = emulated else { return };
    let help = "Requests that the emulated device carried out";
    page.counter("emulated_requests", help, used.requests);
    let help = "Bytes that the emulated device transferred";
    page.bytes("emulated", help, used.bytes.0);
    let help = "Time that the emulated device was busy";
    page.seconds("emulated_busy", help, used.busy.0);
}
