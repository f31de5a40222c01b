//! What a TPC-C transaction asks of a database, step by step: one method for each access that clause 2 of the specification
//! names. The transaction code (`transactions`) is written once over this trait; `sql` answers it with prepared statements over
//! the MySQL protocol, and an implementation over the engine's API answers it in process, so both run the very same logic.
//!
//! A terminal displays more than the logic needs (names, quantities). These columns are fetched and decoded like any
//! others; they end in `Shown`, which stands for the screen.
//!
//! Money is in cents, taxes and discounts in ten-thousandths: exact in integers, and DECIMAL in the database.

use serde::{Deserialize, Serialize};

use super::transactions::Wanted;
pub use crate::oltp::driver::OpsError;

/// Money in cents.
pub type Cents = i64;

/// A rate in ten-thousandths (`0.0725` is 725).
pub type Rate = i64;

/// Microseconds since 1970, UTC.
pub type Micros = i64;

/// A customer's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CustomerKey {
    pub warehouse: i64,
    pub district: i64,
    pub customer: i64,
}

/// An order's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OrderKey {
    pub warehouse: i64,
    pub district: i64,
    pub order: i64,
}

/// What is displayed and not used otherwise.
#[derive(Debug, Default)]
pub struct Shown(#[expect(dead_code, reason = "a terminal's screen")] pub Vec<String>);

/// What New-Order reads of the customer and its warehouse.
#[derive(Debug)]
pub struct Buyer {
    pub discount: Rate,
    pub warehouse_tax: Rate,
    /// C_LAST, C_CREDIT
    pub shown: Shown,
}

/// Goods that an order line takes from stock.
pub struct Taking {
    pub warehouse: i64,
    pub item: i64,
    /// The order's: S_DIST_xx of it goes on the line.
    pub district: i64,
    pub quantity: i64,
    /// From another warehouse than the order's.
    pub remote: bool,
}

/// Clause 2.4.2.2: what is in stock after a sale; fewer than ten left means that more was ordered.
pub fn stock_after(quantity: i64, sold: i64) -> i64 {
    let left = quantity - sold;
    if left >= 10 { left } else { left + 91 }
}

/// Whether I_DATA or S_DATA says that the goods are of a brand.
pub fn is_original(data: &str) -> bool {
    data.contains("ORIGINAL")
}

/// What New-Order reads of an item.
#[derive(Debug)]
pub struct Item {
    pub price: Cents,
    /// I_DATA contains "ORIGINAL".
    pub original: bool,
    /// I_NAME
    pub shown: Shown,
}

/// A row of ORDERS as New-Order inserts it.
pub struct NewOrderRow {
    pub key: OrderKey,
    pub customer: i64,
    pub entry: Micros,
    pub line_count: i64,
    pub all_local: bool,
}

/// A row of ORDER_LINE as New-Order inserts it.
pub struct NewLine<'a> {
    pub order: OrderKey,
    pub number: i64,
    pub item: i64,
    pub supply_warehouse: i64,
    pub quantity: i64,
    pub amount: Cents,
    pub district_info: &'a str,
}

/// A payment as the customer's row takes it in.
pub struct PaymentNote {
    pub warehouse: i64,
    pub district: i64,
    pub customer: CustomerKey,
    pub amount: Cents,
}

impl PaymentNote {
    /// C_DATA of a customer with bad credit: the payment written in front, cut to 500 characters (clause 2.5.2.2).
    pub fn bad_credit(&self, old: &str) -> String {
        let CustomerKey { warehouse, district, customer } = self.customer;
        let (whole, cents) = (self.amount / 100, self.amount % 100);
        let mut data = format!(
            "{customer} {district} {warehouse} {} {} {whole}.{cents:02}|{old}",
            self.district, self.warehouse
        );
        data.truncate(500);
        data
    }
}

/// A row of HISTORY.
pub struct Paid<'a> {
    pub customer: CustomerKey,
    pub warehouse: i64,
    pub district: i64,
    pub when: Micros,
    pub amount: Cents,
    pub data: &'a str,
}

/// The steps of all five transactions. Every method works inside the transaction that `begin` opened.
pub trait TpccOps {
    type Error: OpsError;

    fn begin(&mut self) -> Result<(), Self::Error>;
    /// Returns when the commit is durable.
    fn commit(&mut self) -> Result<(), Self::Error>;
    fn rollback(&mut self) -> Result<(), Self::Error>;

    // New-Order, 2.4.2.2
    fn buyer(&mut self, customer: CustomerKey) -> Result<Buyer, Self::Error>;
    /// Takes the next order number of a district and returns it with the district's tax.
    fn take_order_number(&mut self, warehouse: i64, district: i64) -> Result<(i64, Rate), Self::Error>;
    fn insert_order(&mut self, order: &NewOrderRow) -> Result<(), Self::Error>;
    fn insert_new_order(&mut self, order: OrderKey) -> Result<(), Self::Error>;
    /// Tells which items and stocks the following steps need.
    fn look_ahead(&mut self, _lines: &[Wanted]) {}
    /// None for the unused item number that makes 1 % of the orders roll back.
    fn item(&mut self, item: i64) -> Result<Option<Item>, Self::Error>;
    /// Takes the goods (`stock_after`), adds to S_YTD and the counts, and replaces `district_info` by S_DIST_xx. Whether
    /// S_DATA says that they are of a brand.
    fn take_from_stock(&mut self, taking: &Taking, district_info: &mut String) -> Result<bool, Self::Error>;
    fn insert_line(&mut self, line: &NewLine<'_>) -> Result<(), Self::Error>;

    // Payment, 2.5.2.2
    /// Adds to W_YTD and returns W_NAME.
    fn pay_warehouse(&mut self, warehouse: i64, amount: Cents) -> Result<String, Self::Error>;
    /// Adds to D_YTD and returns D_NAME.
    fn pay_district(&mut self, warehouse: i64, district: i64, amount: Cents) -> Result<String, Self::Error>;
    /// The customers of that last name in the order of their first names.
    fn customers_by_last(
        &mut self,
        warehouse: i64,
        district: i64,
        last: &str,
    ) -> Result<Vec<i64>, Self::Error>;
    /// Takes the amount from C_BALANCE, adds it to C_YTD_PAYMENT, counts the payment, and notes it in C_DATA if the
    /// customer's credit is bad. C_FIRST, C_LAST, C_BALANCE.
    fn pay_customer(&mut self, payment: &PaymentNote) -> Result<Shown, Self::Error>;
    fn insert_history(&mut self, paid: &Paid<'_>) -> Result<(), Self::Error>;

    // Order-Status, 2.6.2.2
    /// C_BALANCE and the customer's names.
    fn show_customer(&mut self, customer: CustomerKey) -> Result<Shown, Self::Error>;
    /// The customer's newest order and how many lines it says it has.
    fn newest_order(&mut self, customer: CustomerKey) -> Result<Option<(i64, i64)>, Self::Error>;
    /// Item, warehouse, quantity, amount and delivery date of an order's lines.
    fn show_lines(&mut self, order: OrderKey) -> Result<Vec<Shown>, Self::Error>;

    // Delivery, 2.7.4.2
    /// Deletes the oldest row of a district in NEW-ORDER and returns its order's number.
    fn take_oldest_new_order(&mut self, warehouse: i64, district: i64) -> Result<Option<i64>, Self::Error>;
    /// Sets O_CARRIER_ID and returns O_C_ID.
    fn set_carrier(&mut self, order: OrderKey, carrier: i64) -> Result<i64, Self::Error>;
    /// Sets OL_DELIVERY_D of the order's lines and returns the sum of OL_AMOUNT.
    fn deliver_lines(&mut self, order: OrderKey, when: Micros) -> Result<Cents, Self::Error>;
    /// Adds to C_BALANCE and counts the delivery.
    fn credit_customer(&mut self, customer: CustomerKey, amount: Cents) -> Result<(), Self::Error>;

    // Stock-Level, 2.8.2.2
    fn next_order_number(&mut self, warehouse: i64, district: i64) -> Result<i64, Self::Error>;
    /// Distinct items below the threshold in the lines of orders `next - 20 .. next`.
    fn low_stock(
        &mut self,
        warehouse: i64,
        district: i64,
        next: i64,
        threshold: i64,
    ) -> Result<i64, Self::Error>;
}
