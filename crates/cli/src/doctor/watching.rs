//! Checks of what `forerun watch` needs: its kernel's events, tracefs, and the right to take descriptors.

use super::{Check, Machine};

/// The first kernel that tells which mount a descriptor is of.
const KERNEL: (u32, u32) = (5, 14);

const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Events of the two ways of seeing, the better one first.
const EVENTS: [&str; 2] = [
    "events/readahead/page_cache_sync_ra/format",
    "events/block/block_bio_queue/format",
];

const NAME: &str = "watch";

pub(super) fn checks(machine: &Machine) -> Vec<Check> {
    let (major, minor) = KERNEL;
    if !machine.is_root() {
        return vec![Check::ok(NAME, "`forerun watch` is for root")];
    }
    let has = |event: &str| {
        let mut places = PLACES.iter();
        places.any(|place| machine.path(place).join(event).exists())
    };
    let mut checks = Vec::new();
    let mut warn = |found: &str, remedy: &str| checks.push(Check::warn(NAME, found, remedy));
    if !machine.is_linux(major, minor) {
        warn(
            &format!("`forerun watch` needs Linux {major}.{minor}"),
            "`forerun mount` and `forerun tune` need no later kernel",
        );
    } else if !has("events") {
        warn(
            "tracefs is not mounted, and `forerun watch` reads it",
            "mount -t tracefs nodev /sys/kernel/tracing",
        );
    } else if !EVENTS.iter().any(|event| has(event)) {
        warn(
            "this kernel has no event of readahead:page_cache_sync_ra and block:block_bio_queue",
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
        checks.push(Check::ok(
            NAME,
            if has(EVENTS[0]) {
                "`forerun watch` has its events and rights"
            } else {
                "`forerun watch` has its rights, and block events: those of readahead came with Linux 6.18"
            },
        ));
    }
    checks
}
