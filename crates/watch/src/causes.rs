//! Causes: why a read that was seen cannot be steered, and how many bytes came so, by cause and process.
//!
//! Shown at the end of a watch, and while it runs: a device whose bytes are read past all descriptors is no better off
//! with `forerun watch`. Processes beyond the first 256 are counted together, under the number 0.

use std::collections::HashMap;

pub use forerun_steering::Cause;

use crate::process;

/// Pairs of cause and process that are told apart.
const APART_MAX: usize = 256;

/// Bytes by cause and process.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Causes {
    bytes: HashMap<(Cause, u32), (String, u64)>,
    /// Whether descriptors were lacking, as far as that was asked since the last tick.
    is_lacking: Option<bool>,
}

/// Bytes of one process that were not steered for one cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotSteered {
    /// The cause.
    pub cause: Cause,
    /// The process; 0 for those that are not told apart.
    pub process: u32,
    /// The name of its program; empty if it had ended.
    pub program: String,
    /// How many.
    pub bytes: u64,
}

impl Causes {
    /// So many more of a process.
    pub fn add(&mut self, cause: Cause, process: u32, bytes: u64) {
        let looks_so = matches!(cause, Cause::Ended | Cause::NoDescriptor | Cause::Closed);
        let cause = match looks_so && *self.is_lacking.get_or_insert_with(is_lacking) {
            true => Cause::OutOfDescriptors,
            false => cause,
        };
        let is_known = self.bytes.contains_key(&(cause, process));
        let process = match is_known || self.bytes.len() < APART_MAX {
            true => process,
            false => 0,
        };
        let name = || (process::name_of(process).unwrap_or_default(), 0);
        let (_, of) = self.bytes.entry((cause, process)).or_insert_with(name);
        *of = of.saturating_add(bytes);
    }

    /// Once a second: whether descriptors are lacking is asked anew.
    pub(crate) fn tick(&mut self) {
        self.is_lacking = None;
    }

    /// Those there are, the most first.
    #[must_use]
    pub fn by_process(&self) -> Vec<NotSteered> {
        let of =
            |((cause, process), (program, bytes)): (&(Cause, u32), &(String, u64))| NotSteered {
                cause: *cause,
                process: *process,
                program: program.clone(),
                bytes: *bytes,
            };
        let mut all: Vec<_> = self.bytes.iter().map(of).collect();
        all.sort_by_key(|of| (std::cmp::Reverse(of.bytes), of.cause, of.process));
        all
    }

    /// The causes there are with the bytes of all processes, the most first.
    #[must_use]
    pub fn most_first(&self) -> Vec<(Cause, u64)> {
        let of = |cause: Cause| {
            let own = self.bytes.iter().filter(|((of, _), _)| *of == cause);
            (cause, own.map(|(_, (_, bytes))| bytes).sum::<u64>())
        };
        let mut pairs: Vec<_> = Cause::ALL.into_iter().map(of).collect();
        pairs.retain(|(_, bytes)| *bytes > 0);
        pairs.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        pairs
    }
}

/// Whether no descriptor is left.
fn is_lacking() -> bool {
    const LACK: [Option<i32>; 2] = [Some(libc::EMFILE), Some(libc::ENFILE)];
    let opened = std::fs::File::open("/dev/null");
    opened.is_err_and(|error| LACK.contains(&error.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    use super::*;

    /// In a process of its own: the limit counts for all threads.
    #[test]
    fn a_lack_of_descriptors_is_no_end_of_a_process() {
        const ALONE: &str = "FORERUN_TEST_ALONE";
        let name = "causes::tests::a_lack_of_descriptors_is_no_end_of_a_process";
        if std::env::var_os(ALONE).is_none() {
            let mut test = Command::new(std::env::current_exe().unwrap());
            let ended = test.args(["--exact", name]).env(ALONE, "").output();
            let ended = ended.unwrap();
            let said = String::from_utf8_lossy(&ended.stdout);
            assert!(
                ended.status.success() && said.contains("1 passed"),
                "{ended:?}"
            );
            return;
        }
        let mut causes = Causes::default();
        causes.add(Cause::Ended, u32::MAX, 1);
        let before = getrlimit(Resource::Nofile);
        let none = Rlimit {
            current: Some(0),
            ..before
        };
        setrlimit(Resource::Nofile, none).unwrap();
        // The next tick asks, and no event before it.
        causes.add(Cause::Ended, u32::MAX, 16);
        causes.tick();
        causes.add(Cause::Ended, u32::MAX, 2);
        causes.add(Cause::NoDescriptor, u32::MAX, 4);
        causes.add(Cause::Idle, u32::MAX, 8);
        setrlimit(Resource::Nofile, before).unwrap();
        causes.add(Cause::Closed, u32::MAX, 32);
        let expected = [
            (Cause::OutOfDescriptors, 38),
            (Cause::Ended, 17),
            (Cause::Idle, 8),
        ];
        assert_eq!(causes.most_first(), expected);
    }

    #[test]
    fn bytes_are_counted_by_cause_and_process_and_shown_by_their_number() {
        let mut causes = Causes::default();
        let own = std::process::id();
        causes.add(Cause::Idle, own, 5);
        causes.add(Cause::Idle, u32::MAX, 10);
        causes.add(Cause::Closed, own, 7);
        causes.add(Cause::Idle, own, 1);
        assert_eq!(causes.most_first(), [(Cause::Idle, 16), (Cause::Closed, 7)]);
        let by_process = causes.by_process();
        let shown = by_process.iter().map(|of| (of.cause, of.process, of.bytes));
        let expected = [
            (Cause::Idle, u32::MAX, 10),
            (Cause::Closed, own, 7),
            (Cause::Idle, own, 6),
        ];
        assert!(shown.eq(expected), "{by_process:?}");
        assert!(by_process[0].program.is_empty() && !by_process[1].program.is_empty());
    }

    #[test]
    fn more_processes_than_are_told_apart_are_one() {
        let mut causes = Causes::default();
        for process in 0..2 * APART_MAX as u32 {
            causes.add(Cause::Ended, u32::MAX - process, 1);
        }
        let shown = causes.by_process();
        assert_eq!(shown.len(), APART_MAX + 1);
        assert_eq!((shown[0].process, shown[0].bytes), (0, APART_MAX as u64));
    }
}
