//! The program of a candidate beside the kernel, for one run: a `forerun mount`, or a `forerun watch`.
//!
//! Called by [`compare`](super). Both work on the bed's file system. A mount is given the [`profile`] of the modelled
//! device and its share of the memory that both candidates have; a watch reckons with the rest of its group, and its
//! readers read the file system itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use forerun_core::Bytes;
use forerun_surface::quantity::size;

use crate::failure::Failure;
use crate::mounted::{End, Mounted};
use crate::plan::BedPaths;
use crate::watched::Watched;
use crate::{profile, tool};

use super::Bench;
use super::side::Side;

/// Memory of a reader of a FUSE mount beside the daemon: two requests of the kernel under way, 256
/// KiB each, whose pages cannot be given up, and 32 KiB for its thread. Its buffer comes on top.
const READER_BYTES: u64 = (512 + 32) << 10;

/// The least of a mount: it takes 9 MiB, and its engine some windows.
const MOUNT_LEAST: u64 = 16 << 20;

/// A running program of a candidate.
pub(crate) enum Rival {
    Mount(Mounted),
    Watch(Watched),
}

impl Rival {
    /// Starts that of a candidate, if it has one, and waits until it works. `memory` is a mount's [share].
    pub(crate) fn start(
        bench: &mut Bench<'_>,
        side: &Side,
        memory: u64,
        group: Option<&Path>,
    ) -> Result<Option<Self>, Failure> {
        let program = bench.compared.forerun.as_deref();
        let given = || program.ok_or(Failure::Usage("--forerun: no binary was given".into()));
        match side {
            Side::Kernel { .. } => Ok(None),
            Side::Forerun { preset, is_told } => {
                let profile = profile::file(bench.bed, bench.state.folder(), *is_told)?;
                let command = command(given()?, bench.place, (preset, profile), memory);
                let name = ("forerun mount", End::Signal);
                let path = &bench.place.rival;
                let mounted = Mounted::start(bench.state, path, name, command, group)?;
                Ok(Some(Self::Mount(mounted)))
            }
            Side::Watch(how) => {
                let (program, folder) = (given()?, &bench.place.files);
                let watched = Watched::start(program, &how.options(), folder, group)?;
                Ok(Some(Self::Watch(watched)))
            }
        }
    }

    /// The folder that readers read.
    pub(crate) fn folder<'a>(rival: Option<&Self>, place: &'a BedPaths) -> &'a Path {
        match rival {
            Some(Self::Mount(_)) => &place.rival,
            Some(Self::Watch(_)) | None => &place.files,
        }
    }

    fn process(&self) -> u32 {
        match self {
            Self::Mount(mounted) => mounted.process(),
            Self::Watch(watched) => watched.process(),
        }
    }

    /// Its resident memory at the highest, so far.
    pub(crate) fn resident_max_bytes(&self) -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.process())).ok()?;
        resident_max_bytes(&text)
    }

    /// Its processor time, so far.
    pub(crate) fn processor_seconds(&self) -> Option<f64> {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.process())).ok()?;
        processor_seconds(&text)
    }

    /// Ends it, and waits until it is gone.
    pub(crate) fn stop(self) -> Result<(), Failure> {
        match self {
            Self::Mount(mounted) => mounted.stop(),
            Self::Watch(watched) => watched.stop(),
        }
    }
}

/// `VmHWM:     1234 kB`
fn resident_max_bytes(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

/// Fields 14 and 15 of `proc_pid_stat(5)`: user and system time in hundredths of a second (`USER_HZ` of Linux). They
/// are counted behind the name, which may have blanks and brackets.
fn processor_seconds(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some((ticks()? + ticks()?) as f64 / 100.0)
}

/// `forerun mount` on the bed's files with this preset, profile and memory.
pub(crate) fn command(
    program: &Path,
    place: &BedPaths,
    (preset, profile): (&str, Option<PathBuf>),
    memory: u64,
) -> Command {
    let mut command = tool::at_ordinary_io_priority(program);
    command
        .arg("mount")
        .args([&place.files, &place.rival])
        .args(["--memory", &memory.to_string()])
        .args(["--preset", preset])
        .arg("--foreground");
    if let Some(profile) = profile {
        command.arg("--profile").arg(profile);
    }
    command
}

/// The memory of `forerun mount` out of that of a candidate: three quarters, because the kernel
/// keeps pages of the bytes its readers were given, as it does for its own, or less where those
/// need more.
pub(crate) fn share(memory: u64, read_bytes: usize, readers: usize) -> u64 {
    let reader = READER_BYTES.saturating_add(read_bytes as u64);
    let needed = reader.saturating_mul(readers as u64);
    memory.saturating_sub(needed.max(memory / 4))
}

/// Refuses memory that is too little for a mount alone.
pub(crate) fn check_mount(memory: u64) -> Result<(), Failure> {
    if memory >= MOUNT_LEAST {
        return Ok(());
    }
    let [memory, least] = [memory, MOUNT_LEAST].map(|bytes| size(Bytes(bytes)));
    Err(Failure::Usage(format!(
        "--memory {memory}: give forerun mount at least {least}"
    )))
}

/// Refuses memory of which so many readers leave a mount too little.
pub(crate) fn check_memory(memory: u64, read_bytes: usize, readers: usize) -> Result<(), Failure> {
    let left = share(memory, read_bytes, readers);
    if left >= MOUNT_LEAST {
        return Ok(());
    }
    let mib = 1 << 20;
    let enough = (1..).map(|number: u64| number * mib);
    let mut enough = enough.filter(|memory| share(*memory, read_bytes, readers) >= MOUNT_LEAST);
    let [memory, left, least] = [memory, left, enough.next().unwrap_or(u64::MAX)];
    let [memory, left, least] = [memory, left, least].map(|bytes| size(Bytes(bytes)));
    Err(Failure::Usage(format!(
        "--memory {memory}: {readers} at a time leave {left} to forerun mount: give at least {least}"
    )))
}

/// Refuses a preset that the program does not have.
pub(crate) fn check_preset(program: Option<&Path>, preset: &str) -> Result<(), Failure> {
    let Some(program) = program else {
        return Ok(());
    };
    // Arguments are judged in their order, and then nothing is mounted.
    let mut command = Command::new(program);
    let command = command.args(["mount", "--preset", preset, "--help"]);
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|e| Failure::unusable(program, e))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().next().unwrap_or_default();
    let why = first.strip_prefix("error: ").unwrap_or(first);
    let text = format!("preset `{preset}`: {}: {why}", program.display());
    Err(Failure::Usage(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_processor_time_are_read_from_proc() {
        let status = "VmPeak:\t  9 kB\nVmHWM:\t    1234 kB\nThreads:\t1\n";
        assert_eq!(resident_max_bytes(status), Some(1_263_616));
        assert_eq!(resident_max_bytes("Name:\tx\n"), None);
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 1 0 5";
        assert_eq!(processor_seconds(stat), Some(3.0));
        assert_eq!(processor_seconds("7 (a) S 1"), None);
    }

    #[test]
    fn the_rival_leaves_room_for_the_pages_of_its_readers() {
        let mib = |bytes: u64| bytes >> 20;
        assert_eq!(mib(share(256 << 20, 128 << 10, 10)), 192);
        assert_eq!(mib(share(512 << 20, 128 << 10, 256)), 344);
        assert_eq!(share(1 << 20, 128 << 10, 256), 0);
    }

    #[test]
    fn the_memory_that_is_asked_for_is_the_least_that_is_enough() {
        for (memory, readers, asked) in [(256, 391, "--memory 256MiB: 391 "), (16, 1, "16MiB: 1 ")]
        {
            let said = check_memory(memory << 20, 128 << 10, readers).unwrap_err();
            let said = said.to_string();
            assert!(said.contains(asked), "{said}");
            let (_, least) = said.rsplit_once(' ').unwrap();
            let least = forerun_surface::quantity::parse_size(least).unwrap().0;
            assert!(check_memory(least, 128 << 10, readers).is_ok());
            assert!(check_memory(least - (1 << 20), 128 << 10, readers).is_err());
        }
        assert!(check_memory(256 << 20, 128 << 10, 300).is_ok());
        assert!(check_mount(MOUNT_LEAST).is_ok());
        let said = check_mount(MOUNT_LEAST - 1).unwrap_err().to_string();
        assert!(said.ends_with("at least 16MiB"), "{said}");
    }
}
