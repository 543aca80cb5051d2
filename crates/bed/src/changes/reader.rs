//! A reader: opens and reads whole files below MOUNTPOINT, and compares them with the history.
//!
//! Started by [`changes`](super); every second one becomes another user first. Between an open and
//! its first read it sometimes waits, so that changes fall there too. A file that was replaced
//! after the open is still the one that was opened, so its reads are held to versions of that one.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::content::Draws;
use crate::failure::{At, Failure};

use super::history::{Period, Version};
use super::judge::Call;
use super::{Counts, FILES_PER_WRITER, OTHER_USER, SharedCheck, WRITERS};

/// Sizes of read calls: a page, a `stdio` buffer, the kernel's readahead, and the whole file at
/// once.
const READ_BYTES: [usize; 4] = [4 << 10, 16 << 10, 128 << 10, 1 << 20];
/// For so long a right that was given may be unknown to the kernel: it keeps attributes for a
/// second, and this is a loaded machine.
const RIGHT_GIVEN_NS: u64 = 5_000_000_000;
/// One open in four waits so long at most, about as long as the next change takes to come.
const WAIT_US_MAX: u64 = 3_000;

/// Makes the calling thread another user's, with no group of ours, for good.
pub(super) fn become_other_user() -> Result<(), Failure> {
    let (user, group) = (Uid::from_raw(OTHER_USER), Gid::from_raw(OTHER_USER));
    let own = Path::new("/proc/self");
    set_thread_groups(&[]).at(own)?;
    set_thread_res_gid(group, group, group).at(own)?;
    set_thread_res_uid(user, user, user).at(own)
}

/// Reads until the time is over.
pub(super) fn run(shared: &SharedCheck, number: usize) -> Result<Counts, Failure> {
    let is_other = number % 2 == 1;
    if is_other {
        become_other_user()?;
    }
    let mut reader = CheckedReader {
        shared,
        is_other,
        draws: Draws::new(shared.changing.seed ^ (number as u64 + 1) << 48),
        buffer: vec![0; READ_BYTES[3]],
        counts: Counts::default(),
    };
    while shared.goes_on() {
        // The first file of each writer changes the most.
        let own = match reader.draws.below(2) {
            0 => 0,
            _ => reader.draws.below(FILES_PER_WRITER),
        };
        let file = reader.draws.below(WRITERS) + own * WRITERS;
        reader.read_file(file);
    }
    Ok(reader.counts)
}

struct CheckedReader<'a> {
    shared: &'a SharedCheck,
    is_other: bool,
    draws: Draws,
    buffer: Vec<u8>,
    counts: Counts,
}

/// A file that was opened.
struct Opened {
    /// When the open began.
    at: u64,
    /// Which files of its name it may be.
    incarnations: Vec<u32>,
}

impl CheckedReader<'_> {
    fn periods(&mut self, file: u64, from: u64, to: u64) -> Option<Vec<Period>> {
        let history = &self.shared.histories[usize::try_from(file).unwrap_or(0)];
        let found = history.between(from, to);
        self.counts.unchecked += u64::from(found.is_none());
        found
    }

    fn read_file(&mut self, file: u64) {
        let path = self.shared.mounted(file);
        let began = self.shared.clock.now();
        let opened = File::open(&path);
        let ended = self.shared.clock.now();
        match opened {
            Ok(opened) => {
                self.counts.opens += 1;
                if let Some(incarnations) = self.check_open(file, began, ended) {
                    if self.draws.below(4) == 0 {
                        let wait = self.draws.below(WAIT_US_MAX);
                        thread::sleep(Duration::from_micros(wait));
                    }
                    let at = began;
                    self.read_all(file, opened, Opened { at, incarnations });
                }
            }
            Err(error) => self.check_refusal(file, began, ended, &error),
        }
    }

    /// Which files may have been opened; none: it was a violation, or cannot be known.
    fn check_open(&mut self, file: u64, began: u64, ended: u64) -> Option<Vec<u32>> {
        let periods = self.periods(file, began, ended)?;
        let there = periods.iter().map(|p| p.version);
        let there: Vec<Version> = there.filter(|v| v.incarnation > 0).collect();
        let allowed = there.iter().filter(|v| !self.is_other || v.is_public);
        let incarnations: Vec<u32> = allowed.map(|v| v.incarnation).collect();
        if !incarnations.is_empty() {
            return Some(incarnations);
        }
        let kind = match there.is_empty() {
            true => "opened_absent",
            false => "opened_without_right",
        };
        let text = format!("file {file}: {}", in_words(&periods, began));
        self.counts.violation(kind, text);
        None
    }

    fn check_refusal(&mut self, file: u64, began: u64, ended: u64, error: &io::Error) {
        let (from, is_expected): (_, fn(&Version) -> bool) = match error.kind() {
            ErrorKind::NotFound => (began, |v| v.incarnation == 0),
            // Between a file that is closed and one that is open there may be none.
            ErrorKind::PermissionDenied if self.is_other => {
                (began.saturating_sub(RIGHT_GIVEN_NS), |v| !v.is_public)
            }
            _ => (began, |_| false),
        };
        *self.counts.errors.entry(name(error)).or_default() += 1;
        let Some(periods) = self.periods(file, from, ended) else {
            return;
        };
        if !periods.iter().any(|period| is_expected(&period.version)) {
            let versions = in_words(&periods, began);
            let text = format!("file {file}: {}: {versions}", name(error));
            self.counts.violation("open_failed", text);
        } else if error.kind() == ErrorKind::NotFound {
            self.counts.opens_absent += 1;
        } else {
            self.counts.opens_refused += 1;
        }
    }

    fn read_all(&mut self, file: u64, mut from: File, mut opened: Opened) {
        let size = self.draws.below(READ_BYTES.len() as u64);
        let asked = READ_BYTES[usize::try_from(size).unwrap_or(0)];
        let mut offset = 0;
        loop {
            let began = self.shared.clock.now();
            let result = from.read(&mut self.buffer[..asked]);
            let ended = self.shared.clock.now();
            let count = match result {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => {
                    *self.counts.errors.entry(name(&error)).or_default() += 1;
                    let text = format!("file {file} at {offset}: {}", name(&error));
                    return self.counts.violation("read_failed", text);
                }
            };
            self.counts.reads += 1;
            self.counts.bytes += count as u64;
            let is_right =
                self.check_read(file, (offset, asked, count), (began, ended), &mut opened);
            offset += count as u64;
            if count == 0 || !is_right {
                return;
            }
        }
    }

    /// Whether reading on makes sense.
    fn check_read(
        &mut self,
        file: u64,
        (offset, asked, count): (u64, usize, usize),
        (began, ended): (u64, u64),
        opened: &mut Opened,
    ) -> bool {
        let Some(mut periods) = self.periods(file, opened.at, ended) else {
            return false;
        };
        periods.retain(|p| opened.incarnations.contains(&p.version.incarnation));
        let versions: Vec<Version> = periods.iter().map(|p| p.version).collect();
        let call = Call {
            seed: self.shared.changing.seed,
            file,
            offset,
            asked,
            bytes: &self.buffer[..count],
        };
        let right: Vec<Version> = versions.iter().filter(|v| call.is_of(v)).copied().collect();
        if !right.is_empty() {
            if count > 0 {
                opened.incarnations = right.iter().map(|v| v.incarnation).collect();
                let first = right.iter().find(|v| v.written > offset);
                self.counts.seen.extend(first.map(|v| (file, v.content)));
            }
            return true;
        }
        let mut in_place = periods.iter().filter(|p| p.is_in_place);
        let is_overlapped = in_place
            .clone()
            .any(|p| p.since <= ended && p.made >= began);
        if is_overlapped && call.is_torn_between(&versions) {
            self.counts.reads_overlapping += 1;
            return true;
        }
        let wrong = call.wrong(&versions);
        // One that opened a file at rest is another matter than one beneath which it changed.
        let kind = match in_place.any(|p| p.made >= opened.at) {
            true => format!("{}_while_open", wrong.kind),
            false => wrong.kind.to_owned(),
        };
        let versions = in_words(&periods, opened.at);
        self.counts
            .violation(&kind, format!("{}: {versions}", wrong.text));
        false
    }
}

/// The versions, with when they began, in ms from the open.
fn in_words(periods: &[Period], open: u64) -> String {
    let words = periods.iter().map(|period| {
        let version = period.version;
        let since = match period.made {
            u64::MAX => "under way".to_owned(),
            made => format!("{:.2} ms", (made as f64 - open as f64) / 1e6),
        };
        let rights = if version.is_public { "" } else { ", closed" };
        match version.incarnation {
            0 => format!("[no file, {since}]"),
            number => format!(
                "[file {number}, content {} of {} bytes{rights}, {since}]",
                version.content, version.length
            ),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// `NotFound`, or the system's number of an error that has no name.
fn name(error: &io::Error) -> String {
    match (error.kind(), error.raw_os_error()) {
        (ErrorKind::NotFound | ErrorKind::PermissionDenied, _) | (_, None) => {
            format!("{:?}", error.kind())
        }
        (kind, Some(number)) => format!("{kind:?} (errno {number})"),
    }
}
