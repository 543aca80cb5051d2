//! Conditions of a bench: the flags that its row has no number for, in words.
//!
//! Problem: rows of two benches that differ in the device alone are one run to a reader of the rows, and the later one
//! replaces the earlier. Mechanism: a row has the device, the load and the flags of its engine, each as it was typed and
//! only where it is not the default. Of files it has the absolute paths; of addresses neither password nor query, because
//! rows are kept and passed on:
//!
//! ```text
//! bench --emulate switching=8ms,rate=80MB/s --shared --depth fixed
//!       device  switching=8ms,rate=80MB/s     load  shared     flags  depth fixed(..)
//! bench a.bin https://me:secret@host/data
//!       device  /data/a.bin and https://***@host/data
//! ```

use std::borrow::Cow;
use std::path::{Path, absolute};

use forerun_io::BackendChoice;

use crate::args::{Bench, Hinted, Workload};
use crate::messages::without_secrets;
use crate::quantity::{duration, typed};
use crate::sources::address;

/// Size of files unless it is told.
const FILE_BYTES: u64 = 100_000_000;

/// See the [module](self).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conditions {
    /// The emulated device, or all paths; none where content comes from the seed.
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
    let places: Vec<String> = args.paths.iter().map(|path| place(path)).collect();
    let place = (!places.is_empty()).then(|| places.join(" and "));
    match (place, emulated) {
        (Some(place), Some(emulated)) => Some(format!("{place} as {emulated}")),
        (place, emulated) => place.or(emulated),
    }
}

/// A path as it stands in a row.
fn place(path: &Path) -> String {
    let path = match address(path) {
        Some(_) => Cow::Borrowed(path),
        None => absolute(path).map_or(Cow::Borrowed(path), Cow::Owned),
    };
    without_secrets(&path.to_string_lossy())
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    /// A command line of a bench alone.
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        bench: Bench,
    }

    fn device_of(paths: &[&str]) -> String {
        let line = ["bench"].iter().chain(paths);
        let line = Line::try_parse_from(line).unwrap();
        Conditions::of(&line.bench).device.unwrap()
    }

    #[test]
    fn a_row_names_every_path_and_no_secret() {
        for (paths, device) in [
            (&["/d/a"][..], "/d/a"),
            (&["/d/a", "/d/b"], "/d/a and /d/b"),
            (&["/d/a", "/d/c"], "/d/a and /d/c"),
            (&["https://me:secret@host/data"], "https://***@host/data"),
            (
                &["/d/a", "http://h/b?X-Amz-Signature=0123"],
                "/d/a and http://h/b?***",
            ),
            (
                &["s3://bucket/a", "s3://bucket/b"],
                "s3://bucket/a and s3://bucket/b",
            ),
        ] {
            assert_eq!(device_of(paths), device);
        }
    }

    #[test]
    fn a_relative_path_is_made_absolute() {
        let here = std::env::current_dir().unwrap();
        for name in ["a", "d/b"] {
            assert_eq!(device_of(&[name]), here.join(name).display().to_string());
        }
    }
}
