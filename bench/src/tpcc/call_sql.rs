//! TPC-C over the protocol by calls of procedures: a prepared CALL for each transaction.

use avocet_types::Datum;
use clap::ValueEnum;
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Params, Row, Statement, Value};

use super::calls::{self, Logging};
use super::driver::Runner;
use super::sets::Sets;
use super::sql::SqlOps;
use super::transactions::{Kind, Outcome, Transaction};
use crate::error::{Error, Result};
use crate::value::int;

/// What SIGNAL SQLSTATE '45000' is reported as.
const SIGNAL: u16 = 1644;

pub struct Calls {
    conn: Conn,
    /// By `Kind`.
    calls: Vec<Statement>,
}

impl Calls {
    pub fn connect(options: OptsBuilder, logging: Logging) -> Result<Calls> {
        let mut conn = Conn::new(options)?;
        let mut calls = Vec::new();
        for kind in Kind::ALL {
            let marks = vec!["?"; calls::parameters(kind).len()].join(", ");
            calls.push(conn.prep(format!("CALL {}({marks})", calls::name(kind, logging)))?);
        }
        Ok(Calls { conn, calls })
    }
}

fn parameter(value: Datum<'_>) -> Value {
    match value {
        Datum::Int(v) => Value::Int(v),
        Datum::Str(v) => Value::Bytes(v.into_owned().into_bytes()),
        _ => Value::NULL,
    }
}

impl Runner for Calls {
    type Error = Error;

    fn run(&mut self, transaction: &Transaction) -> Result<Outcome> {
        let arguments = calls::arguments(transaction).into_iter().map(parameter).collect();
        let call = &self.calls[transaction.kind() as usize];
        let rows: Vec<Row> = match self.conn.exec(call, Params::Positional(arguments)) {
            Ok(rows) => rows,
            Err(mysql::Error::MySqlError(e)) if e.code == SIGNAL => return Ok(Outcome::RolledBack),
            Err(e) => return Err(e.into()),
        };
        let orders: Vec<_> =
            rows.iter().map(|row| Ok([int(row, 0)?, int(row, 1)?])).collect::<Result<_>>()?;
        Ok(calls::outcome(transaction, orders))
    }

    fn roll_back(&mut self) -> Result<()> {
        Ok(())
    }
}

/// How a terminal talks to a server.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, ValueEnum)]
pub enum Style {
    /// A statement for each row, as TPC-C's description has it
    #[default]
    Rows,
    /// A statement for a set of rows: lists and row constructors
    Sets,
}

/// A client that sends statements, or calls.
pub enum Client {
    Statements(Box<SqlOps>),
    Sets(Box<Sets>),
    Calls(Calls),
}

impl Client {
    /// Connects; calls procedures that are logged so, if any, and else sends statements of that style.
    pub fn connect(options: OptsBuilder, style: Style, procedures: Option<Logging>) -> Result<Client> {
        Ok(match procedures {
            None if style == Style::Sets => Client::Sets(Box::new(Sets::connect(options)?)),
            None => Client::Statements(Box::new(SqlOps::connect(options)?)),
            Some(logging) => Client::Calls(Calls::connect(options, logging)?),
        })
    }
}

impl Runner for Client {
    type Error = Error;

    fn run(&mut self, transaction: &Transaction) -> Result<Outcome> {
        match self {
            Client::Statements(ops) => Runner::run(&mut **ops, transaction),
            Client::Sets(sets) => sets.run(transaction),
            Client::Calls(calls) => calls.run(transaction),
        }
    }

    fn roll_back(&mut self) -> Result<()> {
        match self {
            Client::Statements(ops) => Runner::roll_back(&mut **ops),
            Client::Sets(sets) => sets.roll_back(),
            Client::Calls(calls) => calls.roll_back(),
        }
    }
}
