//! The tests that the crate `object_store` has for stores of others.

use std::sync::Arc;
use std::time::Duration;

use forerun_object_store::PrefetchStore;
use object_store::integration::*;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::{Error, ObjectStore};

use crate::probe::driver;

/// Those that stores in memory and local ones pass.
async fn passes(store: &PrefetchStore) {
    put_get_delete_list(store).await;
    list_with_offset_exclusivity(store).await;
    get_opts(store).await;
    list_uses_directories_correctly(store).await;
    list_with_delimiter(store).await;
    rename_and_copy(store).await;
    copy_if_not_exists(store).await;
    copy_rename_nonexistent_object(store).await;
    stream_get(store).await;
    let missing = get_nonexistent_object(store, None).await.unwrap_err();
    assert!(matches!(missing, Error::NotFound { .. }), "{missing}");
}

#[tokio::test]
async fn a_store_in_memory_conforms_through_the_wrapper() {
    for fresh_for in [Duration::ZERO, Duration::from_secs(1), Duration::MAX] {
        let store = PrefetchStore::new(InMemory::new(), driver(64 << 20)).unwrap();
        let store = store.fresh_for(fresh_for);
        passes(&store).await;
        put_opts(&store, true).await;
        put_get_attributes(&store).await;
        multipart_out_of_order(&store).await;
        multipart_race_condition(&store, true).await;
    }
}

#[tokio::test]
async fn a_local_store_conforms_through_the_wrapper() {
    let folder = tempfile::tempdir().unwrap();
    let local: Arc<dyn ObjectStore> =
        Arc::new(LocalFileSystem::new_with_prefix(folder.path()).unwrap());
    let store = PrefetchStore::new(local, driver(64 << 20)).unwrap();
    passes(&store).await;
    put_opts(&store, false).await;
}
