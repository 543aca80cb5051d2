//! The engine's counters as a dictionary: names of the [`Ledger`], with the unit at the end of
//! those that do not count blocks or events.

use forerun_core::Ledger;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Sets keys of the same names, and takes the ledger apart: a counter that is added there and
/// missing here does not compile.
macro_rules! counters {
    (
        $ledger:expr, $dict:expr, [$($same:ident),*],
        [$($field:ident . $part:tt as $name:literal),*]
    ) => {{
        let Ledger { $($same,)* $($field,)* } = $ledger;
        $($dict.set_item(stringify!($same), $same)?;)*
        $($dict.set_item($name, $field.$part)?;)*
    }};
}

/// The dictionary.
pub(crate) fn dict<'py>(py: Python<'py>, ledger: Ledger) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    counters!(
        ledger,
        dict,
        [
            reads, hits, late_hits, misses, prefetched, used, evicted_unused, resident_unused,
            in_flight, failed, cancelled, demanded, gaps, demand_failed, evicted, thrashed,
            refused_prefetches, memory_waits, requests, windows, hints, hints_read, hints_missed,
            hints_dropped, hints_open, files_ahead, files_ahead_used, files_ahead_wasted,
            files_ahead_open, files_ahead_unread, refused_inputs
        ],
        [stall.0 as "stall_ns", request_bytes.0 as "request_bytes",
         memory_peak.0 as "memory_peak_bytes"]
    );
    Ok(dict)
}
