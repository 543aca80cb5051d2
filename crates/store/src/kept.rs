//! Credentials that end, kept until shortly before, and fetched anew by the next request.
//!
//! ```text
//! GET, none yet            source asked: credentials until 12:00
//! GET at 11:54             the same
//! GET at 11:55             the same; the source is asked again beside it
//! GET at 12:00             the new ones, or a wait for them
//! ```
//!
//! One question to a source is under way, in a task of its own: a request that is given up does not end it. It has
//! [`WAIT`] for all its steps. Credentials that are given with less than [`EARLY`] left are kept for half of that. A
//! failure is the answer for as long again as the source took for it, so that requests that waited for a program that
//! hangs do not wait for it one after the other; one that may pass for half a second at least.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use object_store::Error;
use tokio::spawn;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};
use tokio::time::timeout;

/// Credentials are had again so long before their end, as the stores' own programs do.
const EARLY: Duration = Duration::from_secs(300);

/// For all steps of a source: less than the 20 s that a question to a store has.
pub(crate) const WAIT: Duration = Duration::from_secs(15);

/// A source that failed is not asked again for so long while credentials are valid.
const AGAIN: Duration = Duration::from_secs(10);

/// A source that is busy, or not there, is not asked again for so long, however fast it said so to each of many requests.
const BUSY: Duration = Duration::from_millis(500);

/// The reason why a source gave no credentials.
#[derive(Clone, Debug)]
pub(crate) struct Reason {
    text: String,
    may_pass: bool,
    /// No server was there to be asked.
    is_unreached: bool,
}

impl Reason {
    /// The network failed, or the source had no time.
    pub(crate) fn passing(text: String) -> Self {
        Self {
            text,
            may_pass: true,
            is_unreached: false,
        }
    }

    /// The service has no address, or refused the connection.
    pub(crate) fn unreached(text: String) -> Self {
        Self {
            is_unreached: true,
            ..Self::passing(text)
        }
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        Self {
            text,
            may_pass: false,
            is_unreached: false,
        }
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// Credentials cannot be had.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{origin}: {}", why.text)]
pub(crate) struct NoKeys {
    origin: String,
    why: Reason,
}

impl NoKeys {
    /// Whether the source may have some the next time.
    pub(crate) fn may_pass(&self) -> bool {
        self.why.may_pass
    }

    /// Whether no server was there to be asked.
    pub(crate) fn is_unreached(&self) -> bool {
        self.why.is_unreached
    }
}

/// Credentials, and their end if they have one.
pub(crate) type Lasting<T> = (T, Option<SystemTime>);

struct State<T> {
    kept: Option<Lasting<Arc<T>>>,
    /// The source is not asked before while those are valid.
    again: Instant,
    /// The failure of the last time, and until when it is the answer.
    failed: Option<(Instant, NoKeys)>,
}

impl<T> State<T> {
    /// Credentials that have not ended, and whether the source is to be asked for others.
    fn valid(&self) -> Option<(Arc<T>, bool)> {
        let (kept, until) = self.kept.as_ref()?;
        let left = until.map(|until| until.duration_since(SystemTime::now()).unwrap_or_default());
        let is_early = left.is_some_and(|left| left <= EARLY);
        let is_due = is_early && Instant::now() >= self.again;
        (left != Some(Duration::ZERO)).then(|| (kept.clone(), is_due))
    }

    /// The answer without a question to the source.
    fn known(&self) -> Option<Result<Arc<T>, NoKeys>> {
        if let Some((kept, _)) = self.valid() {
            return Some(Ok(kept));
        }
        let (until, none) = self.failed.as_ref()?;
        (Instant::now() < *until).then(|| Err(none.clone()))
    }
}

/// See the [module](self).
pub(crate) struct Kept<T> {
    state: Mutex<State<T>>,
    turn: Arc<Turn<()>>,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        let state = State {
            kept: None,
            again: Instant::now(),
            failed: None,
        };
        Self {
            state: Mutex::new(state),
            turn: Arc::default(),
        }
    }
}

impl<T: Send + Sync + 'static> Kept<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that are kept, or those of the source, which is named by `origin`. Called in a task.
    pub(crate) async fn or_had<F>(
        self: &Arc<Self>,
        store: &'static str,
        origin: impl Fn() -> String,
        source: impl FnOnce() -> F,
    ) -> object_store::Result<Arc<T>>
    where
        F: Future<Output = Result<Lasting<T>, Reason>> + Send + 'static,
    {
        let valid = self.state().valid();
        let turn = match valid {
            Some((kept, false)) => return Ok(kept),
            Some((kept, true)) => {
                let turn = self.turn.clone().try_lock_owned();
                // Another task may have had others just now.
                let is_due = || self.state().valid().is_some_and(|(_, is_due)| is_due);
                if let Some(turn) = turn.ok().filter(|_| is_due()) {
                    drop(spawn(self.clone().ask(turn, origin(), source())));
                }
                return Ok(kept);
            }
            None => self.turn.clone().lock_owned().await,
        };
        let known = self.state().known();
        let answer = match known {
            Some(known) => known,
            None => {
                let asked = spawn(self.clone().ask(turn, origin(), source())).await;
                asked.unwrap_or_else(|error| {
                    let (origin, why) = (origin(), error.to_string().into());
                    Err(NoKeys { origin, why })
                })
            }
        };
        answer.map_err(|none| Error::Generic {
            store,
            source: Box::new(none),
        })
    }

    async fn ask(
        self: Arc<Self>,
        _turn: OwnedMutexGuard<()>,
        origin: String,
        source: impl Future<Output = Result<Lasting<T>, Reason>>,
    ) -> Result<Arc<T>, NoKeys> {
        let begun = Instant::now();
        let late = || Reason::passing(format!("no answer for {} s", WAIT.as_secs()));
        let had = timeout(WAIT, source).await;
        let had = had.unwrap_or_else(|_| Err(late()));
        let (now, took) = (Instant::now(), begun.elapsed());
        let mut state = self.state();
        match had {
            Ok((had, until)) => {
                let left = until.map(|until| until.duration_since(SystemTime::now()));
                let left = left.and_then(Result::ok).unwrap_or_default();
                let had = Arc::new(had);
                *state = State {
                    kept: Some((had.clone(), until)),
                    again: now + (left / 2).min(EARLY),
                    failed: None,
                };
                Ok(had)
            }
            Err(why) => {
                let none = NoKeys { origin, why };
                let pause = match none.may_pass() {
                    true => took.max(BUSY),
                    false => took,
                };
                state.failed = Some((now + pause, none.clone()));
                state.again = now + took.max(AGAIN);
                Err(none)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt;

    use super::*;

    type Source = Result<Lasting<u32>, Reason>;

    fn run<T>(test: impl Future<Output = T>) -> T {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
        let tested = runtime.block_on(test);
        runtime.shutdown_background();
        tested
    }

    /// Credentials with so many seconds left, and whether the source may be asked.
    fn kept(seconds: u64, is_due: bool) -> Arc<Kept<u32>> {
        let kept = Kept::default();
        let again = if is_due { 0 } else { 3600 };
        let until = SystemTime::now() + Duration::from_secs(seconds);
        *kept.state() = State {
            kept: Some((Arc::new(1), Some(until))),
            again: Instant::now() + Duration::from_secs(again),
            failed: None,
        };
        Arc::new(kept)
    }

    #[test]
    fn credentials_that_are_valid_do_not_wait_for_a_source_that_hangs() {
        run(async {
            let (kept, asked) = (kept(200, true), AtomicUsize::new(0));
            for _ in 0..10 {
                let source = || {
                    asked.fetch_add(1, Ordering::Relaxed);
                    pending::<Source>()
                };
                let had = kept.or_had("S3", String::new, source).now_or_never();
                assert_eq!(*had.expect("without a wait").unwrap(), 1);
            }
            assert_eq!(asked.into_inner(), 1, "one question at a time");
        });
    }

    #[test]
    fn credentials_that_end_soon_are_kept_for_half_of_the_rest() {
        run(async {
            let until = SystemTime::now() + Duration::from_secs(200);
            let kept = Arc::<Kept<u32>>::default();
            let source = || async move { Source::Ok((2, Some(until))) };
            assert_eq!(*kept.or_had("S3", String::new, source).await.unwrap(), 2);
            let none = || async { Source::Err("asked".into()) };
            assert_eq!(*kept.or_had("S3", String::new, none).await.unwrap(), 2);
            assert!(kept.state().failed.is_none() && kept.turn.try_lock().is_ok());
        });
    }

    /// Nor are others asked for meanwhile.
    #[test]
    fn a_request_that_is_given_up_does_not_end_the_question() {
        run(async {
            let kept = Arc::<Kept<u32>>::default();
            let (begun, has_begun) = tokio::sync::oneshot::channel();
            let (give, given) = tokio::sync::oneshot::channel::<u32>();
            let own = kept.clone();
            let request = spawn(async move {
                let source = || async move {
                    begun.send(()).unwrap();
                    Source::Ok((given.await.unwrap(), None))
                };
                own.or_had("S3", String::new, source).await.map(drop)
            });
            has_begun.await.unwrap();
            request.abort();
            assert!(request.await.unwrap_err().is_cancelled());
            give.send(3).unwrap();
            let other = || async { Source::Ok((4, None)) };
            assert_eq!(*kept.or_had("S3", String::new, other).await.unwrap(), 3);
        });
    }

    #[test]
    fn a_source_that_is_busy_has_a_pause() {
        run(async {
            let (kept, begun) = (Arc::<Kept<u32>>::default(), Instant::now());
            let busy = || async { Source::Err(Reason::passing("busy".into())) };
            assert!(kept.or_had("S3", String::new, busy).await.is_err());
            let (until, _) = kept.state().failed.clone().unwrap();
            assert!(until >= begun + BUSY);
        });
    }

    #[test]
    fn credentials_that_ended_are_no_answer_and_a_failure_beside_valid_ones_is_none() {
        run(async {
            let none = || async { Source::Err("none".into()) };
            let ended = kept(0, false).or_had("S3", String::new, none).await;
            assert!(ended.unwrap_err().to_string().contains("none"));
            let kept = kept(200, true);
            assert_eq!(*kept.or_had("S3", String::new, none).await.unwrap(), 1);
            drop(kept.turn.lock().await);
            assert!(kept.state().failed.is_some());
            assert_eq!(kept.state().valid(), Some((Arc::new(1), false)));
        });
    }
}
