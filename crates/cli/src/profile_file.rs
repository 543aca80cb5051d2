//! The profile of a device as a TOML file: written by `forerun profile`, taken by `--profile`.
//!
//! ```toml
//! # the measurement, and its method, as a comment
//! [[switching]]
//! distance_bytes = 65536
//! switching_ns = 8000000
//!
//! [[rate]]
//! location_bytes = 0
//! rate_bytes_per_second = 80000000
//! ```
//!
//! Two maps, as in `forerun_core::profile`, which checks order and ranges; units end the names. A
//! key that is not known is refused, so a slip of the pen is not silently ignored. People may
//! write one by hand: a single point in each map is a complete profile.

use std::path::Path;

use forerun_core::profile::{ProfileError, SERVERS_MAX};
use forerun_core::{Bytes, Nanos, Profile};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::files;

/// Far more than 64 points in each map take, comments included.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// Letters of a message that may quote the file: the longest that does not, with all keys, has 120.
const WHY_MAX: usize = 200;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    /// Number of requests the device works on at once: 1 for a disk, left out if many.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    servers: Option<u32>,
    switching: Vec<SwitchingPoint>,
    rate: Vec<RatePoint>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SwitchingPoint {
    distance_bytes: u64,
    switching_ns: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RatePoint {
    location_bytes: u64,
    rate_bytes_per_second: u64,
}

/// Why a text is not a profile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileFileError {
    /// Not TOML, or not these keys.
    #[error("line {line}: {why}")]
    Form {
        /// Where, from 1.
        line: usize,
        /// In one line, without control characters and of at most [`WHY_MAX`] letters.
        why: String,
    },
    /// The maps make no sense.
    #[error("{0}")]
    Maps(ProfileError),
}

/// Reads a profile from the text of its file.
///
/// # Errors
/// See [`ProfileFileError`].
pub fn parse(text: &str) -> Result<Profile, ProfileFileError> {
    let document: Document = toml::from_str(text).map_err(|e| wrong_form(text, &e))?;
    let switching = document.switching.iter();
    let rate = document.rate.iter();
    let profile = Profile::new(
        switching
            .map(|p| (Bytes(p.distance_bytes), Nanos(p.switching_ns)))
            .collect(),
        rate.map(|p| (Bytes(p.location_bytes), p.rate_bytes_per_second))
            .collect(),
    );
    let profile = profile.and_then(|p| match document.servers {
        Some(servers) => p.with_servers(servers),
        None => Ok(p),
    });
    profile.map_err(ProfileFileError::Maps)
}

/// The parser's own message shows the whole line of the file, which may be all of it, and names
/// keys as they are after escapes.
fn wrong_form(text: &str, error: &toml::de::Error) -> ProfileFileError {
    let begin = error.span().map_or(0, |span| span.start);
    let before = text.bytes().take(begin);
    let why = error.message().chars().take(WHY_MAX);
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    ProfileFileError::Form {
        line: 1 + before.filter(|byte| *byte == b'\n').count(),
        why: why.map(printable).collect(),
    }
}

/// The text of a profile's file, `comment` before it.
///
/// # Errors
/// A position beyond 2^63, which TOML cannot hold.
pub fn print(profile: &Profile, comment: &str) -> Result<String, toml::ser::Error> {
    let switching = profile.switching_points().iter();
    let rate = profile.rate_points().iter();
    let known = profile.servers() < SERVERS_MAX;
    let document = Document {
        servers: known.then_some(profile.servers()),
        switching: switching
            .map(|(at, cost)| SwitchingPoint {
                distance_bytes: at.0,
                switching_ns: cost.0,
            })
            .collect(),
        rate: rate
            .map(|&(at, rate)| RatePoint {
                location_bytes: at.0,
                rate_bytes_per_second: rate,
            })
            .collect(),
    };
    let comment: String = comment.lines().map(|line| format!("# {line}\n")).collect();
    Ok(format!("{comment}\n{}", toml::to_string(&document)?))
}

/// Reads the profile in a file of the user.
///
/// # Errors
/// A file that cannot be read or holds no profile; names the file and the fault.
pub fn load(path: &Path) -> Result<Profile, Failure> {
    let text = files::read_text(path, FILE_BYTES_MAX)?;
    parse(&text).map_err(|e| Failure::unusable(path, format!("not a profile: {e}")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ONE_POINT: &str = "\
        [[switching]]\ndistance_bytes = 0\nswitching_ns = 8000000\n\
        [[rate]]\nlocation_bytes = 0\nrate_bytes_per_second = 80000000\n";

    #[test]
    fn one_point_in_each_map_is_a_profile() {
        assert_eq!(parse(ONE_POINT).unwrap(), Profile::default());
        let disk = parse(&format!("servers = 1\n{ONE_POINT}")).unwrap();
        assert_eq!(disk, Profile::default().with_servers(1).unwrap());
    }

    #[test]
    fn what_is_wrong_is_named() {
        let message = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(message(""), "line 1: missing field `switching`");
        let said = message(&format!(
            "{ONE_POINT}\"\\u001b[2J{}\" = 1",
            "a".repeat(100_000)
        ));
        assert!(said.starts_with("line 7: unknown field ` [2Jaaa"), "{said}");
        assert_eq!(said.len(), "line 7: ".len() + WHY_MAX);
        let said = message(&"a".repeat(100_000));
        assert!(said.starts_with("line 1: ") && said.len() < 100, "{said}");
        assert!(
            message(&ONE_POINT.replace("switching_ns", "switching_ms")).contains("switching_ms")
        );
        assert!(message(&ONE_POINT.replace("80000000", "-1")).contains("invalid value"));
        assert!(
            message(&ONE_POINT.replace("80000000", "12"))
                .contains("must be a whole number from 1000")
        );
        assert!(message(&format!("{ONE_POINT}{ONE_POINT}")).contains("must increase"));
    }

    proptest! {
        #[test]
        fn what_was_printed_is_read_back(
            distances in proptest::collection::btree_map(0..u64::MAX / 2, 0_u64..60_000_000_000, 1..64),
            locations in proptest::collection::btree_map(
                0..u64::MAX / 2, 1_000_u64..1_000_000_000_000, 1..64),
        ) {
            let profile = Profile::new(
                distances.into_iter().map(|(d, t)| (Bytes(d), Nanos(t))).collect(),
                locations.into_iter().map(|(l, r)| (Bytes(l), r)).collect(),
            ).unwrap();
            let text = print(&profile, "measured\non a disk").unwrap();
            prop_assert_eq!(parse(&text).unwrap(), profile);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*|(\\[\\[(rate|switching)\\]\\]\n|[a-z_]+ = [0-9]+\n)*") {
            let _ = parse(&text);
        }
    }
}
