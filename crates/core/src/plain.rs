//! Plain methods for unit tests: windows of one length, costs as told.
//!
//! As those of Linux, which stand in a crate that depends on this one. Tests of single stages take
//! them so that growth, slices and estimates do not hide the stage.

use alloc::boxed::Box;

use crate::depth::{Depth, DeviceFacts, StreamFacts};
use crate::measure::{Confidence, Measure, Sample};
use crate::profile::Profile;
use crate::spec::{Choice, Knows, Method, Spec};
use crate::units::{Bytes, Nanos};
use crate::{Settings, preset};

const fn spec(name: &'static str) -> Spec {
    Spec {
        name,
        summary: "for tests",
        source: "tests",
        unfit: "anything else",
        knows: Knows::Online,
        params: &[],
    }
}

static FIXED: Method<Box<dyn Depth>> = Method {
    spec: spec("fixed"),
    build: |_| Box::new(Fixed),
};

static GIVEN: Method<Box<dyn Measure>> = Method {
    spec: spec("given"),
    build: |_| Box::new(Given::default()),
};

/// Half a mebibyte.
#[derive(Debug)]
struct Fixed;

impl Depth for Fixed {
    fn limit(&self, _: &StreamFacts, _: &DeviceFacts<'_>) -> Bytes {
        Bytes(512 << 10)
    }
}

/// The costs of the profile.
#[derive(Debug, Default)]
pub(crate) struct Given(Profile);

impl Measure for Given {
    fn told(&mut self, profile: &Profile) {
        self.0 = profile.clone();
    }

    fn profile(&self) -> &Profile {
        &self.0
    }

    fn limit(&self) -> u32 {
        self.0.queue_max()
    }

    fn expected(&self, _: Bytes, _: Bytes) -> Nanos {
        Nanos(0)
    }

    fn ended(&mut self, _: &Sample) {}

    fn lost(&mut self, _: u32) {}

    fn give_up(&mut self) {}

    fn confidence(&self) -> Confidence {
        Confidence::default()
    }
}

/// On-demand readahead with these.
pub(crate) fn settings(memory: Bytes) -> Settings {
    let settings = preset::default().settings(memory);
    let mut settings = settings.unwrap_or_else(|error| panic!("{error}"));
    settings.detect = Choice::of(&crate::detect::LIST[0]);
    settings.depth = Choice::of(&FIXED);
    settings.measure = Choice::of(&GIVEN);
    settings.hinted = None;
    settings.in_flight_max = 64;
    settings.unread_percent = 100;
    settings
}
