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

use crate::layout::LayoutMap;
use crate::layout::map::Strip;
use crate::spec::Method;
use crate::units::Block;

/// The shape methods. One entry a method.
pub static LIST: &[Method<Box<dyn Shape>>] = &[cost::METHOD];

/// A window to be shaped, on the layout of its file.
#[derive(Clone, Copy, Debug)]
pub struct StripedWindow<'a> {
    /// First block of the window.
    pub start: Block,
    /// The block behind its last one, as it was decided.
    pub end: u64,
    /// Behind the blocks of it that are asked for now; not behind `end`.
    pub wanted: u64,
    /// Behind the last block that file and memory allow; not before `end`.
    pub room: u64,
    /// Where the blocks of the file lie.
    pub layout: &'a LayoutMap,
}

impl StripedWindow<'_> {
    /// Where the strips of the window end, up to a block: each with its strip.
    pub fn strips(&self, end: u64) -> impl Iterator<Item = (Strip, u64)> + '_ {
        let mut at = u64::from(self.start.0);
        core::iter::from_fn(move || {
            let block = u32::try_from(at).ok().filter(|_| at < end)?;
            let strip = self.layout.strip(Block(block))?;
            at += u64::from(strip.left);
            Some((strip, at))
        })
    }
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
/// use forerun_core::shape::{Shape, StripedWindow};
///
/// #[derive(Debug)]
/// struct Unchanged;
///
/// impl Shape for Unchanged {
///     fn end(&mut self, window: &StripedWindow<'_>) -> u64 {
///         window.end
///     }
/// }
/// ```
pub trait Shape: core::fmt::Debug + Send {
    /// The block behind the last one to fetch.
    ///
    /// - It MUST lie behind the start and not behind [`StripedWindow::room`].
    /// - Where there are no strips it MUST be [`StripedWindow::end`].
    /// - Before that, it MUST be the end of a strip, and not before [`StripedWindow::wanted`].
    /// - Behind that, it MUST be the end of a stripe, or as far as the room or the run of the array
    ///   goes.
    /// - Equal histories MUST give equal answers, and of them no more is kept than a few words an
    ///   array.
    fn end(&mut self, window: &StripedWindow<'_>) -> u64;
}
