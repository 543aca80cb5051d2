//! The depth of the stack does not depend on how many requests are deferred.
//!
//! 10,000 reads are deferred at a device that works on one request at a time; then the device is
//! described again, as one that takes everything at once. As many of them as there are frames are decided in that one
//! call, on a thread with 64 KiB of stack: 16 bytes a frame, so no call may be nested a read.

use forerun_baselines::METHODS;
use forerun_core::{
    Block, Bytes, DeviceId, Engine, FetchOutcome, FileId, Input, Nanos, Output, Placement, Profile,
    ReadId, ReaderId, RequestId,
    detect::Access,
    protocol::{Served, Wants},
    spec::Choice,
};

const READS: u32 = 10_000;
const STACK: usize = 64 << 10;

/// A driver that answers everything at once and counts.
struct Driver {
    engine: Engine,
    fetches: Vec<RequestId>,
    answered: u32,
}

impl Driver {
    fn input(&mut self, input: Input) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            self.engine.handle(Nanos(0), input);
            while let Some(output) = self.engine.poll() {
                match output {
                    Output::Fetch(fetch) => self.fetches.push(fetch.request),
                    Output::Serve { read, served } => {
                        self.answered += 1;
                        if let Served::Blocks { .. } = served {
                            inputs.push(Input::Release { read });
                        }
                    }
                    Output::Cancel { .. }
                    | Output::OpenAhead { .. }
                    | Output::CloseAhead { .. } => {}
                }
            }
        }
    }

    fn device(&mut self, servers: u32) {
        let profile = Profile::constant(Nanos(8_000_000), 80_000_000).unwrap();
        let profile = profile.with_servers(servers).unwrap();
        let device = DeviceId(0);
        self.input(Input::Device { device, profile });
    }
}

fn describe_again(preset: &str) {
    let settings = forerun_baselines::preset(preset)
        .unwrap()
        .settings(Bytes(16 << 20));
    let mut settings = settings.unwrap();
    settings.measure = Choice::parse("measure", METHODS.measure, "given").unwrap();
    settings.in_flight_max = 1 << 16;
    let mut driver = Driver {
        engine: Engine::new(settings).unwrap(),
        fetches: Vec::new(),
        answered: 0,
    };
    driver.device(1);
    let (file, reader) = (FileId(0), ReaderId(0));
    driver.input(Input::File {
        file,
        placement: Placement::linear(DeviceId(0), Bytes(0)),
        bytes: Bytes(1 << 40),
    });
    driver.input(Input::Open { reader, file });
    for read in 0..READS {
        driver.input(Input::Read {
            read: ReadId(read),
            reader,
            access: Access::new(Block(1_000 * read + 1), 1),
            fresh: true,
            wants: Wants::Blocks,
        });
    }
    assert!(driver.engine.devices()[0].queued > READS as usize - 8);
    driver.device(1024);
    let with_frames = driver.engine.table().frames() as usize;
    let queued = driver.engine.devices()[0].queued;
    assert!(queued < with_frames, "{queued} deferred or with a frame");
    while let Some(request) = driver.fetches.pop() {
        let outcome = FetchOutcome::Done;
        driver.input(Input::Completed { request, outcome });
    }
    assert_eq!(driver.answered, READS, "every read is answered");
    driver.engine.ledger().check().unwrap();
}

#[test]
fn a_device_is_described_again_with_10_000_deferred_reads_on_a_small_stack() {
    for preset in ["forerun", "mount"] {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let run = thread.spawn(move || describe_again(preset)).unwrap();
        run.join().unwrap();
    }
}
