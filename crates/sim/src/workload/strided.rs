//! Strided: equal reads with equal gaps, forward through the file or backward from its end.
//!
//! A column of a table on disk, a matrix against the grain, a log read from its tail. A stride
//! equal to the read is plain sequential reading, or plain backward reading.

use forerun_core::Bytes;
use forerun_core::spec::{Knows, Method, Param, Spec};

use super::{FILE_BYTES, PAGE_BYTES, Step, Steps, THINK_NS, Workload};

pub(super) const METHOD: Method<Box<dyn Workload>> = Method {
    spec: Spec {
        name: "strided",
        summary: "equal reads with equal gaps, forward or backward",
        source: "OpenZFS, dmu_zfetch",
        unfit: "strides that change on the way",
        knows: Knows::Online,
        params: &[
            FILE_BYTES,
            PAGE_BYTES,
            THINK_NS,
            Param {
                name: "stride_bytes",
                summary: "from one read's start to the next; 64 KiB leaves three quarters out",
                default: 64 << 10,
                min: 1,
                max: 1 << 40,
            },
            Param {
                name: "backward",
                summary: "0: from the start of the file; 1: from its end",
                default: 0,
                min: 0,
                max: 1,
            },
        ],
    },
    build: |v| {
        Box::new(Strided {
            file_bytes: v.get("file_bytes"),
            read_bytes: v.get("read_bytes"),
            think_ns: v.get("think_ns"),
            stride_bytes: v.get("stride_bytes"),
            backward: v.get("backward") != 0,
        })
    },
};

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct Strided {
    /// Size of the file.
    pub file_bytes: u64,
    /// Bytes of each read.
    pub read_bytes: u64,
    /// Computing time before each read.
    pub think_ns: u64,
    /// Distance from one read's start to the next.
    pub stride_bytes: u64,
    /// Whether the order is reversed.
    pub backward: bool,
}

impl Workload for Strided {
    fn files(&self) -> Vec<Bytes> {
        vec![Bytes(self.file_bytes)]
    }

    fn steps(&self, _reader: usize) -> Steps<'_> {
        let stride = self.stride_bytes.max(1);
        let reads = self.file_bytes.div_ceil(stride);
        Box::new((0..reads).map(move |i| {
            let offset = if self.backward { reads - 1 - i } else { i } * stride;
            let bytes = self.read_bytes.min(self.file_bytes - offset);
            Step::read(offset, bytes, self.think_ns)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backward_is_forward_reversed() {
        let forward = Strided {
            file_bytes: 95,
            read_bytes: 10,
            think_ns: 0,
            stride_bytes: 30,
            backward: false,
        };
        let backward = Strided {
            backward: true,
            ..forward
        };
        let mut reads: Vec<_> = forward.steps(0).collect();
        assert_eq!(reads.last(), Some(&Step::read(90, 5, 0)));
        reads.reverse();
        assert!(backward.steps(0).eq(reads));
    }
}
