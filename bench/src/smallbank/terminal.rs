//! One client of SmallBank: its statements, and the mix of its six transactions (15 % each, SendPayment 25 %).
//!
//! What a transaction writes from what it has read, it reads with a lock, so that the answers are right on every database at
//! its default isolation level. Customers are looked up by name.

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Row, Statement};

use crate::error::{Error, Result};
use crate::oltp::driver::{self, Terminal};
use crate::random::Random;
use crate::value::{cents, int, units};

pub const KINDS: [&str; 6] =
    ["Balance", "Deposit-Checking", "Transact-Savings", "Amalgamate", "Write-Check", "Send-Payment"];
/// How many of 100 transactions go to the hot customers.
const TO_THE_HOT: i64 = 90;
/// What an overdrawn check costs on top.
const PENALTY: i64 = 100;

pub fn name_of(customer: i64) -> String {
    format!("{customer:064}")
}

/// Cents that came in less those that went out, as far as it was acknowledged.
#[derive(Default)]
pub struct Books {
    pub paid_in: i64,
}

impl driver::Books for Books {
    fn add(&mut self, other: Books) {
        self.paid_in += other.paid_in;
    }
}

struct Statements {
    customer: Statement,
    savings: Statement,
    checking: Statement,
    lock_savings: Statement,
    lock_checking: Statement,
    add_to_savings: Statement,
    add_to_checking: Statement,
    set_savings: Statement,
    set_checking: Statement,
}

impl Statements {
    fn prepare(conn: &mut Conn) -> Result<Statements> {
        Ok(Statements {
            customer: conn.prep("SELECT custid FROM accounts WHERE name = ?")?,
            savings: conn.prep("SELECT bal FROM savings WHERE custid = ?")?,
            checking: conn.prep("SELECT bal FROM checking WHERE custid = ?")?,
            lock_savings: conn.prep("SELECT bal FROM savings WHERE custid = ? FOR UPDATE")?,
            lock_checking: conn.prep("SELECT bal FROM checking WHERE custid = ? FOR UPDATE")?,
            add_to_savings: conn.prep("UPDATE savings SET bal = bal + ? WHERE custid = ?")?,
            add_to_checking: conn.prep("UPDATE checking SET bal = bal + ? WHERE custid = ?")?,
            set_savings: conn.prep("UPDATE savings SET bal = ? WHERE custid = ?")?,
            set_checking: conn.prep("UPDATE checking SET bal = ? WHERE custid = ?")?,
        })
    }
}

pub struct SmallBankTerminal {
    conn: Conn,
    statements: Statements,
    random: Random,
    customers: i64,
    hot: i64,
    kind: usize,
    /// Two different customers; most transactions take the first alone.
    who: [i64; 2],
    paid_in: i64,
}

impl SmallBankTerminal {
    pub fn connect(options: OptsBuilder, customers: i64, hot: i64, seed: u64) -> Result<SmallBankTerminal> {
        let mut conn = Conn::new(options)?;
        let statements = Statements::prepare(&mut conn)?;
        let random = Random::new(seed);
        Ok(SmallBankTerminal { conn, statements, random, customers, hot, kind: 0, who: [1, 2], paid_in: 0 })
    }

    /// Finds a customer by name.
    fn customer(&mut self, which: usize) -> Result<i64> {
        let wanted = self.who[which];
        let row: Option<Row> = self.conn.exec_first(&self.statements.customer, (name_of(wanted),))?;
        match row.map(|row| int(&row, 0)).transpose()? {
            Some(found) if found == wanted => Ok(found),
            other => Err(Error::Check(format!("customer {wanted} was found as {other:?}"))),
        }
    }

    fn balance(&mut self, of: fn(&Statements) -> &Statement, customer: i64) -> Result<i64> {
        let row: Option<Row> = self.conn.exec_first(of(&self.statements), (customer,))?;
        let balance = row.map(|row| units(&row, 0, 2)).transpose()?.flatten();
        balance.ok_or_else(|| Error::Check(format!("customer {customer} lacks an account")))
    }

    /// Changes one account. An amount of nothing changes no row, nor needs to.
    fn change(&mut self, how: fn(&Statements) -> &Statement, amount: i64, customer: i64) -> Result<()> {
        Ok(self.conn.exec_drop(how(&self.statements), (cents(amount), customer))?)
    }

    /// The total of a customer's accounts.
    fn show_balance(&mut self) -> Result<i64> {
        let customer = self.customer(0)?;
        self.balance(|s| &s.savings, customer)?;
        self.balance(|s| &s.checking, customer)?;
        Ok(0)
    }

    fn deposit_checking(&mut self) -> Result<i64> {
        let customer = self.customer(0)?;
        self.change(|s| &s.add_to_checking, 130, customer)?;
        Ok(130)
    }

    fn transact_savings(&mut self) -> Result<i64> {
        let customer = self.customer(0)?;
        self.change(|s| &s.add_to_savings, 2_020, customer)?;
        Ok(2_020)
    }

    /// Moves all that a customer has to another's checking account.
    fn amalgamate(&mut self) -> Result<i64> {
        let (from, to) = (self.customer(0)?, self.customer(1)?);
        let savings = self.balance(|s| &s.lock_savings, from)?;
        let checking = self.balance(|s| &s.lock_checking, from)?;
        self.change(|s| &s.set_savings, 0, from)?;
        self.change(|s| &s.set_checking, 0, from)?;
        self.change(|s| &s.add_to_checking, savings + checking, to)?;
        Ok(0)
    }

    /// Cashes a check, at a penalty if the customer's accounts together do not cover it.
    fn write_check(&mut self) -> Result<i64> {
        let customer = self.customer(0)?;
        let savings = self.balance(|s| &s.lock_savings, customer)?;
        let checking = self.balance(|s| &s.lock_checking, customer)?;
        let amount = 500;
        let taken = if savings + checking < amount { amount + PENALTY } else { amount };
        self.change(|s| &s.add_to_checking, -taken, customer)?;
        Ok(-taken)
    }

    /// Pays from one checking account to another, if it has enough.
    fn send_payment(&mut self) -> Result<i64> {
        let (from, to) = (self.customer(0)?, self.customer(1)?);
        let amount = 500;
        if self.balance(|s| &s.lock_checking, from)? >= amount {
            self.change(|s| &s.add_to_checking, -amount, from)?;
            self.change(|s| &s.add_to_checking, amount, to)?;
        }
        Ok(0)
    }

    /// A customer, hot or not, other than `but`.
    fn draw_customer(&mut self, hot: bool, but: i64) -> i64 {
        let limit = if hot { self.hot } else { self.customers };
        loop {
            let customer = self.random.uniform(1, limit);
            if customer != but {
                return customer;
            }
        }
    }
}

impl Terminal for SmallBankTerminal {
    type Error = Error;
    type Books = Books;

    fn draw(&mut self) -> usize {
        let hot = self.random.percent(TO_THE_HOT);
        let first = self.draw_customer(hot, 0);
        self.who = [first, self.draw_customer(hot, first)];
        self.kind = match self.random.uniform(1, 100) {
            1..=15 => 0,
            16..=30 => 1,
            31..=45 => 2,
            46..=60 => 3,
            61..=75 => 4,
            _ => 5,
        };
        self.kind
    }

    fn attempt(&mut self) -> Result<()> {
        self.conn.query_drop("START TRANSACTION")?;
        let paid_in = match self.kind {
            0 => self.show_balance(),
            1 => self.deposit_checking(),
            2 => self.transact_savings(),
            3 => self.amalgamate(),
            4 => self.write_check(),
            _ => self.send_payment(),
        }?;
        self.conn.query_drop("COMMIT")?;
        self.paid_in += paid_in;
        Ok(())
    }

    fn rollback(&mut self) -> Result<()> {
        Ok(self.conn.query_drop("ROLLBACK")?)
    }

    fn into_books(self) -> Books {
        Books { paid_in: self.paid_in }
    }
}
