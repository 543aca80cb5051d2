//! A trace of one log or several, and the part of it that is wanted.
//!
//! Problem: a load is logged by machine or by volume, and the question is about one hour, one volume, one direction or one
//! program of it.
//!
//! Mechanism: logs are merged by the times of their requests, of equal times the log named first. Devices of different logs
//! are different; they are numbered in the order of first use. A [`Filter`] leaves requests out by their own facts, and a
//! request that lacks the fact is an error rather than in or out. Memory is a request a log.
//!
//! ```text
//! a.csv: t=1 t=4 --\
//! b.csv: t=2 t=9 ---+-> t=1 t=2 t=4 t=9 -> [1 s <= t - 1 < 5 s] -> t=2 t=4
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use forerun_core::Nanos;

use super::error::{Cause, Position, TraceError};
use super::format::Format;
use super::reader::Records;
use super::record::{Op, Record};

/// Which requests are wanted; all by default.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// Those that come so long after the first request of all.
    pub times: Option<Range<Nanos>>,
    /// Those of these devices, as their own log numbers them; all if there is none.
    pub devices: Vec<u32>,
    /// Those of this direction.
    pub op: Option<Op>,
    /// Those of these processes; all if there is none.
    pub processes: Vec<u32>,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Logs {
    logs: Vec<Log>,
    filter: Filter,
    /// When the first request of all came.
    begin: Option<Nanos>,
    /// Numbers of devices, by their log and their number there.
    devices: BTreeMap<(usize, u32), u32>,
    given: Option<Position>,
    wanted: u64,
    unwanted: u64,
    /// The least and the most of the unwanted ones' devices.
    left: (u32, u32),
    is_over: bool,
}

#[derive(Debug)]
struct Log {
    records: Records,
    /// Its next request, where several logs are merged.
    next: Option<Record>,
}

/// The fate of a request.
enum Choice {
    Wanted,
    Unwanted,
    /// Neither it nor a later one is wanted.
    Over,
}

impl Logs {
    /// Of at least one log.
    #[must_use]
    pub fn new(logs: Vec<Records>, filter: Filter) -> Self {
        let log = |records| Log {
            records,
            next: None,
        };
        Self {
            logs: logs.into_iter().map(log).collect(),
            filter,
            begin: None,
            devices: BTreeMap::new(),
            given: None,
            wanted: 0,
            unwanted: 0,
            left: (u32::MAX, 0),
            is_over: false,
        }
    }

    /// The formats of the logs, in their order.
    pub fn formats(&self) -> impl Iterator<Item = &'static Format> {
        self.logs.iter().map(|log| log.records.format())
    }

    /// How many requests so far were older than the one before them in their file.
    #[must_use]
    pub fn moved(&self) -> u64 {
        self.logs.iter().map(|log| log.records.moved()).sum()
    }

    /// How many requests so far were deletions, or without a direction.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.logs.iter().map(|log| log.records.left_out()).sum()
    }

    /// How many requests so far the filter left out.
    #[must_use]
    pub fn unwanted(&self) -> u64 {
        self.unwanted
    }

    /// Where in its file the request last given out stands; none where there are several files.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        self.given.filter(|_| self.logs.len() == 1)
    }

    /// The earliest request that no log has given out, with its log.
    fn earliest(&mut self) -> Option<Result<(usize, Record), TraceError>> {
        if let [log] = &mut self.logs[..] {
            return Some(log.records.next()?.map(|record| (0, record)));
        }
        let mut earliest: Option<(Nanos, usize)> = None;
        for (at, log) in self.logs.iter_mut().enumerate() {
            if log.next.is_none() {
                log.next = match log.records.next().transpose() {
                    Ok(next) => next,
                    Err(error) => return Some(Err(error)),
                };
            }
            let Some(next) = log.next else {
                continue;
            };
            let Some(time) = next.arrival else {
                return Some(Err(log.records.refused(BY_TIME)));
            };
            if earliest.is_none_or(|(least, _)| time < least) {
                earliest = Some((time, at));
            }
        }
        let (_, at) = earliest?;
        Some(Ok((at, self.logs[at].next.take()?)))
    }

    fn choice(&mut self, log: usize, record: &Record) -> Result<Choice, TraceError> {
        let filter = &self.filter;
        let refused = |cause| self.logs[log].records.refused(cause);
        if let Some(times) = &filter.times {
            let time = record.arrival.ok_or_else(|| refused(PART_BY_TIME))?;
            let begin = *self.begin.get_or_insert(time);
            let since = Nanos(time.0.saturating_sub(begin.0));
            if since >= times.end {
                return Ok(Choice::Over);
            }
            if since < times.start {
                return Ok(Choice::Unwanted);
            }
        }
        let is_process = match (record.process, &filter.processes[..]) {
            (_, []) => true,
            (Some(process), wanted) => wanted.contains(&process),
            (None, _) => return Err(refused(BY_PROCESS)),
        };
        let is_device = filter.devices.is_empty() || filter.devices.contains(&record.device);
        let is_op = filter.op.is_none_or(|op| op == record.op);
        Ok(match is_process && is_device && is_op {
            true => Choice::Wanted,
            false => Choice::Unwanted,
        })
    }

    /// The request with the number that its device has among all logs.
    fn renumbered(&mut self, log: usize, record: Record) -> Record {
        if self.logs.len() == 1 {
            return record;
        }
        let next = self.devices.len() as u32;
        let number = self.devices.entry((log, record.device)).or_insert(next);
        Record {
            device: *number,
            ..record
        }
    }

    /// Ends; an error where requests were there, and none was wanted.
    fn end(&mut self) -> Option<Result<Record, TraceError>> {
        self.is_over = true;
        let is_empty = self.wanted == 0 && self.unwanted > 0;
        let log = self.logs.first().filter(|_| is_empty)?;
        let cause = Cause::Unwanted {
            requests: self.unwanted,
            devices: self.left,
        };
        Some(Err(log.records.refused(cause)))
    }
}

const BY_TIME: Cause = lacking("time", "there: several logs are merged by it");
const PART_BY_TIME: Cause = lacking("time", "there: --from and --until go by it");
const BY_PROCESS: Cause = lacking("process", "there: --only-processes goes by it");

const fn lacking(field: &'static str, accepted: &'static str) -> Cause {
    Cause::Field {
        field,
        found: String::new(),
        accepted,
    }
}

impl Iterator for Logs {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_over {
            let Some(next) = self.earliest() else {
                return self.end();
            };
            let chosen = next.and_then(|(log, record)| {
                let choice = self.choice(log, &record)?;
                Ok((choice, log, record))
            });
            match chosen {
                Ok((Choice::Unwanted, _, record)) => {
                    self.unwanted += 1;
                    let (least, most) = self.left;
                    self.left = (least.min(record.device), most.max(record.device));
                }
                Ok((Choice::Over, ..)) => return self.end(),
                Ok((Choice::Wanted, log, record)) => {
                    self.wanted += 1;
                    self.given = self.logs[log].records.position();
                    return Some(Ok(self.renumbered(log, record)));
                }
                Err(error) => {
                    self.is_over = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::super::format::Options;
    use super::super::reader::read;
    use super::*;

    fn log(text: &'static str) -> Records {
        read("log", Cursor::new(text), None, &Options::default()).unwrap()
    }

    const ONE: &str =
        "time_s,pid,device,op,block\n10,7,0,r,1\n11,8,1,w,2\n12,7,0,r,3\n20,7,1,r,4\n";
    const TWO: &str = "time_s,pid,device,op,block\n9,7,0,r,10\n11,7,0,r,11\n13,9,5,r,12\n";

    /// Block and device of each request.
    fn read_all(logs: &mut Logs) -> Vec<(u64, u32)> {
        let of = |record: Result<Record, TraceError>| {
            let record = record.unwrap();
            (*record.blocks(4096).start(), record.device)
        };
        logs.by_ref().map(of).collect()
    }

    fn message(mut logs: Logs) -> String {
        let error = logs.find_map(Result::err).map(|error| error.to_string());
        assert!(logs.next().is_none(), "nothing follows an error");
        error.unwrap_or_default()
    }

    #[test]
    fn logs_are_merged_by_time_and_their_devices_are_different() {
        let mut logs = Logs::new(vec![log(ONE), log(TWO)], Filter::default());
        let found = read_all(&mut logs);
        let wanted = [(10, 0), (1, 1), (2, 2), (11, 0), (3, 1), (12, 3), (4, 2)];
        assert_eq!(found, wanted);
        assert_eq!(logs.position(), None);
        let mut one = Logs::new(vec![log(ONE)], Filter::default());
        assert_eq!(read_all(&mut one), [(1, 0), (2, 1), (3, 0), (4, 1)]);
        assert_eq!(one.position(), Some(Position::Line(5)));
    }

    #[test]
    fn a_filter_leaves_out_by_time_from_the_first_request_device_direction_and_process() {
        let seconds =
            |from: u64, until: u64| Some(Nanos(from * 1_000_000_000)..Nanos(until * 1_000_000_000));
        let all = Filter::default();
        for (filter, wanted, unwanted) in [
            (
                Filter {
                    times: seconds(1, 10),
                    ..all.clone()
                },
                &[2, 3][..],
                1,
            ),
            (
                Filter {
                    devices: vec![1],
                    ..all.clone()
                },
                &[2, 4],
                2,
            ),
            (
                Filter {
                    op: Some(Op::Write),
                    ..all.clone()
                },
                &[2],
                3,
            ),
            (
                Filter {
                    processes: vec![7, 9],
                    op: Some(Op::Read),
                    ..all
                },
                &[1, 3, 4],
                1,
            ),
        ] {
            let mut logs = Logs::new(vec![log(ONE)], filter.clone());
            let blocks: Vec<u64> = read_all(&mut logs)
                .iter()
                .map(|(block, _)| *block)
                .collect();
            assert_eq!(
                (&blocks[..], logs.unwanted()),
                (wanted, unwanted),
                "{filter:?}"
            );
        }
    }

    #[test]
    fn a_request_without_the_fact_that_is_asked_for_and_an_empty_part_are_errors() {
        let untimed = "block,device\n1,0\n2,0\n";
        let both = Logs::new(vec![log(ONE), log(untimed)], Filter::default());
        let said = message(both);
        assert!(
            said.starts_with("log:2: time \"\": must be there: several"),
            "{said}"
        );
        let part = Filter {
            times: Some(Nanos(0)..Nanos(1)),
            ..Filter::default()
        };
        let said = message(Logs::new(vec![log(untimed)], part));
        assert!(said.contains("--from and --until go by it"), "{said}");
        let process = Filter {
            processes: vec![1],
            ..Filter::default()
        };
        let said = message(Logs::new(vec![log(untimed)], process.clone()));
        assert!(said.contains("--only-processes goes by it"), "{said}");
        let said = message(Logs::new(vec![log(ONE)], process));
        let none = "none of its 4 requests, to devices 0 to 1, is";
        assert!(said.contains(none), "{said}");
    }
}
