//! How many instructions a plain hit takes outside the copy: at most 300, counted by callgrind.
//!
//! Counts repeat exactly where times do not, so this holds the hit path's cost on noisy machines.
//! Without arguments it runs itself under valgrind, adds up what callgrind saw between entering
//! and leaving [`measured`], less the copy itself, and fails above the limit. Where valgrind is
//! missing it is skipped. Part of `cargo bench`, and of `cargo test`, in the development
//! profile without the limit.

#[path = "../../skipped.rs"]
mod skipped;

use std::error::Error;
use std::hint::black_box;
use std::io::Write;
use std::process::Command;

use forerun_core::{Bytes, preset};
use forerun_io::{BackendChoice, Config, Driver, Reader};

const HITS: u64 = 2_000;
const BLOCK: usize = 4096;
const BLOCKS: u64 = 1_024;
const LIMIT: u64 = 300;
/// Counts, of which the least is that of a plain hit: while the engine's thread gets no processor, blocks
/// stay armed, and their hits are reported.
const COUNTS: u32 = 3;

/// Functions of the copy.
const COPYING: &[&str] = &["memcpy", "memmove"];

/// The argument with which it runs itself.
const INNER: &str = "under-valgrind";

/// Hits of single blocks all over the file.
#[inline(always)]
fn hits(reader: &Reader, buf: &mut [u8; BLOCK]) -> usize {
    (0..HITS)
        .map(|i| i * 389 % BLOCKS * BLOCK as u64)
        .map(|offset| reader.read_at(buf, offset).unwrap_or(0))
        .sum()
}

/// The code that is counted.
#[inline(never)]
fn measured(reader: &Reader, buf: &mut [u8; BLOCK]) -> usize {
    hits(reader, buf)
}

fn inner() -> Result<(), Box<dyn Error>> {
    let mut config = Config::new(preset::default().settings(Bytes(8 << 20))?);
    config.backend = BackendChoice::named("memory")?;
    let driver = Driver::new(config)?;
    let path = std::env::temp_dir().join(format!("forerun-hits-{}", std::process::id()));
    std::fs::write(&path, vec![1; BLOCKS as usize * BLOCK])?;
    // A young version would be dropped once it is old.
    let file = std::fs::File::options().write(true).open(&path)?;
    file.set_modified(std::time::UNIX_EPOCH)?;
    let reader = driver.open(&path)?;
    let mut whole = vec![0; BLOCKS as usize * BLOCK];
    for _ in 0..3 {
        assert_eq!(reader.read_at(&mut whole, 0)?, whole.len());
    }
    // On a busy machine a block may still be armed: its next two hits are reported.
    let mut misses = 0;
    for _ in 0..3 {
        assert_eq!(hits(&reader, &mut [0; BLOCK]), HITS as usize * BLOCK);
        misses = driver.ledger().misses;
    }
    let taken = measured(&reader, &mut [0; BLOCK]);
    // Not before: it would be a change of the file, which is looked at once in 100 ms.
    std::fs::remove_file(&path)?;
    assert_eq!(black_box(taken), HITS as usize * BLOCK);
    assert_eq!(driver.ledger().misses, misses, "something was not resident");
    Ok(())
}

/// Adds up the costs in a callgrind file by whether the function copies memory.
fn costs(out: &str) -> (u64, u64) {
    let (mut copying, mut other) = (0, 0);
    let mut names = std::collections::HashMap::new();
    let (mut in_copy, mut calls) = (false, false);
    for line in out.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            let (number, text) = name.split_once(' ').unwrap_or((name, ""));
            let text = names
                .entry(number.to_owned())
                .or_insert_with(|| text.to_owned());
            in_copy = COPYING.iter().any(|name| text.contains(name));
        } else if let Some(name) = line.strip_prefix("cfn=") {
            if let Some((number, text)) = name.split_once(' ') {
                names.insert(number.to_owned(), text.to_owned());
            }
        } else if line.starts_with("calls=") {
            // The next line is the callee's cost, which stands at the callee as well.
            calls = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit() || c == '+' || c == '-' || c == '*')
        {
            let cost = line
                .split(' ')
                .nth(1)
                .and_then(|c| c.parse().ok())
                .unwrap_or(0);
            match (std::mem::take(&mut calls), in_copy) {
                (true, _) => {}
                (false, true) => copying += cost,
                (false, false) => other += cost,
            }
        }
    }
    (copying, other)
}

/// Instructions of the copies and of the rest, of one run.
fn count() -> Result<(u64, u64), Box<dyn Error>> {
    let file = std::env::temp_dir().join(format!("forerun-callgrind-{}", std::process::id()));
    let status = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet", "--collect-atstart=no"])
        .arg("--toggle-collect=*measured*")
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(std::env::current_exe()?)
        .arg(INNER)
        .status()?;
    let counted = std::fs::read_to_string(&file)?;
    std::fs::remove_file(&file)?;
    assert!(status.success(), "valgrind: {status}");
    Ok(costs(&counted))
}

fn outer() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    if Command::new("valgrind").arg("--version").output().is_err() {
        skipped::skipped("valgrind is not installed");
        return Ok(());
    }
    let (mut least, mut copying) = (u64::MAX, 0);
    for _ in 0..COUNTS {
        let other;
        (copying, other) = count()?;
        assert!(other > 0, "callgrind counted nothing");
        least = least.min(other / HITS);
        // A release build is optimised; the development profile only shows that the count works.
        if cfg!(debug_assertions) || least <= LIMIT {
            break;
        }
    }
    writeln!(
        out,
        "hit_instructions: {least} a hit outside the copy, {} in it",
        copying / HITS
    )?;
    assert!(
        cfg!(debug_assertions) || least <= LIMIT,
        "{least} instructions a hit: at most {LIMIT} are allowed"
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().any(|a| a == INNER) {
        inner()
    } else {
        outer()
    }
}
