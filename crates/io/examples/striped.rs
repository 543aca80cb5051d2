//! Throughput of sequential readers on an emulated array, in real time, preset by preset.
//!
//! `cargo run --release -p forerun-io --example striped -- [READERS,.. [MEGABYTES [DISKS]]]`: for strips of 64
//! and 128 KiB and each number of readers, so many megabytes in all, of generated content and at most 512 a
//! reader, with 256 MiB of memory on four disks of 8 ms and 80 MB/s. Every byte is checked. The last two
//! columns show where single strips and whole stripes cross: each alone, with the rest as in Linux 2.6.18.

use std::error::Error;
use std::io::Write;
use std::time::Instant;

use forerun_baselines::METHODS;
use forerun_core::layout;
use forerun_core::spec::Choice;
use forerun_core::{Bytes, Nanos, Settings};
use forerun_emulated::Emulation;
use forerun_io::{Config, Driver, Striping, generated};

type Failure = Box<dyn Error>;

const DISK: (Nanos, u64) = (Nanos(8_000_000), 80_000_000);
const READ_BYTES: usize = 64 << 10;
const MEMORY: Bytes = Bytes(256 << 20);

/// Presets, and those to the right with another shape.
const COLUMNS: [&str; 6] = [
    "forerun",
    "linux-2.6.24",
    "seqp",
    "msp+saseqp",
    "strips",
    "stripes",
];

fn settings(column: &str) -> Result<Settings, Failure> {
    let name = match column {
        "strips" => "saseqp",
        "stripes" => "seqp",
        name => name,
    };
    let mut settings = forerun_baselines::preset(name)?.settings(MEMORY)?;
    if column == "stripes" {
        // From the first step on, one stripe at a time.
        let always = "stripe(threshold=1,stripes=1)";
        settings.shape = Choice::parse("shape", METHODS.shape, always)?;
        settings.depth = Choice::parse("depth", METHODS.depth, "fixed(depth_bytes=131072)")?;
    }
    Ok(settings)
}

/// Megabytes a second.
fn run(settings: Settings, striping: Striping, readers: u64, bytes: u64) -> Result<f64, Failure> {
    let mut config = Config::new(settings);
    let device = Emulation::new(DISK.0, DISK.1, 1)?;
    config.lab.emulate = Some(Box::new(device));
    config.lab.striping = Some(striping);
    let driver = Driver::new(config)?;
    let start = Instant::now();
    std::thread::scope(|scope| {
        for index in 0..readers {
            let driver = &driver;
            scope.spawn(move || read(driver, index, bytes));
        }
    });
    let elapsed = start.elapsed().as_secs_f64();
    driver.finish()?.check()?;
    Ok((readers * bytes) as f64 / elapsed / 1e6)
}

fn read(driver: &Driver, index: u64, bytes: u64) {
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
}

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let readers = args.next().unwrap_or_else(|| "1,8,32,128".into());
    let readers: Vec<u64> = readers
        .split(',')
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let megabytes: u64 = args.next().unwrap_or_else(|| "1024".into()).parse()?;
    let disks = args.next().unwrap_or_else(|| "4".into()).parse()?;
    let mut out = std::io::stdout();
    write!(out, "MB/s, {disks} disks\n{:6}{:>8}", "strip", "readers")?;
    COLUMNS
        .iter()
        .try_for_each(|name| write!(out, "{name:>14}"))?;
    writeln!(out)?;
    for strip in [64 << 10, 128 << 10] {
        let layout = Choice::parse("layout", layout::LIST, "raid0")?.with("strip_bytes", strip)?;
        for &readers in &readers {
            write!(out, "{:6}{readers:8}", strip >> 10)?;
            let bytes = (megabytes * 1_000_000 / readers.max(1)).min(512_000_000);
            for column in COLUMNS {
                let layout = layout.clone();
                let rate = run(
                    settings(column)?,
                    Striping { layout, disks },
                    readers,
                    bytes,
                )?;
                write!(out, "{rate:14.1}")?;
                out.flush()?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}
