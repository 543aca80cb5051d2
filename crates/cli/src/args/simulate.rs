//! Flags of `forerun simulate`.
//!
//! Part of `args`. Presets are hinted methods or the engine's; both come from their lists.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgGroup, Args as Group, ValueEnum};
use forerun_core::{Bytes, Nanos};
use forerun_sim::device::scheduler;
use forerun_sim::simulate::pacing::{self, Loop, Pacing, Speed};
use forerun_sim::simulate::placing::{self, Layout, Order};
pub use forerun_sim::simulate::simulated::Simulated;
use forerun_sim::simulate::simulated::SimulatedError;

use super::trace::parse_block_bytes;
use super::{Format, Methods, Noticing, Reading, parse_count, parse_number};
use crate::quantity::{parse_duration, parse_size};

/// Flags without a meaning for a drive that is alone with its requests.
const ALONE: [&str; 27] = [
    "preset",
    "scheduler",
    "disks",
    "cache_blocks",
    "batch",
    "horizon",
    "think",
    "place",
    "regions",
    "readers_by",
    "arrivals",
    "writes",
    "fetch_units",
    "warm",
    "block_bytes",
    "driver",
    "notice",
    "threads",
    "trace_memory",
    "detect",
    "depth",
    "shape",
    "dispatch",
    "longest_wait",
    "reclaim",
    "next_file",
    "measure",
];

/// `forerun simulate`.
#[derive(Clone, Debug, Group)]
#[command(group = ArgGroup::new("input").required(true).args(["trace", "workload", "validate"]))]
pub struct Simulate {
    /// Trace to read, or - for standard input; gzip, zstd and xz are read as they are
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Workload to make, as name or name(param=value,..), or synth(seed=N)
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,

    /// Measured trace of a real drive to replay on --device-file or --device, without a cache in
    /// front; prints the rms distance of the response times and both distributions. With --loop open
    /// requests come at their recorded times, and each device of the trace is a drive
    #[arg(long, value_name = "FILE", conflicts_with_all = ALONE)]
    pub validate: Option<PathBuf>,

    /// Presets, with commas between: hinted methods (see `forerun list hinted`) and the engine's
    #[arg(long, value_name = "A,B,..", default_value = "demand-lru,forestall")]
    pub preset: Presets,

    /// Each disk, as name or name(param=value,..) (see `forerun list devices`), or `unit`
    #[arg(long, value_name = "NAME", default_value = "hdd")]
    pub device: String,

    /// Model of each disk, from a file that describes it
    #[arg(long, value_name = "TOML", conflicts_with = "device")]
    pub device_file: Option<PathBuf>,

    /// The order in which each disk gets waiting requests [default: cscan, or the device's own]
    #[arg(long, value_name = "NAME", value_parser = parse_scheduler)]
    pub scheduler: Option<String>,

    /// Numbers of disks, with commas between [default: one for each device, file or LUN of the trace]
    #[arg(long, value_name = "D,..", value_delimiter = ',')]
    #[arg(value_parser = |text: &str| parse_count(text, 1024))]
    pub disks: Vec<u32>,

    /// Blocks in the cache, with commas between; of an engine preset all its memory
    #[arg(
        long,
        value_name = "K,..",
        value_delimiter = ',',
        default_value = "1280"
    )]
    #[arg(value_parser = |text: &str| parse_count(text, u32::MAX - 1))]
    pub cache_blocks: Vec<u32>,

    /// Size of a block [default: the most common request of the trace; 8KiB where it has none]
    #[arg(long, value_name = "SIZE", value_parser = parse_block_bytes)]
    pub block_bytes: Option<u32>,

    /// Largest batch of fetches for a free disk [default: by the number of disks]
    #[arg(long, value_name = "N", value_parser = parse_number::<u64>)]
    pub batch: Option<u64>,

    /// Prefetch distance, in references
    #[arg(long, value_name = "N", value_parser = parse_number::<u64>)]
    pub horizon: Option<u64>,

    /// Processor time of a fetch; Kimbrel et al. 1996 have 500us [default: 25us]
    #[arg(long, value_name = "TIME", value_parser = parse_computing)]
    pub driver: Option<Nanos>,

    /// Time computed before each request but the first, in place of the trace's
    #[arg(long, value_name = "TIME", value_parser = parse_computing)]
    pub think: Option<Nanos>,

    /// Order of the blocks of each device, file or LUN of a trace [default: address]
    #[arg(long, value_enum, value_name = "ORDER")]
    pub place: Option<Place>,

    /// Devices, files or LUNs of a trace on --disks [default: concatenated, striped on more disks]
    #[arg(long, value_enum, value_name = "HOW")]
    pub regions: Option<Regions>,

    /// Readers of a trace: one process that makes all requests, or one for each device, file, LUN or process
    #[arg(long, value_enum, value_name = "WHAT", default_value = "one")]
    pub readers_by: Readers,

    /// When a request of a trace begins, for the engine's presets [default: closed]
    #[arg(long = "loop", value_enum, value_name = "HOW")]
    pub when: Option<When>,

    /// Speed of arrivals, `recorded` or as 2x; means --loop open unless that is given
    #[arg(long, value_name = "SPEED")]
    pub arrivals: Option<Speed>,

    /// Count writes as reads instead of leaving them out
    #[arg(long)]
    pub writes: bool,

    /// With --device unit: time of a fetch [default: 4]
    #[arg(long, value_name = "F")]
    #[arg(value_parser = |text: &str| parse_count(text, 1 << 20))]
    pub fetch_units: Option<u32>,

    /// With --device unit: numbers of the blocks in the cache at the beginning, which the trace need
    /// not name
    #[arg(long, value_name = "A,B,..", value_delimiter = ',', value_parser = parse_number::<u64>)]
    pub warm: Vec<u64>,

    /// Most memory for the different blocks of a trace, and for its references, which methods that
    /// know the future keep [default: 4GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub trace_memory: Option<Bytes>,

    /// Runs at the same time
    #[arg(long, value_name = "N", default_value = "1")]
    #[arg(value_parser = |text: &str| parse_count(text, 1024))]
    pub threads: u32,

    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Table)]
    pub format: Format,

    #[allow(missing_docs)]
    #[command(flatten)]
    pub noticing: Noticing,

    #[allow(missing_docs)]
    #[command(flatten)]
    pub reading: Reading,

    #[allow(missing_docs)]
    #[command(flatten)]
    pub methods: Methods,
}

/// Orders of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Place {
    /// At their address or number
    Address,
    /// Touched blocks in the order of addresses, without gaps
    Packed,
    /// In the order of first use: refused for presets that prefetch, which would foresee it
    Dense,
}

/// Placements of several devices of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Regions {
    /// One behind the other, on the disks by turns
    Concatenated,
    /// Block by block over all disks
    Striped,
}

/// Readers of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Readers {
    /// One process
    One,
    /// One for each device, file or LUN
    #[value(alias = "file", alias = "lun")]
    Device,
    /// One for each process, whichever files it reads
    #[value(alias = "process")]
    Pid,
}

/// When a request begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum When {
    /// After the one before of its reader, and the computing between
    Closed,
    /// When it arrived, whether those before have ended or not
    Open,
    /// When it arrived, but after the one before of its reader
    Paced,
}

impl Simulate {
    /// Readers of a trace, and when its requests begin.
    #[must_use]
    pub fn pacing(&self) -> Pacing {
        let when = match (self.when, self.arrivals) {
            (Some(When::Closed), _) | (None, None) => Loop::Closed,
            (Some(When::Open), _) | (None, Some(_)) => Loop::Open,
            (Some(When::Paced), _) => Loop::Paced,
        };
        Pacing {
            readers: match self.readers_by {
                Readers::One => pacing::Readers::One,
                Readers::Device => pacing::Readers::Device,
                Readers::Pid => pacing::Readers::Process,
            },
            when,
            speed: self.arrivals.unwrap_or_default(),
        }
    }

    /// Where blocks of a trace lie.
    #[must_use]
    pub fn layout(&self) -> Layout {
        Layout {
            order: match self.place {
                None | Some(Place::Address) => Order::Address,
                Some(Place::Packed) => Order::Packed,
                Some(Place::Dense) => Order::Dense,
            },
            regions: self.regions.map(|regions| match regions {
                Regions::Concatenated => placing::Regions::Concatenated,
                Regions::Striped => placing::Regions::Striped,
            }),
        }
    }

    /// The flags of a run of this preset that its row has no column for, as `driver 500000ns, batch 4`; none where
    /// there are none.
    #[must_use]
    pub fn others(&self, preset: &Simulated) -> Option<String> {
        let mut all: Vec<(&str, String)> = Vec::new();
        let mut put = |name, value: Option<String>| all.extend(value.map(|value| (name, value)));
        let time = |time: Nanos| format!("{}ns", time.0);
        put(
            "block-bytes",
            self.block_bytes.map(|bytes| bytes.to_string()),
        );
        put("think", self.think.map(time));
        if !matches!(preset, Simulated::Kernel(..)) {
            put("driver", self.driver.map(time));
        }
        if preset.is_hinted() {
            let warm: Vec<String> = self.warm.iter().map(u64::to_string).collect();
            put("batch", self.batch.map(|batch| batch.to_string()));
            put("horizon", self.horizon.map(|refs| refs.to_string()));
            put(
                "fetch-units",
                self.fetch_units.map(|units| units.to_string()),
            );
            put("warm", (!warm.is_empty()).then(|| warm.join(",")));
        }
        if preset.has_methods() {
            self.methods
                .values()
                .into_iter()
                .for_each(|(name, value)| put(name, value));
        }
        let text: Vec<String> = all
            .iter()
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        (!text.is_empty()).then(|| text.join(", "))
    }

    /// Processor time of a fetch.
    #[must_use]
    pub fn driver(&self) -> Nanos {
        self.driver.unwrap_or(Nanos(25_000))
    }

    /// Most memory for a trace.
    #[must_use]
    pub fn trace_memory(&self) -> Bytes {
        self.trace_memory.unwrap_or(Bytes(4 << 30))
    }

    /// Time of a fetch in units.
    #[must_use]
    pub fn fetch_units(&self) -> u64 {
        self.fetch_units.unwrap_or(4).into()
    }
}

/// Presets with commas between, which may also stand inside parentheses.
#[derive(Clone, Debug)]
pub struct Presets(pub Vec<Simulated>);

impl FromStr for Presets {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = split_names(text);
        let parts = parts.map(|part| part.parse().map_err(|e: SimulatedError| e.to_string()));
        parts.collect::<Result<_, _>>().map(Self)
    }
}

/// Names with commas between, which may also stand inside parentheses.
pub(super) fn split_names(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0u32;
    text.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
}

/// The longest computing time before a request: a workload's `think_ns` ends there, too.
const COMPUTING_MAX: Nanos = Nanos(3_600_000_000_000);

fn parse_computing(text: &str) -> Result<Nanos, String> {
    let time = parse_duration(text).map_err(|e| e.to_string())?;
    match time <= COMPUTING_MAX {
        true => Ok(time),
        false => Err("must lie from 0 to 3600 s".to_owned()),
    }
}

fn parse_scheduler(text: &str) -> Result<String, String> {
    let parsed = scheduler::parse(text).map_err(|e| e.to_string());
    parsed.map(|_| text.to_owned())
}
