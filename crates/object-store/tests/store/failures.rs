//! Requests that fail or hang.

use std::time::Duration;

use futures_util::StreamExt;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt};
use tokio::sync::watch;

use crate::probe::{Act, Kind, Probe, around, content, counted, part};

const KINDS: [Kind; 7] = [
    Kind::NotFound,
    Kind::Precondition,
    Kind::PermissionDenied,
    Kind::Unauthenticated,
    Kind::NotSupported,
    Kind::NotModified,
    Kind::Other,
];

fn begin(range: Option<&GetRange>) -> u64 {
    match range {
        Some(GetRange::Bounded(range)) => range.start,
        _ => 0,
    }
}

#[tokio::test]
async fn an_error_of_the_inner_store_reaches_the_reader_as_its_kind() {
    for kind in KINDS {
        for is_known in [false, true] {
            let probe = Probe::with("a", content(1, 100_000)).await;
            let store = around(&probe);
            let path = Path::from("a");
            if is_known {
                store.head(&path).await.unwrap();
            }
            probe.rule(move |_| Act::Fail(kind));
            let error = store.get_range(&path, 10..100).await.unwrap_err();
            assert_eq!(Kind::of(&error), kind, "known {is_known}: {error}");
            assert!(error.to_string().contains("said by the probe"), "{error}");
            let error = store
                .get_ranges(&path, &[10..100, 90_000..90_001])
                .await
                .unwrap_err();
            assert_eq!(Kind::of(&error), kind, "known {is_known}: {error}");
            let error = store.head(&path).await.unwrap_err();
            assert_eq!(Kind::of(&error), kind, "known {is_known}: {error}");
        }
    }
}

#[tokio::test]
async fn a_request_that_fails_is_made_once() {
    for is_known in [false, true] {
        for kind in [Kind::Other, Kind::NotFound, Kind::PermissionDenied] {
            let probe = Probe::with("a", content(8, 8 << 20)).await;
            let store = around(&probe);
            let path = Path::from("a");
            if is_known {
                store.head(&path).await.unwrap();
            }
            probe.take_seen();
            probe.rule(move |_| Act::Fail(kind));
            let range = 3_000_000..3_000_100;
            let error = store.get_range(&path, range.clone()).await.unwrap_err();
            assert_eq!(Kind::of(&error), kind);
            let seen = probe.take_seen();
            assert_eq!(seen.len(), 1, "known {is_known}, {kind:?}: {seen:?}");
            // The next read is another attempt.
            probe.rule(|_| Act::Pass);
            store.get_range(&path, range).await.unwrap();
        }
    }
    let probe = Probe::with("a", content(8, 100_000)).await;
    probe.rule(|_| Act::Fail(Kind::Other));
    let error = around(&probe).get(&"a".into()).await.unwrap_err();
    assert_eq!(Kind::of(&error), Kind::Other);
    assert_eq!(probe.take_seen().len(), 1);
}

#[tokio::test]
async fn a_part_of_a_long_range_that_failed_is_not_asked_for_again() {
    let probe = Probe::with("a", content(8, 16 << 20)).await;
    let store = around(&probe);
    store.head(&"a".into()).await.unwrap();
    probe.take_seen();
    probe.rule(|_| Act::Fail(Kind::Other));
    let read = store.get_range(&"a".into(), 3_000_000..11_000_000).await;
    read.unwrap_err();
    let asked: Vec<_> = probe
        .take_seen()
        .iter()
        .map(|seen| seen.range.as_ref().unwrap().as_range(16 << 20).unwrap())
        .collect();
    for (at, range) in asked.iter().enumerate() {
        let failed = &asked[..at];
        let is_again = failed.iter().any(|before| before.contains(&range.start));
        assert!(!is_again, "{range:?} after {failed:?}");
    }
}

#[tokio::test]
async fn all_readers_of_a_range_have_the_error_of_its_one_request() {
    let probe = Probe::with("a", content(9, 8 << 20)).await;
    let store = around(&probe);
    let path = Path::from("a");
    store.head(&path).await.unwrap();
    probe.take_seen();
    let (tell, is_due) = watch::channel(false);
    probe.rule(move |_| Act::FailOnce(Kind::Other, is_due.clone()));
    // One block, which a reader counts as one read when it begins to wait.
    let readers = [100, 200, 300, 400].map(|bytes| {
        let (store, path) = (store.clone(), path.clone());
        tokio::spawn(async move { store.get_range(&path, 1 << 20..(1 << 20) + bytes).await })
    });
    while store.driver().ledger().reads < 4 {
        tokio::task::yield_now().await;
    }
    tell.send_replace(true);
    for reader in readers {
        let error = reader.await.unwrap().unwrap_err();
        assert!(error.to_string().contains("said by the probe"), "{error}");
        assert_eq!(Kind::of(&error), Kind::Other);
    }
    let seen = probe.take_seen();
    assert_eq!(seen.len(), 1, "{seen:?}");
}

#[tokio::test]
async fn a_refused_range_of_an_unknown_object_is_asked_for_as_it_is() {
    let bytes = content(10, 100_000);
    let probe = Probe::with("a", bytes.clone()).await;
    for words in [
        "Received non-partial response when range requested",
        "Requested 0..100000, got 0..1000",
        "Server returned non-2xx status code: 501 Not Implemented: ",
    ] {
        probe.rule(move |seen| match seen.range {
            Some(_) => Act::Fail(Kind::Says(words)),
            None => Act::Pass,
        });
        let answer = around(&probe).get(&"a".into()).await;
        let answer = answer.unwrap_or_else(|error| panic!("{words}: {error}"));
        assert!(answer.bytes().await.unwrap() == bytes);
        assert_eq!(probe.take_seen().len(), 2);
    }
    // HEAD tells the version before a long range from the end.
    probe.rule(|seen| match seen.head {
        true => Act::Fail(Kind::Says("status code: 501 Not Implemented: ")),
        false => Act::Pass,
    });
    let last = GetOptions::new().with_range(Some(GetRange::Suffix(8 << 20)));
    let answer = around(&probe).get_opts(&"a".into(), last).await.unwrap();
    assert!(answer.bytes().await.unwrap() == bytes);
    assert_eq!(probe.take_seen().len(), 2);
}

#[tokio::test]
async fn an_error_of_one_range_is_that_of_its_batch_and_passes_with_its_cause() {
    let bytes = content(2, 8 << 20);
    let probe = Probe::with("a", bytes.clone()).await;
    let store = around(&probe);
    let path = Path::from("a");
    store.head(&path).await.unwrap();
    probe.rule(|seen| match begin(seen.range.as_ref()) >= 4 << 20 {
        true => Act::Fail(Kind::PermissionDenied),
        false => Act::Pass,
    });
    let ranges = [0..100, 6_000_000..6_000_100];
    let error = store.get_ranges(&path, &ranges).await.unwrap_err();
    assert_eq!(Kind::of(&error), Kind::PermissionDenied);
    let answer = store.get_range(&path, 0..3_000_000).await.unwrap();
    assert!(answer == part(&bytes, &(0..3_000_000)));
    probe.rule(|_| Act::Pass);
    let answer = store.get_ranges(&path, &ranges).await.unwrap();
    assert!(answer[1] == part(&bytes, &ranges[1]));
}

#[tokio::test]
async fn a_fetch_ahead_that_fails_is_not_shown() {
    let bytes = content(3, 32 << 20);
    let probe = Probe::with("a", bytes.clone()).await;
    let store = around(&probe);
    probe.rule(|seen| match begin(seen.range.as_ref()) >= 16 << 20 {
        true => Act::Fail(Kind::Other),
        false => Act::Pass,
    });
    let mut stream = store.get(&"a".into()).await.unwrap().into_stream();
    let (mut read, mut error) = (0, None);
    while error.is_none() {
        match stream.next().await {
            Some(Ok(piece)) => {
                assert!(piece == part(&bytes, &(read..read + piece.len() as u64)));
                read += piece.len() as u64;
            }
            other => error = other,
        }
    }
    assert_eq!(
        read,
        16 << 20,
        "all up to the first byte that cannot be had"
    );
    let error = error.unwrap().unwrap_err();
    assert_eq!(Kind::of(&error), Kind::Other);
}

#[tokio::test]
async fn an_object_that_hangs_holds_up_its_own_readers_alone() {
    let bytes = content(4, 1 << 20);
    let probe = Probe::with("a", bytes.clone()).await;
    for number in 0..100 {
        let path = format!("silent/{number}").into();
        probe
            .inner
            .put(&path, content(5, 100_000).into())
            .await
            .unwrap();
    }
    let store = around(&probe);
    for is_known in [false, true] {
        probe.rule(
            |seen| match seen.path.as_ref().starts_with("silent") && !seen.head {
                true => Act::Hang,
                false => Act::Pass,
            },
        );
        let mut silent = Vec::new();
        for number in 0..100 {
            let path = Path::from(format!("silent/{number}"));
            if is_known {
                store.head(&path).await.unwrap();
            }
            let store = store.clone();
            silent.push(tokio::spawn(async move {
                store.get_range(&path, 0..50_000).await
            }));
        }
        let answer = store.get_range(&"a".into(), 0..1 << 20).await.unwrap();
        assert!(answer == bytes);
        for reader in silent {
            assert!(!reader.is_finished());
            reader.abort();
            assert!(reader.await.unwrap_err().is_cancelled());
        }
    }
}

#[tokio::test]
async fn after_the_end_of_its_driver_a_store_reads_past_the_engine() {
    let bytes = content(6, 3_000_000);
    let probe = Probe::with("a", bytes.clone()).await;
    let store = around(&probe).fresh_for(Duration::MAX);
    store.get_range(&"a".into(), 0..1000).await.unwrap();
    store.driver().finish().unwrap();
    probe.take_seen();
    let range = 1_000_000..2_900_000;
    let answer = store.get_range(&"a".into(), range.clone()).await.unwrap();
    assert!(answer == part(&bytes, &range));
    let (_, gets, asked) = counted(&probe.take_seen(), 3_000_000);
    assert!(gets > 0 && asked >= range.end - range.start);
}

#[tokio::test]
async fn a_store_that_is_dropped_ends_the_fetches_that_hang() {
    let probe = Probe::with("a", content(7, 100_000)).await;
    let store = around(&probe);
    store.head(&"a".into()).await.unwrap();
    probe.take_seen();
    probe.rule(|_| Act::Hang);
    let driver = store.driver().clone();
    let reader = {
        let store = store.clone();
        tokio::spawn(async move { store.get_range(&"a".into(), 5000..6000).await })
    };
    while probe.is_unasked() {
        tokio::task::yield_now().await;
    }
    reader.abort();
    assert!(reader.await.unwrap_err().is_cancelled());
    drop(store);
    let (_, ended) = driver.finish_within(Duration::from_secs(300)).unwrap();
    assert!(ended);
}
