//! Plans: a TOML file of flags of `forerun simulate`, read with its lines.
//!
//! ```text
//! workload = "synth"            # the same in all runs
//! preset = ["none", "forerun"]  # varied
//! cache-blocks = [1024, 4096]
//! seed = [1, 2, 3]              # the workload's parameter of that name
//! ```
//!
//! Twelve runs. Every combination is parsed as the command line would be, before the first is run, so a plan has no
//! rules of its own; an error has the line of the key.

use std::collections::BTreeMap;
use std::path::Path;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser};
use forerun_core::preset::nearest;
use toml::de::{DeTable, DeValue};

use crate::args::{Args, Command, Simulate};
use crate::failure::Failure;

/// Values of flags, by their names without dashes.
pub type Values = BTreeMap<String, String>;

/// Not a flag: a parameter of the workload.
const SEED: &str = "seed";

/// Flags that are the sweep's own affair, or have no rows.
const NONE: [&str; 4] = ["threads", "format", "validate", "help"];

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
pub fn read(path: &Path, text: &str) -> Result<Vec<Values>, Failure> {
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
    for values in &all {
        simulation(values).map_err(|refused| {
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
    let command = Args::command();
    let simulate = command.find_subcommand("simulate");
    let flags = simulate
        .into_iter()
        .flat_map(|command| command.get_arguments());
    let flags: Vec<&str> = flags
        .filter_map(clap::Arg::get_long)
        .filter(|flag| !NONE.contains(flag))
        .chain([SEED])
        .collect();
    if !flags.contains(&name) {
        let known = nearest_of(name, &flags);
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

fn nearest_of(name: &str, flags: &[&str]) -> String {
    nearest(name, flags.iter().copied()).join(", ")
}

/// A combination that cannot be run.
#[derive(Debug)]
pub struct Refused {
    flag: Option<String>,
    /// In the words of the command line.
    pub why: String,
}

/// The simulation of these values: one preset, on one number of disks, with one cache.
///
/// # Errors
/// Values that the command line would refuse, or several where there must be one.
pub fn simulation(values: &Values) -> Result<Simulate, Refused> {
    let mut values = values.clone();
    if let (Some(seed), Some(workload)) = (values.remove(SEED), values.get_mut("workload")) {
        *workload = match workload.strip_suffix(')') {
            Some(begin) => format!("{begin},seed={seed})"),
            None => format!("{workload}(seed={seed})"),
        };
    }
    let flags = values
        .iter()
        .filter_map(|(name, value)| match value.as_str() {
            "true" => Some(format!("--{name}")),
            "false" => None,
            value => Some(format!("--{name}={value}")),
        });
    let words = ["forerun", "simulate"].map(str::to_owned).into_iter();
    let args = Args::try_parse_from(words.chain(flags)).map_err(|error| Refused {
        flag: match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::String(arg)) => {
                let name = arg.trim_start_matches("--").split([' ', '=']).next();
                name.map(str::to_owned)
            }
            _ => None,
        },
        why: first_paragraph(&error.to_string()),
    })?;
    if !values.contains_key("preset") {
        let why = "no preset: a plan names each, as in preset = [\"none\", \"forerun\"]".to_owned();
        return Err(Refused { flag: None, why });
    }
    let Command::Simulate(simulate) = args.command else {
        let why = "no simulation".to_owned();
        return Err(Refused { flag: None, why });
    };
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

/// The message of an error of the command line, without the usage below it.
fn first_paragraph(text: &str) -> String {
    let lines = text.lines().take_while(|line| !line.is_empty());
    let lines: Vec<&str> = lines.map(str::trim).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}
