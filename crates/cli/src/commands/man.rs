//! `forerun man`: the manual pages, from the definition of the command line itself.
//!
//! One page a command, `forerun-trace-info(1)` for `forerun trace info`, and the overview. The page
//! `mount.forerun(8)`, under which an fstab's reader looks, is that of `forerun mount`. Behind the options, which the
//! definition has, stand examples, exit status, variables and files: [sections].

mod sections;

use std::fs;
use std::io::Write;
use std::path::Path;

use clap::builder::{Resettable, StyledStr};
use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::{self, Args};
use crate::failure::Failure;
use crate::files::{make_folder, plain};

/// The helper of mount(8), as another name of a page.
const MOUNT_HELPER: (&str, &str) = ("mount.forerun.8", ".so man1/forerun-mount.1\n");

/// Runs the command.
///
/// # Errors
/// No such command, or output that cannot be written.
pub fn run(args: &args::Man, out: &mut dyn Write) -> Result<(), Failure> {
    let mut whole = Args::command();
    whole.build();
    if let Some(folder) = &args.output {
        return write_all(&whole, folder);
    }
    let wanted = match &args.command {
        Some(name) => whole.find_subcommand(name).ok_or_else(|| {
            let names: Vec<_> = whole.get_subcommands().map(Command::get_name).collect();
            Failure::Usage(format!("{name:?} is no command: {}", names.join(", ")))
        })?,
        None => &whole,
    };
    out.write_all(&page(wanted)?)
        .map_err(|e| Failure::output(&e))
}

fn page(command: &Command) -> Result<Vec<u8>, Failure> {
    // Subcommands are named `forerun-mount` in their pages, as the files are.
    let name = command.get_display_name().unwrap_or(command.get_name());
    let mut text = Vec::new();
    let behind = sections::sections(command, of_overview(name));
    let bare = command.clone().after_help(Resettable::<StyledStr>::Reset);
    Man::new(
        bare.after_long_help(Resettable::<StyledStr>::Reset)
            .name(name.to_owned()),
    )
    .render(&mut text)
    .map_err(|e| Failure::output(&e))?;
    text.extend(behind.as_bytes());
    Ok(text)
}

/// The command's name without the program's: empty of the overview.
fn of_overview(page: &str) -> &str {
    let name = page.strip_prefix("forerun").unwrap_or(page);
    let name = name.trim_start_matches('-');
    // A subcommand is of its command.
    name.split('-').next().unwrap_or(name)
}

fn write_all(whole: &Command, folder: &Path) -> Result<(), Failure> {
    let unusable = |e: std::io::Error| Failure::unusable(folder, plain(&e));
    make_folder(folder)?;
    write_below(whole, folder)?;
    let (name, text) = MOUNT_HELPER;
    fs::write(folder.join(name), text).map_err(unusable)
}

fn write_below(command: &Command, folder: &Path) -> Result<(), Failure> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let path = folder.join(format!("{name}.1"));
    fs::write(&path, page(command)?).map_err(|e| Failure::unusable(&path, plain(&e)))?;
    let wanted = |sub: &&Command| !sub.is_hide_set() && sub.get_name() != "help";
    let mut subcommands = command.get_subcommands().filter(wanted);
    subcommands.try_for_each(|sub| write_below(sub, folder))
}
