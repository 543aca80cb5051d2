//! The dashboard and the alerts of `packaging/monitoring` are made for the metrics there are, and a Prometheus that
//! scrapes a mount has an answer for every panel.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::metrics::get;
use super::port::address;
use super::{Mounted, bytes, eventually, folder, skipped};

/// Seconds between two scrapes, and over which a rate is taken, in the place of Grafana's own.
const SCRAPE: u32 = 1;
const RATE: &str = "15s";

fn file(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/monitoring");
    folder.join(name)
}

fn text(name: &str) -> String {
    fs::read_to_string(file(name)).unwrap()
}

/// The queries of the panels, with their titles.
fn panels() -> Vec<(String, String)> {
    let dashboard: Value = serde_json::from_str(&text("forerun-dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let queries = panels.flat_map(|panel| {
        let targets = panel["targets"].as_array().into_iter().flatten();
        let title = panel["title"].as_str().unwrap().to_owned();
        targets.map(move |target| (title.clone(), target["expr"].as_str().unwrap().to_owned()))
    });
    queries.collect()
}

/// The names of metrics in a query or a page.
fn metrics(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let ours = words.filter(|word| word.starts_with("forerun_") || word.starts_with("process_"));
    ours.map(str::to_owned).collect()
}

#[test]
fn dashboard_and_alerts_name_metrics_that_there_are() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/METRICS.md");
    let mut served = metrics(&fs::read_to_string(pages).unwrap());
    for end in ["bucket", "count", "sum"] {
        served.insert(format!("forerun_read_duration_seconds_{end}"));
    }
    let queries: Vec<_> = panels().into_iter().map(|(_, query)| query).collect();
    assert!(queries.len() > 20, "{queries:?}");
    for text in queries.into_iter().chain([text("forerun.rules.yml")]) {
        let unknown: Vec<_> = metrics(&text).difference(&served).cloned().collect();
        assert!(unknown.is_empty(), "{unknown:?} of {text}");
    }
}

#[test]
fn prometheus_accepts_the_alerts() {
    let check = Command::new("promtool")
        .args(["check", "rules"])
        .arg(file("forerun.rules.yml"))
        .output();
    let Ok(check) = check else {
        return skipped("no promtool: it comes with Debian's package prometheus");
    };
    assert!(check.status.success(), "{check:?}");
}

/// A Prometheus that scrapes one mount, ended when it is dropped.
struct Prometheus(Child);

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Prometheus {
    /// None where it is not installed.
    fn scraping(target: SocketAddr, own: SocketAddr, below: &Path) -> Option<Self> {
        let mut settings = format!("global: {{scrape_interval: {SCRAPE}s}}\nscrape_configs:\n");
        let _ = writeln!(
            settings,
            "  - {{job_name: forerun, static_configs: [{{targets: [\"{target}\"]}}]}}"
        );
        fs::write(below.join("prometheus.yml"), settings).unwrap();
        let child = Command::new("prometheus")
            .arg("--config.file=prometheus.yml")
            .arg("--storage.tsdb.path=data")
            .arg(format!("--web.listen-address={own}"))
            .current_dir(below)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        child.ok().map(Self)
    }
}

/// Whether a query has a series; of a server that is not up yet, it has none.
fn has_series(own: SocketAddr, query: &str) -> bool {
    let mut path = "/api/v1/query?query=".to_owned();
    for byte in query.bytes() {
        let _ = write!(path, "%{byte:02X}");
    }
    if TcpStream::connect(own).is_err() {
        return false;
    }
    let answer = get(own, &path);
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let Ok(answer) = serde_json::from_str::<Value>(body) else {
        return false;
    };
    assert_ne!(answer["status"], "error", "{query}: {answer}");
    answer["data"]["result"]
        .as_array()
        .is_some_and(|series| !series.is_empty())
}

#[test]
fn every_panel_has_a_series_of_a_mount_that_is_read() {
    let folder = folder();
    let (of_mount, own) = (address(), address());
    let port = of_mount.port().to_string();
    let source = folder.path().join("source");
    let below = tempfile::tempdir().unwrap();
    let flags = ["--metrics", &port, "--passthrough", "never"];
    let Some(mounted) = Mounted::of(folder, &flags) else {
        return;
    };
    let Some(_prometheus) = Prometheus::scraping(of_mount, own, below.path()) else {
        return skipped("no prometheus: Debian's package prometheus has it");
    };
    let mut left = panels();
    let mut number = 0;
    eventually("each panel has a series", || {
        // A rate counts the last seconds, and bytes that the kernel has are not asked for.
        number += 1;
        let name = format!("{number}");
        fs::write(source.join(&name), bytes(256 << 10, number)).unwrap();
        fs::read(mounted.point(&name)).unwrap();
        fs::remove_file(source.join(&name)).unwrap();
        left.retain(|(_, query)| {
            let query = query.replace("$mount", ".*");
            !has_series(own, &query.replace("$__rate_interval", RATE))
        });
        left.is_empty()
    });
}
