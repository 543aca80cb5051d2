//! Conditions of a bench: the flags that its row has no number for, in words.
//!
//! Problem: rows of two benches that differ in the device alone are one run to a reader of the rows, and the later one
//! replaces the earlier. Mechanism: a row has the device, the load and the flags of its engine, each as it was typed and
//! only where it is not the default:
//!
//! ```text
//! bench --emulate switching=8ms,rate=80MB/s --shared --depth fixed
//!       device  switching=8ms,rate=80MB/s     load  shared     flags  depth fixed(..)
//! ```

use forerun_io::BackendChoice;

use crate::args::{Bench, Hinted, Workload};
use crate::quantity::{duration, typed};

/// Size of files unless it is told.
const FILE_BYTES: u64 = 100_000_000;

/// See the [module](self).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conditions {
    /// The emulated device, or the paths; none where content comes from the seed.
    pub device: Option<String>,
    /// Emulated devices.
    pub disks: u16,
    /// The readers' flags.
    pub load: Option<String>,
    /// Those of engines.
    pub flags: Option<String>,
}

impl Conditions {
    /// Of these arguments.
    #[must_use]
    pub fn of(args: &Bench) -> Self {
        Self {
            device: device(args),
            disks: args.disks,
            load: load(&args.workload),
            flags: flags(args),
        }
    }
}

fn device(args: &Bench) -> Option<String> {
    let emulated = args.storage.emulate.map(|device| device.to_string());
    let place = match &args.paths[..] {
        [] => None,
        [one] => Some(one.display().to_string()),
        [first, others @ ..] => Some(format!("{} and {} others", first.display(), others.len())),
    };
    match (place, emulated) {
        (Some(place), Some(emulated)) => Some(format!("{place} as {emulated}")),
        (place, emulated) => place.or(emulated),
    }
}

fn load(workload: &Workload) -> Option<String> {
    let percent = |percent: u8| (percent > 0).then(|| percent.to_string());
    in_words([
        ("shared", workload.shared.then(String::new)),
        (
            "file-bytes",
            (workload.file_bytes.0 != FILE_BYTES).then(|| typed(workload.file_bytes)),
        ),
        (
            "think",
            (workload.think.0 > 0).then(|| duration(workload.think).to_string()),
        ),
        ("hints", workload.hints.then(String::new)),
        ("wrong-percent", percent(workload.wrong_percent)),
        ("missing-percent", percent(workload.missing_percent)),
    ])
}

fn flags(args: &Bench) -> Option<String> {
    let storage = &args.storage;
    let hinted = |Hinted(method): &Hinted| {
        let method = method.as_ref();
        method.map_or("none".to_owned(), ToString::to_string)
    };
    let backend = |backend: BackendChoice| match backend {
        BackendChoice::Auto => None,
        BackendChoice::Only(entry) => Some(entry.name.to_owned()),
    };
    let profile = storage.profile.as_ref();
    let others = [
        ("hinted", args.hinted.as_ref().map(hinted)),
        ("backend", storage.backend.and_then(backend)),
        ("stripe", storage.stripe.map(|array| array.to_string())),
        ("profile", profile.map(|path| path.display().to_string())),
        ("profile-fixed", storage.profile_fixed.then(String::new)),
    ];
    in_words(args.composition.methods.values().into_iter().chain(others))
}

/// The flags that are given, with commas between; none where there are none.
fn in_words<'a>(all: impl IntoIterator<Item = (&'a str, Option<String>)>) -> Option<String> {
    let given = all
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    let given = given.map(|(name, value)| format!("{name} {value}").trim_end().to_owned());
    let given: Vec<String> = given.collect();
    (!given.is_empty()).then(|| given.join(", "))
}
