//! Objects that are replaced, by others and through the store.

use std::task::Poll;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{CopyOptions, Error, GetOptions, ObjectStore, ObjectStoreExt, PutPayload};
use tokio::runtime::Handle;

use crate::probe::{Act, Kind, Probe, around};

/// A version is known by each of its bytes.
fn version(number: u8, bytes: usize) -> PutPayload {
    vec![number; bytes].into()
}

/// The version of which bytes are; they are of one alone.
fn version_of<'a>(bytes: impl IntoIterator<Item = &'a [u8]>) -> u8 {
    let mut all = bytes.into_iter().flatten();
    let first = *all.next().unwrap();
    assert!(all.all(|byte| *byte == first), "two versions in one answer");
    first
}

const BYTES: usize = 6 << 20;

/// A probe whose object is replaced before its so manieth request for bytes, once.
async fn replaced_before(request: usize, bytes: usize) -> Probe {
    let probe = Probe::with("a", vec![1; BYTES]).await;
    let mut left = request;
    probe.rule(move |seen| {
        if seen.head {
            return Act::Pass;
        }
        left = left.wrapping_sub(1);
        match left {
            0 => Act::Replace(version(2, bytes)),
            _ => Act::Pass,
        }
    });
    probe
}

#[tokio::test]
async fn an_answer_is_of_one_version_whenever_the_object_is_replaced() {
    for bytes in [BYTES, BYTES - 4096, BYTES + 5] {
        for request in 1..=6 {
            let ranges = [0..1_000_000, 2_500_000..4_900_000, 6_000_000..6_100_000];
            let store = around(&replaced_before(request, bytes).await);
            store.head(&"a".into()).await.unwrap();
            let answer = store.get_ranges(&"a".into(), &ranges).await.unwrap();
            version_of(answer.iter().map(|bytes| &bytes[..]));

            let store = around(&replaced_before(request, bytes).await);
            let answer = store.get_range(&"a".into(), 0..5_000_000).await.unwrap();
            version_of([&answer[..]]);
        }
    }
}

#[tokio::test]
async fn a_store_that_ignores_conditions_is_not_believed() {
    for bytes in [BYTES, BYTES - 1] {
        let probe = Probe::with("a", vec![1; BYTES]).await;
        let store = around(&probe);
        store.head(&"a".into()).await.unwrap();
        store.get_range(&"a".into(), 0..10).await.unwrap();
        probe
            .inner
            .put(&"a".into(), version(2, bytes))
            .await
            .unwrap();
        probe.rule(|_| Act::Unconditional);
        let answer = store
            .get_ranges(&"a".into(), &[0..10, 3_000_000..3_000_010])
            .await
            .unwrap();
        assert_eq!(version_of(answer.iter().map(|bytes| &bytes[..])), 2);
    }
}

#[tokio::test]
async fn a_stream_that_was_begun_ends_with_an_error_when_its_object_is_replaced() {
    let bytes = 64 << 20;
    let probe = Probe::with("a", vec![1; bytes]).await;
    let store = around(&probe);
    let mut stream = store.get(&"a".into()).await.unwrap().into_stream();
    let mut read = stream.next().await.unwrap().unwrap().len();
    probe
        .inner
        .put(&"a".into(), version(2, bytes))
        .await
        .unwrap();
    let error = loop {
        match stream.next().await {
            Some(Ok(piece)) => {
                assert_eq!(version_of([&piece[..]]), 1);
                read += piece.len();
            }
            Some(Err(error)) => break error,
            None => panic!("{read} bytes of a version that is gone"),
        }
    };
    assert_eq!(Kind::of(&error), Kind::Precondition);
    let answer = store.get_range(&"a".into(), 0..100).await.unwrap();
    assert_eq!(version_of([&answer[..]]), 2);
}

#[tokio::test]
async fn where_versions_are_not_believed_each_answer_is_the_current_one() {
    let probe = Probe::with("a", vec![1; 100_000]).await;
    let store = around(&probe).fresh_for(Duration::ZERO);
    for number in 2..9 {
        let answer = store.get_range(&"a".into(), 0..90_000).await.unwrap();
        assert_eq!(version_of([&answer[..]]), number - 1);
        let answer = store.get_range(&"a".into(), 0..90_000).await.unwrap();
        assert_eq!(version_of([&answer[..]]), number - 1);
        let bytes = 100_000 - usize::from(number % 2);
        probe
            .inner
            .put(&"a".into(), version(number, bytes))
            .await
            .unwrap();
    }
    probe.inner.delete(&"a".into()).await.unwrap();
    let gone = store.get_range(&"a".into(), 0..90_000).await.unwrap_err();
    assert_eq!(Kind::of(&gone), Kind::NotFound);
}

#[tokio::test]
async fn a_version_that_is_believed_is_read_as_long_as_it_is() {
    let probe = Probe::with("a", vec![1; 3_000_000]).await;
    let store = around(&probe).fresh_for(Duration::MAX);
    let range = 1_000_000..1_100_000;
    store.get_range(&"a".into(), range.clone()).await.unwrap();
    probe
        .inner
        .put(&"a".into(), version(2, 3_000_000))
        .await
        .unwrap();
    let answer = store.get_range(&"a".into(), range).await.unwrap();
    assert_eq!(version_of([&answer[..]]), 1);
    // A range that is not in memory shows the new one.
    let answer = store
        .get_range(&"a".into(), 1_000_000..2_000_000)
        .await
        .unwrap();
    assert_eq!(version_of([&answer[..]]), 2);
}

#[tokio::test]
async fn writes_through_the_store_are_seen_at_once() {
    let probe = Probe::with("b", vec![9; 5000]).await;
    let store = around(&probe).fresh_for(Duration::MAX);
    let (path, other) = (Path::from("a"), Path::from("b"));
    let is_now = async |number: u8| {
        let answer = store.clone().get_range(&path, 0..1000).await.unwrap();
        assert_eq!(version_of([&answer[..]]), number);
    };
    store.put(&path, version(1, 5000)).await.unwrap();
    is_now(1).await;
    store.put(&path, version(2, 5000)).await.unwrap();
    is_now(2).await;
    let mut upload = store.put_multipart(&path).await.unwrap();
    upload.put_part(version(3, 5000)).await.unwrap();
    is_now(2).await;
    upload.complete().await.unwrap();
    is_now(3).await;
    store
        .copy_opts(&other, &path, CopyOptions::default())
        .await
        .unwrap();
    is_now(9).await;
    store.put(&other, version(4, 5000)).await.unwrap();
    store.rename(&other, &path).await.unwrap();
    is_now(4).await;
    store.delete(&path).await.unwrap();
    let gone = store.get_range(&path, 0..1000).await.unwrap_err();
    assert_eq!(Kind::of(&gone), Kind::NotFound);
    store.put(&path, version(5, 5000)).await.unwrap();
    is_now(5).await;
    let paths = stream::iter([Ok(path.clone()), Ok(other)]).boxed();
    let deleted: Vec<_> = store.delete_stream(paths).collect().await;
    assert_eq!(deleted.len(), 2);
    assert!(store.get_range(&path, 0..1000).await.is_err());
}

/// A stream of the program may have timers and sockets of its own.
#[tokio::test]
async fn paths_to_delete_are_taken_within_the_runtime_of_the_program() {
    let probe = Probe::with("a", vec![1; 5000]).await;
    let here = Handle::current().id();
    let paths = stream::poll_fn(move |_| {
        assert_eq!(Handle::current().id(), here);
        Poll::Ready(None)
    });
    let deleted = around(&probe).delete_stream(paths.boxed());
    assert_eq!(deleted.count().await, 0);
    assert!(!probe.runtimes().contains(&Some(here)));
}

#[tokio::test]
async fn an_answer_from_before_a_write_is_not_believed_after_it() {
    let probe = Probe::with("a", vec![1; 5000]).await;
    let store = around(&probe).fresh_for(Duration::MAX);
    let path = Path::from("a");
    // The listing was asked for, and its answer comes behind the write.
    let listing = store.list(None);
    store.get_range(&path, 0..100).await.unwrap();
    let before: Vec<_> = probe.inner.list(None).try_collect().await.unwrap();
    store.put(&path, version(2, 5000)).await.unwrap();
    let listed: Vec<_> = listing.try_collect().await.unwrap();
    assert_eq!(listed.len(), before.len());
    let answer = store.get_range(&path, 0..100).await.unwrap();
    assert_eq!(version_of([&answer[..]]), 2);
}

#[tokio::test]
async fn conditions_are_those_of_the_inner_store() {
    let probe = Probe::with("a", vec![1; 5000]).await;
    let store = around(&probe);
    let path = Path::from("a");
    let meta = store.head(&path).await.unwrap();
    let tag = meta.e_tag.as_deref().unwrap();
    let refusal =
        async |options: GetOptions| Kind::of(&store.get_opts(&path, options).await.unwrap_err());
    for _ in 0..2 {
        let met = GetOptions::new().with_if_match(Some(tag));
        assert_eq!(
            store
                .get_opts(&path, met)
                .await
                .unwrap()
                .bytes()
                .await
                .unwrap()
                .len(),
            5000
        );
        let unmet = GetOptions::new().with_if_match(Some("other"));
        assert_eq!(refusal(unmet).await, Kind::Precondition);
        let same = GetOptions::new().with_if_none_match(Some(tag));
        assert_eq!(refusal(same).await, Kind::NotModified);
        let since = GetOptions::new().with_if_modified_since(Some(meta.last_modified));
        assert_eq!(refusal(since).await, Kind::NotModified);
    }
    probe.inner.put(&path, version(2, 5000)).await.unwrap();
    let old = GetOptions::new()
        .with_if_match(Some(tag))
        .with_range(Some(4096..5000));
    let store = around(&probe);
    let refused = store.get_opts(&path, old).await.unwrap_err();
    assert!(matches!(refused, Error::Precondition { .. }), "{refused}");
}
