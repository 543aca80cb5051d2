//! Limits of the process that are too low for a mount, found before anything is mounted.
//!
//! Problem: the threads that take requests are started once the mount is visible, and each maps a
//! buffer of 16 MiB, of which it touches two pages. Under `ulimit -v` the process would be killed
//! there (`memory allocation of 16781312 bytes failed`), and without descriptors the mount would
//! hang. Mechanism: the needed resources are allocated here for a moment, and given back.

use std::fs::File;

use forerun_io::footprint::{self, Pages};
use rustix::process::{Resource, getrlimit};

use super::fuse;
use crate::failure::Failure;
use crate::quantity::size;
use forerun_core::Bytes;

/// Address space of a thread that takes requests: its buffer, its stack, and the allocator's part.
const THREAD_BYTES: usize = (16 << 20) + (2 << 20) + (2 << 20);

/// Of all other threads together, the allocator's arenas, which are few under a limit, and
/// allocations while files are read.
const OTHERS_BYTES: usize = 256 << 20;

/// Descriptors that must be left: a few calls at a time, a few open files.
const DESCRIPTORS: usize = 8;

/// Address space of a mount whose engine takes so much.
#[must_use]
pub fn address_space(besides: Bytes) -> Bytes {
    let bytes = fuse::session::threads() * THREAD_BYTES + OTHERS_BYTES;
    Bytes((bytes as u64).saturating_add(besides.0))
}

/// Checks them, with so much address space to be mapped besides. Called before the first thread starts,
/// since a thread or a buffer refused to the engine would be reported as that; and once more when the
/// engine has taken its descriptors.
///
/// # Errors
/// Says which limit is too low, and by how much.
pub fn check(besides: Bytes) -> Result<(), Failure> {
    if getrlimit(Resource::As).current.is_some() {
        footprint::few_arenas();
    }
    let threads = fuse::session::threads();
    let bytes = address_space(besides).0 as usize;
    if Pages::new(bytes).is_err() {
        let limit = getrlimit(Resource::As).current;
        let limit = limit.map_or_else(|| "none".into(), |limit| size(Bytes(limit)).to_string());
        return Err(Failure::Usage(format!(
            "the address space is limited (ulimit -v) to {limit}: a mount maps {} more, of which it \
             uses little",
            size(address_space(besides)),
        )));
    }
    let mut wanted = fuse::session::channels(threads) + DESCRIPTORS;
    let mut taken = Vec::new();
    while wanted > 0 {
        match File::open("/dev/null") {
            Ok(file) => taken.push(file),
            Err(_) => {
                let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
                return Err(Failure::Usage(format!(
                    "descriptors are limited (ulimit -n) to {limit}: a mount needs at least {}",
                    limit + wanted as u64,
                )));
            }
        }
        wanted -= 1;
    }
    Ok(())
}
