//! Descriptions of devices: a user's TOML file, and names with parameters.
//!
//! Must hold: no panic; an accepted device serves its requests, in the order of time,
//! and not before the least time it names itself.

use forerun_core::{Bytes, Nanos};
use forerun_fuzz::fuzz;
use forerun_sim::device::needs::{Needs, Run};
use forerun_sim::device::{Device, Process, Request, from_toml, parse};
use forerun_sim::scheduled::behind;

fn main() {
    fuzz("model", |bytes| build(&String::from_utf8_lossy(bytes)));
}

fn build(text: &str) -> String {
    let refused = match behind(text, "cscan") {
        Ok(device) => {
            serve(device);
            None
        }
        Err(error) => Some(error.to_string()),
    };
    // Thousands of disks inside each other are accepted, and tell nothing new.
    if text.len() < 64
        && let Ok(device) = parse(text)
    {
        serve(device);
    }
    match from_toml(text) {
        Ok(model) => {
            serve(model.build());
            format!("{refused:?}")
        }
        Err(error) => error.to_string(),
    }
}

fn serve(mut device: Box<dyn Device>) {
    let room = device.capacity().map_or(1 << 40, |end| end.0).max(4096);
    let (mut runs, mut done) = (Vec::new(), Vec::new());
    for id in 0..16u64 {
        let at = Bytes((id * id * 7_919 * 4096) % room / 4096 * 4096);
        let bytes = Bytes(4096.min(room - at.0));
        runs.push(Run { at, bytes });
        device.submit(
            Nanos(0),
            Request {
                id,
                at,
                bytes,
                process: Process::default(),
            },
        );
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
