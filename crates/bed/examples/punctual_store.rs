//! How punctual the bed's store is: `cargo run --release -p forerun-bed --example punctual_store`.
//!
//! Starts `forerun-bed store` and compares the time of bodies with the model's: one connection alone,
//! eight that share the rate in all, and small ranges, one after the other. An idle machine keeps
//! within a hundredth. A program and no test, because lateness is the machine's.

use std::error::Error;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

const FIRST_BYTE: f64 = 0.030;
const CONNECTION_RATE: f64 = 80e6;
const RATE: f64 = 400e6;

/// A store that ends with this program, also with a failed one.
struct Store(Child);

impl Drop for Store {
    fn drop(&mut self) {
        // One that ended by itself cannot be killed, and is waited for all the same.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads a range of an object over a connection, and throws it away.
fn read(address: &str, object: usize, bytes: u64) -> io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    let last = bytes - 1;
    write!(
        stream,
        "GET /bed/a/00000{object} HTTP/1.1\r\nRange: bytes=0-{last}\r\n\r\n"
    )?;
    let mut lines = BufReader::with_capacity(1 << 20, stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if lines.read_line(&mut head)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    let arrived = io::copy(&mut lines.take(bytes), &mut io::sink())?;
    match head.starts_with("HTTP/1.1 206") && arrived == bytes {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "{arrived} of {bytes} bytes: {head}"
        ))),
    }
}

fn show(name: &str, began: Instant, modelled: f64) -> io::Result<()> {
    let real = began.elapsed().as_secs_f64();
    let ratio = real / modelled;
    writeln!(
        io::stdout(),
        "{name}: {real:.4} s real, {modelled:.4} s modelled, ratio {ratio:.4}"
    )
}

fn main() -> Result<(), Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let folder = program.parent().and_then(|examples| examples.parent());
    let store = Command::new(folder.ok_or("no folder of programs")?.join("forerun-bed"))
        .args(["store", "--objects", "a=8x400MB"])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut store = Store(store);
    let mut address = String::new();
    let output = store.0.stdout.take().ok_or("no output")?;
    BufReader::new(output).read_line(&mut address)?;
    let address = address.trim().trim_start_matches("http://");
    let began = Instant::now();
    read(address, 0, 160_000_000)?;
    show("one of 160 MB", began, FIRST_BYTE + 160e6 / CONNECTION_RATE)?;
    let began = Instant::now();
    std::thread::scope(|scope| {
        let readers = (0..8).map(|n| scope.spawn(move || read(address, n, 100_000_000)));
        let readers: Vec<_> = readers.collect();
        let panicked = |_| Err(io::Error::other("a reader panicked"));
        let mut ended = readers.into_iter().map(|reader| reader.join());
        ended.try_for_each(|ended| ended.unwrap_or_else(panicked))
    })?;
    show("eight of 100 MB", began, FIRST_BYTE + 800e6 / RATE)?;
    let began = Instant::now();
    for _ in 0..50 {
        read(address, 0, 16_384)?;
    }
    show(
        "fifty of 16 KiB",
        began,
        50.0 * (FIRST_BYTE + 16_384.0 / CONNECTION_RATE),
    )?;
    Ok(())
}
