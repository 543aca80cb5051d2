//! Families that mounts and watches have in common: reads, windows, devices, the process.
//!
//! Names follow Prometheus' conventions: base units (seconds, bytes) end them, counters end in `_total`, and every sample
//! of a daemon has its place as a label, so that the pages of several add up. The ledger counts blocks; here they
//! are bytes. `docs/METRICS.md` lists them, and tests compare the two.

use std::fs;

use forerun_core::Ledger;
use prometheus_client::encoding::text;
use prometheus_client::registry::{Registry, Unit};

use super::family::{Families, Family, Page, Sample, labelled};
use crate::daemon::status;
use crate::estimate::{Basis, Estimate};

/// The text of a daemon's families, each sample of which has this label, and of its process.
#[must_use]
pub fn text_of((label, value): (&'static str, String), families: Vec<Family>) -> String {
    let labels = [(label.into(), value.into())];
    let mut registry = Registry::with_prefix_and_labels("forerun", labels.into_iter());
    registry.register_collector(Box::new(Families(families)));
    let mut process = Registry::with_prefix("process");
    process.register_collector(Box::new(Families(of_process())));
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = text::encode_registry(&mut page, &registry);
    let _ = text::encode_registry(&mut page, &process);
    let _ = text::encode_eof(&mut page);
    page
}

/// The version that runs.
pub fn build(page: &mut Page) {
    let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
    let sample = Sample {
        labels: version,
        value: 1.0,
    };
    let help = "The version that runs; always 1";
    page.family(false, ("build_info", None), help, vec![sample]);
}

/// Bytes that were asked for, and fetched for that.
pub fn reading(page: &mut Page, ledger: &Ledger, unit: u64) {
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

/// Windows: asked for, read, given up.
pub fn prefetching(page: &mut Page, ledger: &Ledger, unit: u64) {
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

/// The costs of each device as they are taken to be.
pub fn estimates(page: &mut Page, estimates: &[(String, Estimate)]) {
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
    let status = status::of_self();
    let field = |name: &str| {
        let value = status::field(&status, name)?;
        value.split_ascii_whitespace().next()?.parse::<u64>().ok()
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
