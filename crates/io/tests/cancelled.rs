//! A reader that leaves is no failure: fetches that were queued for it are *cancelled* in the ledger.

use forerun_core::spec::Choice;
use forerun_core::{Bytes, Nanos, measure, preset};
use forerun_io::{BackendChoice, Config, Driver, Emulation, generated};

const PIECE: usize = 64 << 10;
const BYTES: u64 = 64 << 20;
const SEED: u64 = 3;

/// Reads some pieces and closes the file, again and again, until a fetch was cancelled. Windows have
/// grown to megabytes by then, of which the device, slow as it is made here, has served a part.
#[test]
fn fetches_of_a_closed_file_count_as_cancelled_and_not_as_failed() {
    let preset = preset::find("forerun").unwrap();
    let mut settings = preset.settings(Bytes(64 << 20)).unwrap();
    // Two requests at a time, as such a device is given that is not measured: the others wait.
    settings.measure = Choice::of(&measure::given::METHOD.spec);
    let driver = Driver::new(Config {
        backend: BackendChoice::named("memory").unwrap(),
        emulate: Some(Emulation {
            switching: Nanos(1_000_000),
            bytes_per_second: 100_000_000,
            servers: 1,
        }),
        ..Config::new(settings)
    })
    .unwrap();
    let mut buffer = vec![0; PIECE];
    for file in 0..40 {
        let reader = driver.open_generated(SEED, file, BYTES).unwrap();
        for piece in 0..48 {
            let offset = piece * PIECE as u64;
            assert_eq!(reader.read_at(&mut buffer, offset).unwrap(), PIECE);
            generated::check(SEED, file, offset, &buffer).unwrap();
        }
        drop(reader);
        // Opened again at once: a read that joins a cancelled fetch is fetched anew.
        let again = driver.open_generated(SEED, file, BYTES).unwrap();
        let offset = 48 * PIECE as u64;
        assert_eq!(again.read_at(&mut buffer, offset).unwrap(), PIECE);
        generated::check(SEED, file, offset, &buffer).unwrap();
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
