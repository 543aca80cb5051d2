//! Writes: each ends the validity of the entries about its path.
//!
//! So does a write that fails or is let go of, since the inner store may have carried it out.

use std::sync::Arc;

use async_trait::async_trait;
use object_store::path::Path;
use object_store::{MultipartUpload, PutPayload, PutResult, Result, UploadPart};

use crate::connection::Connection;
use crate::table::Table;

/// Tells the end of a write when it is dropped.
pub(crate) struct EndsWritten {
    table: Arc<Table>,
    path: Path,
}

impl EndsWritten {
    pub(crate) fn new(table: &Arc<Table>, path: &Path) -> Self {
        let (table, path) = (table.clone(), path.clone());
        Self { table, path }
    }
}

impl Drop for EndsWritten {
    fn drop(&mut self) {
        self.table.written(&self.path);
    }
}

/// An upload in parts, whose end is a write.
#[derive(Debug)]
pub(crate) struct Upload {
    pub(crate) inner: Box<dyn MultipartUpload>,
    pub(crate) connection: Arc<Connection>,
    pub(crate) table: Arc<Table>,
    pub(crate) path: Path,
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let part = self.connection.enter(|| self.inner.put_part(data));
        let connection = self.connection.clone();
        Box::pin(async move { connection.run(part).await })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let _ends = EndsWritten::new(&self.table, &self.path);
        self.connection.here(|| self.inner.complete()).await
    }

    async fn abort(&mut self) -> Result<()> {
        self.connection.here(|| self.inner.abort()).await
    }
}
