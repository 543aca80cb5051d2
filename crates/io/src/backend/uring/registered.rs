//! The arena's memory, registered with a ring piece by piece as it is first used.
//!
//! A read into registered memory saves the kernel from looking up and pinning its pages each
//! time. Registering makes memory resident, so it is done in chunks when a request first falls
//! into one: memory nobody uses stays unused. Where the kernel refuses (an old one, the limit of
//! locked memory) reads simply go unregistered.
//!
//! Registered pages stay with the kernel even where the process gives them back, and reads would go
//! on filling them. So before that they are let go of, all of them, and none is registered until it
//! is allowed again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use io_uring::IoUring;

use crate::arena::Arena;
use crate::sync::Mutex;

/// Small enough that registering one is not felt, large enough that few requests straddle two.
const CHUNK_BYTES: usize = 16 << 20;

/// The most chunks a ring takes (`IORING_MAX_REG_BUFFERS`); memory beyond goes unregistered.
const CHUNKS_MAX: usize = 1 << 14;

/// See the [module](self).
pub(super) struct Registered {
    arena: Arc<Arena>,
    chunks: Mutex<Vec<State>>,
    forbidden: AtomicBool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Unused,
    Registered,
    Refused,
}

impl Registered {
    /// Reserves the ring's table of chunks; with none if the kernel has no such table.
    pub(super) fn new(ring: &IoUring, arena: Arc<Arena>) -> Self {
        let chunks = arena.bytes().div_ceil(CHUNK_BYTES).min(CHUNKS_MAX);
        let reserved = ring
            .submitter()
            .register_buffers_sparse(chunks as u32)
            .is_ok();
        let chunks = Mutex::new(vec![State::Unused; if reserved { chunks } else { 0 }]);
        Self {
            arena,
            chunks,
            forbidden: AtomicBool::new(false),
        }
    }

    /// The chunk that holds `length` bytes from `address` on, registered now if it was not.
    pub(super) fn chunk(&self, ring: &IoUring, address: usize, length: usize) -> Option<u16> {
        let from = address.checked_sub(self.arena.base() as usize)?;
        let chunk = from / CHUNK_BYTES;
        if length == 0 || (from + length - 1) / CHUNK_BYTES != chunk {
            return None;
        }
        if self.forbidden.load(Ordering::Acquire) {
            return None;
        }
        let mut chunks = self.chunks.lock();
        let state = chunks.get_mut(chunk)?;
        if *state == State::Unused {
            *state = self.register(ring, chunk);
        }
        (*state == State::Registered).then_some(chunk as u16)
    }

    /// Allows or forbids registered memory; when forbidden, what is registered is let go of. Reads
    /// that were handed to the kernel before keep what they fill until they end. The caller sees to
    /// it that no other read is about to be. False if the kernel refuses.
    pub(super) fn allow(&self, ring: &IoUring, may: bool) -> bool {
        let mut chunks = self.chunks.lock();
        self.forbidden.store(!may, Ordering::Release);
        let mut all = true;
        for (chunk, state) in chunks.iter_mut().enumerate() {
            if !may && *state == State::Registered {
                let (base, length) = (std::ptr::null_mut(), 0);
                if Self::update(ring, chunk, base, length) {
                    *state = State::Unused;
                }
            }
            all &= may || *state != State::Registered;
        }
        all
    }

    fn register(&self, ring: &IoUring, chunk: usize) -> State {
        let start = chunk * CHUNK_BYTES;
        let length = CHUNK_BYTES.min(self.arena.bytes() - start);
        let base = self.arena.base().wrapping_add(start).cast();
        if Self::update(ring, chunk, base, length) {
            State::Registered
        } else {
            State::Refused
        }
    }

    /// Puts a range of the arena, or nothing, into the ring's table; whether the kernel takes it.
    fn update(ring: &IoUring, chunk: usize, base: *mut libc::c_void, length: usize) -> bool {
        let piece = [libc::iovec {
            iov_base: base,
            iov_len: length,
        }];
        let submitter = ring.submitter();
        // SAFETY: the range is empty or lies in the arena, which this struct keeps mapped as long as
        // the ring exists; what the kernel writes there is decided by the requests alone.
        unsafe { submitter.register_buffers_update(chunk as u32, &piece, None) }.is_ok()
    }
}
