//! Learned depth: windows for the lengths that the streams of a device have had so far.
//!
//! Competitive depth assumes nothing about where a stream ends; a server shows it every second.
//! Kept for each device:
//!
//! ```text
//!   ends of streams -> survival: how many come how far     (learned/survival.rs)
//!                   -> program:  windows of least expected device time, anew every few hundred ends
//!   windows, ends   -> account:  the budget for wrong guesses, so that device time stays at most
//!                                2 + beta times the offline optimum's    (learned/account.rs)
//! ```
//!
//! Where files are read whole the first window is the file; where 64 KiB are read it is 64 KiB. A
//! window that the account cannot pay is as long as it can, D at least. The next window opens
//! before it is missed only where the switch that its reader is spared is worth more than the
//! device time that is lost if its reader stops before, and the account can pay that. A stream that
//! has a disk to itself pays no switch for its next window, and gets a program of its own: short
//! windows, as Linux has. Below [`ENDS_MIN`] streams, and beyond the lengths known, it is the
//! growing depth (design note 0014).
//!
//! Goes beyond Li et al. 2004, whose bound is its guard.

mod account;
mod program;
mod survival;

use alloc::boxed::Box;
use alloc::vec::Vec;

use self::account::{Account, At};
use self::program::Program;
use self::survival::{ONE, Survival};
use super::{
    Advice, Depth, DeviceFacts, Ended, NEW_DEPTHS_MAX, NEW_MAX, Opened, Stake, StreamFacts,
};
use crate::spec::{Knows, Method, Param, Spec};
use crate::units::{Bytes, DeviceId};

pub(super) const METHOD: Method<Box<dyn Depth>> = Method {
    spec: Spec {
        name: "learned",
        summary: "windows of least expected device time for the lengths of streams seen so far",
        source: "li04 section 2, extended; Kaplan and Meier 1958",
        unfit: "lengths that change every few hundred streams: it is always behind",
        knows: Knows::Online,
        params: &[Param {
            name: "beta_percent",
            summary: "device time over the optimum's may be 2 and this much; the waste of a \
                      wrong guess is paid from it. 25 is what growing depth may waste",
            default: 25,
            min: 0,
            max: 100,
        }],
    },
    build: |values| {
        Box::new(Learned {
            beta_percent: values[0],
            devices: Vec::new(),
        })
    },
};

/// Streams from which lengths are trusted. With 32 the part that passes a length is known within 9
/// points, enough to tell short from long; the account bears the rest.
const ENDS_MIN: u32 = 32;
/// The program is solved when the number of ends has doubled, and then after so many: a solution
/// takes a tenth of a millisecond, so half a microsecond an end.
const ENDS_BETWEEN: u32 = 256;
/// A disk that one stream has to itself stands where its next window begins, so windows cost no
/// switch; but a request costs a command, some 0.2 ms: 16 KiB at 80 MB/s. With 128 KiB pieces of 2
/// MB on average got 7 % less than with Linux's windows; with nothing each read would be a request.
const ALONE_DEPTH: u64 = 16 << 10;
/// Weight of the newest window in the part that switches, as a power of two: with 1/16 the part
/// follows within some tens of windows when readers come and go.
const SWITCHES_SHIFT: u32 = 4;
/// The whole of that part; below a quarter a stream is taken for alone. Where streams take turns,
/// two windows side by side make it a half.
const SWITCHES_ONE: u32 = 1 << 16;
/// Devices that are learned, about 14 KiB each; others get growing depth.
const DEVICES_MAX: usize = 64;
/// Growing depth's default, and its bound on the waste of a window.
const ALPHA_PERCENT: u64 = 25;

#[derive(Debug)]
struct Learned {
    beta_percent: u64,
    devices: Vec<(DeviceId, Lengths)>,
}

/// Lengths and account of a device.
#[derive(Debug)]
struct Lengths {
    survival: Survival,
    programs: Option<Programs>,
    /// Of the windows that go on where one ended, the part for which the device came from
    /// elsewhere, of [`SWITCHES_ONE`].
    switches: u32,
    account: Account,
    /// Ends since the program was solved, and at which it is solved next.
    ends: u32,
    solve_at: u32,
}

/// The windows of streams that take turns on the device, and of one that is alone on a disk.
#[derive(Debug)]
struct Programs {
    in_turn: Program,
    alone: Program,
}

impl Lengths {
    const BYTES: u64 =
        size_of::<(DeviceId, Lengths)>() as u64 + Survival::BYTES + 2 * Program::BYTES_MAX;

    fn new() -> Self {
        Self {
            survival: Survival::new(),
            programs: None,
            switches: SWITCHES_ONE,
            account: Account::default(),
            ends: 0,
            solve_at: ENDS_MIN,
        }
    }

    /// A stream went on with a window for which the device switched, or did not.
    fn went_on(&mut self, is_switch: bool) {
        self.switches -= self.switches >> SWITCHES_SHIFT;
        if is_switch {
            self.switches += SWITCHES_ONE >> SWITCHES_SHIFT;
        }
    }

    fn program(&self, device: &DeviceFacts<'_>) -> Option<&Program> {
        let programs = self.programs.as_ref()?;
        let is_alone = device.profile.servers() == 1 && self.switches < SWITCHES_ONE / 4;
        Some(match is_alone {
            true => &programs.alone,
            false => &programs.in_turn,
        })
    }

    fn end(&mut self, length: u64, is_cut: bool, depth: u64) {
        self.survival.add(length, is_cut);
        self.ends += 1;
        if self.ends >= self.solve_at {
            let solve = |cost| Program::solve(&self.survival, cost, window_max(depth));
            self.programs = Some(Programs {
                in_turn: solve(depth),
                alone: solve(depth.min(ALONE_DEPTH)),
            });
            let doubled = if self.solve_at < ENDS_BETWEEN {
                self.ends
            } else {
                ENDS_BETWEEN
            };
            (self.ends, self.solve_at) = (0, doubled.min(ENDS_BETWEEN));
        }
    }
}

/// The longest window that a bet may have: the rule of [`Depth::limit`].
fn window_max(depth: u64) -> u64 {
    NEW_MAX.0.max(depth.saturating_mul(NEW_DEPTHS_MAX))
}

/// The facts of a stream, per member of its file.
struct Share {
    asked: u64,
    at: At,
    grown: u64,
}

impl Learned {
    fn of(&self, device: DeviceId) -> Option<&Lengths> {
        let known = self.devices.iter().find(|(id, _)| *id == device);
        known.map(|(_, lengths)| lengths)
    }

    fn of_mut(&mut self, device: DeviceId) -> Option<&mut Lengths> {
        let known = self.devices.iter().position(|(id, _)| *id == device);
        let at = match known {
            Some(at) => at,
            None if self.devices.len() == DEVICES_MAX => return None,
            None => {
                self.devices.push((device, Lengths::new()));
                self.devices.len() - 1
            }
        };
        self.devices.get_mut(at).map(|(_, lengths)| lengths)
    }

    /// The answer of growing depth, whose growth the account can always pay.
    fn growing(&self, stream: &StreamFacts, depth: u64) -> u64 {
        let alpha = ALPHA_PERCENT.min(self.beta_percent);
        let grown = u128::from(stream.consumed.0) * u128::from(alpha) / 100;
        let grown = u64::try_from(grown).unwrap_or(u64::MAX);
        let allowed = if stream.waited {
            grown
        } else {
            grown.min(stream.last_window.0)
        };
        depth.max(allowed).max(stream.asked.0)
    }

    fn share(&self, stream: &StreamFacts, device: &DeviceFacts<'_>) -> Share {
        let members = u64::from(stream.members.max(1));
        let depth = device.depth(stream.location).0;
        let (asked, consumed) = (
            stream.asked.0.div_ceil(members),
            stream.consumed.0 / members,
        );
        // The demand counts as consumed by a window that begins with it.
        let is_there = stream.continues && device.profile.servers() == 1;
        let taken = if stream.is_early { 0 } else { asked };
        Share {
            asked,
            at: At {
                consumed: consumed.saturating_add(taken),
                begin: consumed.saturating_add(stream.ahead.0 / members),
                depth,
                switch: if is_there { 0 } else { depth },
                stake: stream.stake,
            },
            grown: self.growing(stream, depth),
        }
    }

    /// The window that lengths speak for, D or growth where they say nothing; and the part the
    /// account allows of it.
    fn window(&self, lengths: &Lengths, program: &Program, share: &Share) -> Bytes {
        let Share { at, asked, grown } = share;
        let wanted = match program.target(at.begin) {
            Some(target) => (target - at.begin).min(window_max(at.depth)),
            None => *grown,
        };
        let left = |bytes| {
            let window = Opened {
                bytes: Bytes(bytes),
                is_last: false,
            };
            lengths.account.left_with(self.beta_percent, at, &window)
        };
        let wanted = wanted.max(*asked).max(1);
        let lacking = left(wanted).min(0).unsigned_abs();
        if lacking == 0 {
            return Bytes(wanted);
        }
        // Each byte less is a byte saved, down to D.
        Bytes(
            wanted
                .saturating_sub(lacking)
                .max(at.depth)
                .max(*asked)
                .max(1),
        )
    }

    /// Whether the window should open before its reader misses it.
    fn is_early(&self, lengths: &Lengths, program: &Program, share: &Share, window: Bytes) -> bool {
        let At {
            begin, consumed, ..
        } = share.at;
        let depth = program.depth;
        let passes = program.passes(consumed, begin);
        let spared = u128::from(passes) * u128::from(depth);
        let lost = u128::from(ONE - passes) * u128::from(depth.saturating_add(window.0));
        let opened = Opened {
            bytes: window,
            is_last: false,
        };
        spared >= lost
            && lengths
                .account
                .left_with(self.beta_percent, &share.at, &opened)
                >= 0
    }
}

impl Depth for Learned {
    fn limit(&self, stream: &StreamFacts, device: &DeviceFacts<'_>) -> Bytes {
        self.advise(stream, device).limit
    }

    fn advise(&self, stream: &StreamFacts, device: &DeviceFacts<'_>) -> Advice {
        let share = self.share(stream, device);
        let lengths = self.of(device.id);
        let known = lengths.and_then(|lengths| Some((lengths, lengths.program(device)?)));
        let Some((lengths, program)) = known else {
            return Advice::limit(Bytes(share.grown));
        };
        let window = self.window(lengths, program, &share);
        Advice {
            limit: window.max(stream.asked),
            floor: window,
            // The mark is met a switch before the window ends.
            behind_mark: Bytes(share.at.depth),
            is_early: !stream.is_early || self.is_early(lengths, program, &share, window),
        }
    }

    fn opened(&mut self, stream: &StreamFacts, device: &DeviceFacts<'_>, window: &Opened) -> Stake {
        let wanted = self.limit(stream, device);
        let share = self.share(stream, device);
        let members = u64::from(stream.members.max(1));
        let window = Opened {
            bytes: Bytes(window.bytes.0.div_ceil(members)),
            ..*window
        };
        let beta_percent = self.beta_percent;
        let Some(lengths) = self.of_mut(device.id) else {
            return Stake::default();
        };
        if share.at.begin > 0 {
            lengths.went_on(share.at.switch > 0);
        }
        let account = &mut lengths.account;
        account.open(beta_percent, &share.at, &window, wanted.0)
    }

    fn ended(&mut self, ended: &Ended, device: &DeviceFacts<'_>) {
        let consumed = ended.consumed.0 / u64::from(ended.members.max(1));
        let beta_percent = self.beta_percent;
        let depth = device.depth(Bytes(0)).0;
        let Some(lengths) = self.of_mut(device.id) else {
            return;
        };
        if ended.stake.is_begun {
            lengths.account.close(beta_percent, consumed, &ended.stake);
        }
        if consumed > 0 {
            lengths.end(consumed, ended.is_cut, depth);
        }
    }

    fn state_bytes(&self) -> u64 {
        self.devices.len() as u64 * Lengths::BYTES
    }
}
