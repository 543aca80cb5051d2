//! One-block lookahead: a sequential read brings the block behind it along.
//!
//! The oldest scheme there is. On a miss that continues the previous access, or starts a file,
//! the blocks asked for and one more are fetched, and the last is marked; whoever reaches the
//! mark triggers the rest of its read and one block more. It never gets ahead of a device that
//! needs depth.

use alloc::boxed::Box;

use forerun_core::detect::{Access, Ahead, Cause, Detect, Window};
use forerun_core::spec::{Knows, Method, Spec};

pub(super) const METHOD: Method<Box<dyn Detect>> = Method {
    spec: Spec {
        name: "one-block",
        summary: "one block beyond every sequential read",
        source: "kimbrel96 section 1",
        unfit: "any device whose switching cost exceeds the transfer of one block",
        knows: Knows::Online,
        params: &[],
    },
    build: |_| Box::new(OneBlock),
};

#[derive(Debug)]
struct OneBlock;

impl Detect for OneBlock {
    fn trigger(&mut self, cause: Cause, access: &Access, ahead: &dyn Ahead) -> Option<Window> {
        match cause {
            Cause::Mark => {
                let next = access.block.0.checked_add(1)?;
                Some(Window::forward(next.into(), access.count, 1))
            }
            Cause::Miss if access.is_sequential() => {
                let asked = access.count.min(ahead.limit());
                Some(Window::forward(access.block, asked.saturating_add(1), 1))
            }
            Cause::Miss => None,
        }
    }
}
