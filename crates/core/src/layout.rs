//! Layout: which device holds a block of a file, and where on it.
//!
//! The stage between window and fetch. A window is a run of blocks of a file; a device takes
//! requests for runs of bytes of its own. In between stand two maps: the *extents* of a file say at
//! which address of which array its bytes are, the *layout* of an array says which member has an
//! address, *piece* by piece: a piece is a run of the file that one device holds in one run.
//!
//! ```text
//! raid0, strips of 16 blocks, 2 members        member 0   member 1
//!   array  0..16  16..32  32..48  48..64         0..16     16..32     a window 8..40 of a file at 0 is
//!         m 0     m 1     m 0     m 1           32..48     48..64     8..16, 16..32, 32..40
//! ```
//!
//! The first and the last piece follow each other on member 0: the device goes from one to the
//! other without a switch. A *strip* is such a piece of the array, a *stripe* one strip of each
//! member that has data; see [`shape`](crate::shape).
//!
//! A layout knows members by their index; the array says which device each is, and where on it its
//! part begins. It knows neither blocks nor requests.

pub mod linear;
pub mod map;
mod parity;
pub mod raid0;
pub mod raid10;
pub mod raid5;
pub mod raid6;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::spec::{Choice, Method};
use crate::units::{Bytes, DeviceId};
pub use map::{LayoutMap, PlaceOnDevice};

/// The layouts. One entry a method.
pub static LIST: &[Method<Box<dyn Layout>>] = &[
    linear::METHOD,
    raid0::METHOD,
    raid10::METHOD,
    raid5::METHOD,
    raid6::METHOD,
];

/// Where a byte of an array lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// On which member; copies of it on as many behind that.
    pub member: usize,
    /// How far behind the beginning of the array's part of that member, in bytes.
    pub offset: u64,
    /// How many bytes of the array, this one included, lie there in one run.
    pub bytes: u64,
}

/// Maps the bytes of an array to members.
///
/// # Examples
/// Members one behind the other, each with 1 GiB: a byte at 1.5 GiB is in the middle of the second.
///
/// ```
/// use forerun_core::layout::{Layout, Piece};
///
/// const MEMBER: u64 = 1 << 30;
///
/// #[derive(Debug)]
/// struct Concatenated;
///
/// impl Layout for Concatenated {
///     fn piece(&self, offset: u64, members: usize) -> Piece {
///         // The last member has no end.
///         let last = members.saturating_sub(1);
///         let member = usize::try_from(offset / MEMBER).map_or(last, |at| at.min(last));
///         let within = offset - member as u64 * MEMBER;
///         let bytes = match member == last {
///             true => u64::MAX - offset.min(u64::MAX - 1),
///             false => MEMBER - within,
///         };
///         Piece { member, offset: within, bytes }
///     }
///     fn unit(&self) -> u64 {
///         1
///     }
///     fn accepts(&self, members: usize) -> bool {
///         members >= 1
///     }
/// }
///
/// let piece = Concatenated.piece(3 << 29, 4);
/// assert_eq!((piece.member, piece.offset), (1, 1 << 29));
/// ```
pub trait Layout: core::fmt::Debug + Send {
    /// Where the byte at this address of the array lies, of so many members.
    ///
    /// MUST name one of the members and a run of at least one byte, and MUST be a function of its
    /// arguments. Different bytes MUST lie at different places, and the bytes of one run one behind
    /// the other. Any offset and any number of members, none included, MUST be answered.
    fn piece(&self, offset: u64, members: usize) -> Piece;

    /// The strip, in bytes: every piece begins and ends at a multiple of this; it MUST be at least
    /// 1, which means that there are no strips. The engine refuses files whose blocks it would cut.
    fn unit(&self) -> u64;

    /// How many members each byte lies on, in the same place: that of [`Piece::member`] and those
    /// behind it. MUST be at least 1, and each of them MUST be one of the members it
    /// [accepts](Layout::accepts).
    fn copies(&self) -> usize {
        1
    }

    /// How many strips a stripe has, of so many members; MUST be at least 1.
    fn data_members(&self, members: usize) -> usize {
        (members / self.copies()).max(1)
    }

    /// Whether it can be made of so many members.
    fn accepts(&self, members: usize) -> bool;
}

/// How a file lies: extents on arrays. Seek distances are computed from these places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placement {
    /// The arrays, at least one and at most 2^16.
    pub arrays: Vec<Array>,
    /// In the order of the file, the first at its beginning; none, if the file lies in one run from
    /// address 0 of the first array on. At most [`map::EXTENTS_MAX`].
    pub extents: Vec<MappedExtent>,
}

/// A layout, and for each member its device and where on that the array's part begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Array {
    /// The layout.
    pub layout: Choice<Box<dyn Layout>>,
    /// Its members, as many as the layout accepts.
    pub members: Vec<(DeviceId, Bytes)>,
}

/// A run of a file that lies in one run of an array. It lasts until the next begins: of holes no
/// more is known than that nothing has to be fetched for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MappedExtent {
    /// Where in the file it begins; a multiple of the block.
    pub offset: Bytes,
    /// On which of the arrays it lies.
    pub array: u16,
    /// At which address of that; a multiple of the block.
    pub at: Bytes,
}

impl Placement {
    /// One device holds the whole file, one byte behind the other.
    #[must_use]
    pub fn linear(device: DeviceId, location: Bytes) -> Self {
        Self::on(Array {
            layout: Choice::of(&linear::METHOD),
            members: [(device, location)].into(),
        })
    }

    /// The devices hold strips of so many bytes by turns, each from `location` on.
    ///
    /// # Errors
    /// A strip out of the range of [`raid0`].
    pub fn raid0(
        strip: Bytes,
        devices: impl IntoIterator<Item = DeviceId>,
        location: Bytes,
    ) -> Result<Self, crate::spec::ChoiceError> {
        let members = devices.into_iter().map(|device| (device, location));
        Ok(Self::on(Array {
            layout: Choice::of(&raid0::METHOD).with("strip_bytes", strip.0)?,
            members: members.collect(),
        }))
    }

    /// The file begins where the array does.
    #[must_use]
    pub fn on(array: Array) -> Self {
        Self {
            arrays: [array].into(),
            extents: Vec::new(),
        }
    }
}
