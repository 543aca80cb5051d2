//! Mount options as an fstab has them, turned into flags before anything is parsed.
//!
//! Called by `main` with the words of the command line. `mount(8)` runs this binary under another
//! name, and its arguments are rewritten:
//!
//! ```text
//! mount.forerun SOURCE MOUNTPOINT -o a,b=c   ->   forerun mount SOURCE MOUNTPOINT --a --b=c
//! ```
//!
//! So every option has one place, one check and one message in both forms. Options for the kernel
//! become `--flag`; those for `mount(8)` alone are dropped. A comma inside a value is written `:`,
//! as in `emulate=switching=8ms:rate=80MB/s:servers=1`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use clap::ValueEnum;
use rustix::mount::MountFlags;

/// The name under which `mount(8)` runs us.
const FSTAB_NAME: &str = "mount.forerun";

/// Options that are `mount(8)`'s own business, or hold in any case.
const IGNORED: &[&str] = &[
    "defaults",
    "ro",
    "rw",
    "auto",
    "noauto",
    "user",
    "nouser",
    "users",
    "owner",
    "group",
    "_netdev",
    "nofail",
    "nodev",
    "nosuid",
    "exec",
    "atime",
    "async",
    "relatime",
    "norelatime",
    "strictatime",
    "nostrictatime",
    "diratime",
    "default_permissions",
];

/// Short flags `mount(8)` may pass to a helper, one by one or together; none changes the mount.
const IGNORED_SHORT: &str = "nsvrw";

/// The one that says that nothing is mounted.
const FAKE: char = 'f';

/// Options for the kernel beside the file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Flag {
    /// Devices below SOURCE are devices here too.
    Dev,
    /// Set-user-id programs below SOURCE run as their owners.
    Suid,
    /// No programs are run from here.
    Noexec,
    /// Reading does not change times.
    Noatime,
    /// Listing does not change times.
    Nodiratime,
}

/// The kernel's flags for these: read-only always, no devices and no set-user-id unless wanted.
#[must_use]
pub fn kernel_flags(wanted: &[Flag]) -> MountFlags {
    let mut flags = MountFlags::RDONLY | MountFlags::NODEV | MountFlags::NOSUID;
    for flag in wanted {
        match flag {
            Flag::Dev => flags.remove(MountFlags::NODEV),
            Flag::Suid => flags.remove(MountFlags::NOSUID),
            Flag::Noexec => flags.insert(MountFlags::NOEXEC),
            Flag::Noatime => flags.insert(MountFlags::NOATIME),
            Flag::Nodiratime => flags.insert(MountFlags::NODIRATIME),
        }
    }
    flags
}

/// The words of the command line with every `-o` of a mount spelled out.
pub fn expand(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words = words.into_iter().peekable();
    let Some(program) = words.next() else {
        return Vec::new();
    };
    let from_fstab = Path::new(&program).file_name() == Some(OsStr::new(FSTAB_NAME));
    let mut expanded = if from_fstab {
        // Its help has the name of the program, which has the command.
        vec!["forerun".into(), "mount".into()]
    } else {
        vec![program]
    };
    if !from_fstab && words.peek().is_none_or(|word| word != "mount") {
        expanded.extend(words);
        return expanded;
    }
    while let Some(word) = words.next() {
        if word == "-o" {
            if let Some(list) = words.next() {
                expand_list(&list, &mut expanded);
            } else {
                expanded.push(word);
            }
        } else if let Some(list) = word.as_bytes().strip_prefix(b"-o") {
            expand_list(OsStr::from_bytes(list), &mut expanded);
        } else if word == "-t" || (from_fstab && word == "-N") {
            words.next();
        } else if let Some(shorts) = shorts(&word).filter(|_| from_fstab) {
            if shorts.contains(FAKE) {
                expanded.push("--check-arguments".into());
            }
        } else {
            expanded.push(word);
        }
    }
    expanded
}

/// The letters of a word of `mount(8)`'s short flags.
fn shorts(word: &OsStr) -> Option<&str> {
    let letters = word.to_str()?.strip_prefix('-')?;
    let is_known = |letter| letter == FAKE || IGNORED_SHORT.contains(letter);
    (!letters.is_empty() && letters.chars().all(is_known)).then_some(letters)
}

fn expand_list(list: &OsStr, into: &mut Vec<OsString>) {
    for option in list.as_bytes().split(|byte| *byte == b',') {
        let known = std::str::from_utf8(option).unwrap_or_default();
        let is_mounts_own = known.starts_with("x-") || known.starts_with("comment=");
        if option.is_empty() || is_mounts_own || IGNORED.contains(&known) {
            continue;
        }
        if Flag::from_str(known, false).is_ok() {
            into.push(format!("--flag={known}").into());
        } else {
            into.push(as_flag(option));
        }
    }
}

/// `a_b=c:d` as `--a-b=c,d`; a path keeps its colons.
fn as_flag(option: &[u8]) -> OsString {
    let end = option
        .iter()
        .position(|byte| *byte == b'=')
        .unwrap_or(option.len());
    let (name, value) = option.split_at(end);
    let name = name.iter().map(|byte| match byte {
        b'_' => b'-',
        other => *other,
    });
    let name: Vec<u8> = name.collect();
    let lists = [
        &b"emulate"[..],
        b"stripe",
        b"detect",
        b"depth",
        b"shape",
        b"dispatch",
        b"reclaim",
        b"next-file",
        b"measure",
    ];
    let colon_is_comma = lists.contains(&&*name);
    let mut flag = b"--".to_vec();
    flag.extend(name);
    flag.extend(value.iter().map(|byte| match byte {
        b':' if colon_is_comma => b',',
        other => *other,
    }));
    OsString::from_vec(flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(line: &str) -> String {
        let words = expand(line.split(' ').map(OsString::from));
        words.join(OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn what_an_fstab_says_becomes_flags() {
        assert_eq!(
            expanded("/sbin/mount.forerun /a /b -n -o rw,memory=1GiB,allow_other,noexec,x-z=1"),
            "forerun mount /a /b --memory=1GiB --allow-other --flag=noexec"
        );
        assert_eq!(
            expanded(
                "forerun mount -oemulate=switching=8ms:rate=80MB/s:servers=4,control=/a:b /a /b"
            ),
            "forerun mount --emulate=switching=8ms,rate=80MB/s,servers=4 --control=/a:b /a /b"
        );
    }

    #[test]
    fn lists_are_written_with_colons_under_either_spelling() {
        assert_eq!(
            expanded("forerun mount -o stripe=64KiB:sda:sdb,next_file=a:b=1,next-file=a:b=1 /a /b"),
            "forerun mount --stripe=64KiB,sda,sdb --next-file=a,b=1 --next-file=a,b=1 /a /b"
        );
    }

    #[test]
    fn a_fake_mount_of_an_fstab_checks_its_arguments() {
        for words in ["-s -f -n -v", "-sfnv", "-f"] {
            assert_eq!(
                expanded(&format!("/sbin/mount.forerun /a /b {words} -o rw")),
                "forerun mount /a /b --check-arguments"
            );
        }
        assert_eq!(
            expanded("/sbin/mount.forerun /a /b -h -nx"),
            "forerun mount /a /b -h -nx"
        );
        assert_eq!(expanded("forerun mount -f /a /b"), "forerun mount -f /a /b");
    }

    #[test]
    fn other_commands_keep_their_words() {
        for line in [
            "forerun",
            "forerun profile -o p /dev/sda",
            "forerun read -o",
        ] {
            assert_eq!(expanded(line), line);
        }
        assert_eq!(expanded("forerun mount -o"), "forerun mount -o");
    }

    #[test]
    fn devices_and_set_user_id_are_off_unless_asked_for() {
        let usual = kernel_flags(&[]);
        assert!(usual.contains(MountFlags::RDONLY | MountFlags::NODEV | MountFlags::NOSUID));
        let all = kernel_flags(&[Flag::Dev, Flag::Suid, Flag::Noexec]);
        assert_eq!(all, MountFlags::RDONLY | MountFlags::NOEXEC);
    }
}
