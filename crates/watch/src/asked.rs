//! Questions to a watch that runs, and its answers.
//!
//! The loop of a watch is one thread and owns its state, so other threads ask it: the control socket and the metrics send
//! a question, wake the loop and wait for the answer.
//!
//! ```text
//! control thread   question --channel--> loop, between two rounds of events --channel--> Told
//! metrics thread       "  + a byte into the pipe of its signals
//! ```
//!
//! A watch that nobody asks pays nothing. A loop that does not answer within a second is at work or stopped, and the
//! client is told so: then the loop drops the wish, so that no watch pauses after its user was told that it does not.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use forerun_core::Ledger;
use forerun_surface::daemon::announced::Range;
use forerun_surface::daemon::control::{Answer, Answers, Question};
use forerun_surface::daemon::report::{Limits, Report};

/// How long the loop may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is asked of the loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wish {
    /// Its state.
    Told,
    /// Pause, or go on.
    Pause(bool),
}

/// The state of a watch.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) report: Report,
    /// Its limits.
    pub(crate) limits: Limits,
    /// The counters of its engines.
    pub(crate) ledger: Ledger,
}

/// A question with the way back.
#[derive(Debug)]
pub(crate) struct Asked {
    wish: Wish,
    answer: SyncSender<Told>,
    /// Taken by the loop, or given up by the client: the first counts.
    is_settled: Arc<AtomicBool>,
}

impl Asked {
    /// The wish and the way back; none if the client waits no more.
    pub(crate) fn take(self) -> Option<(Wish, SyncSender<Told>)> {
        let is_given_up = self.is_settled.swap(true, Ordering::Relaxed);
        (!is_given_up).then_some((self.wish, self.answer))
    }
}

/// The end of a thread that asks.
#[derive(Debug)]
pub(crate) struct Asks {
    questions: Sender<Asked>,
    wake: UnixStream,
}

/// Both ends; `wake` ends the waiting of the loop.
pub(crate) fn pair(wake: UnixStream) -> (Asks, Receiver<Asked>) {
    let (questions, asked) = channel();
    (Asks { questions, wake }, asked)
}

impl Asks {
    /// The same for another thread.
    pub(crate) fn try_clone(&self) -> std::io::Result<Self> {
        Ok(Self {
            questions: self.questions.clone(),
            wake: self.wake.try_clone()?,
        })
    }

    /// The answer; none from a loop that is stopped or has ended.
    pub(crate) fn ask(&self, wish: Wish) -> Option<Told> {
        self.ask_for(wish, PATIENCE)
    }

    fn ask_for(&self, wish: Wish, patience: Duration) -> Option<Told> {
        let (answer, answered) = sync_channel(1);
        let is_settled = Arc::new(AtomicBool::new(false));
        let asked = Asked {
            wish,
            answer,
            is_settled: is_settled.clone(),
        };
        self.questions.send(asked).ok()?;
        // A pipe that is full wakes the loop, too.
        let _ = (&self.wake).write(b".");
        let told = answered.recv_timeout(patience).ok();
        // A wish that the loop has just taken is answered soon.
        told.or_else(|| match is_settled.swap(true, Ordering::Relaxed) {
            true => answered.recv_timeout(PATIENCE).ok(),
            false => None,
        })
    }
}

impl Answers for Asks {
    fn answer(&self, question: Question) -> Answer {
        let wish = match question {
            Question::Stats | Question::Limits => Wish::Told,
            Question::Pause => Wish::Pause(true),
            Question::Resume => Wish::Pause(false),
            _ => return Answer::Refused(UNKNOWN.into()),
        };
        let is_limits = question == Question::Limits;
        match (wish, self.ask(wish)) {
            (_, None) => Answer::Error("the watch does not answer".into()),
            (Wish::Told, Some(told)) if is_limits => Answer::Limits(told.limits),
            (Wish::Told, Some(told)) => Answer::Stats(Box::new(told.report)),
            (Wish::Pause(_), Some(told)) => {
                Answer::Paused(told.report.watch.is_some_and(|watch| watch.is_paused))
            }
        }
    }

    fn announced(&self, _: Vec<Range>, client: UnixStream) -> Result<(), (String, UnixStream)> {
        Err((UNKNOWN.into(), client))
    }
}

const UNKNOWN: &str = "this is a watch: it takes stats, limits, pause and resume";

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::thread;

    use super::*;

    #[test]
    fn a_question_wakes_the_loop_and_one_of_a_mount_is_refused() {
        let (mut wakes, wake) = UnixStream::pair().unwrap();
        let (asks, asked) = pair(wake);
        let asking = thread::spawn(move || (asks.ask(Wish::Pause(true)).is_some(), asks));
        wakes.read_exact(&mut [0]).unwrap();
        let (wish, answer) = asked.recv().unwrap().take().unwrap();
        assert_eq!(wish, Wish::Pause(true));
        // A loop that ends in the middle of a question answers it no more.
        drop(answer);
        let (is_answered, asks) = asking.join().unwrap();
        assert!(!is_answered);
        let set = Question::SetMemory { bytes: 1 << 30 };
        assert_eq!(asks.answer(set), Answer::Refused(UNKNOWN.into()));
        drop(asked);
        assert!(asks.ask(Wish::Told).is_none());
    }

    #[test]
    fn a_wish_whose_client_was_told_that_there_is_no_answer_is_dropped() {
        let (_wakes, wake) = UnixStream::pair().unwrap();
        let (asks, asked) = pair(wake);
        let told = asks.ask_for(Wish::Pause(true), Duration::ZERO);
        assert!(told.is_none());
        assert!(asked.recv().unwrap().take().is_none());
    }
}
