//! Bytes that are awaited in segments, because the engine takes [`Engine::READ_MAX`] blocks at once.
//!
//! Each segment is asked for once the one before is there; the caller's call comes with the last one, or with the first that
//! fails. No thread waits in between.
//!
//! ```text
//! blocks 0..4096 asked -- there --> 4096..8192 asked -- there --> 8192..9000 asked -- there --> call
//! ```
//!
//! An answer may come while its segment is still being asked for, on the same thread: then the thread that asked goes on in its
//! loop. So a long run of blocks that are all there needs no deep stack.

use std::mem;
use std::sync::Arc;

use forerun_core::protocol::Wants;
use forerun_core::{Block, Engine, Served};

use crate::engine_host::{Ask, EngineHost};
use crate::reader::Position;
use crate::sync::Mutex;
use crate::wait::Call;

/// See the [module](self).
pub(crate) struct Segments {
    engine_host: Arc<EngineHost>,
    /// That of the reader: its number may be another's later.
    position: Arc<Position>,
    /// For the next segment.
    ask: Ask,
    /// Blocks after that segment.
    beyond: u32,
    wants: Wants,
    call: Call,
}

/// Where the thread that asked for a segment and the answer meet. The one that comes last goes on.
enum Meeting {
    Asked,
    Answered(Served),
    Left(Box<Segments>),
}

impl Segments {
    /// The blocks of `whole`, which may be more than a read can have.
    pub(crate) fn new(
        engine_host: Arc<EngineHost>,
        position: Arc<Position>,
        whole: Ask,
        wants: Wants,
        call: Call,
    ) -> Box<Self> {
        let count = whole.count.min(Engine::READ_MAX);
        let beyond = whole.count - count;
        Box::new(Self {
            engine_host,
            position,
            ask: Ask { count, ..whole },
            beyond,
            wants,
            call,
        })
    }

    /// Asks for segments until one is waited for, or all are there. True if there are lines of the journal to write:
    /// not by the thread of an answer, which may be that of a ring.
    pub(crate) fn go_on(mut self: Box<Self>) -> bool {
        let mut is_long = false;
        while self.beyond > 0 {
            let meeting = Arc::new(Mutex::new(Meeting::Asked));
            is_long |= self.ask_until(meeting.clone());
            let mut at = meeting.lock();
            let Meeting::Answered(served) = *at else {
                *at = Meeting::Left(self);
                return is_long;
            };
            drop(at);
            match self.after(served) {
                Some(next) => self = next,
                None => return is_long,
            }
        }
        let Self {
            engine_host,
            position,
            ask,
            wants,
            call,
            ..
        } = *self;
        is_long | engine_host.call_when_there(&ask, &position, wants, call)
    }

    fn ask_until(&self, meeting: Arc<Mutex<Meeting>>) -> bool {
        let call = move |served| {
            let before = mem::replace(&mut *meeting.lock(), Meeting::Answered(served));
            if let Meeting::Left(segments) = before
                && let Some(next) = segments.after(served)
            {
                next.go_on();
            }
        };
        self.engine_host
            .call_when_there(&self.ask, &self.position, self.wants, Box::new(call))
    }

    /// The segments behind the one that was answered; none if that one failed, which ends the wait.
    fn after(mut self: Box<Self>, served: Served) -> Option<Box<Self>> {
        if served != Served::End {
            (self.call)(served);
            return None;
        }
        let first = self.ask.first.0.saturating_add(self.ask.count);
        self.ask.first = Block(first);
        self.ask.previous = first.checked_sub(1).map(Block);
        self.ask.count = self.beyond.min(Engine::READ_MAX);
        self.beyond -= self.ask.count;
        Some(self)
    }
}
