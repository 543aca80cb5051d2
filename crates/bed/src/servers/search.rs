//! Xapian with an index of generated documents, and processes that query it.
//!
//! The index is built once and kept, because that takes minutes: `index-<documents>-<seed>` in a
//! folder of the user's. Before a comparison it is copied onto the bed's file system, while the
//! disks do not delay. The script `search.py` builds it and is the clients; see its header for the
//! queries. It runs on Debian's Python, whose module `xapian` is the package python3-xapian; other
//! Pythons do not have it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::bed::Bed;
use crate::failure::{At, Failure};
use crate::fill;
use crate::plan::BedPaths;
use crate::servers::{Answers, Server, media};

/// Debian's.
pub const PYTHON: &str = "/usr/bin/python3";
pub(super) const SCRIPT: &str = "search.py";
const SCRIPT_TEXT: &str = include_str!("search.py");
/// The folder of the index on the bed.
const FOLDER: &str = "index";

/// The folder of the index of a search server, built where it is not there; none of another server.
///
/// # Errors
/// It cannot be built.
pub fn ready(
    server: &Server,
    seed: u64,
    progress: &mut dyn Write,
) -> Result<Option<PathBuf>, Failure> {
    let Server::Search { index, documents } = server else {
        return Ok(None);
    };
    let path = index.join(format!("index-{documents}-{seed}"));
    if path.exists() {
        return Ok(Some(path));
    }
    let text = format!(
        "index {documents} documents, seed {seed}, into {}",
        path.display()
    );
    writeln!(progress, "{text}").at(&path)?;
    fs::create_dir_all(index).at(index)?;
    let mut command = Command::new(PYTHON);
    command.args(["-c", SCRIPT_TEXT, "build"]).arg(&path);
    command.args([documents.to_string(), seed.to_string()]);
    said(command)?;
    Ok(Some(path))
}

/// Copies an index onto the bed's file system, and gives its bytes.
///
/// # Errors
/// It does not fit, or the bed is in use.
pub fn copy(bed: &Bed, place: &BedPaths, index: &Path) -> Result<u64, Failure> {
    fill::copy(bed, place, index, &place.files.join(FOLDER))
}

/// Lets a given number of clients query the index below a folder, all in a memory group.
///
/// # Errors
/// The clients', or output that is none of theirs.
pub fn ask(
    state: &Path,
    folder: &Path,
    group: Option<&Path>,
    clients: usize,
    time: Duration,
    seed: u64,
) -> Result<Answers, Failure> {
    let script = state.join(SCRIPT);
    fs::write(&script, SCRIPT_TEXT).at(&script)?;
    let mut command = media::in_group(group);
    command
        .arg(PYTHON)
        .arg(&script)
        .arg("query")
        .arg(folder.join(FOLDER));
    command.args([
        clients.to_string(),
        time.as_secs_f64().to_string(),
        seed.to_string(),
    ]);
    parse(&said(command)?)
}

fn said(mut command: Command) -> Result<String, Failure> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|e| Failure::Run(format!("{PYTHON}: {e}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let last = complaint.trim_end().lines().next_back().unwrap_or_default();
    Err(Failure::Run(format!("{SCRIPT}: {}: {last}", output.status)))
}

fn parse(text: &str) -> Result<Answers, Failure> {
    let wrong = |why: String| Failure::Run(format!("{SCRIPT} said something else: {why}"));
    let answers: Answers = serde_json::from_str(text).map_err(|e| wrong(e.to_string()))?;
    match answers.seconds > 0.0 {
        true => Ok(answers),
        false => Err(wrong("a run of no time".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_clients_print_is_read_and_anything_else_refused() {
        let text = r#"{"completed": 12.5, "seconds": 2, "p50_ms": 1.5, "p99_ms": 9,
                       "slowest_per_mean": 0.75, "errors": 0}"#;
        assert_eq!(parse(text).unwrap().completed, 12.5);
        for (good, bad) in [
            ("12.5", "\"12\""),
            ("\"seconds\": 2", "\"seconds\": 0"),
            ("}", ""),
        ] {
            assert!(parse(&text.replace(good, bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_index_that_is_there_is_not_built_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index-10-3");
        fs::create_dir(&path).unwrap();
        let server = Server::Search {
            index: folder.path().into(),
            documents: 10,
        };
        let mut said = Vec::new();
        assert_eq!(ready(&server, 3, &mut said).unwrap(), Some(path));
        assert_eq!(ready(&Server::Media, 3, &mut said).unwrap(), None);
        assert!(said.is_empty());
    }
}
