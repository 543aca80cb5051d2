//! Layout: which device holds a block of a file, and where on it.
//!
//! The stage between window and fetch. A window is a run of blocks of a file; a device takes
//! requests for runs of bytes of its own. The layout of a file maps one to the other, *piece* by
//! piece: a piece is a run of the file that one device holds in one run.
//!
//! ```text
//! raid0, strips of 16 blocks, 2 members        member 0   member 1
//!   file  0..16  16..32  32..48  48..64          0..16     16..32     a window 8..40 is
//!         m 0    m 1     m 0     m 1            32..48     48..64     8..16, 16..32, 32..40
//! ```
//!
//! The first and the last piece follow each other on member 0: the device goes from one to the
//! other without a switch.
//!
//! A layout knows members by their index; the file says which device each is, and where on it its
//! part begins. It knows neither blocks nor requests.

pub mod linear;
pub mod raid0;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::spec::{Choice, Method};
use crate::units::{Bytes, DeviceId};

/// The layouts. One entry a method.
pub static LIST: &[Method<Box<dyn Layout>>] = &[linear::METHOD, raid0::METHOD];

/// Where a byte of a file lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// On which member.
    pub member: usize,
    /// How far behind the beginning of the file's part of that member, in bytes.
    pub offset: u64,
    /// How many bytes of the file, this one included, lie there in one run.
    pub bytes: u64,
}

/// Maps the bytes of a file to members.
pub trait Layout: core::fmt::Debug + Send {
    /// Where the byte at `offset` of the file lies, of so many members.
    ///
    /// MUST name one of the members and a run of at least one byte, and MUST be a function of its
    /// arguments. Different bytes MUST lie at different places, and the bytes of one run one behind
    /// the other. Any offset and any number of members, none included, MUST be answered.
    fn piece(&self, offset: u64, members: usize) -> Piece;

    /// Every piece begins and ends at a multiple of this, in bytes; it MUST be at least 1. The
    /// engine refuses files whose blocks it would cut.
    fn unit(&self) -> u64;

    /// The most members that it uses.
    fn members_max(&self) -> usize;
}

/// How a file lies: a layout, and for each member its device and where on that the file's part
/// begins. Seek distances are computed from these places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placement {
    /// The layout.
    pub layout: Choice,
    /// Its members, at least one and at most as many as the layout uses.
    pub members: Vec<(DeviceId, Bytes)>,
}

impl Placement {
    /// One device holds the whole file, one byte behind the other.
    #[must_use]
    pub fn linear(device: DeviceId, location: Bytes) -> Self {
        Self {
            layout: Choice::of(&linear::METHOD.spec),
            members: [(device, location)].into(),
        }
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
        Ok(Self {
            layout: Choice::of(&raid0::METHOD.spec).with("strip_bytes", strip.0)?,
            members: members.collect(),
        })
    }
}

/// The layout of one file at work: bytes of the file to bytes of devices.
#[derive(Debug)]
pub struct LayoutMap {
    layout: Box<dyn Layout>,
    members: Box<[(DeviceId, Bytes)]>,
}

/// Where a byte of a file lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// On which device.
    pub device: DeviceId,
    /// Which member of the layout that is.
    pub member: usize,
    /// Where on the device, in bytes from its beginning.
    pub position: Bytes,
    /// How many bytes of the file, this one included, lie there in one run.
    pub run: Bytes,
}

impl LayoutMap {
    /// A file that lies like this, in blocks of this size. `None` if the layout would cut a block,
    /// or does not take so many members.
    #[must_use]
    pub fn new(placement: &Placement, block_bytes: u32) -> Option<Self> {
        let layout = placement.layout.build(LIST)?;
        let unit = layout.unit();
        let is_whole = unit == 1 || unit % u64::from(block_bytes) == 0;
        let is_complete = (1..=layout.members_max()).contains(&placement.members.len());
        (is_whole && is_complete).then(|| Self {
            layout,
            members: placement.members.clone().into_boxed_slice(),
        })
    }

    /// Where the byte at `offset` of the file lies.
    #[must_use]
    pub fn place(&self, offset: u64) -> Place {
        let piece = self.layout.piece(offset, self.members.len());
        debug_assert!(
            piece.member < self.members.len() && piece.bytes > 0,
            "a layout names a run on a member it was given, not {piece:?}"
        );
        let member = piece.member.min(self.members.len() - 1);
        let (device, begin) = self.members[member];
        Place {
            device,
            member,
            position: Bytes(begin.0.saturating_add(piece.offset)),
            run: Bytes(piece.bytes),
        }
    }

    /// The device of each member.
    pub fn devices(&self) -> impl ExactSizeIterator<Item = DeviceId> + '_ {
        self.members.iter().map(|(device, _)| *device)
    }
}
