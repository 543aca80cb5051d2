//! Flags of a command as names and values, for callers that have no command line: plans of sweeps, and Python.
//!
//! Problem: a second description of the same options drifts from the first, in a name, a default or a range. Mechanism:
//! there is one description, that of `args`. A caller gives names without dashes and values as text; they become words,
//! are parsed as the command line's are, and are refused in its words.
//!
//! ```text
//! cache-blocks = "64,128", writes = "true"  -->  forerun simulate --cache-blocks=64,128 --writes  -->  Simulate
//! ```

use std::collections::BTreeMap;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, CommandFactory, FromArgMatches};
use forerun_baselines::nearest;
use forerun_core::reclaim::Reclaim;
use forerun_core::spec::Choice;

use crate::args::{Args, Command};

/// Values of flags, by their names without dashes.
pub type Values = BTreeMap<String, String>;

/// The command of simulations, and that of counts.
pub const SIMULATE: &[&str] = &["simulate"];
/// See [`SIMULATE`].
pub const COUNT: &[&str] = &["trace", "count"];

/// A flag of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flag {
    /// Its name without dashes; of an argument without a flag, the name of its value.
    pub name: String,
    /// The value if none is given.
    pub default: Option<String>,
    /// Whether it takes a value; else it is set or not.
    pub takes_value: bool,
    /// Its line of the help.
    pub help: String,
}

/// A method of reclaim that no list has.
#[derive(Clone, Debug)]
pub struct OwnMethod {
    /// The method.
    pub choice: Choice<Box<dyn Reclaim>>,
    /// A digest of its source: another source is another method.
    pub digest: String,
}

/// Methods of reclaim that no list has, by their names.
pub type Own = BTreeMap<String, OwnMethod>;

/// Values that the command line would refuse.
#[derive(Debug)]
pub struct Refused {
    /// The flag that is refused, if it is one.
    pub flag: Option<String>,
    /// In the words of the command line.
    pub why: String,
}

/// The command with its flags, and that of the program around it.
fn command(path: &[&str]) -> (clap::Command, clap::Command) {
    let all = Args::command();
    let mut command = &all;
    for name in path {
        command = command.find_subcommand(name).unwrap_or(command);
    }
    (command.clone(), all)
}

fn name_of(arg: &Arg) -> String {
    let name = arg.get_long().map(str::to_owned);
    name.unwrap_or_else(|| {
        let names = arg.get_value_names().unwrap_or_default();
        names
            .first()
            .map_or(String::new(), |name| name.to_lowercase())
    })
}

/// The flags of a command, but for its help.
#[must_use]
pub fn flags(path: &[&str]) -> Vec<Flag> {
    let (command, _) = command(path);
    let args = command.get_arguments();
    let args =
        args.filter(|arg| !matches!(arg.get_action(), ArgAction::Help | ArgAction::HelpShort));
    let flag = |arg: &Arg| {
        let defaults = arg.get_default_values().iter();
        let defaults: Vec<_> = defaults.map(|value| value.to_string_lossy()).collect();
        let takes_value = arg.get_action().takes_values();
        Flag {
            name: name_of(arg),
            default: (takes_value && !defaults.is_empty()).then(|| defaults.join(",")),
            takes_value,
            help: arg.get_help().map(ToString::to_string).unwrap_or_default(),
        }
    };
    args.map(flag).collect()
}

/// The names nearest to one that no flag has.
#[must_use]
pub fn nearest_of<'a>(name: &str, flags: impl Iterator<Item = &'a str>) -> String {
    nearest(name, flags).join(", ")
}

/// Parses values as those of a command, again and again.
#[derive(Debug)]
pub struct Parser {
    path: &'static [&'static str],
    command: clap::Command,
    flags: Vec<Flag>,
    /// Arguments without a flag.
    positional: Vec<String>,
}

impl Parser {
    /// Of this command.
    #[must_use]
    pub fn new(path: &'static [&'static str]) -> Self {
        let (inner, command) = command(path);
        let positional = inner.get_positionals().map(name_of).collect();
        let flags = flags(path);
        Self {
            path,
            command,
            flags,
            positional,
        }
    }

    /// The command with these values.
    ///
    /// # Errors
    /// A name that no flag has, values that are refused.
    pub fn parse(&mut self, values: &Values) -> Result<Command, Refused> {
        let mut words = vec!["forerun".to_owned()];
        words.extend(self.path.iter().map(|&word| word.to_owned()));
        let mut last = vec!["--".to_owned()];
        for (name, value) in values {
            let Some(flag) = self.flags.iter().find(|flag| flag.name == *name) else {
                let known = self.flags.iter().map(|flag| flag.name.as_str());
                let nearest = nearest_of(name, known);
                let why = format!(
                    "{name}: no flag of forerun {}; the nearest are {nearest}",
                    self.path.join(" ")
                );
                return Err(Refused {
                    flag: Some(name.clone()),
                    why,
                });
            };
            match value.as_str() {
                _ if self.positional.contains(name) => last.push(value.clone()),
                "true" if !flag.takes_value => words.push(format!("--{name}")),
                "false" if !flag.takes_value => {}
                value => words.push(format!("--{name}={value}")),
            }
        }
        if last.len() > 1 {
            words.extend(last);
        }
        let matches = self.command.try_get_matches_from_mut(words);
        let args = matches.and_then(|matches| Args::from_arg_matches(&matches));
        args.map(|args| args.command)
            .map_err(|error| refused(&error))
    }
}

fn refused(error: &clap::Error) -> Refused {
    let flag = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(arg)) => {
            let name = arg.trim_start_matches("--").split([' ', '=']).next();
            name.map(str::to_owned)
        }
        _ => None,
    };
    let why = first_paragraph(&error.to_string());
    Refused { flag, why }
}

/// The message of an error of the command line, without the usage below it.
fn first_paragraph(text: &str) -> String {
    let lines = text.lines().take_while(|line| !line.is_empty());
    let lines: Vec<&str> = lines.map(str::trim).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}
