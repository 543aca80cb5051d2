//! `Retry-After`: how long a server asks its client to stay away, with 429 and 503.
//!
//! The clients of stores give an error without the headers of the answer. So a service around their connections
//! looks at each answer, and leaves the time with the attempt that is under way in the same task:
//!
//! ```text
//! Attempts::make -> attempt -> client of the store -> Noting -> connection
//!      ^---- 1 s ---------------------------------------'  429, Retry-After: 1
//! ```
//!
//! A date in place of seconds is passed over: the pause is then that of any fault.

use std::cell::Cell;
use std::time::Duration;

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};

tokio::task_local! {
    static ASKED: Cell<Option<Duration>>;
}

/// The outcome of an attempt, and the time that a server asked for meanwhile.
pub(crate) async fn noted<T>(attempt: impl Future<Output = T>) -> (T, Option<Duration>) {
    let noting = async {
        let outcome = attempt.await;
        (outcome, ASKED.with(Cell::take))
    };
    ASKED.scope(Cell::new(None), noting).await
}

/// Connections whose answers are looked at.
#[derive(Debug, Default)]
pub(crate) struct Connector(ReqwestConnector);

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        self.0
            .connect(options)
            .map(|client| HttpClient::new(Noting(client)))
    }
}

#[derive(Debug)]
struct Noting(HttpClient);

#[async_trait]
impl HttpService for Noting {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let answer = self.0.execute(request).await?;
        if [429, 503].contains(&answer.status().as_u16()) {
            let asked = answer.headers().get("retry-after");
            let seconds = asked.and_then(|text| text.to_str().ok()?.trim().parse().ok());
            // A request outside of attempts, for credentials, has no pause.
            let _ = ASKED.try_with(|asked| asked.set(seconds.map(Duration::from_secs)));
        }
        Ok(answer)
    }
}
