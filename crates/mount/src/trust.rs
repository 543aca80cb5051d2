//! Times that the kernel caches answers, without asking again.
//!
//! Chosen by the user for the whole mount, sent to the kernel with each answer by the
//! [adapter](super::fuse). A longer time saves a round trip for almost every `stat`, and is the
//! longest time that a change in SOURCE may go unnoticed.
//!
//! | cached | how long, by default |
//! | --- | --- |
//! | attributes | a second, as network file systems have it |
//! | which file a name leads to | the same |
//! | that there is no such name | not at all: programs wait for files to appear |
//!
//! A tree that does not change ([`Trust::unchanging`]) is cached for a day, and the kernel opens
//! its files and folders by itself: reading a file again sends no request to the daemon.

use std::time::Duration;

/// A second: a change is noticed soon, and walking a tree costs one round trip a name.
pub const TTL: Duration = Duration::from_secs(1);

/// For a tree that does not change: as good as for ever, and over when the mount is.
const DAY: Duration = Duration::from_secs(86_400);

/// See the [module](self).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trust {
    /// Attributes.
    pub attributes: Duration,
    /// Names.
    pub entries: Duration,
    /// Names that are not there.
    pub negative: Duration,
    /// Nothing below SOURCE changes while it is mounted.
    pub unchanging: bool,
}

impl Default for Trust {
    fn default() -> Self {
        Self {
            attributes: TTL,
            entries: TTL,
            negative: Duration::ZERO,
            unchanging: false,
        }
    }
}

impl Trust {
    /// The user's options, and else the defaults.
    #[must_use]
    pub fn of(
        unchanging: bool,
        attributes: Option<Duration>,
        entries: Option<Duration>,
        negative: Option<Duration>,
    ) -> Self {
        let usual = match unchanging {
            false => Self::default(),
            true => Self {
                attributes: DAY,
                entries: DAY,
                negative: DAY,
                unchanging,
            },
        };
        Self {
            attributes: attributes.unwrap_or(usual.attributes),
            entries: entries.unwrap_or(usual.entries),
            negative: negative.unwrap_or(usual.negative),
            unchanging,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_counts_also_of_a_tree_that_does_not_change() {
        let minute = Duration::from_secs(60);
        let trust = Trust::of(true, Some(minute), None, None);
        assert_eq!((trust.attributes, trust.entries), (minute, DAY));
        assert_eq!(Trust::of(false, None, None, None), Trust::default());
    }
}
