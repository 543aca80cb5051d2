//! Process: the account that /proc gives of a reader.
//!
//! Asked once for each stream that begins: whose it is, which program, in which memory group, and whether it wants to
//! be left alone (I/O class idle). Names in /proc are chosen by users: a program may be called `a) R 1 (b`, or have a
//! line end in its name, so a name is never taken apart by the signs in it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The flag `PF_KTHREAD` in the ninth field of /proc/PID/stat.
const KERNEL_THREAD: u64 = 0x0020_0000;
/// `IOPRIO_WHO_PROCESS`, and the class `IOPRIO_CLASS_IDLE` in the upper bits of the answer.
const OF_THREAD: libc::c_int = 1;
const IDLE: libc::c_long = 3;

/// A reader's program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// The name of its binary, or of its process where that cannot be read.
    pub name: String,
    /// Its effective user.
    pub user: u32,
    /// Whether it is a thread of the kernel: a file server, or a loop device.
    pub is_kernel: bool,
    /// Its control groups: one path, or with version 1 one a controller.
    pub groups: Vec<Group>,
}

/// A control group that a process is in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// Controllers of version 1; none of version 2.
    pub controllers: String,
    /// Its path below the controller's mount.
    pub path: PathBuf,
}

impl Program {
    /// The program of a process; none if it has ended.
    #[must_use]
    pub fn of(process: u32) -> Option<Self> {
        let folder = PathBuf::from(format!("/proc/{process}"));
        let stat = fs::read(folder.join("stat")).ok()?;
        let (name, flags) = of_stat(&stat)?;
        // A program that was replaced while it runs keeps its name.
        let binary = fs::read_link(folder.join("exe")).ok().map(undeleted);
        let binary = binary.as_deref().and_then(Path::file_name);
        let groups = fs::read(folder.join("cgroup")).unwrap_or_default();
        Some(Self {
            name: binary.map_or(name, |name| name.to_string_lossy().into_owned()),
            user: fs::metadata(&folder).ok()?.uid(),
            is_kernel: flags & KERNEL_THREAD != 0,
            groups: groups_of(&groups),
        })
    }
}

/// The path of a link in /proc without the words that the kernel puts behind the name of a file that was unlinked.
pub(crate) fn undeleted(link: PathBuf) -> PathBuf {
    match link.as_os_str().as_bytes().strip_suffix(b" (deleted)") {
        Some(path) => OsStr::from_bytes(path).into(),
        None => link,
    }
}

/// Whether paths lead a process to the same files as this one.
pub(crate) fn shares_mounts(process: u32) -> bool {
    let of = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let own = of("self");
    own.is_some() && own == of(&process.to_string())
}

/// The name of a process; none if it has ended.
#[must_use]
pub fn name_of(process: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{process}/comm")).ok()?;
    let name = String::from_utf8_lossy(&name);
    Some(name.strip_suffix('\n').unwrap_or(&name).to_owned())
}

/// `123 (name) S 1 ..`: the name ends with the last bracket, and the flags are the seventh word behind it.
fn of_stat(stat: &[u8]) -> Option<(String, u64)> {
    let begin = stat.iter().position(|byte| *byte == b'(')?;
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let name = stat.get(begin + 1..end)?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    let flags = rest.split_ascii_whitespace().nth(6)?.parse().ok()?;
    Some((String::from_utf8_lossy(name).into_owned(), flags))
}

/// `4:memory:/a/b` a line; a path may contain anything but a line end, which the kernel escapes.
fn groups_of(text: &[u8]) -> Vec<Group> {
    let text = String::from_utf8_lossy(text);
    let of = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        Some(Group {
            controllers: parts.next()?.to_owned(),
            path: parts.next()?.into(),
        })
    };
    text.lines().filter_map(of).collect()
}

/// Whether a thread reads in the idle class of I/O.
#[expect(unsafe_code, reason = "ioprio_get has no safe interface")]
#[must_use]
pub fn is_idle(thread: u32) -> bool {
    // SAFETY: the call takes and gives numbers alone.
    let class = unsafe { libc::syscall(libc::SYS_ioprio_get, OF_THREAD, thread) };
    class >> 13 == IDLE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_like_the_rest_of_the_line() {
        let stat = b"12 (a) S 1 (b\n) R 1 12 12 0 -1 2129984 0 0";
        assert_eq!(of_stat(stat), Some(("a) S 1 (b\n".into(), 2_129_984)));
        assert_eq!(of_stat(b"12 )a( S 1"), None);
        assert_eq!(of_stat(b""), None);
    }

    #[test]
    fn this_process_is_a_program_and_no_thread_of_the_kernel() {
        let program = Program::of(std::process::id()).unwrap();
        assert!(
            !program.is_kernel && program.name.starts_with("forerun_watch"),
            "{program:?}"
        );
        assert_eq!(Program::of(u32::MAX), None);
    }

    #[test]
    fn a_program_whose_binary_was_replaced_keeps_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let binary = folder.path().join("reader");
        // Written by another process: a file that this one has open to write cannot be run.
        let cat = ["/bin/cat", "/usr/bin/cat"];
        let copied = std::process::Command::new("cp")
            .arg(cat.iter().find(|path| Path::new(path).exists()).unwrap())
            .arg(&binary)
            .status();
        assert!(copied.unwrap().success());
        let mut child = std::process::Command::new(&binary)
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        fs::remove_file(&binary).unwrap();
        let name = Program::of(child.id()).unwrap().name;
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(name, "reader");
        let odd = OsStr::from_bytes(b"/a\xff (deleted)");
        assert_eq!(undeleted(odd.into()).as_os_str().as_bytes(), b"/a\xff");
    }

    #[test]
    fn groups_of_both_versions() {
        let groups = groups_of(b"4:cpu,memory:/a:b\n0::/user\n\n");
        assert_eq!(groups.len(), 2);
        assert_eq!(groups[0].controllers, "cpu,memory");
        assert_eq!(groups[0].path, Path::new("/a:b"));
        assert_eq!(groups[1].controllers, "");
    }
}
