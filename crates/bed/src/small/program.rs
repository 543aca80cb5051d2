//! The programs that `small` times, and that each has read every file.
//!
//! Called by [`small`](super). `tar`, `grep` and `find` are the machine's, with their output
//! drained through a pipe (tar reads nothing for `/dev/null`). `random` and `open` are threads of
//! this process that know all paths from the bed, so they list nothing; those of [parts](super::part) list the folders.
//!
//! A candidate that answers with errors would be fast: exit codes, and the number of bytes or
//! names, are checked.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use serde::Serialize;

use super::part::Part;

use crate::bed::Files;
use crate::compare::median;
use crate::content::Draws;
use crate::failure::{At, Failure};
use crate::fill;
use crate::joined::joined;

/// Enough that readers wait for the file system, not for each other.
const THREADS: usize = 8;
/// Files of `open`: their attributes live in the processor's cache.
const OPEN_FILES: u64 = 400;
/// Timed passes of `open`; each comes after one that is not timed and renews attributes.
const OPEN_LOOPS: usize = 9;
/// The size of one read; files are smaller, so one read and one that finds the end.
const READ_BYTES: usize = 128 << 10;
/// No block of a seeded file has eight of the same byte after each other.
const ABSENT: &str = "qqqqqqqq";

/// A program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// `tar cf -`: names, attributes and bytes, folder by folder.
    Tar,
    /// `grep -rF` for a string that is not there: names and bytes.
    Grep,
    /// `find -size +1k`: names and attributes.
    Find,
    /// Eight threads open, read and close all files in a random order.
    Random,
    /// One thread opens, reads and closes files that are cached; the time of one.
    Open,
    /// One thread reads the first bytes of each file.
    Head,
    /// Two threads do.
    Head2,
    /// The same of the middle.
    Middle,
    /// By two threads.
    Middle2,
    /// The same of the last bytes.
    Tail,
    /// By two threads.
    Tail2,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Tar => "tar",
            Self::Grep => "grep",
            Self::Find => "find",
            Self::Random => "random",
            Self::Open => "open",
            Self::Head => "head",
            Self::Head2 => "head 2",
            Self::Middle => "middle",
            Self::Middle2 => "middle 2",
            Self::Tail => "tail",
            Self::Tail2 => "tail 2",
        })
    }
}

impl Program {
    /// In the order they are shown.
    pub(super) const ALL: &[Self] = &[
        Self::Tar,
        Self::Grep,
        Self::Find,
        Self::Random,
        Self::Open,
        Self::Head,
        Self::Head2,
        Self::Middle,
        Self::Middle2,
        Self::Tail,
        Self::Tail2,
    ];

    /// Those that read one part of each file.
    pub(super) const PARTS: &[Self] = &[
        Self::Head,
        Self::Head2,
        Self::Middle,
        Self::Middle2,
        Self::Tail,
        Self::Tail2,
    ];

    /// Runs over all files below `root`, and gives the seconds it took.
    pub(super) fn run(self, root: &Path, files: &Files) -> Result<f64, Failure> {
        let mut command = Command::new(self.to_string());
        // Bytes are compared as bytes, in every language of the user.
        command.env("LC_ALL", "C");
        match self {
            Self::Tar => {
                command.args(["cf", "-", "-C"]).arg(root).arg(".");
                let total = (0..files.count)
                    .map(|number| fill::size(files, number))
                    .sum();
                drained(command, 0, total)
            }
            Self::Grep => {
                command.args(["-rF", ABSENT]).arg(root);
                // Not found.
                drained(command, 1, 0)
            }
            Self::Find => {
                command.arg(root).args(["-size", "+1k"]);
                // Of a matching file at least a name and a line break.
                let found = (0..files.count).filter(|number| fill::size(files, *number) > 1024);
                drained(command, 0, 2 * found.count() as u64)
            }
            Self::Random => random(root, files),
            Self::Open => open(root, files).at(root),
            Self::Head => Part::Head.read(root, files, 1),
            Self::Head2 => Part::Head.read(root, files, 2),
            Self::Middle => Part::Middle.read(root, files, 1),
            Self::Middle2 => Part::Middle.read(root, files, 2),
            Self::Tail => Part::Tail.read(root, files, 1),
            Self::Tail2 => Part::Tail.read(root, files, 2),
        }
    }
}

/// Runs a program to its end, and checks how it ends and that it prints a given number of bytes.
fn drained(mut command: Command, code: i32, bytes_min: u64) -> Result<f64, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |why: String| Failure::Run(format!("{name}: {why}"));
    let began = Instant::now();
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|e| failed(e.to_string()))?;
    let mut printed = 0;
    if let Some(mut output) = child.stdout.take() {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match output.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => printed += count as u64,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error.to_string())),
            }
        }
    }
    let status = child.wait().map_err(|e| failed(e.to_string()))?;
    let seconds = began.elapsed().as_secs_f64();
    if status.code() != Some(code) {
        return Err(failed(status.to_string()));
    }
    if printed < bytes_min {
        return Err(failed(format!("printed {printed} bytes, not {bytes_min}")));
    }
    Ok(seconds)
}

/// All paths in an order drawn from the seed.
fn shuffled(root: &Path, files: &Files) -> Vec<(PathBuf, u64)> {
    let path = |number| {
        (
            root.join(fill::path(files, number)),
            fill::size(files, number),
        )
    };
    let mut paths: Vec<_> = (0..files.count).map(path).collect();
    let mut draws = Draws::new(files.seed);
    for last in (1..paths.len()).rev() {
        let other = draws.below(last as u64 + 1);
        paths.swap(last, usize::try_from(other).unwrap_or(last));
    }
    paths
}

fn random(root: &Path, files: &Files) -> Result<f64, Failure> {
    let paths = shuffled(root, files);
    let paths = &paths;
    let began = Instant::now();
    thread::scope(|scope| {
        let readers = (0..THREADS).map(|first| {
            thread::Builder::new().spawn_scoped(scope, move || {
                let mut buffer = vec![0; READ_BYTES];
                let mut own = paths.iter().skip(first).step_by(THREADS);
                own.try_for_each(|(path, size)| read_whole(path, *size, &mut buffer).at(path))
            })
        });
        let readers: io::Result<Vec<_>> = readers.collect();
        readers
            .at(root)?
            .into_iter()
            .try_for_each(|reader| joined(reader.join()))
    })?;
    Ok(began.elapsed().as_secs_f64())
}

fn open(root: &Path, files: &Files) -> io::Result<f64> {
    let paths = |number| {
        (
            root.join(fill::path(files, number)),
            fill::size(files, number),
        )
    };
    let paths: Vec<_> = (0..files.count.min(OPEN_FILES)).map(paths).collect();
    let mut buffer = vec![0; READ_BYTES];
    let mut pass = || {
        let began = Instant::now();
        for (path, size) in &paths {
            read_whole(path, *size, &mut buffer)?;
        }
        Ok::<_, io::Error>(began.elapsed().as_secs_f64() / paths.len() as f64)
    };
    let mut times = Vec::new();
    for _ in 0..OPEN_LOOPS {
        pass()?;
        times.push(pass()?);
    }
    Ok(median(times.into_iter()))
}

fn read_whole(path: &Path, size: u64, buffer: &mut [u8]) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut total = 0;
    loop {
        match file.read(buffer)? {
            0 if total == size => return Ok(()),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => total += count as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn filled() -> (tempfile::TempDir, Files) {
        let root = tempfile::tempdir().unwrap();
        let files = Files {
            folders: 2,
            file_bytes_max: Some(9_000),
            ..Files::flat(30, 2_000, 5)
        };
        fill::run(root.path(), &files).unwrap();
        (root, files)
    }

    fn is_there(program: &str) -> bool {
        Command::new(program).arg("--version").output().is_ok()
    }

    #[test]
    fn every_program_notices_a_file_that_is_short() {
        let (root, files) = filled();
        let whole = Program::ALL
            .iter()
            .filter(|program| !Program::PARTS.contains(program));
        let programs = whole.filter(|program| {
            matches!(program, Program::Random | Program::Open) || is_there(&program.to_string())
        });
        for program in programs.clone() {
            assert!(program.run(root.path(), &files).unwrap() > 0.0, "{program}");
        }
        for number in 0..30 {
            let path = root.path().join(fill::path(&files, number));
            fs::write(path, ABSENT).unwrap();
        }
        for program in programs.filter(|program| **program != Program::Find) {
            assert!(program.run(root.path(), &files).is_err(), "{program}");
        }
    }

    #[test]
    fn the_random_order_is_of_all_files_and_of_the_seed() {
        let (root, files) = filled();
        let paths = shuffled(root.path(), &files);
        assert_eq!(paths, shuffled(root.path(), &files));
        let other = Files {
            seed: 6,
            ..files.clone()
        };
        assert_ne!(paths, shuffled(root.path(), &other));
        let mut sorted = paths.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), 30);
        assert_ne!(paths, sorted);
    }

    #[test]
    fn a_program_that_fails_or_says_too_little_is_an_error() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        assert!(drained(shell("echo 123"), 0, 4).is_ok());
        let said = drained(shell("echo 123"), 0, 5).unwrap_err().to_string();
        assert!(said.contains("printed 4 bytes, not 5"), "{said}");
        assert!(drained(shell("exit 2"), 1, 0).is_err());
    }
}
