//! A complete driver: a file read through the engine, with one thread that carries out fetches.
//!
//! `cargo run --release -p forerun-core --example driver -- FILE` reads FILE from its beginning in
//! 64 KiB pieces and prints the engine's ledger. Without FILE it reads its own executable.
//!
//! Example: the first read wants blocks 0..16, and block 0 is missing. The engine answers with fetches
//! of a window from block 0 on; when they have completed, the read is served. The windows behind it
//! are fetched while the program works, and later reads find their blocks in the table.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a driver has the clock and the thread that the engine must not have"
)]

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;
use std::{env, error, thread};

use forerun_core::detect::Access;
use forerun_core::protocol::Wants;
use forerun_core::table::{Frame, flag};
use forerun_core::{
    Block, Bytes, DeviceId, Engine, ErrorCode, Fetch, FetchOutcome, FileId, Input, Ledger, Nanos,
    Output, Placement, Profile, ReadId, ReaderId, Served, preset,
};

// This driver has one of each, so the first number of each kind is the only one.
const DEVICE: DeviceId = DeviceId(0);
const FILE: FileId = FileId(0);
const READER: ReaderId = ReaderId(0);
const READ: ReadId = ReadId(0);

/// A fetch, the frames of its blocks, and later its bytes.
type Fetched = (Fetch, Vec<Frame>, io::Result<Vec<u8>>);

struct Driver {
    engine: Engine,
    /// Where frame n lies: `block * n ..`.
    memory: Vec<u8>,
    block: usize,
    bytes: u64,
    previous: Option<Block>,
    plain_hits: u64,
    started: Instant,
    fetches: Sender<(Fetch, Vec<Frame>)>,
    fetched: Receiver<Fetched>,
}

impl Driver {
    fn open(path: &str, memory: u64, profile: Profile) -> Result<Self, Box<dyn error::Error>> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        let engine = Engine::new(preset::default().settings(Bytes(memory))?)?;
        let block = engine.settings().block_bytes as usize;
        let (fetches, to_do) = channel::<(Fetch, Vec<Frame>)>();
        let (done, fetched) = channel();
        thread::spawn(move || {
            for (fetch, frames) in to_do {
                let mut data = vec![0; frames.len() * block];
                let at = u64::from(fetch.extent.first.0) * block as u64;
                let end = data.len().min((bytes - at) as usize);
                let result = file.read_exact_at(&mut data[..end], at).map(|()| data);
                if done.send((fetch, frames, result)).is_err() {
                    return;
                }
            }
        });
        let mut driver = Self {
            memory: vec![0; engine.table().frames() as usize * block],
            engine,
            block,
            bytes,
            previous: None,
            plain_hits: 0,
            started: Instant::now(),
            fetches,
            fetched,
        };
        let (placement, device) = (Placement::linear(DEVICE, Bytes(0)), DEVICE);
        driver.handle(Input::Device { device, profile });
        driver.handle(Input::File {
            file: FILE,
            placement,
            bytes: Bytes(bytes),
        });
        driver.handle(Input::Open {
            reader: READER,
            file: FILE,
        });
        Ok(driver)
    }

    /// Hands in one input and carries out the outputs; the answer to the read, if it came.
    fn handle(&mut self, input: Input) -> Option<Served> {
        let now = Nanos(self.started.elapsed().as_nanos() as u64);
        self.engine.handle(now, input);
        let mut answer = None;
        while let Some(output) = self.engine.poll() {
            match output {
                Output::Fetch(fetch) => {
                    let frame = |block| self.engine.table().find(FILE, block).map(|f| f.frame);
                    let frames = fetch.extent.blocks().filter_map(frame).collect();
                    // The thread lives as long as this end of the channel.
                    let _ = self.fetches.send((fetch, frames));
                }
                Output::Serve { served, .. } => answer = Some(served),
                // Folders are not listed here, so no file is opened ahead.
                // Reads of memory never hang.
                Output::Cancel { .. } | Output::OpenAhead { .. } | Output::CloseAhead { .. } => {}
            }
        }
        answer
    }

    /// Copies the bytes of a fetch into its frames and tells the engine how the fetch ended.
    fn complete(&mut self, (fetch, frames, result): Fetched) -> Option<Served> {
        let outcome = match result {
            Ok(data) => {
                for (frame, bytes) in frames.iter().zip(data.chunks(self.block)) {
                    let at = frame.0 as usize * self.block;
                    self.memory[at..at + self.block].copy_from_slice(bytes);
                }
                FetchOutcome::Done
            }
            Err(e) => FetchOutcome::Failed {
                error: ErrorCode(e.raw_os_error().unwrap_or(5)),
            },
        };
        self.handle(Input::Completed {
            request: fetch.request,
            outcome,
        })
    }

    /// As `pread`: fewer bytes than asked for at the end of the file and beyond `READ_MAX` blocks.
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let block = self.block as u64;
        let begin = offset / block;
        let end = (offset + buffer.len() as u64).min(self.bytes);
        let end = end.min((begin + u64::from(Engine::READ_MAX)) * block);
        let (mut at, stop, before) = (begin, end.div_ceil(block), self.previous);
        let mut fresh = true;
        while at < stop {
            // Hit path: blocks that are there are taken without the engine.
            while let Some(frame) = self.plain_hit(at).filter(|_| at < stop) {
                self.take(frame, at, buffer, offset, end);
                self.plain_hits += u64::from(fresh);
                at += 1;
            }
            if at == stop {
                break;
            }
            // Engine path: the first block is missing, in flight, or carries the lookahead mark.
            let (head, count) = ((at - begin) as u32, (stop - at) as u32);
            let access = Access::new(Block(at as u32), count)
                .with_head(head)
                .with_previous(before);
            let wants = Wants::Blocks;
            let input = Input::Read {
                read: READ,
                reader: READER,
                access,
                fresh,
                wants,
            };
            fresh = false;
            let mut answer = self.handle(input);
            let served = loop {
                match answer {
                    Some(served) => break served,
                    None => {
                        let fetched = self.fetched.recv().map_err(io::Error::other)?;
                        answer = self.complete(fetched);
                    }
                }
            };
            match served {
                Served::Blocks { count } => {
                    for number in at..at + u64::from(count) {
                        let found = self.engine.table().find(FILE, Block(number as u32));
                        let frame = found.ok_or(io::ErrorKind::Other)?.frame;
                        self.take(frame, number, buffer, offset, end);
                    }
                    at += u64::from(count);
                    self.handle(Input::Release { read: READ });
                }
                Served::Failed { error } if at == begin => {
                    return Err(io::Error::from_raw_os_error(error.0));
                }
                Served::Failed { .. } | Served::End => break,
            }
        }
        Ok((at * block).min(end).saturating_sub(offset) as usize)
    }

    /// The frame of a block whose read the engine need not see; its first one is reported.
    fn plain_hit(&mut self, number: u64) -> Option<Frame> {
        let (table, block) = (self.engine.table(), Block(u32::try_from(number).ok()?));
        let found = table
            .find(FILE, block)
            .filter(|_| !self.engine.sees_every_read())?;
        if found.flags & (flag::FILLING | flag::MARK | flag::VACANT) != 0 {
            return None;
        }
        let is_armed = found.flags & flag::ARMED != 0 && self.previous != Some(block);
        if is_armed && table.disarm(found.frame) {
            self.handle(Input::Touch {
                reader: READER,
                first: block,
                count: 1,
            });
        }
        Some(found.frame)
    }

    /// Copies the wanted part of a block, of the bytes `offset..end` of the file.
    fn take(&mut self, frame: Frame, number: u64, buffer: &mut [u8], offset: u64, end: u64) {
        let first = number * self.block as u64;
        let (from, to) = (first.max(offset), (first + self.block as u64).min(end));
        let at = frame.0 as usize * self.block + (from - first) as usize;
        let length = (to - from) as usize;
        buffer[(from - offset) as usize..][..length].copy_from_slice(&self.memory[at..][..length]);
        self.previous = Some(Block(number as u32));
    }

    fn close(mut self) -> Ledger {
        self.handle(Input::Hits {
            reader: READER,
            blocks: self.plain_hits,
        });
        self.handle(Input::Close { reader: READER });
        self.engine.ledger()
    }
}

fn main() -> Result<(), Box<dyn error::Error>> {
    let path = env::args().nth(1);
    let path = path.map_or_else(|| env::current_exe().map(|p| p.display().to_string()), Ok)?;
    // A disk: 8 ms a switch, 100 MB/s.
    let disk = Profile::constant(Nanos(8_000_000), 100_000_000)?;
    let mut driver = Driver::open(&path, 16 << 20, disk)?;
    let (mut buffer, mut offset) = (vec![0; 64 << 10], 0);
    while let read @ 1.. = driver.read_at(&mut buffer, offset)? {
        offset += read as u64;
    }
    println!("{offset} bytes of {path}\n{:#?}", driver.close());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_right_and_most_blocks_are_fetched_ahead() {
        let bytes: Vec<u8> = (0..3_000_001_u32).map(|n| (n / 7 % 251) as u8).collect();
        let path = env::temp_dir().join(format!("forerun-driver-{}", std::process::id()));
        std::fs::write(&path, &bytes).unwrap();
        let disk = Profile::constant(Nanos(8_000_000), 100_000_000).unwrap();
        // A fifth of the file fits.
        let mut driver = Driver::open(path.to_str().unwrap(), 600_000, disk).unwrap();
        std::fs::remove_file(&path).unwrap();
        let mut buffer = vec![0; 10_000];
        for offset in (0..bytes.len())
            .step_by(10_000)
            .chain([2_999_999, 5, 1_500_000])
        {
            let read = driver.read_at(&mut buffer, offset as u64).unwrap();
            let rest = bytes.len() - offset;
            assert_eq!(
                buffer[..read],
                bytes[offset..][..rest.min(10_000)],
                "at {offset}"
            );
        }
        assert_eq!(
            driver.read_at(&mut buffer, 3_000_001).unwrap(),
            0,
            "the end of the file"
        );
        let ledger = driver.close();
        assert_eq!(ledger.reads, ledger.hits + ledger.late_hits + ledger.misses);
        assert!(ledger.used > 600, "of 733 blocks: {ledger:?}");
    }
}
