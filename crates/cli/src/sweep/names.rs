//! Names in a plan that parsing does not look up: devices, workloads and files, each once.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::args::Simulate;
use crate::commands::simulate;
use crate::flags::{Refused, nearest_of};

/// Devices, schedulers and workloads of a run.
type Named = (String, Option<PathBuf>, Option<String>, Option<String>);

/// Names that were looked up.
#[derive(Debug, Default)]
pub struct Names {
    named: HashSet<Named>,
    files: HashSet<PathBuf>,
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
}

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
