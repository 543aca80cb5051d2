//! Cells: the runs of a plan, each with the key of its row.
//!
//! The key is a digest of the values, of the version of this program, and of the files that are read: a trace that
//! changed is another run. A run is the command that `settings` of its row says, on one thread, in virtual time: the
//! same row on every machine.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::plan::Simulations;
use super::rows::{ERROR, KEY, Row};
use crate::commands::simulate::Simulation;
use crate::failure::Failure;
use crate::files::plain;
use crate::flags::{Own, Values};

/// The file of this program.
pub const PROGRAM: &str = "/proc/self/exe";

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Columns of a row that say its origin; all others are its result.
pub const ORIGIN: [&str; 6] = [
    KEY,
    "settings",
    "inputs",
    "version",
    "program_sha256",
    "plan_sha256",
];

/// Keys whose values are files; those of the last, with commas between.
const FILES: [&str; 3] = ["trace", "device-file", MERGE];
const MERGE: &str = "merge";

/// A run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// The values of its flags.
    pub values: Values,
    /// Digests of the files it reads, by their names.
    pub inputs: BTreeMap<String, String>,
    /// The key of its row.
    pub key: String,
}

/// Digests of the program and the plan, for each row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stamp {
    program: Option<String>,
    plan: String,
}

impl Stamp {
    /// Of a plan with this text, run by the program in this file.
    #[must_use]
    pub fn of(plan: &str, program: &Path) -> Self {
        Self {
            program: digest_of(program).ok(),
            plan: hex(&Sha256::digest(plan.as_bytes())),
        }
    }
}

/// The runs of these values, each once, in the order of the plan.
///
/// # Errors
/// A trace or a device file that is no file, or cannot be read.
pub fn cells(all: Vec<Values>, own: &Own) -> Result<Vec<Cell>, Failure> {
    let (mut known, mut seen) = (BTreeMap::new(), std::collections::HashSet::new());
    let mut cells = Vec::new();
    for values in all {
        let mut inputs = BTreeMap::new();
        for name in files(&values) {
            if !known.contains_key(name) {
                known.insert(name.to_owned(), input(Path::new(name))?);
            }
            inputs.insert(name.to_owned(), known[name].clone());
        }
        let reclaim = values.get("reclaim");
        if let Some((name, method)) = reclaim.and_then(|name| own.get_key_value(name)) {
            inputs.insert(name.clone(), method.digest.clone());
        }
        let text = json!([values, inputs, VERSION]).to_string();
        let key = hex(&Sha256::digest(text.as_bytes()))[..16].to_owned();
        if seen.insert(key.clone()) {
            cells.push(Cell {
                values,
                inputs,
                key,
            });
        }
    }
    Ok(cells)
}

/// The files that a run reads.
fn files(values: &Values) -> impl Iterator<Item = &str> {
    let named = |flag: &'static str| Some((flag, values.get(flag)?.as_str()));
    FILES
        .into_iter()
        .filter_map(named)
        .flat_map(|(flag, value)| {
            let apart = if flag == MERGE { ',' } else { '\0' };
            value.split(apart)
        })
}

/// The digest of a file that each run reads anew.
fn input(path: &Path) -> Result<String, Failure> {
    let unusable = |e: io::Error| Failure::unusable(path, plain(&e));
    if !fs::metadata(path).map_err(unusable)?.is_file() {
        let why = "no regular file: each run of a sweep reads it again";
        return Err(Failure::unusable(path, why));
    }
    digest_of(path).map_err(unusable)
}

fn digest_of(path: &Path) -> io::Result<String> {
    let (mut file, mut digest) = (File::open(path)?, Sha256::new());
    let mut piece = vec![0; 1 << 20];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hex(&digest.finalize())),
            read => digest.update(&piece[..read]),
        }
    }
}

/// A number where it is one, as in the columns of a result.
fn typed(value: &str) -> Value {
    match (value.parse::<u64>(), value.parse::<bool>()) {
        (Ok(number), _) => json!(number),
        (_, Ok(is_set)) => json!(is_set),
        _ => json!(value),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Cell {
    /// Runs it; its row, with an error in place of a result if it failed.
    #[must_use]
    pub fn run(&self, stamp: &Stamp, own: &Own) -> Row {
        match self.outcome(own) {
            Ok(row) => self.row(row, stamp),
            Err(failure) => self.failed(&failure.to_string(), stamp),
        }
    }

    /// The row of a run that failed.
    #[must_use]
    pub fn failed(&self, why: &str, stamp: &Stamp) -> Row {
        self.row(Map::from_iter([(ERROR.to_owned(), json!(why))]), stamp)
    }

    fn row(&self, mut row: Row, stamp: &Stamp) -> Row {
        // Settings that are no column of the result: trace, workload, seed, methods.
        for (name, value) in &self.values {
            let name = name.replace('-', "_");
            row.entry(name).or_insert_with(|| typed(value));
        }
        let origin = [
            json!(self.key),
            json!(self.values),
            json!(self.inputs),
            json!(VERSION),
            json!(stamp.program),
            json!(stamp.plan),
        ];
        row.extend(ORIGIN.map(str::to_owned).into_iter().zip(origin));
        row
    }

    fn outcome(&self, own: &Own) -> Result<Row, Failure> {
        let args = Simulations::default().of(&self.values, own);
        let args = args.map_err(|refused| Failure::Usage(refused.why))?;
        // Notes of a single simulation would come once a run; rows say the same in columns.
        tracing::subscriber::with_default(tracing::subscriber::NoSubscriber::default(), || {
            let simulation = Simulation::new(args, None)?;
            match simulation.into_objects()?.pop() {
                Some(object) => Ok(object),
                None => Err(Failure::Run("no run".to_owned())),
            }
        })
    }
}

/// The run of a row.
///
/// # Errors
/// It has no settings, or the files it read are gone.
pub fn of_row(row: &Row) -> Result<Cell, Failure> {
    let settings = row.get("settings").cloned().unwrap_or_default();
    let values: Values = serde_json::from_value(settings)
        .map_err(|e| Failure::Usage(format!("settings of row {}: {e}", row[KEY])))?;
    let cell = cells(vec![values], &Own::new())?.pop();
    cell.ok_or_else(|| Failure::Usage(format!("row {}: no settings", row[KEY])))
}
