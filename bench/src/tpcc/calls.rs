//! TPC-C's transactions as calls of procedures: their parameters, a transaction's inputs as arguments and back, and what
//! a call returns. The same for calls in process and over the protocol.

use avocet_types::{Collation, Datum, SqlType, Value};

use super::ops::{CustomerKey, OrderKey};
use super::transactions::*;

/// What the log has of calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Logging {
    /// The rows that they change
    Rows,
    /// Their names and arguments
    Calls,
}

impl Logging {
    pub const ALL: [Logging; 2] = [Logging::Rows, Logging::Calls];
}

/// What the procedure of a kind of transaction is called.
pub fn name(kind: Kind, logging: Logging) -> String {
    let name = Kind::NAMES[kind as usize].to_lowercase().replace('-', "_");
    match logging {
        Logging::Rows => name,
        Logging::Calls => format!("{name}_by_call"),
    }
}

const fn text(len: u32) -> SqlType {
    SqlType::VarChar { len, collation: Collation::UTF8MB4_BIN }
}

const ID: SqlType = SqlType::BIGINT;
/// Microseconds since 1970.
const TIME: SqlType = SqlType::BIGINT;
/// `item:warehouse:quantity`, with commas between them.
const LINES: SqlType = text(600);
const LAST_NAME: SqlType = text(16);

/// A customer is named by number or, if that is NULL, by last name. Amounts are in cents.
pub fn parameters(kind: Kind) -> &'static [(&'static str, SqlType)] {
    match kind {
        Kind::NewOrder => {
            &[("warehouse", ID), ("district", ID), ("customer", ID), ("entry", TIME), ("order_lines", LINES)]
        }
        Kind::Payment => &[
            ("warehouse", ID),
            ("district", ID),
            ("customer_warehouse", ID),
            ("customer_district", ID),
            ("customer", ID),
            ("last_name", LAST_NAME),
            ("amount", SqlType::BIGINT),
            ("paid", TIME),
        ],
        Kind::OrderStatus => {
            &[("warehouse", ID), ("district", ID), ("customer", ID), ("last_name", LAST_NAME)]
        }
        Kind::Delivery => &[("warehouse", ID), ("carrier", ID), ("delivered", TIME)],
        Kind::StockLevel => &[("warehouse", ID), ("district", ID), ("threshold", SqlType::BIGINT)],
    }
}

/// The columns of what a call returns: orders that were made or delivered.
pub const RESULT: [(&str, SqlType); 2] = [("district", ID), ("order_number", ID)];

impl Who {
    fn arguments(&self) -> [Value; 2] {
        match self {
            Who::Number(number) => [Datum::Int(*number), Datum::Null],
            Who::Last(last) => [Datum::Null, Datum::Str(last.clone().into())],
        }
    }

    fn from_arguments(arguments: &[Value]) -> Option<Who> {
        match arguments {
            [Datum::Int(number), _] => Some(Who::Number(*number)),
            [_, Datum::Str(last)] => Some(Who::Last(last.clone().into_owned())),
            _ => None,
        }
    }
}

/// The arguments of a transaction's call.
pub fn arguments(transaction: &Transaction) -> Vec<Value> {
    let ints = |values: &[i64]| -> Vec<Value> { values.iter().map(|v| Datum::Int(*v)).collect() };
    match transaction {
        Transaction::NewOrder(t) => {
            let CustomerKey { warehouse, district, customer } = t.customer;
            let mut arguments = ints(&[warehouse, district, customer, t.entry]);
            arguments.push(Datum::Str(lines_text(&t.lines).into()));
            arguments
        }
        Transaction::Payment(t) => {
            let mut arguments = ints(&[t.warehouse, t.district, t.customer_warehouse, t.customer_district]);
            arguments.extend(t.who.arguments());
            arguments.extend(ints(&[t.amount, t.when]));
            arguments
        }
        Transaction::OrderStatus(t) => {
            let mut arguments = ints(&[t.warehouse, t.district]);
            arguments.extend(t.who.arguments());
            arguments
        }
        Transaction::Delivery(t) => ints(&[t.warehouse, t.carrier, t.when]),
        Transaction::StockLevel(t) => ints(&[t.warehouse, t.district, t.threshold]),
    }
}

/// The transaction that a call asks for; none if the arguments are not what they should be.
pub fn transaction(kind: Kind, arguments: &[Value]) -> Option<Transaction> {
    let int = |at: usize| match arguments.get(at) {
        Some(Datum::Int(v)) => Some(*v),
        _ => None,
    };
    Some(match kind {
        Kind::NewOrder => {
            let Some(Datum::Str(lines)) = arguments.get(4) else { return None };
            let customer = CustomerKey { warehouse: int(0)?, district: int(1)?, customer: int(2)? };
            Transaction::NewOrder(NewOrder { customer, entry: int(3)?, lines: read_lines(lines)? })
        }
        Kind::Payment => Transaction::Payment(Payment {
            warehouse: int(0)?,
            district: int(1)?,
            customer_warehouse: int(2)?,
            customer_district: int(3)?,
            who: Who::from_arguments(arguments.get(4..6)?)?,
            amount: int(6)?,
            when: int(7)?,
        }),
        Kind::OrderStatus => Transaction::OrderStatus(OrderStatus {
            warehouse: int(0)?,
            district: int(1)?,
            who: Who::from_arguments(arguments.get(2..4)?)?,
        }),
        Kind::Delivery => {
            Transaction::Delivery(Delivery { warehouse: int(0)?, carrier: int(1)?, when: int(2)? })
        }
        Kind::StockLevel => {
            Transaction::StockLevel(StockLevel { warehouse: int(0)?, district: int(1)?, threshold: int(2)? })
        }
    })
}

fn lines_text(lines: &[Wanted]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(16 * lines.len());
    for Wanted { item, supply_warehouse, quantity } in lines {
        let comma = if text.is_empty() { "" } else { "," };
        // Writing to a string does not fail.
        let _ = write!(text, "{comma}{item}:{supply_warehouse}:{quantity}");
    }
    text
}

fn read_lines(text: &str) -> Option<Vec<Wanted>> {
    let line = |text: &str| {
        let mut numbers = text.splitn(3, ':').map(|number| number.parse().ok());
        Some(Wanted {
            item: numbers.next()??,
            supply_warehouse: numbers.next()??,
            quantity: numbers.next()??,
        })
    };
    text.split(',').map(line).collect()
}

/// What a committed call came to, of which these rows were returned.
pub fn outcome(transaction: &Transaction, rows: impl IntoIterator<Item = [i64; 2]>) -> Outcome {
    let mut rows = rows.into_iter();
    match transaction {
        Transaction::NewOrder(t) => match rows.next() {
            Some([district, order]) => {
                Outcome::Ordered(OrderKey { warehouse: t.customer.warehouse, district, order })
            }
            None => Outcome::RolledBack,
        },
        Transaction::Payment(t) => Outcome::Paid { warehouse: t.warehouse, amount: t.amount },
        Transaction::Delivery(t) => {
            let key = |[district, order]: [i64; 2]| OrderKey { warehouse: t.warehouse, district, order };
            Outcome::Delivered(rows.map(key).collect())
        }
        Transaction::OrderStatus(_) | Transaction::StockLevel(_) => Outcome::Read,
    }
}

#[cfg(test)]
mod tests {
    use super::super::schema::Scale;
    use super::*;

    #[test]
    fn arguments_make_the_same_transaction_again() {
        let mut inputs = Inputs::new(Scale::full(2), 1, 7);
        for _ in 0..200 {
            let (kind, drawn) = inputs.draw(1_700_000_000_000_000);
            let arguments = arguments(&drawn);
            assert_eq!(arguments.len(), parameters(kind).len());
            let again = transaction(kind, &arguments).expect("its own arguments");
            assert_eq!(format!("{drawn:?}"), format!("{again:?}"));
            assert!(transaction(kind, &arguments[1..]).is_none());
        }
    }
}
