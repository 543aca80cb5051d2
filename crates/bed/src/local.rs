//! `local`: rates of one large file of a local disk, on it and through `forerun mount`.
//!
//! Called by `main`. No bed: the disk is the one FOLDER is on, where nothing is to be gained. The
//! candidates run in turns, each run begins with another one, and the median over the runs is
//! shown:
//!
//! ```text
//! for each run: for each candidate (the source; a mount with --passthrough never, auto, always):
//!     empty the source's page cache of the file; mount; read in pieces of 128 KiB         cold
//!     fill it again by buffered reads of 1 MiB; mount; read once;
//!     then time a pass in pieces of 4 KiB, of 128 KiB and of 1 MiB                        warm
//! ```
//!
//! How the cache is filled matters: buffered reads leave folios of many pages, `readahead(2)` and
//! WILLNEED single pages, which are read at half the speed. So the source is filled by reads, and a
//! pass is open, read to the end, close.
//!
//! It judges nothing, and leaves nothing behind in FOLDER.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{Advice, fadvise};
use serde::Serialize;

use crate::compare::rival::check_mount;
use crate::compare::{check_rival, median};
use crate::content::{self, BLOCK_BYTES};
use crate::failure::{At, Failure};
use crate::kernel;
use crate::tool;

/// Reads of a cold pass, and of the one before a warm pass: the size of `cp` and `cat`.
const USUAL: usize = 128 << 10;

/// Reads that fill the source's page cache.
const FILL: usize = 1 << 20;

/// Reads of the warm passes.
const WARM: [usize; 3] = [4 << 10, USUAL, 1 << 20];

/// A comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// A folder of the disk.
    pub folder: PathBuf,
    /// The binary.
    pub forerun: PathBuf,
    /// Size of the file.
    pub bytes: u64,
    /// The memory of the mount.
    pub memory_bytes: u64,
    /// The disk's costs, if they were measured.
    pub profile: Option<PathBuf>,
    /// Runs of each.
    pub runs: u16,
}

/// Folder in which the file is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// On the disk's file system.
    Source,
    /// Through a mount without passthrough.
    Never,
    /// Through a mount that has it where it is faster: the default.
    Auto,
    /// Through a mount that has it everywhere.
    Always,
}

const SIDES: [Side; 4] = [Side::Source, Side::Never, Side::Auto, Side::Always];

/// One pass of one candidate.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Nothing of the file was cached.
    pub cold: bool,
    /// Size of one read.
    pub read_bytes: usize,
    /// Which candidate.
    pub side: Side,
    /// The median of the runs.
    pub bytes_per_second: f64,
    /// Each run, in order.
    pub runs_bytes_per_second: Vec<f64>,
    /// To the source.
    pub to_source: f64,
}

/// The comparison, done.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LocalTable {
    /// Size of the file.
    pub bytes: u64,
    /// The memory of the mount.
    pub memory_bytes: u64,
    /// By pass, then by candidate.
    pub rows: Vec<Row>,
}

type Key = (bool, usize, Side);

/// Measures. Names each step on `progress`.
///
/// # Errors
/// The folder cannot be written, or the binary does not mount.
pub fn run(comparison: &Comparison, progress: &mut dyn Write) -> Result<LocalTable, Failure> {
    check_rival(Some(&comparison.forerun))?;
    check_mount(comparison.memory_bytes)?;
    let bench = Bench::make(comparison)?;
    let mut measured = Vec::new();
    let mut sides = SIDES;
    for run in 1..=comparison.runs {
        for side in sides {
            let from = measured.len();
            bench.run_one(side, &mut measured)?;
            for ((cold, bytes, side), rate) in &measured[from..] {
                let pass = if *cold { "cold" } else { "warm" };
                let text = format!("run {run}: {pass} {bytes} {side}: {:.0} MB/s", rate / 1e6);
                writeln!(progress, "{text}").at(&comparison.folder)?;
            }
        }
        sides.rotate_left(1);
    }
    Ok(LocalTable {
        bytes: comparison.bytes,
        memory_bytes: comparison.memory_bytes,
        rows: rows(&measured),
    })
}

/// The file, and a place to mount at. Removed when dropped.
struct Bench<'a> {
    comparison: &'a Comparison,
    place: PathBuf,
}

impl<'a> Bench<'a> {
    fn make(comparison: &'a Comparison) -> Result<Self, Failure> {
        let place = comparison.folder.join(".forerun-bed-local");
        kernel::make_place(&place)?;
        let bench = Self { comparison, place };
        for path in [bench.source(), bench.point()] {
            fs::create_dir(&path).at(&path)?;
        }
        bench.write().at(&bench.place)?;
        Ok(bench)
    }

    fn source(&self) -> PathBuf {
        self.place.join("source")
    }

    fn point(&self) -> PathBuf {
        self.place.join("point")
    }

    fn write(&self) -> io::Result<()> {
        let mut file = File::create(self.source().join("file"))?;
        let mut piece = vec![0; FILL];
        for at in 0..self.comparison.bytes.div_ceil(FILL as u64) {
            for (block, part) in (0..).zip(piece.chunks_mut(BLOCK_BYTES)) {
                content::expand(content::tag(1, at, block), part);
            }
            file.write_all(&piece)?;
        }
        file.set_len(self.comparison.bytes)?;
        file.sync_all()
    }

    fn run_one(&self, side: Side, measured: &mut Vec<(Key, f64)>) -> Result<(), Failure> {
        let source = self.source().join("file");
        let file = match side {
            Side::Source => source.clone(),
            _ => self.point().join("file"),
        };
        let size = self.comparison.bytes;
        empty(&source).at(&source)?;
        let mount = self.mount(side)?;
        let rate = pass(&file, size, USUAL).at(&file)?;
        measured.push(((true, USUAL, side), rate));
        drop(mount);
        empty(&source).at(&source)?;
        pass(&source, size, FILL).at(&source)?;
        let mount = self.mount(side)?;
        pass(&file, size, USUAL).at(&file)?;
        for bytes in WARM {
            let rate = pass(&file, size, bytes).at(&file)?;
            measured.push(((false, bytes, side), rate));
        }
        drop(mount);
        Ok(())
    }

    fn mount(&self, side: Side) -> Result<Option<Mount>, Failure> {
        let mode = match side {
            Side::Source => return Ok(None),
            Side::Never => "never",
            Side::Auto => "auto",
            Side::Always => "always",
        };
        let mut command = tool::at_ordinary_io_priority(&self.comparison.forerun);
        command
            .args(["mount", "--passthrough", mode, "--memory"])
            .arg(self.comparison.memory_bytes.to_string())
            .args([self.source(), self.point()]);
        if let Some(profile) = &self.comparison.profile {
            command.arg("--profile").arg(profile);
        }
        let status = command.status().at(&self.comparison.forerun)?;
        match status.success() {
            true => Ok(Some(Mount {
                forerun: self.comparison.forerun.clone(),
                point: self.point(),
            })),
            false => Err(Failure::broken(
                &self.point(),
                format!("no mount: {status}"),
            )),
        }
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        // Each by its name: a file system mounted there must not be emptied.
        for path in ["source/file", "source", "point"] {
            let path = self.place.join(path);
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
        }
        let _ = fs::remove_dir(&self.place);
    }
}

/// A mount in the background, taken off when dropped.
struct Mount {
    forerun: PathBuf,
    point: PathBuf,
}

impl Drop for Mount {
    fn drop(&mut self) {
        let mut command = tool::at_ordinary_io_priority(&self.forerun);
        let _ = command.arg("umount").arg(&self.point).status();
    }
}

fn empty(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    file.sync_all()?;
    Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
}

/// Reads a file to its end; bytes a second. It has so many.
fn pass(path: &Path, size: u64, read_bytes: usize) -> io::Result<f64> {
    let mut buffer = vec![0; read_bytes];
    let begun = Instant::now();
    let mut file = File::open(path)?;
    let mut bytes = 0;
    loop {
        match file.read(&mut buffer)? {
            0 if bytes < size => {
                let text = format!("it ends at {bytes} of {size} bytes");
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
            }
            0 => break,
            count => bytes += count as u64,
        }
    }
    drop(file);
    Ok(bytes as f64 / begun.elapsed().as_secs_f64())
}

fn rows(measured: &[(Key, f64)]) -> Vec<Row> {
    let passes = [(true, USUAL)].into_iter();
    let passes = passes.chain(WARM.map(|bytes| (false, bytes)));
    let keys = passes.flat_map(|(cold, bytes)| SIDES.map(|side| (cold, bytes, side)));
    let of = |wanted: Key| -> Vec<f64> {
        let runs = measured.iter().filter(|(key, _)| *key == wanted);
        runs.map(|(_, rate)| *rate).collect()
    };
    let row = |(cold, read_bytes, side): Key| {
        let runs = of((cold, read_bytes, side));
        let rate = median(runs.iter().copied());
        let source = median(of((cold, read_bytes, Side::Source)).into_iter());
        Row {
            cold,
            read_bytes,
            side,
            bytes_per_second: rate,
            runs_bytes_per_second: runs,
            to_source: rate / source,
        }
    };
    keys.map(row).collect()
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Source => "source",
            Self::Never => "mount, never",
            Self::Auto => "mount, auto",
            Self::Always => "mount, always",
        })
    }
}

impl fmt::Display for LocalTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, memory) = (self.bytes >> 20, self.memory_bytes >> 20);
        writeln!(f, "one file of {file} MiB, {memory} MiB for forerun\n")?;
        writeln!(
            f,
            "cache  read      side             MB/s            of runs  x source"
        )?;
        for (at, row) in self.rows.iter().enumerate() {
            if at > 0 && at % SIDES.len() == 0 {
                writeln!(f)?;
            }
            let runs = row.runs_bytes_per_second.iter().map(|rate| rate / 1e6);
            let (least, most) = runs
                .fold((f64::INFINITY, 0.0), |(least, most): (f64, f64), rate| {
                    (least.min(rate), most.max(rate))
                });
            writeln!(
                f,
                "{:6} {:>4} KiB  {:14}{:>7.0} {:>18} {:>9.2}",
                if row.cold { "cold" } else { "warm" },
                row.read_bytes >> 10,
                row.side,
                row.bytes_per_second / 1e6,
                format!("{least:.0}..{most:.0}"),
                row.to_source
            )?;
        }
        writeln!(
            f,
            "\nMB/s: median of the runs, open and close included. warm: the source's page cache was \
             filled by buffered\nreads of 1 MiB, and the file read once on the side. cold: it was \
             emptied by DONTNEED, and the mount is new."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_medians_and_to_the_source_of_the_same_pass() {
        let measured = [
            ((true, USUAL, Side::Source), 2e9),
            ((true, USUAL, Side::Source), 9e9),
            ((true, USUAL, Side::Source), 1e9),
            ((true, USUAL, Side::Auto), 1e9),
            ((false, 4096, Side::Source), 7e9),
        ];
        let rows = rows(&measured);
        assert_eq!(rows.len(), 16);
        let auto = &rows[2];
        assert_eq!(
            (auto.cold, auto.side, auto.to_source),
            (true, Side::Auto, 0.5)
        );
        let table = LocalTable {
            bytes: 1 << 20,
            memory_bytes: 1 << 20,
            rows,
        };
        let line = "cold    128 KiB  source           2000         1000..9000      1.00";
        assert!(table.to_string().contains(line), "{table}");
    }

    #[test]
    fn a_file_is_read_to_its_end_and_nothing_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let comparison = Comparison {
            folder: folder.path().into(),
            forerun: "none".into(),
            bytes: 3 << 20,
            memory_bytes: 1,
            profile: None,
            runs: 1,
        };
        let bench = Bench::make(&comparison).unwrap();
        let mut measured = Vec::new();
        bench.run_one(Side::Source, &mut measured).unwrap();
        assert_eq!(measured.len(), 4);
        assert!(bench.run_one(Side::Auto, &mut measured).is_err());
        drop(bench);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
