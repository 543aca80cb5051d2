//! The text of a bug report: checks, versions, limits and counters, without secrets and names of files.
//!
//! Left out: open files and the programs that have them, environments, credentials. Of `/etc/forerun/*.conf`, which may
//! hold keys of a store, only the values of the lines that say what is mounted are in it. User and password of an
//! address, and all behind its `?`, where signatures stand, become `***`.

use std::fmt::Write as _;

use serde::Serialize;

use super::mounts::Found;
use super::{Check, Machine, as_text};
use crate::messages::without_secrets;

const HEAD: &str = "A report of `forerun doctor`. Read it before it is sent: it names mount points and sources, and no \
                    file below them, no credential and no variable of the environment.\n";

/// Lines of `/etc/forerun/*.conf` whose values are shown.
const SHOWN: &[&str] = &["SOURCE", "MOUNTPOINT", "PATHS", "OPTIONS"];

/// Lines of `/proc/meminfo` that say how much is left.
const MEMORY: &[&str] = &[
    "MemTotal",
    "MemFree",
    "MemAvailable",
    "Cached",
    "Dirty",
    "SwapTotal",
    "SwapFree",
];

/// See the [module](self). `version` is the output of `forerun version --verbose`.
#[must_use]
pub fn text(machine: &Machine, found: &[Found], checks: &[Check], version: &str) -> String {
    let file = |path: &str| {
        machine
            .text(path)
            .unwrap_or_else(|error| format!("{error}\n"))
    };
    let mut text = HEAD.to_owned();
    let mut part = |title: &str, content: &str| {
        let _ = write!(text, "\n== {title}\n\n{}\n", content.trim_end());
    };
    part("checks", &as_text(checks, None));
    part("version", version);
    part("/proc/version", &file("/proc/version"));
    let mounts = file("/proc/self/mountinfo");
    let ours = mounts
        .lines()
        .filter(|line| line.contains(" - fuse.forerun "));
    part("mounts", &ours.collect::<Vec<_>>().join("\n"));
    part("/proc/self/limits", &file("/proc/self/limits"));
    part("/proc/self/cgroup", &file("/proc/self/cgroup"));
    let memory = file("/proc/meminfo");
    let is_shown = |line: &&str| {
        MEMORY
            .iter()
            .any(|name| line.split(':').next() == Some(name))
    };
    part(
        "/proc/meminfo",
        &memory
            .lines()
            .filter(is_shown)
            .collect::<Vec<_>>()
            .join("\n"),
    );
    part("/etc/fuse.conf", &file("/etc/fuse.conf"));
    for name in machine.names("/etc/forerun") {
        let path = format!("/etc/forerun/{name}");
        part(&path, &settings(&file(&path)));
    }
    for mount in found {
        let point = mount.mountpoint.display();
        part(&format!("limits of {point}"), &json(&mount.limits));
        if let Some(report) = &mount.report {
            let open = report.open_files.len();
            part(
                &format!("counters of {point}, {open} files open"),
                &json(&report.counters),
            );
            part(&format!("devices of {point}"), &json(&report.queues));
            part(
                &format!("passthrough of {point}"),
                &json(&report.passthrough),
            );
        }
    }
    without_secrets(&text)
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// The names of all lines, and the values of those that are shown.
fn settings(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    let shown = lines.filter_map(|line| {
        let (name, value) = line.split_once('=')?;
        let value = if SHOWN.contains(&name.trim()) {
            value
        } else {
            "***"
        };
        Some(format!("{}={value}", name.trim()))
    });
    shown.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_settings_are_left_out() {
        let text = "# AWS_SECRET=a\nSOURCE=/data\nAWS_SECRET=b\n OPTIONS =--memory 1GiB\nnonsense";
        assert_eq!(
            settings(text),
            "SOURCE=/data\nAWS_SECRET=***\nOPTIONS=--memory 1GiB"
        );
    }
}
