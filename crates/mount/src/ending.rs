//! The end of a mount, also of one whose source does not answer.
//!
//! Called once the mount serves. It ends in one of three ways, and all lead through the same steps,
//! each of which takes a bounded time:
//!
//! ```text
//! a signal --------> taken off its path --> session ends, or GRACE is over, or a second signal --\
//! umount, fusermount3 -u -------------------------------------------------------------------------+
//! umount -f, abort --> taken off its path, a failure ---------------------------------------------+
//!   driver: no reads any more; requests in flight have LAST to end <-----------------------------/
//!   all ended: journal, counters        not all: the connection is cut, so that no program hangs
//! ```
//!
//! Signals are SIGTERM, SIGINT, SIGQUIT and SIGHUP, of a terminal that is closed. A session that ends by itself with an error takes the mount off its path. A second signal ends
//! the process after [`LAST`] in any state.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use forerun_core::Ledger;
use fuser::BackgroundSession;
use rustix::fs::{Mode, OFlags, open, openat};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use super::mounted::Mounted;
use super::own_mount::OwnMount;
use crate::background::is_ignored;
use crate::failure::Failure;

/// How long programs with open files may go on after a signal. With [`LAST`] the mount has ended
/// within five seconds; systemd waits ninety before it kills, a person does not.
const GRACE: Duration = Duration::from_secs(4);

/// Time limit of requests in flight at the end: many times a disk's time for one.
const LAST: Duration = Duration::from_millis(500);

/// The file system of FUSE connections, by `linux/magic.h`.
const FUSE_CONTROL: u32 = 0x6573_5543;

/// Takes a mount off; whether it was there.
type TakeOff = fn(&OwnMount, &Path) -> io::Result<bool>;

/// Something that ends a mount.
#[derive(Debug)]
pub enum Event {
    /// A signal.
    Signal,
    /// It was taken off, or its session failed.
    Ended(Result<(), String>),
}

/// Delivers signals from now on; the second one ends the process in any case.
///
/// # Errors
/// Signals cannot be caught.
pub fn catch_signals(tell: Sender<Event>) -> Result<(), Failure> {
    let cannot = |e| Failure::Run(format!("cannot catch signals: {e}"));
    let mut wanted = vec![SIGTERM, SIGINT];
    // `nohup` and shells have a program ignore these.
    wanted.extend([SIGHUP, SIGQUIT].iter().filter(|s| !is_ignored(**s)));
    let mut signals = Signals::new(wanted).map_err(cannot)?;
    let wait = move || {
        let mut signals = signals.forever();
        if signals.next().is_some() && tell.send(Event::Signal).is_ok() && signals.next().is_some()
        {
            let _ = tell.send(Event::Signal);
            thread::park_timeout(2 * LAST);
            tracing::error!("ended by a second signal, with calls to the source under way");
            #[expect(
                clippy::disallowed_methods,
                reason = "threads that hang in the source never return, so main cannot"
            )]
            std::process::exit(1);
        }
    };
    thread::Builder::new()
        .name("forerun-signal".into())
        .spawn(wait)
        .map(drop)
        .map_err(cannot)
}

/// A file that may not grow further (`ulimit -f`) is an error of the write, `EFBIG`, and not the end of the
/// process.
pub fn survive_limits_of_files() {
    let flag = Arc::default();
    if let Err(error) = signal_hook::flag::register(SIGXFSZ, flag) {
        tracing::warn!("a limit of the size of files would end this process: {error}");
    }
}

/// Delivers the end of standard input as a signal: another process holds its other end as long as it
/// uses the mount, and cannot end it otherwise if it is killed.
///
/// # Errors
/// No thread can be started.
pub fn tell_of_input_end(tell: Sender<Event>) -> Result<(), Failure> {
    let wait = move || {
        // Nothing is sent; an error is an end, too.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        let _ = tell.send(Event::Signal);
    };
    thread::Builder::new()
        .name("forerun-input".into())
        .spawn(wait)
        .map(drop)
        .map_err(|e| Failure::Run(format!("cannot wait for the end of standard input: {e}")))
}

/// Delivers the end of the session.
///
/// # Errors
/// No thread can be started.
pub fn tell_of_end(session: BackgroundSession, tell: Sender<Event>) -> io::Result<()> {
    let wait = move || {
        let ended = match session.join() {
            // Taken off while requests were under way: as good an end as any.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => Ok(()),
            ended => ended.map_err(|error| error.to_string()),
        };
        // The receiver is gone if the mount ended already.
        let _ = tell.send(Event::Ended(ended));
    };
    thread::Builder::new()
        .name("forerun-session".into())
        .spawn(wait)
        .map(drop)
}

/// Waits for the end, and ends the driver; the counters.
///
/// # Errors
/// The session failed, the journal could not be written, or counters do not add up.
pub fn wait(
    fs: &dyn Mounted,
    mountpoint: &Path,
    own: Option<OwnMount>,
    connection: Option<&Connection>,
    events: &Receiver<Event>,
) -> Result<Ledger, Failure> {
    let mut failed = None;
    match events.recv() {
        Ok(Event::Signal) => {
            let _ = take_off(mountpoint, own, OwnMount::take_off);
            // A second signal, the end of the session, or time: the same from here on.
            let _ = events.recv_timeout(GRACE);
        }
        Ok(Event::Ended(ended)) => failed = after_session(ended, mountpoint, own),
        Err(_) => {}
    }
    let driver = fs.engine().take();
    let driver = driver.ok_or_else(|| Failure::Run("the mount ended twice".into()))?;
    let (ledger, all_ended) = driver
        .finish_within(LAST)
        .map_err(|e| Failure::Run(e.to_string()))?;
    if all_ended {
        ledger
            .check()
            .map_err(|e| Failure::Run(format!("the counters do not add up: {e}")))?;
    } else {
        tracing::warn!("the source still owes answers: they are not waited for");
        if let Some(connection) = connection {
            connection.cut();
        }
    }
    failed.map_or(Ok(ledger), Err)
}

/// Once its session has ended nothing serves the mount, and it must not stay on its path; why it should not have ended.
fn after_session(
    ended: Result<(), String>,
    mountpoint: &Path,
    own: Option<OwnMount>,
) -> Option<Failure> {
    let is_failed = ended.is_err();
    let (how, why): (TakeOff, _) = match ended {
        Err(error) => (OwnMount::take_off, format!("the session ended: {error}")),
        Ok(()) => {
            own?;
            let why = "was cut off while programs used it (`umount -f`, `abort`)";
            let why = format!("{}: {why}", mountpoint.display());
            (OwnMount::take_off_dead, why)
        }
    };
    let taken = take_off(mountpoint, own, how).recv_timeout(GRACE);
    // A mount that was taken off by its user is gone.
    (is_failed || taken != Ok(false)).then_some(Failure::Run(why))
}

/// Takes this mount off its path, and no other; delivers whether it stood there. On a thread of its own: a server on
/// the way to the path may not answer either.
fn take_off(mountpoint: &Path, own: Option<OwnMount>, how: TakeOff) -> Receiver<bool> {
    let (tell, taken) = channel();
    let path = mountpoint.to_owned();
    let take_off = move || {
        let unknown = || io::Error::other("the kernel does not tell which mount it is");
        let stood = own.ok_or_else(unknown).and_then(|own| how(&own, &path));
        if let Err(error) = &stood {
            tracing::warn!("cannot unmount {}: {error}", path.display());
        }
        let _ = tell.send(stood.unwrap_or(true));
    };
    let thread = thread::Builder::new().name("forerun-unmount".into());
    if let Err(error) = thread.spawn(take_off) {
        tracing::warn!("cannot unmount {}: {error}", mountpoint.display());
    }
    taken
}

/// A mount's entry among the kernel's FUSE connections, held open: its name is a device number, which
/// belongs to another file system as soon as this one is gone, and the entry is empty then.
#[derive(Debug)]
pub struct Connection(OwnedFd);

impl Connection {
    /// That of the mount with this device; none if the kernel shows no connections.
    #[must_use]
    pub fn of((_, minor): (u32, u32)) -> Option<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let entry = openat(connections().ok()?, minor.to_string(), flags, Mode::empty());
        entry.ok().map(Self)
    }

    /// Has the kernel end requests that wait for this mount. It would do so when the process is
    /// gone, but the process is not gone while one of its threads waits for a server.
    fn cut(&self) {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let cut = openat(&self.0, "abort", flags, Mode::empty())
            .and_then(|file| rustix::io::write(file, b"1"));
        // Without the file the connection has ended.
        if let Err(error) = cut
            && error != Errno::NOENT
        {
            tracing::warn!("programs that wait for the mount cannot be let go: {error}");
        }
    }
}

/// The kernel's folder of FUSE connections: at its usual place, or by a private mount of our own.
fn connections() -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let usual = open("/sys/fs/fuse/connections", flags, Mode::empty());
    let is_there = usual.as_ref().is_ok_and(|folder| {
        rustix::fs::fstatfs(folder).is_ok_and(|found| found.f_type as u32 == FUSE_CONTROL)
    });
    if is_there {
        return usual;
    }
    let context = fsopen("fusectl", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    fsmount(
        &context,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    )
}
