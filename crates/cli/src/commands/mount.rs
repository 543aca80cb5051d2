//! `forerun mount`: shows a directory, or the objects of a store, at another place, read ahead.
//!
//! In the foreground this is the mount itself; else it starts one in the background and returns
//! once that works. The mount itself is [`forerun_mount`].

use forerun_core::settings::SettingsError;

use crate::args::{Composition, Mount};
use crate::composition::{name_the_flag, settings};
use crate::failure::Failure;
use crate::files;
use crate::mount::fs::passthrough::Mode;
use crate::mount::options::expand;
use crate::mount::running::{Running, Wanted};
use crate::mount::sockets::Sockets;
use crate::mount::{background, point};
use crate::sources::{Sources, address, check_storage};
use crate::stack;

/// Runs the command.
///
/// # Errors
/// An argument that cannot be mounted, or a failure to mount.
pub fn run(args: &Mount, sockets: &Sockets) -> Result<(), Failure> {
    // In the words of the user, before a part of it is taken off.
    if let Err(error @ SettingsError::Memory { given, maximum, .. }) =
        args.preset.settings(args.composition.memory)
        && given > maximum
    {
        return Err(name_the_flag(error));
    }
    if args.check_arguments {
        check(args)?;
        settings(args.preset, &args.composition).map(drop)
    } else if args.report_ready {
        background::serve(|| start(args, sockets), |running| running.wait().map(drop))
    } else if args.foreground {
        start(args, sockets)?.wait().map(drop)
    } else {
        background::start(expand(std::env::args_os()))
    }
}

/// A journal replaces a journal and a record nothing, both elsewhere than the files that they are about. The mount hides
/// a socket below it.
fn check_written(args: &Mount) -> Result<(), Failure> {
    if let Some(path) = args.control.as_deref()
        && files::is_within(path, &args.mountpoint)
    {
        let path = path.display();
        let why = "lies below MOUNTPOINT, where no program can reach it: give a place elsewhere";
        return Err(Failure::Usage(format!("--control {path}: {why}")));
    }
    let written = [
        ("--journal", args.storage.journal.as_deref()),
        ("--record", args.record.as_deref()),
    ];
    for (option, path) in written {
        let Some(path) = path else { continue };
        if path.exists() && !path.is_file() {
            // A pipe, or nothing at all.
            files::check_target(path)?;
            continue;
        }
        let refused = |why: &str| {
            let path = path.display();
            Err(Failure::Usage(format!("{option} {path}: {why}")))
        };
        if [&args.source, &args.mountpoint]
            .into_iter()
            .any(|folder| files::is_within(path, folder))
        {
            return refused("lies in SOURCE or below MOUNTPOINT: give a place elsewhere");
        }
        match option {
            "--journal" => files::check_journal(path)?,
            _ if path.is_file() => return refused("exists already: a record is a new file"),
            _ => files::check_target(path)?,
        }
    }
    Ok(())
}

/// Arguments that exclude each other, and files that must not be written.
fn check(args: &Mount) -> Result<(), Failure> {
    check_storage(&args.storage, std::slice::from_ref(&args.source))?;
    if let (Some(url), Mode::Always) = (address(&args.source), args.passthrough) {
        let why = "the kernel reads files of this machine by itself, and no objects of a store";
        return Err(Failure::Usage(format!(
            "--passthrough always: {url}: {why}"
        )));
    }
    if let (Some(_), Mode::Always) = (&args.record, args.passthrough) {
        let why = "reads of the kernel by itself are not seen, so not recorded";
        return Err(Failure::Usage(format!(
            "--passthrough always with --record: {why}"
        )));
    }
    check_written(args)
}

fn start(args: &Mount, sockets: &Sockets) -> Result<Running, Failure> {
    check(args)?;
    let checked = match address(&args.source) {
        Some(url) => {
            let sources = Sources::within(args.composition.memory);
            let tree = || sources.anonymous(args.storage.anonymous).tree(url);
            point::check_for(tree, &args.mountpoint, args.nonempty)
        }
        None => point::check(&args.source, &args.mountpoint, args.nonempty),
    }?;
    let usual_control = match &args.control {
        Some(_) => None,
        None => sockets.name()?,
    };
    let wanted = Wanted {
        memory: args.composition.memory,
        preset: args.preset.name,
        trust: args.trust(),
        passthrough: match args.record {
            // The kernel's own reads would not be seen.
            Some(_) => Mode::Never,
            None => args.passthrough,
        },
        allow_other: args.allow_other,
        kernel_readahead: args.kernel_readahead,
        flags: args.flag.clone(),
        metrics: args.metrics,
        control: args.control.clone(),
        usual_control,
        journal: args.storage.journal.clone(),
        record: args.record.clone().map(|path| (path, args.record_max)),
        until_input_ends: args.until_input_ends,
    };
    Running::start(&wanted, checked, |memory| {
        let composition = Composition {
            memory,
            ..args.composition.clone()
        };
        stack::config(settings(args.preset, &composition)?, &args.storage)
    })
}
