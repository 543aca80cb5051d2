//! The kernel's cached attributes of a file, as recorded from the daemon's answers.
//!
//! Problem: the kernel believes attributes for [`TTL`](crate::trust::TTL). It cuts reads at
//! the size it believes and checks rights by the mode it believes, so a file that grew is read cut
//! off, and one that was closed to others is opened by them.
//!
//! Mechanism: each answer with attributes is noted here; each open compares the source with the
//! note. Answers to two requests at once may reach the kernel in either order, and it keeps the
//! first: two answers that differ leave the note *mixed*, which equals nothing. When the kernel is
//! made to drop its copy the note is cleared *before* the notification, so that it never has
//! less than the kernel's cache.
//!
//! ```text
//! told (v1) -> one v1          open finds v1: as told
//! told (v2) -> mixed           open finds v2, same rights: the kernel drops its copy, then reads
//!                              open finds other rights: ESTALE, the kernel looks again and checks
//! ```

use super::attributes::{Attributes, Time};

/// Which content: its size and the last change, which moves with every other one.
type Content = (u64, Time);

/// Mode, owner and group.
type Rights = (u16, u32, u32);

/// The last answer on one aspect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Note<T> {
    #[default]
    Nothing,
    One(T),
    Mixed,
}

impl<T: PartialEq + Copy> Note<T> {
    fn add(&mut self, told: T) {
        *self = match *self {
            Self::Nothing => Self::One(told),
            Self::One(before) if before == told => Self::One(told),
            _ => Self::Mixed,
        };
    }
}

/// The source compared with the kernel's attributes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The kernel is right.
    Same,
    /// Its size or its times are not; its check of rights holds.
    Changed,
    /// Its check of rights may not hold.
    Rights,
}

/// See the [module](self).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Told {
    content: Note<Content>,
    rights: Note<Rights>,
    access_list: Note<u64>,
    /// The largest size ever told.
    largest: u64,
}

fn content(attributes: &Attributes) -> Content {
    (attributes.version.bytes, attributes.version.changed)
}

fn rights(attributes: &Attributes) -> Rights {
    (attributes.permissions, attributes.user, attributes.group)
}

impl Told {
    /// The kernel is answered with these attributes.
    pub fn add(&mut self, attributes: &Attributes) {
        self.content.add(content(attributes));
        self.rights.add(rights(attributes));
        self.largest = self.largest.max(attributes.version.bytes);
    }

    /// The kernel is answered with this access list, as a digest.
    pub fn add_access_list(&mut self, digest: u64) {
        self.access_list.add(digest);
    }

    /// The largest size that the kernel was told of.
    #[must_use]
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// The kernel may not have taken in its last answer.
    pub fn doubt(&mut self) {
        self.content = Note::Mixed;
    }

    /// Whether the access list has to be compared too: something changed and the kernel has a list.
    #[must_use]
    pub fn needs_access_list(&self, now: &Attributes) -> bool {
        self.access_list != Note::Nothing && self.content != Note::One(content(now))
    }

    /// Compares. The note is cleared as far as the kernel must drop its copy.
    pub fn compare(&mut self, now: &Attributes, access_list: Option<u64>) -> Verdict {
        if self.content == Note::One(content(now)) && self.rights == Note::One(rights(now)) {
            return Verdict::Same;
        }
        let listed = self.access_list == Note::Nothing
            || access_list.is_some_and(|now| self.access_list == Note::One(now));
        if self.rights != Note::One(rights(now)) || !listed {
            *self = Self {
                largest: self.largest,
                ..Self::default()
            };
            return Verdict::Rights;
        }
        self.content = Note::Nothing;
        Verdict::Changed
    }
}
