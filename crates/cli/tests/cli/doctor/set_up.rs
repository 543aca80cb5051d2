//! A made-up machine: a folder in place of the root, and a daemon and a probe that answer as a test says.

use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

use forerun::doctor::{Check, Machine, Space, examine, mounts};
use forerun::environment::Environment;
use forerun::mount::control::Answer;
use forerun::mount::point::is_ours;
use forerun::mount::report::{Limits, PassthroughReport, Report};
use forerun::mount::sockets::Sockets;
use snapbox::cmd::cargo_bin;
use tempfile::TempDir;

/// A machine, and the answers of its daemon.
pub(super) struct SetUp {
    pub(super) folder: TempDir,
    pub(super) machine: Machine,
    pub(super) report: Arc<Mutex<Report>>,
    pub(super) limits: Arc<Mutex<Limits>>,
}

/// Files of a machine on which all is well.
pub(super) const FILES: &[(&str, &str)] = &[
    (
        "proc/self/status",
        "Name:\tforerun\nUid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n",
    ),
    (
        "proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units\n\
         Max open files            1048576              1048576              files\n\
         Max address space         unlimited            unlimited            bytes\n",
    ),
    ("proc/self/cgroup", "0::/system.slice/a.service\n"),
    ("sys/fs/cgroup/system.slice/a.service/memory.max", "max\n"),
    ("sys/fs/cgroup/system.slice/memory.max", "8589934592\n"),
    ("proc/self/exe", "a program"),
    ("usr/bin/forerun", "a program"),
    ("sbin/mount.forerun", "a program"),
    ("usr/bin/fusermount3", "another"),
    (
        "proc/meminfo",
        "MemTotal:       16384000 kB\nMemAvailable:    8192000 kB\n",
    ),
    ("proc/version", "Linux version 6.18.5\n"),
    ("proc/sys/kernel/osrelease", "6.18.5-test\n"),
    ("proc/sys/kernel/yama/ptrace_scope", "1\n"),
    (
        "sys/kernel/security/lockdown",
        "[none] integrity confidentiality\n",
    ),
    (
        "sys/kernel/tracing/events/readahead/page_cache_sync_ra/format",
        "ID: 1\n",
    ),
    ("dev/log", ""),
    ("etc/fuse.conf", "# a line\nuser_allow_other\n"),
    (
        "etc/fstab",
        "/dev/sda1 / ext4 defaults 0 1\n/data /fast forerun memory=1GiB 0 0\n",
    ),
    (
        "etc/forerun/fast.conf",
        "SOURCE=/data\nAWS_SECRET_ACCESS_KEY=hunter2\n",
    ),
    (
        "etc/systemd/system/multi-user.target.wants/forerun@fast.service",
        "",
    ),
    ("run/systemd/system/a", ""),
    ("usr/bin/failed", ""),
];

impl SetUp {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["source", "point", "root/dev"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        fs::DirBuilder::new()
            .mode(0o700)
            .create(path("run"))
            .unwrap();
        // Its number is the machine's, below.
        symlink("/dev/null", path("root/dev/fuse")).unwrap();
        let (source, point) = (path("source"), path("point"));
        let line = format!(
            "29 1 0:26 / {} ro - fuse.forerun {} ro\n",
            point.display(),
            source.display()
        );
        let report = Report {
            source: source.display().to_string(),
            mountpoint: point.display().to_string(),
            elapsed_ns: 5_000_000_000,
            block_bytes: 4096,
            counters: serde_json::Map::new(),
            known_files: 1,
            passthrough: PassthroughReport::default(),
            open_files: Vec::new(),
            device: None,
            journal_error: None,
            record: None,
            queues: Vec::new(),
            watch: None,
        };
        let limits = Limits {
            version: env!("CARGO_PKG_VERSION").into(),
            preset: "mount".into(),
            memory_bytes: 1 << 30,
            memory_limit_bytes: 1 << 30,
            engine_limit_bytes: 1 << 29,
            kernel_readahead_bytes: None,
        };
        let environment = Environment {
            forerun_runtime_dir: Some(path("run").into()),
            ..Environment::default()
        };
        let sockets = Sockets::of(&environment, is_ours);
        let machine = Machine {
            root: path("root"),
            fuse: (1, 3),
            now: SystemTime::now() + Duration::from_secs(1),
            space: |_| {
                Ok(Space {
                    bytes: 1 << 30,
                    inodes: Some(1000),
                })
            },
            program: cargo_bin!("forerun").into(),
            search_path: Some("/usr/bin:/opt/bin".into()),
            sockets,
            journal: None,
        };
        let set_up = Self {
            folder,
            machine,
            report: Arc::new(Mutex::new(report)),
            limits: Arc::new(Mutex::new(limits)),
        };
        for (name, text) in FILES {
            set_up.write(name, text);
        }
        set_up.write("proc/self/mountinfo", &line);
        set_up.mode("usr/bin/fusermount3", 0o4755);
        let said = set_up.path("usr/bin/failed");
        set_up.script("usr/bin/systemctl", &format!("cat '{}'", said.display()));
        set_up.serve();
        set_up
    }

    /// The same for a user who is not root.
    pub(super) fn of_user() -> Self {
        let set_up = Self::new();
        set_up.write(
            "proc/self/status",
            "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n",
        );
        set_up
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.machine.root.join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(super) fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }

    pub(super) fn mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), Permissions::from_mode(mode)).unwrap();
    }

    /// Written by another process: a file that this one has open for writing when a test beside forks cannot be run.
    fn script(&self, name: &str, text: &str) {
        let path = self.path(name);
        let mut writer = Command::new("sh")
            .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
            .arg(&path)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = writer.stdin.take().unwrap();
        write!(input, "#!/bin/sh\n{text}\n").unwrap();
        drop(input);
        assert!(writer.wait().unwrap().success());
    }

    pub(super) fn source(&self) -> PathBuf {
        self.folder.path().join("source")
    }

    pub(super) fn point(&self) -> PathBuf {
        self.folder.path().join("point")
    }

    /// A probe that does this for that path, and finds all others well.
    pub(super) fn probe(&mut self, path: &Path, answer: &str) {
        let path = path.display();
        let text = format!("echo begun\ncase \"$3\" in '{path}') {answer};; esac\necho \"0 1 $3\"");
        self.script("probe", &text);
        self.machine.program = self.path("probe");
    }

    /// A probe of that path does not answer until the end of the test.
    pub(super) fn hangs(&mut self, path: &Path) -> Held {
        let fifo = self.folder.path().join("fifo");
        let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success());
        self.probe(path, &format!("exec cat '{}'", fifo.display()));
        Held(fifo)
    }

    /// A daemon that answers questions with the report and the limits.
    fn serve(&self) {
        let listener = UnixListener::bind(self.folder.path().join("run/1.sock")).unwrap();
        let (report, limits) = (self.report.clone(), self.limits.clone());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let mut line = String::new();
                let _ = BufReader::new(&client).read_line(&mut line);
                let answer = match line.contains("stats") {
                    true => Answer::Stats(Box::new(report.lock().unwrap().clone())),
                    false => Answer::Limits(limits.lock().unwrap().clone()),
                };
                let text = serde_json::to_string(&answer).unwrap() + "\n";
                let _ = (&client).write_all(text.as_bytes());
            }
        });
    }

    /// The lines of a look that sees this, or of the last one. Probes, daemons and services have a second to answer,
    /// which a machine that stands still takes from them: it has a line of its own, and is looked at again.
    pub(super) fn looked_at(&self, is_seen: impl Fn(&[Check]) -> bool) -> Vec<Check> {
        let mut checks = self.checks();
        for _ in 1..10 {
            if is_seen(&checks) {
                break;
            }
            checks = self.checks();
        }
        checks
    }

    pub(super) fn checks(&self) -> Vec<Check> {
        let found = mounts::find(&self.machine, None).unwrap();
        examine(&self.machine, &found)
    }
}

/// A process that waits for a writer of this pipe, and ends when there was one, if it was not killed before.
pub(super) struct Held(PathBuf);

impl Drop for Held {
    fn drop(&mut self) {
        // For reading as well, or the call would wait for a process that was killed.
        let _ = File::options().read(true).write(true).open(&self.0);
    }
}
