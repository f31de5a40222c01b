//! The end of the source's log, as of a moment that has not passed when somebody asks: what has been committed there by then is before
//! it. One connection asks for all who want to know at a time.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mysql::{Opts, OptsBuilder};
use parking_lot::{Condvar, Mutex};

use crate::error::ReplicateError;
use crate::source;
use crate::state::LogPlace;

/// A source that does not answer for so long is gone.
const PATIENCE: Duration = Duration::from_secs(5);
/// After an error, nobody is asked for so long.
const REST: Duration = Duration::from_millis(200);

/// Numbers a question: all who ask between two of them get the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question(u64);

/// What the source said.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Which server it was: another one may have taken its address.
    pub source: Arc<str>,
    pub end: LogPlace,
    /// When it was asked: what was committed before that is before the end.
    pub asked: Instant,
}

#[derive(Default)]
struct Inner {
    /// The last question that somebody has asked, that was sent, and that has an answer.
    wanted: u64,
    sent: u64,
    answered: u64,
    answer: Option<Result<Answer, String>>,
    waiting: Vec<Waker>,
    /// Somebody has found that the connection leads to another server than the stream.
    is_doubted: bool,
    is_stopped: bool,
}

/// Asks the source where its log ends.
#[derive(Default)]
pub struct Probe {
    inner: Mutex<Inner>,
    changed: Condvar,
}

impl Probe {
    /// Starts the thread that asks.
    pub fn start(self: &Arc<Self>, opts: Opts) -> std::io::Result<JoinHandle<()>> {
        let probe = self.clone();
        let builder = std::thread::Builder::new().name("replica-probe".into());
        builder.spawn(move || probe.run(&opts))
    }

    pub fn stop(&self) {
        let mut inner = self.inner.lock();
        inner.is_stopped = true;
        inner.waiting.drain(..).for_each(Waker::wake);
        self.changed.notify_all();
    }

    /// Asks anew, together with all who ask before the source is.
    pub fn ask(&self) -> Question {
        let mut inner = self.inner.lock();
        let question = inner.sent + 1;
        if inner.wanted < question {
            inner.wanted = question;
            self.changed.notify_all();
        }
        Question(question)
    }

    /// The stream is another server's than the last answer: the next question connects anew.
    pub fn doubt(&self) {
        self.inner.lock().is_doubted = true;
    }

    /// Ready with the answer to a question, or to a later one.
    ///
    /// # Errors
    /// Why the source cannot be asked.
    pub fn poll_answer(&self, question: Question, cx: &mut Context<'_>) -> Poll<Result<Answer, String>> {
        let mut inner = self.inner.lock();
        match &inner.answer {
            Some(answer) if inner.answered >= question.0 => Poll::Ready(answer.clone()),
            _ if inner.is_stopped => Poll::Ready(Err("the server is stopping".into())),
            _ => {
                if !inner.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                    inner.waiting.push(cx.waker().clone());
                }
                Poll::Pending
            }
        }
    }

    fn run(&self, opts: &Opts) {
        let opts: Opts = OptsBuilder::from_opts(opts.clone())
            .read_timeout(Some(PATIENCE))
            .write_timeout(Some(PATIENCE))
            .tcp_connect_timeout(Some(PATIENCE))
            .into();
        let mut conn = None;
        while let Some(question) = self.next_question() {
            if std::mem::take(&mut self.inner.lock().is_doubted) {
                conn = None;
            }
            let asked = Instant::now();
            let answer: Result<_, ReplicateError> = (|| {
                let (conn, source) = match &mut conn {
                    Some(known) => known,
                    none => {
                        let mut conn = source::connect(&opts)?;
                        let source: Arc<str> = source::identity(&mut conn)?.into();
                        none.insert((conn, source))
                    }
                };
                Ok((source.clone(), source::log_end(conn)?))
            })();
            if let Err(error) = &answer {
                tracing::debug!(%error, "the source does not tell where its log ends");
                conn = None;
            }
            let failed = answer.is_err();
            let answer =
                answer.map(|(source, end)| Answer { source, end, asked }).map_err(|error| error.to_string());
            let mut inner = self.inner.lock();
            inner.answered = question;
            inner.answer = Some(answer);
            inner.waiting.drain(..).for_each(Waker::wake);
            if failed && !inner.is_stopped {
                self.changed.wait_for(&mut inner, REST);
            }
        }
    }

    /// Waits until somebody asks; `None` if nobody will.
    fn next_question(&self) -> Option<u64> {
        let mut inner = self.inner.lock();
        while inner.wanted <= inner.sent && !inner.is_stopped {
            self.changed.wait(&mut inner);
        }
        inner.sent += 1;
        (!inner.is_stopped).then_some(inner.sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_before_the_source_is_asked_shares_the_answer() {
        let probe = Probe::default();
        let (first, second) = (probe.ask(), probe.ask());
        assert_eq!(first, second);
        assert_eq!(probe.next_question(), Some(1));
        let third = probe.ask();
        assert!(third > second);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(probe.poll_answer(first, &mut cx).is_pending());
        {
            let mut inner = probe.inner.lock();
            inner.answered = 1;
            inner.answer = Some(Err("gone".into()));
        }
        assert!(probe.poll_answer(second, &mut cx).is_ready());
        assert!(probe.poll_answer(third, &mut cx).is_pending());
        probe.stop();
        assert!(probe.poll_answer(third, &mut cx).is_ready());
        assert_eq!(probe.next_question(), None);
    }
}
