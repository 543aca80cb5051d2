//! Mounts as they are used every day: found without a socket's name, and taken off by name.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use snapbox::cmd::cargo_bin;

use super::{Mounted, bytes, can_mount, eventually, folder, is_mounted, wait};

/// Runs forerun with the folder of sockets that the mounts of these tests have.
fn forerun(mounted: &Mounted, arguments: &[&str]) -> (i32, String) {
    let output = Command::new(cargo_bin!("forerun"))
        .args(arguments)
        .env("FORERUN_RUNTIME_DIR", mounted.folder.path().join("run"))
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (
        output.status.code().unwrap_or(-1),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

fn mounted() -> Option<Mounted> {
    let folder = folder();
    fs::write(folder.path().join("source/a"), bytes(1 << 20, 1)).unwrap();
    Mounted::of(folder, &["--passthrough", "never"])
}

#[test]
fn top_and_ctl_find_a_mount_by_its_mount_point_or_by_nothing() {
    let Some(mut mounted) = mounted() else { return };
    fs::read(mounted.point("a")).unwrap();
    let run = mounted.folder.path().join("run");
    assert_eq!(
        fs::metadata(&run).unwrap().permissions().mode() & 0o777,
        0o700
    );
    let point = mounted.folder.path().join("point");
    let point = point.to_str().unwrap();
    let (code, said) = forerun(&mounted, &["top", "--once"]);
    assert!(
        code == 0 && said.contains(&format!("on {point} ")),
        "{said}"
    );
    let (code, said) = forerun(&mounted, &["top", "--list"]);
    assert!(
        code == 0 && said.lines().count() == 2 && said.contains(point),
        "{said}"
    );
    // With a slash at its end, as shells complete it.
    let (code, said) = forerun(&mounted, &["ctl", &format!("{point}/"), "stats"]);
    let report: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, report["counters"]["reads"].as_u64()), (0, Some(256)));
    // One that was killed is forgotten, and its socket removed.
    mounted.daemon.kill().unwrap();
    mounted.daemon.wait().unwrap();
    assert_eq!(fs::read_dir(&run).unwrap().count(), 1);
    let (code, said) = forerun(&mounted, &["top", "--once"]);
    assert!(
        code == 2 && said.contains("no mount or watch of this user runs"),
        "{said}"
    );
    assert_eq!(fs::read_dir(&run).unwrap().count(), 0);
    let (code, said) = forerun(&mounted, &["umount", point]);
    assert_eq!(code, 0, "a dead mount is taken off too: {said}");
    assert!(!is_mounted(point.as_ref()));
}

#[test]
fn umount_takes_off_what_is_ours_and_unused() {
    let Some(mut mounted) = mounted() else { return };
    let path = mounted.folder.path().join("point");
    let point = path.to_str().unwrap();
    let file = File::open(mounted.point("a")).unwrap();
    let (code, said) = forerun(&mounted, &["umount", point]);
    assert!(
        code == 1 && said.contains("is in use") && said.contains("--lazy"),
        "{said}"
    );
    assert!(is_mounted(&path));
    let (code, said) = forerun(&mounted, &["umount", "--lazy", point]);
    assert_eq!((code, said.as_str()), (0, ""));
    assert!(!is_mounted(&path));
    drop(file);
    assert!(mounted.ended().success());
    let (code, said) = forerun(&mounted, &["umount", point]);
    assert!(
        code == 2 && said.contains("no mount of forerun is here"),
        "{said}"
    );
    let (code, said) = forerun(&mounted, &["umount", "/proc"]);
    assert!(
        code == 2 && said.contains("no mount of forerun is here"),
        "{said}"
    );
}

#[test]
fn a_kernel_readahead_that_cannot_be_set_is_warned_about_if_it_was_asked_for() {
    if !can_mount() {
        return;
    }
    for (asked, warns) in [(&["--kernel-readahead=1MiB"][..], true), (&[], false)] {
        let folder = folder();
        // Setting it is refused as it is to users other than root: in a namespace whose /sys is
        // read-only. Its end ends the mount.
        let script =
            "mount --bind /sys /sys && mount -o remount,bind,ro /sys && exec \"$0\" \"$@\"";
        let mut daemon = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", script])
            .arg(cargo_bin!("forerun"))
            .args(["mount", "--foreground", "--memory", "16MiB"])
            .args(asked)
            .args([folder.path().join("source"), folder.path().join("point")])
            .env("FORERUN_RUNTIME_DIR", folder.path().join("run"))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let run = folder.path().join("run");
        eventually("it answers", || {
            fs::read_dir(&run).is_ok_and(|names| names.count() == 1)
        });
        let mut said = String::new();
        let mut stderr = daemon.stderr.take().unwrap();
        if warns {
            // The warning comes after the mount works, and is waited for.
            let mut line = std::io::BufReader::new(&mut stderr);
            std::io::BufRead::read_line(&mut line, &mut said).unwrap();
        }
        let pid = rustix::process::Pid::from_raw(daemon.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        wait::end(&mut daemon).expect("it ends");
        stderr.read_to_string(&mut said).unwrap();
        assert_eq!(said.contains("--kernel-readahead"), warns, "{said}");
    }
}
