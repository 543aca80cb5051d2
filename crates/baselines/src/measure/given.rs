//! Given: costs as the profile states them.
//!
//! For devices whose profile was measured with care and does not change, and for comparing methods:
//! all see the same costs. A device without a profile has the costs of [`Profile::default`].

use alloc::boxed::Box;

use forerun_core::measure::{Confidence, Measure, Sample};
use forerun_core::profile::Profile;
use forerun_core::spec::{Knows, Method, Spec};
use forerun_core::{Bytes, Nanos};

/// The costs of the profile alone: also the choice of `--profile-fixed`.
pub const METHOD: Method<Box<dyn Measure>> = Method {
    spec: Spec {
        name: "given",
        summary: "the profile's figures, unchanged",
        source: "li04 section 3.1",
        unfit: "devices without a measured profile, or that change",
        knows: Knows::Online,
        params: &[],
    },
    build: |_| Box::new(Given::default()),
};

#[derive(Debug, Default)]
struct Given {
    profile: Profile,
}

impl Measure for Given {
    fn told(&mut self, profile: &Profile) {
        self.profile = profile.clone();
    }

    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn limit(&self) -> u32 {
        self.profile.queue_max()
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
