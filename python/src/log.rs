//! Messages of the engine on stderr, if `FORERUN_LOG` asks for them.
//!
//! Threads of the engine run no Python code, so that `logging` cannot have them.

use std::io;

use pyo3::prelude::*;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::errors::value;

/// Writes messages of these levels to stderr from now on. Of two calls the first counts.
///
/// # Errors
/// `ValueError` if it is neither a level nor parts with levels.
#[pyfunction]
pub(crate) fn log(levels: &str) -> PyResult<()> {
    let refused = || {
        let wanted = "must be a level (error, warn, info, debug, trace, off), or parts with levels, as in \
                      warn,forerun_io=debug";
        value(format!("FORERUN_LOG of {levels:?}: {wanted}"))
    };
    // A word alone is the name of a part to the filter, whatever it is.
    let is_known = |part: &str| {
        let part = part.trim();
        part.contains('=') || part.starts_with("forerun") || part.parse::<LevelFilter>().is_ok()
    };
    if !levels.split(',').all(is_known) {
        return Err(refused());
    }
    let filter: Targets = levels.parse().map_err(|_| refused())?;
    let lines = fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(false)
        .without_time();
    let set = tracing_subscriber::registry().with(lines.with_filter(filter));
    // Another call was first.
    let _ = set.try_init();
    Ok(())
}
