//! Deadline: an elevator that goes upwards in batches, and back to requests that wait too long.
//!
//! An elevator serves the nearest request ahead, so a stream that always has one more starves a
//! request behind the head. Here a request has a deadline, `expire_ns` after it came, and the
//! elevator is interrupted at most once a batch to look at it:
//!
//! ```text
//! batch under way, shorter than fifo_batch, a request lies ahead  -> that request
//! else: the oldest request is past its deadline                   -> that request, a new batch from there
//!       a request lies ahead                                      -> that request, a new batch
//!       none does                                                 -> the lowest one, a new batch
//! ```
//!
//! With `fifo_batch = 2`, the head at 50, and request 10 past its deadline: 60, 70 end the batch,
//! then 10, then 80. Requests that follow each other in the queue become one, as in a block layer.
//! Writes, which have a queue and a longer deadline of their own in Linux, do not occur.

use forerun_core::Bytes;
use forerun_core::spec::{Knows, Method, Param, Spec};

use super::{Head, Next, Scheduler, Waiting};

pub(super) const METHOD: Method<Box<dyn Scheduler>> = Method {
    spec: Spec {
        name: "deadline",
        summary: "upwards in batches, and back to requests that are past their deadline",
        source: "Linux 2.6, deadline-iosched",
        unfit: "many sequential readers: it leaves each after one request, where anticipatory waits",
        knows: Knows::Online,
        params: &[
            Param {
                name: "expire_ns",
                summary: "age from which a request goes first; 500 ms is Linux's read_expire",
                default: 500_000_000,
                min: 1_000_000,
                max: 60_000_000_000,
            },
            Param {
                name: "fifo_batch",
                summary: "requests of the elevator before deadlines are looked at; 16 is Linux's",
                default: 16,
                min: 1,
                max: 1 << 16,
            },
            Param {
                name: "merge_bytes",
                summary: "longest merged request; 512 KiB is Linux's max_sectors_kb for SCSI; 0: none",
                default: 512 << 10,
                min: 0,
                max: 1 << 30,
            },
        ],
    },
    build: |values| {
        Box::new(Deadline {
            expire: values.get("expire_ns"),
            batch: values.get("fifo_batch"),
            merge: Bytes(values.get("merge_bytes")),
            served: 0,
        })
    },
};

#[derive(Debug)]
struct Deadline {
    expire: u64,
    /// Requests of a batch.
    batch: u64,
    merge: Bytes,
    /// Requests served of the batch under way; none at the beginning.
    served: u64,
}

impl Scheduler for Deadline {
    fn pick(&mut self, waiting: &Waiting, head: Head) -> Option<Next> {
        let ahead = waiting.at_or_after(head.at);
        if let Some(ahead) = ahead.filter(|_| (1..self.batch).contains(&self.served)) {
            self.served += 1;
            return Some(Next::Serve(ahead));
        }
        self.served = 1;
        let (oldest, came) = waiting.oldest_since()?;
        let next = match head.now.since(came).0 >= self.expire {
            true => oldest,
            false => ahead.or_else(|| waiting.at_or_after(Bytes(0)))?,
        };
        Some(Next::Serve(next))
    }

    fn merge_max(&self) -> Bytes {
        self.merge
    }
}

#[cfg(test)]
mod tests {
    use forerun_core::{Nanos, Profile};

    use super::*;
    use crate::device::switching::Switching;
    use crate::device::{Device, Request};
    use crate::wrap::Queued;

    /// The order in which requests end that come while one at 500 is served, each for 10 ms.
    fn order(text: &str, positions: &[u64]) -> Vec<(u64, u64)> {
        let profile = Profile::constant(Nanos(10_000_000), 1_000_000_000).unwrap();
        let mut device = Queued::new(super::super::parse(text).unwrap(), Switching::new(profile));
        for &at in [500].iter().chain(positions) {
            device.submit(Nanos(0), Request::new(at, Bytes(at), Bytes(1)));
        }
        let mut done = Vec::new();
        while let Some(next) = device.next_event() {
            device.advance(next, &mut done);
        }
        let ms = |at: Nanos| at.0 / 1_000_000;
        done.iter()
            .skip(1)
            .map(|one| (one.id, ms(one.at)))
            .collect()
    }

    fn ids(order: &[(u64, u64)]) -> Vec<u64> {
        order.iter().map(|(id, _)| *id).collect()
    }

    #[test]
    fn without_old_requests_the_elevator_goes_upwards_only() {
        let asked = [900, 100, 520, 450, 700, 300];
        let found = order("deadline", &asked);
        assert_eq!(ids(&found), [520, 700, 900, 100, 300, 450]);
    }

    #[test]
    fn an_expired_request_waits_for_the_end_of_a_batch_and_begins_one() {
        // The one at 500 ends after 10 ms and is the first of a batch of 4. After three more, at 40
        // ms, that at 100 is past 25 ms; the batch from there goes on upwards.
        let asked = [100, 600, 620, 640, 660, 680, 110];
        let found = order("deadline(expire_ns=25000000,fifo_batch=4)", &asked);
        assert_eq!(ids(&found), [600, 620, 640, 100, 110, 660, 680]);
        let patient = order("deadline(fifo_batch=4)", &asked);
        assert_eq!(ids(&patient), [600, 620, 640, 660, 680, 100, 110]);
    }

    #[test]
    fn a_read_waits_no_longer_than_half_a_second_and_a_batch() {
        let ahead = (0..200).map(|at| 1000 + 10 * at);
        let asked: Vec<u64> = core::iter::once(100).chain(ahead).collect();
        let ended = |text| {
            order(text, &asked)
                .iter()
                .find(|one| one.0 == 100)
                .unwrap()
                .1
        };
        let found = ended("deadline");
        assert!((500..=500 + 17 * 10 + 10).contains(&found), "{found} ms");
        assert!(ended("cscan") > 2000);
    }

    #[test]
    fn requests_that_follow_each_other_become_one() {
        let found = order("deadline", &[600, 601, 602]);
        let first = found[0].1;
        assert!(found.iter().all(|one| one.1 == first), "{found:?}");
        let apart = order("deadline(merge_bytes=0)", &[600, 602, 604]);
        assert!(apart[2].1 > apart[0].1);
    }
}
