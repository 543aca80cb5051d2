//! Clients: a server of streams, each taken at a steady rate, one more every so often.
//!
//! Each client has a file of its own, is served by a process of its own, and takes so many bytes a
//! second. A read is due when the client has taken the bytes read before; a late read is made at
//! once, as into a socket that has run empty.
//!
//! ```text
//! client 0   |0 1 2 3 4 5 6 ...       1 = the read due a period after the first
//! client 1       |0 1 2 3 4 ...
//! client 2           |0 1 2 ...       memory per client falls until windows are lost before they are read
//! ```

use forerun_core::spec::{Knows, Method, Param, Spec};
use forerun_core::{Bytes, Nanos};

use super::{FILE_BYTES, READ_BYTES, Step, Steps, Workload, run};

pub(super) const METHOD: Method<Box<dyn Workload>> = Method {
    spec: Spec {
        name: "clients",
        summary: "streams taken at a steady rate, one more every so often",
        source: "wu10 section 5.3",
        unfit: "readers as fast as they can: see many-readers",
        knows: Knows::Online,
        params: &[
            FILE_BYTES,
            Param {
                summary: "bytes a read asks for; 4 KiB as in the source",
                default: 4096,
                ..READ_BYTES
            },
            Param {
                name: "clients",
                summary: "how many; each has a file",
                default: 20,
                min: 1,
                max: 1 << 12,
            },
            Param {
                name: "bytes_per_second",
                summary: "rate of each; 100 KB/s as in the source",
                default: 100_000,
                min: 1,
                max: 1 << 40,
            },
            Param {
                name: "every_ns",
                summary: "time between the beginnings of two; a second as in the source",
                default: 1_000_000_000,
                min: 0,
                max: 3_600_000_000_000,
            },
        ],
    },
    build: |v| {
        Box::new(Clients {
            file_bytes: v.get("file_bytes"),
            read_bytes: v.get("read_bytes"),
            clients: v.get("clients") as usize,
            bytes_per_second: v.get("bytes_per_second"),
            every_ns: v.get("every_ns"),
        })
    },
};

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct Clients {
    /// Size of each file.
    pub file_bytes: u64,
    /// Bytes of each read.
    pub read_bytes: u64,
    /// How many.
    pub clients: usize,
    /// The rate of each.
    pub bytes_per_second: u64,
    /// Time between the beginnings of two.
    pub every_ns: u64,
}

impl Workload for Clients {
    fn files(&self) -> Vec<Bytes> {
        vec![Bytes(self.file_bytes); self.clients]
    }

    fn readers(&self) -> Vec<usize> {
        (0..self.clients).collect()
    }

    fn steps(&self, reader: usize) -> Steps<'_> {
        let begin = self.every_ns.saturating_mul(reader as u64);
        let rate = u128::from(self.bytes_per_second.max(1));
        let due = move |offset: u64| {
            let taken = u128::from(offset) * 1_000_000_000 / rate;
            begin.saturating_add(u64::try_from(taken).unwrap_or(u64::MAX))
        };
        let reads = run(0, self.file_bytes, self.read_bytes);
        Box::new(reads.map(move |(offset, bytes)| {
            Step::read(offset, bytes, 0).not_before(Nanos(due(offset)))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_due_at_the_rate_of_the_client_from_its_beginning_on() {
        let workload = Clients {
            file_bytes: 10_000,
            read_bytes: 4_000,
            clients: 3,
            bytes_per_second: 100_000,
            every_ns: 1_000,
        };
        let due = |client| -> Vec<u64> {
            let steps = workload.steps(client);
            steps.map(|step| step.not_before.unwrap().0).collect()
        };
        assert_eq!(due(0), [0, 40_000_000, 80_000_000]);
        assert_eq!(due(2), [2_000, 40_002_000, 80_002_000]);
        assert_eq!(workload.readers(), [0, 1, 2]);
    }
}
