//! `forerun doctor` on made-up machines: a folder in place of the root, a daemon and a probe that answer what a test
//! wants. A machine on which all is well has no line but *ok*; each that lacks one thing has exactly one other.

mod set_up;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;
use std::time::SystemTime;

use forerun::doctor::{Check, Space, Verdict, as_text, bundle, examine, mounts};
use forerun::mount::fs::passthrough::Mode;
use forerun::mount::report::RecordReport;
use snapbox::cmd::cargo_bin;

use super::output_of;
use set_up::{FILES, SetUp};

/// The line about a fault, with a remedy.
fn is_only_line(checks: &[Check], verdict: Verdict, check: &str, words: &str) -> bool {
    let others = checks.iter().filter(|check| check.verdict != Verdict::Ok);
    let [only] = others.collect::<Vec<_>>()[..] else {
        return false;
    };
    let has_remedy = only.remedy.as_ref().is_some_and(|text| !text.is_empty());
    (only.verdict, only.check) == (verdict, check) && only.found.contains(words) && has_remedy
}

#[track_caller]
fn one_line(what: &str, set_up: &SetUp, verdict: Verdict, check: &str, words: &str) {
    let checks = set_up.looked_at(|checks| is_only_line(checks, verdict, check, words));
    assert!(
        is_only_line(&checks, verdict, check, words),
        "{what}: {}",
        as_text(&checks, None)
    );
}

#[test]
fn a_machine_on_which_all_is_well_has_no_line_but_ok() {
    for set_up in [SetUp::new(), SetUp::of_user()] {
        let is_ok = |check: &Check| check.verdict == Verdict::Ok && check.remedy.is_none();
        let checks = set_up.looked_at(|checks| checks.iter().all(is_ok));
        assert!(checks.iter().all(is_ok), "{}", as_text(&checks, None));
        let mount = checks.iter().find(|check| check.check == "mount").unwrap();
        assert!(mount.found.contains("at most 1GiB"), "{mount:?}");
    }
}

#[test]
fn block_events_are_enough_for_a_watch() {
    let set_up = SetUp::new();
    let events = "sys/kernel/tracing/events";
    set_up.remove(&format!("{events}/readahead/page_cache_sync_ra/format"));
    set_up.write(&format!("{events}/block/block_bio_queue/format"), "ID: 2\n");
    set_up.write("proc/sys/kernel/osrelease", "6.1.0-40-amd64\n");
    let is_right = |checks: &[Check]| {
        let watch = checks.iter().find(|check| check.check == "watch");
        watch.is_some_and(|line| line.verdict == Verdict::Ok && line.found.contains("block events"))
    };
    let checks = set_up.looked_at(is_right);
    assert!(is_right(&checks), "{}", as_text(&checks, None));
}

/// Makes one thing wrong; the line that follows.
type Broken = (
    &'static str,
    Verdict,
    &'static str,
    &'static str,
    fn(&mut SetUp),
);

#[test]
fn what_root_lacks_is_one_line() {
    use Verdict::{Fail, Warn};
    let broken: &[Broken] = &[
        ("no device", Fail, "fuse", "/dev/fuse is not there", |s| {
            s.remove("dev/fuse")
        }),
        ("another device", Fail, "fuse", "is not the device", |s| {
            s.remove("dev/fuse");
            symlink("/dev/zero", s.path("dev/fuse")).unwrap();
        }),
        (
            "no device but a file",
            Fail,
            "fuse",
            "is not the device",
            |s| {
                s.remove("dev/fuse");
                s.write("dev/fuse", "");
            },
        ),
        ("a container", Fail, "rights", "CAP_SYS_ADMIN", |s| {
            s.write(
                "proc/self/status",
                "Uid:\t0\t0\t0\t0\nCapEff:\t00000000a80425fb\n",
            );
        }),
        (
            "files of others",
            Warn,
            "rights",
            "CAP_DAC_READ_SEARCH",
            |s| {
                s.write(
                    "proc/self/status",
                    "Uid:\t0\t0\t0\t0\nCapEff:\t0000000000200000\n",
                );
            },
        ),
        (
            "two programs",
            Warn,
            "version",
            "/opt/bin/forerun is another build",
            |s| {
                s.write("opt/bin/forerun", "a prOgram");
            },
        ),
        (
            "two versions",
            Warn,
            "version",
            "served by forerun 0.0.9",
            |s| {
                s.limits.lock().unwrap().version = "0.0.9".into();
            },
        ),
        (
            "an old daemon",
            Warn,
            "version",
            "an earlier forerun",
            |s| {
                s.limits.lock().unwrap().version = String::new();
            },
        ),
        ("an old journal", Fail, "journal", "version \"1\"", |s| {
            s.write("old", "forerun-journal 1\nsettings memory_bytes=1\n");
            s.machine.journal = Some(s.path("old"));
        }),
        ("no journal", Fail, "journal", "not a journal", |s| {
            s.machine.journal = Some(s.path("etc/fuse.conf"));
        }),
        ("a folder for a journal", Fail, "journal", "", |s| {
            s.machine.journal = Some(s.path("etc"));
        }),
        ("Yama 3", Warn, "watch", "ptrace_scope is 3", |s| {
            s.write("proc/sys/kernel/yama/ptrace_scope", "3\n");
        }),
        ("no tracefs", Warn, "watch", "tracefs is not mounted", |s| {
            fs::remove_dir_all(s.path("sys/kernel/tracing/events")).unwrap();
        }),
        ("no event", Warn, "watch", "has no event", |s| {
            s.remove("sys/kernel/tracing/events/readahead/page_cache_sync_ra/format");
        }),
        ("lockdown", Warn, "watch", "lockdown", |s| {
            s.write(
                "sys/kernel/security/lockdown",
                "none integrity [confidentiality]\n",
            );
        }),
        ("an older kernel", Warn, "watch", "needs Linux 5.14", |s| {
            s.write("proc/sys/kernel/osrelease", "5.10.0-8-amd64\n");
        }),
        (
            "no settings of a unit",
            Fail,
            "services",
            "/etc/forerun/fast.conf is not there",
            |s| {
                s.remove("etc/forerun/fast.conf");
            },
        ),
        (
            "a failed unit",
            Fail,
            "services",
            "forerun@fast.service has failed",
            |s| {
                s.write(
                    "usr/bin/failed",
                    "forerun@fast.service loaded failed failed forerun: /fast\n",
                );
            },
        ),
        (
            "no helper of mount",
            Fail,
            "services",
            "/sbin/mount.forerun is not there",
            |s| {
                s.remove("sbin/mount.forerun");
            },
        ),
    ];
    for (what, verdict, check, words, make) in broken {
        let mut set_up = SetUp::new();
        make(&mut set_up);
        one_line(what, &set_up, *verdict, check, words);
    }
}

#[test]
fn what_a_user_lacks_is_one_line() {
    use Verdict::{Fail, Warn};
    const LIMITS: &str = "proc/self/limits";
    let broken: &[Broken] = &[
        (
            "user_allow_other off",
            Warn,
            "allow-other",
            "has no user_allow_other",
            |s| {
                s.write("etc/fuse.conf", "#user_allow_other\n");
            },
        ),
        ("no fuse3", Fail, "fusermount", "is not installed", |s| {
            s.remove("usr/bin/fusermount3")
        }),
        (
            "no set-user-id",
            Fail,
            "fusermount",
            "no set-user-id bit",
            |s| {
                s.mode("usr/bin/fusermount3", 0o755);
            },
        ),
        ("an old kernel", Fail, "kernel", "Linux 5.4", |s| {
            s.write("proc/sys/kernel/osrelease", "5.4.0-150-generic\n");
        }),
        ("few descriptors", Warn, "descriptors", "at most 256", |s| {
            s.write(
                LIMITS,
                "Max open files            256                  4096    files\n",
            );
        }),
        (
            "too few descriptors",
            Fail,
            "descriptors",
            "at most 12",
            |s| {
                s.write(
                    LIMITS,
                    "Max open files            12                   4096    files\n",
                );
            },
        ),
        (
            "little address space",
            Fail,
            "addresses",
            "at most 512MiB",
            |s| {
                s.write(
                    LIMITS,
                    "Max address space         536870912            unlimited bytes\n",
                );
            },
        ),
        (
            "a small control group",
            Warn,
            "memory",
            "at most 96MiB",
            |s| {
                s.write("sys/fs/cgroup/system.slice/memory.max", "100663296\n");
            },
        ),
        ("little memory", Warn, "memory", "are available", |s| {
            s.remove("sys/fs/cgroup/system.slice/memory.max");
            s.write("proc/meminfo", "MemAvailable:    102400 kB\n");
        }),
        ("no log", Warn, "log", "/dev/log is not there", |s| {
            s.remove("dev/log")
        }),
        ("a wrong clock", Fail, "clock", "h before the time", |s| {
            s.machine.now = SystemTime::UNIX_EPOCH;
        }),
        (
            "a full disk",
            Fail,
            "sockets",
            "cannot make its control socket",
            |s| {
                s.machine.space = |_| {
                    Ok(Space {
                        bytes: 4096,
                        inodes: Some(1000),
                    })
                };
            },
        ),
        ("no inodes", Fail, "sockets", "0 inodes", |s| {
            s.machine.space = |_| {
                Ok(Space {
                    bytes: 1 << 40,
                    inodes: Some(0),
                })
            };
        }),
        (
            "a folder open to others",
            Warn,
            "sockets",
            "will not find mounts",
            |s| {
                s.write("proc/self/mountinfo", "");
                fs::set_permissions(s.folder.path().join("run"), Permissions::from_mode(0o755))
                    .unwrap();
            },
        ),
    ];
    for (what, verdict, check, words, make) in broken {
        let mut set_up = SetUp::of_user();
        make(&mut set_up);
        one_line(what, &set_up, *verdict, check, words);
    }
}

#[test]
fn a_mount_that_does_not_work_is_one_line() {
    use Verdict::{Fail, Warn};
    let broken: &[Broken] = &[
        ("no source", Fail, "source", "no such file", |s| {
            fs::remove_dir(s.source()).unwrap()
        }),
        (
            "a disk that fails",
            Fail,
            "source",
            "Input/output error",
            |s| {
                let source = s.source();
                s.probe(&source, "echo '5 1 '; exit");
            },
        ),
        (
            "a slow source",
            Warn,
            "source",
            "took 800.0 ms to answer",
            |s| {
                let source = s.source();
                s.probe(&source, "echo \"0 800000 $3\"; exit");
            },
        ),
        (
            "a dead daemon",
            Fail,
            "mount",
            "its daemon has ended",
            |s| {
                let point = s.point();
                s.probe(&point, "echo '107 1 '; exit");
            },
        ),
        ("no probe", Warn, "mount", "not looked at", |s| {
            s.machine.program = s.path("absent");
        }),
        ("no socket", Warn, "mount", "no control socket", |s| {
            fs::remove_file(s.folder.path().join("run/1.sock")).unwrap();
        }),
        (
            "a journal that ended",
            Fail,
            "journal",
            "No space left",
            |s| {
                s.report.lock().unwrap().journal_error = Some("No space left on device".into());
            },
        ),
        (
            "a record that ended",
            Fail,
            "record",
            "No space left",
            |s| {
                let error = Some("No space left on device".into());
                s.report.lock().unwrap().record = Some(RecordReport {
                    error,
                    ..RecordReport::default()
                });
            },
        ),
        (
            "no passthrough",
            Warn,
            "passthrough",
            "it is not possible",
            |s| {
                s.report.lock().unwrap().passthrough.mode = Mode::Always;
            },
        ),
    ];
    for (what, verdict, check, words, make) in broken {
        let mut set_up = SetUp::new();
        make(&mut set_up);
        one_line(what, &set_up, *verdict, check, words);
    }
}

#[test]
fn what_hangs_is_one_line_and_is_not_waited_for() {
    let mut set_up = SetUp::new();
    let source = set_up.source();
    let held = set_up.hangs(&source);
    one_line(
        "a source",
        &set_up,
        Verdict::Fail,
        "source",
        "does not answer",
    );
    drop(held);
    let mut set_up = SetUp::new();
    let point = set_up.point();
    let _held = set_up.hangs(&point);
    one_line(
        "a daemon",
        &set_up,
        Verdict::Fail,
        "mount",
        "no answer within 1 s",
    );
    // A name that hangs and is in no list.
    let mut set_up = SetUp::new();
    let other = set_up.folder.path().join("other");
    let _held = set_up.hangs(&other);
    let refused = mounts::find(&set_up.machine, Some(&other)).unwrap_err();
    assert!(refused.to_string().contains("does not answer"), "{refused}");
}

#[test]
fn an_address_is_not_looked_for_among_files() {
    let set_up = SetUp::new();
    let point = set_up.point();
    let line = format!(
        "29 1 0:26 / {} ro - fuse.forerun s3://bucket/a ro\n",
        point.display()
    );
    set_up.write("proc/self/mountinfo", &line);
    let all_ok = |checks: &[Check]| checks.iter().all(|check| check.verdict == Verdict::Ok);
    let checks = set_up.looked_at(all_ok);
    assert!(all_ok(&checks), "{}", as_text(&checks, None));
}

#[test]
fn a_bundle_has_no_secret_and_no_name_of_a_file() {
    let mut set_up = SetUp::new();
    set_up.write("hunter2.journal", "forerun-journal 1\n");
    set_up.machine.journal = Some(set_up.path("hunter2.journal"));
    let point = set_up.point();
    let line = format!(
        "29 1 0:26 / {} ro - fuse.forerun https://u:hunter2@h/a?sig=hunter2 ro\n",
        point.display()
    );
    set_up.write("proc/self/mountinfo", &line);
    set_up.write("proc/self/environ", "AWS_SECRET_ACCESS_KEY=hunter2");
    let file = serde_json::json!({
        "path": "hunter2.doc", "process": 1, "program": "hunter2", "file_bytes": 1, "requests": 1, "read_bytes": 1,
        "at_bytes": 1, "streams": [],
    });
    set_up.report.lock().unwrap().open_files = vec![serde_json::from_value(file).unwrap()];
    let found = mounts::find(&set_up.machine, None).unwrap();
    let checks = examine(&set_up.machine, &found);
    let text = bundle::text(&set_up.machine, &found, &checks, "forerun 1\n");
    assert!(!text.contains("hunter2"), "{text}");
    for part in [
        "ok    fuse",
        "AWS_SECRET_ACCESS_KEY=***",
        "SOURCE=/data",
        "https://***@h/a?***",
        "1 files open",
        "MemAvailable:    8192000 kB",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn any_content_of_files_is_judged_without_a_panic() {
    for text in [
        "",
        "\n",
        "\0\u{ff}:",
        "0::/../..\n",
        "Uid:\nCapEff:\n",
        "Max open files",
        "- - - fuse.forerun",
    ] {
        let set_up = SetUp::new();
        for (name, _) in FILES {
            set_up.write(name, text);
        }
        set_up.write("proc/self/mountinfo", text);
        assert!(!set_up.checks().is_empty());
    }
}

#[test]
fn a_bundle_that_has_no_room_leaves_no_part_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("bundle.txt");
    let program = cargo_bin!("forerun");
    // One block: of 512 bytes or of 1 KiB, by the shell.
    let words = format!("ulimit -f 1; exec {program:?} doctor --bundle {bundle:?}");
    let output = Command::new("sh").args(["-c", &words]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("bundle.txt: File too large"), "{said}");
    assert!(!bundle.exists());
}

#[test]
fn this_machine_is_answered_for_in_both_formats() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("bundle.txt");
    let doctor = |words: &[&str]| {
        let output = Command::new(cargo_bin!("forerun"))
            .arg("doctor")
            .args(words)
            .env("FORERUN_RUNTIME_DIR", folder.path())
            .output()
            .unwrap();
        let code = output.status.code().unwrap();
        (
            code,
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, json, _) = doctor(&["--format", "json", "--bundle", bundle.to_str().unwrap()]);
    let whole: serde_json::Value = serde_json::from_str(&json).unwrap();
    let checks = whole["checks"].as_array().unwrap();
    let fails = checks
        .iter()
        .filter(|check| check["verdict"] == "fail")
        .count();
    assert_eq!(code, i32::from(fails > 0), "{json}");
    let (_, plain, said) = doctor(&[]);
    assert_eq!(said.contains("checks failed"), fails > 0, "{said}");
    let begins = |line: &str| {
        ["ok    ", "warn  ", "fail  "]
            .iter()
            .any(|verdict| line.starts_with(verdict))
    };
    assert!(
        plain
            .lines()
            .all(|line| begins(line) || line.starts_with("         ")),
        "{plain}"
    );
    assert!(fs::read_to_string(&bundle).unwrap().contains("== checks"));
    let mode = fs::metadata(&bundle).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let (code, _, said) = doctor(&["--bundle", bundle.to_str().unwrap()]);
    assert!(code == 2 && said.contains("bundle.txt: "), "{said}");
    for (named, why) in [("/", "no mount of forerun"), ("/absent", "no such file")] {
        let (code, _, said) = doctor(&[named]);
        assert!(
            code == 2 && said.contains(&format!("forerun: {named}: {why}")),
            "{said}"
        );
    }
    let probed = output_of("doctor --probe /");
    assert!(
        probed.starts_with("begun\n0 ") && probed.ends_with(" /\n"),
        "{probed}"
    );
}
