//! Output of a trial: the answer in words, or its rates as rows that `forerun report` reads.

use std::io::Write;

use serde_json::json;

use crate::args::{ListFormat, Try};
use crate::failure::Failure;
use crate::messages::without_secrets;
use crate::trial::choice::Rates;

/// See the [module](self).
pub(super) struct Told<'a> {
    args: &'a Try,
    out: &'a mut dyn Write,
}

impl<'a> Told<'a> {
    pub(super) fn new(args: &'a Try, out: &'a mut dyn Write) -> Self {
        Self { args, out }
    }

    /// A part of the answer in words; rows have none.
    pub(super) fn text(&mut self, text: &str) -> Result<(), Failure> {
        match self.args.format {
            ListFormat::Table => self.write(text),
            ListFormat::Json => Ok(()),
        }
    }

    /// The rates of candidates with these names, a row each: the median run, and the slowest and the fastest.
    pub(super) fn rates<'n>(
        &mut self,
        all: &[Rates],
        names: impl Iterator<Item = &'n str> + Clone,
    ) -> Result<(), Failure> {
        if self.args.format == ListFormat::Table {
            return Ok(());
        }
        for rates in all {
            for (name, runs) in names.clone().zip(&rates.ways) {
                let mut runs = runs.clone();
                runs.sort_by(f64::total_cmp);
                let at = |place: usize| json!(runs.get(place).map(|rate| *rate as u64));
                let is_own = name == "forerun";
                let row = json!({
                    "preset": name,
                    "clock": "real",
                    "pattern": without_secrets(&self.args.path.to_string_lossy()),
                    "readers": rates.readers,
                    "runs": runs.len(),
                    "throughput_bytes_per_second": at(runs.len() / 2),
                    "throughput_least_bytes_per_second": at(0),
                    "throughput_most_bytes_per_second": at(runs.len().saturating_sub(1)),
                    "memory_bytes": is_own.then_some(self.args.memory.0),
                });
                self.write(&format!("{row}\n"))?;
            }
        }
        Ok(())
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        let written = self.out.write_all(text.as_bytes());
        written.map_err(|e| Failure::output(&e))
    }
}
