//! The engine's estimate of a device: its costs, and the requests they rest on.
//!
//! Shown by `top`, the metrics, `bench` and `read --stats`, so that a depth that looks odd can be
//! traced to the figures it was computed from.
//!
//! ```text
//! 12.0 ms  220.0 MB/s  1 server  depth 2.64 MB  (1,204 requests)
//! |        |           |         |              +-- or told, system, assumed: nothing measured yet
//! |        |           |         +-- switching cost times transfer rate: the competitive depth
//! |        |           +-- requests worked on at once; "?" until that is measured
//! |        +-- transfer rate at the beginning of the device
//! +-- switching cost at the largest distance that is known; "8.00 ms?" if no request measured it
//! ```
//!
//! One sequential reader measures the transfer rate alone: none of its requests is a switch.

use std::fmt;

use forerun_core::measure::Confidence;
use forerun_core::profile::SERVERS_MAX;
use forerun_core::{Bytes, Nanos, Profile};
use forerun_io::PriorSource;
use serde::{Deserialize, Serialize};

use crate::quantity::{rough_duration, rough_size};

/// The origin of the figures.
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
    /// Origin of the figures.
    pub basis: Basis,
    /// Completed requests they rest on.
    pub requests: u64,
    /// Of these, requests that continued no other; with none the switching cost is still the prior's.
    #[serde(default)]
    pub switches: u64,
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
    /// The figures of a profile with their confidence.
    #[must_use]
    pub fn new(profile: &Profile, confidence: Confidence, prior: Basis) -> Self {
        let (farthest, start) = (Bytes(u64::MAX), Bytes(0));
        Self {
            switching_ns: profile.switching(farthest).0,
            rate_bytes_per_second: profile.rate(start),
            servers: Some(profile.servers()).filter(|servers| *servers < SERVERS_MAX),
            depth_bytes: profile.competitive_depth(farthest, start).0,
            basis: match confidence.samples {
                0 => prior,
                _ => Basis::Requests,
            },
            requests: confidence.samples,
            switches: confidence.switches,
        }
    }

    /// Switching cost, transfer rate and depth in words.
    #[must_use]
    pub fn costs(&self) -> [String; 3] {
        let doubt = match (self.basis, self.switches) {
            (Basis::Requests, 0) => "?",
            _ => "",
        };
        [
            format!("{}{doubt}", rough_duration(Nanos(self.switching_ns))),
            format!("{}/s", rough_size(self.rate_bytes_per_second as f64)),
            rough_size(self.depth_bytes as f64),
        ]
    }

    /// The number of servers, or a question mark.
    #[must_use]
    pub fn servers_or_unknown(&self) -> String {
        self.servers.map_or("?".into(), |n| n.to_string())
    }

    /// The origin of the figures in words.
    #[must_use]
    pub fn basis(&self) -> String {
        match (self.basis, self.requests) {
            (Basis::Assumed, _) => "assumed".into(),
            (Basis::System, _) => "system".into(),
            (Basis::Told, _) => "told".into(),
            (Basis::Requests, 1) => "1 request".into(),
            (Basis::Requests, requests) => format!("{} requests", grouped(requests)),
        }
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [switching, rate, depth] = self.costs();
        let servers = self.servers_or_unknown();
        let ending = if self.servers == Some(1) { "" } else { "s" };
        let basis = self.basis();
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

impl From<PriorSource> for Basis {
    fn from(prior: PriorSource) -> Self {
        match prior {
            PriorSource::Told => Self::Told,
            PriorSource::System => Self::System,
            _ => Self::Assumed,
        }
    }
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

    fn samples(samples: u64) -> Confidence {
        Confidence {
            samples,
            switches: samples / 2,
            ..Confidence::default()
        }
    }

    #[test]
    fn a_measured_device_is_one_line_with_its_requests() {
        let profile = disk().with_servers(1).unwrap();
        let estimate = Estimate::new(&profile, samples(1_204), Basis::System);
        assert_eq!(
            estimate.to_string(),
            "12.0 ms  220.0 MB/s  1 server  depth 2.64 MB  (1,204 requests)"
        );
    }

    #[test]
    fn a_device_without_requests_says_where_its_figures_come_from() {
        for (prior, word) in [
            (Basis::Told, "(told)"),
            (Basis::System, "(system)"),
            (Basis::Assumed, "(assumed)"),
        ] {
            let text = Estimate::new(&disk(), samples(0), prior).to_string();
            assert!(text.contains("? servers") && text.ends_with(word), "{text}");
        }
    }

    #[test]
    fn the_largest_distance_counts() {
        let switching = vec![(Bytes(4096), Nanos(1)), (Bytes(1 << 30), Nanos(8_000_000))];
        let profile = Profile::new(switching, vec![(Bytes(0), 80_000_000)]).unwrap();
        let estimate = Estimate::new(&profile, samples(1), Basis::Told);
        assert_eq!(estimate.switching_ns, 8_000_000);
        assert_eq!(estimate.depth_bytes, 640_000);
        assert_eq!(estimate.basis(), "1 request");
    }

    #[test]
    fn a_switching_cost_that_no_request_measured_has_a_question_mark() {
        let confidence = Confidence {
            samples: 4,
            ..Confidence::default()
        };
        let estimate = Estimate::new(&disk(), confidence, Basis::System);
        assert!(
            estimate.to_string().starts_with("12.0 ms?  220.0 MB/s"),
            "{estimate}"
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
