//! The sections of a page behind its options: EXAMPLES, NOTES, EXIT STATUS, ENVIRONMENT, FILES, SEE ALSO.
//!
//! Examples and notes are those of the command's long help. A block of it is an example if its lines below the first are
//! indented; these lines stand as they are. Variables and files stand in lists here, each with the commands that it is of.

use std::fmt::Write as _;

use clap::Command;

/// A variable or a file: its name, the commands it is of, its meaning.
type Named = (&'static str, &'static [&'static str], &'static str);

/// Of every command.
const ALL: &[&str] = &[];
const OF_MOUNTS: &[&str] = &["mount", "top", "ctl", "doctor"];
const OF_STORES: &[&str] = &["mount", "read", "bench", "profile", "try"];

const VARIABLES: &[Named] = &[
    (
        "FORERUN_LOG",
        ALL,
        "Lines of the log: error, warn (the default), info, debug, trace or off, or parts with levels, as in warn,forerun_io=debug.",
    ),
    ("NO_COLOR", ALL, "Set, and not empty: no colours."),
    (
        "FORERUN_RUNTIME_DIR",
        OF_MOUNTS,
        "The directory of control sockets, of this user alone (mode 0700).",
    ),
    (
        "XDG_RUNTIME_DIR",
        OF_MOUNTS,
        "Control sockets of users other than root are in its directory forerun.",
    ),
    (
        "FORERUN_METADATA",
        OF_STORES,
        "1: the metadata service of a cloud is asked for credentials.",
    ),
    (
        "FORERUN_ANONYMOUS",
        OF_STORES,
        "1: no request to a store is signed.",
    ),
    (
        "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL",
        OF_STORES,
        "Credentials and place of s3://; those of gs:// and az:// are in docs/STORES.md.",
    ),
    (
        "HTTPS_PROXY, HTTP_PROXY, NO_PROXY",
        OF_STORES,
        "The proxy of requests to stores.",
    ),
];

const FILES: &[Named] = &[
    ("/dev/fuse", &["mount", "doctor"], "The device of FUSE."),
    (
        "/etc/fuse.conf",
        &["mount", "doctor"],
        "user_allow_other: users other than root may give --allow-other.",
    ),
    (
        "/etc/forerun/NAME.conf",
        &["mount", "doctor"],
        "SOURCE, OPTIONS and variables of the unit forerun@NAME.service.",
    ),
    (
        "/etc/forerun/watch.conf",
        &["watch"],
        "PATHS and OPTIONS of forerun-watch.service.",
    ),
    (
        "/run/forerun",
        OF_MOUNTS,
        "Control sockets of root's mounts; of others $XDG_RUNTIME_DIR/forerun or /tmp/forerun-UID.",
    ),
    (
        "/run/forerun",
        &["watch", "tune", "try"],
        "The record of settings of the kernel, by which they are put back.",
    ),
    (
        "/dev/log",
        &["mount", "watch"],
        "Takes the log of a process in the background.",
    ),
    (
        "~/.aws/credentials, ~/.aws/config",
        OF_STORES,
        "Credentials of s3://.",
    ),
];

/// Pages of others.
const SEE_ALSO: &[Named] = &[
    ("fusermount3(1)", &["mount", "umount", "doctor"], ""),
    ("mount(8)", &["mount", "umount"], ""),
    ("systemctl(1)", &["mount", "watch"], ""),
];

/// Pages of forerun that belong together.
const RELATED: &[&[&str]] = &[
    &["try", "tune", "mount", "watch"],
    &["mount", "umount", "top", "ctl", "doctor", "explain"],
    &["read", "profile", "layout", "bench"],
    &["bench", "replay", "simulate", "trace", "list"],
    &["simulate", "sweep", "rerun", "report", "advise", "list"],
    &["version", "doctor"],
    &["completions", "man"],
];

/// See the [module](self). `first` is its name, of a subcommand that of its command, and empty of the overview.
pub(super) fn sections(command: &Command, first: &str) -> String {
    let help = command
        .get_after_long_help()
        .or_else(|| command.get_after_help());
    let mut text = of_help(&help.map(ToString::to_string).unwrap_or_default());
    text += ".SH \"EXIT STATUS\"\n";
    for (code, meaning) in [
        ("0", "Done; also where the reader of the output closed it."),
        (
            "1",
            "It was tried and failed: an error of a device, a check of doctor, a journal that replays differently.",
        ),
        (
            "2",
            "It cannot be tried: a bad argument, a file that is not there. The message names the value and the accepted ones.",
        ),
    ] {
        let _ = write!(text, ".TP\n{code}\n{}\n", escaped(meaning));
    }
    text += &list("ENVIRONMENT", VARIABLES, first);
    text += &list("FILES", FILES, first);
    text + &see_also(first)
}

fn is_of(named: &Named, command: &str) -> bool {
    named.1.is_empty() || named.1.contains(&command)
}

fn list(title: &str, all: &[Named], command: &str) -> String {
    let mut text = String::new();
    for (name, _, meaning) in all.iter().filter(|named| is_of(named, command)) {
        let _ = write!(text, ".TP\n{}\n{}\n", escaped(name), escaped(meaning));
    }
    match text.is_empty() {
        true => text,
        false => format!(".SH {title}\n{text}"),
    }
}

fn see_also(command: &str) -> String {
    let related = RELATED.iter().filter(|group| group.contains(&command));
    let mut pages = vec!["forerun(1)".to_owned()];
    for page in related
        .flat_map(|group| group.iter())
        .filter(|page| **page != command)
    {
        let page = format!("forerun-{page}(1)");
        if !pages.contains(&page) {
            pages.push(page);
        }
    }
    if command.is_empty() {
        pages = ["mount", "top", "doctor", "try"]
            .map(|page| format!("forerun-{page}(1)"))
            .to_vec();
    }
    let others = SEE_ALSO.iter().filter(|named| is_of(named, command));
    pages.extend(others.map(|(page, ..)| (*page).to_owned()));
    format!(".SH \"SEE ALSO\"\n{}\n", escaped(&pages.join(", ")))
}

/// Examples, then notes.
fn of_help(help: &str) -> String {
    let (mut examples, mut notes) = (String::new(), String::new());
    for block in help.split("\n\n").filter(|block| !block.trim().is_empty()) {
        let (title, lines) = block.split_once('\n').unwrap_or((block, ""));
        if lines.starts_with("  ") {
            if title != "Examples:" {
                let _ = writeln!(examples, ".PP\n{}", escaped(title));
            }
            let _ = writeln!(examples, ".nf\n{}\n.fi", escaped(lines));
        } else {
            let _ = writeln!(notes, ".PP\n{}", escaped(block));
        }
    }
    let section = |title: &str, text: String| match text.is_empty() {
        true => text,
        false => format!(".SH {title}\n{text}"),
    };
    section("EXAMPLES", examples) + &section("NOTES", notes)
}

/// Text of a page: no character of it is a request of roff's.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let lines = text
        .lines()
        .map(|line| match line.starts_with(['.', '\'']) {
            true => format!("\\&{line}"),
            false => line.to_owned(),
        });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_text_is_no_request() {
        assert_eq!(escaped(".a\n'b\n--c \\ .d"), "\\&.a\n\\&'b\n\\-\\-c \\e .d");
    }

    #[test]
    fn indented_blocks_are_examples_and_others_notes() {
        let text = of_help("A note\nof two lines.\n\nExamples:\n  a\n  .b\n\nIn /etc/fstab:\n  c");
        assert_eq!(
            text,
            ".SH EXAMPLES\n.nf\n  a\n  .b\n.fi\n.PP\nIn /etc/fstab:\n.nf\n  c\n.fi\n.SH NOTES\n.PP\nA note\nof two lines.\n"
        );
    }

    #[test]
    fn pages_that_are_named_are_commands() {
        use clap::CommandFactory;
        let mut whole = crate::args::Args::command();
        whole.build();
        let lists = VARIABLES.iter().chain(FILES).chain(SEE_ALSO);
        let named = lists.flat_map(|(_, commands, _)| commands.iter());
        for name in named.chain(RELATED.iter().flat_map(|group| group.iter())) {
            assert!(whole.find_subcommand(name).is_some(), "{name}");
        }
        // Each page but that of `help` is named by another one.
        for command in whole
            .get_subcommands()
            .filter(|command| command.get_name() != "help")
        {
            let name = command.get_name();
            assert!(RELATED.iter().any(|group| group.contains(&name)), "{name}");
        }
    }
}
