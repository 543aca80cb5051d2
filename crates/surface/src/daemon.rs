//! Daemons of forerun as their users see them: a mount, or a watch.
//!
//! Both are asked over a socket of their user's, found in one folder, measured by Prometheus and started in the
//! background, and what they answer is one [`report::Report`]. A daemon brings its answers; everything that a stranger
//! can reach has its limits here.
//!
//! ```text
//! background   started, known to work, detached       sockets   where daemons are found
//! control      questions and answers, one line each   clients   32 connections, 5 s each
//! report       the state of a daemon as one value     metrics   the same for Prometheus
//! ```
//!
//! [`forerun ctl`, `forerun top`](control::ask) are the clients.

pub mod announced;
pub mod background;
mod clients;
pub mod control;
pub mod metrics;
pub mod report;
pub mod sockets;
pub mod status;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Makes a call that must not end its thread; whether it went without a panic.
pub fn caught(call: impl FnOnce()) -> bool {
    let went = catch_unwind(AssertUnwindSafe(call)).is_ok();
    if !went {
        tracing::error!("a call panicked, and its program gets an I/O error: a defect of forerun");
    }
    went
}
