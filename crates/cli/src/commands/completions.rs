//! `forerun completions`: a completion script for a shell, from the definition of the arguments.
//!
//! Problem: a preset is parsed by a function, which a shell cannot run, so scripts would offer files in its place; and
//! mount points are those of the moment of the Tab. For the script alone, arguments get the names of the lists as their
//! values, by the argument's name; and for mount points each shell has a function that reads the kernel's list.

use std::io::Write;

use clap::builder::PossibleValuesParser;
use clap::{Command, CommandFactory};
use clap_complete::Shell;

use super::list::names;
use crate::args::{Args, Completions};
use crate::failure::Failure;

/// Arguments, and the part of `forerun list` that has their values.
const LISTED: &[(&str, &str)] = &[
    ("preset", "presets"),
    ("detect", "detect"),
    ("depth", "depth"),
    ("shape", "shape"),
    ("dispatch", "dispatch"),
    ("reclaim", "reclaim"),
    ("next_file", "next_file"),
    ("measure_method", "measure"),
    ("hinted", "hinted"),
    ("device", "devices"),
    ("scheduler", "schedulers"),
    ("workload", "workloads"),
    ("backend", "backends"),
    ("trace_format", "formats"),
    ("to", "formats"),
    ("what", "parts"),
    ("message", "codes"),
];

/// Commands whose first argument is a mount point.
const OF_MOUNTS: &str = "umount top ctl doctor";

/// Prints the mount points of forerun; blanks in them are `\040`.
const MOUNTS: &str = "awk '/ - fuse\\.forerun /{print $5}' /proc/self/mountinfo 2>/dev/null";

/// Runs the command.
///
/// # Errors
/// Output that cannot be written.
pub fn run(args: &Completions, out: &mut dyn Write) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut listed(Args::command()),
        "forerun",
        &mut text,
    );
    let text = with_mounts(args.shell, &String::from_utf8_lossy(&text));
    out.write_all(text.as_bytes())
        .map_err(|e| Failure::output(&e))
}

/// The command with values of arguments from the lists.
fn listed(command: Command) -> Command {
    let ids: Vec<_> = command
        .get_arguments()
        .map(|arg| arg.get_id().clone())
        .collect();
    let with_values = ids.into_iter().fold(command, |command, id| {
        // `tune --measure` is a number of seconds.
        let takes_method = id != "measure" || command.get_name() != "tune";
        let key = if id == "measure" && takes_method {
            "measure_method"
        } else {
            id.as_str()
        };
        let part = LISTED.iter().find(|(name, _)| *name == key);
        let Some((_, part)) = part.filter(|_| takes_method) else {
            return command;
        };
        let values = PossibleValuesParser::new(names(part));
        command.mut_arg(id, |arg| arg.value_parser(values))
    });
    with_values.mut_subcommands(listed)
}

/// The script with a function for mount points.
fn with_mounts(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => format!(
            "{script}\n_forerun_or_mounts() {{\n    \
             case \" {OF_MOUNTS} \" in *\" ${{COMP_WORDS[1]}} \"*)\n        \
             if [ \"$COMP_CWORD\" = 2 ] && [[ \"${{COMP_WORDS[2]}}\" != -* ]]; then\n            \
             mapfile -t COMPREPLY < <(compgen -W \"$({MOUNTS})\" -- \"${{COMP_WORDS[2]}}\")\n            \
             return\n        fi ;;\n    esac\n    _forerun \"$@\"\n}}\n\
             complete -F _forerun_or_mounts -o nosort -o bashdefault -o default forerun\n"
        ),
        Shell::Fish => format!(
            "{script}\ncomplete -c forerun -n '__fish_seen_subcommand_from {OF_MOUNTS}' -f -a '({})'\n",
            MOUNTS.replace('\'', "\\'")
        ),
        Shell::Zsh => {
            // A mount point that is there, in the words of the arguments' help.
            let is_one = |line: &str| {
                line.contains(" -- The mount point") || line.contains("mount -- A mount point")
            };
            let lines = script.lines().map(|line| match is_one(line) {
                true => {
                    line.replace(":_files' ", ":_forerun_mounts' ")
                        + "
"
                }
                false => format!(
                    "{line}
"
                ),
            });
            let by_name: String = lines.collect();
            let function = format!(
                "_forerun_mounts() {{\n    local -a mounts\n    mounts=(${{(f)\"$({MOUNTS})\"}})\n    \
                 _describe 'mount point' mounts\n}}\n\n"
            );
            // The first line says of which program the script is.
            match by_name.split_once('\n') {
                Some((first, rest)) => format!("{first}\n\n{function}{rest}"),
                None => by_name,
            }
        }
        _ => script.to_owned(),
    }
}
