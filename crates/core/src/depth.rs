//! Depth: how far to fetch ahead, in bytes, for this stream on this device.
//!
//! Asked by the engine whenever a detector may open a window. One method serves all streams: a question is a
//! function of the facts and changes nothing. It knows nothing of memory; the engine cuts to a stream's share.
//!
//! **Bounds** of device time over the optimum's, which knows where runs end: of the rule by its closed form, and of the
//! engine as an adversary finds them (`adversary.rs` of the simulator's tests), in reads of 4 KiB to 64 KiB:
//!
//! ```text
//!                                              competitive   growing    preset forerun
//! rule, runs of any length                     2             2.043      2.043
//! files of their own, to any part (to the end) 3.56 (2.49)   the same   2.84 (1.97)
//! files that one process reads in turn         4.90          4.90       3.36
//! 2 to 8 streams in turn on one open file      no bound      no bound   2.82
//! ```
//!
//! **No rule that fetches nothing ahead at a first read is below 2.618.** Let a switch and the transfer in its time be 1,
//! and T_k - 1 the length of the first k windows, T_0 = 1. A stream that ends right behind the begin of window k has cost
//! T_k + k, and the optimum T_(k-1). So T_k <= r T_(k-1) - k, that is
//!
//! ```text
//! T_k <= A r^k + k / (r - 1) + r / (r - 1)^2     with A = 1 - r / (r - 1)^2
//! ```
//!
//! With A < 0 that falls below 0, which no length is; A >= 0 is (r - 1)^2 >= r, r >= (3 + 5^0.5) / 2 = 2.618.

pub mod growing;

use alloc::boxed::Box;

use crate::profile::Profile;
use crate::spec::Method;
use crate::units::Bytes;

/// The depth methods. One entry a method.
pub static LIST: &[Method<Box<dyn Depth>>] = &[growing::METHOD];

/// State of a stream when its next window is sized.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct StreamFacts {
    /// Bytes its reader asks for now, and surely takes.
    pub asked: Bytes,
    /// Bytes the stream has consumed since it began.
    pub consumed: Bytes,
    /// Whether it has read its file forward from the first byte on.
    pub is_from_begin: bool,
    /// Bytes fetched, or on the way, that its reader has not come to.
    pub ahead: Bytes,
    /// Its last window.
    pub last_window: Bytes,
    /// Whether its reader had to wait since that window was decided.
    pub waited: bool,
    /// Where on the device the next window begins.
    pub location: Bytes,
}

/// State of the device.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DeviceFacts<'a> {
    /// Its costs.
    pub profile: &'a Profile,
    /// Moving average of recent seek distances.
    pub distance: Bytes,
    /// Streams that have blocks ahead of their reader, this one included.
    pub streams: u32,
}

impl<'a> DeviceFacts<'a> {
    /// A device of these costs, whose seeks are that long, and which so many streams read.
    #[must_use]
    pub fn new(profile: &'a Profile, distance: Bytes, streams: u32) -> Self {
        Self {
            profile,
            distance,
            streams,
        }
    }

    /// The competitive depth there: its transfer during one switch.
    #[must_use]
    pub fn depth(&self, location: Bytes) -> Bytes {
        self.profile.competitive_depth(self.distance, location)
    }

    /// Requests that a server works on at once for each stream: at least 1, and 1 where their number is not
    /// known, or where it depends on the layout of files.
    #[must_use]
    pub fn servers_a_stream(&self) -> u32 {
        match self.profile.kind().any_worker() && self.profile.is_parallel() {
            true => (self.profile.servers() / self.streams.max(1)).max(1),
            false => 1,
        }
    }
}

/// Longest window of a stream that has consumed nothing: 1 GiB, or so many competitive depths where
/// that is more. A stream may end at once; then all of it is wasted.
pub const NEW_MAX: Bytes = Bytes(1 << 30);
/// See [`NEW_MAX`]: with 64 depths to a switch 1.5 % of the device's time goes to switching.
pub const NEW_DEPTHS_MAX: u64 = 64;

/// Limits windows. The rules are checked by the suite `conformance` over every entry of [`LIST`].
///
/// The engine asks for each window anew, once a stream is known, and guarantees that `asked` is at
/// least a block and that location and profile are of the device on which the window will lie. It
/// cuts the answer to the stream's share of memory and to the rest of the device's slice.
///
/// # Examples
/// A method of another crate: half the competitive depth.
///
/// ```
/// use forerun_core::depth::{Depth, DeviceFacts, StreamFacts};
/// use forerun_core::spec::{Choice, Knows, Method, Spec};
/// use forerun_core::{Bytes, Engine, preset};
///
/// #[derive(Debug)]
/// struct Half;
///
/// impl Depth for Half {
///     fn limit(&self, stream: &StreamFacts, device: &DeviceFacts<'_>) -> Bytes {
///         Bytes(device.depth(stream.location).0 / 2).max(stream.asked)
///     }
/// }
///
/// static HALF: Method<Box<dyn Depth>> = Method {
///     spec: Spec {
///         name: "half",
///         summary: "half of switching cost times transfer rate",
///         source: "example",
///         unfit: "long runs: two thirds of the time go to switching",
///         knows: Knows::Online,
///         params: &[],
///     },
///     build: |_| Box::new(Half),
/// };
///
/// let mut settings = preset::default().settings(Bytes(1 << 20))?;
/// settings.depth = Choice::of(&HALF);
/// let engine = Engine::new(settings)?;
/// assert_eq!(engine.settings().depth.to_string(), "half");
/// # Ok::<(), forerun_core::settings::SettingsError>(())
/// ```
pub trait Depth: core::fmt::Debug + Send {
    /// The longest window, in bytes. The engine rounds up to blocks.
    ///
    /// - It MUST depend on the arguments alone: one method serves all streams, in any order.
    /// - It MUST be at least `stream.asked`, so that a read never becomes several requests for the
    ///   method's sake. A constant limit is excepted (Linux's `read_ahead_kb` cuts longer reads).
    /// - It MUST NOT be zero.
    /// - It MUST be bounded. Of a stream that has consumed nothing: by [`NEW_MAX`], twice the asked bytes or
    ///   [`NEW_DEPTHS_MAX`] competitive depths, whichever is most. Later: by its limit for such a stream,
    ///   twice the asked bytes, the bytes consumed or the competitive depth, and of one that has read its file from the
    ///   first byte on by [`NEW_DEPTHS_MAX`] depths. A last window that is longer than these is no reason for another:
    ///   at most half of all bytes fetched are wasted, whenever a run within a file ends.
    fn limit(&self, stream: &StreamFacts, device: &DeviceFacts<'_>) -> Bytes;

    /// Whether the limit is one device's, and windows of files on several are as many times as long
    /// (Li et al. 2004, section 4). It MUST always be the same.
    fn is_for_each_device(&self) -> bool {
        true
    }
}
