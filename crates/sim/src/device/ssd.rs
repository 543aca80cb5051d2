//! Flash: pages striped over channels that work side by side, behind one host link.
//!
//! ```text
//! page p lies on channel p mod channels
//! channel:  each of its pages of the request, one after the other: page_read + page / channel rate
//! request:  command, then the slowest channel; and its bytes over the host link, in order
//! ```
//!
//! A small read costs one page time wherever it lies, a large one the host link's rate, and many
//! small ones together as many channels as they fall on. A page read once more is read anew.
//! Deliberately absent: writes, wear and garbage collection, and the drive's own memory. The two
//! figures that matter, latency of a page and rate of the link, are printed in data sheets.

use std::collections::BTreeSet;

use forerun_core::spec::{Knows, Method, Param, Spec};
use forerun_core::{Bytes, Nanos, Profile};
use serde::Deserialize;

use super::model::{ModelError, milliseconds, range, rate};
use super::{Built, Completion, Device, Outcome, Request, Usage, stated, transfer_time};
use crate::device::needs::Needs;

pub(super) const METHOD: Method<Built> = Method {
    spec: Spec {
        name: "ssd",
        summary: "flash: pages over parallel channels behind one host link",
        source: "reported figures of a SATA drive of 2015",
        unfit: "writes, and the pauses of a drive that collects garbage",
        knows: Knows::Online,
        params: &[
            Param {
                name: "channels",
                summary: "pages read at once",
                default: 8,
                min: 1,
                max: 1024,
            },
            Param {
                name: "page_bytes",
                summary: "unit of reading and striping",
                default: 16_384,
                min: 512,
                max: 1_048_576,
            },
            Param {
                name: "page_read_ns",
                summary: "from the cells to the channel; 60 us is usual for two bits a cell",
                default: 60_000,
                min: 0,
                max: 1_000_000_000,
            },
            Param {
                name: "channel_bytes_per_second",
                summary: "rate of a channel",
                default: 400_000_000,
                min: 1_000_000,
                max: 1_000_000_000_000,
            },
            Param {
                name: "host_bytes_per_second",
                summary: "rate of the link to the host; 550 MB/s is SATA's",
                default: 550_000_000,
                min: 1_000_000,
                max: 1_000_000_000_000,
            },
            Param {
                name: "command_ns",
                summary: "time of each request besides",
                default: 20_000,
                min: 0,
                max: 1_000_000_000,
            },
        ],
    },
    build: |values| {
        Ok(Box::new(Ssd::new(Parameters {
            channels: values.get("channels"),
            page: values.get("page_bytes"),
            page_read: Nanos(values.get("page_read_ns")),
            channel_rate: values.get("channel_bytes_per_second"),
            host_rate: values.get("host_bytes_per_second"),
            command: Nanos(values.get("command_ns")),
        })))
    },
};

/// The parameters of a drive, as in its file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sheet {
    /// Always `ssd`.
    pub kind: String,
    /// Pages read at once.
    pub channels: u64,
    /// Unit of reading and striping.
    pub page_bytes: u64,
    /// From the cells to the channel.
    pub page_read_ms: f64,
    /// Rate of a channel, in units of 10^6 bytes a second.
    pub channel_mb_s: f64,
    /// Rate of the link to the host, in units of 10^6 bytes a second.
    pub host_mb_s: f64,
    /// Time of each request besides.
    pub command_ms: f64,
}

impl Sheet {
    /// The parameters, checked.
    ///
    /// # Errors
    /// The first parameter out of its range.
    pub fn check(&self) -> Result<Parameters, ModelError> {
        range("channels", self.channels as f64, 1.0, 1024.0)?;
        range("page_bytes", self.page_bytes as f64, 512.0, 1_048_576.0)?;
        Ok(Parameters {
            channels: self.channels,
            page: self.page_bytes,
            page_read: milliseconds("page_read_ms", self.page_read_ms, 1e3)?,
            channel_rate: rate("channel_mb_s", self.channel_mb_s)?,
            host_rate: rate("host_mb_s", self.host_mb_s)?,
            command: milliseconds("command_ms", self.command_ms, 1e3)?,
        })
    }
}

/// Checked parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    channels: u64,
    page: u64,
    page_read: Nanos,
    channel_rate: u64,
    host_rate: u64,
    command: Nanos,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Ssd {
    parameters: Parameters,
    /// The time at which each channel is free.
    channels: Vec<Nanos>,
    link: Nanos,
    /// Requests under way, by end and then by number of acceptance.
    open: BTreeSet<(Nanos, u64, u64)>,
    head: Option<Bytes>,
    usage: Usage,
}

impl Ssd {
    /// A drive with nothing under way.
    #[must_use]
    pub fn new(parameters: Parameters) -> Self {
        Self {
            parameters,
            channels: vec![Nanos(0); usize::try_from(parameters.channels).unwrap_or(1).max(1)],
            link: Nanos(0),
            open: BTreeSet::new(),
            head: None,
            usage: Usage::default(),
        }
    }

    /// The time of one page on its channel.
    fn page_time(&self) -> u64 {
        let p = &self.parameters;
        p.page_read.0 + transfer_time(Bytes(p.page), p.channel_rate).0
    }

    /// Puts the pages of a request on their channels; when the last is there. Pages
    /// `first .. first + pages` fall on the channels in turn.
    fn read_pages(&mut self, start: Nanos, first: u64, pages: u64) -> Nanos {
        let count = self.channels.len() as u64;
        let page_time = self.page_time();
        let mut last = start;
        for turn in 0..pages.min(count) {
            let mine = (pages - turn).div_ceil(count);
            let channel = &mut self.channels[((first + turn) % count) as usize];
            let work = page_time.saturating_mul(mine);
            *channel = Nanos((*channel).max(start).0.saturating_add(work));
            self.usage.busy.0 = self.usage.busy.0.saturating_add(work);
            last = last.max(*channel);
        }
        last
    }
}

impl Device for Ssd {
    /// Going elsewhere costs the command and a page; the rate is the slower of link and channels.
    fn profile(&self) -> Profile {
        let p = &self.parameters;
        let page_time = self.page_time();
        let cells = u128::from(p.page) * u128::from(p.channels) * 1_000_000_000
            / u128::from(page_time.max(1));
        let rate = u64::try_from(cells).unwrap_or(u64::MAX).min(p.host_rate);
        let cost = p.command.0 + page_time;
        let profile = Profile::constant(Nanos(cost), rate);
        let profile = profile.and_then(|profile| profile.with_servers(stated(self.servers())));
        profile.unwrap_or_default()
    }

    fn submit(&mut self, now: Nanos, request: Request) {
        let p = self.parameters;
        let start = Nanos(now.0.saturating_add(p.command.0));
        let first = request.at.0 / p.page;
        let pages = request.end().0.div_ceil(p.page) - first;
        let read = self.read_pages(start, first, pages);
        let bytes = transfer_time(request.bytes, p.host_rate).0;
        // The link is busy for the bytes alone, so that a request whose channel is slow does not
        // keep others off it; the last page still has to pass once it is read.
        self.link = Nanos(self.link.max(start).0.saturating_add(bytes));
        let tail = transfer_time(Bytes(request.bytes.0.min(p.page)), p.host_rate).0;
        let end = self.link.max(Nanos(read.0.saturating_add(tail)));
        self.usage.count(&request, self.head != Some(request.at));
        self.head = Some(request.end());
        self.open.insert((end, self.usage.requests, request.id));
    }

    fn next_event(&self) -> Option<Nanos> {
        self.open.first().map(|(end, _, _)| *end)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while let Some(&(at, number, id)) = self.open.first().filter(|(end, _, _)| *end <= now) {
            self.open.remove(&(at, number, id));
            let outcome = Outcome::Done;
            done.push(Completion { id, at, outcome });
        }
    }

    fn usage(&self) -> Usage {
        self.usage
    }

    fn servers(&self) -> u32 {
        u32::try_from(self.channels.len()).unwrap_or(u32::MAX)
    }

    /// After one command, every page is read once, the channels sharing them evenly, and every
    /// byte passes the link.
    fn least(&self, needs: &Needs) -> Nanos {
        if needs.is_empty() {
            return Nanos(0);
        }
        let p = &self.parameters;
        let mine = needs.touched(p.page).div_ceil(p.channels.max(1));
        let pages = self.page_time().saturating_mul(mine);
        let work = pages.max(needs.at_rate(p.host_rate).0);
        Nanos(p.command.0.saturating_add(work))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drive() -> Ssd {
        Ssd::new(Parameters {
            channels: 4,
            page: 1000,
            page_read: Nanos(9_000),
            channel_rate: 1_000_000_000,
            host_rate: 2_000_000_000,
            command: Nanos(500),
        })
    }

    fn ends(requests: &[(u64, u64)]) -> Vec<u64> {
        let mut drive = drive();
        for (id, &(at, bytes)) in (0..).zip(requests) {
            let (at, bytes) = (Bytes(at), Bytes(bytes));
            drive.submit(Nanos(0), Request::new(id, at, bytes));
        }
        let mut done = Vec::new();
        drive.advance(Nanos(u64::MAX), &mut done);
        done.sort_unstable_by_key(|one| one.id);
        done.iter().map(|one| one.at.0).collect()
    }

    #[test]
    fn a_page_costs_command_cells_channel_and_link() {
        assert_eq!(ends(&[(0, 1000)]), [500 + 9_000 + 1_000 + 500]);
    }

    #[test]
    fn pages_on_other_channels_are_read_at_once_and_on_one_in_turn() {
        let one = 500 + 10_000 + 500;
        assert_eq!(ends(&[(0, 1000), (1000, 1000)]), [one, one]);
        assert_eq!(ends(&[(0, 1000), (4000, 1000)]), [one, one + 10_000]);
        assert_eq!(ends(&[(0, 8000)]), [500 + 20_000 + 500]);
    }

    #[test]
    fn the_rate_of_a_profile_is_what_a_long_read_reaches() {
        let [end] = ends(&[(0, 400_000_000)])[..] else {
            panic!("one request, one end");
        };
        let rate = 400_000_000_f64 / (end as f64 / 1e9);
        let stated = drive().profile().rate(Bytes(0)) as f64;
        assert!((rate / stated - 1.0).abs() < 0.001, "{rate} {stated}");
    }
}
