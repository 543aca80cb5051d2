//! Streams: runs of prefetched, unread blocks, each with an owner.
