//! The counters of a mount for Prometheus, over HTTP.
//!
//! One thread answers `GET /metrics` in the OpenMetrics text format; everything is read when it is
//! asked for. The names are the ledger's with `forerun_` before them and, where they only grow,
//! `_total` behind.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use tiny_http::{Header, Response, Server};

use super::report::{Report, StreamReport, Watched};
use crate::failure::Failure;

/// What the text is.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Counters that go down again, or are the most so far.
const GAUGES: &[&str] = &["resident_unused", "in_flight", "memory_peak_bytes"];

/// The metrics of a running mount. They end with the process.
#[derive(Debug)]
pub struct Metrics {
    _address: SocketAddr,
}

impl Metrics {
    /// Serves them at this address.
    ///
    /// # Errors
    /// The address is taken, or not this machine's.
    pub fn start(address: SocketAddr, watched: Arc<Watched>) -> Result<Self, Failure> {
        let refused = |e: &dyn fmt::Display| Failure::Usage(format!("--metrics {address}: {e}"));
        let server = Server::http(address).map_err(|e| refused(&e))?;
        let mut registry = Registry::with_prefix("forerun");
        registry.register_collector(Box::new(Reports(watched)));
        let serve = move || {
            for request in server.incoming_requests() {
                let known = request.url() == "/metrics";
                let sent = if known {
                    request.respond(page(&registry))
                } else {
                    request.respond(none())
                };
                if let Err(error) = sent {
                    tracing::debug!("metrics: {error}");
                }
            }
        };
        let thread = thread::Builder::new()
            .name("forerun-metrics".into())
            .spawn(serve);
        thread.map_err(|e| refused(&e))?;
        Ok(Self { _address: address })
    }
}

type Page = Response<std::io::Cursor<Vec<u8>>>;

fn page(registry: &Registry) -> Page {
    let mut body = String::new();
    // Writing to a string does not fail.
    let _ = text::encode(&mut body, registry);
    let page = Response::from_string(body);
    match Header::from_bytes("Content-Type", CONTENT_TYPE) {
        Ok(header) => page.with_header(header),
        Err(()) => page,
    }
}

fn none() -> Page {
    Response::from_string("the counters are at /metrics\n").with_status_code(404)
}

/// Reads a report when it is asked for.
#[derive(Debug)]
struct Reports(Arc<Watched>);

impl Collector for Reports {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(report) = self.0.report() else {
            return Ok(());
        };
        for (name, help, value, grows) in values(&report) {
            if grows {
                let counter = ConstCounter::new(value);
                let kind = counter.metric_type();
                counter.encode(encoder.encode_descriptor(&name, &help, None, kind)?)?;
            } else {
                let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
                let kind = gauge.metric_type();
                gauge.encode(encoder.encode_descriptor(&name, &help, None, kind)?)?;
            }
        }
        Ok(())
    }
}

/// Name, help, value, and whether it only grows.
fn values(report: &Report) -> Vec<(String, String, u64, bool)> {
    let ledger = report.counters.iter().map(|(name, value)| {
        let help = format!("{name} of the engine's ledger");
        let grows = !GAUGES.contains(&name.as_str());
        (name.clone(), help, value.as_u64().unwrap_or(0), grows)
    });
    let mut values: Vec<_> = ledger.collect();
    let mut add = |name: &str, help: &str, value, grows| {
        values.push((name.to_owned(), help.to_owned(), value, grows));
    };
    add(
        "elapsed_ns",
        "Time since the mount began",
        report.elapsed_ns,
        true,
    );
    add(
        "open_files",
        "Files open on the mount",
        report.open_files.len() as u64,
        false,
    );
    add(
        "known_files",
        "Files the kernel knows of",
        report.known_files as u64,
        false,
    );
    let streams = || report.open_files.iter().flat_map(|file| &file.streams);
    let sum = |of: fn(&StreamReport) -> u64| streams().map(of).sum::<u64>();
    add(
        "streams",
        "Runs that are fetched ahead",
        streams().count() as u64,
        false,
    );
    add(
        "streams_ahead_bytes",
        "Bytes fetched or on the way that no reader has come to",
        sum(|stream| stream.ahead_bytes),
        false,
    );
    add(
        "streams_waiting",
        "Requests of the kernel that wait for bytes of a stream",
        sum(|stream| stream.waiting.into()),
        false,
    );
    let queued = report.queues.iter().map(|queue| queue.queued as u64);
    add(
        "requests_queued",
        "Fetches that wait for their turn",
        queued.sum(),
        false,
    );
    let in_flight = report.queues.iter().map(|queue| u64::from(queue.in_flight));
    add(
        "requests_in_flight",
        "Fetches devices are working on",
        in_flight.sum(),
        false,
    );
    if let Some(device) = &report.device {
        add(
            "device_requests",
            "Requests of the emulated device",
            device.requests,
            true,
        );
        add(
            "device_bytes",
            "Bytes the emulated device transferred",
            device.bytes,
            true,
        );
        add(
            "device_busy_ns",
            "Time the emulated device was busy",
            device.busy_ns,
            true,
        );
    }
    values
}
