//! Presets: kernels and published systems, to be measured against.
//!
//! Beside the shipped ones they are in [`PRESETS`](crate::PRESETS). For the presets that users get see [`forerun_core::preset`].

use forerun_core::preset::Preset;

use crate::METHODS;

/// Settings that the baselines share.
const BASE: Preset = Preset {
    name: "",
    summary: "",
    source: "",
    detect: "ondemand",
    depth: "fixed",
    shape: "whole",
    dispatch: "fifo",
    reclaim: "lru",
    hinted: "none",
    unread_percent: 100,
    next_file: "none",
    measure: "given(at_once=1)",
    // The device, or its scheduler, has the queue.
    in_flight_max: 1 << 16,
    methods: &METHODS,
};

/// The server of Li and Shen 2005, section 4: windows of at most 512 KiB. Their six kernels differ
/// in reclaim alone, whose parameters are the paper's [rules](crate::prefetch_cache::Rules).
const SERVER: Preset = Preset {
    depth: "fixed(depth_bytes=524288)",
    ..BASE
};

/// The kernel of Baek and Park 2009, section 5.1: Linux 2.6.18 on a striped array.
const ARRAY: Preset = Preset {
    detect: "linux-2.6.22",
    ..BASE
};

/// The presets. One entry a preset.
pub static LIST: &[Preset] = &[
    Preset {
        name: "cp",
        summary: "competitive prefetching: on-demand detection, competitive depth",
        source: "li04 sections 2 and 3",
        depth: "competitive",
        ..BASE
    },
    Preset {
        name: "ap",
        summary: "aggressive prefetching: on-demand detection, 1 MiB depth",
        source: "li04 section 4",
        depth: "fixed(depth_bytes=1048576)",
        ..BASE
    },
    Preset {
        name: "linux-2.6.24",
        summary: "on-demand readahead, 128 KiB: Linux since 2.6.23",
        source: "wu10 section 4",
        ..BASE
    },
    Preset {
        name: "linux-2.6.3",
        summary: "two windows from the second page on, 128 KiB: Linux 2.6.0 to 2.6.3",
        source: "Li et al. 2004 section 3.2",
        detect: "linux-2.6.3",
        ..BASE
    },
    Preset {
        name: "linux-2.6.10",
        summary: "one window at a time until a long run, 128 KiB: Linux 2.6.7 to 2.6.10",
        source: "Li and Shen 2005 section 2",
        detect: "linux-2.6.10",
        ..BASE
    },
    Preset {
        name: "linux-2.6.22",
        summary: "readahead with two windows, 128 KiB: Linux 2.6.11 to 2.6.22",
        source: "wu10 section 3.2",
        detect: "linux-2.6.22",
        ..BASE
    },
    Preset {
        name: "seqp",
        summary: "readahead with two windows, 128 KiB, that takes an array for one disk: Linux 2.6.18",
        source: "Baek and Park 2009 section 2.4, SEQP",
        ..ARRAY
    },
    Preset {
        name: "saseqp",
        summary: "the same, each window cut at the end of its strip",
        source: "Baek and Park 2009 section 3, SASEQP",
        shape: "strip",
        ..ARRAY
    },
    Preset {
        name: "msp+seqp",
        summary: "as seqp, with whole stripes while the array is read as by one reader",
        source: "Baek and Park 2009 section 4, MSP",
        shape: "stripe",
        ..ARRAY
    },
    Preset {
        name: "msp+saseqp",
        summary: "single strips, and whole stripes while the array is read as by one reader",
        source: "Baek and Park 2009 section 4, MSP+SASEQP",
        shape: "both",
        ..ARRAY
    },
    Preset {
        name: "access-history",
        summary: "on-demand readahead, 512 KiB, blocks fetched ahead and read in one two-list LRU",
        source: "Li and Shen 2005 section 4.2, AccessHistory",
        ..SERVER
    },
    Preset {
        name: "pc-access-history",
        summary: "the same with a prefetch cache: the block that arrived first goes first",
        source: "Li and Shen 2005 section 4.2, PC-AccessHistory",
        reclaim: "fifo(reclaims=1,ended_first=0,history_percent=40,step_percent=2)",
        ..SERVER
    },
    Preset {
        name: "pc-longest",
        summary: "the same: the last block of the longest stream goes first",
        source: "Li and Shen 2005 section 3.1, PC-Longest",
        reclaim: "longest(reclaims=1,ended_first=0,history_percent=40,step_percent=2)",
        ..SERVER
    },
    Preset {
        name: "pc-coldest",
        summary: "the same: the last block of the stream not accessed for longest goes first",
        source: "Li and Shen 2005 section 3.1, PC-Coldest",
        reclaim: "coldest(reclaims=1,ended_first=0,history_percent=40,step_percent=2)",
        ..SERVER
    },
    Preset {
        name: "pc-coldest+",
        summary: "the same: the last block of the stream whose owner has computed most since its access",
        source: "Li and Shen 2005 section 3.1, PC-Coldest+",
        reclaim: "coldest-cpu(reclaims=1,ended_first=0,history_percent=40,step_percent=2)",
        ..SERVER
    },
    Preset {
        name: "pc-optimal",
        summary: "the same: blocks that their owners do not announce go first, the rest as in pc-coldest+",
        source: "Li and Shen 2005 section 4.2, the approximated optimum",
        reclaim: "furthest(reclaims=1,ended_first=0,history_percent=40,step_percent=2)",
        ..SERVER
    },
    Preset {
        name: "one-block",
        summary: "one block ahead of every sequential read",
        source: "kimbrel96 section 1",
        detect: "one-block",
        ..BASE
    },
    Preset {
        name: "none",
        summary: "demand reads only",
        source: "baseline",
        detect: "none",
        ..BASE
    },
];
