//! What parsing a plan does not look at: names of devices, workloads and files, and traces at their beginning, each once.
//!
//! A trace is opened as each run will open it, and read up to the first request of the part that is wanted: a part that
//! has none, and a file of another format, are refused before the first run.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::args::{Reading, Simulate};
use crate::commands::simulate;
use crate::commands::trace::first_request;
use crate::flags::{Refused, Values, nearest_of};

/// Devices, schedulers and workloads of a run.
type Named = (String, Option<PathBuf>, Option<String>, Option<String>);

/// Names that were looked up.
#[derive(Debug, Default)]
pub struct Names {
    named: HashSet<Named>,
    files: HashSet<PathBuf>,
    /// Traces and their parts, each with whether its blocks have names.
    traces: HashMap<(PathBuf, Values), bool>,
}

impl Names {
    /// Looks up those of a run.
    ///
    /// # Errors
    /// One that there is not, with the nearest that there are.
    pub fn check(&mut self, run: &Simulate) -> Result<(), Refused> {
        let merged = run.reading.merge.iter().map(|path| ("merge", path));
        let files = [("trace", &run.trace), ("device-file", &run.device_file)];
        let files = files
            .into_iter()
            .filter_map(|(flag, path)| Some((flag, path.as_ref()?)));
        for (flag, path) in files.chain(merged) {
            if self.files.insert(path.clone()) {
                check_file(flag, path)?;
            }
        }
        if let Some(trace) = &run.trace {
            self.check_trace(trace, run)?;
        }
        let named = (
            run.device.clone(),
            run.device_file.clone(),
            run.scheduler.clone(),
            run.workload.clone(),
        );
        if !self.named.insert(named) {
            return Ok(());
        }
        simulate::check(run).map_err(|failure| {
            let why = failure.to_string();
            let flag = why.strip_prefix("--").and_then(|why| {
                let end = why.find([' ', ':'])?;
                Some(why[..end].to_owned())
            });
            Refused { flag, why }
        })
    }

    /// A trace begins as this run can read it.
    fn check_trace(&mut self, trace: &Path, run: &Simulate) -> Result<(), Refused> {
        let key = (trace.to_owned(), run.reading.values());
        let has_names = match self.traces.get(&key) {
            Some(has_names) => *has_names,
            None => has_names(trace, &run.reading)?,
        };
        self.traces.insert(key, has_names);
        if !has_names {
            return Ok(());
        }
        simulate::check_named(run, &trace.display().to_string()).map_err(|failure| Refused {
            flag: Some("trace".to_owned()),
            why: failure.to_string(),
        })
    }
}

/// Reads up to the first request, and says whether its block has a name; an error is that of a flag of the part, if
/// there is one.
fn has_names(trace: &Path, reading: &Reading) -> Result<bool, Refused> {
    // A pipe has to wait for its run, which refuses it by name.
    if !trace.is_file() {
        return Ok(false);
    }
    let first = first_request(trace, reading);
    let is_named = first.map(|first| first.is_some_and(|record| record.is_named));
    is_named.map_err(|failure| {
        let (why, flags) = (failure.to_string(), reading.values());
        let named = |flag: &str| why.starts_with(&format!("--{flag} "));
        let is_told = |flag: &&str| flags.contains_key(*flag);
        let part = PARTS.into_iter().filter(is_told);
        let flag = part
            .clone()
            .find(|flag| named(flag))
            .or(part.clone().next());
        let why = match flag {
            Some(flag) if !named(flag) => format!("--{flag} {}: {why}", flags[flag]),
            _ => why,
        };
        let flag = flag.unwrap_or("trace").to_owned();
        Refused {
            flag: Some(flag),
            why,
        }
    })
}

/// Flags of a part, the narrowest first.
const PARTS: [&str; 5] = ["only-devices", "only-processes", "only-op", "from", "until"];

fn check_file(flag: &str, path: &Path) -> Result<(), Refused> {
    if path.exists() {
        return Ok(());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let folder = path
        .parent()
        .filter(|folder| *folder != Path::new(""))
        .unwrap_or(Path::new("."));
    let there = folder.read_dir().into_iter().flatten().flatten();
    let there: Vec<String> = there
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let nearest = match there.is_empty() {
        true => String::new(),
        false => format!(
            "; the nearest in {} are {}",
            folder.display(),
            nearest_of(&name, there.iter().map(String::as_str))
        ),
    };
    Err(Refused {
        flag: Some(flag.to_owned()),
        why: format!("{}: no such file{nearest}", path.display()),
    })
}
