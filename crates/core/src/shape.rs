//! Shape: where a window ends on a striped array.
//!
//! The stage between detect and layout. Detector, depth and memory know a file as one run of
//! blocks; on an array it lies in *strips*, one device each, of which a *stripe* has one for each
//! device with data:
//!
//! ```text
//! device      0      1      2      3
//! stripe 0  |0...  |4...  |8...  |12.. |     a window 2..6 occupies two devices for the work of one:
//! stripe 1  |16..  |20..  |24..  |28.. |     independency loss; one of 4 blocks leaves three idle:
//!                                            parallelism loss
//! ```
//!
//! Against the first, a window is cut at the end of a strip; against the second, it is widened to
//! whole stripes (Baek and Park 2009). A method says where the window ends, and nothing besides:
//! ramp, mark and memory stay those of the stages before. It knows strips by number, neither
//! devices nor readers.

pub mod cost;

use alloc::boxed::Box;

use crate::spec::Method;
use crate::units::{Block, DeviceId};

/// The shape methods. One entry a method.
pub static LIST: &[Method<Box<dyn Shape>>] = &[cost::METHOD];

/// The strip in which a block lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Strip {
    /// Its number in the array.
    pub number: u64,
    /// Blocks of the file from that block on which lie in it in one run; at least 1.
    pub left: u32,
    /// The same of its stripe; at least `left`.
    pub left_of_stripe: u32,
    /// Blocks of a stripe.
    pub stripe: u32,
}

/// A window to be shaped, and where its blocks lie.
///
/// # Examples
/// A window of blocks 8 to 39 of a file without strips.
///
/// ```
/// use forerun_core::shape::{Strip, Strips};
/// use forerun_core::{Block, DeviceId};
///
/// struct Plain;
///
/// impl Strips for Plain {
///     fn start(&self) -> Block {
///         Block(8)
///     }
///     fn end(&self) -> u64 {
///         40
///     }
///     fn wanted(&self) -> u64 {
///         12
///     }
///     fn room(&self) -> u64 {
///         100
///     }
///     fn array(&self) -> DeviceId {
///         DeviceId(0)
///     }
///     fn spread(&self) -> u32 {
///         1
///     }
///     fn strip(&self, _: Block) -> Option<Strip> {
///         None
///     }
/// }
/// ```
pub trait Strips {
    /// First block of the window.
    fn start(&self) -> Block;
    /// The block behind its last one, as it was decided.
    fn end(&self) -> u64;
    /// Behind the blocks of it that are asked for now; not behind `end`.
    fn wanted(&self) -> u64;
    /// Behind the last block that file and memory allow; not before `end`.
    fn room(&self) -> u64;
    /// Which array it lies on: the first of its devices.
    fn array(&self) -> DeviceId;
    /// Over how many devices a long window is spread.
    fn spread(&self) -> u32;
    /// The strip of a block; none where there are no strips.
    fn strip(&self, block: Block) -> Option<Strip>;
}

/// Ends windows. The rules are checked by the suite `conformance` over every entry of [`LIST`].
///
/// The engine asks for each window that goes forward without gaps, in the order in which they are
/// opened, and tells the detector where it ends now.
///
/// # Examples
/// Windows as they were decided.
///
/// ```
/// use forerun_core::shape::{Shape, Strips};
///
/// #[derive(Debug)]
/// struct Unchanged;
///
/// impl Shape for Unchanged {
///     fn end(&mut self, window: &dyn Strips) -> u64 {
///         window.end()
///     }
/// }
/// ```
pub trait Shape: core::fmt::Debug + Send {
    /// The block behind the last one to fetch.
    ///
    /// - It MUST lie behind the start and not behind [`Strips::room`].
    /// - Where there are no strips it MUST be [`Strips::end`].
    /// - Before that, it MUST be the end of a strip, and not before [`Strips::wanted`].
    /// - Behind that, it MUST be the end of a stripe, or as far as the room or the run of the array
    ///   goes.
    /// - Equal histories MUST give equal answers, and of them no more is kept than a few words an
    ///   array.
    fn end(&mut self, window: &dyn Strips) -> u64;
}

/// Where the strips of a window end, up to a block: each with its strip.
pub fn strips(window: &dyn Strips, end: u64) -> impl Iterator<Item = (Strip, u64)> + '_ {
    let mut at = u64::from(window.start().0);
    core::iter::from_fn(move || {
        let block = u32::try_from(at).ok().filter(|_| at < end)?;
        let strip = window.strip(Block(block))?;
        at += u64::from(strip.left.max(1));
        Some((strip, at))
    })
}
