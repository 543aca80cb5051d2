//! Methods of one's own: a depth, a reclaim, a layout and a device that forerun does not have.
//!
//! A method is a `static` of type `Method`: its description, and how it is built from its parameters.
//! [`Choice::of`] puts it into the settings of an engine, where it is as good as a built-in one.
//! A device is a type that implements `Device`; a scene takes any.
//!
//! `cargo run` reads eight files with eight readers, on two tapes, with built-in methods and with
//! these. `cargo test` runs forerun's conformance suites over them.

mod depth;
mod device;
mod layout;
mod reclaim;

use std::error::Error;

use forerun_core::spec::Choice;
use forerun_core::{Bytes, Settings};
use forerun_sim::world::Striping;
use forerun_sim::{Report, Scene, workload};

use device::Tape;

const TAPES: usize = 2;

/// Eight readers of 64 MiB each, all of it in order, with memory for a sixteenth.
fn run(settings: Settings, striping: Option<Striping>) -> Result<Report, Box<dyn Error>> {
    let load = workload::parse("many-readers(readers=8,file_bytes=67108864,read_bytes=65536)")?;
    let mut scene = Scene::new(settings, Tape::default(), &*load);
    scene
        .devices
        .resize_with(TAPES, || Box::new(Tape::default()));
    scene.striping = striping;
    Ok(scene.run(&mut ())?)
}

fn built_in() -> Result<Settings, Box<dyn Error>> {
    Ok(forerun_baselines::preset("linux-2.6.24")?.settings(Bytes(32 << 20))?)
}

fn own() -> Result<(Settings, Striping), Box<dyn Error>> {
    let mut settings = built_in()?;
    settings.depth = Choice::of(&depth::SEEK_SHARE).with("percent", 10)?;
    settings.reclaim = Choice::of(&reclaim::S3_FIFO);
    let striping = Striping {
        layout: Choice::of(&layout::ZIGZAG),
        fragments: None,
    };
    Ok((settings, striping))
}

fn main() -> Result<(), Box<dyn Error>> {
    let (settings, striping) = own()?;
    println!("depth={} reclaim={}", settings.depth, settings.reclaim);
    for (name, report) in [
        ("built-in methods", run(built_in()?, None)?),
        ("own methods", run(settings, Some(striping))?),
    ] {
        let seconds = report.elapsed.0 as f64 / 1e9;
        let requests: u64 = report.devices.iter().map(|one| one.usage.requests).sum();
        println!("{name:16} {seconds:8.1} s {requests:8} requests");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use forerun_core::conformance;
    use forerun_core::spec::Method;

    const SEEDS: u64 = 20;

    /// A method with each of its parameters at its default, smallest and largest value.
    fn each<B>(method: &'static Method<B>, check: impl Fn(&dyn Fn() -> B, u64)) {
        for values in conformance::corners(&method.spec) {
            for seed in 0..SEEDS {
                check(&|| method.of(&values), seed);
            }
        }
    }

    #[test]
    fn the_methods_keep_the_rules_of_their_families() {
        each(&depth::SEEK_SHARE, |make, seed| {
            conformance::depth(make, seed, &[]).unwrap();
        });
        each(&reclaim::S3_FIFO, |make, seed| {
            conformance::reclaim(make, seed).unwrap();
        });
        each(&layout::ZIGZAG, |make, seed| {
            conformance::layout(make, seed, &[]).unwrap();
        });
    }

    #[test]
    fn the_device_keeps_the_rules_of_devices() {
        for seed in 0..SEEDS {
            forerun_sim::conformance::device(&|| Box::new(Tape::default()), seed).unwrap();
        }
    }

    #[test]
    fn a_run_with_own_methods_adds_up_and_switches_less() {
        let before = run(built_in().unwrap(), None).unwrap();
        let (settings, striping) = own().unwrap();
        let after = run(settings, Some(striping)).unwrap();
        assert_eq!(before.bytes, after.bytes);
        assert!(
            after.elapsed < before.elapsed,
            "{:?} {:?}",
            before.elapsed,
            after.elapsed
        );
    }
}
