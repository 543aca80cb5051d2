//! One run of one candidate: cold, set, in its memory, a server asked by clients.
//!
//! Called by [`servers`](super). The server is in the memory group, with `forerun mount` where that
//! is the candidate; wrk stands for other machines and is not. Counters of the disks before and
//! after give the requests that reached them.

use std::path::Path;

use crate::bench::Bench;
use crate::failure::Failure;
use crate::status::{self, DiskUsage};
use crate::table::rival::{self, Rival};
use crate::table::side::Side;
use crate::{servers::media, servers::search};

use super::{Answers, Comparison, Server};

/// Memory of a server for each client, beside the page cache: nginx copies by 64 KiB; a client of
/// Xapian is a process of 1.6 MB.
const NGINX_BYTES: usize = 64 << 10;
const XAPIAN_BYTES: usize = 2 << 20;

/// Figures of one run.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Measured {
    pub(super) answers: Answers,
    pub(super) disk_requests: f64,
    pub(super) disk_bytes: f64,
    pub(super) disk_switches: f64,
    pub(super) late_ns: f64,
    pub(super) resident_max_bytes: Option<u64>,
}

impl Bench<'_, Comparison> {
    pub(super) fn run(&mut self, side: &Side, clients: usize) -> Result<Measured, Failure> {
        let (queue, memory) = (side.queue(self.bed), self.comparison.memory_bytes);
        self.cold(&queue, memory, |bench, group| {
            bench.run_in(group, side, clients)
        })
    }

    fn run_in(
        &mut self,
        group: Option<&Path>,
        side: &Side,
        clients: usize,
    ) -> Result<Measured, Failure> {
        let compared = self.comparison;
        let client = match compared.server {
            Server::Media => NGINX_BYTES,
            Server::Search { .. } => XAPIAN_BYTES,
        };
        let memory = rival::share(compared.memory_bytes, client, clients);
        let rival = Rival::start(self, side, compared.forerun.as_deref(), memory, group)?;
        let folder = Rival::folder(rival.as_ref(), self.place);
        let asked = self.ask(group, folder, clients);
        let resident_max_bytes = rival.as_ref().and_then(Rival::resident_max_bytes);
        let stopped = rival.map_or(Ok(()), Rival::stop);
        let (answers, before, after) = asked?;
        stopped?;
        Measured::new(answers, &before, &after, resident_max_bytes)
    }

    fn ask(
        &self,
        group: Option<&Path>,
        folder: &Path,
        clients: usize,
    ) -> Result<(Answers, Vec<DiskUsage>, Vec<DiskUsage>), Failure> {
        let time = self.comparison.time;
        let usage = || status::usage(self.place);
        match &self.comparison.server {
            Server::Media => {
                media::warm_names(self.place, folder, group)?;
                let nginx = media::Nginx::start(self.state.folder(), folder, group)?;
                let before = usage();
                let answers = nginx.ask(self.state.folder(), clients, time);
                let after = usage();
                nginx.stop()?;
                Ok((answers?, before?, after?))
            }
            Server::Search { .. } => {
                let (before, seed) = (usage()?, self.bed.files.seed);
                let answers = search::ask(self.state.folder(), folder, group, clients, time, seed)?;
                Ok((answers, before, usage()?))
            }
        }
    }
}

impl Measured {
    fn new(
        answers: Answers,
        before: &[DiskUsage],
        after: &[DiskUsage],
        resident_max_bytes: Option<u64>,
    ) -> Result<Self, Failure> {
        if answers.errors > 0 {
            let text = format!("{} requests failed", answers.errors);
            return Err(Failure::Run(text));
        }
        let sum = |field: fn(&DiskUsage) -> u64| {
            let total = |disks: &[DiskUsage]| disks.iter().map(field).sum::<u64>();
            total(after).saturating_sub(total(before)) as f64
        };
        Ok(Self {
            answers,
            disk_requests: sum(|d| d.requests).max(1.0),
            disk_bytes: sum(|d| d.bytes),
            disk_switches: sum(|d| d.switches),
            late_ns: sum(|d| d.late_ns),
            resident_max_bytes,
        })
    }

    pub(super) fn per_second(&self) -> f64 {
        self.answers.completed / self.answers.seconds
    }

    #[cfg(test)]
    pub(super) fn of_rate(per_second: f64) -> Self {
        let answers = Answers {
            completed: per_second,
            seconds: 1.0,
            p50_ms: 1.0,
            p99_ms: 2.0,
            slowest_per_mean: 1.0,
            errors: 0,
        };
        Self {
            answers,
            disk_requests: 1.0,
            disk_bytes: 4096.0,
            disk_switches: 1.0,
            late_ns: 0.0,
            resident_max_bytes: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_with_failed_requests_is_no_result() {
        let mut answers = Measured::of_rate(5.0).answers;
        assert!(Measured::new(answers.clone(), &[], &[], None).is_ok());
        answers.errors = 3;
        let said = Measured::new(answers, &[], &[], None)
            .unwrap_err()
            .to_string();
        assert_eq!(said, "3 requests failed");
    }
}
