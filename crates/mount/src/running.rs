//! A running mount, from its start on.
//!
//! Called by the command once SOURCE and MOUNTPOINT are checked. Every step that can fail comes
//! before the mount is attached, so a mount that is visible works; files are written once all its threads are there, so that
//! a mount that fails leaves them as they were. Its end is in [`ending`].

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use forerun_core::{Bytes, Ledger};
use forerun_io::{Config, Driver, footprint};
use forerun_surface::daemon::metrics::Metrics;

use super::answers::OfMount;
use super::budget::Budget;
use super::control::Control;
use super::ending::{self, Connection, Event, catch_signals, tell_of_end, tell_of_input_end};
use super::fs::SourceFs;
use super::fs::passthrough::Mode;
use super::journal::JournalWriter;
use super::metrics;
use super::mounted::{Mounted, Serving};
use super::objects::ObjectFs;
use super::options::{Flag, kernel_flags};
use super::own_mount::OwnMount;
use super::point::{Checked, Source};
use super::read_times::ReadTimes;
use super::record::Recorder;
use super::report::Watched;
use super::trust::Trust;
use super::watch::Watch;
use super::{attach, journal, limits, readahead};
use crate::failure::Failure;
use crate::files::{RunFile, plain};

/// A mount as it is asked for, but for its engine.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Memory for the whole daemon.
    pub memory: Bytes,
    /// The name of the engine's preset.
    pub preset: &'static str,
    /// The kernel's belief in attributes and names.
    pub trust: Trust,
    /// Files that the kernel reads from the source by itself.
    pub passthrough: Mode,
    /// Other users may come in.
    pub allow_other: bool,
    /// The kernel's own readahead, if it is not the usual one.
    pub kernel_readahead: Option<Bytes>,
    /// Flags of the kernel.
    pub flags: Vec<Flag>,
    /// The address of the metrics.
    pub metrics: Option<SocketAddr>,
    /// The control socket.
    pub control: Option<PathBuf>,
    /// Its place if none was asked for; the mount works without it.
    pub usual_control: Option<PathBuf>,
    /// The engine's journal.
    pub journal: Option<PathBuf>,
    /// A record of reads, and its most bytes.
    pub record: Option<(PathBuf, Bytes)>,
    /// It ends with standard input.
    pub until_input_ends: bool,
}

/// A mount on its path. It is taken off when this is dropped, unless its end was left to [`ending`].
#[derive(Debug)]
struct Attached {
    own: Option<OwnMount>,
    mountpoint: PathBuf,
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(own) = self.own.take()
            && let Err(error) = own.take_off(&self.mountpoint)
        {
            tracing::warn!("cannot unmount {}: {error}", self.mountpoint.display());
        }
    }
}

/// See the [module](self). Dropped before its [`wait`](Self::wait) it is taken off.
#[derive(Debug)]
pub struct Running {
    attached: Attached,
    fs: Arc<dyn Mounted>,
    connection: Option<Connection>,
    events: Receiver<Event>,
    _watch: Watch,
    _journal: Option<Watch>,
    record: Option<(Arc<Recorder>, Watch)>,
    _control: Option<Control>,
    _metrics: Option<Metrics>,
}

impl Running {
    /// Builds the engine, mounts, and serves. `config` gets the engine's part of the memory.
    ///
    /// # Errors
    /// An error that names the missing or refused part.
    pub fn start(
        wanted: &Wanted,
        checked: Checked,
        config: impl FnOnce(Bytes) -> Result<Config, Failure>,
    ) -> Result<Self, Failure> {
        let Checked { source, mountpoint } = checked;
        let (tell, events) = channel();
        catch_signals(tell.clone())?;
        if wanted.until_input_ends {
            tell_of_input_end(tell.clone())?;
        }
        footprint::huge_pages_only_where_asked();
        footprint::large_allocations_are_mappings();
        let budget = Budget::of(wanted.memory, source.memory())?;
        limits::check(budget.engine)?;
        let config = config(budget.engine)?;
        let settings = config.settings.clone();
        let readahead = budget.readahead;
        let open = |path: &PathBuf| RunFile::open(path);
        let journal_file = wanted.journal.as_ref().map(open).transpose()?;
        let record_path = wanted.record.as_ref().map(|(path, _)| path);
        let record_file = record_path.map(open).transpose()?;
        let driver = driver(config, journal_file.as_ref())?;
        let name = source.name().to_owned();
        let fs = mounted(source, driver, wanted, &budget)?;
        let times = Arc::new(ReadTimes::default());
        let record = wanted.record.as_ref().zip(record_file.as_ref());
        let record = record.map(recorder).transpose()?;
        let watched = Arc::new(Watched {
            fs: fs.clone(),
            times: times.clone(),
            source: name.clone(),
            mountpoint: mountpoint.clone(),
            device: OnceLock::new(),
            preset: wanted.preset,
            settings,
            budget,
            begun: Instant::now(),
            record: record.clone(),
        });
        let metrics = wanted
            .metrics
            .map(|address| metrics::start(address, watched.clone()))
            .transpose()?;
        let control = match (&wanted.control, &wanted.usual_control) {
            (Some(path), _) => Some(Control::start(path, OfMount::new(watched.clone()))?),
            (None, Some(path)) => Control::start(path, OfMount::new(watched.clone()))
                .inspect_err(|e| tracing::info!("`forerun top` will not find this mount: {e}"))
                .ok(),
            (None, None) => None,
        };
        limits::check(Bytes(0))?;
        let flags = kernel_flags(&wanted.flags);
        let (kernel, own) = attach::mount(&name, &mountpoint, flags, wanted.allow_other)?;
        let attached = Attached { own, mountpoint };
        let device = own.map(|own| own.device());
        if let Some(device) = device {
            let _ = watched.device.set(device);
        }
        let connection = device.and_then(Connection::of);
        let serving = Serving {
            device,
            everyone: wanted.allow_other,
            room: budget.room,
            trust: wanted.trust,
            times,
            record: record.clone(),
        };
        let begun = fs.clone().serve(kernel, serving);
        let begun = begun.and_then(|(session, watch)| {
            tell_of_end(session, tell)?;
            Ok(watch)
        });
        let cannot = |error| Failure::Run(format!("cannot serve the mount: {error}"));
        let watch = begun.map_err(cannot)?;
        let journaled = fs.clone();
        let write = move || {
            if let Some(driver) = journaled.engine().driver() {
                driver.write_journal();
            }
        };
        let journal = wanted.journal.as_ref().map(|_| {
            write();
            Watch::every(journal::PERIOD, write)
        });
        let journal = journal.transpose().map_err(cannot)?;
        let record = record.map(|record| {
            let writing = record.clone();
            let watch = Watch::every(journal::PERIOD, move || writing.write());
            watch.map(|watch| (record, watch))
        });
        let record = record.transpose().map_err(cannot)?;
        // Lines from before are kept.
        let mut files = journal_file.iter().chain(&record_file);
        files.try_for_each(RunFile::begin)?;
        let running = Self {
            attached,
            fs,
            connection,
            events,
            _watch: watch,
            _journal: journal,
            record,
            _control: control,
            _metrics: metrics,
        };
        running.set_readahead(wanted.kernel_readahead, readahead);
        Ok(running)
    }

    fn set_readahead(&self, wanted: Option<Bytes>, usual: Bytes) {
        let set = readahead::set(
            self.attached.own.map(|own| own.device()),
            wanted.unwrap_or(usual),
        );
        match (set, wanted) {
            (Ok(()), _) => {}
            (Err(error), Some(_)) => tracing::warn!(
                "--kernel-readahead: the kernel's value stays, only root may set it: {error}"
            ),
            (Err(error), None) => tracing::info!("the kernel's readahead stays as it is: {error}"),
        }
    }

    /// Serves until the mount is taken off or a signal comes; the counters.
    ///
    /// # Errors
    /// The session failed, the journal could not be written, or counters do not add up.
    pub fn wait(mut self) -> Result<Ledger, Failure> {
        let own = self.attached.own.take();
        let ended = ending::wait(
            &*self.fs,
            &self.attached.mountpoint,
            own,
            self.connection.as_ref(),
            &self.events,
        );
        // Files may be open whose server does not answer, not to their closing either: they are left
        // to the end of the process.
        std::mem::forget(self.fs.clone());
        if let Some((record, _)) = &self.record {
            end_record(record)?;
        }
        ended
    }
}

/// Its file is written under its own name, as a journal's is.
fn recorder(((path, most), file): (&(PathBuf, Bytes), &RunFile)) -> Result<Arc<Recorder>, Failure> {
    let recorder = Recorder::new(path, file.writer()?, *most);
    recorder
        .map(Arc::new)
        .map_err(|e| Failure::unusable(path, plain(&e)))
}

/// Writes the rest of a record, and tells how much of the reads it has.
fn end_record(record: &Recorder) -> Result<(), Failure> {
    let recorded = record.finish();
    if let Some(error) = recorded.error {
        return Err(Failure::Run(format!("the record of reads ended: {error}")));
    }
    let (reads, left_out) = (recorded.reads, recorded.left_out);
    match left_out {
        0 => tracing::info!("{reads} reads are recorded"),
        _ => tracing::warn!("{reads} reads are recorded, and {left_out} after its bound are not"),
    }
    Ok(())
}

/// The file system of a source.
fn mounted(
    source: Source,
    driver: Driver,
    wanted: &Wanted,
    budget: &Budget,
) -> Result<Arc<dyn Mounted>, Failure> {
    Ok(match source {
        Source::Folder { path, covered } => {
            let fs = SourceFs::new(&path, covered, driver, budget.names)
                .map_err(|e| Failure::unusable(&path, std::io::Error::from(e)))?;
            Arc::new(fs.passing(wanted.passthrough))
        }
        Source::Objects(tree) => {
            let names = budget.names;
            Arc::new(ObjectFs::new(tree, driver, wanted.trust, names))
        }
    })
}

/// The driver. Its journal is written under its own name from the start: a mount runs for days,
/// and what a killed one did is what one wants to look at.
fn driver(mut config: Config, journal: Option<&RunFile>) -> Result<Driver, Failure> {
    if let Some(file) = journal {
        let journal = JournalWriter::new(file.writer()?);
        let journal = journal.map_err(|e| Failure::Run(format!("--journal: {}", plain(&e))))?;
        config.journal = Some(Box::new(journal));
    }
    Driver::new(config).map_err(|e| Failure::Usage(e.to_string()))
}
