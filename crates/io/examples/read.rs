//! Copies a file to the standard output, read ahead of the copy.
//!
//! `cargo run --release --example read -- FILE > COPY`

use std::io::{copy, stdout};
use std::path::Path;

use forerun_core::{Bytes, preset};
use forerun_io::{Config, Driver};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: read FILE")?;
    let settings = preset::default().settings(Bytes(64 << 20))?;
    let driver = Driver::new(Config::new(settings))?;
    let mut reader = driver.open(Path::new(&path))?;
    copy(&mut reader, &mut stdout().lock())?;
    Ok(())
}
