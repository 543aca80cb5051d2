//! Models: devices described by a TOML file, those built in and a user's own.
//!
//! [`from_toml`] reads the `kind` of a file, hands the rest to that device's sheet, and gives back
//! a checked [`Model`] from which any number of devices are built. The built-in files lie in
//! `models/` beside the source, each parameter with where it comes from; each is a device of its
//! own in the list, so `hp97560` is a name a user can type, and its file is the example to copy.
//! A built-in model is its file and one entry of `built_in!` below.
//!
//! Unknown keys are refused, units end the names, and a value out of its range is named with it.

use core::fmt;
use std::sync::Arc;

use forerun_core::profile::ProfileError;
use forerun_core::spec::{Knows, Method, Spec};
use forerun_core::{Nanos, Profile};
use serde::Deserialize;

use super::hdd::{Drawing, Hdd, Sheet};
use super::object_store::{self, ObjectStore};
use super::ssd::{self, Ssd};
use super::switching::Switching;
use super::{Built, Device, DeviceError};

/// Why a model was refused.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum ModelError {
    /// Not TOML, or a key missing, unknown or of the wrong type.
    Toml {
        /// In which line, from 1; none where a key is missing in all of it.
        line: Option<usize>,
        /// The fault there, in one line.
        reason: String,
    },
    /// A `kind` there is not.
    Kind(String),
    /// A value out of its range.
    Range {
        /// The parameter.
        param: &'static str,
        /// The given value, or one derived from given values.
        value: f64,
        /// Smallest accepted value.
        low: f64,
        /// Largest accepted value.
        high: f64,
    },
    /// Parts that exclude or need each other, in words.
    Choose(&'static str),
    /// A value derived from the parameters is beyond the range of a profile.
    Profile(ProfileError),
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Toml { line, reason } => {
                line.map_or(Ok(()), |line| write!(f, "line {line}: "))?;
                f.write_str(reason)
            }
            Self::Kind(kind) => {
                write!(f, "kind {kind:?}: there is {}", KINDS.join(", "))
            }
            Self::Range {
                param,
                value,
                low,
                high,
            } => write!(f, "{param} = {value}: must lie from {low} to {high}"),
            Self::Choose(words) => f.write_str(words),
            Self::Profile(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ModelError {}

/// The values of `kind`.
const KINDS: &[&str] = &["hdd", "ssd", "object_store", "switching"];

/// A checked device description.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Model {
    /// A disk with arm and platter.
    Hdd(Arc<Drawing>),
    /// Flash behind parallel channels.
    Ssd(ssd::Parameters),
    /// A store of whole objects far away.
    ObjectStore(object_store::Parameters),
    /// One switching cost and one rate.
    Switching(Profile),
}

impl Model {
    /// A new device of this model.
    #[must_use]
    pub fn build(&self) -> Box<dyn Device> {
        match self {
            Self::Hdd(drawing) => Box::new(Hdd::new(Arc::clone(drawing))),
            Self::Ssd(parameters) => Box::new(Ssd::new(*parameters)),
            Self::ObjectStore(parameters) => Box::new(ObjectStore::new(*parameters)),
            Self::Switching(profile) => Box::new(Switching::new(profile.clone())),
        }
    }

    /// The built-in model of this name.
    #[must_use]
    pub fn built_in(name: &str) -> Option<Self> {
        let (_, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
        from_toml(text).ok()
    }
}

/// The part of a file that decides how to read the rest.
#[derive(Deserialize)]
struct Kind {
    kind: String,
}

/// The file of a device with one switching cost and one rate.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SwitchingSheet {
    #[expect(dead_code, reason = "read as `Kind`; here so that it is a known key")]
    kind: String,
    switching_ms: f64,
    transfer_mb_s: f64,
}

/// Reads a model from the text of its file.
///
/// # Errors
/// See [`ModelError`].
pub fn from_toml(text: &str) -> Result<Model, ModelError> {
    let Kind { kind } = read(text)?;
    match kind.as_str() {
        "hdd" => {
            let drawing = read::<Sheet>(text)?.drawing()?;
            drawing.profile()?;
            Ok(Model::Hdd(Arc::new(drawing)))
        }
        "ssd" => read::<ssd::Sheet>(text)?.check().map(Model::Ssd),
        "object_store" => read::<object_store::Sheet>(text)?
            .check()
            .map(Model::ObjectStore),
        "switching" => {
            let sheet: SwitchingSheet = read(text)?;
            let cost = milliseconds("switching_ms", sheet.switching_ms, 60_000.0)?;
            let rate = rate("transfer_mb_s", sheet.transfer_mb_s)?;
            let profile = Profile::constant(cost, rate).map_err(ModelError::Profile)?;
            Ok(Model::Switching(profile))
        }
        _ => Err(ModelError::Kind(kind)),
    }
}

fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, ModelError> {
    toml::from_str(text).map_err(|error| {
        let before = |span: std::ops::Range<usize>| text.get(..span.start);
        let before = error.span().and_then(before);
        let line = before.map(|before| 1 + before.matches('\n').count());
        let lines: Vec<&str> = error.message().lines().map(str::trim).collect();
        let reason = lines.join(", ");
        ModelError::Toml { line, reason }
    })
}

/// The value, if it lies in its range; never if it is not a number.
pub(super) fn range(
    param: &'static str,
    value: f64,
    low: f64,
    high: f64,
) -> Result<f64, ModelError> {
    if (low..=high).contains(&value) {
        return Ok(value);
    }
    Err(ModelError::Range {
        param,
        value,
        low,
        high,
    })
}

/// A time from milliseconds.
pub(super) fn milliseconds(
    param: &'static str,
    value: f64,
    high: f64,
) -> Result<Nanos, ModelError> {
    let value = range(param, value, 0.0, high)?;
    Ok(Nanos((value * 1e6).round() as u64))
}

/// Bytes a second from 10^6 bytes a second: the range a profile may state.
pub(super) fn rate(param: &'static str, value: f64) -> Result<u64, ModelError> {
    let value = range(param, value, 0.001, 1e6)?;
    Ok((value * 1e6).round() as u64)
}

macro_rules! built_in {
    ($($name:literal $summary:literal $source:literal $unfit:literal;)*) => {
        /// The built-in models: name, and the text of the file.
        pub static BUILT_IN: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../models/", $name, ".toml")))),*];

        /// The built-in models as devices: their part of [`LIST`](super::LIST).
        pub(super) const LISTED: &[Method<Built>] = &[$(Method {
            spec: Spec {
                name: $name,
                summary: $summary,
                source: $source,
                unfit: $unfit,
                knows: Knows::Online,
                params: &[],
            },
            build: |_| {
                let text = include_str!(concat!("../../models/", $name, ".toml"));
                device_of($name, text)
            },
        }),*];
    };
}

/// A device of a built-in file. One that is not read is an error, and no other device.
fn device_of(name: &'static str, text: &str) -> Built {
    let model = from_toml(text).map_err(|error| DeviceError::Model(name, error))?;
    Ok(model.build())
}

built_in! {
    "hp97560"
        "disk of 1992, 1.3 GB, 4002 rpm: rotation, readahead and every switch modelled"
        "kimbrel96 table 1; Ruemmler and Wilkes 1994"
        "writes that are reported early";
    "hp97560_calibrated"
        "hp97560 with a cylinder switch calibrated to another simulator's means"
        "Ruemmler and Wilkes 1994; means of an independent detailed simulator"
        "writes that are reported early";
    "ibm_lightning_0661"
        "disk of 1990, 0.3 GB, 4318 rpm, without a cache"
        "kimbrel96 section 4, its second simulator"
        "readahead of the drive: it has none";
    "ibm_36gb_10k"
        "server disk of 2002, 36.4 GB, 10000 rpm"
        "li04 section 3.1, figure 2"
        "single zones: only the figures of the whole surface are measured";
    "seagate_146gb_10k"
        "server disk of 2004, 146 GB, 10000 rpm"
        "li05; data sheet figures"
        "single zones: only the figures of the whole surface are known";
    "cheetah_15k_st373454"
        "server disk of 2005, 73.4 GB, 15000 rpm"
        "baek09; data sheet figures"
        "single zones: only the figures of the whole surface are known";
    "hitachi_t7k250_160"
        "desktop disk of 2006, 160 GB, 7200 rpm, its own readahead off as in the paper"
        "wu10 section 5; data sheet figures"
        "readahead of the drive: it is off, as the paper measured";
    "hp_c2247a"
        "disk of 1992, 1.05 GB, 5400 rpm: validated request by request against the real one"
        "DiskSim validation set"
        "sectors remapped one by one";
    "emulated_default"
        "8 ms a switch, 80 MB/s: the emulated disk of the real-time tests"
        "li04 section 2.1"
        "effects of rotation, reordering, device caches and parallel channels";
    "object_store_region"
        "object store in the same region: 30 ms to the first byte, 80 MB/s a stream"
        "reported figures"
        "rare slow requests: every first byte takes equally long";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreadable_built_in_model_is_an_error_that_names_it() {
        let refused = device_of("torn", "kind = \"hdd\"").unwrap_err().to_string();
        assert!(refused.starts_with("built-in model torn: "), "{refused}");
        assert!(device_of("whole", BUILT_IN[0].1).is_ok());
    }

    #[test]
    fn every_file_of_a_model_has_its_entry() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/models");
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_stem().and_then(|name| name.to_str()).unwrap();
            assert!(BUILT_IN.iter().any(|(known, _)| *known == name), "{name}");
        }
    }

    #[test]
    fn every_built_in_file_is_read() {
        for (name, text) in BUILT_IN {
            assert!(
                from_toml(text).is_ok(),
                "{name}: {}",
                from_toml(text).unwrap_err()
            );
        }
    }

    #[test]
    fn a_refusal_names_parameter_value_and_range() {
        let (_, good) = BUILT_IN
            .iter()
            .find(|(name, _)| *name == "hp97560")
            .unwrap();
        let refused = |from: &str, to: &str| {
            assert!(good.contains(from), "{from}");
            from_toml(&good.replace(from, to)).unwrap_err().to_string()
        };
        assert_eq!(
            refused("rpm = 4002", "rpm = 0"),
            "rpm = 0: must lie from 60 to 1000000"
        );
        assert!(refused("rpm = 4002", "rpm = nan").contains("NaN"));
        assert!(refused("rpm = 4002", "rpms = 4002").contains("unknown field `rpms`"));
        assert!(refused("kind = \"hdd\"", "kind = \"tape\"").contains("there is hdd, ssd"));
        assert!(refused("head_switch_ms = 1.6", "head_switch_ms = -1").contains("from 0"));
        let wide = refused("rpm = 4002", "rpm = [4002,\n 1]");
        assert!(wide.starts_with("line ") && !wide.contains('\n'), "{wide}");
        assert!(from_toml("= 1").is_err());
        assert!(from_toml("").unwrap_err().to_string().contains("kind"));
    }
}
