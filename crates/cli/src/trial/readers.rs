//! Threads that read their parts until they are through or the time is over.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use super::files::Part;
use crate::failure::Failure;
use crate::files::plain;

/// The read size of `cat` and `cp`.
const READ_BYTES: usize = 128 << 10;

/// An open file of a candidate.
pub type Open = Box<dyn FnMut(&mut [u8], u64) -> io::Result<usize> + Send>;

/// The bytes of each reader, and how long all took.
#[derive(Clone, Debug)]
pub struct Amounts {
    /// Bytes of each reader.
    pub each: Vec<u64>,
    /// From the start of all to the end of the last.
    pub elapsed: Duration,
}

impl Amounts {
    /// Bytes a second, in all.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.each.iter().sum::<u64>() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// The bytes of the slowest reader over those of the mean one.
    #[must_use]
    pub fn slowest_over_mean(&self) -> f64 {
        let sum = self.each.iter().sum::<u64>().max(1) as f64;
        let least = self.each.iter().min().copied().unwrap_or_default() as f64;
        least * self.each.len() as f64 / sum
    }
}

/// Reads with one thread for each list of parts; bytes a second, in all.
///
/// # Errors
/// A file that cannot be opened or read.
pub fn rate(
    open: &(dyn Fn(&Path) -> Result<Open, Failure> + Sync),
    parts: &[Vec<Part>],
    each: Duration,
) -> Result<f64, Failure> {
    let until = Instant::now() + each;
    let amounts = amounts(open, parts, &|| Instant::now() >= until)?;
    Ok(amounts.rate())
}

/// Reads with one thread for each list of parts, until they are through or it is over.
///
/// # Errors
/// A file that cannot be opened or read.
pub fn amounts(
    open: &(dyn Fn(&Path) -> Result<Open, Failure> + Sync),
    parts: &[Vec<Part>],
    is_over: &(dyn Fn() -> bool + Sync),
) -> Result<Amounts, Failure> {
    let begun = Instant::now();
    let each = std::thread::scope(|scope| {
        let threads = parts.iter();
        let threads = threads.map(|parts| scope.spawn(move || read(open, parts, is_over)));
        let threads: Vec<_> = threads.collect();
        let ended = threads.into_iter().map(|thread| match thread.join() {
            Ok(read) => read,
            Err(_) => Err(Failure::Run("a reading thread ended early".to_owned())),
        });
        // All are waited for, also behind the first error.
        ended.collect::<Vec<_>>()
    });
    let each = each.into_iter().collect::<Result<_, _>>()?;
    let elapsed = begun.elapsed();
    Ok(Amounts { each, elapsed })
}

fn read(
    open: &dyn Fn(&Path) -> Result<Open, Failure>,
    parts: &[Part],
    is_over: &dyn Fn() -> bool,
) -> Result<u64, Failure> {
    let mut buffer = vec![0; READ_BYTES];
    let mut total = 0;
    for part in parts {
        let mut file = open(&part.file)?;
        let (mut at, end) = (part.offset, part.offset + part.bytes);
        while at < end {
            if is_over() {
                return Ok(total);
            }
            let wanted = READ_BYTES.min(usize::try_from(end - at).unwrap_or(READ_BYTES));
            let failed = |e: io::Error| Failure::broken(&part.file, plain(&e));
            match file(&mut buffer[..wanted], at).map_err(failed)? {
                // It became shorter since it was found.
                0 => break,
                count => {
                    at += count as u64;
                    total += count as u64;
                }
            }
        }
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_ends_the_run_and_short_files_do_not() {
        let part = |name: &str| Part {
            file: name.into(),
            offset: 0,
            bytes: 1 << 20,
        };
        let open = |path: &Path| -> Result<Open, Failure> {
            let broken = path == Path::new("broken");
            Ok(Box::new(move |buffer: &mut [u8], at| match broken {
                true => Err(io::Error::other("broken")),
                false => Ok(if at < 300_000 { buffer.len() } else { 0 }),
            }))
        };
        let hour = Duration::from_secs(3600);
        assert!(rate(&open, &[vec![part("a"), part("b")], vec![part("c")]], hour).unwrap() > 0.0);
        let failed = rate(&open, &[vec![part("a")], vec![part("broken")]], hour);
        assert!(failed.unwrap_err().to_string().contains("broken"));
    }

    #[test]
    fn the_slowest_reader_is_compared_with_the_mean_one() {
        let of = |each: &[u64]| Amounts {
            each: each.to_vec(),
            elapsed: Duration::from_secs(2),
        };
        assert_eq!(of(&[10, 20, 30]).rate(), 30.0);
        assert_eq!(of(&[10, 20, 30]).slowest_over_mean(), 0.5);
        assert_eq!(of(&[0, 0]).slowest_over_mean(), 0.0);
    }
}
