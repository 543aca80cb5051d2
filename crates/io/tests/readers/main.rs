//! Readers as programs have them: hits under eviction, everything at once from a seed, and streams.
//!
//! Apart from `suite`, because these run in release, too: they look for races, and streams for asynchronous programs need
//! a feature.

mod hits;
mod streams;
mod swarm;
