//! Given: costs as the profile states them.
//!
//! For devices whose profile was measured with care and does not change, and for comparing methods:
//! all see the same costs. A device without a profile has the costs of [`Profile::default`].
//!
//! With `at_once` a device gets every request as it comes, however many it works on, and orders them itself: Linux
//! with the scheduler `none`. That of a server has no more than it may have at all.

use alloc::boxed::Box;

use forerun_core::measure::{Confidence, Measure, Sample};
use forerun_core::profile::Profile;
use forerun_core::spec::{Knows, Method, Param, Spec};
use forerun_core::{Bytes, Nanos};

/// The costs of the profile alone: also the choice of `--profile-fixed`.
pub const METHOD: Method<Box<dyn Measure>> = Method {
    spec: Spec {
        name: "given",
        summary: "the profile's figures, unchanged",
        source: "li04 section 3.1",
        unfit: "devices without a measured profile, or that change",
        knows: Knows::Online,
        params: &[Param {
            name: "at_once",
            summary: "1: the device gets all requests at once, however many it works on",
            default: 0,
            min: 0,
            max: 1,
        }],
    },
    build: |values| {
        Box::new(Given {
            profile: Profile::default(),
            at_once: values.get("at_once") == 1,
        })
    },
};

#[derive(Debug)]
struct Given {
    profile: Profile,
    at_once: bool,
}

impl Measure for Given {
    fn told(&mut self, profile: &Profile) {
        self.profile = profile.clone();
    }

    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn limit(&self) -> u32 {
        match self.at_once {
            true => u32::MAX,
            false => self.profile.queue_max(),
        }
    }

    fn expected(&self, distance: Bytes, bytes: Bytes) -> Nanos {
        let transfer =
            u128::from(bytes.0) * 1_000_000_000 / u128::from(self.profile.rate(Bytes(0)));
        let transfer = u64::try_from(transfer).unwrap_or(u64::MAX);
        Nanos(self.profile.switching(distance).0.saturating_add(transfer))
    }

    fn ended(&mut self, _sample: &Sample) {}

    fn lost(&mut self, _in_flight: u32) {}

    fn give_up(&mut self) {}

    fn confidence(&self) -> Confidence {
        Confidence::default()
    }
}
