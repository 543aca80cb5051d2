//! Mistakes on the command line whose usual tip misleads.
//!
//! Problem: to a flag that a command does not have, clap's tip is to pass it as a value (`use '-- --dry-run'`), and an
//! option behind `-o` is refused under a name that was not typed. Here flags of similar programs are answered with forerun's
//! way to the same end, and an option is named as it stands behind `-o`. A negative value is handed on as one ([`with_negative_values`]).
//!
//! Called by `main` with the error and the words as they were typed.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::Args;

/// Flags of other programs, and the way here.
const FLAGS: &[(&[&str], &str)] = &[
    (
        &["--dry-run", "--dryrun"],
        "`forerun try SOURCE` measures without a mount, `forerun watch --dry-run` without setting anything",
    ),
    (
        &["-v", "--verbose", "--debug", "-d"],
        "FORERUN_LOG=debug in the environment logs details",
    ),
    (
        &["--read-only", "--readonly", "-r", "--ro"],
        "a mount is read-only in any case",
    ),
    (
        &["--cache-size", "--cache", "--max-memory", "--mem"],
        "--memory SIZE bounds everything, the cache included",
    ),
    (
        &["--daemon", "--background", "-b"],
        "a mount goes to the background unless --foreground",
    ),
    (
        &["--uid", "--gid", "--umask"],
        "files keep their owners and modes; --allow-other lets other users in",
    ),
    (
        &["--allow-root"],
        "--allow-other lets other users in, root too",
    ),
    (
        &["--quiet", "-q"],
        "FORERUN_LOG=off in the environment turns the log off",
    ),
    (&["--json"], "--format json"),
    (
        &["--threads", "--jobs", "-j"],
        "threads follow from the devices; --memory is the one limit",
    ),
];

/// Commands that a program of its own has.
const ELSEWHERE: &[(&str, &str)] = &[(
    "reproduce",
    "the program forerun-lab measures claims of papers: `forerun-lab reproduce PAPER`",
)];

/// Words in which a negative value stands with its flag, as in `--from=-1s`: behind a blank it would be taken for a flag,
/// of which none begins with a digit.
#[must_use]
pub fn with_negative_values(words: Vec<OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if word == "--" {
            joined.extend_from_slice(&words[at..]);
            break;
        }
        let is_negative = word.as_encoded_bytes().strip_prefix(b"-");
        let is_negative =
            is_negative.is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit));
        let is_flag = |flag: &&mut OsString| {
            let flag = flag.as_encoded_bytes();
            flag.starts_with(b"--") && !flag.contains(&b'=')
        };
        match joined
            .last_mut()
            .filter(|flag| is_negative && is_flag(flag))
        {
            Some(flag) => {
                flag.push("=");
                flag.push(word);
            }
            None => joined.push(word.clone()),
        }
    }
    joined
}

/// Words in which `help --help` is `help`, which clap takes for a command of this name.
#[must_use]
pub fn with_help_of_help(mut words: Vec<OsString>) -> Vec<OsString> {
    if let [_, help, flag] = &words[..]
        && help == "help"
        && (flag == "--help" || flag == "-h")
    {
        words.truncate(2);
    }
    words
}

/// The error as a user can act on it.
#[must_use]
pub fn explained(mut error: clap::Error, typed: &[OsString]) -> clap::Error {
    if let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidSubcommand)
        && let Some((name, place)) = ELSEWHERE.iter().find(|(name, _)| name == unknown)
    {
        return clap::Error::raw(error.kind(), format!("{name}: {place}\n"));
    }
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg).cloned() else {
        return error;
    };
    let behind_o = behind_o(&unknown, typed);
    if let Some(option) = &behind_o {
        let named = ContextValue::String(format!("-o {option}"));
        error.insert(ContextKind::InvalidArg, named);
        if let Some(ContextValue::String(similar)) = error.get(ContextKind::SuggestedArg).cloned() {
            let similar = similar.trim_start_matches('-').replace('-', "_");
            let similar = ContextValue::String(format!("-o {similar}"));
            error.insert(ContextKind::SuggestedArg, similar);
        }
    }
    let name = unknown.split('=').next().unwrap_or_default();
    let way = FLAGS.iter().find(|(flags, _)| flags.contains(&name));
    // A similar flag of the command's own is the better tip.
    let has_similar = error.get(ContextKind::SuggestedArg).is_some();
    let way = way.filter(|_| !has_similar);
    let way = way.map(|(_, way)| (*way).to_owned());
    let way = way.or_else(|| behind_o.map(|_| format!("-o takes {}", options())));
    match way {
        Some(way) => {
            let tip = ContextValue::StyledStrs(vec![StyledStr::from(way)]);
            error.insert(ContextKind::Suggested, tip);
        }
        None => {
            error.remove(ContextKind::Suggested);
        }
    }
    error
}

/// The options that a mount takes behind `-o`; those of mount(8) itself are taken, too.
fn options() -> String {
    let whole = Args::command();
    let mount = whole.find_subcommand("mount").into_iter();
    let all = mount.flat_map(clap::Command::get_arguments);
    let names = all
        .filter(|arg| !arg.is_hide_set())
        .filter_map(clap::Arg::get_long);
    let names: Vec<&str> = names
        .chain(["dev", "suid", "noexec", "noatime", "nodiratime"])
        .collect();
    names.join(", ")
}

/// The option as it stands behind a `-o`; none where the flag itself was typed.
fn behind_o(flag: &str, typed: &[OsString]) -> Option<String> {
    let typed: Vec<_> = typed.iter().map(|word| word.to_string_lossy()).collect();
    let is_flag = |word: &str| word.split('=').next() == flag.split('=').next();
    if typed.iter().any(|word| is_flag(word)) {
        return None;
    }
    let wanted = flag.strip_prefix("--")?.split('=').next()?;
    let lists =
        typed
            .iter()
            .enumerate()
            .filter_map(|(at, word)| match word.strip_prefix("-o")? {
                "" => typed.get(at + 1).map(|list| list.as_ref()),
                list => Some(list),
            });
    let mut options = lists.flat_map(|list| list.split(','));
    let name = |option: &str| {
        option
            .split('=')
            .next()
            .unwrap_or_default()
            .replace('_', "-")
    };
    options
        .find(|option| name(option) == wanted)
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn said(line: &str) -> String {
        let typed: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        #[cfg(feature = "mount")]
        let words = crate::mount::options::expand(typed.clone());
        #[cfg(not(feature = "mount"))]
        let words = typed.clone();
        let error = Args::try_parse_from(words).unwrap_err();
        explained(error, &typed).to_string()
    }

    #[test]
    fn flags_of_other_programs_are_answered_with_the_way_here() {
        for (line, tip) in [
            ("forerun list --verbose", "FORERUN_LOG=debug"),
            ("forerun list --dry-run", "forerun try SOURCE"),
            ("forerun list -v", "FORERUN_LOG=debug"),
        ] {
            let said = said(line);
            assert!(said.contains(tip) && !said.contains("as a value"), "{said}");
        }
        let none = said("forerun list --nonsense");
        assert!(
            none.contains("--nonsense") && !none.contains("tip"),
            "{none}"
        );
    }

    /// All commands that have none below them, each as the words that call it.
    fn commands() -> Vec<(Vec<String>, clap::Command)> {
        let mut left = vec![(vec!["forerun".to_owned()], Args::command())];
        let mut found = Vec::new();
        while let Some((words, command)) = left.pop() {
            for inner in command.get_subcommands() {
                let words = [words.clone(), vec![inner.get_name().to_owned()]].concat();
                left.push((words, inner.clone()));
            }
            found.push((words, command));
        }
        found
    }

    #[test]
    fn every_flag_with_a_value_answers_a_wrong_number_with_what_it_accepts() {
        let mut flags = 0;
        for (words, command) in commands() {
            for arg in command
                .get_arguments()
                .filter(|arg| arg.get_action().takes_values())
            {
                let Some(flag) = arg.get_long() else { continue };
                for value in ["-1s", "-5", "film-11", "1.5.2"] {
                    let line =
                        [words.clone(), vec![format!("--{flag}"), value.to_owned()]].concat();
                    let line = with_negative_values(line.into_iter().map(OsString::from).collect());
                    let Err(error) = Args::try_parse_from(line) else {
                        continue;
                    };
                    let said = error.to_string();
                    for wrong in [
                        "unexpected argument",
                        "invalid digit",
                        "invalid float",
                        "is not in",
                    ] {
                        assert!(!said.contains(wrong), "{words:?} --{flag} {value}: {said}");
                    }
                    flags += 1;
                }
            }
        }
        assert!(flags > 100, "{flags}");
    }

    #[test]
    fn a_negative_value_goes_to_its_flag_and_to_nothing_else() {
        let joined = |line: &str| {
            let words = line.split(' ').map(OsString::from).collect();
            let words = with_negative_values(words).into_iter();
            words
                .map(|word| word.into_string().unwrap())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(joined("forerun a --from -1s b"), "forerun a --from=-1s b");
        for same in [
            "a --from --until 1s",
            "a -1",
            "a --from=0s -1",
            "a -o -1",
            "a -- --from -1",
            "a -",
        ] {
            assert_eq!(joined(same), same);
        }
    }

    #[test]
    fn a_command_of_another_program_is_answered_with_one_line_that_names_it() {
        let said = said("forerun reproduce li04 --only C4");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains("`forerun-lab reproduce PAPER`"), "{said}");
    }

    #[cfg(feature = "mount")]
    #[test]
    fn an_option_is_named_as_it_was_typed() {
        for (line, named) in [
            (
                "forerun mount -o memory=1GiB,allow_others /a /b",
                "'-o allow_others'",
            ),
            ("forerun mount -ouid=1000 /a /b", "'-o uid=1000'"),
            (
                "mount.forerun /a /b -o rw,cache_size=1G",
                "'-o cache_size=1G'",
            ),
            ("forerun mount --cache-size 1G /a /b", "'--cache-size'"),
        ] {
            let said = said(line);
            assert!(said.contains(named), "{line}: {said}");
        }
        let kept = said("forerun mount -o uid=1000 /a /b");
        assert!(kept.contains("files keep their owners"), "{kept}");
        for line in [
            "forerun mount -o foo /a /b",
            "mount.forerun /a /b -o rw,foo=1",
        ] {
            let said = said(line);
            let list = said.split_once("-o takes ").map(|(_, list)| list);
            let list = list.unwrap_or_else(|| panic!("{line}: {said}"));
            for option in [
                "memory, ",
                "allow-other, ",
                "kernel-readahead, ",
                "nodiratime",
            ] {
                assert!(list.contains(option), "{option}: {said}");
            }
        }
        let similar = said("forerun mount -o allow_others /a /b");
        assert!(similar.contains("'-o allow_other'"), "{similar}");
    }
}
