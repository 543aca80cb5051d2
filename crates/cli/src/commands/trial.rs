//! `forerun try`: a comparison with the kernel on the user's own files, or with other programs on the objects of a store.
//!
//! Chooses a sample, looks whether it can be read cold, runs all candidates in turns, and says the
//! answer in words with the command to use. A trial is [`crate::trial`].

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use forerun_core::Bytes;
use rustix::fs::{major, minor};

use crate::args::Try;
use crate::composition::name_the_flag;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::mount::budget::Budget;
use crate::progress;
use crate::quantity::{rough_size, size};
use crate::resident::RESIDENT_MAX;
use crate::sources::{address, check_anonymous};
use crate::trial::choice::Rates;
use crate::trial::files::{Chosen, Part};
use crate::trial::side::{Engine, Kernel, Mount, Side};
use crate::trial::verdict::{self, Row};
use crate::trial::{Prepare, TURNS, busy, cold, turns};
use crate::tune::devices::Devices;
use crate::tune::folder::Folder;

#[cfg(feature = "object-store")]
mod of_store;
mod told;
mod tuned;

use told::Told;

/// The cost of a run beside its reading: dropping pages, and a mount that comes and goes.
const BESIDE: Duration = Duration::from_millis(500);

/// How much of the time one reader gets. Windows of many readers take longer to grow: each has its
/// turn, and 16 on a disk of 8 ms wait a second between two of theirs.
const ONE_PERCENT: u32 = 30;

/// The shortest useful run.
const RUN_MIN: Duration = Duration::from_millis(100);

/// Runs the command.
///
/// # Errors
/// Files that cannot be read, or cannot be read cold.
pub fn run(args: &Try, environment: &Environment, out: &mut dyn Write) -> Result<(), Failure> {
    check_anonymous(args.anonymous, std::slice::from_ref(&args.path))?;
    // A mount is tried, so it has to be possible.
    Budget::of(args.memory, Bytes(0))?;
    let mut told = Told::new(args, out);
    match address(&args.path) {
        Some(url) if args.tuned => Err(Failure::Usage(format!(
            "--tuned: {url}: the kernel reads nothing of a store ahead"
        ))),
        Some(url) => of_address(args, url, &mut told),
        None => of_files(args, environment, &mut told),
    }
}

#[cfg(feature = "object-store")]
use of_store::run as of_address;

#[cfg(not(feature = "object-store"))]
fn of_address(_: &Try, url: &str, _: &mut Told<'_>) -> Result<(), Failure> {
    crate::sources::Sources::default().tree(url).map(drop)
}

fn of_files(args: &Try, environment: &Environment, told: &mut Told<'_>) -> Result<(), Failure> {
    let chosen = Chosen::of(&args.path)?;
    let tunable = args.tuned.then(|| tuned::check(args)).transpose()?;
    let folder = Folder::of(environment);
    let watched = Devices::of(&args.path).ok();
    if let Some(why) = watched.and_then(|devices| folder.taken(&devices.bdi)) {
        return Err(Failure::unusable(&args.path, why));
    }
    check_seconds(args, &chosen, if args.tuned { 4 } else { 2 })?;
    let rotational = rotational(&chosen.folder);
    told.text(&busy::warning().unwrap_or_default())?;
    let what = format!("Read cold, in turns, for at most {} s", args.seconds);
    told.text(&headline(args, &chosen, "file", &what))?;
    cold::drop_pages(&chosen, &chosen.divide(1, 0, 1))?;
    let resident = cold::resident_percent(&chosen);
    if resident > RESIDENT_MAX {
        let why = format!(
            "{resident} % of it stays in memory without a reader: it is on a file system in \
             memory, or in use by a program, or it was written a moment ago (`sync` ends that). forerun makes reading from storage fast; here is nothing \
             to be gained"
        );
        return Err(Failure::broken(&args.path, why));
    }
    let kernel = Kernel {
        folder: chosen.folder.clone(),
    };
    let forerun = side(args, &chosen, told)?;
    let prepare = |parts: &[Vec<Part>]| cold::drop_pages(&chosen, parts);
    if let Some(devices) = tunable {
        return tuned::run(
            args,
            &chosen,
            devices,
            &folder,
            (&kernel, forerun.as_ref()),
            told,
        );
    }
    let sides: [&dyn Side; 2] = [&kernel, forerun.as_ref()];
    let rows = rows(args, &chosen, &[None], &sides, &prepare, told)?;
    told.text(&verdict::text(&rows, &command(args, &chosen), rotational))
}

/// The rows of one reader and of many, beside each of these candidates; forerun is the last side.
fn rows(
    args: &Try,
    chosen: &Chosen,
    peers: &[Option<&'static str>],
    sides: &[&dyn Side],
    prepare: Prepare<'_>,
    told: &mut Told<'_>,
) -> Result<Vec<Row>, Failure> {
    let all = rates(args, chosen, sides, prepare)?;
    let names = peers.iter().map(|peer| peer.unwrap_or("kernel"));
    told.rates(&all, names.chain(["forerun"]))?;
    Ok(all
        .iter()
        .flat_map(|rates| Row::of(rates.readers, peers, &rates.ways))
        .collect())
}

/// The rates of one reader and of many. What mounts took longer than reckoned, later runs have less.
fn rates(
    args: &Try,
    chosen: &Chosen,
    sides: &[&dyn Side],
    prepare: Prepare<'_>,
) -> Result<Vec<Rates>, Failure> {
    let readers = readers(args, chosen);
    let runs = TURNS * sides.len() as u32;
    let end = Instant::now() + Duration::from_secs(args.seconds.into());
    let last = readers.last().copied();
    let bar = progress::steps("reading", (runs * readers.len() as u32).into());
    let mut all = Vec::new();
    for readers in readers {
        let step = || bar.inc(1);
        let left = end.saturating_duration_since(Instant::now());
        let time = match last {
            Some(last) if last == readers => left,
            _ => share(args, readers),
        };
        let each = (time / runs).saturating_sub(BESIDE).max(RUN_MIN);
        let ways = turns(chosen, readers, each, sides, prepare, &step)?;
        all.push(Rates { readers, ways });
    }
    bar.finish_and_clear();
    Ok(all)
}

/// Makes sure that the runs of so many candidates have the time.
fn check_seconds(args: &Try, chosen: &Chosen, sides: usize) -> Result<(), Failure> {
    let runs = TURNS * (sides * readers(args, chosen).len()) as u32;
    let least = ((RUN_MIN + BESIDE) * runs).as_secs_f64().ceil();
    match f64::from(args.seconds) < least {
        true => Err(Failure::Usage(format!(
            "--seconds {}: must be at least {least}, for {runs} runs of {} s",
            args.seconds,
            (RUN_MIN + BESIDE).as_secs_f64()
        ))),
        false => Ok(()),
    }
}

/// One reader, and as many as are wanted and there are parts for.
fn readers(args: &Try, chosen: &Chosen) -> Vec<u32> {
    let many = args.readers.min(chosen.readers_max());
    [1].into_iter()
        .chain(Some(many).filter(|many| *many > 1))
        .collect()
}

/// The time of so many readers.
fn share(args: &Try, readers: u32) -> Duration {
    let percent = match readers {
        1 => ONE_PERCENT,
        _ => 100 - ONE_PERCENT,
    };
    Duration::from_secs(args.seconds.into()) * percent / 100
}

/// The command to use.
fn command(args: &Try, chosen: &Chosen) -> String {
    let anonymous = if args.anonymous { "--anonymous " } else { "" };
    format!(
        "forerun mount {anonymous}--memory {} {} MOUNTPOINT",
        size(args.memory),
        quoted(&chosen.folder)
    )
}

fn headline(args: &Try, chosen: &Chosen, one: &str, what: &str) -> String {
    let sample = if chosen.is_sample {
        ", the first found"
    } else {
        ""
    };
    let files = match chosen.files.len() {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    };
    format!(
        "{}: {files}, {}{sample}{}. {what}.\n\n",
        args.path.display(),
        rough_size(chosen.bytes() as f64),
        chosen.unreadable(),
    )
}

/// A mount, or the engine alone where none can be made.
fn side(args: &Try, chosen: &Chosen, told: &mut Told<'_>) -> Result<Box<dyn Side>, Failure> {
    let mount = Mount {
        folder: chosen.folder.clone(),
        memory: args.memory,
        is_anonymous: args.anonymous,
    };
    match mount.begin() {
        Ok(_) => Ok(Box::new(mount)),
        Err(why) => {
            told.text(&format!(
                "Without a mount ({why}): measured as `forerun read` reads.\n\n"
            ))?;
            let preset = forerun_core::preset::DEFAULT;
            let preset =
                forerun_baselines::preset(preset).map_err(|e| Failure::Run(e.to_string()))?;
            let settings = preset.settings(args.memory).map_err(name_the_flag)?;
            Ok(Box::new(Engine {
                folder: chosen.folder.clone(),
                settings,
                is_anonymous: args.anonymous,
            }))
        }
    }
}

/// Whether the device of a folder rotates, as the kernel has it; none where it is no block device.
fn rotational(folder: &Path) -> Option<bool> {
    let device = folder.metadata().ok()?.dev();
    let device = format!("/sys/dev/block/{}:{}", major(device), minor(device));
    // A partition has no queue of its own.
    ["queue", "../queue"].iter().find_map(|queue| {
        let text = std::fs::read_to_string(format!("{device}/{queue}/rotational")).ok()?;
        Some(text.trim() == "1")
    })
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let Some(text) = path.to_str() else {
        // As bash, zsh and POSIX of 2024 have it.
        let bytes = path.as_os_str().as_bytes().iter();
        let escaped = bytes.map(|byte| match byte {
            b'\'' | b'\\' => format!("\\{}", char::from(*byte)),
            b' '..=b'~' => char::from(*byte).to_string(),
            _ => format!("\\{byte:03o}"),
        });
        return format!("$'{}'", escaped.collect::<String>());
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    if text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn a_path_with_blanks_is_quoted() {
        assert_eq!(quoted(Path::new("/a/b-1.c")), "/a/b-1.c");
        assert_eq!(quoted(Path::new("/a b/c'd")), "'/a b/c'\\''d'");
        let latin = OsStr::from_bytes(b"/f\xfcr 'dich'");
        assert_eq!(quoted(Path::new(latin)), "$'/f\\374r \\'dich\\''");
    }
}
