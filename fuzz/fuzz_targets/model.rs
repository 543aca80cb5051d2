//! Descriptions of devices: a user's TOML file, and names with parameters.
//!
//! Must hold: no panic; an accepted device serves its requests, in the order of time,
//! and not before the least time it names itself.

#![no_main]

use forerun_core::{Bytes, Nanos};
use forerun_sim::device::needs::{Needs, Run};
use forerun_sim::device::{Device, Request, from_toml, parse};
use forerun_sim::scheduled::behind;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(device) = behind(text, "cscan") {
        serve(device);
    }
    // Thousands of disks inside each other are accepted, and tell nothing new.
    if text.len() < 64
        && let Ok(device) = parse(text)
    {
        serve(device);
    }
    if let Ok(model) = from_toml(text) {
        serve(model.build());
    }
});

fn serve(mut device: Box<dyn Device>) {
    let room = device.capacity().map_or(1 << 40, |end| end.0).max(4096);
    let (mut runs, mut done) = (Vec::new(), Vec::new());
    for id in 0..16u64 {
        let at = Bytes((id * id * 7_919 * 4096) % room / 4096 * 4096);
        let bytes = Bytes(4096.min(room - at.0));
        runs.push(Run { at, bytes });
        device.submit(Nanos(0), Request { id, at, bytes });
    }
    let mut last = Nanos(0);
    while let Some(next) = device.next_event() {
        assert!(next >= last, "time runs backwards");
        last = next;
        device.advance(next, &mut done);
    }
    assert_eq!(done.len(), 16);
    let least = device.least(&Needs::new(runs, 1));
    assert!(last >= least, "{last} < {least}");
}
