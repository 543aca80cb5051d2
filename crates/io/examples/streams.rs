//! Throughput of many sequential readers on an emulated disk, preset by preset.
//!
//! `cargo run --release --example streams -- READERS [MEGABYTES [PRESET..]]`. Each reader has its
//! own file of generated content and reads it once, 64 KiB at a time, with 256 MiB of memory on a
//! disk of 8 ms and 80 MB/s. Every byte is checked. The command line's `bench` does the same and
//! more; this is for work on the crate alone.

use std::error::Error;
use std::io::Write;
use std::time::Instant;

use forerun_core::{Bytes, Nanos, preset};
use forerun_io::{Config, Driver, Emulation, generated};

const DISK: Emulation = Emulation {
    switching: Nanos(8_000_000),
    bytes_per_second: 80_000_000,
    servers: 1,
};
const READ_BYTES: usize = 64 << 10;

fn run(preset: &preset::Preset, readers: u64, bytes: u64) -> Result<(), Box<dyn Error>> {
    let mut config = Config::new(preset.settings(Bytes(256 << 20))?);
    config.emulate = Some(DISK);
    let driver = Driver::new(config)?;
    let start = Instant::now();
    std::thread::scope(|scope| {
        for index in 0..readers {
            let driver = &driver;
            scope.spawn(move || {
                let (mut buf, mut offset) = (vec![0; READ_BYTES], 0);
                let Ok(reader) = driver.open_generated(1, index, bytes) else {
                    return;
                };
                while let Ok(n) = reader.read_at(&mut buf, offset) {
                    assert_eq!(generated::check(1, index, offset, &buf[..n]), Ok(()));
                    offset += n as u64;
                    if n == 0 {
                        break;
                    }
                }
                assert_eq!(offset, bytes);
            });
        }
    });
    let elapsed = start.elapsed().as_secs_f64();
    let used = driver.device_use().unwrap_or_default();
    let ledger = driver.finish()?;
    ledger.check()?;
    writeln!(
        std::io::stdout(),
        "{:13} {readers:3} readers {:6.1} MB/s, {} requests of {} KiB, {} continued, busy {:.1} %, wasted {} blocks",
        preset.name,
        (readers * bytes) as f64 / elapsed / 1e6,
        used.requests,
        (used.bytes.0 / used.requests.max(1)) >> 10,
        used.continued,
        used.busy.0 as f64 / elapsed / 1e7,
        ledger.wasted()
    )?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let readers = args.next().unwrap_or_else(|| "10".into()).parse()?;
    let megabytes: u64 = args.next().unwrap_or_else(|| "20".into()).parse()?;
    let mut names: Vec<String> = args.collect();
    if names.is_empty() {
        names = ["linux-2.6.24", "cp", "forerun"].map(Into::into).into();
    }
    for name in names {
        run(preset::find(&name)?, readers, megabytes * 1_000_000)?;
    }
    Ok(())
}
