//! Random inputs for a target: a program under `tests` that must not panic or hang on any bytes.
//!
//! Problem: parsers and the engine meet inputs that no test names. libFuzzer needs a nightly compiler,
//! and targets that only it builds stop building unnoticed. Mechanism: a target is a plain test program.
//! It starts from the files of its folder in `corpus`, then changes and joins inputs at random.
//!
//! ```text
//! pool: files of corpus --> take one, change it --> target --> outcome seen before? dropped
//!   ^                                                              | new
//!   +--------------------------------------------------------------+
//! ```
//!
//! An *outcome* is a text in which the target says how far it came, such as the message of an error; digits
//! count as one. Ten seconds each; `FUZZ_SECONDS` and `FUZZ_SEED` say otherwise. The input of a failure is
//! printed, and read back by `FUZZ_INPUT` (hexadecimal).

use std::collections::HashSet;
use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::exit;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An input that takes longer hangs: the slowest takes some milliseconds.
const HANGS: Duration = Duration::from_secs(60);

/// Longest input: parsers see all that they tell apart within that.
const BYTES_MAX: usize = 4096;

/// Most inputs kept.
const POOL_MAX: usize = 4096;

/// Words and numbers at which parsers and arithmetic turn.
const WORDS: &[&[u8]] = &[
    b"0",
    b"-1",
    b"1e9",
    b"18446744073709551615",
    b"4294967296",
    b"=",
    b",",
    b":",
    b"\n",
    b"\"",
    b"[",
    b"]",
    b"\0\0\0\0\0\0\0\0",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\xff",
    b" ",
    b"--",
    b"KiB",
    b"ns",
    b"\t",
];

/// Numbers of a seed (splitmix64).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Below a bound, or zero.
    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn changed(&mut self, pool: &[Vec<u8>]) -> Vec<u8> {
        let mut input = pool[self.below(pool.len())].clone();
        for _ in 0..1 + self.below(8) {
            self.change(&mut input, pool);
        }
        input.truncate(BYTES_MAX);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, pool: &[Vec<u8>]) {
        let at = self.below(input.len() + 1);
        let to = at + self.below((input.len() - at).min(64) + 1);
        match self.below(7) {
            0 => drop(input.drain(at..to)),
            1 => drop(input.splice(at..at, WORDS[self.below(WORDS.len())].iter().copied())),
            2 => drop(input.splice(at..to, WORDS[self.below(WORDS.len())].iter().copied())),
            // Written twice, or a piece of another.
            3 => drop(input.splice(at..at, input[at..to].to_vec())),
            4 => {
                let other = &pool[self.below(pool.len())];
                let from = self.below(other.len() + 1);
                let end = from + self.below((other.len() - from).min(256) + 1);
                drop(input.splice(at..to, other[from..end].iter().copied()));
            }
            5 => {
                let bytes = (0..self.below(32)).map(|_| self.next() as u8);
                drop(input.splice(at..at, bytes.collect::<Vec<_>>()));
            }
            _ => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << self.below(8);
                }
            }
        }
    }
}

/// The input under way and when it began, for a thread that sees whether it ends; none at the end.
type Running = Arc<(Mutex<Option<(Vec<u8>, Instant)>>, Condvar)>;

/// Runs a target under its name until its time is over.
#[expect(
    clippy::print_stdout,
    reason = "a test program without the usual frame"
)]
pub fn fuzz(name: &str, target: impl Fn(&[u8]) -> String) {
    let number = |name: &str, default: u64| -> u64 {
        let text = env::var(name).ok().filter(|text| !text.is_empty());
        text.map_or(default, |text| text.parse().expect("a number"))
    };
    if let Ok(text) = env::var("FUZZ_INPUT") {
        let digits =
            (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16));
        let input: Result<Vec<u8>, _> = digits.collect();
        println!("{name}: {}", target(&input.expect("hexadecimal digits")));
        return;
    }
    let (seed, seconds) = (number("FUZZ_SEED", 1), number("FUZZ_SECONDS", 10));
    println!("{name}: FUZZ_SEED={seed}, {seconds} s");
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut pool = corpus(name);
    let (mut draw, mut outcomes, mut runs) = (Draw(seed), HashSet::new(), 0_u64);
    // Of random bytes some, for targets that take any, and are not far with few.
    for _ in 0..16 {
        let bytes = draw.below(BYTES_MAX / 4);
        pool.push((0..bytes).map(|_| draw.next() as u8).collect());
    }
    let running = Running::default();
    let of_watch = running.clone();
    let name_of_watch = name.to_string();
    let watch = std::thread::spawn(move || watch(&name_of_watch, &of_watch));
    let seeds = pool.clone();
    let mut seeds = seeds.into_iter();
    while Instant::now() < until {
        let input = seeds.next().unwrap_or_else(|| draw.changed(&pool));
        *lock(&running.0) = Some((input.clone(), Instant::now()));
        let Ok(outcome) = catch_unwind(AssertUnwindSafe(|| target(&input))) else {
            failed(name, "it panicked", &input);
        };
        runs += 1;
        let outcome = outcome.replace(|letter: char| letter.is_ascii_digit(), "9");
        if pool.len() < POOL_MAX && outcomes.insert(outcome) {
            pool.push(input);
        }
    }
    *lock(&running.0) = None;
    running.1.notify_all();
    // A panic of it would have ended the process.
    let _ = watch.join();
    println!("{name}: {runs} inputs, {} outcomes", outcomes.len());
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name);
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .collect();
    files.sort_by_key(std::fs::DirEntry::file_name);
    let read = files
        .iter()
        .filter_map(|file| std::fs::read(file.path()).ok());
    let mut pool: Vec<_> = read.collect();
    pool.push(Vec::new());
    pool
}

/// Ends the process if one input takes too long.
fn watch(name: &str, running: &Running) {
    let mut now = lock(&running.0);
    // The first input is not there yet.
    let mut has_begun = false;
    loop {
        match &*now {
            None if has_begun => return,
            Some((input, begun)) if begun.elapsed() > HANGS => {
                failed(name, "it takes more than a minute", input);
            }
            running => has_begun |= running.is_some(),
        }
        let waited = running.1.wait_timeout(now, Duration::from_secs(1));
        now = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}

#[expect(
    clippy::print_stderr,
    reason = "a test program without the usual frame"
)]
fn failed(name: &str, why: &str, input: &[u8]) -> ! {
    let digits: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
    eprintln!("{name}: {why}: {:?}", String::from_utf8_lossy(input));
    eprintln!(
        "again: FUZZ_INPUT={digits} cargo test --package forerun-fuzz --all-features --test {name}"
    );
    exit(101)
}
