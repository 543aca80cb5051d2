//! Plans: a TOML file of flags of `forerun simulate`, read with its lines.
//!
//! ```text
//! workload = "synth"            # the same in all runs
//! preset = ["none", "forerun"]  # varied
//! cache-blocks = [1024, 4096]
//! seed = [1, 2, 3]              # the workload's parameter of that name
//! ```
//!
//! Twelve runs. Every combination is parsed as the command line would be, and its names are looked up, before the first is
//! run, so a plan has no rules of its own; an error has the line of the key.

use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::names::Names;
use crate::args::{Command, Simulate};
use crate::failure::Failure;
use crate::flags::{self, Own, Parser, Refused, SIMULATE, Values};

/// Not a flag: a parameter of the workload.
const SEED: &str = "seed";

/// Flags that are the sweep's own affair, or have no rows.
const NONE: [&str; 3] = ["threads", "format", "validate"];

/// The longest plan: a list of names is a line.
pub const BYTES_MAX: u64 = 1 << 20;

/// Most runs of a plan: a row has 2 KB.
const RUNS_MAX: usize = 1_000_000;

/// A key of the plan.
struct Key {
    name: String,
    line: usize,
    values: Vec<String>,
}

/// The combinations of a plan's values, the last key varied first.
///
/// # Errors
/// No TOML, a key that is no flag of `forerun simulate`, a value that is none, a combination that cannot be run.
pub fn read(path: &Path, text: &str, own: &Own) -> Result<Vec<Values>, Failure> {
    let at = |line: usize, why: String| {
        Failure::Usage(format!("{}: line {line}: {why}", path.display()))
    };
    let table = DeTable::parse(text).map_err(|error| {
        let begin = error.span().map_or(0, |span| span.start);
        at(line_of(text, begin), error.message().to_owned())
    })?;
    let mut keys = Vec::new();
    for (name, value) in table.get_ref() {
        let line = line_of(text, name.span().start);
        keys.push(key(name.get_ref(), line, value.get_ref()).map_err(|why| at(line, why))?);
    }
    let has_workload = keys.iter().any(|key| key.name == "workload");
    if let Some(seed) = keys.iter().find(|key| key.name == SEED && !has_workload) {
        let why = "seed: is a parameter of a workload, and the plan has none".to_owned();
        return Err(at(seed.line, why));
    }
    let runs = keys
        .iter()
        .try_fold(1usize, |runs, key| runs.checked_mul(key.values.len()));
    if runs.is_none_or(|runs| runs > RUNS_MAX) {
        let why = format!("{}: more than {RUNS_MAX} runs", path.display());
        return Err(Failure::Usage(why));
    }
    let mut all = vec![Values::new()];
    for key in &keys {
        let with = |values: &Values, value: &String| {
            let mut values = values.clone();
            values.insert(key.name.clone(), value.clone());
            values
        };
        let varied = |values: &Values| -> Vec<Values> {
            key.values.iter().map(|value| with(values, value)).collect()
        };
        all = all.iter().flat_map(varied).collect();
    }
    let (mut simulations, mut names) = (Simulations::default(), Names::default());
    for values in &all {
        let simulation = simulations.of(values, own);
        let checked = simulation.and_then(|simulation| names.check(&simulation));
        checked.map_err(|refused| {
            let key = keys
                .iter()
                .find(|key| Some(&key.name) == refused.flag.as_ref());
            match key {
                Some(key) => at(key.line, refused.why),
                None => Failure::unusable(path, refused.why),
            }
        })?;
    }
    Ok(all)
}

fn line_of(text: &str, at: usize) -> usize {
    let before = text.as_bytes().get(..at).unwrap_or_default();
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}

fn key(name: &str, line: usize, value: &DeValue<'_>) -> Result<Key, String> {
    let flags = flags::flags(SIMULATE);
    let flags = flags.iter().map(|flag| flag.name.as_str());
    let flags = flags.filter(|flag| !NONE.contains(flag)).chain([SEED]);
    if !flags.clone().any(|flag| flag == name) {
        let known = flags::nearest_of(name, flags);
        return Err(format!(
            "{name}: no flag of `forerun simulate` that can be varied; the nearest are {known}"
        ));
    }
    let values: Result<Vec<String>, String> = match value {
        DeValue::Array(values) => values.iter().map(|value| scalar(value.get_ref())).collect(),
        value => scalar(value).map(|value| vec![value]),
    };
    let values = values.map_err(|kind| {
        format!("{name}: {kind} is no value; a string, a number, true, false or a list of these is")
    })?;
    if values.is_empty() {
        return Err(format!(
            "{name}: a list without a value; it needs at least one"
        ));
    }
    Ok(Key {
        name: name.to_owned(),
        line,
        values,
    })
}

fn scalar(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => Ok(number.to_string()),
        DeValue::Float(number) => Ok(number.to_string()),
        DeValue::Boolean(is_set) => Ok(is_set.to_string()),
        DeValue::Datetime(_) => Err("a date".to_owned()),
        DeValue::Array(_) => Err("a list in a list".to_owned()),
        DeValue::Table(_) => Err("a table".to_owned()),
    }
}

/// Simulations of values: one preset, on one number of disks, with one cache.
#[derive(Debug)]
pub struct Simulations(Parser);

impl Default for Simulations {
    fn default() -> Self {
        Self(Parser::new(SIMULATE))
    }
}

impl Simulations {
    /// The simulation of these values.
    ///
    /// # Errors
    /// Values that the command line would refuse, or several where there must be one.
    pub fn of(&mut self, values: &Values, own: &Own) -> Result<Simulate, Refused> {
        let mut values = values.clone();
        if let (Some(seed), Some(workload)) = (values.remove(SEED), values.get_mut("workload")) {
            *workload = match workload.strip_suffix(')') {
                Some(begin) => format!("{begin},seed={seed})"),
                None => format!("{workload}(seed={seed})"),
            };
        }
        let without = |why: String| Refused { flag: None, why };
        if !values.contains_key("preset") {
            let why = "no preset: a plan names each, as in preset = [\"none\", \"forerun\"]";
            return Err(without(why.to_owned()));
        }
        let reclaim = values
            .get("reclaim")
            .and_then(|name| own.get(name))
            .cloned();
        if reclaim.is_some() {
            values.remove("reclaim");
        }
        let Command::Simulate(mut simulate) = self.0.parse(&values)? else {
            return Err(without("no simulation".to_owned()));
        };
        if let Some(method) = reclaim {
            simulate.methods.reclaim = Some(method.choice);
        }
        for (flag, count) in [
            ("preset", simulate.preset.0.len()),
            ("disks", simulate.disks.len()),
            ("cache-blocks", simulate.cache_blocks.len()),
        ] {
            if count > 1 {
                return Err(Refused {
                    flag: Some(flag.to_owned()),
                    why: format!("{flag}: {count} values in one; each run has one: write a list"),
                });
            }
        }
        Ok(*simulate)
    }
}
