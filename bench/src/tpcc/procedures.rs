//! TPC-C's transactions as native procedures, and a terminal that calls them in this process.
//!
//! Each transaction is registered twice: to be logged by the rows that it changes, and by its call. A terminal in process
//! goes on with the next transaction when one is logged; it is counted when its group is durable. At most
//! `MAX_UNACKNOWLEDGED` are on their way at a time.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use avocet_engine::{
    Call, CommitTicket, Engine, EngineError, EngineOptions, Procedure, Procedures, Reply, Txn, TxnOptions,
};
use avocet_types::Datum;
use rustix::time::ClockId;

use super::DATABASE;
use super::calls::{self, Logging};
use super::driver::{self, Plan, Run, Runner, Watch};
use super::ops::OrderKey;
use super::schema::Scale;
use super::steps::{EngineOps, Tables};
use super::transactions::{Kind, Outcome, Transaction};

/// Commits that a worker may have on their way to the disk.
const MAX_UNACKNOWLEDGED: usize = 512;

type Result<T> = std::result::Result<T, EngineError>;

/// Tables that no call uses just now.
#[derive(Default)]
struct Pool(Mutex<Vec<Tables>>);

impl Pool {
    /// The tables, held for a transaction.
    fn take(&self, txn: &mut Txn, kind: Kind) -> Result<Tables> {
        let spare = self.0.lock().expect("nobody panics with it").pop();
        let mut tables = match spare {
            Some(tables) => tables,
            None => Tables::open(txn.engine())?,
        };
        while !tables.hold(txn, kind)? {
            tables = Tables::open(txn.engine())?;
        }
        Ok(tables)
    }

    fn give(&self, tables: Tables) {
        self.0.lock().expect("nobody panics with it").push(tables);
    }
}

/// All transactions, logged either way.
pub fn procedures() -> Procedures {
    let pool = Arc::new(Pool::default());
    let mut all = Procedures::default();
    for kind in Kind::ALL {
        for logging in Logging::ALL {
            let pool = pool.clone();
            let body = move |call: &mut Call<'_>| run(kind, &pool, call);
            let procedure = Procedure::new(DATABASE, calls::name(kind, logging), body);
            let parameters = calls::parameters(kind).iter();
            let procedure = parameters.fold(procedure, |p, (name, ty)| p.takes(*name, *ty));
            all = all.with(match logging {
                Logging::Rows => procedure,
                Logging::Calls => procedure.deterministic(),
            });
        }
    }
    all
}

fn run(kind: Kind, pool: &Pool, call: &mut Call<'_>) -> Result<()> {
    let transaction = calls::transaction(kind, call.arguments);
    let transaction = transaction.ok_or_else(|| EngineError::signal("these are no arguments of TPC-C's"))?;
    let mut tables = pool.take(call.txn, kind)?;
    let outcome = transaction.run(&mut EngineOps { txn: call.txn, tables: &mut tables });
    pool.give(tables);
    let row = |key: &OrderKey| [Datum::Int(key.district), Datum::Int(key.order)];
    match outcome? {
        // What clause 2.4.2.3 has the terminal display.
        Outcome::RolledBack => return Err(EngineError::signal("Item number is not valid")),
        Outcome::Ordered(key) => call.reply.result_set(&calls::RESULT).push(&row(&key)),
        Outcome::Delivered(keys) => {
            let result = call.reply.result_set(&calls::RESULT);
            keys.iter().for_each(|key| result.push(&row(key)));
        }
        Outcome::Paid { .. } | Outcome::Read => {}
    }
    Ok(())
}

/// Opens a data directory with TPC-C's procedures.
pub fn open(data: &Path, change: impl FnOnce(&mut EngineOptions)) -> Result<Arc<Engine>> {
    let mut options = EngineOptions { procedures: procedures(), ..EngineOptions::new(data) };
    change(&mut options);
    Engine::open(options)
}

/// One worker in process.
pub struct Caller {
    engine: Arc<Engine>,
    /// By `Kind`.
    procedures: Vec<Arc<Procedure>>,
    unacknowledged: VecDeque<CommitTicket>,
    reply: Reply,
}

impl Caller {
    pub fn new(engine: &Arc<Engine>, logging: Logging) -> Result<Caller> {
        let find = |kind| engine.procedure(DATABASE, &calls::name(kind, logging)).cloned();
        Ok(Caller {
            procedures: Kind::ALL.into_iter().map(find).collect::<Result<_>>()?,
            engine: engine.clone(),
            unacknowledged: VecDeque::new(),
            reply: Reply::default(),
        })
    }

    fn note(&mut self, ticket: CommitTicket) -> Result<()> {
        self.unacknowledged.push_back(ticket);
        while self.unacknowledged.front().is_some_and(CommitTicket::is_durable) {
            self.unacknowledged.pop_front();
        }
        if self.unacknowledged.len() >= MAX_UNACKNOWLEDGED {
            self.unacknowledged.pop_front().expect("not empty").wait()?;
        }
        Ok(())
    }
}

impl Runner for Caller {
    type Error = EngineError;

    fn run(&mut self, transaction: &Transaction) -> Result<Outcome> {
        let procedure = &self.procedures[transaction.kind() as usize];
        let arguments = calls::arguments(transaction);
        let options = TxnOptions::default();
        match self.engine.start_call(procedure, &arguments, options, &mut self.reply) {
            Ok(ticket) => self.note(ticket)?,
            Err(EngineError::Signal { .. }) => return Ok(Outcome::RolledBack),
            Err(e) => return Err(e),
        }
        let rows = self.reply.result_sets.iter().flat_map(|result| result.rows());
        Ok(calls::outcome(
            transaction,
            rows.filter_map(|row| match row {
                [Datum::Int(district), Datum::Int(order)] => Some([*district, *order]),
                _ => None,
            }),
        ))
    }

    /// A call that failed is rolled back.
    fn roll_back(&mut self) -> Result<()> {
        Ok(())
    }
}

/// What a run in process took.
pub struct Measured {
    pub run: Run,
    /// CPU time of the whole process: the worker, the log writer and the housekeeping.
    pub cpu: Duration,
    /// Bytes that went to the log while transactions were counted, and what was written of them, compressed.
    pub log_bytes: u64,
    pub log_written: u64,
    /// Commits that were durable together, in the mean.
    pub group_records: f64,
}

/// Runs workers in process for the planned time, on a data directory that was loaded before.
pub fn measure(engine: &Arc<Engine>, scale: Scale, plan: Plan, logging: Logging) -> Result<Measured> {
    let control = driver::Control::default();
    let mut before = None;
    let watch = |elapsed| {
        if elapsed >= plan.warm_up && before.is_none() {
            before = Some((driver::cpu_time(ClockId::ProcessCPUTime), engine.log_stats()));
        }
        driver::Watch::EndInTime
    };
    let (run, errors) = driver::run(plan, scale, &control, || Caller::new(engine, logging), watch)?;
    let (cpu_before, log_before) = before.unwrap_or_default();
    let cpu = driver::cpu_time(ClockId::ProcessCPUTime) - cpu_before;
    let log = engine.log_stats();
    // What is still on its way belongs to the run.
    engine.all_logged().wait()?;
    match errors.into_iter().next() {
        Some(e) => Err(e),
        None => Ok(Measured {
            run,
            cpu,
            log_bytes: log.bytes - log_before.bytes,
            log_written: log.written_bytes - log_before.written_bytes,
            group_records: (log.records - log_before.records) as f64
                / (log.groups - log_before.groups).max(1) as f64,
        }),
    }
}

/// Runs workers until the log has grown by `log_bytes`; all that is in the books is durable then.
pub fn fill(engine: &Arc<Engine>, scale: Scale, plan: Plan, log_bytes: u64) -> Result<Run> {
    let before = engine.log_stats().bytes;
    let enough = || engine.log_stats().bytes - before >= log_bytes;
    let watch = |_| if enough() { Watch::EndNow } else { Watch::EndInTime };
    let control = driver::Control::default();
    let connect = || Caller::new(engine, Logging::Rows);
    let (run, errors) = driver::run(plan, scale, &control, connect, watch)?;
    engine.all_logged().wait()?;
    errors.into_iter().next().map_or(Ok(run), Err)
}
