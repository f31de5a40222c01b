use std::sync::Arc;
use std::thread;

use arrow::array::Int64Array;
use avocet_types::Datum;
use avocet_types::temporal::TimeZone;
use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::{Interruption, OkReply, OutputColumn, SinkError, Status};

/// Takes ten rows at a time; its receiver takes them when it is asked for the time that is so often.
#[derive(Default)]
struct Tens {
    held: usize,
    passed_on: usize,
    most_held: usize,
    asked: usize,
    /// 0 for a receiver that takes nothing.
    takes_at: usize,
}

impl ResultSink for Tens {
    fn columns(&mut self, _: &[OutputColumn], _: TimeZone) -> Result<(), SinkError> {
        Ok(())
    }

    fn row(&mut self, _: &[Datum<'_>]) -> Result<(), SinkError> {
        self.held += 1;
        self.most_held = self.most_held.max(self.held);
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch, from: usize) -> Result<usize, SinkError> {
        let end = batch.num_rows().min(from + 10 - self.held);
        self.held += end - from;
        self.most_held = self.most_held.max(self.held);
        Ok(end)
    }

    fn end(&mut self, _: Status) -> Result<(), SinkError> {
        Ok(())
    }

    fn ok(&mut self, _: &OkReply<'_>) -> Result<(), SinkError> {
        Ok(())
    }

    fn wants_flush(&self) -> bool {
        self.held >= 10
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), SinkError>> {
        self.asked += 1;
        if self.takes_at == 0 {
            return Poll::Pending;
        }
        if !self.asked.is_multiple_of(self.takes_at) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.passed_on += self.held;
        self.held = 0;
        Poll::Ready(Ok(()))
    }
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

/// Fills a sink and flushes it as a compiled plan does, on a worker's thread.
fn flush_full(mut sink: Tens, interrupt: &Arc<Interrupt>, time: Option<Duration>) -> Result<Tens, SqlError> {
    let interrupt = interrupt.clone();
    let work = async move {
        let cancellation = Cancellation::after(&interrupt, time);
        while !sink.wants_flush() {
            sink.row(&[])?;
        }
        cancellation.flush_in_place(&mut sink)?;
        Ok(sink)
    };
    let runtime = runtime();
    runtime.block_on(runtime.spawn(work)).expect("no panic")
}

#[test]
fn who_cannot_await_waits_until_the_receiver_has_taken_the_rows() {
    for takes_at in 1..4 {
        let sink = Tens { takes_at, ..Tens::default() };
        let sink = flush_full(sink, &Arc::default(), None).expect("taken");
        assert_eq!((sink.held, sink.passed_on), (0, 10));
    }
}

#[test]
fn kill_ends_the_wait_for_a_receiver_that_takes_nothing() {
    let interrupt = Arc::<Interrupt>::default();
    let raised = interrupt.clone();
    let killer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(30));
        raised.raise(Interruption::Statement);
    });
    let begin = Instant::now();
    let error = flush_full(Tens::default(), &interrupt, None).err().expect("killed");
    assert_eq!(error.errno, 1317);
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
    killer.join().expect("no panic");
    // It is looked at even where nobody waits.
    let sink = Tens { takes_at: 1, ..Tens::default() };
    assert_eq!(flush_full(sink, &interrupt, None).err().expect("killed").errno, 1317);
}

#[test]
fn a_deadline_ends_the_wait_for_a_receiver_that_takes_nothing() {
    let begin = Instant::now();
    let error = flush_full(Tens::default(), &Arc::default(), Some(Duration::from_millis(30)))
        .err()
        .expect("too late");
    assert_eq!(error.errno, 3024);
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
}

#[test]
fn a_batch_is_passed_on_in_pieces() {
    let interrupt = Interrupt::default();
    let batch = RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from_iter_values(0..105)) as _)]);
    let mut sink = Tens { takes_at: 3, ..Tens::default() };
    let cancellation = Cancellation::after(&interrupt, None);
    runtime()
        .block_on(cancellation.send_batch(&batch.expect("one array"), &mut sink))
        .expect("nobody ends it");
    assert_eq!((sink.passed_on, sink.held, sink.most_held), (100, 5, 10));
}
