//! Every device, bare and wrapped, meets the conformance suite.

use forerun_core::Nanos;
use forerun_sim::conformance;
use forerun_sim::device::scheduler;
use forerun_sim::device::{self, Device, LIST};
use forerun_sim::wrap::{Fault, Faults, Queued};

fn built(name: &str) -> Box<dyn Device> {
    device::parse(name).unwrap()
}

#[test]
fn every_device_conforms() {
    for method in LIST {
        for seed in 0..20 {
            let result = conformance::device(&|| built(method.spec.name), seed);
            assert_eq!(result, Ok(()), "{} seed {seed}", method.spec.name);
        }
    }
}

#[test]
fn every_device_conforms_inside_every_wrapper() {
    for method in LIST {
        for seed in 0..20 {
            let faults = Faults {
                seed,
                failed_per_mille: 100,
                short_per_mille: 100,
                delayed_per_mille: 300,
                delay_max: Nanos(50_000_000),
            };
            let name = method.spec.name;
            let fault = || Box::new(Fault::new(built(name), faults)) as Box<dyn Device>;
            assert_eq!(
                conformance::device(&fault, seed),
                Ok(()),
                "fault({name}) seed {seed}"
            );
        }
    }
}

#[test]
fn every_scheduler_conforms_in_front_of_a_disk_and_of_one_that_fails() {
    for method in scheduler::LIST {
        let behind = |inner: Box<dyn Device>| {
            let scheduler = scheduler::parse(method.spec.name).unwrap();
            Box::new(Queued::new(scheduler, inner)) as Box<dyn Device>
        };
        for seed in 0..20 {
            let faults = Faults {
                seed,
                failed_per_mille: 100,
                short_per_mille: 100,
                delayed_per_mille: 300,
                delay_max: Nanos(50_000_000),
            };
            let plain = || behind(built("hp97560"));
            let failing = || behind(Box::new(Fault::new(built("hp97560"), faults)));
            let name = method.spec.name;
            assert_eq!(conformance::device(&plain, seed), Ok(()), "{name} {seed}");
            assert_eq!(conformance::device(&failing, seed), Ok(()), "{name} {seed}");
        }
    }
}

#[test]
fn every_device_is_described() {
    for method in LIST {
        let spec = &method.spec;
        assert!(!spec.summary.is_empty() && !spec.source.is_empty() && !spec.unfit.is_empty());
        assert!(built(spec.name).servers() >= 1);
    }
}
