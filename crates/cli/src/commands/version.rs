//! `forerun version`: the version, and which parts this binary has.
//!
//! The parts are the features of the crate, so that a user sees whether a binary reads object stores before it is asked
//! to:
//!
//! ```text
//! forerun 0.1.0
//! parts      files, mount, top, install, object-store
//! left out   none
//! addresses  s3://, gs://, az://, https://, http://
//! backends   uring, pread
//! built for  x86_64 linux, optimised, linked with the C library of the system
//! ```

use std::fmt::Write as _;
use std::io::Write;

use crate::args::Version;
use crate::failure::Failure;

/// The features of the crate, and whether this binary has each.
const PARTS: [(&str, bool); 5] = [
    ("files", cfg!(feature = "files")),
    ("mount", cfg!(feature = "mount")),
    ("top", cfg!(feature = "top")),
    ("install", cfg!(feature = "install")),
    ("object-store", cfg!(feature = "object-store")),
];

/// Runs the command.
///
/// # Errors
/// Output that cannot be written.
pub fn run(args: &Version, out: &mut dyn Write) -> Result<(), Failure> {
    let text = match args.verbose {
        true => verbose(),
        false => short(),
    };
    out.write_all(text.as_bytes())
        .map_err(|e| Failure::output(&e))
}

fn short() -> String {
    format!("forerun {}\n", env!("CARGO_PKG_VERSION"))
}

/// The version and the parts.
#[must_use]
pub fn verbose() -> String {
    let mut text = short();
    for (name, value) in lines() {
        let value = if value.is_empty() { "none" } else { &value };
        let _ = writeln!(text, "{name:<11}{value}");
    }
    text
}

fn lines() -> [(&'static str, String); 5] {
    let parts = |has: bool| {
        let parts = PARTS.iter().filter(|(_, is_in)| *is_in == has);
        parts.map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    };
    let linked = match cfg!(target_feature = "crt-static") {
        true => "linked statically",
        false => "linked with the C library of the system",
    };
    let optimised = match cfg!(debug_assertions) {
        true => "with debug assertions",
        false => "optimised",
    };
    let (machine, system) = (std::env::consts::ARCH, std::env::consts::OS);
    [
        ("parts", parts(true)),
        ("left out", parts(false)),
        ("addresses", addresses()),
        ("backends", backends()),
        (
            "built for",
            format!("{machine} {system}, {optimised}, {linked}"),
        ),
    ]
}

#[cfg(feature = "object-store")]
fn addresses() -> String {
    let schemes = forerun_io::source::remote::SCHEMES;
    schemes.map(|scheme| format!("{scheme}://")).join(", ")
}

#[cfg(not(feature = "object-store"))]
fn addresses() -> String {
    String::new()
}

#[cfg(feature = "files")]
fn backends() -> String {
    let names = forerun_io::backend::LIST.iter().map(|backend| backend.name);
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(not(feature = "files"))]
fn backends() -> String {
    String::new()
}
