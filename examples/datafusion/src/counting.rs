//! A store that counts the requests for bytes that reach it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Counting {
    inner: Arc<dyn ObjectStore>,
    requests: Arc<AtomicU64>,
    bytes: Arc<AtomicU64>,
}

impl Counting {
    pub(crate) fn new(inner: Arc<dyn ObjectStore>) -> Self {
        let (requests, bytes) = Default::default();
        Self {
            inner,
            requests,
            bytes,
        }
    }

    /// The requests for bytes since the last call, and how many bytes these were.
    pub(crate) fn take(&self) -> (u64, u64) {
        let take = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
        (take(&self.requests), take(&self.bytes))
    }
}

impl fmt::Display for Counting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for Counting {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    // The ranges of `get_ranges` come here one by one, joined as by the stores of clouds.
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let is_head = options.head;
        let answer = self.inner.get_opts(location, options).await?;
        let bytes = answer.range.end - answer.range.start;
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.bytes
            .fetch_add(if is_head { 0 } else { bytes }, Ordering::Relaxed);
        Ok(answer)
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
