//! A Parquet table read through DataFusion, with forerun's object store around the program's own and without.
//!
//! ```sh
//! cargo run --release                        # a table of 24 MB behind a stand-in: 30 ms a request, 80 MB/s each
//! cargo run --release -- s3://bucket/t.parquet     # columns a, b and c; AWS_ENDPOINT, AWS_ACCESS_KEY_ID, ..
//! cargo run --release -- write FILE ROWS     # such a table, for a store
//! ```
//!
//! Each turn has a context and an engine of its own, so nothing is in memory. The last column is a second query of the
//! same context: what an engine of 256 MiB gives that the plain store has to fetch again.

mod counting;

use std::error::Error;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::functions_aggregate::expr_fn::sum;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::prelude::{ParquetReadOptions, SessionContext, col, lit};
use forerun_core::{Bytes, preset};
use forerun_io::{Config, Driver};
use forerun_object_store::PrefetchStore;
use object_store::aws::AmazonS3Builder;
use object_store::memory::InMemory;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use object_store::{ObjectStore, ObjectStoreExt};

use counting::Counting;

/// Turns of each way, of which the median is shown.
const TURNS: usize = 5;

/// Rows of the table that is made: 24 MB in three columns.
const ROWS: i64 = 1_000_000;

/// Rows of a row group, of which a column chunk is 3.2 MB.
const GROUP_ROWS: i64 = 400_000;

const MEMORY: Bytes = Bytes(256 << 20);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A table of three columns of numbers that do not compress.
fn table(rows: i64) -> Result<Vec<u8>> {
    let column = |salt: i64, from: i64, to: i64| -> ArrayRef {
        let mixed = |row: i64| {
            let mixed = (row ^ salt).wrapping_mul(0x5851_f42d_4c95_7f2d);
            (mixed ^ (mixed as u64 >> 29) as i64).wrapping_mul(0x2545_f491_4f6c_dd1d)
        };
        Arc::new((from..to).map(mixed).collect::<Int64Array>())
    };
    let batch = |from, to| {
        let columns = [("a", 1), ("b", 2), ("c", 3)];
        RecordBatch::try_from_iter(columns.map(|(name, salt)| (name, column(salt, from, to))))
    };
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_max_row_group_row_count(Some(GROUP_ROWS as usize))
        .build();
    let schema = batch(0, 1)?.schema();
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties))?;
    for from in (0..rows).step_by(GROUP_ROWS as usize) {
        writer.write(&batch(from, rows.min(from + GROUP_ROWS))?)?;
    }
    Ok(writer.into_inner()?)
}

/// The program's own store, and the address of the table in it.
async fn own_store(address: Option<&str>) -> Result<(Arc<dyn ObjectStore>, String)> {
    if let Some(address) = address {
        let builder = AmazonS3Builder::from_env().with_url(address);
        return Ok((Arc::new(builder.build()?), address.to_owned()));
    }
    let memory = InMemory::new();
    memory.put(&"t.parquet".into(), table(ROWS)?.into()).await?;
    let config = ThrottleConfig {
        wait_get_per_call: Duration::from_millis(30),
        wait_get_per_byte: Duration::from_nanos(12),
        ..ThrottleConfig::default()
    };
    let store = ThrottledStore::new(memory, config);
    Ok((Arc::new(store), "stand-in://bucket/t.parquet".to_owned()))
}

/// Times of the sum of some columns, asked for twice, and the sums.
async fn query(
    store: Arc<dyn ObjectStore>,
    address: &str,
    columns: &[&str],
) -> Result<([Duration; 2], String)> {
    let context = SessionContext::new();
    let url = ListingTableUrl::parse(address)?;
    let server = url.object_store();
    context
        .runtime_env()
        .register_object_store(server.as_ref(), store);
    let (mut times, mut sums) = ([Duration::ZERO; 2], String::new());
    for time in &mut times {
        let begun = Instant::now();
        let table = context.read_parquet(address, ParquetReadOptions::default());
        // Sums of the numbers themselves would not fit.
        let columns = columns.iter().map(|name| sum(col(*name) % lit(1000)));
        let result = table.await?.aggregate(Vec::new(), columns.collect())?;
        let rows = result.collect().await?;
        *time = begun.elapsed();
        sums = format!(
            "{:?}",
            rows.iter()
                .map(|batch| batch.columns().to_vec())
                .collect::<Vec<_>>()
        );
    }
    Ok((times, sums))
}

fn median<T: Ord + Copy>(values: &mut [T]) -> T {
    values.sort_unstable();
    values[values.len() / 2]
}

/// Runs of one way.
#[derive(Default)]
struct Runs {
    first: Vec<Duration>,
    second: Vec<Duration>,
    requests: Vec<u64>,
    bytes: Vec<u64>,
}

async fn compare(own: &Counting, address: &str, columns: &[&str]) -> Result<()> {
    let mut ways = [Runs::default(), Runs::default()];
    let mut expected: Option<String> = None;
    for _ in 0..TURNS {
        for (with, runs) in ways.iter_mut().enumerate() {
            let store: Arc<dyn ObjectStore> = match with {
                0 => Arc::new(own.clone()),
                _ => {
                    let settings = preset::default().settings(MEMORY)?;
                    let driver = Driver::new(Config::new(settings))?;
                    Arc::new(PrefetchStore::new(own.clone(), Arc::new(driver))?)
                }
            };
            own.take();
            let ([first, second], sums) = query(store, address, columns).await?;
            let (requests, bytes) = own.take();
            assert_eq!(*expected.get_or_insert_with(|| sums.clone()), sums);
            runs.first.push(first);
            runs.second.push(second);
            runs.requests.push(requests);
            runs.bytes.push(bytes);
        }
    }
    println!("{} of 3 columns", columns.len());
    let mut plain = 0.0;
    for (name, runs) in ["plain", "forerun"].into_iter().zip(&mut ways) {
        let first = median(&mut runs.first).as_secs_f64();
        let (least, most) = (
            runs.first[0].as_secs_f64(),
            runs.first[TURNS - 1].as_secs_f64(),
        );
        let second = median(&mut runs.second).as_secs_f64();
        let (requests, bytes) = (median(&mut runs.requests), median(&mut runs.bytes));
        if plain == 0.0 {
            plain = first;
        }
        println!(
            "  {name:8} {first:6.3} s ({least:.3} to {most:.3}), {:.2} times; again {second:6.3} s; \
             {requests} requests, {:.1} MB",
            plain / first,
            bytes as f64 / 1e6
        );
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let ["write", file, rows] = arguments[..] {
        return Ok(fs::write(file, table(rows.parse()?)?)?);
    }
    let (own, address) = own_store(arguments.first().copied()).await?;
    let own = Counting::new(own);
    for columns in [&["a"][..], &["a", "b", "c"]] {
        compare(&own, &address, columns).await?;
    }
    Ok(())
}
