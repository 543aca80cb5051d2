//! Files on arrays of the user: every byte is right whatever the layout, and every disk takes part.

use forerun_core::layout::LIST;
use forerun_core::spec::Choice;
use forerun_core::{Bytes, Nanos, preset};
use forerun_emulated::Emulation;
use forerun_io::{Config, Driver, Striping, generated};

const FILE_BYTES: u64 = 6_000_000;

/// Disks that cost next to nothing.
const QUICK: (Nanos, u64) = (Nanos(1_000), 10_000_000_000);

fn driver(name: &str, striping: Striping) -> Driver {
    let preset = forerun_baselines::preset(name).unwrap();
    let mut config = Config::new(preset.settings(Bytes(4 << 20)).unwrap());
    let device = Emulation::new(QUICK.0, QUICK.1, 1).unwrap();
    config.lab.emulate = Some(Box::new(device));
    config.lab.striping = Some(striping);
    Driver::new(config).unwrap()
}

fn array(level: &str, strip: u64, disks: u16) -> Striping {
    let layout = Choice::parse("layout", LIST, level).unwrap();
    let layout = layout.with("strip_bytes", strip).unwrap();
    Striping { layout, disks }
}

/// Two readers at once, each of a file of its own, in reads that fit no strip.
fn read_two(driver: &Driver) {
    std::thread::scope(|scope| {
        for index in 0..2 {
            scope.spawn(move || {
                let reader = driver.open_generated(7, index, FILE_BYTES).unwrap();
                let (mut buffer, mut offset) = (vec![0; 50_000], 0);
                loop {
                    let n = reader.read_at(&mut buffer, offset).unwrap();
                    if n == 0 {
                        break;
                    }
                    assert_eq!(generated::check(7, index, offset, &buffer[..n]), Ok(()));
                    offset += n as u64;
                }
                assert_eq!(offset, FILE_BYTES);
            });
        }
    });
}

#[test]
fn every_byte_is_right_on_every_layout_with_every_shape_and_all_disks_take_part() {
    for level in ["raid0", "raid10", "raid5", "raid6"] {
        for (strip, disks) in [(4 << 10, 2), (64 << 10, 4), (256 << 10, 6)] {
            let striping = array(level, strip, disks);
            let accepts = striping.layout.build().accepts(disks.into());
            if !accepts {
                continue;
            }
            for preset in ["forerun", "seqp", "saseqp", "msp+seqp", "msp+saseqp"] {
                let driver = driver(preset, striping.clone());
                read_two(&driver);
                let queues = driver.queues();
                let used = queues
                    .iter()
                    .filter(|(_, view)| view.confidence.samples > 0);
                // Those that are told measure nothing.
                let used = if preset == "forerun" {
                    used.count()
                } else {
                    queues.len()
                };
                let needed = usize::from(disks) / if level == "raid10" { 2 } else { 1 };
                assert!(used >= needed, "{preset}, {level} of {disks}: {used} disks");
                driver.finish().unwrap().check().unwrap();
            }
        }
    }
}

#[test]
fn an_array_that_cuts_blocks_or_has_too_few_disks_is_refused() {
    for (level, strip, disks) in [
        ("raid0", 6000, 4),
        ("raid10", 65536, 3),
        ("raid6", 65536, 2),
    ] {
        let striping = array(level, strip, disks);
        let mut config = Config::new(preset::default().settings(Bytes(4 << 20)).unwrap());
        config.lab.striping = Some(striping);
        let error = Driver::new(config).err().map(|error| error.to_string());
        let error = error.unwrap_or_default();
        assert!(
            error.contains(level) && error.contains(&disks.to_string()),
            "{error:?}"
        );
    }
}
