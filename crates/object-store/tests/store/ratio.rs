//! Speed beside the inner store, read as DataFusion reads a table.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forerun_object_store::PrefetchStore;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use object_store::{ObjectStore, ObjectStoreExt};

use crate::probe::{Probe, content, counted, driver};

/// A column chunk of 400,000 numbers.
const CHUNK: u64 = 3_200_000;
const GROUPS: u64 = 2;
const COLUMNS: u64 = 3;
const FOOTER: u64 = 512 << 10;
const TURNS: usize = 5;

/// The chunks of the first columns of a row group.
fn chunks(group: u64, columns: u64) -> Vec<Range<u64>> {
    let begin = |column| (group * COLUMNS + column) * CHUNK;
    (0..columns)
        .map(|column| begin(column)..begin(column) + CHUNK)
        .collect()
}

/// Reads a footer, then the row groups in two partitions side by side.
async fn scan(store: Arc<dyn ObjectStore>, columns: u64) -> Duration {
    let begun = Instant::now();
    let meta = store.head(&"a".into()).await.unwrap();
    let footer = store
        .get_range(&"a".into(), meta.size - FOOTER..meta.size)
        .await
        .unwrap();
    assert_eq!(footer.len() as u64, FOOTER);
    let partition = async |first: u64| {
        for group in (first..GROUPS).step_by(2) {
            let read = store
                .get_ranges(&"a".into(), &chunks(group, columns))
                .await
                .unwrap();
            assert!(read.iter().all(|chunk| chunk.len() as u64 == CHUNK));
        }
    };
    tokio::join!(partition(0), partition(1));
    begun.elapsed()
}

/// Medians of the times without and with the engine, and of the bytes asked for.
async fn medians(columns: u64) -> [(Duration, u64); 2] {
    let bytes = (GROUPS * COLUMNS * CHUNK + FOOTER) as usize;
    let probe = Probe::with("a", content(1, bytes)).await;
    // 30 ms to the first byte, and 8 MB/s a request: a chunk takes 0.4 s, beside which the time that a processor with six
    // other programs takes is small.
    let throttle = ThrottleConfig {
        wait_get_per_call: Duration::from_millis(30),
        wait_get_per_byte: Duration::from_nanos(120),
        ..ThrottleConfig::default()
    };
    let mut runs = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        for (way, runs) in runs.iter_mut().enumerate() {
            let slow = ThrottledStore::new(probe.clone(), throttle);
            // Its ranges one by one, joined as by the stores of clouds.
            let slow = crate::probe::OneByOne(Arc::new(slow));
            let store: Arc<dyn ObjectStore> = match way {
                0 => Arc::new(slow),
                _ => Arc::new(PrefetchStore::new(slow, driver(256 << 20)).unwrap()),
            };
            probe.take_seen();
            let time = scan(store, columns).await;
            let (_, _, asked) = counted(&probe.take_seen(), bytes as u64);
            runs.push((time, asked));
        }
    }
    runs.map(|mut runs| {
        runs.sort_unstable();
        runs[TURNS / 2]
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_over_slow_connections_is_faster_than_without_the_store_and_asks_for_no_more_bytes()
{
    for columns in [1, COLUMNS] {
        let [(plain, least), (time, asked)] = medians(columns).await;
        let figures =
            format!("{columns} columns: {plain:?}, {least} bytes; {time:?}, {asked} bytes");
        assert!(time <= plain, "{figures}");
        assert!(asked * 100 <= least * 105, "{figures}");
    }
}
