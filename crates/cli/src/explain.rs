//! Messages, their causes and remedies: the one table of `forerun explain` and of docs/TROUBLESHOOTING.md.
//!
//! An entry has a code, which does not change, and the message as it is printed, with `..` where it varies. A message
//! that a user pastes is looked up by its fixed parts:
//!
//! ```text
//! cannot mount on /fast: /dev/fuse is not there (modprobe fuse)
//! /dev/fuse is not there (modprobe fuse)                              no-fuse
//! ```
//!
//! Tests hold that each message of forerun's own stands in its sources, that each message by which a mount is refused
//! has an entry, and that the page is this table.

/// A message.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// A name that does not change.
    pub code: &'static str,
    /// The message, `..` where it varies; a symptom in words where nothing is printed.
    pub printed: &'static str,
    /// Its origin.
    pub by: By,
    /// The reason.
    pub cause: &'static str,
    /// The remedy.
    pub remedy: &'static str,
}

/// The origin of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// This program.
    Forerun,
    /// The kernel, or another program.
    Others,
    /// No program prints it: it is seen.
    Seen,
}

const fn entry(
    code: &'static str,
    by: By,
    printed: &'static str,
    cause: &'static str,
    remedy: &'static str,
) -> Entry {
    Entry {
        code,
        printed,
        by,
        cause,
        remedy,
    }
}

use By::{Forerun, Others, Seen};

/// All entries, by the time at which they are met: before a mount, at its start, while it runs, at its end.
pub const LIST: &[Entry] = &[
    entry(
        "no-fuse",
        Forerun,
        "/dev/fuse is not there (modprobe fuse)",
        "The kernel module fuse is not loaded, or a container has no such device.",
        "`modprobe fuse`. A container is started with `--device /dev/fuse --cap-add SYS_ADMIN`.",
    ),
    entry(
        "no-fusermount",
        Others,
        "fusermount3: No such file or directory",
        "Users other than root mount by the program fusermount3, which is not installed.",
        "Install the package `fuse3`.",
    ),
    entry(
        "fusermount-rights",
        Others,
        "fusermount3: Permission denied",
        "Users other than root mount by fusermount3, which this user may not start.",
        "`chmod 4755` of the program, as the package `fuse3` has it.",
    ),
    entry(
        "user-allow-other",
        Others,
        "option allow_other only allowed if 'user_allow_other' is set",
        "`--allow-other` of a user other than root needs leave in /etc/fuse.conf.",
        "`echo user_allow_other | sudo tee -a /etc/fuse.conf`, or mount as root.",
    ),
    entry(
        "not-permitted",
        Others,
        "cannot mount on ..: Operation not permitted",
        "Root in a container has no right to mount.",
        "Start the container with `--cap-add SYS_ADMIN --device /dev/fuse`.",
    ),
    entry(
        "old-kernel",
        Forerun,
        "openat2(2) cannot be called here",
        "The kernel is older than Linux 5.6, or a seccomp profile of a container refuses the call.",
        "A later kernel; a container with a profile that allows `openat2`.",
    ),
    entry(
        "mounted-already",
        Forerun,
        "something is mounted here already",
        "A mount of forerun, or of something else, is on this path.",
        "`findmnt MOUNTPOINT` shows it; `forerun umount MOUNTPOINT` takes off one of forerun.",
    ),
    entry(
        "not-empty",
        Forerun,
        "is not empty (--nonempty mounts over it)",
        "The mount point has files, which the mount would hide.",
        "Another folder, or `--nonempty`.",
    ),
    entry(
        "no-directory",
        Forerun,
        "no such directory",
        "SOURCE, or the mount point, is not there.",
        "Make the mount point with `mkdir`; write the path of SOURCE in full.",
    ),
    entry(
        "no-file",
        Forerun,
        "no such file",
        "Nothing is at the path in front of these words.",
        "Look at its spelling; a relative path begins at the directory of the shell.",
    ),
    entry(
        "not-a-directory",
        Forerun,
        "is not a directory",
        "SOURCE or the mount point is a file.",
        "Mount the folder that the file is in.",
    ),
    entry(
        "own-source",
        Forerun,
        "the mount would hide its own source",
        "SOURCE and the mount point are the same folder.",
        "A mount point of its own, outside SOURCE or below it.",
    ),
    entry(
        "inside",
        Forerun,
        "is inside the mount point",
        "SOURCE lies below the mount point and would be hidden by it.",
        "A mount point that has no part of SOURCE.",
    ),
    entry(
        "address-space",
        Forerun,
        "the address space is limited (ulimit -v) to",
        "A mount maps more address space than it uses; the limit counts what is mapped.",
        "`ulimit -v unlimited`; memory is bounded by `--memory`.",
    ),
    entry(
        "descriptors",
        Forerun,
        "descriptors are limited (ulimit -n) to",
        "A mount takes descriptors for its threads and for each open file.",
        "`ulimit -n 65536`; in a unit `LimitNOFILE=infinity`.",
    ),
    entry(
        "little-memory",
        Forerun,
        "must be at least .. for a mount, which it bounds as a whole",
        "`--memory` is for the whole daemon, tables and buffers included.",
        "At least the size that the message names; 256 MiB or more is usual.",
    ),
    entry(
        "no-stores",
        Forerun,
        "this forerun was built without object stores",
        "The program is a small build, as `make demo` makes it.",
        "`make install` or a package; `forerun version --verbose` lists the parts of a program.",
    ),
    entry(
        "no-keys",
        Forerun,
        "no keys in AWS_ACCESS_KEY_ID",
        "The store refused a request that was not signed, because no credentials were found.",
        "One of the sources in [STORES.md](STORES.md#credentials); on a machine of a cloud `FORERUN_METADATA=1`.",
    ),
    entry(
        "clock",
        Forerun,
        "the clock of this machine is more than 15 minutes wrong",
        "Stores refuse signatures of another time.",
        "`timedatectl set-ntp true`, or set the clock.",
    ),
    entry(
        "no-server",
        Forerun,
        "no server at ..: Connection refused",
        "Nothing listens at the address of the store or of a proxy.",
        "Look at `AWS_ENDPOINT_URL` and `HTTPS_PROXY`.",
    ),
    entry(
        "metrics-open",
        Forerun,
        "can be read by anybody who",
        "`--metrics` has an address that other machines can reach.",
        "A port alone, which is served on loopback, and a proxy that asks for a password.",
    ),
    entry(
        "address-in-use",
        Others,
        "Address already in use",
        "Another program, or another mount, listens at this address.",
        "`ss -ltnp` names it; `--metrics` with another port.",
    ),
    entry(
        "disk-full",
        Others,
        "No space left on device",
        "The file system of a journal, a record or another output is full.",
        "`df` of its folder; another place for the file.",
    ),
    entry(
        "in-background",
        Forerun,
        "the process in the background ended before it worked",
        "The daemon was killed at its start, as by a limit of memory.",
        "`forerun mount --foreground` shows what it says; `dmesg` shows a kill by the kernel.",
    ),
    entry(
        "top-blind",
        Forerun,
        "`forerun top` will not find this mount",
        "No folder for the control socket can be used.",
        "`FORERUN_RUNTIME_DIR`, a folder of this user alone (mode 0700), for the mount and for `top`.",
    ),
    entry(
        "runtime-folder",
        Forerun,
        "must be a directory of this user alone (mode 0700), and no link",
        "Another user could put a socket into the folder of control sockets.",
        "`chmod 700` of the folder that the message names, or another `FORERUN_RUNTIME_DIR`.",
    ),
    entry(
        "runtime-parent",
        Forerun,
        "other users can rename it: the directory that it is in must have the sticky bit",
        "The folder of control sockets lies in a folder that others can write.",
        "A folder below the user's own; `chmod +t` of the one above, if it is to be shared.",
    ),
    entry(
        "no-mount",
        Forerun,
        "no mount or watch of this user runs (none answers in",
        "No mount and no watch runs, or those that run are another user's.",
        "`sudo forerun top` for mounts of root; `findmnt -t fuse.forerun` lists all.",
    ),
    entry(
        "not-ours",
        Forerun,
        "no mount of forerun is here",
        "The path is no mount point of forerun.",
        "`findmnt -t fuse.forerun` lists them; other mounts are for `umount`.",
    ),
    entry(
        "no-listener",
        Forerun,
        "no mount or watch listens here",
        "The daemon has ended, or its control socket is elsewhere.",
        "`forerun doctor` says which; a socket of `--control` is named by its path.",
    ),
    entry(
        "silent-mount",
        Forerun,
        "a mount is here, and nothing answers for it in .. within",
        "The daemon of the mount is stopped, dead, of another user, or has a `--control`.",
        "`forerun doctor MOUNTPOINT` says which of them; `kill -CONT` wakes a stopped one.",
    ),
    entry(
        "silent-in-the-way",
        Forerun,
        "a mount is here that does not answer within",
        "A mount of forerun is on the path, and its daemon is stopped or hangs.",
        "`kill -CONT` of the daemon, or `forerun umount --lazy MOUNTPOINT`.",
    ),
    entry(
        "no-answer",
        Forerun,
        "no answer within .. s: a file system below may not answer",
        "The daemon is stopped, or waits for a source that hangs.",
        "`forerun doctor MOUNTPOINT` says which of the two.",
    ),
    entry(
        "silent-daemon",
        Forerun,
        "no answer within .. s from .., a mount or watch that is stopped or at work",
        "A daemon listens and does not answer: it is stopped (SIGSTOP, a frozen control group), or a call of it hangs.",
        "`kill -CONT PROCESS` wakes a stopped one; `ps -o stat,wchan PROCESS` says which of the two.",
    ),
    entry(
        "readahead-kept",
        Forerun,
        "the kernel's value stays, only root may set it",
        "The kernel's own readahead on the mount may be set by root alone; the mount works.",
        "Mount as root, or leave `--kernel-readahead` away.",
    ),
    entry(
        "replaced",
        Others,
        "Stale file handle",
        "The object or file was replaced while it was read.",
        "Open it anew.",
    ),
    entry(
        "daemon-dead",
        Others,
        "Transport endpoint is not connected",
        "The daemon of this mount was killed or crashed.",
        "Mount again, which clears the old mount away, or `forerun umount MOUNTPOINT`; `journalctl _COMM=forerun` and `dmesg` may say why.",
    ),
    entry(
        "dead-mounts",
        Forerun,
        "dead mounts lie on top of each other",
        "Many daemons of this mount point were killed.",
        "`umount -l MOUNTPOINT` until `findmnt MOUNTPOINT` shows none.",
    ),
    entry(
        "source-error",
        Others,
        "Input/output error",
        "The disk or the server of SOURCE failed; the bytes before it were right.",
        "Read the same file from SOURCE; `dmesg` names a disk. A store's reason is in the log.",
    ),
    entry(
        "read-only",
        Others,
        "Read-only file system",
        "A mount of forerun never writes.",
        "Write to SOURCE; the mount shows the change at the next open.",
    ),
    entry(
        "other-users",
        Others,
        "Permission denied",
        "A mount is for the user who made it, root excluded too.",
        "`--allow-other` lets others in, each with the rights that the files give.",
    ),
    entry(
        "hangs",
        Seen,
        "A program hangs, and cannot be killed",
        "Its read waits for a source that does not answer.",
        "`forerun doctor`; `forerun umount --lazy MOUNTPOINT`, then SIGTERM to the daemon ends the wait within five seconds.",
    ),
    entry(
        "not-faster",
        Seen,
        "Reads are not faster, or are slower",
        "The files are in memory, one reader keeps the disk busy already, or the device serves many requests at once.",
        "`forerun try SOURCE` measures it; [TUNING.md](TUNING.md) says what to look at.",
    ),
    entry(
        "old-files",
        Seen,
        "A changed file shows its old bytes",
        "An open file shows changes after a second, and with `--unchanging` never.",
        "Open it again; leave `--unchanging` away where files change.",
    ),
    entry(
        "in-use",
        Forerun,
        "is in use: programs have files open there",
        "A program has a file open below the mount point, or stands in it.",
        "`fuser -vm MOUNTPOINT` names it; `forerun umount --lazy MOUNTPOINT`.",
    ),
    entry(
        "old-journal",
        Forerun,
        "a journal of version .., and this program reads",
        "The journal was written by another version of forerun.",
        "Replay it with that version: decisions differ from one to the next.",
    ),
    entry(
        "yama",
        Forerun,
        "kernel.yama.ptrace_scope is 3",
        "`forerun watch` takes descriptors of programs, which the strictest mode of Yama forbids.",
        "2 or less in `/etc/sysctl.d`, and a reboot.",
    ),
    entry(
        "tracefs",
        Forerun,
        "tracefs is not mounted",
        "`forerun watch` reads the layout of the kernel's events there.",
        "`mount -t tracefs nodev /sys/kernel/tracing`.",
    ),
    entry(
        "tracefs-rights",
        Forerun,
        "permission denied: needs root, or CAP_DAC_READ_SEARCH",
        "`forerun watch` reads the layout of the kernel's events in tracefs, which is root's.",
        "Run it as root, or by `forerun-watch.service`.",
    ),
    entry(
        "no-event",
        Forerun,
        "this kernel has no event",
        "The kernel is older than Linux 6.18, whose events of readahead `--seeing readahead` asks for, or was built without events.",
        "`forerun watch` without `--seeing` takes block events, from Linux 5.14 on; `forerun mount` and `forerun tune` need none.",
    ),
    entry(
        "no-field",
        Forerun,
        "of this kernel has no field",
        "`forerun watch` reads fields of the kernel's events by their names, and one has another name here.",
        "`forerun mount`, or `forerun tune`; report the version of the kernel.",
    ),
    entry(
        "no-inodes",
        Forerun,
        "this kernel does not tell the inodes of descriptors",
        "`forerun watch` finds a reader's open file by its inode, which kernels before Linux 5.14 do not tell.",
        "`forerun mount` or `forerun tune`, or a newer kernel.",
    ),
    entry(
        "log-filter",
        Forerun,
        "FORERUN_LOG=..: must be a level",
        "The variable has a word that is no level.",
        "`error`, `warn`, `info`, `debug`, `trace`, `off`, or parts as in `warn,forerun_io=debug`.",
    ),
    entry(
        "bits",
        Forerun,
        "is bits to some and bytes to others",
        "A small b is a bit in networks.",
        "`MB/s` for bytes; eight megabits are 1 MB.",
    ),
];

impl Entry {
    /// Whether a message is this one: its fixed parts, in their order. A symptom has words of every day, and is meant
    /// by the whole of it alone.
    #[must_use]
    pub fn is(&self, message: &str) -> bool {
        let mut rest = message.trim();
        if self.by == Seen {
            return rest
                .trim_end_matches('.')
                .eq_ignore_ascii_case(self.printed);
        }
        self.parts().all(|part| match rest.find(part) {
            Some(at) => {
                rest = &rest[at + part.len()..];
                true
            }
            None => false,
        })
    }

    /// The parts of the message that do not vary.
    pub fn parts(&self) -> impl Iterator<Item = &'static str> {
        self.printed
            .split("..")
            .map(str::trim)
            .filter(|part| !part.is_empty())
    }
}

/// Entries of a code or of a message; a longer fixed part comes first, and a part of it is no entry of its own.
#[must_use]
pub fn find(wanted: &str) -> Vec<&'static Entry> {
    let is_code = |entry: &&Entry| entry.code.eq_ignore_ascii_case(wanted.trim());
    let by_code: Vec<_> = LIST.iter().filter(is_code).collect();
    if !by_code.is_empty() {
        return by_code;
    }
    let mut by_message: Vec<_> = LIST.iter().filter(|entry| entry.is(wanted)).collect();
    by_message.sort_by_key(|entry| std::cmp::Reverse(entry.printed.len()));
    let all = by_message.clone();
    by_message.retain(|entry| {
        let is_part =
            |other: &&Entry| other.code != entry.code && other.printed.contains(entry.printed);
        !all.iter().any(is_part)
    });
    by_message
}

/// An entry for a terminal.
#[must_use]
pub fn as_text(entry: &Entry) -> String {
    let Entry {
        code,
        printed,
        cause,
        remedy,
        ..
    } = entry;
    format!("{code}: {printed}\n  cause   {cause}\n  remedy  {remedy}\n")
}
