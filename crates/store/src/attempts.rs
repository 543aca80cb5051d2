//! Attempts at a request: after a fault that may pass, another one after a pause, until a deadline.
//!
//! ```text
//! 503   pause 100 ms   reset   pause 200 ms   429, Retry-After: 1   pause 1 s   206
//! 403   no other attempt: it would end the same
//! ```

use std::io;
use std::sync::Arc;
use std::time::Duration;

use forerun_io::error::number;
use forerun_io::source::remote::{Limits, Pauses};
use object_store::Error;
use object_store::client::HttpError;
use tokio::time::{sleep, timeout_at};

use crate::connector::{Refused, noted};
use crate::failure::{self, causes, status, status_of};
use crate::kept::NoKeys;
use crate::store::{Connected, Store};

/// How an attempt ended that did not bring all.
pub(crate) enum Fault {
    /// Another one would end the same.
    Last(io::Error),
    /// Nor this one, with the same credentials.
    Refused(io::Error),
    Passing(io::Error),
    /// Another one may end otherwise: the service of the keys was not there.
    WithoutKeys(io::Error),
}

impl Fault {
    pub(crate) fn of(error: &Error) -> Self {
        let of = failure::of(error);
        let status = status_of(error);
        match number(&of) {
            Some(libc::EACCES) if no_keys(error).is_some_and(NoKeys::is_unreached) => {
                Self::WithoutKeys(of)
            }
            // Keys that cannot be had for a moment.
            Some(libc::EACCES) if may_pass(error) => Self::Passing(of),
            Some(libc::EACCES) => Self::Refused(of),
            // Of S3, for a session that has ended.
            None if status == Some(400) => Self::Refused(of),
            None if may_pass(error) => Self::Passing(of),
            _ => Self::Last(of),
        }
    }
}

/// Why a request had no keys.
fn no_keys(error: &Error) -> Option<&NoKeys> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// Whether the network failed, or the server has no time. A refusal, also by a proxy, an answer that makes no sense, or
/// another protocol or certificate than the one that is expected, would be the same the next time.
pub(crate) fn may_pass(error: &Error) -> bool {
    if causes(error).any(|cause| cause.is::<Refused>()) || failure::is_out_of_reach(error) {
        return false;
    }
    if let Some(none) = no_keys(error) {
        return none.may_pass();
    }
    let mut verdicts = causes(error).filter_map(|cause| match status(&cause.to_string()) {
        Some(status) => Some(failure::is_busy(status)),
        None => cause.is::<HttpError>().then_some(true),
    });
    verdicts.next().unwrap_or(false)
}

/// Before a pause of this length, after 0.7 s of shorter ones, a line says why the reader waits.
const LONG: Duration = Duration::from_millis(800);

/// Refused connections, or names without an address, after which a store that never answered is told to be none: 0.7 s of
/// pauses. A server that begins anew has longer, as one that answered before; but no service of keys, which is asked
/// from five minutes before their end on.
const REFUSED_MAX: u32 = 4;

/// Attempts at one request.
pub(crate) struct Attempts {
    pauses: Pauses,
    /// The pause that the server asked for in the last one.
    asked: Option<Duration>,
    /// Whether a line was written that it takes longer.
    is_told: bool,
    /// Whether it was made again with other credentials.
    is_renewed: bool,
    /// Attempts that reached no server.
    refused: u32,
}

impl Attempts {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            pauses: Pauses::new(limits),
            asked: None,
            is_told: false,
            is_renewed: false,
            refused: 0,
        }
    }

    /// Makes one, no longer than until the deadline.
    pub(crate) async fn make<T>(
        &mut self,
        attempt: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let late = || Fault::Last(io::Error::from_raw_os_error(libc::ETIMEDOUT));
        let (ended, asked) = noted(timeout_at(self.pauses.until().into(), attempt)).await;
        self.asked = asked;
        ended.unwrap_or_else(|_| Err(late()))
    }

    /// Something came: the next pause is a first one.
    pub(crate) fn begin_anew(&mut self) {
        self.pauses.begin_anew();
    }

    /// Waits before the next one, or for other credentials than those it was made with.
    ///
    /// # Errors
    /// The fault is for good, or the next attempt would come after the deadline.
    pub(crate) async fn pause(
        &mut self,
        fault: Fault,
        store: &Arc<Store>,
        with: &Arc<Connected>,
    ) -> io::Result<()> {
        let (error, is_of_keys) = match fault {
            Fault::Last(error) => return Err(error),
            Fault::Refused(error) => {
                let is_first = !std::mem::replace(&mut self.is_renewed, true);
                return match is_first && store.is_renewed(with).await {
                    true => Ok(()),
                    false => Err(error),
                };
            }
            Fault::Passing(error) => (error, false),
            Fault::WithoutKeys(error) => (error, true),
        };
        if is_of_keys || failure::is_unreached(&error) {
            self.refused += 1;
            if self.refused >= REFUSED_MAX && (is_of_keys || !store.is_reached()) {
                return Err(error);
            }
        }
        let Some(pause) = self.pauses.next(self.asked.take()) else {
            return Err(error);
        };
        if pause >= LONG && !self.is_told {
            self.is_told = true;
            tracing::warn!(
                "{error}: asking again for {} s",
                self.pauses.left().as_secs()
            );
        }
        sleep(pause).await;
        Ok(())
    }
}
