//! A source that is taken away by force while programs read: its disk goes, or its server is cut
//! off.
//!
//! In every case no program hangs, readers get the bytes before the fault and then its error, the
//! daemon goes on with other files, and afterwards everything can be taken down.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, RwLock};
use std::thread;
use std::time::{Duration, SystemTime};

use rustix::io::Errno;
use tempfile::TempDir;

use super::silent::file_attributes;
use super::wait::PATIENCE;
use super::{Mounted, bytes, can_mount, folder, is_mounted, run, skipped, take_off, wait};

/// Files on the lost mount. Together they are three times the memory of a mount.
const FILES: u64 = 4;
const FILE_BYTES: usize = 24 << 20;

/// A source with a file of its own, `other`, and a mount on its folder `lost`. References to it
/// must be gone before it is dropped.
fn source_with_a_mount_point() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir_all(place.path().join("source/lost")).unwrap();
    fs::write(place.path().join("source/other"), bytes(1 << 20, 9)).unwrap();
    place
}

/// A disk slow enough that most readers wait for it when the fault comes.
const SLOW: &[&str] = &["--emulate", "switching=1ms,rate=40MB/s"];

/// No reader goes further before the fault: the bytes behind it are more than the mount and the
/// kernel read ahead, so the fault is met, however late it comes.
const UNTIL_THE_FAULT: usize = FILE_BYTES / 8 * 5;

fn mount_of(place: &Path, flags: &[&str]) -> Option<Mounted> {
    let above = folder();
    fs::remove_dir(above.path().join("source")).unwrap();
    symlink(place.join("source"), above.path().join("source")).unwrap();
    Mounted::of(above, flags)
}

fn other_files_are_served(mounted: &Mounted) {
    let (end, ended) = channel();
    let (other, point) = (mounted.point("other"), mounted.point(""));
    // A thread of its own: if it hangs, the test ends nevertheless.
    thread::spawn(move || {
        assert!(fs::read(other).unwrap() == bytes(1 << 20, 9));
        assert_eq!(
            fs::read_dir(point).unwrap().filter_map(Result::ok).count(),
            2
        );
        end.send(()).unwrap();
    });
    let served = ended.recv_timeout(PATIENCE);
    served.expect("other files are served");
}

/// The mount goes as mounts do, and its daemon with it.
fn ends_cleanly(mut mounted: Mounted) {
    let point = mounted.folder.path().join("point");
    let output = take_off(&point);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(mounted.ended().success());
    assert!(!is_mounted(&point));
}

/// Reads a file as it is, calls `begun` after the first pieces, which waits until all readers are
/// there, and `fault` most of the way on, which waits until the fault is there, and goes on to the
/// error or the end; the bytes before that are compared.
fn read_to_the_fault(
    path: &Path,
    content: &[u8],
    begun: impl FnOnce(),
    fault: impl FnOnce(),
) -> std::io::Error {
    let mut file = File::open(path).unwrap();
    let (mut buffer, mut at) = (vec![0; 128 << 10], 0);
    let (mut begun, mut fault) = (Some(begun), Some(fault));
    loop {
        match file.read(&mut buffer) {
            Ok(count) => {
                assert!(buffer[..count] == content[at..at + count], "at {at}");
                at += count;
                assert!(count > 0, "ends at {at} without an error");
            }
            Err(error) => return error,
        }
        if at >= 512 << 10
            && let Some(begun) = begun.take()
        {
            begun();
        }
        if at >= UNTIL_THE_FAULT
            && let Some(fault) = fault.take()
        {
            fault();
        }
    }
}

/// Has the first files of `lost` read at a time, and does something once all readers have begun;
/// the errors they end with. A reader that hangs is left behind, so that the test ends.
fn while_read(mounted: &Mounted, files: u64, fault: impl FnOnce()) -> Vec<std::io::Error> {
    let (tell, told) = channel();
    let (end, ended) = channel();
    let gate = Arc::new(RwLock::new(()));
    let closed = gate.write().unwrap();
    // A reader that is ahead of the others could wait for the silent server with all requests the
    // device takes at a time, before the others have read a byte.
    let all = Arc::new(RwLock::new(()));
    let before_all = all.write().unwrap();
    for number in 0..files {
        let (tell, end, gate, all) = (tell.clone(), end.clone(), gate.clone(), all.clone());
        let path = mounted.point(format!("lost/{number}"));
        thread::spawn(move || {
            let content = bytes(FILE_BYTES, number);
            let begun = || {
                tell.send(()).unwrap();
                drop(all.read());
            };
            let open = || drop(gate.read());
            end.send(read_to_the_fault(&path, &content, begun, open))
                .unwrap();
        });
    }
    drop((tell, end));
    for _ in 0..files {
        told.recv_timeout(PATIENCE).expect("every reader begins");
    }
    drop(before_all);
    fault();
    drop(closed);
    let each = (0..files).map(|_| ended.recv_timeout(PATIENCE));
    each.map(|error| error.expect("every reader ends"))
        .collect()
}

/// An ext4 file system in an image behind a loop device, mounted on the folder `lost` of a source.
struct Disk {
    place: TempDir,
    device: String,
}

impl Disk {
    /// With the files on it, numbered; none, with the reason printed, where that cannot be done.
    fn new() -> Option<Self> {
        if !can_mount() {
            return None;
        }
        let place = source_with_a_mount_point();
        let image = place.path().join("image");
        File::create(&image).unwrap().set_len(160 << 20).unwrap();
        done("mkfs.ext4", &["-q".as_ref(), image.as_ref()])?;
        let words = ["--find", "--show"].map(str::as_ref);
        let device = done("losetup", &[words[0], words[1], image.as_ref()])?;
        let disk = Self { place, device };
        // Bytes must be on the disk, or the daemon would find them in memory.
        done("mount", &[disk.device.as_ref(), disk.lost().as_ref()])?;
        for number in 0..FILES {
            let path = disk.lost().join(number.to_string());
            fs::write(&path, bytes(FILE_BYTES, number)).unwrap();
            File::open(&path).unwrap().sync_all().unwrap();
        }
        Some(disk)
    }

    fn lost(&self) -> PathBuf {
        self.place.path().join("source/lost")
    }

    fn image(&self) -> PathBuf {
        self.place.path().join("image")
    }

    /// Whether the kernel has let go of the image. It does so after the last close of the device,
    /// that of any program which looked into it too, without a notice.
    fn is_let_go(&self) -> bool {
        let mut blocks = fs::read_dir("/sys/block").unwrap();
        !blocks.any(|block| {
            let file = block.unwrap().path().join("loop/backing_file");
            fs::read_to_string(file).is_ok_and(|file| Path::new(file.trim()) == self.image())
        })
    }

    fn undo(&self) {
        run("umount", &["-lq".as_ref(), self.lost().as_ref()]);
        if !self.is_let_go() {
            run("losetup", &["--detach".as_ref(), self.device.as_ref()]);
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.undo();
    }
}

/// A program's output; none, and the test is skipped, if it cannot run here.
#[track_caller]
fn done(program: &str, arguments: &[&std::ffi::OsStr]) -> Option<String> {
    let output = Command::new(program).args(arguments).output();
    let reason = match output {
        Ok(output) if output.status.success() => {
            return Some(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    skipped(format_args!("{program}: {reason}"));
    None
}

/// The disk ends in the middle of its files: reads of it give `EIO`, as of a disk that was
/// pulled out.
fn cut_short(disk: &Disk) {
    let image = File::options().write(true).open(disk.image()).unwrap();
    image.set_len(0).unwrap();
}

/// The same, after both its mount and its device were taken down as far as the kernel lets them
/// while they are in use.
fn torn_out(disk: &Disk) {
    let lost = disk.lost();
    assert!(
        run("umount", &["-l".as_ref(), lost.as_ref()])
            .status
            .success()
    );
    run("losetup", &["--detach".as_ref(), disk.device.as_ref()]);
    cut_short(disk);
}

fn a_lost_disk(fault: fn(&Disk)) {
    let Some(disk) = Disk::new() else {
        return;
    };
    let Some(mounted) = mount_of(disk.place.path(), SLOW) else {
        return;
    };
    for error in while_read(&mounted, FILES, || fault(&disk)) {
        assert_eq!(Errno::from_io_error(&error), Some(Errno::IO), "{error}");
    }
    other_files_are_served(&mounted);
    // A call on a changed name or file ends, and never with wrong bytes.
    let again = fs::read(mounted.point("lost/0"));
    assert!(again.is_err(), "a file without a disk was read to its end");
    ends_cleanly(mounted);
    // The disk is not in use any more: it goes without force.
    if is_mounted(&disk.lost()) {
        wait::eventually("the disk is free", || {
            run("umount", &[disk.lost().as_ref()]).status.success()
        });
    }
    disk.undo();
    wait::eventually("the loop device lets go", || disk.is_let_go());
}

#[test]
fn a_disk_that_fails_under_its_readers_gives_eio_and_holds_up_nobody() {
    a_lost_disk(cut_short);
}

#[test]
fn a_disk_unmounted_and_detached_under_its_readers_does_the_same() {
    a_lost_disk(torn_out);
}

/// A file system whose server answers reads of the first half of its files. The others wait, and
/// that is told.
struct Server {
    contents: Vec<Vec<u8>>,
    unanswered: Mutex<Vec<fuser::ReplyData>>,
    tell: Mutex<Sender<()>>,
}

impl Server {
    fn attributes(node: u64) -> fuser::FileAttr {
        let (kind, perm, size) = match node {
            1 => (fuser::FileType::Directory, 0o755, 0),
            _ => (fuser::FileType::RegularFile, 0o644, FILE_BYTES as u64),
        };
        file_attributes(node, kind, perm, size, SystemTime::UNIX_EPOCH)
    }
}

/// The file `N` has the number `N + 2`.
const FIRST: u64 = 2;
const AN_HOUR: Duration = Duration::from_secs(3600);

impl fuser::Filesystem for Server {
    fn lookup(
        &self,
        _: &fuser::Request,
        _: fuser::INodeNo,
        name: &std::ffi::OsStr,
        reply: fuser::ReplyEntry,
    ) {
        match name.to_str().and_then(|name| name.parse::<u64>().ok()) {
            Some(number) if number < FILES => {
                let attributes = Self::attributes(number + FIRST);
                reply.entry(&AN_HOUR, &attributes, fuser::Generation(0));
            }
            _ => reply.error(fuser::Errno::ENOENT),
        }
    }

    fn getattr(
        &self,
        _: &fuser::Request,
        node: fuser::INodeNo,
        _: Option<fuser::FileHandle>,
        reply: fuser::ReplyAttr,
    ) {
        reply.attr(&AN_HOUR, &Self::attributes(node.0));
    }

    fn read(
        &self,
        _: &fuser::Request,
        node: fuser::INodeNo,
        _: fuser::FileHandle,
        offset: u64,
        size: u32,
        _: fuser::OpenFlags,
        _: Option<fuser::LockOwner>,
        reply: fuser::ReplyData,
    ) {
        let begin = (offset as usize).min(FILE_BYTES);
        let end = (begin + size as usize).min(FILE_BYTES);
        if end > FILE_BYTES / 2 {
            self.unanswered.lock().unwrap().push(reply);
            // The last ones come when the test has heard enough.
            let _ = self.tell.lock().unwrap().send(());
            return;
        }
        reply.data(&self.contents[(node.0 - FIRST) as usize][begin..end]);
    }
}

/// Ends the connection of a FUSE mount when dropped. In use, it stays where it is.
struct CutOff<'a>(&'a Path);

impl Drop for CutOff<'_> {
    fn drop(&mut self) {
        run("umount", &["-f".as_ref(), self.0.as_ref()]);
    }
}

#[test]
fn readers_of_a_server_that_is_cut_off_while_they_wait_get_an_error() {
    // Other reads may wait for the silent server: see `Limits` in MOUNT.md.
    a_lost_server(&[], FILES, false);
}

#[test]
fn a_server_that_does_not_answer_one_reader_holds_up_no_other_file() {
    // Without an emulated disk, which would be one for all: `other` lies on its own.
    a_lost_server(&[], 1, true);
}

#[test]
fn with_the_kernels_ring_too_reads_of_a_server_that_is_cut_off_end() {
    a_lost_server(&["--backend", "uring"], 1, false);
}

fn a_lost_server(flags: &[&str], readers: u64, others_go_on: bool) {
    if !can_mount() {
        return;
    }
    let place = source_with_a_mount_point();
    let lost = place.path().join("source/lost");
    let (tell, told) = channel();
    let server = Server {
        contents: (0..FILES).map(|file| bytes(FILE_BYTES, file)).collect(),
        unanswered: Mutex::default(),
        tell: Mutex::new(tell),
    };
    let served = fuser::spawn_mount(server, &lost, &fuser::Config::default()).unwrap();
    let Some(mounted) = mount_of(place.path(), flags) else {
        return;
    };
    let cut_off = CutOff(&lost);
    let errors = while_read(&mounted, readers, || {
        // How many reads of one device wait for it at a time is the engine's to say; the others
        // wait in the engine.
        told.recv_timeout(PATIENCE).expect("a read without answer");
        if others_go_on {
            other_files_are_served(&mounted);
        }
        drop(cut_off);
    });
    for error in errors {
        let errno = Errno::from_io_error(&error);
        let known = [Errno::NOTCONN, Errno::CONNABORTED, Errno::IO];
        assert!(errno.is_some_and(|e| known.contains(&e)), "{error}");
    }
    other_files_are_served(&mounted);
    let gone = File::open(mounted.point("lost/1")).and_then(|mut f| f.read(&mut [0; 10]));
    assert_ne!(gone.unwrap_err().kind(), ErrorKind::NotFound);
    ends_cleanly(mounted);
    // The source is not in use any more: it goes without force.
    let output = run("umount", &[lost.as_ref()]);
    assert!(output.status.success() && !is_mounted(&lost), "still held");
    drop(served);
}
