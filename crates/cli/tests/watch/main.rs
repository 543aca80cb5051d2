//! `forerun watch` on a real file system: ext4 on a loop device. Where there is no root, no loop device or no tracefs
//! with the events of Linux 6.18, each test is skipped.

mod bound;
#[path = "../mount/port.rs"]
mod port;
mod records;
#[path = "../../../skipped.rs"]
mod skipped;
mod small;
mod starts;
mod tried;
#[path = "../mount/wait.rs"]
#[expect(
    dead_code,
    reason = "the list of mounts is waited for by the tests of mounts"
)]
mod wait;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::net::TcpStream;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::fs::{Advice, fadvise};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use snapbox::cmd::cargo_bin;
use tempfile::TempDir;

use skipped::skipped;
use small::Over;
use wait::eventually;

/// A file system of its own.
struct Disk {
    folder: TempDir,
    device: String,
    /// Readahead of the loop device before, which stays with its number.
    before: String,
}

/// Runs a tool; its output, if it succeeded.
fn tool(words: &[&str]) -> Option<String> {
    let output = Command::new(words[0]).args(&words[1..]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

impl Disk {
    /// None, and a line for the summary, where this machine cannot.
    #[track_caller]
    fn new() -> Option<Self> {
        let made = Self::make();
        if made.is_none() {
            skipped(
                "needs root, loop devices, mkfs.ext4, and tracefs with readahead events (Linux 6.18)",
            );
        }
        made
    }

    fn make() -> Option<Self> {
        let event = "events/readahead/page_cache_async_ra/id";
        if !Path::new("/sys/kernel/tracing").join(event).exists() {
            tool(&["mount", "-t", "tracefs", "nodev", "/sys/kernel/tracing"]);
        }
        fs::read(Path::new("/sys/kernel/tracing").join(event)).ok()?;
        let folder = tempfile::tempdir().unwrap();
        let (image, point) = (folder.path().join("image"), folder.path().join("point"));
        File::create(&image).unwrap().set_len(96 << 20).unwrap();
        fs::create_dir(&point).unwrap();
        let mut private = fs::DirBuilder::new();
        private
            .mode(0o700)
            .create(folder.path().join("run"))
            .unwrap();
        let image = image.to_str().unwrap();
        tool(&["mkfs.ext4", "-q", "-F", "-O", "^has_journal", image])?;
        let device = tool(&["losetup", "--find", "--show", image])?;
        let mut disk = Self {
            folder,
            device,
            before: String::new(),
        };
        disk.before = fs::read_to_string(disk.limit()).ok()?;
        tool(&["mount", &disk.device, disk.point().to_str().unwrap()])?;
        fs::write(disk.limit(), "128").ok()?;
        let content: Vec<u8> = (0..32u32 << 20).map(|at| (at >> 8) as u8).collect();
        fs::write(disk.point().join("file"), content).unwrap();
        tool(&["sync", "-f", disk.point().join("file").to_str().unwrap()])?;
        Some(disk)
    }

    /// The user's alone, as sockets need it.
    fn runtime(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    fn point(&self) -> PathBuf {
        self.folder.path().join("point")
    }

    fn sys(&self, name: &str) -> PathBuf {
        let block = Path::new(&self.device).file_name().unwrap();
        Path::new("/sys/block").join(block).join(name)
    }

    fn limit(&self) -> PathBuf {
        fs::canonicalize(self.sys("bdi"))
            .unwrap()
            .join("read_ahead_kb")
    }

    fn kib(&self) -> u32 {
        fs::read_to_string(self.limit())
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    }

    fn watch(&self, flags: &[&str]) -> Watching {
        self.watch_at(&self.point(), flags)
    }

    /// The same of a folder.
    fn watch_at(&self, path: &Path, flags: &[&str]) -> Watching {
        let mut child = Command::new(cargo_bin!("forerun"))
            .arg("watch")
            // Whatever the disk below costs at this moment.
            .args(["--depth", "fixed(depth_bytes=4194304)"])
            .args(flags)
            .arg(path)
            .env("FORERUN_RUNTIME_DIR", self.runtime())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        lines.read_line(&mut first).unwrap();
        assert!(first.starts_with("watching "), "{first}");
        Watching { child, lines }
    }

    /// Reads the file from its beginning to its end, cold: a hundred marks within some tens of milliseconds.
    fn read(&self) {
        let mut file = File::open(self.point().join("file")).unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        let (mut buffer, mut at) = (vec![0; 128 << 10], 0);
        while let count @ 1.. = file.read(&mut buffer).unwrap() {
            assert_eq!(buffer[0], (at >> 8) as u8, "at {at}");
            at += count as u32;
        }
        assert_eq!(at, 32 << 20);
    }

    /// The same until the watch tells this: one that waits for a processor may see reads when they are over.
    fn read_until(&self, is_told: impl Fn(&Value) -> bool) {
        eventually("the watch has seen it", || {
            self.read();
            is_told(&self.stats()["watch"])
        });
    }

    /// The report of the watch that runs.
    fn stats(&self) -> Value {
        self.stats_of(&self.point())
    }

    /// The same of a watch of a folder.
    fn stats_of(&self, path: &Path) -> Value {
        let said = asked(self, &["ctl", path.to_str().unwrap(), "stats"]);
        serde_json::from_str(&said).unwrap()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A process that another test starts has all files of this one for a moment.
        tool(&["umount", "--lazy", self.point().to_str().unwrap()]);
        let _ = fs::write(self.limit(), &self.before);
        tool(&["losetup", "--detach", &self.device]);
    }
}

/// A watch that runs.
struct Watching {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Watching {
    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Ends it; its account.
    fn end(mut self) -> String {
        self.signal(Signal::TERM);
        let mut text = String::new();
        self.lines.read_to_string(&mut text).unwrap();
        assert!(wait::end(&mut self.child).unwrap().success(), "{text}");
        text
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The number behind a word of the account.
fn number(text: &str, before: &str) -> u64 {
    let rest = text
        .split_once(before)
        .unwrap_or_else(|| panic!("{before}: {text}"))
        .1;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

#[test]
fn a_reader_gets_longer_windows_and_nothing_stays_raised() {
    for seeing in ["readahead", "block"] {
        let Some(disk) = Disk::new() else { return };
        windows_are_longer(&disk, seeing);
    }
}

fn windows_are_longer(disk: &Disk, seeing: &str) {
    let before = disk.kib();
    let journal = disk.folder.path().join("journal");
    let watching = disk.watch(&["--seeing", seeing, "--journal", journal.to_str().unwrap()]);
    disk.read_until(|watch| counted(watch, "events", 3) && counted(watch, "limits_set", 0));
    let text = watching.end();
    assert!(
        number(&text, "events ") > 3 && number(&text, "limits set ") > 0,
        "{text}"
    );
    assert_eq!(number(&text, "lost "), 0, "{text}");
    assert_eq!(disk.kib(), before);
    let record = fs::read_dir(disk.runtime()).unwrap().flatten();
    let records = record.filter(|entry| entry.file_name().to_string_lossy().starts_with("watch-"));
    assert_eq!(records.count(), 0, "the record goes with the watch");
    let replayed = Command::new(cargo_bin!("forerun"))
        .arg("replay")
        .arg(&journal)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&replayed.stderr);
    assert!(replayed.status.success(), "{said}");
}

/// Whether a watch has counted more than this.
fn counted(watch: &Value, name: &str, more_than: u64) -> bool {
    watch[name].as_u64().unwrap() > more_than
}

/// Whether a watch has bytes that it could not steer.
fn is_not_steered(watch: &Value) -> bool {
    !watch["not_steered"].as_array().unwrap().is_empty()
}

/// Asks the watch by its path; what it says.
fn asked(disk: &Disk, words: &[&str]) -> String {
    let mut command = Command::new(cargo_bin!("forerun"));
    command
        .args(words)
        .env("FORERUN_RUNTIME_DIR", disk.runtime());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{words:?}: {said}");
    said
}

#[test]
fn a_watch_is_shown_asked_and_paused_by_its_path() {
    let Some(disk) = Disk::new() else { return };
    let point = disk.point();
    let point = point.to_str().unwrap();
    let watching = disk.watch(&["--exclude", "path=/nowhere"]);
    assert!(asked(&disk, &["ctl", point, "pause"]).contains("\"is_paused\": true"));
    disk.read_until(|watch| {
        counted(watch, "limits_spared", 0) && counted(watch, "missed_bytes", 1 << 20)
    });
    let paused = disk.stats();
    let (watch, counters) = (&paused["watch"], &paused["counters"]);
    assert_eq!(watch["limits_set"], 0, "{paused}");
    assert!(watch["limits_spared"].as_u64() > Some(0), "{paused}");
    assert!(watch["missed_bytes"].as_u64() > Some(1 << 20), "{paused}");
    assert_eq!(
        watch["file_systems"][0]["read_ahead_bytes"],
        128 << 10,
        "{paused}"
    );
    let count = |name: &str| counters[name].as_u64().unwrap();
    assert!(count("reads") > 0, "{paused}");
    assert_eq!(
        count("reads"),
        count("hits") + count("late_hits") + count("misses")
    );
    assert!(asked(&disk, &["top", "--once", point]).contains("state paused"));
    assert!(asked(&disk, &["ctl", point, "resume"]).contains("\"is_paused\": false"));
    // A file that is open still, so its stream is shown.
    let mut file = File::open(disk.point().join("file")).unwrap();
    fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    eventually("a limit is set", || {
        file.rewind().unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        file.read_exact(&mut vec![0; 24 << 20]).unwrap();
        counted(&disk.stats()["watch"], "limits_set", 0)
    });
    let seen = asked(&disk, &["top", "--once", point]);
    for part in [
        "state steers",
        "seeing readahead",
        "/point/file",
        "\nDEVICE",
    ] {
        assert!(seen.contains(part), "{part}: {seen}");
    }
    let listed = asked(&disk, &["top", "--list"]);
    assert!(listed.contains(point), "{listed}");
    let limits: Value = serde_json::from_str(&asked(&disk, &["ctl", point, "limits"])).unwrap();
    assert_eq!(limits["kernel_readahead_bytes"], 128 << 10, "{limits}");
    let (code, said) = failed(&disk, &["ctl", point, "set", "--memory", "1GiB"]);
    assert!(
        code == Some(2) && said.contains("stats, limits, pause and resume"),
        "{said}"
    );
    watching.signal(Signal::STOP);
    let (code, said) = failed(&disk, &["top", "--once", point]);
    let silent = format!("from process {}", watching.child.id());
    assert!(code == Some(2) && said.contains(&silent), "{said}");
    watching.signal(Signal::CONT);
}

/// A command that fails: its exit code and its words.
fn failed(disk: &Disk, words: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(cargo_bin!("forerun"));
    command
        .args(words)
        .env("FORERUN_RUNTIME_DIR", disk.runtime());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said)
}

#[test]
fn bytes_that_cannot_be_steered_are_shown_with_their_process() {
    let Some(disk) = Disk::new() else { return };
    let rule = format!("path={}", disk.folder.path().display());
    let _watching = disk.watch(&["--exclude", &rule]);
    disk.read_until(is_not_steered);
    let point = disk.point();
    let seen = asked(&disk, &["top", "--once", point.to_str().unwrap()]);
    let own = std::process::id().to_string();
    let line = seen.lines().find(|line| line.ends_with("excluded"));
    assert!(line.is_some_and(|line| line.contains(&own)), "{seen}");
    assert!(
        seen.contains("NOT STEERED") && seen.contains("steered  0.0 %"),
        "{seen}"
    );
}

#[test]
fn every_metric_of_a_watch_is_in_the_document() {
    let Some(disk) = Disk::new() else { return };
    let address = port::address();
    let _watching = disk.watch(&["--metrics", &address.port().to_string()]);
    disk.read();
    let mut page = String::new();
    eventually("the loop answers", || {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        page.clear();
        stream.read_to_string(&mut page).unwrap();
        page.ends_with("# EOF\n")
    });
    let label = format!("watch=\"{}\"", disk.point().display());
    assert!(page.contains(&label), "{page}");
    let mut served = BTreeMap::new();
    for line in page.lines() {
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|l| l.split_once(' ')) {
            let end = if kind == "counter" { "_total" } else { "" };
            served.insert(format!("{name}{end}"), kind.to_owned());
        }
    }
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/METRICS.md");
    let document = fs::read_to_string(document).unwrap();
    let rows = document.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        let (kind, _) = rest.split_once(" | ")?;
        Some((name.to_owned(), kind.to_owned()))
    });
    let documented: BTreeMap<String, String> = rows.collect();
    for (name, kind) in &served {
        assert_eq!(documented.get(name), Some(kind), "{name}");
    }
    let of_watch = documented
        .keys()
        .filter(|name| name.starts_with("forerun_watch_"));
    for name in of_watch {
        assert!(served.contains_key(name), "{name} is not served:\n{page}");
    }
}

#[test]
fn a_dry_run_an_exclusion_and_a_pause_set_nothing() {
    let Some(disk) = Disk::new() else { return };
    let other = disk.folder.path().display().to_string();
    for (flags, is_steered) in [
        (vec!["--dry-run"], true),
        (vec!["--exclude", "uid=0"], false),
        (vec!["--exclude", &format!("path={other}")], false),
        (
            vec!["--exclude", "uid=4711", "--exclude", "program=none"],
            true,
        ),
    ] {
        let watching = disk.watch(&flags);
        let is_dry = flags[0] == "--dry-run";
        disk.read_until(|watch| match is_steered {
            true if is_dry => counted(watch, "limits_spared", 0),
            true => counted(watch, "limits_set", 0),
            false => is_not_steered(watch),
        });
        let text = watching.end();
        assert_eq!(
            number(&text, "limits set ") > 0,
            is_steered && !is_dry,
            "{flags:?}: {text}"
        );
        assert_eq!(number(&text, "spared ") > 0, is_dry, "{flags:?}: {text}");
        assert_eq!(text.contains("excluded"), !is_steered, "{flags:?}: {text}");
    }
    let watching = disk.watch(&[]);
    watching.signal(Signal::USR1);
    disk.read_until(|watch| counted(watch, "limits_spared", 0));
    watching.signal(Signal::USR2);
    disk.read_until(|watch| counted(watch, "limits_set", 0));
    let text = watching.end();
    assert!(
        number(&text, "spared ") > 0 && number(&text, "limits set ") > 0,
        "{text}"
    );
}

#[test]
fn a_program_that_asked_for_its_own_readahead_keeps_it() {
    for (advice, cause) in [
        (
            Advice::Sequential,
            Some("the program set its own readahead"),
        ),
        (Advice::Random, None),
    ] {
        let Some(disk) = Disk::new() else { return };
        let watching = disk.watch(&["--seeing", "readahead"]);
        eventually("the watch has seen it", || {
            let mut file = File::open(disk.point().join("file")).unwrap();
            fadvise(&file, 0, None, Advice::DontNeed).unwrap();
            fadvise(&file, 0, None, advice).unwrap();
            file.read_exact(&mut vec![0; 16 << 20]).unwrap();
            cause.is_none() || is_not_steered(&disk.stats()["watch"])
        });
        let text = watching.end();
        assert_eq!(number(&text, "limits set "), 0, "{advice:?}: {text}");
        let has = cause.is_none_or(|cause| text.contains(cause));
        assert!(has, "{advice:?}: {text}");
    }
}

#[test]
fn a_second_watch_of_one_file_system_is_refused() {
    let Some(disk) = Disk::new() else { return };
    let _first = disk.watch(&[]);
    let second = Command::new(cargo_bin!("forerun"))
        .arg("watch")
        .arg(disk.point())
        .env("FORERUN_RUNTIME_DIR", disk.runtime())
        .output()
        .unwrap();
    refused(&second, "is changed by `forerun watch` (process ");
}

fn refused(output: &Output, why: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(why), "{said}");
}

#[test]
fn what_cannot_be_watched_is_said_by_name() {
    let watch = |path: &str| {
        let mut command = Command::new(cargo_bin!("forerun"));
        command.args(["watch", path]).output().unwrap()
    };
    refused(&watch("/dev/shm"), "tmpfs: its files are in memory");
    refused(&watch("/nowhere"), "/nowhere: no such file or directory");
    refused(&watch("/dev/null"), "/dev/null");
    let mut command = Command::new(cargo_bin!("forerun"));
    let rule = command
        .args(["watch", "--exclude", "user=1", "/"])
        .output()
        .unwrap();
    refused(&rule, "must be path=/FOLDER");
}
