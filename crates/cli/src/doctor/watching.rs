//! Checks of what `forerun watch` needs: its kernel's events, tracefs, and the right to take descriptors.

use super::{Check, Machine};

/// The first kernel with the events.
const KERNEL: (u32, u32) = (6, 18);

const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
const EVENT: &str = "events/readahead/page_cache_sync_ra/format";

const NAME: &str = "watch";

pub(super) fn checks(machine: &Machine) -> Vec<Check> {
    let (major, minor) = KERNEL;
    if !machine.is_root() {
        return vec![Check::ok(NAME, "`forerun watch` is for root")];
    }
    let mut checks = Vec::new();
    let mut warn = |found: &str, remedy: &str| checks.push(Check::warn(NAME, found, remedy));
    if !machine.is_linux(major, minor) {
        warn(
            &format!("`forerun watch` needs Linux {major}.{minor}"),
            "`forerun mount` and `forerun tune` need no later kernel",
        );
    } else if !PLACES
        .iter()
        .any(|place| machine.path(place).join("events").exists())
    {
        warn(
            "tracefs is not mounted, and `forerun watch` reads it",
            "mount -t tracefs nodev /sys/kernel/tracing",
        );
    } else if !PLACES
        .iter()
        .any(|place| machine.path(place).join(EVENT).exists())
    {
        warn(
            "this kernel has no event readahead:page_cache_sync_ra",
            "`forerun mount` and `forerun tune` need none",
        );
    }
    let scope = machine.text("/proc/sys/kernel/yama/ptrace_scope");
    if scope.is_ok_and(|scope| scope.trim() == "3") {
        warn(
            "kernel.yama.ptrace_scope is 3: `forerun watch` may take no descriptor of a program",
            "set it to 2 or less in /etc/sysctl.d and reboot: it cannot be lowered before",
        );
    }
    let lockdown = machine.text("/sys/kernel/security/lockdown");
    if lockdown.is_ok_and(|modes| modes.contains("[confidentiality]")) {
        warn(
            "kernel lockdown is confidentiality: `forerun watch` may see no event",
            "boot with lockdown=integrity, or use `forerun mount`",
        );
    }
    if checks.is_empty() {
        checks.push(Check::ok(NAME, "`forerun watch` has its events and rights"));
    }
    checks
}
