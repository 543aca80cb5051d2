//! A reader that leaves is no failure: fetches that were queued for it are *cancelled* in the ledger.

use forerun_core::{Bytes, Nanos, preset};
use forerun_emulated::Emulation;
use forerun_io::{BackendChoice, Config, Driver, generated};

const PIECE: usize = 64 << 10;
const BYTES: u64 = 64 << 20;
const SEED: u64 = 3;
const FILES: u64 = 16;
const ROUNDS: u64 = 6;

/// Reads files side by side and closes them, again and again, until a fetch was cancelled. The device
/// has two requests at a time, so the windows of most files are still queued then.
#[test]
fn fetches_of_a_closed_file_count_as_cancelled_and_not_as_failed() {
    let preset = preset::find("forerun").unwrap();
    let driver = Driver::new({
        let mut config = Config::new(preset.settings(Bytes(64 << 20)).unwrap());
        config.backend = BackendChoice::named("memory").unwrap();
        config.lab.emulate = Some(Box::new(
            Emulation::new(Nanos(4_000_000), 100_000_000, 1).unwrap(),
        ));
        config
    })
    .unwrap();
    let mut buffer = vec![0; PIECE];
    let mut read = |file: u64, piece: u64, reader: &forerun_io::Reader| {
        let offset = piece * PIECE as u64;
        assert_eq!(reader.read_at(&mut buffer, offset).unwrap(), PIECE);
        generated::check(SEED, file, offset, &buffer).unwrap();
    };
    for first in 0..10 {
        let files = first * FILES..(first + 1) * FILES;
        let open = |file| driver.open_generated(SEED, file, BYTES).unwrap();
        let readers: Vec<_> = files.clone().map(open).collect();
        for piece in 0..ROUNDS {
            for (file, reader) in files.clone().zip(&readers) {
                read(file, piece, reader);
            }
        }
        drop(readers);
        // Opened again at once: a read that joins a cancelled fetch is fetched anew.
        let again = open(files.end - 1);
        read(files.end - 1, ROUNDS, &again);
        drop(again);
        if driver.ledger().cancelled > 0 {
            break;
        }
    }
    let ledger = driver.finish().unwrap();
    ledger.check().unwrap();
    assert!(ledger.cancelled > 0, "{ledger:?}");
    assert_eq!((ledger.failed, ledger.demand_failed), (0, 0), "{ledger:?}");
}
