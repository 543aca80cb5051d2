//! Reads that wait until a hinted policy fetches for them: where hints are exact, none waits for
//! ever.
//!
//! The pieces of these plans are eight blocks long, because the first hint is.

use std::vec::Vec;

use super::Rig;
use crate::detect::Access;
use crate::protocol::{FetchOutcome, Input, Wants};
use crate::settings::{Hinting, Notice};
use crate::spec::Choice;
use crate::units::{Block, Bytes, DeviceId, ErrorCode, FileId, ReadId, ReaderId};
use crate::{Placement, plain};

/// Three open files on a device, and a policy that fetches announced blocks as soon as it can.
fn rig(notice: Notice) -> Rig {
    let mut settings = plain::settings(Bytes(4 << 20));
    settings.hinted = Some(Choice::of(&plain::EAGER));
    settings.hinting = Hinting {
        notice,
        exact: true,
        blocks: 0,
    };
    let mut rig = Rig::of(settings);
    for number in 0..3 {
        let file = FileId(number);
        rig.input(Input::File {
            file,
            placement: Placement::linear(DeviceId(0), Bytes(u64::from(number) << 30)),
            bytes: Bytes(600 * 4096),
        });
        let reader = ReaderId(number);
        rig.input(Input::Open { reader, file });
    }
    rig
}

fn hint(rig: &mut Rig, first: u32, count: u32, more: bool) {
    rig.input(Input::Hint {
        reader: ReaderId(0),
        first: Block(first),
        count,
        more,
    });
}

fn read(rig: &mut Rig, read: u32, first: u32) {
    rig.input(Input::Read {
        read: ReadId(read),
        reader: ReaderId(0),
        access: Access {
            block: Block(first),
            head: 0,
            count: 1,
            previous: None,
        },
        fresh: true,
        wants: Wants::Blocks,
    });
}

/// Ends the fetch that begins at a block.
fn end(rig: &mut Rig, first: u32, outcome: FetchOutcome) {
    let begins = |f: &crate::Fetch| f.extent.first == Block(first);
    let which = rig.outstanding.iter().position(begins).unwrap();
    rig.complete(which, outcome);
}

fn decide(rig: &mut Rig) {
    while rig.engine.is_undecided() {
        rig.input(Input::Decide);
    }
}

fn waiting(rig: &Rig) -> Vec<ReadId> {
    let plan = rig.engine.producers.plan.as_ref().unwrap();
    plan.waiting().to_vec()
}

/// The engine itself sends the read on only when it is decided: a driver that asks whether a
/// decision is due must hear so, however the fetch came out.
#[test]
fn a_decision_is_due_when_the_last_fetch_ends_while_a_read_waits() {
    let error = ErrorCode(5);
    for outcome in [FetchOutcome::Done, FetchOutcome::Failed { error }] {
        for notice in [Notice::AtOnce, Notice::AtReads] {
            let mut rig = rig(notice);
            hint(&mut rig, 0, 8, false);
            hint(&mut rig, 100, 8, false);
            read(&mut rig, 0, 100);
            decide(&mut rig);
            assert_eq!(waiting(&rig), [ReadId(0)], "the disk has a fetch");
            end(&mut rig, 0, outcome);
            assert!(rig.engine.is_undecided() && rig.outstanding.is_empty());
            decide(&mut rig);
            end(&mut rig, 100, FetchOutcome::Done);
            assert_eq!(rig.served, [ReadId(0)]);
        }
    }
}

/// The list of hints is open when the fetch that the read waits for ends.
#[test]
fn a_refused_hint_that_ends_its_list_lets_waiting_reads_go_on() {
    for reader in [ReaderId(0), ReaderId(9)] {
        let mut rig = rig(Notice::AtOnce);
        hint(&mut rig, 0, 8, false);
        hint(&mut rig, 100, 8, false);
        read(&mut rig, 0, 100);
        assert_eq!(waiting(&rig), [ReadId(0)], "the disk has a fetch");
        hint(&mut rig, 200, 8, true);
        end(&mut rig, 0, FetchOutcome::Done);
        assert!(!rig.engine.is_undecided(), "another hint follows at once");
        let refused = rig.engine.ledger().refused_inputs;
        rig.input(Input::Hint {
            reader,
            first: Block(5000),
            count: 8,
            more: false,
        });
        assert_eq!(rig.engine.ledger().refused_inputs, refused + 1);
        end(&mut rig, 100, FetchOutcome::Done);
        assert_eq!(rig.served, [ReadId(0)]);
    }
}

/// A run is announced with two blocks and then, when it is on its way or there, with eight: no
/// fetch of the policy brings the other six.
#[test]
fn a_read_of_blocks_that_a_piece_got_later_is_not_kept_for_the_policy() {
    for is_there in [true, false] {
        let mut rig = rig(Notice::AtReads);
        hint(&mut rig, 0, 8, true);
        hint(&mut rig, 100, 2, false);
        if is_there {
            end(&mut rig, 100, FetchOutcome::Done);
        }
        hint(&mut rig, 100, 8, false);
        read(&mut rig, 0, 104);
        decide(&mut rig);
        if !is_there {
            assert_eq!(waiting(&rig), [ReadId(0)], "its piece is on its way");
            end(&mut rig, 100, FetchOutcome::Done);
            decide(&mut rig);
        }
        assert!(waiting(&rig).is_empty());
        end(&mut rig, 104, FetchOutcome::Done);
        assert_eq!(rig.served, [ReadId(0)]);
        let is_first = |f: &crate::Fetch| f.extent.first == Block(0);
        assert!(rig.outstanding.iter().any(is_first), "as long as others");
    }
}
