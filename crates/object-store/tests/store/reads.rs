//! The bytes of answers, and their errors.

use std::ops::Range;
use std::time::Duration;

use forerun_object_store::PrefetchStore;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{Attribute, Attributes, GetOptions, GetRange, ObjectStore, ObjectStoreExt};

use crate::probe::{Act, Kind, Probe, around, content, driver, part};

/// Xorshift (Marsaglia 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end.max(1)
    }
}

const SIZES: [usize; 7] = [0, 1, 4095, 4096, 100_000, (1 << 20) + 1, 20_000_000];

/// A range that may lie anywhere, also behind the end, and may be empty or turned round.
fn any_range(random: &mut Random, size: u64) -> Option<GetRange> {
    let mut place = || match random.below(4) {
        0 => random.below(3),
        1 => (size + 2).saturating_sub(random.below(5)),
        _ => random.below(size + 2),
    };
    let (one, other) = (place(), place());
    match random.below(8) {
        0 => None,
        1 => Some(GetRange::Offset(one)),
        2 => Some(GetRange::Suffix(other)),
        3 => Some(GetRange::Bounded(one..other)),
        _ => Some(GetRange::Bounded(one.min(other)..one.max(other))),
    }
}

/// A GET as its bytes with range, or its error.
async fn got(
    store: &dyn ObjectStore,
    path: &Path,
    range: Option<GetRange>,
) -> Result<(Range<u64>, Vec<u8>), Kind> {
    let options = GetOptions {
        range,
        ..GetOptions::default()
    };
    let answer = store
        .get_opts(path, options)
        .await
        .map_err(|error| Kind::of(&error))?;
    let range = answer.range.clone();
    let bytes = answer.bytes().await.map_err(|error| Kind::of(&error))?;
    Ok((range, bytes.to_vec()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_range_of_every_size_is_answered_as_by_the_inner_store() {
    for seed in [1, 2, 3] {
        let (probe, mut random) = (Probe::new(), Random(seed));
        for (number, size) in SIZES.into_iter().enumerate() {
            let path = Path::from(format!("{number}"));
            probe
                .inner
                .put(&path, content(seed, size).into())
                .await
                .unwrap();
        }
        let store = around(&probe);
        if seed == 2 {
            let listed: Vec<_> = store.list(None).try_collect().await.unwrap();
            assert_eq!(listed.len(), SIZES.len());
        }
        for step in 0..300 {
            let number = random.below(SIZES.len() as u64) as usize;
            let (path, size) = (Path::from(format!("{number}")), SIZES[number] as u64);
            let range = any_range(&mut random, size);
            let expected = got(&*probe.inner, &path, range.clone()).await;
            let answer = got(&store, &path, range.clone()).await;
            assert!(
                answer == expected,
                "seed {seed}, step {step}: {range:?} of {size}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_batch_of_ranges_is_answered_in_its_order() {
    for seed in [4, 5, 6] {
        let (bytes, mut random) = (content(seed, 5_000_000), Random(seed));
        let probe = Probe::with("a", bytes.clone()).await;
        for store in [around(&probe), around(&probe).fresh_for(Duration::MAX)] {
            for step in 0..40 {
                let ranges: Vec<Range<u64>> = (0..random.below(20))
                    .map(|_| {
                        let begin = random.below(5_000_000);
                        begin..begin + 1 + random.below(300_000)
                    })
                    .collect();
                let answer = store.get_ranges(&"a".into(), &ranges).await.unwrap();
                let expected: Vec<_> = ranges.iter().map(|range| part(&bytes, range)).collect();
                assert!(answer == expected, "seed {seed}, step {step}: {ranges:?}");
            }
        }
    }
}

#[tokio::test]
async fn ranges_that_are_not_there_are_refused_as_by_the_inner_store() {
    let probe = Probe::with("a", content(1, 1000)).await;
    let store = around(&probe);
    #[expect(clippy::reversed_empty_ranges, reason = "a caller can ask for it")]
    for ranges in [
        vec![0..10, 1000..1001],
        vec![5..5],
        vec![9..3],
        vec![u64::MAX - 1..u64::MAX],
    ] {
        for _ in 0..2 {
            let path = Path::from("a");
            let expected = probe.get_ranges(&path, &ranges).await;
            let answer = store.get_ranges(&path, &ranges).await;
            let text = |answer: object_store::Result<_>| answer.map_err(|error| error.to_string());
            assert_eq!(text(answer), text(expected), "{ranges:?}");
            // Known from here on.
            store.get_range(&path, 0..10).await.unwrap();
        }
    }
}

#[tokio::test]
async fn an_answer_has_the_attributes_that_the_object_was_put_with() {
    let probe = Probe::new();
    let path = Path::from("a");
    let attributes = Attributes::from_iter([(Attribute::ContentType, "text/plain")]);
    let put = probe
        .inner
        .put_opts(&path, "text".into(), attributes.clone().into());
    put.await.unwrap();
    let store = around(&probe).fresh_for(Duration::MAX);
    let listed: Vec<_> = store.list(None).try_collect().await.unwrap();
    assert_eq!(listed.len(), 1);
    for _ in 0..2 {
        let answer = store.get(&path).await.unwrap();
        assert_eq!(answer.attributes, attributes);
        assert_eq!(answer.meta, listed[0]);
        assert_eq!(answer.bytes().await.unwrap(), "text");
    }
}

#[tokio::test]
async fn many_readers_in_little_memory_get_their_bytes() {
    let bytes = content(9, 12_000_000);
    let probe = Probe::with("a", bytes.clone()).await;
    let store = PrefetchStore::new(probe.clone(), driver(2 << 20)).unwrap();
    let reads = (0..24_u64).map(|number| {
        let (store, bytes) = (store.clone(), &bytes);
        async move {
            let begin = number * 137_911;
            let ranges = [
                begin..begin + 3_000_000,
                11_000_000 - begin..11_900_000 - begin,
            ];
            let answer = store.get_ranges(&"a".into(), &ranges).await.unwrap();
            for (range, answer) in ranges.iter().zip(answer) {
                assert!(answer == part(bytes, range), "{range:?}");
            }
        }
    });
    stream::iter(reads)
        .buffer_unordered(24)
        .collect::<Vec<()>>()
        .await;
}

#[test]
fn a_runtime_without_timers_or_sockets_is_enough_and_may_end_before_the_store() {
    let bytes = content(3, 3_000_000);
    let mut store = None;
    for _ in 0..3 {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            if store.is_none() {
                store = Some(around(&Probe::with("a", bytes.clone()).await));
            }
            let store = store.as_ref().unwrap();
            let range = 1_000_000..2_500_000;
            let answer = store.get_range(&"a".into(), range.clone()).await.unwrap();
            assert!(answer == part(&bytes, &range));
        });
    }
}

#[test]
fn all_calls_of_the_inner_store_are_in_the_runtime_of_the_wrapper() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let probe = Probe::new();
    runtime.block_on(async {
        let store = around(&probe);
        let (path, other) = (Path::from("a"), Path::from("b"));
        store.put(&path, content(1, 5000).into()).await.unwrap();
        let mut upload = store.put_multipart(&other).await.unwrap();
        upload.put_part("part".into()).await.unwrap();
        upload.complete().await.unwrap();
        store
            .put_multipart(&other)
            .await
            .unwrap()
            .abort()
            .await
            .unwrap();
        store.get_range(&path, 10..4000).await.unwrap();
        store.head(&path).await.unwrap();
        let passed = GetOptions::new().with_if_none_match(Some("other"));
        let passed = store.get_opts(&path, passed).await.unwrap();
        assert_eq!(passed.bytes().await.unwrap().len(), 5000);
        for listing in [store.list(None), store.list_with_offset(None, &path)] {
            listing.try_collect::<Vec<_>>().await.unwrap();
        }
        store.list_with_delimiter(None).await.unwrap();
        store.copy(&path, &other).await.unwrap();
        store.rename(&other, &path).await.unwrap();
        probe.rule(|_| Act::Tagged(None));
        store.get_ranges(&path, &[0..10, 20..30]).await.unwrap();
        store.delete(&path).await.unwrap();
    });
    let runtimes = probe.runtimes();
    assert_eq!(runtimes.len(), 1, "{runtimes:?}");
    let callers = runtime.handle().id();
    assert!(!runtimes.contains(&None) && !runtimes.contains(&Some(callers)));
}
