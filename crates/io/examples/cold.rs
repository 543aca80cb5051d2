//! Reads a file once from beginning to end, and says how fast that was.
//!
//! `cargo run --release --example cold -- FILE [PRESET [BACKEND [READ_BYTES]]]`. With 256 MiB of memory and
//! direct reads, so the page cache plays no part; to be compared with
//! `fio --rw=read --direct=1 --ioengine=io_uring --bs=1M --iodepth=16` on the same file in turns.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use forerun_core::{Bytes, preset};
use forerun_io::{BackendChoice, Config, Driver};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("which file?")?;
    let preset = preset::find(&args.next().unwrap_or_else(|| "forerun".into()))?;
    let backend = args.next().unwrap_or_else(|| "auto".into());
    let read_bytes = args.next().map_or(Ok(1 << 20), |n| n.parse())?;
    let mut config = Config::new(preset.settings(Bytes(256 << 20))?);
    config.backend = BackendChoice::named(&backend)?;
    let driver = Driver::new(config)?;
    let start = Instant::now();
    let reader = driver.open(Path::new(&path))?;
    let (mut buf, mut offset) = (vec![0; read_bytes], 0);
    loop {
        let n = reader.read_at(&mut buf, offset)?;
        if n == 0 {
            break;
        }
        offset += n as u64;
    }
    let seconds = start.elapsed().as_secs_f64();
    drop(reader);
    let ledger = driver.finish()?;
    writeln!(
        std::io::stdout(),
        "{} on {backend}: {:.0} MB/s, {} requests, {} late hits, {} misses",
        preset.name,
        offset as f64 / seconds / 1e6,
        ledger.requests,
        ledger.late_hits,
        ledger.misses
    )?;
    Ok(())
}
