//! Calling procedures: by name, as a transaction of their own; and once more, at recovery.

use std::sync::Arc;

use avocet_base::Timestamp;
use avocet_types::Value;

use super::logical::{CallPermit, Logical, Mode};
use super::{Procedure, Procedures, Reply};
use crate::apply::note_auto_increment;
use crate::commit::CommitTicket;
use crate::engine::Engine;
use crate::error::{EngineError, Result, malformed};
use crate::redo::{self, CallRecord, Inputs, Op};
use crate::txn::{Freshness, Isolation, Txn, TxnOptions};

impl Engine {
    pub fn procedures(&self) -> &Procedures {
        &self.options.procedures
    }

    /// A procedure by its name.
    ///
    /// # Errors
    /// [`EngineError::NoSuchProcedure`]
    pub fn procedure(&self, database: &str, name: &str) -> Result<&Arc<Procedure>> {
        let found = self.options.procedures.find(database, name);
        found.ok_or_else(|| EngineError::NoSuchProcedure(format!("{database}.{name}")))
    }

    /// Calls a procedure as a transaction of its own; returns its reply when all is durable.
    ///
    /// # Errors
    /// The procedure's own; those of finding it and of converting the arguments; those of the commit. Nothing of the call
    /// stays then. Errors of kind `Retry` call for another try.
    pub fn call(self: &Arc<Self>, database: &str, name: &str, arguments: &[Value]) -> Result<Reply> {
        let procedure = self.procedure(database, name)?;
        let arguments = procedure.convert(arguments)?;
        let mut reply = Reply::default();
        match self.start_call(procedure, &arguments, TxnOptions::default(), &mut reply) {
            Ok(ticket) => ticket.wait().map(|()| reply),
            Err(e) => {
                // What the error tells of may not be durable yet.
                self.all_logged().wait()?;
                Err(e)
            }
        }
    }

    /// Calls a procedure as a transaction of its own, with arguments of its parameters' types. The reply may be shown to
    /// others when the ticket is done; meanwhile this thread can go on with the next call.
    pub fn start_call(
        self: &Arc<Self>,
        procedure: &Procedure,
        arguments: &[Value],
        options: TxnOptions,
        reply: &mut Reply,
    ) -> Result<CommitTicket> {
        let mut txn = self.begin_call(procedure, arguments, options);
        procedure.run(&mut txn, arguments, reply)?;
        txn.commit()
    }

    /// Done when everything that is logged by now is durable, or what the engine's durability is content with.
    pub fn all_logged(&self) -> CommitTicket {
        self.pipeline.all_so_far(self.pipeline.last_logged(), self.options.durability)
    }

    /// Begins the transaction of a call. It sees what is logged, so its reply, an error too, may rest on what is not durable
    /// yet: the reply is to be kept until the commit's ticket is done.
    pub fn begin_call(
        self: &Arc<Self>,
        procedure: &Procedure,
        arguments: &[Value],
        options: TxnOptions,
    ) -> Txn {
        let options = TxnOptions { freshness: Freshness::Logged, ..options };
        match procedure.is_deterministic() && !options.read_only {
            true => begin(self, procedure, arguments, options),
            false => self.begin(options),
        }
    }
}

/// Begins the transaction of a call, when no other one runs.
fn begin(engine: &Arc<Engine>, procedure: &Procedure, arguments: &[Value], options: TxnOptions) -> Txn {
    let mut head = Vec::with_capacity(128);
    redo::put_head(procedure.database(), procedure.name(), arguments, &mut head);
    let permit = Some(CallPermit::take(engine.call_gate.clone(), &engine.wait_hook()));
    // Before the snapshot: what the catalog has by then is older.
    let catalog_version = engine.catalog_version();
    let mut txn = engine.begin(options);
    let snapshot = txn.snapshot_ts();
    let mode = Mode::Record { head, snapshot, catalog_version, met_others: false, permit };
    txn.set_logical(Logical { mode, inputs: Inputs::default() });
    txn
}

/// Recovery: runs a logged call again; it is committed at `ts`.
pub(crate) fn run_again(engine: &Arc<Engine>, record: CallRecord, ts: Timestamp) -> Result<()> {
    let CallRecord { database, procedure: name, arguments, inputs, crc } = record;
    let full_name = format!("{database}.{name}");
    let Some(procedure) = engine.procedures().find(&database, &name) else {
        return Err(EngineError::NotRegistered(full_name));
    };
    let not_reproduced = |why: String| EngineError::NotReproduced { procedure: full_name.clone(), why };
    let arguments = procedure.convert(&arguments).map_err(|e| not_reproduced(e.to_string()))?;
    let options = TxnOptions {
        isolation: Isolation::RepeatableRead,
        freshness: Freshness::Logged,
        ..TxnOptions::default()
    };
    let mut txn = Txn::begin(engine, options);
    txn.set_logical(Logical { mode: Mode::Replay { strays: false, crc }, inputs });
    let ran = procedure.run(&mut txn, &arguments, &mut Reply::default());
    let reproduced = txn.logical().is_some_and(|logical| logical.is_reproduced(txn.operations()));
    match ran {
        Err(EngineError::Storage(e)) => return Err(EngineError::Storage(e)),
        Err(why) => return Err(not_reproduced(why.to_string())),
        Ok(()) if !reproduced => return Err(not_reproduced("it came to other changes".into())),
        Ok(()) => {}
    }
    for op in redo::ops(txn.operations()) {
        if let Op::Insert { table, image, .. } = op.map_err(malformed("redo operation"))?
            && let Some(table) = engine.catalog().table_by_id(table)
        {
            note_auto_increment(table, image)?;
        }
    }
    txn.commit_again(ts);
    Ok(())
}
