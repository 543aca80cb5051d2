//! The daemon: mounts the [`export`](crate::export) and serves it until it is unmounted.
//!
//! `up` starts it as `forerun-bed serve`, a command of its own so that it survives `up`. It reads
//! the bed from the state directory, says `ready` on its output once the export is mounted, and
//! ends when that is unmounted; there is no other way to stop it, and none is needed.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use fuser::{Config, MountOption, Session};

use crate::export::Export;
use crate::failure::{At, Failure};
use crate::plan::BedPaths;
use crate::state;

/// The daemon's line when the export is there.
const READY: &str = "ready";

/// The kernel's name for the type of the export, and of any FUSE mount made by root directly.
pub const FILE_SYSTEM: &str = "fuse";

/// Serves the bed whose state is in `folder`.
///
/// # Errors
/// A state that cannot be read, an export that cannot be mounted or served.
pub fn run(folder: &Path) -> Result<(), Failure> {
    // The end of the session of the terminal that ran `up` must not end the disks. It fails only
    // where the daemon leads a session already.
    let _ = rustix::process::setsid();
    let bed = state::bed(folder)?;
    let place = BedPaths::of(folder, &bed.disks)?;
    let Some(mountpoint) = &place.export else {
        return Err(Failure::Usage(
            "disks.device: a local disk is not served".into(),
        ));
    };
    let export = Export::open(&place.images, &bed.disks).at(&place.images)?;
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("forerun-bed".into()),
        MountOption::Subtype("forerun-bed".into()),
        MountOption::DefaultPermissions,
    ];
    let session = Session::new(export, mountpoint, &config).at(mountpoint)?;
    writeln!(io::stdout(), "{READY}").at(folder)?;
    session.run().at(mountpoint)
}

/// Starts the daemon and waits until it serves.
///
/// # Errors
/// It cannot be started, or ended before it was ready; the end of its log says why.
pub fn start(folder: &Path) -> Result<(), Failure> {
    let log = folder.join(state::LOG);
    let program = std::env::current_exe().at(folder)?;
    let mut child = Command::new(program)
        .arg("serve")
        .arg("--state")
        .arg(folder)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(&log).at(&log)?)
        .spawn()
        .at(folder)?;
    let mut said = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut said).at(folder)?;
    }
    if said.trim_end() == READY {
        return Ok(());
    }
    let status = child.wait().at(folder)?;
    let why = std::fs::read_to_string(&log).unwrap_or_default();
    Err(Failure::Run(format!(
        "the daemon ended with {status}: {}",
        why.trim_end()
    )))
}
