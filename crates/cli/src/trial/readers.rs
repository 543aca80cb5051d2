//! Threads that read their parts until they are through or the time is over.

use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::files::Part;
use crate::failure::Failure;
use crate::files::plain;

/// The read size of `cat` and `cp`.
const READ_BYTES: usize = 128 << 10;

/// An open file of a candidate.
pub type Open = Box<dyn FnMut(&mut [u8], u64) -> io::Result<usize> + Send>;

/// Reads with one thread for each list of parts; bytes a second, in all.
///
/// # Errors
/// A file that cannot be opened or read.
pub fn rate(
    open: &(dyn Fn(&Path) -> Result<Open, Failure> + Sync),
    parts: &[Vec<Part>],
    each: Duration,
) -> Result<f64, Failure> {
    let begun = Instant::now();
    let total = Mutex::new(Ok(0));
    std::thread::scope(|scope| {
        for parts in parts {
            let total = &total;
            scope.spawn(move || {
                let read = read(open, parts, begun + each);
                let mut total = total.lock().unwrap_or_else(|e| e.into_inner());
                match (&mut *total, read) {
                    (Ok(total), Ok(bytes)) => *total += bytes,
                    (Ok(_), Err(error)) => *total = Err(error),
                    (Err(_), _) => {}
                }
            });
        }
    });
    let bytes: u64 = total.into_inner().unwrap_or_else(|e| e.into_inner())?;
    Ok(bytes as f64 / begun.elapsed().as_secs_f64().max(1e-9))
}

fn read(
    open: &dyn Fn(&Path) -> Result<Open, Failure>,
    parts: &[Part],
    until: Instant,
) -> Result<u64, Failure> {
    let mut buffer = vec![0; READ_BYTES];
    let mut total = 0;
    for part in parts {
        let mut file = open(&part.file)?;
        let (mut at, end) = (part.offset, part.offset + part.bytes);
        while at < end {
            if Instant::now() >= until {
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
}
