//! Validation of a drive: a measured trace replayed, and its response times compared.
//!
//! Each request of such a trace has the response time of the real drive, and the gap from its
//! completion to the issue of the next. The modelled drive gets the same requests with the same
//! gaps, one at a time, without a cache or a queue in front:
//!
//! ```text
//! measured   issue --response--> completion --gap--> issue --response--> ..
//! modelled   issue --ours------> completion --gap--> issue --ours------> ..
//! ```
//!
//! The gap is the computing that the trace has; else the time between the completion of the request before and the
//! arrival, none where that is negative. The first request has no gap but its computing.
//!
//! A trace with arrivals in place of responses is replayed in an open loop ([`arrive`]): each device of it is a drive of its
//! own, and a request waits for those before it on its drive.
//!
//! The distance of the two is the root of the mean square difference of the sorted response
//! times, rank by rank: the horizontal distance of the two distributions, the "demerit figure" of
//! Ruemmler and Wilkes (1994) in absolute time. Of times 1, 2, 3 ms and 1, 2, 6 ms it is
//! sqrt(9 / 3) = 1.73 ms.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::Arc;

use forerun_core::Nanos;

use crate::device::hdd::{Access, Drawing, Drive};
use crate::trace::{Op, Place, Record, TraceError};

/// Most requests of a trace; they are kept in memory, 40 bytes each.
pub const REQUESTS_MAX: usize = 1 << 24;

/// A request, and how long the real drive took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Measured {
    /// Sectors of the drive.
    pub access: Access,
    /// From the completion of the request before to this one's issue.
    pub gap: Nanos,
    /// From its issue to its completion.
    pub response: Nanos,
}

/// The reason why a trace cannot validate a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ValidateError {
    /// It cannot be read.
    Trace(TraceError),
    /// It has no requests.
    Empty,
    /// It has more than [`REQUESTS_MAX`].
    Many,
    /// A request, counted from 1, without a measured response time.
    Response(u64),
    /// A request, counted from 1, without the time it came.
    Arrival(u64),
    /// A request, counted from 1, with neither computing before it nor its arrival and the one before.
    Gap(u64),
    /// A request, counted from 1, to another device than the first one's.
    Device(u64),
    /// A request, counted from 1, that names a block and no place on a device.
    Place(u64),
    /// A request, counted from 1, that does not end where a sector of this size ends.
    Sector(u64, u64),
    /// A request, counted from 1, that ends at a byte past the drive's last one.
    PastEnd {
        /// Which request.
        request: u64,
        /// Where it ends.
        end: u64,
        /// Capacity of the drive.
        capacity: u64,
    },
}

impl fmt::Display for ValidateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trace(error) => error.fmt(f),
            Self::Empty => f.write_str("there are no requests in it"),
            Self::Many => write!(f, "more than {REQUESTS_MAX} requests"),
            Self::Response(request) => write!(
                f,
                "request {request} has no measured response time; \
                 of the formats, disksim-validate has it"
            ),
            Self::Arrival(request) => write!(
                f,
                "request {request} has no time: an open loop goes by the recorded arrivals"
            ),
            Self::Gap(request) => write!(
                f,
                "request {request} has no gap before it: that takes the computing between the two, \
                 or the arrivals of both"
            ),
            Self::Device(request) => write!(
                f,
                "request {request} is to another device than the first: one drive is replayed, and \
                 --only-devices takes the requests to one device (--loop open has a drive for each)"
            ),
            Self::Place(request) => {
                write!(f, "request {request} names a block, not a place on a drive")
            }
            Self::Sector(request, sector) => write!(
                f,
                "request {request} does not begin and end at sectors of {sector} bytes"
            ),
            Self::PastEnd {
                request,
                end,
                capacity,
            } => write!(
                f,
                "request {request} ends at byte {end}; the drive holds {capacity}"
            ),
        }
    }
}

impl core::error::Error for ValidateError {}

/// Requests for a drive, of a trace.
///
/// # Errors
/// The first request that lacks a field, or is not one of this drive.
pub fn requests(
    records: impl IntoIterator<Item = Result<Record, TraceError>>,
    drawing: &Drawing,
) -> Result<Vec<Measured>, ValidateError> {
    let (mut requests, mut completed, mut device) = (Vec::new(), None, None);
    for (request, record) in (1..).zip(records) {
        if requests.len() == REQUESTS_MAX {
            return Err(ValidateError::Many);
        }
        let record = record.map_err(ValidateError::Trace)?;
        if *device.get_or_insert(record.device) != record.device {
            return Err(ValidateError::Device(request));
        }
        let response = record.response.ok_or(ValidateError::Response(request))?;
        requests.push(Measured {
            access: access(&record, request, drawing)?,
            gap: gap(&record, request, completed)?,
            response,
        });
        completed = record
            .arrival
            .map(|arrival| Nanos(arrival.0.saturating_add(response.0)));
    }
    match requests.is_empty() {
        true => Err(ValidateError::Empty),
        false => Ok(requests),
    }
}

/// From the completion of the request before, where it is known, to the issue of this one.
fn gap(record: &Record, request: u64, completed: Option<Nanos>) -> Result<Nanos, ValidateError> {
    let since = || Some(record.arrival?.since(completed?));
    let gap = record.compute.or_else(since);
    gap.or((request == 1).then_some(Nanos(0)))
        .ok_or(ValidateError::Gap(request))
}

/// The sectors of a request.
fn access(record: &Record, request: u64, drawing: &Drawing) -> Result<Access, ValidateError> {
    let Place::Byte(at) = record.place else {
        return Err(ValidateError::Place(request));
    };
    let end = at.saturating_add(record.bytes.into());
    let (sector, capacity) = (drawing.sector_bytes(), drawing.capacity().0);
    if at % sector != 0 || end % sector != 0 {
        return Err(ValidateError::Sector(request, sector));
    }
    if end > capacity {
        return Err(ValidateError::PastEnd {
            request,
            end,
            capacity,
        });
    }
    Ok(Access {
        lbn: at / sector,
        sectors: (end - at) / sector,
        is_write: record.op == Op::Write,
    })
}

/// Response times of requests that come at their own times.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Arrived {
    /// Whether each writes, and its response: from its arrival to its end.
    pub responses: Vec<(bool, Nanos)>,
    /// The share of the time that the busiest drive is at work, in thousandths: of the time from the first arrival to
    /// the end of the last request.
    pub busiest_per_mille: u64,
}

/// Replays requests at their arrivals, in order of arrival on each drive; each device of the trace is a drive of this
/// drawing.
///
/// # Errors
/// The first request that lacks a field, or is not one of this drive.
pub fn arrive(
    records: impl IntoIterator<Item = Result<Record, TraceError>>,
    drawing: &Arc<Drawing>,
) -> Result<Arrived, ValidateError> {
    let mut drives: BTreeMap<u32, Queued> = BTreeMap::new();
    let (mut arrived, mut first, mut last) = (Arrived::default(), Nanos(u64::MAX), Nanos(0));
    for (request, record) in (1..).zip(records) {
        if arrived.responses.len() == REQUESTS_MAX {
            return Err(ValidateError::Many);
        }
        let record = record.map_err(ValidateError::Trace)?;
        let arrival = record.arrival.ok_or(ValidateError::Arrival(request))?;
        let access = access(&record, request, drawing)?;
        let drive = drives.entry(record.device).or_insert_with(|| Queued {
            drive: Drive::new(Arc::clone(drawing)),
            free: Nanos(0),
            busy: Nanos(0),
        });
        let begin = arrival.max(drive.free);
        drive.free = drive.drive.serve(begin, access);
        drive.busy.0 += drive.free.since(begin).0;
        (first, last) = (first.min(arrival), last.max(drive.free));
        let response = drive.free.since(arrival);
        arrived.responses.push((access.is_write, response));
    }
    let busiest = drives.values().map(|drive| drive.busy.0).max();
    let busiest = busiest.ok_or(ValidateError::Empty)?;
    let time = u128::from(last.since(first).0.max(1));
    arrived.busiest_per_mille = (u128::from(busiest) * 1000 / time) as u64;
    Ok(arrived)
}

/// A drive with its requests in order of arrival.
struct Queued {
    drive: Drive,
    free: Nanos,
    busy: Nanos,
}

/// Response times of a drive of this drawing, request by request.
#[must_use]
pub fn replay(drawing: &Arc<Drawing>, requests: &[Measured]) -> Vec<Nanos> {
    let mut drive = Drive::new(Arc::clone(drawing));
    let mut now = Nanos(0);
    let respond = |one: &Measured| {
        let issue = Nanos(now.0.saturating_add(one.gap.0));
        now = drive.serve(issue, one.access);
        now.since(issue)
    };
    requests.iter().map(respond).collect()
}

/// Two distributions of response times, sorted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Compared {
    measured: Vec<Nanos>,
    modelled: Vec<Nanos>,
}

impl Compared {
    /// Of the requests selected by `is_in`, with the times of [`replay`].
    #[must_use]
    pub fn new(requests: &[Measured], times: &[Nanos], is_in: impl Fn(&Measured) -> bool) -> Self {
        let pairs = requests.iter().zip(times).filter(|(one, _)| is_in(one));
        let (mut measured, mut modelled): (Vec<Nanos>, Vec<Nanos>) =
            pairs.map(|(one, &time)| (one.response, time)).unzip();
        measured.sort_unstable();
        modelled.sort_unstable();
        Self { measured, modelled }
    }

    /// Number of requests.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.measured.len()
    }

    /// Measured response times, sorted.
    #[must_use]
    pub fn measured(&self) -> &[Nanos] {
        &self.measured
    }

    /// The model's, sorted.
    #[must_use]
    pub fn modelled(&self) -> &[Nanos] {
        &self.modelled
    }

    /// The rms horizontal distance of the two in milliseconds; 0 of none.
    #[must_use]
    pub fn distance_ms(&self) -> f64 {
        let pairs = self.measured.iter().zip(&self.modelled);
        let squares = pairs.map(|(a, b)| (a.0.abs_diff(b.0) as f64 / 1e6).powi(2));
        (squares.fold(0.0, |sum, square| sum + square) / self.requests().max(1) as f64).sqrt()
    }
}

/// The mean in milliseconds; 0 of none.
#[must_use]
pub fn mean_ms(times: &[Nanos]) -> f64 {
    // An empty sum of floats is -0.
    let sum = times
        .iter()
        .fold(0.0, |sum, time| sum + time.0 as f64 / 1e6);
    sum / times.len().max(1) as f64
}

/// The time that so many per cent of them do not exceed; 0 of none.
#[must_use]
pub fn percentile(sorted: &[Nanos], percent: u32) -> Nanos {
    let rank = (sorted.len() * percent as usize).div_ceil(100);
    let at = rank.saturating_sub(1);
    sorted.get(at).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Model;

    fn milliseconds(times: &[u64]) -> Vec<Nanos> {
        times.iter().map(|ms| Nanos(ms * 1_000_000)).collect()
    }

    fn measured(lbn: u64, gap: u64, response: u64) -> Measured {
        Measured {
            access: Access {
                lbn,
                sectors: 8,
                is_write: false,
            },
            gap: Nanos(gap),
            response: Nanos(response),
        }
    }

    #[test]
    fn the_distance_is_of_the_sorted_times() {
        let requests: Vec<Measured> = [3_000_000, 1_000_000, 2_000_000]
            .map(|response| measured(0, 0, response))
            .into();
        let times = milliseconds(&[1, 6, 2]);
        let compared = Compared::new(&requests, &times, |_| true);
        assert!((compared.distance_ms() - 3f64.sqrt()).abs() < 1e-9);
        assert!((mean_ms(compared.modelled()) - 3.0).abs() < 1e-9);
        assert_eq!(percentile(compared.modelled(), 50), Nanos(2_000_000));
        assert_eq!(percentile(compared.modelled(), 100), Nanos(6_000_000));
        let none = Compared::new(&requests, &times, |_| false);
        assert_eq!((none.requests(), none.distance_ms()), (0, 0.0));
    }

    #[test]
    fn a_drive_replayed_against_its_own_times_is_at_distance_zero_and_gaps_count() {
        let Some(Model::Hdd(drawing)) = Model::built_in("hp97560") else {
            panic!("there is no hp97560");
        };
        let mut requests: Vec<Measured> = (0..50)
            .map(|n| measured(n * 7919 % 1_000_000, n * 1_000_000, 0))
            .collect();
        let times = replay(&drawing, &requests);
        for (one, &time) in requests.iter_mut().zip(&times) {
            one.response = time;
        }
        let compared = Compared::new(&requests, &times, |_| true);
        assert_eq!(compared.distance_ms(), 0.0);
        requests[20].gap = Nanos(7_000_000);
        let other = Compared::new(&requests, &replay(&drawing, &requests), |_| true);
        assert!(other.distance_ms() > 0.1);
    }

    #[test]
    fn a_trace_that_says_nothing_about_the_drive_is_refused_with_the_request() {
        let Some(Model::Hdd(drawing)) = Model::built_in("hp97560") else {
            panic!("there is no hp97560");
        };
        let of = |record: Record| requests([Ok(record)], &drawing).unwrap_err();
        let whole = Record::range(0, 512).unwrap();
        assert_eq!(of(whole), ValidateError::Response(1));
        let timed = |record: Record| Record {
            response: Some(Nanos(1)),
            ..record
        };
        assert_eq!(of(timed(Record::block(3))), ValidateError::Place(1));
        let torn = Record::range(100, 512).unwrap();
        assert_eq!(of(timed(torn)), ValidateError::Sector(1, 512));
        let far = Record::range(drawing.capacity().0, 512).unwrap();
        assert!(matches!(
            of(timed(far)),
            ValidateError::PastEnd { request: 1, .. }
        ));
        let none = requests(Vec::new(), &drawing);
        assert_eq!(none.unwrap_err(), ValidateError::Empty);
    }

    #[test]
    fn requests_to_several_devices_are_none_of_one_drive() {
        let Some(Model::Hdd(drawing)) = Model::built_in("hp97560") else {
            panic!("there is no hp97560");
        };
        let to = |device: u32| {
            Ok(Record {
                device,
                ..answered(Some(1), 1)
            })
        };
        assert_eq!(requests([to(7), to(7)], &drawing).unwrap().len(), 2);
        let refused = requests([to(7), to(7), to(8)], &drawing).unwrap_err();
        assert_eq!(refused, ValidateError::Device(3));
        assert!(refused.to_string().contains("--only-devices"), "{refused}");
    }

    /// A read with its arrival and its response.
    fn answered(arrival: Option<u64>, response: u64) -> Record {
        Record {
            arrival: arrival.map(Nanos),
            response: Some(Nanos(response)),
            ..Record::range(0, 512).unwrap()
        }
    }

    #[test]
    fn without_computing_the_gap_lies_between_a_completion_and_the_next_arrival() {
        let Some(Model::Hdd(drawing)) = Model::built_in("hp97560") else {
            panic!("there is no hp97560");
        };
        let computed = Record {
            compute: Some(Nanos(7)),
            ..answered(Some(5000), 1)
        };
        // The third one came before the second one had ended.
        let all = [
            answered(Some(1000), 300),
            answered(Some(1500), 900),
            answered(Some(2000), 100),
            answered(Some(2600), 1),
            computed,
        ];
        let found = requests(all.map(Ok), &drawing).unwrap();
        let gaps: Vec<u64> = found.iter().map(|one| one.gap.0).collect();
        assert_eq!(gaps, [0, 200, 0, 500, 7]);
        for pair in [
            [answered(None, 1), answered(None, 1)],
            [answered(None, 1), answered(Some(9), 1)],
            [answered(Some(9), 1), answered(None, 1)],
        ] {
            let refused = requests(pair.map(Ok), &drawing).unwrap_err();
            assert_eq!(refused, ValidateError::Gap(2));
        }
    }

    #[test]
    fn a_drive_is_as_busy_whenever_the_trace_begins() {
        let Some(Model::Hdd(drawing)) = Model::built_in("hp97560") else {
            panic!("there is no hp97560");
        };
        let busiest = |begin: u64| {
            let at = |n: u64| {
                let offset = n * 7919 % 100_000 * 512;
                Ok(Record {
                    arrival: Some(Nanos(begin + n * 50_000_000)),
                    ..Record::range(offset, 512).unwrap()
                })
            };
            arrive((0..100).map(at), &drawing)
                .unwrap()
                .busiest_per_mille
        };
        assert!((100..900).contains(&busiest(0)), "{}", busiest(0));
        // A disk that turns is at another angle.
        let late = busiest(1_000_000_000_000_000_000);
        assert!(late.abs_diff(busiest(0)) < 20, "{late} {}", busiest(0));
    }
}
