//! How many requests an answer costs, for how many bytes, and how many are under way at once.

use std::time::Duration;

use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt};

use crate::probe::{Act, Probe, around, content, counted, part};

const MIB: u64 = 1 << 20;
/// The engine fetches whole blocks of 4 KiB: so much more at both ends of a range.
const EDGES: u64 = 2 * 4096;

#[tokio::test]
async fn bytes_that_were_read_are_answered_from_memory() {
    let bytes = content(1, 3 << 20);
    let probe = Probe::with("a", bytes.clone()).await;
    let store = around(&probe).fresh_for(Duration::MAX);
    let path = Path::from("a");
    let ranges = [10..100, MIB..MIB + 70_000, 2 * MIB..3 * MIB];
    for _ in 0..5 {
        let answer = store.get_ranges(&path, &ranges).await.unwrap();
        for (range, answer) in ranges.iter().zip(answer) {
            assert!(answer == part(&bytes, range));
        }
    }
    // Also what a window fetched ahead came once.
    let (heads, _, asked) = counted(&probe.take_seen(), 3 * MIB);
    assert!(
        heads == 0 && asked <= 3 * MIB,
        "{heads} questions, {asked} bytes"
    );
}

#[tokio::test]
async fn an_answer_from_memory_costs_a_head_where_versions_are_not_believed() {
    let probe = Probe::with("a", content(1, 3 << 20)).await;
    let store = around(&probe).fresh_for(Duration::ZERO);
    let path = Path::from("a");
    // Not the beginning of the object, behind which the engine fetches ahead.
    store.get_range(&path, MIB..MIB + 50_000).await.unwrap();
    probe.take_seen();
    for _ in 0..3 {
        store
            .get_range(&path, MIB + 100..MIB + 50_000)
            .await
            .unwrap();
        let (heads, gets, _) = counted(&probe.take_seen(), 3 * MIB);
        assert_eq!((heads, gets), (1, 0));
    }
    // A range that has to come proves the version.
    store.get_range(&path, 2 * MIB..2 * MIB + 9).await.unwrap();
    let (heads, gets, _) = counted(&probe.take_seen(), 3 * MIB);
    assert_eq!((heads, gets), (0, 1));
}

#[tokio::test]
async fn the_first_range_of_an_unknown_object_is_one_request() {
    let bytes = content(2, 10 << 20);
    let suffix = GetRange::Suffix(500_000);
    let end = bytes.len() as u64;
    for (range, expected) in [
        (GetRange::Bounded(5000..70_000), 5000..70_000),
        (suffix, end - 500_000..end),
        (GetRange::Bounded(end - 8..end), end - 8..end),
    ] {
        let probe = Probe::with("a", bytes.clone()).await;
        let store = around(&probe);
        let options = GetOptions {
            range: Some(range),
            ..GetOptions::default()
        };
        let answer = store.get_opts(&"a".into(), options).await.unwrap();
        assert_eq!(answer.range, expected);
        assert!(answer.bytes().await.unwrap() == part(&bytes, &expected));
        let (heads, gets, asked) = counted(&probe.take_seen(), end);
        assert_eq!((heads, gets), (0, 1), "{expected:?}");
        assert!(
            asked <= expected.end - expected.start + EDGES,
            "{asked} for {expected:?}"
        );
    }
}

#[tokio::test]
async fn a_listed_object_is_read_without_a_question() {
    let probe = Probe::with("folder/a", content(3, 100_000)).await;
    for way in 0..3 {
        let store = around(&probe);
        let (prefix, offset) = (Path::from("folder"), Path::from("folder/A"));
        let listed = match way {
            0 => store
                .list(Some(&prefix))
                .try_collect::<Vec<_>>()
                .await
                .unwrap(),
            1 => store
                .list_with_offset(None, &offset)
                .try_collect()
                .await
                .unwrap(),
            _ => {
                store
                    .list_with_delimiter(Some(&prefix))
                    .await
                    .unwrap()
                    .objects
            }
        };
        probe.take_seen();
        store
            .get_range(&listed[0].location, 4096..8192)
            .await
            .unwrap();
        let (heads, gets, asked) = counted(&probe.take_seen(), 100_000);
        assert_eq!((heads, gets, asked), (0, 1, 4096), "way {way}");
    }
}

/// All requests of an answer wait for as many to have come: it ends only if they are under way at once.
async fn comes_at_once(requests: usize, ranges: &[std::ops::Range<u64>]) {
    let bytes = content(4, 26 << 20);
    let probe = Probe::with("a", bytes.clone()).await;
    let store = around(&probe);
    store.head(&"a".into()).await.unwrap();
    probe.take_seen();
    probe.rule(move |_| Act::Until(requests));
    let answer = store.get_ranges(&"a".into(), ranges).await.unwrap();
    for (range, answer) in ranges.iter().zip(answer) {
        assert!(answer == part(&bytes, range));
    }
    let (heads, _, asked) = counted(&probe.take_seen(), bytes.len() as u64);
    let length: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    assert_eq!(heads, 0);
    assert!(
        asked <= length + EDGES * ranges.len() as u64,
        "{asked} for {length}"
    );
}

#[tokio::test]
async fn ranges_of_a_batch_are_under_way_at_once() {
    // At no equal distances, which the engine would take for a pattern.
    let begins = [1, 3, 8, 12, 15, 17, 22, 25].map(|at| at * MIB);
    let ranges = begins.map(|begin| begin..begin + 60_000);
    comes_at_once(8, &ranges).await;
}

#[tokio::test]
async fn a_long_range_is_several_requests_at_once() {
    comes_at_once(8, &[5 * MIB + 7..13 * MIB + 7]).await;
}

#[tokio::test]
async fn gaps_that_cost_less_than_a_request_are_read_through() {
    let bytes = content(5, 8 << 20);
    let probe = Probe::with("a", bytes.clone()).await;
    let store = around(&probe);
    store.head(&"a".into()).await.unwrap();
    probe.take_seen();
    // Fifteen ranges of 10 kB, 30 kB apart: 430 kB with their gaps, of which a request brings 1 MiB.
    let ranges: Vec<_> = (0..15)
        .map(|at| MIB + at * 30_000..MIB + at * 30_000 + 10_000)
        .collect();
    let answer = store.get_ranges(&"a".into(), &ranges).await.unwrap();
    for (range, answer) in ranges.iter().zip(answer) {
        assert!(answer == part(&bytes, range));
    }
    let (_, gets, _) = counted(&probe.take_seen(), bytes.len() as u64);
    assert!(gets <= 2, "{gets} requests");
}

#[tokio::test]
async fn an_object_without_a_name_for_its_version_costs_what_it_costs_without_the_store() {
    for tag in [
        None,
        Some("W/\"a\""),
        Some(""),
        Some("\"\""),
        Some("*"),
        Some("a, b"),
    ] {
        let bytes = content(6, 100_000);
        let probe = Probe::with("a", bytes.clone()).await;
        probe.rule(move |_| Act::Tagged(tag));
        let store = around(&probe).fresh_for(Duration::MAX);
        let path = Path::from("a");
        store.head(&path).await.unwrap();
        probe.take_seen();
        for _ in 0..2 {
            let answer = store.get_range(&path, 1000..2000).await.unwrap();
            assert!(answer == part(&bytes, &(1000..2000)), "{tag:?}");
            let (heads, gets, asked) = counted(&probe.take_seen(), 100_000);
            assert_eq!((heads, gets, asked), (0, 1, 1000), "{tag:?}");
        }
    }
}

#[tokio::test]
async fn a_store_that_refuses_its_own_tags_is_read_without_conditions() {
    let bytes = content(7, 100_000);
    let probe = Probe::with("a", bytes.clone()).await;
    probe.rule(|_| Act::Tagged(Some("\"a\"")));
    let store = around(&probe);
    for _ in 0..3 {
        let answer = store.get_range(&"a".into(), 5000..90_000).await.unwrap();
        assert!(answer == part(&bytes, &(5000..90_000)));
        let answer = store
            .get_ranges(&"a".into(), &[7..9, 95_000..99_000])
            .await
            .unwrap();
        assert!(answer[1] == part(&bytes, &(95_000..99_000)));
    }
}
