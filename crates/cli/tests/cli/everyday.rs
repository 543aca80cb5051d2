//! A newcomer's commands: examples, manual pages, completions, and answers instead of riddles.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::process::Command;

use snapbox::cmd::cargo_bin;

use super::{Folder, bytes, forerun, output_of};

/// Every command with its subcommands, as the overview lists them.
const COMMANDS: &[&str] = &[
    "try",
    "tune",
    "mount",
    "umount",
    "top",
    "ctl",
    "ctl stats",
    "ctl limits",
    "ctl hint",
    "ctl set",
    "doctor",
    "explain",
    "read",
    "profile",
    "bench",
    "simulate",
    "trace",
    "trace info",
    "trace convert",
    "replay",
    "list",
    "completions",
    "man",
];

#[test]
fn every_long_help_has_an_example_that_begins_with_the_command() {
    for command in COMMANDS {
        // Its commands stand behind a mount point.
        let words = command.replace("ctl ", "ctl MOUNT ");
        let help = output_of(&format!("{words} --help"));
        let (_, examples) = help
            .split_once("Examples:\n")
            .unwrap_or_else(|| panic!("{command} has no examples:\n{help}"));
        assert!(
            examples.contains(&format!("forerun {}", command.split(' ').next().unwrap())),
            "{command}:\n{examples}"
        );
    }
    let overview = output_of("--help");
    for command in COMMANDS {
        let name = command.split(' ').next().unwrap();
        let is_listed = |line: &str| line.split_whitespace().next() == Some(name);
        assert!(overview.lines().any(is_listed), "{name}:\n{overview}");
    }
}

#[test]
fn a_mounts_help_has_its_arguments_as_they_are_typed_and_research_last() {
    let help = output_of("mount -h");
    let at = |text: &str| {
        help.find(text)
            .unwrap_or_else(|| panic!("{text} is missing:\n{help}"))
    };
    let order = [
        "<SOURCE> <MOUNTPOINT>",
        "  <SOURCE> ",
        "  <MOUNTPOINT> ",
        "--allow-other",
        "--memory",
        "--metrics",
        "--kernel-readahead",
        "Research:",
        "--preset",
        "--detect",
        "--journal",
    ];
    let places: Vec<_> = order.iter().map(|text| at(text)).collect();
    assert!(places.is_sorted(), "{order:?}: {places:?}\n{help}");
    assert!(!help.contains("--report-ready"), "{help}");
    let long = output_of("mount --help");
    // Two screens and a half; the flags of every day are on the first.
    assert!(long.lines().count() < 146, "{long}");
}

#[test]
fn each_command_has_a_manual_page_and_each_page_its_name() {
    let folder = Folder::new();
    output_of(&format!("man --output {}", folder.name("pages")));
    for command in COMMANDS {
        let name = format!("forerun-{}", command.replace(' ', "-"));
        let page = fs::read_to_string(folder.path(&format!("pages/{name}.1"))).unwrap();
        assert!(page.contains(&format!(".TH {name} 1")), "{name}:\n{page}");
        assert!(
            page.contains(".SH EXAMPLES"),
            "{name} has no examples:\n{page}"
        );
    }
    let helper = fs::read_to_string(folder.path("pages/mount.forerun.8")).unwrap();
    assert_eq!(helper, ".so man1/forerun-mount.1\n");
    assert_eq!(
        output_of("man mount"),
        fs::read_to_string(folder.path("pages/forerun-mount.1")).unwrap()
    );
    assert!(output_of("man").contains(".TH forerun 1"));
    forerun("man nothing").code(2).stdout_eq("");
}

#[test]
fn completions_are_what_the_shells_accept() {
    let folder = Folder::new();
    for (shell, word) in [
        ("bash", "complete"),
        ("zsh", "#compdef forerun"),
        ("fish", "complete -c forerun"),
    ] {
        let text = output_of(&format!("completions {shell}"));
        assert!(
            text.contains(word) && text.contains("umount"),
            "{shell}:\n{text}"
        );
        let script = folder.file(shell, text.as_bytes());
        match Command::new(shell).args(["-n", &script]).output() {
            Ok(output) => assert!(output.status.success(), "{shell}: {output:?}"),
            Err(_) => crate::skipped::skipped(format!("completions: needs {shell}")),
        }
    }
    forerun("completions tcsh").code(2).stdout_eq("");
}

#[test]
fn impossible_sizes_and_paths_are_answered_in_the_users_words() {
    let folder = Folder::new();
    fs::create_dir(folder.path("a")).unwrap();
    let a = folder.name("a");
    for (arguments, words) in [
        (
            format!("mount --memory 1TB {a} {a}"),
            "--memory 1TB: must be at most 64GiB",
        ),
        (format!("mount {a} {a}"), "is SOURCE and MOUNTPOINT"),
        (format!("profile {a}"), "name a large file in it"),
        (format!("umount {a}"), "no mount of forerun is here"),
        (format!("umount {a}/b"), "no such directory"),
        (format!("top {a}"), "no mount or watch listens here"),
        (format!("try {a}"), "too few to measure"),
        ("read -".to_owned(), "standard input"),
    ] {
        let refused = forerun(&arguments).code(2).stdout_eq("");
        let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(said.contains(words), "{arguments}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn where_no_mount_runs_top_says_where_it_looked() {
    let folder = Folder::new();
    let top = || {
        let output = Command::new(cargo_bin!("forerun"))
            .args(["top", "--once"])
            .env("FORERUN_RUNTIME_DIR", folder.path("none"))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let name = folder.name("none");
    let said = top();
    assert!(
        said.contains(&format!("FORERUN_RUNTIME_DIR={name}: no such directory")),
        "{said}"
    );
    fs::DirBuilder::new().mode(0o700).create(&name).unwrap();
    let said = top();
    assert!(
        said.contains("no mount or watch of this user runs") && said.contains(&name),
        "{said}"
    );
}

#[test]
fn a_trial_without_the_time_or_the_memory_is_refused_with_what_it_needs() {
    let folder = Folder::new();
    folder.file("a", &bytes(8 << 20));
    let said = |words: &str| {
        let end = forerun(&format!("try {words} {}", folder.name(""))).code(2);
        String::from_utf8_lossy(&end.get_output().stderr).into_owned()
    };
    let seconds = said("--seconds 2 --readers 2");
    assert!(
        seconds.contains("--seconds 2: must be at least 10, for 16 runs"),
        "{seconds}"
    );
    let memory = said("--memory 1MiB");
    assert_eq!(memory.matches("must be at least").count(), 1, "{memory}");
}

/// Whether a trial was refused because the system keeps the files in memory, as a temporary directory may be there.
fn stays_in_memory(trial: &std::process::Output) -> bool {
    let is_so = String::from_utf8_lossy(&trial.stderr).contains("stays in memory");
    if is_so {
        crate::skipped::skipped("the system keeps the files in memory");
        assert_eq!(trial.status.code(), Some(1));
    }
    is_so
}

#[test]
fn a_trial_reads_the_users_files_on_both_sides_and_answers() {
    let folder = Folder::new();
    fs::create_dir(folder.path("data")).unwrap();
    for name in ["data/a", "data/b", "data/c"] {
        folder.file(name, &bytes(3 << 20));
        fs::File::open(folder.path(name))
            .unwrap()
            .sync_all()
            .unwrap();
    }
    let data = folder.name("data");
    let output = Command::new(cargo_bin!("forerun"))
        .args([
            "try",
            "--seconds",
            "10",
            "--readers",
            "4",
            "--memory",
            "16MiB",
            &data,
        ])
        .env("FORERUN_RUNTIME_DIR", folder.path("run"))
        .output()
        .unwrap();
    let said = [&output.stdout[..], &output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    if stays_in_memory(&output) {
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    for words in ["3 files, 9.44 MB", "\n1 reader ", "\n4 readers ", "times ("] {
        assert!(said.contains(words), "{words}:\n{said}");
    }
    let answers = [
        "forerun helps here",
        "forerun does not help here",
        "It depends",
        // Other programs use the device.
        "No answer",
    ];
    assert!(answers.iter().any(|answer| said.contains(answer)), "{said}");
    let rows = Command::new(cargo_bin!("forerun"))
        .args([
            "try",
            "--seconds",
            "10",
            "--readers",
            "4",
            "--format",
            "json",
        ])
        .arg(&data)
        .env("FORERUN_RUNTIME_DIR", folder.path("run"))
        .output()
        .unwrap();
    if stays_in_memory(&rows) {
        return;
    }
    let why = String::from_utf8_lossy(&rows.stderr);
    assert_eq!(rows.status.code(), Some(0), "{why}");
    let rows = String::from_utf8(rows.stdout).unwrap();
    let names: Vec<(String, u64)> = rows
        .lines()
        .map(|row| serde_json::from_str::<serde_json::Value>(row).unwrap())
        .map(|row| {
            (
                row["preset"].as_str().unwrap().to_owned(),
                row["readers"].as_u64().unwrap(),
            )
        })
        .collect();
    let wanted = [("kernel", 1), ("forerun", 1), ("kernel", 4), ("forerun", 4)];
    let wanted = wanted.map(|(name, readers)| (name.to_owned(), readers));
    assert_eq!(names, wanted, "{rows}");
    let rows = folder.file("try.jsonl", rows.as_bytes());
    let page = output_of(&format!("report {rows} -o -"));
    assert!(
        page.contains("kernel") && page.contains("readers 4"),
        "{page}"
    );
    let helps = said.contains("forerun mount --memory 16MiB");
    let gains = ["forerun helps here", "It depends"];
    let gains = gains.iter().any(|answer| said.contains(answer));
    assert_eq!(helps, gains, "{said}");
    // Nothing stays behind.
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let source = fs::canonicalize(&data).unwrap();
    assert!(
        !mounts
            .lines()
            .any(|line| line.starts_with(source.to_str().unwrap()))
    );
}

/// The output of a command on a terminal, which `script` gives it.
#[track_caller]
fn on_a_terminal(words: &str, variables: &[(&str, &str)]) -> Option<Vec<u8>> {
    let line = format!("{} {words}", cargo_bin!("forerun").display());
    let output = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .envs(variables.iter().copied())
        .output();
    let missing = |_| crate::skipped::skipped("needs script(1)");
    output.map(|output| output.stdout).map_err(missing).ok()
}

#[test]
fn a_progress_bar_knows_its_end_when_it_is_drawn_and_has_no_decimals() {
    let words = "simulate --workload synth --preset forestall --device hp97560 > /dev/null";
    if let Some(drawn) = on_a_terminal(words, &[]) {
        let drawn = String::from_utf8_lossy(&drawn);
        assert!(drawn.contains("requests"), "{drawn}");
        assert!(!drawn.contains(" 0/0") && !drawn.contains('.'), "{drawn}");
    }
}

#[test]
fn log_lines_have_no_colours_where_the_user_wants_none() {
    let words = "mount --metrics 0.0.0.0:1 /nowhere /nowhere";
    if let Some(said) = on_a_terminal(words, &[("NO_COLOR", "1")]) {
        assert!(!said.contains(&0x1b), "{said:?}");
    }
}
