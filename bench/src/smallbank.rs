//! SmallBank: `bench/run smallbank`. Customers with a savings and a checking account each, and six short transactions on them
//! (Alomari et al., "The cost of serializability on platforms that use snapshot isolation", ICDE 2008; SendPayment is
//! H-Store's). Nine of ten transactions go to the hot customers.
//!
//! Money is conserved: after each run, the accounts' total has changed by exactly what the terminals know to have been paid
//! in and out.

mod terminal;

use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Row};

use crate::contest::Contest;
use crate::error::{Error, Result};
use crate::finding::Finding;
use crate::insert::{self, Inserter};
use crate::oltp::driver::Plan;
use crate::oltp::{self, Workload};
use crate::options::{Common, Pace};
use crate::progress;
use crate::random::Random;
use crate::report::Report;
use crate::rival::Server;
use crate::value::{decimal_text, int, units};
use terminal::{Books, SmallBankTerminal};

const DATABASE: &str = "smallbank";
const ROWS_OF_A_PIECE: i64 = 10_000;
const CREATE: [&str; 3] = [
    "CREATE TABLE accounts (custid BIGINT NOT NULL, name VARCHAR(64) NOT NULL, PRIMARY KEY (custid), UNIQUE KEY (name))
     DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
    "CREATE TABLE savings (custid BIGINT NOT NULL, bal DECIMAL(14,2) NOT NULL, PRIMARY KEY (custid))",
    "CREATE TABLE checking (custid BIGINT NOT NULL, bal DECIMAL(14,2) NOT NULL, PRIMARY KEY (custid))",
];

#[derive(Args, Clone)]
pub struct Options {
    /// Customers
    #[arg(long, default_value_t = 100_000)]
    customers: i64,
    /// How many of them are hot
    #[arg(long, default_value_t = 1_000)]
    hot: i64,
    #[command(flatten)]
    pace: Pace,
    #[command(flatten)]
    common: Common,
}

/// What there is of customers and money, in cents.
pub struct Bank {
    customers: i64,
    total: i64,
}

impl Bank {
    fn take(options: &OptsBuilder) -> Result<Bank> {
        let mut conn = Conn::new(options.clone())?;
        let mut one = |sql: &str| -> Result<Row> {
            conn.query_first(sql)?.ok_or_else(|| Error::Check(format!("no row from {sql}")))
        };
        let savings = units(&one("SELECT SUM(bal) FROM savings")?, 0, 2)?.unwrap_or(0);
        let checking = units(&one("SELECT SUM(bal) FROM checking")?, 0, 2)?.unwrap_or(0);
        let both = "SELECT COUNT(*) FROM accounts JOIN savings USING (custid) JOIN checking USING (custid)";
        Ok(Bank { customers: int(&one(both)?, 0)?, total: savings + checking })
    }
}

/// Connection options with SmallBank's database in use.
fn options(server: &Server) -> OptsBuilder {
    server.options().db_name(Some(DATABASE))
}

fn load(server: &Server, customers: i64) -> Result<Bank> {
    let mut conn = Conn::new(server.options())?;
    conn.query_drop(format!("DROP DATABASE IF EXISTS {DATABASE}"))?;
    conn.query_drop(format!("CREATE DATABASE {DATABASE}"))?;
    conn.query_drop(format!("USE {DATABASE}"))?;
    CREATE.iter().try_for_each(|sql| conn.query_drop(sql))?;
    let done = AtomicU64::new(0);
    let pieces = (1..=customers).step_by(ROWS_OF_A_PIECE as usize);
    progress::rows(&format!("loading {}", server.name()), customers as u64, &done, || {
        insert::in_pieces(&options(server), 2, pieces, |conn, first| {
            let last = customers.min(first + ROWS_OF_A_PIECE - 1);
            load_piece(conn, first, last)?;
            done.fetch_add((last - first + 1) as u64, Ordering::Relaxed);
            Ok(())
        })
    })?;
    Bank::take(&options(server))
}

/// Balances between 100 and 500, as in H-Store's.
fn load_piece(conn: &mut Conn, first: i64, last: i64) -> Result<()> {
    let mut random = Random::new(first as u64);
    let mut rows = Inserter::new(conn, "accounts");
    for customer in first..=last {
        rows.row(|sql| sql.push_str(&format!("{customer},'{}'", terminal::name_of(customer))))?;
    }
    rows.finish()?;
    for table in ["savings", "checking"] {
        let mut rows = Inserter::new(conn, table);
        for customer in first..=last {
            let balance = decimal_text(random.uniform(10_000, 50_000), 2);
            rows.row(|sql| sql.push_str(&format!("{customer},{balance}")))?;
        }
        rows.finish()?;
    }
    Ok(())
}

impl Workload for Options {
    type Terminal = SmallBankTerminal;
    type State = Bank;

    fn name(&self) -> &str {
        "smallbank"
    }

    fn kinds(&self) -> &'static [&'static str] {
        &terminal::KINDS
    }

    fn connect(&self, server: &Server, _: &Bank, plan: &Plan) -> Result<Vec<SmallBankTerminal>> {
        let one = |n: usize| {
            let seed = plan.seed + n as u64;
            SmallBankTerminal::connect(options(server), self.customers, self.hot, seed)
        };
        (0..plan.terminals).map(one).collect()
    }

    fn check(&self, server: &Server, before: &mut Bank, books: Books) -> Result<Vec<Finding>> {
        let now = Bank::take(&options(server))?;
        let wanted = before.total + books.paid_in;
        let findings = vec![
            Finding::new(
                format!("money is conserved, with {} paid in", decimal_text(books.paid_in, 2)),
                now.total == wanted,
                || format!("there is {}, not {}", decimal_text(now.total, 2), decimal_text(wanted, 2)),
            ),
            Finding::new("every customer has both accounts", now.customers == self.customers, || {
                format!("{} of {} have", now.customers, self.customers)
            }),
        ];
        *before = now;
        Ok(findings)
    }
}

/// `bench/run smallbank`.
pub fn command(options: &Options) -> Result<()> {
    if !(2..=options.customers).contains(&options.hot) {
        return Err(Error::Setup("--hot is at least 2 and at most --customers".into()));
    }
    let contest = Contest::start(&options.common)?;
    let mut banks =
        contest.servers().map(|server| load(server, options.customers)).collect::<Result<Vec<_>>>()?;
    let mut report = Report::new("smallbank", options.common.rival);
    let holds = oltp::rounds(options, &contest, &mut banks, &options.pace, &options.common, &mut report)?;
    report.publish(options.common.json.as_deref())?;
    oltp::verdict(holds)
}
