//! A kernel: its page cache and its readahead in virtual time, with limits that stay or that a watch sets.
//!
//! ```text
//! kernel    each open file has the device's limit            what a tuned kernel does
//! watch     forerun-steering sets the limit of each          what forerun watch does
//! ```
//!
//! The steering gets the events that a running kernel tells, and nothing else: misses and marks, requests and their
//! completions, once a second the time. So it decides here what it decides there, and [`Event`]s can be recorded and
//! handed to another one.
//!
//! Not modelled: processor time, copying, the time of setting a limit (some 100 us), pages that are kept because they were
//! read twice, writes, small files filled ahead.
//!
//! On a disk of 8 ms and 80 MB/s ten readers get 23.1 MB/s with 128 KiB and 70.6 with 4 MiB, a Linux 6.18 23.0 and 70.8.
//! Where windows do not fit memory it loses too little: 64 readers in 256 MiB get 36 MB/s with 8 MiB, and 11 to 23 there.

mod cache;
mod host;
pub mod readahead;

use forerun_core::spec::{Knows, Method, Param, Spec};

pub(crate) use host::check;
pub use host::{Event, KernelError, Machine};

/// A kernel, as a preset of simulations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kernel {
    /// The limit of open files when they are opened, in pages.
    pub limit: u32,
    /// Whether a watch steers it.
    pub is_watched: bool,
}

const READ_AHEAD: Param = Param {
    name: "read_ahead_kib",
    summary: "limit of a window when a file is opened, read_ahead_kb; the kernel's default",
    default: 128,
    min: 4,
    max: 64 << 10,
};

const KERNEL: Spec = Spec {
    name: "kernel",
    summary: "page cache and readahead of Linux 6.18, each window up to one limit",
    source: "after Wu et al. 2010; events of a running Linux 6.18",
    unfit: "workloads whose readers take turns, walk folders or arrive in an open loop",
    knows: Knows::Online,
    params: &[READ_AHEAD],
};

/// The kernels.
pub static LIST: &[Method<Kernel>] = &[
    Method {
        spec: KERNEL,
        build: |values| Kernel {
            limit: (values.get("read_ahead_kib") / 4) as u32,
            is_watched: false,
        },
    },
    Method {
        spec: Spec {
            name: "watch",
            summary: "the same, with limits that forerun watch sets",
            source: "docs/WATCH.md",
            ..KERNEL
        },
        build: |values| Kernel {
            limit: (values.get("read_ahead_kib") / 4) as u32,
            is_watched: true,
        },
    },
];
