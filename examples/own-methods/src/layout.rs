//! Zigzag: strips go from the first member to the last and back, stripe by stripe.
//!
//! ```text
//! 3 members    0  1  2
//!              5  4  3      strips 2 and 3 follow each other on one member
//!              6  7  8
//! ```

use forerun_core::layout::{Layout, Piece};
use forerun_core::spec::{Knows, Method, Param, Spec};

pub static ZIGZAG: Method<Box<dyn Layout>> = Method {
    spec: Spec {
        name: "zigzag",
        summary: "strips go to the last member and back",
        source: "example",
        unfit: "single devices",
        knows: Knows::Online,
        params: &[Param {
            name: "strip_bytes",
            summary: "length of a strip; 256 KiB are four reads of this example",
            default: 256 << 10,
            min: 4096,
            max: 1 << 30,
        }],
    },
    build: |values| {
        Box::new(Zigzag {
            strip: values.get("strip_bytes"),
        })
    },
};

#[derive(Debug)]
struct Zigzag {
    strip: u64,
}

impl Layout for Zigzag {
    fn piece(&self, offset: u64, members: usize) -> Piece {
        let count = members.max(1) as u64;
        let (strip, within) = (offset / self.strip, offset % self.strip);
        let (stripe, at) = (strip / count, strip % count);
        let member = if stripe % 2 == 0 { at } else { count - 1 - at };
        Piece {
            member: member as usize,
            offset: stripe * self.strip + within,
            bytes: self.strip - within,
        }
    }

    fn unit(&self) -> u64 {
        self.strip
    }

    fn accepts(&self, members: usize) -> bool {
        members >= 2
    }
}
