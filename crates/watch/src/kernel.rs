//! Kernel: the running one, as the steering sees it.
//!
//! Finds the open file that an event is of and whose memory it reads in, and sets its limit; what is to be set is decided
//! by [`forerun_steering`].

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use forerun_core::{Bytes, Nanos};
use forerun_steering::events::{Ahead, FileKey};
use forerun_steering::{Kernel, Reader, Steering, Wanted};
use forerun_surface::failure::Failure;
use forerun_surface::files;
use forerun_surface::undo::guardian::Guardian;

use crate::bios::Bios;
use crate::causes::Cause;
use crate::descriptors::{Descriptors, Found};
use crate::exclude::Excludes;
use crate::limit::{Limit, kernel_page};
use crate::memory::Domain;
use crate::mounts::Named;
use crate::process::{Program, is_idle, shares_mounts, undeleted};
use crate::small::Small;
use crate::watch::{Counts, Watch, Watched, monotonic};
use crate::windows::PAGE_BYTES;

/// The path that a reader has for a file, and that on the file system, if it is known.
pub(crate) type Paths = (PathBuf, Option<PathBuf>);

/// See the [module](self).
pub(crate) struct Running<'a> {
    file_systems: &'a mut [Watched],
    limits: &'a mut [Limit],
    descriptors: &'a mut Descriptors,
    guardian: Option<&'a mut Guardian>,
    excludes: &'a Excludes,
    counts: &'a mut Counts,
    bios: &'a mut Bios,
    journal: Option<&'a Path>,
    journal_error: &'a mut Option<String>,
    folders: &'a Small,
    /// A dry run, or a pause.
    sets_nothing: bool,
}

impl Running<'_> {
    /// The program that reads a file, and its descriptor, if it may be steered.
    pub(crate) fn reader_of(
        &mut self,
        at: usize,
        key: FileKey,
        event: &Ahead,
    ) -> Result<(Program, Found, Paths), Cause> {
        // A process of another pid namespace has no number here.
        if event.process == 0 {
            return Err(Cause::OtherNamespace);
        }
        let program = Program::of(event.process).ok_or(Cause::Ended)?;
        if program.is_kernel {
            return Err(Cause::KernelThread);
        }
        if is_idle(event.thread) {
            return Err(Cause::Idle);
        }
        let found = self.descriptors.find(event.process, key, event.index)?;
        let path = path_of(event.process, found.number);
        let inner = self.descriptors.inner(event.process, found.mount, &path);
        let file = Named {
            device: key.device,
            path: &path,
            is_here: shares_mounts(event.process),
            inner: inner.as_deref(),
        };
        let below = &self.file_systems[at].below;
        let mut all = below.iter();
        if !below.is_empty() && !all.any(|below| below.has(file.path(), file.inner)) {
            return Err(Cause::Elsewhere);
        }
        if self.excludes.are_true_of(&program, file) {
            return Err(Cause::Excluded);
        }
        Ok((program, found, (path, inner)))
    }

    /// Gives an open file, of this descriptor alone where one is named, this limit; it is held for as long as that takes.
    fn advise(
        &mut self,
        at: usize,
        (process, key): (u32, FileKey),
        page: u64,
        (pages, number): (u32, Option<i32>),
    ) -> Result<(), Cause> {
        let begun = Instant::now();
        let found = self.descriptors.find(process, key, page)?;
        if number.is_some_and(|number| number != found.number) {
            return Err(Cause::Closed);
        }
        let held = Instant::now();
        let guardian = self.guardian.as_deref_mut().ok_or(Cause::NotRaised)?;
        let limit = &mut self.limits[self.file_systems[at].limit];
        let set = limit.set(&found.file, pages, guardian);
        drop(found);
        self.counts.held_most = self.counts.held_most.max(held.elapsed());
        match set {
            Ok(true) => {
                self.counts.set += 1;
                self.counts.setting += begun.elapsed();
                Ok(())
            }
            _ => Err(Cause::NotRaised),
        }
    }

    /// Whether a process is there that puts settings back after the end of this one.
    fn has_guardian(&mut self) -> bool {
        let guardian = self.guardian.as_deref_mut();
        guardian.is_some_and(|guardian| guardian.is_there() || guardian.is_told())
    }
}

impl Kernel<Domain> for Running<'_> {
    fn page(&self) -> u32 {
        kernel_page()
    }

    fn limit(&mut self, at: usize) -> Option<u32> {
        self.limits[self.file_systems[at].limit].pages().ok()
    }

    fn reader(&mut self, at: usize, key: FileKey, event: &Ahead) -> Result<Reader<Domain>, Cause> {
        let (program, found, _) = self.reader_of(at, key, event)?;
        Ok(Reader {
            bytes: found.bytes,
            number: found.number,
            domain: Domain::of(&program),
        })
    }

    fn has_folders(&self, engine: usize) -> bool {
        self.folders.has_engine(engine)
    }

    fn memory(&mut self, domain: &Domain) -> Bytes {
        domain.bytes()
    }

    fn journal(&mut self, engine: usize) -> Option<Box<dyn Write>> {
        let path = self.journal?;
        let mut name = path.as_os_str().to_owned();
        if engine > 0 {
            name.push(format!(".{engine}"));
        }
        let path = Path::new(&name);
        let made = files::check_journal(path).and_then(|()| {
            File::create(path).map_err(|e| Failure::unusable(path, files::plain(&e)))
        });
        let made = made.inspect_err(|e| note_once(self.journal_error, e));
        Some(Box::new(BufWriter::new(made.ok()?)))
    }

    fn set(&mut self, at: usize, event: &Ahead, wanted: Wanted) -> Result<Option<Nanos>, Cause> {
        if self.sets_nothing {
            self.counts.spared += 1;
            return Ok(None);
        }
        if wanted.has_missed {
            self.descriptors.forget(event.process);
        }
        let of = (event.process, event.file());
        self.advise(at, of, event.index, (wanted.pages, None))?;
        self.bios.set(event.process, event.file(), wanted.pages);
        Ok(Some(monotonic()))
    }

    fn schedule(&mut self, at: usize, is_fair: bool) -> Option<bool> {
        let is_wanted = is_fair && !self.sets_nothing && self.has_guardian();
        let of = &mut self.file_systems[at];
        let is_set = of.schedule(is_wanted);
        if is_wanted && !is_set {
            // Where one disk cannot be fair, the others are as before.
            of.schedule(false);
        }
        (!is_fair || !self.sets_nothing).then_some(is_set)
    }
}

impl Watch {
    /// The steering, and the kernel that it steers.
    pub(crate) fn parts(&mut self) -> (&mut Steering<Domain>, Running<'_>) {
        let running = Running {
            sets_nothing: self.is_dry || self.signals.is_paused,
            file_systems: &mut self.file_systems,
            limits: &mut self.limits,
            descriptors: &mut self.descriptors,
            guardian: self.guardian.as_mut(),
            excludes: &self.excludes,
            counts: &mut self.counts,
            bios: &mut self.bios,
            journal: self.journal.as_deref(),
            journal_error: &mut self.journal_error,
            folders: &self.small,
        };
        (&mut self.steering, running)
    }

    /// The kernel's readahead was asked for a page.
    pub(crate) fn ahead(&mut self, event: &Ahead) {
        let own = [Some(std::process::id()), self.guardian_process()];
        let Some(at) = self.file_system(event.device) else {
            return;
        };
        if own.contains(&Some(event.process)) {
            return;
        }
        self.counts.events += 1;
        if self.small_file(at, event.file(), event) || event.size == 0 {
            return;
        }
        let (steering, mut running) = self.parts();
        if let Err(cause) = steering.ahead(at, event, &mut running)
            && cause != Cause::Elsewhere
        {
            let bytes = u64::from(event.size) * PAGE_BYTES;
            self.causes.add(cause, event.process, bytes);
        }
    }

    /// Open files that were read ahead with a limit of this watch when they were seen last get that of their file system, as
    /// far as they are still open. How many did. Others may have been advised by their program since, and are left alone.
    pub(crate) fn put_all_back(&mut self) -> usize {
        let streams = self.steering.streams.iter();
        let ours =
            streams.filter(|(_, of)| of.is_ours && of.set.is_some_and(|(pages, _)| pages > 0));
        let ours = ours.map(|(key, of)| (key, of.process, of.last, of.number));
        let ours: Vec<_> = ours.collect();
        let until = Instant::now() + Duration::from_secs(5);
        let mut count = 0;
        for (key, process, page, number) in ours {
            let Some(at) = self.file_system(key.device) else {
                continue;
            };
            let (_, mut running) = self.parts();
            if let Some(own) = running.limit(at)
                && Instant::now() < until
            {
                let to = (own, Some(number));
                count += usize::from(running.advise(at, (process, key), page, to).is_ok());
            }
        }
        count
    }
}

/// Keeps the first error of the journals, and warns of it.
pub(crate) fn note_once(kept: &mut Option<String>, error: &dyn std::fmt::Display) {
    if kept.is_none() {
        tracing::warn!("the journal ends here: {error}");
        *kept = Some(error.to_string());
    }
}

/// The path of a descriptor, as its process would name it; of a file without a name what the kernel says.
pub(crate) fn path_of(process: u32, number: i32) -> PathBuf {
    undeleted(fs::read_link(format!("/proc/{process}/fd/{number}")).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use forerun_steering::disks::Spread;
    use forerun_surface::undo::knob::{Knob, SCHEDULER};

    use super::*;
    use crate::mounts::FileSystem;
    use crate::sample::{Cause as Why, Seeing};
    use crate::scheduler::Scheduler;
    use crate::signals::Signals;

    /// A file system whose scheduler is a file of this folder.
    fn watched(folder: &Path) -> Watched {
        let knob = Knob::new(folder.join(SCHEDULER));
        fs::write(knob.path(), "[none] bfq\n").unwrap();
        let at = FileSystem {
            device: 1,
            kind: "ext4".into(),
            point: "/".into(),
            bdi: "7:0".into(),
            limit: folder.join("read_ahead_kb"),
            queues: Vec::new(),
            disks: Vec::new(),
            spread: Spread::Striped,
            below: None,
        };
        Watched {
            at,
            below: Vec::new(),
            limit: 0,
            schedulers: Scheduler::new(folder, "7:0", knob)
                .unwrap()
                .into_iter()
                .collect(),
        }
    }

    /// Does this with a kernel of one such file system, and without a guardian.
    fn running<T>(folder: &Path, act: impl FnOnce(&mut Running<'_>) -> T) -> T {
        let signals = Signals::new().unwrap();
        act(&mut Running {
            file_systems: &mut [watched(folder)],
            limits: &mut [],
            descriptors: &mut Descriptors::default(),
            guardian: None,
            excludes: &Excludes::new(Vec::new()),
            counts: &mut Counts::default(),
            bios: &mut Bios::default(),
            journal: None,
            journal_error: &mut None,
            folders: &Small::start(Seeing::Block, &signals).unwrap(),
            sets_nothing: false,
        })
    }

    #[test]
    fn a_reader_of_another_pid_namespace_is_none_that_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let event = |process| Ahead {
            time: Nanos(0),
            cause: Why::Miss,
            process,
            thread: process,
            device: 1,
            inode: 1,
            index: 0,
            size: 0,
            async_size: 0,
            limit: 32,
            asked: 1,
        };
        for (process, cause) in [(0, Cause::OtherNamespace), (u32::MAX, Cause::Ended)] {
            let event = event(process);
            let found = running(folder.path(), |running| {
                running.reader_of(0, event.file(), &event).map(drop)
            });
            assert_eq!(found, Err(cause), "{process}");
        }
    }

    #[test]
    fn in_a_pause_a_scheduler_is_neither_changed_nor_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [fair, as_before] = [true, false].map(|is_fair| {
            running(folder.path(), |running| {
                running.sets_nothing = true;
                running.schedule(0, is_fair)
            })
        });
        let present = fs::read_to_string(folder.path().join(SCHEDULER)).unwrap();
        assert_eq!((fair, as_before), (None, Some(false)));
        assert_eq!(present, "[none] bfq\n");
    }

    #[test]
    fn a_scheduler_is_changed_only_beside_a_guardian() {
        let folder = tempfile::tempdir().unwrap();
        let is_set = running(folder.path(), |running| running.schedule(0, true));
        let present = fs::read_to_string(folder.path().join(SCHEDULER)).unwrap();
        assert_eq!((is_set, &*present), (Some(false), "[none] bfq\n"));
    }
}
