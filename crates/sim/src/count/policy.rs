//! Replacement policies that only count: which references a cache of each would have hit.
//!
//! A policy is one file in `policy/`, one `mod` line here and one entry in [`LIST`]; it can then be counted by
//! `forerun trace count`, stands in docs/POLICIES.md, and runs in the tests over all policies. It sees objects as
//! dense numbers, each with a weight: 1 where objects are counted, its bytes where bytes are. The weight of an
//! object is that of the reference that fetched it. An object heavier than the whole cache is never kept. No
//! time, no prefetching, no writes; the engine's own methods are the reclaim family of forerun-core, whose victims
//! are chosen among streams and partitions, which these policies do not know.

pub mod arc;
pub mod clock;
pub mod fifo;
pub mod lirs;
pub mod lru;
mod queues;
pub mod ranked;
pub mod s3_fifo;
pub mod sieve;
pub mod slru;
pub mod two_q;
pub mod w_tinylfu;

use forerun_core::spec::{Knows, Method, Param, Spec};

/// Makes a policy for a cache of a given capacity, with memory for so many different objects; more may come.
pub type Build = Box<dyn Fn(u64, usize) -> Box<dyn Policy>>;

/// The policies. One entry a policy.
pub static LIST: &[Method<Build>] = &[
    lru::METHOD,
    fifo::METHOD,
    clock::METHOD,
    sieve::METHOD,
    slru::METHOD,
    two_q::METHOD,
    arc::METHOD,
    lirs::METHOD,
    s3_fifo::METHOD,
    w_tinylfu::METHOD,
    ranked::LFU_DA,
    ranked::GDSF,
];

/// A cache that counts. See the [module](self).
pub trait Policy {
    /// Uses an object; whether it was resident.
    fn reference(&mut self, object: u32, weight: u32) -> bool;

    /// The weight of all resident objects, at most the capacity.
    fn resident(&self) -> u64;
}

/// The share of a capacity, at least 1 where there is any.
fn share(capacity: u64, per_mille: u64) -> u64 {
    let part = u128::from(capacity) * u128::from(per_mille) / 1000;
    u64::try_from(part).unwrap_or(capacity).max(1).min(capacity)
}

/// A description of a policy; all of them know the past alone.
const fn spec(
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    unfit: &'static str,
    params: &'static [Param],
) -> Spec {
    Spec {
        name,
        summary,
        source,
        unfit,
        knows: Knows::Online,
        params,
    }
}
