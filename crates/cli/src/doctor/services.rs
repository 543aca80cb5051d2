//! Checks of mounts that the system begins: units of systemd that are enabled, lines of fstab.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use super::{Check, Machine};

/// Folders with links to units that are enabled, in `NAME.wants` and `NAME.requires`.
const ENABLED: &str = "/etc/systemd/system";

/// Time limit of `systemctl`, which takes some ten milliseconds.
const PATIENCE: Duration = Duration::from_millis(1_000);

pub(super) fn checks(machine: &Machine) -> Vec<Check> {
    let units = enabled(machine);
    let mut checks: Vec<_> = units
        .iter()
        .filter_map(|unit| without_file(machine, unit))
        .collect();
    checks.extend(failed(machine));
    checks.extend(fstab(machine));
    if checks.is_empty() {
        let found = match units.is_empty() {
            true => "no unit of forerun is enabled".to_owned(),
            false => units.join(", "),
        };
        checks.push(Check::ok("services", found));
    }
    checks
}

fn enabled(machine: &Machine) -> Vec<String> {
    let folders = machine.names(ENABLED).into_iter();
    let folders = folders.filter(|name| name.ends_with(".wants") || name.ends_with(".requires"));
    let mut units: Vec<_> = folders
        .flat_map(|folder| machine.names(format!("{ENABLED}/{folder}")))
        .filter(|unit| unit.starts_with("forerun"))
        .collect();
    units.sort();
    units.dedup();
    units
}

/// Each unit reads a file below `/etc/forerun`, and does not begin without it.
fn without_file(machine: &Machine, unit: &str) -> Option<Check> {
    let name = unit.strip_suffix(".service")?;
    let name = name
        .strip_prefix("forerun@")
        .or_else(|| name.strip_prefix("forerun-"))?;
    let file = format!("/etc/forerun/{name}.conf");
    (!machine.path(&file).exists()).then(|| {
        Check::fail(
            "services",
            format!("{unit} is enabled, and {file} is not there"),
            format!("write {file} (its lines stand in the unit: systemctl cat {unit})"),
        )
    })
}

/// Units that systemd counts as failed; none where it does not run or does not answer.
fn failed(machine: &Machine) -> Vec<Check> {
    if !machine.path("/run/systemd/system").exists() {
        return Vec::new();
    }
    let arguments = [
        "list-units",
        "--state=failed",
        "--plain",
        "--no-legend",
        "--no-pager",
        "forerun*",
    ];
    let said = said_by(Command::new(machine.path("/usr/bin/systemctl")).args(arguments));
    let units = said
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let units = units.filter(|unit| unit.starts_with("forerun"));
    units
        .map(|unit| {
            let why = format!("{unit} has failed");
            Check::fail("services", why, format!("journalctl -b -u {unit}"))
        })
        .collect()
}

/// The output of a program; empty if it is not there or takes too long.
fn said_by(command: &mut Command) -> String {
    let command = command.stdin(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.stdout(Stdio::piped()).spawn() else {
        return String::new();
    };
    let (tell, told) = channel();
    if let Some(mut output) = child.stdout.take() {
        let read = move || {
            let mut said = String::new();
            let read = output.read_to_string(&mut said);
            let _ = tell.send(read.map(|_| said).unwrap_or_default());
        };
        let _ = thread::Builder::new().spawn(read);
    }
    let said = told.recv_timeout(PATIENCE).unwrap_or_default();
    let _ = child.kill();
    said
}

/// `mount(8)` begins a line of this type by a program of this name in this folder.
fn fstab(machine: &Machine) -> Option<Check> {
    const HELPER: &str = "/sbin/mount.forerun";
    let text = machine.text("/etc/fstab").unwrap_or_default();
    let mut lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    let is_in = lines.any(|line| line.split_whitespace().nth(2) == Some("forerun"));
    (is_in && !machine.path(HELPER).exists()).then(|| {
        Check::fail(
            "services",
            format!("/etc/fstab has a mount of forerun, and {HELPER} is not there"),
            "make install, or install the package",
        )
    })
}
