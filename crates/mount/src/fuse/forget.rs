//! Names that the kernel is asked to forget, so that the daemon may.
//!
//! Problem: the kernel keeps names and folders as long as it has memory, and the daemon has a record of each.
//! Mechanism: it is sent the numbers of nodes (`FUSE_NOTIFY_PRUNE`, Linux 6.18), drops those that no program has in
//! use, and tells the daemon so. A folder goes after the names below it; one that a program stands in, or on which
//! something is mounted, stays.
//!
//! ```text
//! 20,000 nodes, 16,384 may stay --> prune 3,616 numbers --> forget 3,610: six are in use
//! ```
//!
//! Older kernels are told names one by one (`FUSE_NOTIFY_INVAL_ENTRY`). They drop folders in use, too, so
//! these are left out; and they wait for listings of a name's folder.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use fuser::{INodeNo, Notifier};
use rustix::io::Errno;

use crate::fs::nodes::Node;
use crate::mounted::Mounted;

/// Numbers in one notice: a page of them.
const AT_ONCE: usize = 500;

/// `FUSE_NOTIFY_PRUNE` of `linux/fuse.h`.
const PRUNE: u32 = 9;

/// Bytes of `fuse_out_header` and `fuse_notify_prune_out`.
const HEADER_BYTES: usize = 16 + 16;

/// Nodes, most, before the kernel is asked to forget some: 8 MB, and more than programs use at a time.
pub const NODES_MAX: usize = 16 << 10;

/// Whether there are more nodes than there is memory for.
pub fn has_surplus(mounted: &dyn Mounted) -> bool {
    mounted.known() > mounted.known_max()
}

/// So many nodes with the least keys.
pub fn least<K: Ord + Copy>(mut nodes: Vec<(K, Node)>, count: usize) -> Vec<Node> {
    if count < nodes.len() {
        nodes.select_nth_unstable_by_key(count, |(key, _)| *key);
        nodes.truncate(count);
    }
    nodes.into_iter().map(|(_, node)| node).collect()
}

/// See the [module](self).
#[derive(Debug)]
pub struct Forget {
    channel: OwnedFd,
    notifier: Notifier,
    prunes: AtomicBool,
}

impl Forget {
    /// By a channel of a session.
    pub fn new(channel: OwnedFd, notifier: Notifier) -> Self {
        Self {
            channel,
            notifier,
            prunes: AtomicBool::new(true),
        }
    }

    /// Has those nodes forgotten that are too many. Called now and then, by a thread that may wait.
    pub fn surplus(&self, mounted: &dyn Mounted) {
        if !has_surplus(mounted) {
            return;
        }
        let count = mounted.known().saturating_sub(mounted.known_max());
        let prunes = self.prunes.load(Ordering::Relaxed);
        let nodes = mounted.least_needed(count, prunes);
        if !prunes {
            for (folder, name) in nodes.iter().filter_map(|node| mounted.place(*node)) {
                // One that is gone already needs no notice.
                let _ = self.notifier.inval_entry(INodeNo(folder.0), &name);
            }
            return;
        }
        for some in nodes.chunks(AT_ONCE) {
            // Another error is the end of the mount, or of these nodes.
            if prune(self.channel.as_fd(), some) == Err(Errno::INVAL) {
                return self.prunes.store(false, Ordering::Relaxed);
            }
        }
    }
}

fn prune(channel: BorrowedFd<'_>, nodes: &[Node]) -> Result<(), Errno> {
    let notice = notice(nodes);
    rustix::io::write(channel, &notice).map(drop)
}

/// Header (length, kind, no request), count, and the numbers.
fn notice(nodes: &[Node]) -> Vec<u8> {
    let length = HEADER_BYTES + nodes.len() * size_of::<u64>();
    let mut notice = Vec::with_capacity(length);
    notice.extend((length as u32).to_ne_bytes());
    notice.extend(PRUNE.to_ne_bytes());
    notice.extend(0_u64.to_ne_bytes());
    notice.extend((nodes.len() as u32).to_ne_bytes());
    notice.resize(HEADER_BYTES, 0);
    notice.extend(nodes.iter().flat_map(|node| node.0.to_ne_bytes()));
    notice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_as_the_kernel_reads_it() {
        let notice = notice(&[Node(7), Node(u64::MAX)]);
        let word = |at: usize| u32::from_ne_bytes(notice[at..at + 4].try_into().unwrap());
        assert_eq!(notice.len(), 48);
        let words: Vec<u32> = (0..48).step_by(4).map(word).collect();
        assert_eq!(words[..2], [48, 9]);
        assert_eq!(words[2..4], [0, 0]);
        assert_eq!(words[4..8], [2, 0, 0, 0]);
        assert_eq!(notice[32..40], 7_u64.to_ne_bytes());
        assert_eq!(notice[40..], [255; 8]);
    }
}
