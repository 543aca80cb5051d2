//! `forerun read`: files and objects to standard output through the engine, like `cat` with reading ahead.
//!
//! All files are checked and all objects opened before the first byte is printed, and an address that ends in `/` stands
//! for the objects directly below it; one that fails later stops the command there with exit code 1, the bytes before it
//! written. A range past the end of a file is empty. Writing to a pipe whose reader is gone ends the command quietly. A
//! file with other bytes than its size says, as in `/proc` and `/sys`, is read through, past the engine. `--stats`
//! prints the ledger and the time, whether or not the reading succeeded.

use std::fs::File;
use std::io::{self, Write, stderr};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use forerun_core::Nanos;
use forerun_io::source::OpenFile;

use crate::args;
use crate::composition::{check_no_walks, settings};
use crate::failure::Failure;
use crate::files;
use crate::sources::{Sources, address, all_below, check_storage};
use crate::stack::{LAST, Stack};
use crate::stats;

/// Runs the command.
///
/// # Errors
/// Bad input, a read or write that failed.
pub fn run(args: &args::Read, out: &mut dyn Write) -> Result<(), Failure> {
    if args.files.iter().any(|file| file == Path::new("-")) && !Path::new("-").exists() {
        let why = "standard input has no blocks that could be read ahead: name a file";
        return Err(Failure::unusable(Path::new("-"), why));
    }
    check_storage(&args.storage, &args.files)?;
    let paths = || args.files.iter().filter(|file| address(file).is_none());
    if let Some(folder) = paths().find(|path| path.is_dir()) {
        let why = format!("is a directory: name its files, as {}", all_below(folder));
        return Err(Failure::unusable(folder, why));
    }
    paths().try_for_each(|file| files::check(file))?;
    files::check_not_read(args.storage.journal.as_deref(), &args.files)?;
    check_no_walks(&args.composition.methods)?;
    let journal = args.storage.journal.as_deref();
    journal.map(files::check_journal).transpose()?;
    let sources = Sources::default().anonymous(args.storage.anonymous);
    let files = sources.listed(&args.files)?;
    let objects = sources.objects(&files)?;
    let stack = Stack::build(settings(args.preset, &args.composition)?, &args.storage)?;
    let begun = Instant::now();
    let mut bytes = 0;
    let copied = files.iter().zip(objects).try_for_each(|(file, object)| {
        let through = hides_its_size(file);
        let opened = match (&through, object) {
            (Some(_), _) => None,
            (None, Some(object)) => Some(stack.driver().open_source(object)),
            (None, None) => Some(stack.driver().open(file)),
        };
        let reader = opened.transpose().map_err(|e| match bytes {
            0 => Failure::Usage(e.to_string()),
            _ => Failure::Run(e.to_string()),
        })?;
        let read_at = |buffer: &mut [u8], at| match (&reader, &through) {
            (Some(reader), _) => reader.read_at(buffer, at),
            (None, Some(file)) => file.read_at(buffer, at),
            (None, None) => Ok(0),
        };
        copy(&read_at, file, args, &mut |piece| {
            bytes += piece.len() as u64;
            out.write_all(piece).map_err(|e| Failure::output(&e))
        })
    });
    let elapsed = Nanos(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
    let devices = stack.estimates();
    // Requests ahead matter to counters and journals alone.
    let is_looked_at = args.stats || journal.is_some();
    let ledger = stack.finish(if is_looked_at { LAST } else { Duration::ZERO });
    if let (true, Ok(ledger)) = (args.stats, &ledger) {
        let text = stats::lines(ledger, elapsed, bytes) + &stats::devices(&devices);
        let _ = stderr().write_all(text.as_bytes());
    }
    match (copied, ledger) {
        // A reader that has enough hides no error of the run.
        (Err(Failure::OutputClosed), Err(error)) => Err(error),
        (copied, ledger) => copied.and(ledger.map(drop)),
    }
}

/// A file with other bytes than its size says.
fn hides_its_size(path: &Path) -> Option<File> {
    // An address is no path, and a pipe is not opened.
    if address(path).is_some() || !path.is_file() {
        return None;
    }
    let file = File::open(path).ok()?;
    OpenFile::hides_its_size(&file).then_some(file)
}

/// Gives the wanted range of one file to `take`, piece by piece.
fn copy(
    read_at: &dyn Fn(&mut [u8], u64) -> io::Result<usize>,
    path: &Path,
    args: &args::Read,
    take: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut buffer = vec![0; args.read_bytes.0 as usize];
    let end = args
        .length
        .map_or(u64::MAX, |length| args.offset.0.saturating_add(length.0));
    let mut at = args.offset.0;
    while at < end {
        let wanted = buffer
            .len()
            .min(usize::try_from(end - at).unwrap_or(usize::MAX));
        match read_at(&mut buffer[..wanted], at) {
            Ok(0) => break,
            Ok(count) => {
                take(&buffer[..count])?;
                at += count as u64;
            }
            Err(e) => return Err(Failure::broken(path, format!("read at byte {at}: {e}"))),
        }
    }
    Ok(())
}
