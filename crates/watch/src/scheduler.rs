//! Scheduler: that of the disks of a file system, which is fair for a while and then as before.
//!
//! Each disk has a record of its own, which is locked: two watches on partitions of one disk do not change its scheduler in
//! turns, and neither do two file systems of one watch, of which the first has it. Unlike a limit, which is raised for
//! microseconds, it stays for minutes; the [guardian](forerun_surface::undo::guardian) puts it back when the watch is gone.
//!
//! ```text
//! [mq-deadline] bfq none --record, write--> [bfq] ..            a crowd of readers came
//!                                           [bfq] --> as before it left, a pause, or the end
//!                                          [none] stays: an administrator's, and the disk is left alone from then on
//! ```
//!
//! `bfq` waits for a reader's next read only where it takes the disk for one without a queue, or some readers for more urgent. Put in
//! while 64 readers go on, it does neither, serves them in turns of two requests, and lets those that began together share
//! a turn: 22 MB/s of 80. So it is told to wait for each of them (`strict_guarantees`) for the first seconds, and has 70 MB/s from then
//! on, in 18 of 18 runs. And it is told to wait for up to 30 ms in place of 8, as a reader that lacks a processor comes late: 68 MB/s
//! beside six busy loops, 18 before. Both settings are gone with it.

use std::fs;
use std::io;
use std::path::Path;

use forerun_surface::undo::knob::{Knob, SCHEDULER};
use forerun_surface::undo::record::{self, Record, Restored};

/// The scheduler that gives each reader slices of time and waits for its next read.
pub const FAIR: &str = "bfq";
/// How long it waits for a reader's next read, in milliseconds. Six busy loops on two processors hold a reader up for three
/// slices of 3 ms, some for six; a switch of the disk costs 8 to 15 ms, two of them.
const IDLE: (&str, &str) = ("slice_idle", "30");
/// Whether it waits for all of them.
const STRICT: &str = "strict_guarantees";
/// For so many seconds, in each of which it is [asked for](Scheduler::set) once, and of which a switch takes up to 0.7: after one, 2 of
/// 10 runs fell back, after two none of 18.
const STRICT_SECONDS: u32 = 3;
/// The beginning of the names of records.
const RECORD: &str = "scheduler-";

/// That of one disk.
#[derive(Debug)]
pub(crate) struct Scheduler {
    knob: Knob,
    record: Record,
    /// Another program has set it meanwhile.
    is_others: bool,
    /// So many more seconds it waits for all readers.
    strict: u32,
}

impl Scheduler {
    /// That of the disk of this number; none if it has no fair one, or another process changes it.
    pub(crate) fn of_disk(folder: &Path, number: u32) -> Option<Self> {
        let number = format!("{}:{}", number >> 20, number & 0xf_ffff);
        let queue = Path::new("/sys/dev/block").join(&number).join("queue");
        Self::new(folder, &number, Knob::new(queue.join(SCHEDULER))).ok()?
    }

    pub(crate) fn new(folder: &Path, name: &str, knob: Knob) -> io::Result<Option<Self>> {
        if !knob.choices().iter().any(|name| name == FAIR) {
            return Ok(None);
        }
        let record = Record::create(&folder.join(format!("{RECORD}{name}")), [knob.clone()])?;
        Ok(Some(Self {
            knob,
            record,
            is_others: false,
            strict: 0,
        }))
    }

    /// Its record, for the guardian.
    pub(crate) fn record(&self) -> &Path {
        self.record.path()
    }

    /// Makes it fair, or as before; whether it is fair then.
    pub(crate) fn set(&mut self, is_fair: bool) -> bool {
        let is_set = match is_fair {
            true => self.make_fair(),
            false => self.put_back().map(|()| false),
        };
        is_set.unwrap_or(false)
    }

    fn make_fair(&mut self) -> io::Result<bool> {
        let present = self.knob.read()?;
        let is_ours = !self.record.changes()[0].ours.is_empty();
        match (present == FAIR, is_ours) {
            (true, _) => {
                self.learn();
                Ok(true)
            }
            (false, true) => {
                self.is_others = true;
                self.record.note(0, present, Vec::new())?;
                Ok(false)
            }
            (false, false) if self.is_others => Ok(false),
            (false, false) => {
                self.record.note(0, present, vec![FAIR.into()])?;
                self.knob.write(FAIR)?;
                self.tune(IDLE.0, IDLE.1);
                self.tune(STRICT, "1");
                self.strict = STRICT_SECONDS;
                Ok(true)
            }
        }
    }

    /// A second later.
    fn learn(&mut self) {
        let was = self.strict;
        self.strict = was.saturating_sub(1);
        if was > self.strict && self.strict == 0 {
            self.tune(STRICT, "0");
        }
    }

    /// Sets an attribute that the fair scheduler has while it is there; a kernel that lacks it serves as well as it can.
    fn tune(&self, name: &str, value: &str) {
        let path = self.knob.path().with_file_name("iosched").join(name);
        let file = fs::OpenOptions::new().write(true).truncate(true).open(path);
        if let Err(err) = file.and_then(|file| io::Write::write_all(&mut &file, value.as_bytes())) {
            tracing::debug!("{name} of {FAIR}: {err}");
        }
    }

    fn put_back(&mut self) -> io::Result<()> {
        for (change, restored) in self.record.put_back()? {
            if let Restored::Others(present) = restored {
                self.is_others = true;
                self.record.note(0, present, Vec::new())?;
            } else if let Some(line) = record::in_words(&change, &restored) {
                tracing::warn!("{line}");
            }
        }
        Ok(())
    }

    /// The watch ends: it is as before, and the record goes.
    pub(crate) fn end(&mut self) {
        self.set(false);
        if self.record.changes()[0].ours.is_empty() {
            self.record.remove();
        }
    }
}

/// Puts back the schedulers that a watch left, killed together with its guardian.
pub(crate) fn put_back_left(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        if entry.file_name().to_string_lossy().starts_with(RECORD) {
            // One that is locked is of a watch that lives.
            let _ = record::carry_out(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file in place of that in sysfs: a name that is written takes the place of the list.
    fn scheduler(folder: &Path, text: &str) -> Option<Scheduler> {
        let knob = Knob::new(folder.join(SCHEDULER));
        fs::write(knob.path(), text).unwrap();
        Scheduler::new(folder, "7:0", knob).unwrap()
    }

    fn present(folder: &Path) -> String {
        fs::read_to_string(folder.join(SCHEDULER)).unwrap()
    }

    #[test]
    fn it_is_fair_for_a_while_and_then_as_before() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert!(scheduler(folder, "[none] mq-deadline\n").is_none());
        let mut own = scheduler(folder, "[mq-deadline] none bfq\n").unwrap();
        assert!(!own.set(false) && present(folder).starts_with("[mq-deadline]"));
        assert!(own.set(true) && own.set(true));
        assert_eq!(present(folder), "bfq");
        let second = Scheduler::new(folder, "7:0", Knob::new(folder.join(SCHEDULER)));
        assert!(!matches!(second, Ok(Some(_))), "its record is locked");
        assert!(!own.set(false));
        assert_eq!(present(folder), "mq-deadline");
        assert!(own.set(true));
        own.end();
        assert_eq!(present(folder), "mq-deadline");
        assert!(!own.record().exists());
    }

    #[test]
    fn it_waits_for_all_readers_at_first_and_longer_than_by_default() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let attribute = |name: &str| folder.join("iosched").join(name);
        fs::create_dir(folder.join("iosched")).unwrap();
        fs::write(attribute(STRICT), "0").unwrap();
        fs::write(attribute(IDLE.0), "8").unwrap();
        let strict = || fs::read_to_string(attribute(STRICT)).unwrap();
        let mut own = scheduler(folder, "[none] bfq\n").unwrap();
        let seconds: Vec<String> = (0..5)
            .map(|_| {
                assert!(own.set(true));
                strict()
            })
            .collect();
        assert_eq!(seconds, ["1", "1", "1", "0", "0"]);
        assert_eq!(fs::read_to_string(attribute(IDLE.0)).unwrap(), "30");
        assert!(!own.set(false) && own.set(true));
        assert_eq!(strict(), "1", "put in once more");
    }

    #[test]
    fn an_administrators_is_not_tuned() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::create_dir(folder.join("iosched")).unwrap();
        fs::write(folder.join("iosched").join(STRICT), "0").unwrap();
        let mut own = scheduler(folder, "none [bfq]\n").unwrap();
        assert!(own.set(true) && own.set(true));
        let strict = fs::read_to_string(folder.join("iosched").join(STRICT));
        assert_eq!(strict.unwrap(), "0");
    }

    #[test]
    fn one_that_another_program_sets_is_left_alone_from_then_on() {
        for is_asked_for in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path();
            let mut own = scheduler(folder, "[mq-deadline] none bfq\n").unwrap();
            assert!(own.set(true));
            fs::write(folder.join(SCHEDULER), "none").unwrap();
            assert!(!own.set(is_asked_for));
            assert!(!own.set(true));
            own.end();
            assert_eq!(present(folder), "none", "{is_asked_for}");
            assert!(!own.record().exists());
        }
        let folder = tempfile::tempdir().unwrap();
        let mut own = scheduler(folder.path(), "none [bfq]\n").unwrap();
        assert!(own.set(true), "an administrator's");
        own.end();
        assert_eq!(present(folder.path()), "none [bfq]\n");
    }

    #[test]
    fn the_next_start_puts_back_what_a_killed_watch_left() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let mut own = scheduler(folder, "[mq-deadline] none bfq\n").unwrap();
        assert!(own.set(true));
        put_back_left(folder);
        assert_eq!(present(folder), "bfq", "it lives");
        let record = own.record().to_owned();
        drop(own);
        put_back_left(folder);
        assert_eq!(present(folder), "mq-deadline");
        assert!(!record.exists());
    }
}
