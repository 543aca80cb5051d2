//! Checks of this program: its version, others of its name, journals that it is to replay.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use forerun_baselines::METHODS;
use forerun_core::journal::parse_head;
use rustix::fs::OFlags;

use super::{Check, Machine};

/// The two lines at the beginning of a journal are shorter.
const HEAD_BYTES_MAX: u64 = 64 << 10;

/// The version of this program.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(super) fn checks(machine: &Machine) -> Vec<Check> {
    let mut checks = vec![version(machine)];
    checks.extend(machine.journal.as_deref().map(journal));
    checks
}

/// Two programs of one name are told apart by their bytes: builds of one version may differ.
fn version(machine: &Machine) -> Check {
    let path = machine.search_path.clone().unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let named = folders.map(|folder| folder.join("forerun"));
    let mut programs: Vec<PathBuf> = named.chain(["/sbin/mount.forerun".into()]).collect();
    programs.dedup();
    let own = machine.path("/proc/self/exe");
    let differs = |path: &PathBuf| is_same(&own, &machine.path(path)).is_ok_and(|same| !same);
    match programs.into_iter().find(differs) {
        None => Check::ok("version", format!("forerun {VERSION}")),
        Some(other) => Check::warn(
            "version",
            format!(
                "forerun {VERSION}, and {} is another build of it",
                other.display()
            ),
            "remove one of the two; `type -a forerun` lists them",
        ),
    }
}

fn is_same(a: &Path, b: &Path) -> io::Result<bool> {
    let (a, b) = (File::open(a)?, File::open(b)?);
    let (length, other) = (a.metadata()?, b.metadata()?);
    if !other.is_file() || length.len() != other.len() {
        return Ok(!other.is_file());
    }
    let (mut a, mut b) = (BufReader::new(a), BufReader::new(b));
    loop {
        let (one, two) = (a.fill_buf()?, b.fill_buf()?);
        let count = one.len().min(two.len());
        if one[..count] != two[..count] {
            return Ok(false);
        }
        if count == 0 {
            return Ok(one.len() == two.len());
        }
        a.consume(count);
        b.consume(count);
    }
}

fn journal(path: &Path) -> Check {
    // Without the file's name: a report of a bug has the line, too.
    match head(path) {
        Ok((first, second)) => match parse_head(&first, &second, &METHODS) {
            Ok(_) => Check::ok("journal", "its beginning can be replayed"),
            Err(why) => Check::fail(
                "journal",
                why.to_string(),
                "replay it with the program that wrote it, or record it anew with --journal",
            ),
        },
        Err(error) => Check::fail(
            "journal",
            crate::files::plain(&error),
            "name a file that `forerun mount --journal` or `forerun read --journal` wrote",
        ),
    }
}

/// Its first two lines. A pipe is not waited for.
fn head(path: &Path) -> io::Result<(String, String)> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("is not a regular file"));
    }
    let mut lines = BufReader::new(file.take(HEAD_BYTES_MAX));
    let mut line = || {
        let mut line = Vec::new();
        lines.read_until(b'\n', &mut line)?;
        Ok::<_, io::Error>(String::from_utf8_lossy(&line).trim_end().to_owned())
    };
    Ok((line()?, line()?))
}
