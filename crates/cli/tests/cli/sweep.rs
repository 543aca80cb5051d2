//! `forerun sweep` and `forerun rerun`: plans, rows that are gone on with, parts, comparisons, and bad plans.

use std::fs;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Command;

use rustix::fs::{FlockOperation, flock};
use serde_json::Value;
use snapbox::cmd::cargo_bin;
use tempfile::TempDir;

use super::simulate::rows;
use super::{forerun, output_of};

/// Two presets, two caches and two seeds on a small disk: eight runs.
const PLAN: &str = r#"workload = "intermixed(file_bytes=4000000)"
preset = ["none", "linux-2.6.24"]
cache-blocks = [256, 1024]
seed = [1, 2]
device = "switching(cost_ns=8000000)"
disks = 1
"#;

struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        let desk = Self(tempfile::tempdir().unwrap());
        desk.put("plan.toml", PLAN);
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Runs the plan; its output.
    fn sweep(&self, rows: &str, more: &str) -> String {
        let (plan, rows) = (self.path("plan.toml"), self.path(rows));
        output_of(&format!(
            "sweep {} -o {} {more}",
            plan.display(),
            rows.display()
        ))
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn rows(&self, name: &str) -> Vec<Value> {
        let text = self.text(name);
        let rows = text.lines();
        rows.map(|row| serde_json::from_str(row).unwrap()).collect()
    }

    /// The keys of rows, sorted.
    fn keys(&self, name: &str) -> Vec<String> {
        let rows = self.rows(name);
        let keys = rows.iter().map(|row| row["key"].as_str().unwrap().into());
        let mut keys: Vec<String> = keys.collect();
        keys.sort();
        keys
    }
}

#[test]
fn a_row_is_that_of_the_command_in_its_settings_and_says_where_it_comes_from() {
    let desk = Desk::new();
    desk.sweep("rows", "--threads 2");
    let all = desk.rows("rows");
    assert_eq!(all.len(), 8);
    for row in &all {
        let of = |name: &str| row["settings"][name].as_str().unwrap();
        let alone = rows(&format!(
            "--workload intermixed(file_bytes=4000000,seed={}) --preset {} --cache-blocks {} --disks 1 \
             --device switching(cost_ns=8000000)",
            of("seed"),
            of("preset"),
            of("cache-blocks")
        ));
        assert_eq!(alone.len(), 1);
        for (name, value) in alone[0].as_object().unwrap() {
            assert_eq!(&row[name], value, "{name} of {row}");
        }
        assert_eq!(row["seed"], of("seed").parse::<u64>().unwrap());
        assert_eq!(row["version"], env!("CARGO_PKG_VERSION"));
        for digest in ["plan_sha256", "program_sha256"] {
            assert_eq!(row[digest].as_str().map(str::len), Some(64), "{digest}");
        }
    }
}

#[test]
fn a_sweep_that_was_killed_goes_on_where_it_was_and_parts_make_the_whole() {
    let desk = Desk::new();
    assert!(desk.sweep("whole", "").starts_with("8 runs: 0 were in"));
    let whole = desk.text("whole");
    // Killed in the middle of the fourth row.
    let lines: Vec<&str> = whole.lines().collect();
    let killed = format!("{}\n{}", lines[..3].join("\n"), &lines[3][..40]);
    desk.put("killed", &killed);
    let path = desk.path("killed").display().to_string();
    for command in [
        format!("rerun {path}"),
        format!("sweep diff {path} {path}"),
        format!("sweep merge {path}"),
        format!("report {path} -o -"),
    ] {
        let end = forerun(&command).code(0);
        let said = String::from_utf8_lossy(&end.get_output().stderr).into_owned();
        assert!(
            said.contains("line 4 is cut: it is left out"),
            "{command}: {said}"
        );
        assert_eq!(desk.text("killed"), killed, "{command}");
    }
    let said = desk.sweep("killed", "--threads 1");
    assert!(
        said.contains("3 were in") && said.contains("5 are added"),
        "{said}"
    );
    assert_eq!(desk.keys("killed"), desk.keys("whole"));
    assert!(
        desk.text("killed")
            .starts_with(lines[..3].join("\n").as_str())
    );
    let before = desk.text("whole");
    assert!(desk.sweep("whole", "").contains("0 are added"));
    assert_eq!(desk.text("whole"), before);
    // Three parts, one of them twice.
    let mut files = Vec::new();
    for part in [1, 2, 3, 2] {
        let name = format!("part{part}");
        desk.sweep(&name, &format!("--shard {part}/3"));
        files.push(desk.path(&name).display().to_string());
    }
    let merged = desk.path("merged");
    output_of(&format!(
        "sweep merge {} -o {}",
        files.join(" "),
        merged.display()
    ));
    assert_eq!(desk.keys("merged"), desk.keys("whole"));
    let [whole, merged] = ["whole", "merged"].map(|name| desk.path(name).display().to_string());
    // Rows that an output has stay, and are not added twice.
    output_of(&format!("sweep merge {} -o {whole}", files[0]));
    assert_eq!(desk.text("whole"), before);
    let said = output_of(&format!("sweep diff {whole} {merged}"));
    assert!(
        said.starts_with("0 of 8 runs differ, 0 are only in"),
        "{said}"
    );
}

#[test]
fn rows_that_another_program_would_make_are_seen_by_diff_and_rerun() {
    let desk = Desk::new();
    desk.sweep("rows", "");
    let path = desk.path("rows").display().to_string();
    assert_eq!(
        output_of(&format!("rerun {path}"))
            .matches(": the same\n")
            .count(),
        8
    );
    let key = desk.keys("rows")[0].clone();
    assert_eq!(output_of(&format!("rerun {path} {key}")).lines().count(), 1);
    let mut changed = desk.rows("rows");
    let misses = changed[0]["misses"].as_u64().unwrap();
    changed[0]["misses"] = (misses + 1).into();
    let lines = changed[..7].iter().map(|row| format!("{row}\n"));
    desk.put("other", &lines.collect::<String>());
    let other = desk.path("other").display().to_string();
    let text = |arguments: &str| {
        let end = forerun(arguments).code(1);
        String::from_utf8(end.get_output().stdout.clone()).unwrap()
    };
    let said = text(&format!("sweep diff {path} {other}"));
    assert!(
        said.contains(&format!("misses {misses} -> {}", misses + 1)),
        "{said}"
    );
    assert!(said.contains("1 of 7 runs differ, 1 are only in"), "{said}");
    let said = text(&format!("rerun {other}"));
    assert_eq!(said.matches(": the same\n").count(), 6, "{said}");
    assert!(
        said.contains(&format!("misses {} -> {misses}", misses + 1)),
        "{said}"
    );
}

#[test]
fn a_row_that_a_later_one_replaced_is_not_made_once_more_and_no_rows_are_refused() {
    let desk = Desk::new();
    desk.sweep("rows", "--shard 1/4");
    let rows = desk.rows("rows");
    let mut failed = rows[0].clone();
    failed
        .as_object_mut()
        .unwrap()
        .insert("error".to_owned(), "no room".into());
    let (result, other) = (&rows[0], &rows[1]);
    desk.put("all", &format!("{failed}\n{other}\n{result}\n{failed}\n"));
    let path = |name: &str| desk.path(name).display().to_string();
    let said = output_of(&format!("rerun {}", path("all")));
    assert_eq!(said.matches(": the same\n").count(), 2, "{said}");
    let said = output_of(&format!("sweep diff {} {}", path("all"), path("rows")));
    assert!(
        said.starts_with("0 of 2 runs differ, 0 are only in"),
        "{said}"
    );
    desk.put("empty", "");
    let end = forerun(&format!("rerun {}", path("empty"))).code(2);
    let said = String::from_utf8_lossy(&end.get_output().stderr).into_owned();
    assert!(said.contains("empty: no rows"), "{said}");
}

#[test]
fn a_run_that_fails_has_a_row_with_its_message_and_is_tried_again() {
    let desk = Desk::new();
    let trace = desk.path("trace");
    fs::write(&trace, "0\n1\n2\n").unwrap();
    let plan = format!(
        "trace = \"{}\"\npreset = [\"demand-lru\", \"forestall\"]\nplace = [\"address\", \"dense\"]\n\
         device = \"hp97560\"\nloop = \"open\"\n",
        trace.display()
    );
    desk.put("plan.toml", &plan);
    let run = format!(
        "sweep {} -o {}",
        desk.path("plan.toml").display(),
        desk.path("rows").display()
    );
    for count in [4, 8] {
        let end = forerun(&run).code(1);
        let said = String::from_utf8_lossy(&end.get_output().stderr).into_owned();
        assert!(said.contains("4 of 4 runs failed: "), "{said}");
        let rows = desk.rows("rows");
        assert_eq!(rows.len(), count);
        assert!(rows.iter().all(|row| row["error"].is_string()));
    }
}

#[test]
fn a_row_that_has_no_room_is_cut_off_and_the_sweep_ends() {
    let desk = Desk::new();
    desk.sweep("whole", "");
    // Room for three rows and a part of the fourth, in units of 512 bytes.
    let longest = desk.text("whole").lines().map(str::len).max().unwrap();
    let room = (longest * 3).div_ceil(512) + 1;
    let end = Command::new("sh")
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f \"$0\"; exec \"$@\"",
            &room.to_string(),
        ])
        .arg(cargo_bin!("forerun"))
        .arg("sweep")
        .arg(desk.path("plan.toml"))
        .arg("-o")
        .arg(desk.path("rows"))
        .args(["--threads", "2"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&end.stderr).into_owned();
    assert!(!end.status.success() && said.contains("rows: "), "{said}");
    let text = desk.text("rows");
    assert!(text.ends_with('\n'), "{text}");
    let rows = desk.rows("rows").len();
    assert!((3..8).contains(&rows), "{rows}");
    assert!(desk.sweep("rows", "").contains(&format!("{rows} were in")));
    assert_eq!(desk.keys("rows"), desk.keys("whole"));
}

#[test]
fn a_plan_that_cannot_be_run_is_refused_with_its_line_before_anything_is_written() {
    let desk = Desk::new();
    let trace = desk.path("trace");
    fs::write(&trace, "0\n1\n").unwrap();
    let of_trace = |name: &str, more: &str| {
        let trace = desk.path(name);
        format!("preset = \"none\"\ntrace = \"{}\"\n{more}", trace.display())
    };
    let wrong = of_trace("trac", "");
    desk.put("timed.csv", "time_s,device,block\n1,0,1\n2,1,2\n");
    desk.put("letters", "\u{1}\n");
    let part = |more: &str| of_trace("timed.csv", more);
    let parts = [
        "from = [\"0s\", \"2s\"]\nuntil = \"1s\"\n",
        "until = \"1s\"\nonly-devices = [0, 99]\n",
        "from = \"60s\"\n",
        "only-devices = \"film-11\"\n",
        "only-processes = 7\n",
        "from = \"-1s\"\n",
    ]
    .map(part);
    let letters = of_trace("letters", "");
    for (plan, parts) in [
        ("preset = [\"none\"\n", &["line "][..]),
        (
            "# a\nworkload = \"synth\"\nprest = \"none\"\n",
            &["line 3: prest", "preset"],
        ),
        ("workload = \"synth\"\nthreads = 3\n", &["line 2: threads"]),
        (
            "workload = \"synth\"\npreset = []\n",
            &["line 2: preset: a list without"],
        ),
        (
            "workload = \"synth\"\n[preset]\na = 1\n",
            &["line 2: preset: a table"],
        ),
        (
            "workload = \"synth\"\npreset = [[\"none\"]]\n",
            &["line 2", "a list in a list"],
        ),
        (
            "workload = \"synth\"\npreset = [\"none\", \"nona\"]\n",
            &["line 2", "nona"],
        ),
        (
            "workload = \"synth\"\npreset = \"none,forestall\"\n",
            &["line 2", "2 values in one"],
        ),
        (
            "preset = \"none\"\nworkload = \"synth\"\ncache-blocks = [8, 0]\n",
            &["line 3", "'0'"],
        ),
        (
            "workload = \"synth\"\ncache-blocks = 1979-05-27\n",
            &["line 2", "a date"],
        ),
        (
            "seed = 1\npreset = \"none\"\n",
            &["line 1: seed", "workload"],
        ),
        ("preset = \"none\"\n", &["--trace", "--workload"]),
        ("workload = \"synth\"\ndisks = 1\n", &["no preset"]),
        (
            "preset = \"none\"\ntrace = \"/nonexistent\"\n",
            &["line 2: /nonexistent: no such file"],
        ),
        (
            wrong.as_str(),
            &["line 2: ", "no such file; the nearest in ", " are trace"],
        ),
        (
            "workload = \"synth\"\npreset = \"none\"\ndevice = [\"hdd\", \"hdf\"]\n",
            &["line 3: --device hdf: ", "the nearest are hdd, "],
        ),
        (
            "preset = \"none\"\nworkload = [\"synth\", \"sequentia\"]\n",
            &[
                "line 2: --workload sequentia: ",
                "the nearest are sequential, ",
            ],
        ),
        (
            "preset = \"none\"\nworkload = \"sequential\"\nseed = 3\n",
            &["line 2: --workload sequential(seed=3): "],
        ),
        (
            "preset = [\"none\", \"forrun\"]\nworkload = \"synth\"\n",
            &["line 1: ", "forrun", "nearest are forerun, "],
        ),
        (
            "preset = \"none\"\ntrace = \"/dev/null\"\n",
            &["/dev/null", "no regular file"],
        ),
        (
            parts[0].as_str(),
            &["line 4: --until 1s: must be later than --from, 2s"],
        ),
        (parts[1].as_str(), &["line 4: ", "--only-devices 99"]),
        (parts[2].as_str(), &["line 3: ", "--from 60000000000ns: "]),
        (
            parts[3].as_str(),
            &["line 3: ", "'film-11'", "from 0 to 4294967295"],
        ),
        (
            parts[4].as_str(),
            &["line 3: ", "--only-processes goes by it"],
        ),
        (parts[5].as_str(), &["line 3: ", "\"-1s\" is less than 0"]),
        (letters.as_str(), &["line 2: ", "letters"]),
    ] {
        desk.put("plan.toml", plan);
        let rows = desk.path("rows");
        let end = forerun(&format!(
            "sweep {} -o {}",
            desk.path("plan.toml").display(),
            rows.display()
        ));
        let output = end.code(2).get_output().clone();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        for part in parts {
            assert!(said.contains(part), "{plan}{said}has no {part}");
        }
        assert!(!rows.exists(), "{plan}");
    }
}

#[test]
fn files_that_are_no_rows_or_are_written_by_another_sweep_are_left_as_they_are() {
    let desk = Desk::new();
    let run = |rows: &str| {
        let (plan, rows) = (desk.path("plan.toml"), desk.path(rows));
        let end = forerun(&format!("sweep {} -o {}", plan.display(), rows.display()));
        let output = end.code(2).get_output().clone();
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    desk.put("notes", "important\n");
    let said = run("notes");
    assert!(said.contains("line 1: no row of a sweep"), "{said}");
    assert_eq!(desk.text("notes"), "important\n");
    desk.put("note", "important");
    let said = run("note");
    assert!(said.contains("line 1: no row of a sweep"), "{said}");
    assert_eq!(desk.text("note"), "important");
    desk.put("locked", "");
    let locked = fs::File::open(desk.path("locked")).unwrap();
    flock(locked.as_fd(), FlockOperation::LockExclusive).unwrap();
    let said = run("locked");
    assert!(said.contains("another sweep writes to it"), "{said}");
    for words in ["--shard 0/3", "--shard 4/3", "--shard 3", "--threads 0"] {
        let plan = desk.path("plan.toml");
        forerun(&format!("sweep {} -o /tmp/never {words}", plan.display())).code(2);
    }
    desk.sweep("rows", "");
    for output in ["notes", "locked"] {
        let (rows, output) = (desk.path("rows"), desk.path(output));
        forerun(&format!(
            "sweep merge {} -o {}",
            rows.display(),
            output.display()
        ))
        .code(2);
    }
    assert_eq!(desk.text("notes") + &desk.text("locked"), "important\n");
    let rows = desk.path("notes").display().to_string();
    forerun(&format!("rerun {rows}")).code(2);
    forerun(&format!("sweep diff {rows} /nonexistent")).code(2);
}

#[test]
fn a_file_without_rows_is_not_compared() {
    let desk = Desk::new();
    desk.sweep("rows", "");
    for (name, text) in [("empty", ""), ("line-ends", "\n\n"), ("cut", "{\"key\": ")] {
        desk.put(name, text);
        let [rows, none] = ["rows", name].map(|name| desk.path(name).display().to_string());
        for run in [
            format!("sweep diff {none} {none}"),
            format!("sweep diff {rows} {none}"),
            format!("sweep diff {none} {rows}"),
            format!("rerun {none}"),
        ] {
            let refused = forerun(&run).code(2).stdout_eq("");
            let said = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
            assert!(said.contains(&format!("{none}: no rows")), "{run}: {said}");
        }
    }
}
