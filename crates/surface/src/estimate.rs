//! The engine's estimate of a device: its costs, and the origin of each.
//!
//! Shown by `top`, the metrics, `bench` and `read --stats`, so that a depth that looks odd can be
//! traced to the figures it was computed from. They are the figures in use, each from completed
//! requests or, until enough of them completed, from the device's prior: a profile or the
//! emulation (`told`), the kind of device by the operating system (`system`), or nothing
//! (`assumed`).
//!
//! ```text
//! 12.0 ms?  220.0 MB/s  1? server  depth 2.64 MB  (1,204 measured requests, ? told)
//! |         |           |          |              +-- requests behind the rate; "?" marks the prior
//! |         |           |          +-- switching cost times transfer rate: the competitive depth
//! |         |           +-- requests worked on at once; "?" alone while that is unknown
//! |         +-- transfer rate at the beginning of the device
//! +-- switching cost at the largest distance that is known; one sequential reader pays none
//! ```
//!
//! The engine does not tell whether requests confirmed a number of servers or left it as it was: a
//! number that is the prior's counts as the prior's. Fewer than [`REQUESTS_MIN`] requests are no
//! figures: the rate of one request that a cache answered is 1 TB/s. Until then all are the prior's.

use std::fmt;

use forerun_core::measure::Confidence;
use forerun_core::profile::SERVERS_MAX;
use forerun_core::{Bytes, Nanos, Profile};
#[cfg(feature = "driver")]
use forerun_io::PriorSource;
use rustix::fs::{major, minor};
use serde::{Deserialize, Serialize};

use crate::quantity::{rough_duration, rough_size};

/// Requests from which on the figures are near those of the device: [`Confidence::is_enough`] takes
/// as many.
pub const REQUESTS_MIN: u64 = 32;

/// The origin of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The device of which nothing is known.
    #[default]
    Assumed,
    /// The kind of device, as the operating system describes it.
    System,
    /// A profile, or the emulation.
    Told,
    /// Completed requests, with one of the others as the prior.
    Requests,
}

/// See the [module](self).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Estimate {
    /// Switching cost at the largest distance that is known.
    pub switching_ns: u64,
    /// Transfer rate at the beginning of the device.
    pub rate_bytes_per_second: u64,
    /// Requests it works on at once; none as long as that is not known.
    pub servers: Option<u32>,
    /// Competitive depth: switching cost times transfer rate.
    pub depth_bytes: u64,
    /// Requests if one of the figures is from requests, else the origin of all.
    pub basis: Basis,
    /// Completed requests the switching cost and the rate rest on.
    pub requests: u64,
    /// Of these, requests that continued no other; with none the switching cost is still the
    /// prior's.
    #[serde(default)]
    pub switches: u64,
    /// The origin of each figure; a mount of an older version does not tell.
    #[serde(default)]
    pub from: Option<Origins>,
}

/// The origin of each figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Origins {
    /// Of the switching cost.
    pub switching: Basis,
    /// Of the transfer rate.
    pub rate: Basis,
    /// Of the number of servers, if that is known.
    pub servers: Option<Basis>,
}

/// A device of a run with its estimate.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DeviceEstimate {
    /// Its number, as in `8:1`, or `emulated`, `generated`, `modelled`.
    pub device: String,
    /// Its costs at the end of the run.
    #[serde(flatten)]
    pub estimate: Estimate,
}

impl Estimate {
    /// The figures of a profile with their confidence; `prior` is the origin of those that no
    /// request told.
    #[must_use]
    pub fn new(profile: &Profile, confidence: Confidence, prior: Basis) -> Self {
        let (farthest, start) = (Bytes(u64::MAX), Bytes(0));
        let is_early = (1..REQUESTS_MIN).contains(&confidence.samples);
        let origin = |is_prior: bool| match is_prior || is_early {
            true => prior,
            false => Basis::Requests,
        };
        let servers = Some(profile.servers()).filter(|servers| *servers < SERVERS_MAX);
        let from = Origins {
            switching: origin(confidence.switches == 0),
            rate: origin(confidence.samples == 0),
            servers: servers.map(|_| origin(!confidence.saw_servers)),
        };
        Self {
            switching_ns: profile.switching(farthest).0,
            rate_bytes_per_second: profile.rate(start),
            servers,
            depth_bytes: profile.competitive_depth(farthest, start).0,
            basis: match from.all().contains(&Some(Basis::Requests)) {
                true => Basis::Requests,
                false => prior,
            },
            requests: confidence.samples,
            switches: confidence.switches,
            from: Some(from),
        }
    }

    /// Whether requests moved the prior's figures, but too few of them to show theirs.
    #[must_use]
    pub fn is_too_early(&self) -> bool {
        match self.requests {
            // They measured the number of servers alone.
            0 => self.basis == Basis::Requests,
            requests => requests < REQUESTS_MIN,
        }
    }

    /// Switching cost, transfer rate, servers and depth in words, a question mark behind those that
    /// are the prior's though others are not; none as long as it is too early to tell.
    #[must_use]
    pub fn costs(&self) -> [String; 4] {
        if self.is_too_early() {
            return ["-"; 4].map(str::to_owned);
        }
        let [switching, rate, servers] = self.doubts().map(|is| if is { "?" } else { "" });
        let of_servers = |n: u32| format!("{n}{servers}");
        [
            format!("{}{switching}", rough_duration(Nanos(self.switching_ns))),
            format!("{}/s{rate}", rough_size(self.rate_bytes_per_second as f64)),
            self.servers.map_or("?".into(), of_servers),
            rough_size(self.depth_bytes as f64),
        ]
    }

    /// The origin of the figures in words.
    #[must_use]
    pub fn basis(&self) -> String {
        self.basis_of("request")
    }

    /// The same, with this word for a request.
    fn basis_of(&self, request: &str) -> String {
        if self.basis != Basis::Requests {
            return self.basis.word().to_owned();
        }
        let requests = match self.requests {
            0 => format!("{request}s"),
            requests => counted(requests, request),
        };
        let prior = self.from.iter().flat_map(Origins::all).flatten();
        match prior.into_iter().find(|basis| *basis != Basis::Requests) {
            Some(prior) => format!("{requests}, ? {}", prior.word()),
            None => requests,
        }
    }

    /// Whether switching cost, transfer rate and servers are the prior's though others are not.
    fn doubts(&self) -> [bool; 3] {
        let is_mixed = self.basis == Basis::Requests;
        let origins = self.from.map(|from| from.all()).unwrap_or_default();
        origins.map(|of| is_mixed && of.is_some_and(|of| of != Basis::Requests))
    }
}

impl Origins {
    fn all(&self) -> [Option<Basis>; 3] {
        [Some(self.switching), Some(self.rate), self.servers]
    }
}

impl Basis {
    /// In one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Assumed => "assumed",
            Self::System => "system",
            Self::Told => "told",
            Self::Requests => "requests",
        }
    }
}

impl fmt::Display for Estimate {
    /// At the end of a run, where the ledger counts all requests.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_too_early() {
            let requests = counted(self.requests, MEASURED);
            return write!(f, "not enough requests to tell ({requests})");
        }
        let [switching, rate, servers, depth] = self.costs();
        let ending = if self.servers == Some(1) { "" } else { "s" };
        let basis = self.basis_of(MEASURED);
        write!(
            f,
            "{switching}  {rate}  {servers} server{ending}  depth {depth}  ({basis})"
        )
    }
}

impl fmt::Display for DeviceEstimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {}", self.device, self.estimate)
    }
}

#[cfg(feature = "driver")]
impl From<PriorSource> for Basis {
    fn from(source: PriorSource) -> Self {
        match source {
            PriorSource::Told => Self::Told,
            PriorSource::System => Self::System,
            _ => Self::Assumed,
        }
    }
}

/// A completed request that the figures rest on.
const MEASURED: &str = "measured request";

fn counted(requests: u64, request: &str) -> String {
    match requests {
        1 => format!("1 {request}"),
        _ => format!("{} {request}s", grouped(requests)),
    }
}

/// Numbers from here on are made up, for servers: those of the system's devices have 32 bits.
const SERVERS_FROM: u64 = 1 << 32;

/// The names of these devices, each another one: `8:1` by its number, `store` of a server, and `other` of one without a
/// number, as one that is emulated.
///
/// ```
/// use forerun_surface::estimate::device_names;
///
/// let devices = [Some(0x801), None, Some(1 << 40), None];
/// let names = ["8:1", "emulated 1", "store", "emulated 2"];
/// assert_eq!(device_names(&devices, "emulated"), names);
/// ```
#[must_use]
pub fn device_names(devices: &[Option<u64>], other: &str) -> Vec<String> {
    let word = |device: &Option<u64>| match device {
        None => Some(other),
        Some(number) if *number >= SERVERS_FROM => Some("store"),
        Some(_) => None,
    };
    let so_named = |devices: &[Option<u64>], name| {
        let words = devices.iter().filter_map(word);
        words.filter(|word| *word == name).count()
    };
    let name = |(at, device): (usize, &Option<u64>)| match (word(device), device) {
        (None, Some(number)) => format!("{}:{}", major(*number), minor(*number)),
        (named, _) => {
            let named = named.unwrap_or(other);
            name_nth(
                named,
                so_named(&devices[..at], named),
                so_named(devices, named),
            )
        }
    };
    devices.iter().enumerate().map(name).collect()
}

/// Names for devices that have no number: the same word, counted if there are several.
pub fn name_nth(word: &str, nth: usize, of: usize) -> String {
    match of {
        0 | 1 => word.to_owned(),
        _ => format!("{word} {}", nth + 1),
    }
}

/// A number with its thousands apart: `1,204`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> Profile {
        Profile::constant(Nanos(12_000_000), 220_000_000).unwrap()
    }

    fn of(servers: u32) -> Profile {
        disk().with_servers(servers).unwrap()
    }

    fn samples(samples: u64, switches: u64) -> Confidence {
        let mut confidence = Confidence::default();
        confidence.samples = samples;
        confidence.switches = switches;
        confidence
    }

    fn seen(mut confidence: Confidence) -> Confidence {
        confidence.saw_servers = true;
        confidence
    }

    #[test]
    fn a_measured_device_is_one_line_with_its_requests() {
        let estimate = Estimate::new(&of(1), seen(samples(1_204, 300)), Basis::System);
        assert_eq!(
            estimate.to_string(),
            "12.0 ms  220.0 MB/s  1 server  depth 2.64 MB  (1,204 measured requests)"
        );
    }

    #[test]
    fn a_device_without_requests_says_where_its_figures_come_from() {
        for (basis, word) in [
            (Basis::Told, "(told)"),
            (Basis::System, "(system)"),
            (Basis::Assumed, "(assumed)"),
        ] {
            let text = Estimate::new(&disk(), samples(0, 0), basis).to_string();
            assert!(text.contains("? servers") && text.ends_with(word), "{text}");
        }
    }

    #[test]
    fn the_largest_distance_counts() {
        let switching = vec![(Bytes(4096), Nanos(1)), (Bytes(1 << 30), Nanos(8_000_000))];
        let profile = Profile::new(switching, vec![(Bytes(0), 80_000_000)]).unwrap();
        let estimate = Estimate::new(&profile, samples(1, 1), Basis::default());
        assert_eq!(estimate.switching_ns, 8_000_000);
        assert_eq!(estimate.depth_bytes, 640_000);
        assert_eq!(estimate.basis(), "assumed");
    }

    #[test]
    fn each_figure_that_no_request_told_has_a_question_mark() {
        let text = |profile: Profile, samples: Confidence| {
            let estimate = Estimate::new(&profile, samples, Basis::Told);
            format!("{} | {}", estimate.costs().join(" "), estimate.basis())
        };
        for (profile, confidence, expected) in [
            (of(8), samples(0, 0), "12.0 ms 220.0 MB/s 8 2.64 MB | told"),
            // A sequential reader: the rate alone.
            (
                of(8),
                samples(40, 0),
                "12.0 ms? 220.0 MB/s 8? 2.64 MB | 40 requests, ? told",
            ),
            // Requests that measured the number of servers and no cost, and the last one too few.
            (of(3), seen(samples(0, 0)), "- - - - | requests, ? told"),
            (of(3), samples(31, 9), "- - - - | told"),
            (
                of(3),
                seen(samples(40, 9)),
                "12.0 ms 220.0 MB/s 3 2.64 MB | 40 requests",
            ),
        ] {
            assert_eq!(text(profile, confidence), expected);
        }
    }

    #[test]
    fn too_few_requests_are_no_estimate_at_the_end_of_a_run() {
        let of = |requests| {
            let samples = seen(samples(requests, 1));
            Estimate::new(&of(2), samples, Basis::Told).to_string()
        };
        assert_eq!(of(0), "not enough requests to tell (0 measured requests)");
        assert_eq!(of(1), "not enough requests to tell (1 measured request)");
        assert_eq!(of(31), "not enough requests to tell (31 measured requests)");
        assert!(of(32).starts_with("12.0 ms  220.0 MB/s  2 servers"));
    }

    #[test]
    fn figures_of_too_few_requests_are_published_as_the_priors() {
        for (requests, expected) in [
            (1, Basis::System),
            (31, Basis::System),
            (32, Basis::Requests),
        ] {
            let estimate = Estimate::new(&of(2), seen(samples(requests, 1)), Basis::System);
            let from = estimate.from.unwrap();
            let of = [
                estimate.basis,
                from.switching,
                from.rate,
                from.servers.unwrap(),
            ];
            assert_eq!(of, [expected; 4], "{requests} requests");
        }
    }

    #[test]
    fn the_report_of_an_older_mount_is_shown_without_marks() {
        let old = serde_json::json!({
            "switching_ns": 8_000_000, "rate_bytes_per_second": 80_000_000, "servers": 1,
            "depth_bytes": 640_000, "basis": "requests", "requests": 235,
        });
        let old: Estimate = serde_json::from_value(old).unwrap();
        assert_eq!(
            old.to_string(),
            "8.00 ms  80.0 MB/s  1 server  depth 640.0 kB  (235 measured requests)"
        );
    }

    #[test]
    fn thousands_stand_apart() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }
}
