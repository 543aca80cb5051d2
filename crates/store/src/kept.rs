//! Credentials that end, kept until shortly before, and fetched anew by the next request.
//!
//! ```text
//! GET, none yet            source asked: credentials until 12:00
//! GET at 11:54             the same
//! GET at 11:55             source asked again; if it fails, the same until 12:00
//! ```
//!
//! One request to a source is under way; others wait for it. It has [`WAIT`] for all its steps. A failure is the answer
//! for as long again as the source took for it, so that requests that waited for a program that hangs do not wait for it
//! one after the other.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use object_store::Error;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// Credentials are had again so long before their end, as the stores' own programs do.
const EARLY: Duration = Duration::from_secs(300);

/// For all steps of a source: less than the 20 s that a question to a store has.
const WAIT: Duration = Duration::from_secs(15);

/// Credentials cannot be had.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{origin}: {why}")]
pub(crate) struct NoKeys {
    origin: String,
    why: String,
}

/// Credentials, and their end if they have one.
pub(crate) type Lasting<T> = (T, Option<SystemTime>);

struct State<T> {
    kept: Option<Lasting<Arc<T>>>,
    /// The source is not asked before, with the failure of the last time.
    failed: Option<(Instant, NoKeys)>,
}

/// See the [module](self).
pub(crate) struct Kept<T>(Mutex<State<T>>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(Mutex::new(State {
            kept: None,
            failed: None,
        }))
    }
}

impl<T> Kept<T> {
    /// Those that are kept, or those of the source, which is named by `origin`.
    pub(crate) async fn or_had(
        &self,
        store: &'static str,
        origin: impl Fn() -> String,
        source: impl Future<Output = Result<Lasting<T>, String>>,
    ) -> object_store::Result<Arc<T>> {
        let mut state = self.0.lock().await;
        let kept = |state: &State<T>, early: Duration| {
            let (kept, until) = state.kept.as_ref()?;
            let lasts = until.is_none_or(|until| until > SystemTime::now() + early);
            lasts.then(|| kept.clone())
        };
        if let Some(kept) = kept(&state, EARLY) {
            return Ok(kept);
        }
        let begun = Instant::now();
        let known = state.failed.clone().filter(|(until, _)| begun < *until);
        let none = match known {
            Some((_, none)) => none,
            None => match asked(origin, source).await {
                Ok((had, until)) => {
                    let had = Arc::new(had);
                    *state = State {
                        kept: Some((had.clone(), until)),
                        failed: None,
                    };
                    return Ok(had);
                }
                Err(none) => {
                    state.failed = Some((Instant::now() + begun.elapsed(), none.clone()));
                    none
                }
            },
        };
        kept(&state, Duration::ZERO).ok_or_else(|| Error::Generic {
            store,
            source: Box::new(none),
        })
    }
}

async fn asked<T>(
    origin: impl Fn() -> String,
    source: impl Future<Output = Result<Lasting<T>, String>>,
) -> Result<Lasting<T>, NoKeys> {
    let had = timeout(WAIT, source).await;
    let had = had.unwrap_or_else(|_| Err(format!("no answer for {} s", WAIT.as_secs())));
    had.map_err(|why| NoKeys {
        origin: origin(),
        why,
    })
}
