//! The rival of the kernel: a `forerun mount` on the bed's file system, for one run.
//!
//! Called by [`side`](super::side). Started with the profile of the modelled device, so that it
//! knows of the disk what `forerun profile` would tell it; of several striped disks, their rates
//! together, as a long request moves on all of them at once. Ended by SIGTERM, as a service would
//! be. Its mount is recorded as ours before it begins, so `down` finds it after a kill.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use forerun_core::Profile;
use forerun_core::profile::SERVERS_MAX;
use forerun_sim::device;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::bed::Bed;
use crate::failure::{At, Failure};
use crate::kernel;
use crate::memory_group;
use crate::state;
use crate::thing::Thing;
use crate::tool;

use super::side::Bench;

/// What a reader of a FUSE mount needs beside the daemon: two requests of the kernel under way,
/// 256 KiB each, whose pages cannot be given up, and 32 KiB for its thread. Its buffer comes on top.
const READER_BYTES: u64 = (512 + 32) << 10;
/// A mount takes milliseconds; this is for a machine that stands still.
const START_MAX: Duration = Duration::from_secs(20);
/// It has nothing to write back.
const STOP_MAX: Duration = Duration::from_secs(10);
/// How long to wait for a change of the mounts before looking whether the program still runs.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// A running `forerun mount`.
pub(super) struct Rival(Child);

impl Rival {
    /// Starts it on the bed's files, and waits until it is mounted.
    pub(super) fn start(
        bench: &mut Bench<'_>,
        group: Option<&Path>,
        preset: &str,
        readers: usize,
    ) -> Result<Self, Failure> {
        let Some(program) = &bench.comparison.forerun else {
            return Err(Failure::Usage("--forerun: no binary was given".into()));
        };
        let path = bench.place.rival.clone();
        bench.state.record(Thing::Mount {
            path: path.clone(),
            kind: "fuse".into(),
        })?;
        let folder = bench.state.folder();
        let profile = folder.join(state::PROFILE);
        fs::write(&profile, profile_text(bench.bed)?).at(&profile)?;
        let log = folder.join(state::RIVAL_LOG);
        let memory = share(
            bench.comparison.memory_bytes,
            bench.comparison.read_bytes,
            readers,
        );
        let mut child = tool::at_ordinary_io_priority(program)
            .arg("mount")
            .args([&bench.place.files, &path])
            .args(["--memory", &memory.to_string()])
            .args(["--preset", preset])
            .arg("--profile")
            .arg(&profile)
            .arg("--foreground")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).at(&log)?)
            .spawn()
            .map_err(|e| Failure::Usage(format!("{}: {e}", program.display())))?;
        // It has touched next to nothing yet: what it caches is charged to the group.
        let joined = group.map_or(Ok(()), |group| memory_group::add(group, child.id()));
        match joined.and_then(|()| wait_until_mounted(&mut child, &path, &log)) {
            Ok(()) => Ok(Self(child)),
            Err(failure) => {
                // It may have ended already, and then there is nothing to end.
                let _ = child.kill();
                let _ = child.wait();
                Err(failure)
            }
        }
    }

    /// Its resident memory at the highest, so far.
    pub(super) fn resident_max_bytes(&self) -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.0.id())).ok()?;
        resident_max_bytes(&text)
    }

    /// Ends it, and waits until it and its mount are gone.
    pub(super) fn stop(mut self, path: &Path) -> Result<(), Failure> {
        let pid = Pid::from_child(&self.0);
        let ended = pidfd_open(pid, PidfdFlags::empty()).at(path)?;
        // One that ended by itself cannot be signalled; its status tells.
        let _ = kill_process(pid, Signal::TERM);
        let limit = Timespec::try_from(STOP_MAX).at(path)?;
        let stopped = poll(&mut [PollFd::new(&ended, PollFlags::IN)], Some(&limit)).at(path)? > 0;
        if !stopped {
            self.0.kill().at(path)?;
        }
        let status = self.0.wait().at(path)?;
        Thing::Mount {
            path: path.into(),
            kind: "fuse".into(),
        }
        .undo()?;
        if stopped && status.success() {
            return Ok(());
        }
        Err(Failure::at(
            path,
            format!("forerun mount did not end well on SIGTERM: {status}"),
        ))
    }
}

/// What `forerun mount` is given of the memory both sides have: three quarters, because the kernel
/// keeps pages of what its readers were given, as it does for its own, or less where those need
/// more.
fn share(memory: u64, read_bytes: usize, readers: usize) -> u64 {
    let reader = READER_BYTES.saturating_add(read_bytes as u64);
    let needed = reader.saturating_mul(readers as u64);
    memory.saturating_sub(needed.max(memory / 4))
}

/// The kernel says when the list of mounts changes.
fn wait_until_mounted(child: &mut Child, path: &Path, log: &Path) -> Result<(), Failure> {
    let began = Instant::now();
    let list = File::open("/proc/self/mountinfo").at(path)?;
    while kernel::mounts_on(path)?.is_empty() {
        if let Some(status) = child.try_wait().at(path)? {
            let said = fs::read_to_string(log).unwrap_or_default();
            let text = format!("forerun mount ended with {status}: {}", said.trim_end());
            return Err(Failure::Run(text));
        }
        if began.elapsed() > START_MAX {
            return Err(Failure::at(path, "forerun mount does not mount"));
        }
        poll(&mut [PollFd::new(&list, PollFlags::PRI)], Some(&LOOK)).at(path)?;
    }
    Ok(())
}

/// The profile of the bed as `--profile` takes it.
fn profile_text(bed: &Bed) -> Result<String, Failure> {
    let device = device::parse(&bed.disks.device);
    let profile = device.map_err(|e| Failure::Usage(e.to_string()))?.profile();
    Ok(write_profile(&profile, bed.disks.count as u64))
}

fn write_profile(profile: &Profile, disks: u64) -> String {
    let mut text = Vec::new();
    // Striped disks work on as many requests as there are of them.
    let servers = u64::from(profile.servers()).saturating_mul(disks);
    if profile.servers() < SERVERS_MAX {
        let _ = writeln!(text, "servers = {servers}");
    }
    for (distance, cost) in profile.switching_points() {
        let (distance, cost) = (distance.0, cost.0);
        // Writing to memory cannot fail.
        let _ = writeln!(
            text,
            "[[switching]]\ndistance_bytes = {distance}\nswitching_ns = {cost}"
        );
    }
    for (location, rate) in profile.rate_points() {
        let (location, rate) = (location.0.saturating_mul(disks), rate.saturating_mul(disks));
        let _ = writeln!(
            text,
            "[[rate]]\nlocation_bytes = {location}\nrate_bytes_per_second = {rate}"
        );
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// `VmHWM:     1234 kB`
fn resident_max_bytes(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed;

    #[test]
    fn striped_disks_are_one_device_with_their_rates_together() {
        let raid = bed::parse(include_str!("../../beds/raid0.toml")).unwrap();
        let text = "servers = 4\n[[switching]]\ndistance_bytes = 0\nswitching_ns = 8000000\n\
                    [[rate]]\nlocation_bytes = 0\nrate_bytes_per_second = 320000000\n";
        assert_eq!(profile_text(&raid).unwrap(), text);
    }

    #[test]
    fn the_rival_leaves_room_for_the_pages_of_its_readers() {
        let mib = |bytes: u64| bytes >> 20;
        assert_eq!(mib(share(256 << 20, 128 << 10, 10)), 192);
        assert_eq!(mib(share(512 << 20, 128 << 10, 256)), 344);
        assert_eq!(share(1 << 20, 128 << 10, 256), 0);
    }

    #[test]
    fn resident_memory_is_read_from_the_status() {
        let status = "VmPeak:\t  9 kB\nVmHWM:\t    1234 kB\nThreads:\t1\n";
        assert_eq!(resident_max_bytes(status), Some(1_263_616));
        assert_eq!(resident_max_bytes("Name:\tx\n"), None);
    }
}
