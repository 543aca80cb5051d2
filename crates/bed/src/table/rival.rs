//! The candidate beside the kernel: a `forerun mount` on the bed's file system, for one run.
//!
//! Called by [`side`](super::side) and by [`servers`](crate::servers). Given the
//! [`profile`](crate::profile) of the modelled device and its share of the memory both candidates
//! have; [`Mounted`] starts and ends it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bench::Bench;
use crate::failure::Failure;
use crate::mounted::{End, Mounted};
use crate::plan::BedPaths;
use crate::tool;

use super::Comparison;

/// Memory of a reader of a FUSE mount beside the daemon: two requests of the kernel under way, 256
/// KiB each, whose pages cannot be given up, and 32 KiB for its thread. Its buffer comes on top.
const READER_BYTES: u64 = (512 + 32) << 10;

/// Starts it on the bed's files, and waits until it is mounted.
pub(super) fn start(
    bench: &mut Bench<'_, Comparison>,
    group: Option<&Path>,
    preset: &str,
    profile: Option<PathBuf>,
    readers: usize,
) -> Result<Mounted, Failure> {
    let Some(program) = &bench.comparison.forerun else {
        return Err(Failure::Usage("--forerun: no binary was given".into()));
    };
    let memory = share(
        bench.comparison.memory_bytes,
        bench.comparison.read_bytes,
        readers,
    );
    let command = command(program, bench.place, (preset, profile), memory);
    let name = ("forerun mount", End::Signal);
    Mounted::start(bench.state, &bench.place.rival, name, command, group)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rival_leaves_room_for_the_pages_of_its_readers() {
        let mib = |bytes: u64| bytes >> 20;
        assert_eq!(mib(share(256 << 20, 128 << 10, 10)), 192);
        assert_eq!(mib(share(512 << 20, 128 << 10, 256)), 344);
        assert_eq!(share(1 << 20, 128 << 10, 256), 0);
    }
}
