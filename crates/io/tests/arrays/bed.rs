//! A btrfs on loop devices, made for one test and gone with it.
//!
//! ```text
//! four sparse images --losetup--> four loop devices --mkfs.btrfs--> mounted in a namespace of this thread
//!                                 set to go with their last user as soon as they are mounted
//! ```

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// mkfs.btrfs takes 109 MiB on each of several; this leaves room for a balance.
const IMAGE_BYTES: u64 = 640 << 20;

const IMAGES: usize = 4;

pub(crate) struct ArrayBed {
    folder: TempDir,
    devices: Vec<String>,
    /// How many of the devices, from the first on, go by themselves: their numbers may be another's by then.
    released: usize,
    is_mounted: bool,
}

/// Runs a program that must succeed; its output.
#[track_caller]
fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Bytes that were read from a device so far.
pub(crate) fn bytes_read(device: &Path) -> u64 {
    let name = device.file_name().unwrap();
    let stat = Path::new("/sys/block").join(name).join("stat");
    let stat = fs::read_to_string(stat).unwrap();
    let sectors: u64 = stat.split_whitespace().nth(2).unwrap().parse().unwrap();
    sectors * 512
}

fn has_program(name: &str) -> bool {
    Command::new(name).arg("--version").output().is_ok()
}

/// Why no bed can be made here.
fn missing() -> Option<&'static str> {
    // SAFETY: it has no arguments and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return Some("needs root: mounts and loop devices");
    }
    if !Path::new("/dev/loop-control").exists() {
        return Some("needs loop devices: no /dev/loop-control");
    }
    if !Path::new("/sys/fs/btrfs").exists() {
        return Some("needs btrfs in the kernel");
    }
    let programs = ["mkfs.btrfs", "btrfs", "losetup", "blockdev"];
    let absent = !programs.into_iter().all(has_program);
    absent.then_some("needs mkfs.btrfs and btrfs (btrfs-progs), losetup and blockdev (util-linux)")
}

impl ArrayBed {
    /// A mounted file system with this profile of data, or why there can be none.
    pub(crate) fn make(profile: &str) -> Result<Self, String> {
        if let Some(missing) = missing() {
            return Err(missing.into());
        }
        // SAFETY: the namespace becomes this thread's alone; no memory is involved.
        if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
            let error = io::Error::last_os_error();
            return Err(format!("needs a mount namespace: {error}"));
        }
        // Mounts made here are not seen outside, and end with the thread.
        mount(
            "none",
            Path::new("/"),
            "",
            libc::MS_REC | libc::MS_PRIVATE,
            "",
        )
        .unwrap();
        let mut bed = Self {
            folder: tempfile::tempdir().unwrap(),
            devices: Vec::new(),
            released: 0,
            is_mounted: false,
        };
        for _ in 0..IMAGES {
            bed.attach();
        }
        let mut arguments = vec!["-q", "-f", "-K", "-d", profile, "-m", "raid1"];
        arguments.extend(bed.devices.iter().map(String::as_str));
        run("mkfs.btrfs", &arguments);
        fs::create_dir(bed.root()).unwrap();
        let members: Vec<_> = bed.devices.iter().map(|d| format!("device={d}")).collect();
        // A small file goes into the inode, and written bytes are found in extents of their own.
        let options = members.join(",") + ",max_inline=2048";
        mount(
            &bed.devices[0],
            &bed.root(),
            "btrfs",
            libc::MS_NOATIME,
            &options,
        )
        .unwrap();
        bed.is_mounted = true;
        bed.release();
        Ok(bed)
    }

    /// One device more, which is not of the file system yet.
    fn attach(&mut self) -> String {
        let name = format!("disk{}", self.devices.len());
        let image = self.folder.path().join(name);
        File::create(&image).unwrap().set_len(IMAGE_BYTES).unwrap();
        let device = run("losetup", &["--find", "--show", image.to_str().unwrap()]);
        // The device holds it.
        fs::remove_file(&image).unwrap();
        self.devices.push(device.clone());
        device
    }

    /// The devices are in use: from now on each goes with its last user.
    fn release(&mut self) {
        for device in &self.devices[self.released..] {
            let _ = Command::new("losetup").args(["--detach", device]).output();
        }
        self.released = self.devices.len();
    }

    /// Puts a new device in the place of the first one; both, the old one first.
    pub(crate) fn replace(&mut self) -> [PathBuf; 2] {
        let (old, new) = (self.devices[0].clone(), self.attach());
        let root = self.root();
        let root = root.to_str().unwrap();
        run("btrfs", &["replace", "start", "-B", "-f", &old, &new, root]);
        self.release();
        // It is not in use any more.
        self.devices.remove(0);
        self.released -= 1;
        [old, new].map(PathBuf::from)
    }

    /// Where it is mounted.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("files")
    }

    /// Everything is on the devices, and they are read anew.
    pub(crate) fn settle(&self) {
        let root = File::open(self.root()).unwrap();
        // SAFETY: the descriptor is open for the call.
        assert_eq!(unsafe { libc::syncfs(root.as_raw_fd()) }, 0);
        for device in &self.devices {
            run("blockdev", &["--flushbufs", device]);
        }
    }

    /// Moves all data into chunks of another profile.
    pub(crate) fn convert(&self, profile: &str) {
        let filter = format!("-dconvert={profile}");
        let root = self.root();
        run(
            "btrfs",
            &["balance", "start", "-f", &filter, root.to_str().unwrap()],
        );
    }

    /// Without the rights of root.
    pub(crate) fn as_nobody<T>(&self, work: impl FnOnce() -> T) -> T {
        become_user(65_534);
        let result = work();
        become_user(0);
        result
    }
}

/// Changes the effective user of this thread alone: the call itself, which the C library would make
/// in each thread.
fn become_user(user: libc::uid_t) {
    const SAME: libc::uid_t = libc::uid_t::MAX;
    // SAFETY: plain numbers; no memory is involved.
    let failed = unsafe { libc::syscall(libc::SYS_setresuid, SAME, user, SAME) } != 0;
    assert!(!failed, "{}", io::Error::last_os_error());
}

fn mount(
    source: &str,
    target: &Path,
    kind: &str,
    flags: libc::c_ulong,
    options: &str,
) -> io::Result<()> {
    let text = |text: &[u8]| CString::new(text).map_err(io::Error::other);
    let (source, kind) = (text(source.as_bytes())?, text(kind.as_bytes())?);
    let target = text(target.as_os_str().as_bytes())?;
    let options = text(options.as_bytes())?;
    // SAFETY: four texts that end with zero and live through the call.
    let failed = unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            kind.as_ptr(),
            flags,
            options.as_ptr().cast(),
        )
    } != 0;
    match failed {
        true => Err(io::Error::last_os_error()),
        false => Ok(()),
    }
}

impl Drop for ArrayBed {
    fn drop(&mut self) {
        if self.is_mounted {
            let target = CString::new(self.root().as_os_str().as_bytes());
            if let Ok(target) = target {
                // SAFETY: a text that ends with zero. Detached, so that a file still open after a failed
                // assertion does not keep it.
                unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
            }
        }
        self.release();
    }
}
