//! Completions and manual pages, as a shell and a reader of manuals have them.

use std::process::Command;

use super::skipped::skipped;
use super::{Folder, output_of};

/// The words that bash offers for the last of these.
fn offered(script: &str, line: &[&str]) -> Option<Vec<String>> {
    let folder = Folder::new();
    let file = folder.file("forerun.bash", script.as_bytes());
    let run = "source \"$0\"; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
        $(complete -p forerun | sed 's/.*-F \\([^ ]*\\).*/\\1/') forerun \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"
        printf '%s\\n' \"${COMPREPLY[@]}\"";
    let output = Command::new("bash")
        .args(["--norc", "-c", run, &file])
        .args(line)
        .output();
    let Ok(output) = output else {
        skipped("needs bash");
        return None;
    };
    let said = String::from_utf8(output.stdout).unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && error.is_empty(), "{error}");
    Some(said.lines().map(str::to_owned).collect())
}

#[test]
fn bash_offers_presets_methods_devices_workloads_parts_and_codes() {
    let script = output_of("completions bash");
    for (line, has) in [
        (&["forerun", "read", "--preset", ""][..], "linux-2.6.24"),
        (&["forerun", "mount", "--preset", "mou"], "mount"),
        (&["forerun", "bench", "--preset", "lin"], "linux-2.6.24"),
        (&["forerun", "mount", "--detect", ""], "ondemand"),
        (&["forerun", "read", "--measure", ""], "online"),
        (&["forerun", "simulate", "--device", "hp"], "hp97560"),
        (&["forerun", "simulate", "--workload", "x"], "xds"),
        (&["forerun", "list", ""], "presets"),
        (&["forerun", "explain", "dae"], "daemon-dead"),
        (&["forerun", "read", "--backend", ""], "pread"),
    ] {
        let Some(words) = offered(&script, line) else {
            return;
        };
        assert!(words.iter().any(|word| word == has), "{line:?}: {words:?}");
    }
    // A number of seconds, not a method.
    let words = offered(&script, &["forerun", "tune", "--measure", ""]).unwrap();
    assert!(!words.iter().any(|word| word == "online"), "{words:?}");
}

#[test]
fn bash_offers_mount_points_of_forerun_alone() {
    // In place of the kernel's list: one mount of forerun and one of something else.
    let folder = Folder::new();
    let list = folder.file(
        "mountinfo",
        b"29 1 0:26 / /fast ro - fuse.forerun /data ro\n30 1 0:27 / /other rw - ext4 /dev/sda rw\n",
    );
    let script = output_of("completions bash");
    let here = script.replace("/proc/self/mountinfo", &list);
    assert_ne!(here, script);
    for command in ["umount", "top", "ctl", "doctor"] {
        let Some(words) = offered(&here, &["forerun", command, ""]) else {
            return;
        };
        assert_eq!(words, ["/fast"], "{command}");
    }
    let words = offered(&here, &["forerun", "ctl", "/fast", "s"]).unwrap();
    assert!(words.contains(&"stats".to_owned()), "{words:?}");
    for shell in ["zsh", "fish"] {
        let script = output_of(&format!("completions {shell}"));
        assert!(
            script.contains("fuse\\.forerun") || script.contains("fuse\\\\.forerun"),
            "{shell}"
        );
        assert!(script.contains("linux-2.6.24"), "{shell}");
    }
    let zsh = output_of("completions zsh");
    assert!(zsh.starts_with("#compdef forerun\n"));
    assert_eq!(zsh.matches(":_forerun_mounts'").count(), 4);
    let new_one = "An empty directory where programs find it:_files'";
    assert!(zsh.contains(new_one), "that of `mount` is not one yet");
}

#[test]
fn each_page_has_its_sections_and_examples_stand_as_they_are() {
    let folder = Folder::new();
    output_of(&format!("man --output {}", folder.name("man")));
    let mut pages = 0;
    for entry in std::fs::read_dir(folder.path("man")).unwrap() {
        let path = entry.unwrap().path();
        let page = std::fs::read_to_string(&path).unwrap();
        if page.starts_with(".so ") {
            continue;
        }
        pages += 1;
        for section in [".SH \"EXIT STATUS\"", ".SH ENVIRONMENT", ".SH \"SEE ALSO\""] {
            assert_eq!(
                page.matches(section).count(),
                1,
                "{}: {section}",
                path.display()
            );
        }
        assert!(!page.contains(".SH EXTRA"), "{}", path.display());
    }
    assert!(pages > 20, "{pages}");
    let page = output_of("man mount");
    for part in [
        ".SH EXAMPLES\n.nf\n  forerun mount /data /fast ",
        "/etc/forerun/NAME.conf",
        "FORERUN_RUNTIME_DIR",
        "forerun\\-umount(1)",
        "mount(8)",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!output_of("man list").contains("FORERUN_RUNTIME_DIR"));
}

#[test]
fn pages_are_formatted_without_a_warning() {
    let file = Folder::new();
    for command in ["", "mount", "doctor", "ctl"] {
        let page = file.file("page", output_of(&format!("man {command}")).as_bytes());
        let output = Command::new("groff")
            .args(["-man", "-Tascii", "-ww", "-z", &page])
            .output();
        let Ok(output) = output else {
            return skipped("needs groff");
        };
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.is_empty(), "{command}: {said}");
    }
}
