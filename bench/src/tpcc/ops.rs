//! What a TPC-C transaction asks of a database, step by step: one method for each access that clause 2 of the specification
//! names. The transaction code (`transactions`) is written once over this trait; `sql` answers it with prepared statements over
//! the MySQL protocol, and an implementation over the engine's API answers it in process, so both run the very same logic.
//!
//! A terminal displays more than the logic needs (names, quantities). These columns are fetched and decoded like any
//! others; they end in `Shown`, which stands for the screen.
//!
//! Money is in cents, taxes and discounts in ten-thousandths: exact in integers, and DECIMAL in the database.

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
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

/// What New-Order reads of a stock row.
#[derive(Debug)]
pub struct Stock {
    pub quantity: i64,
    pub ytd: i64,
    pub order_count: i64,
    pub remote_count: i64,
    /// S_DIST_xx of the order's district.
    pub district_info: String,
    pub data: String,
}

/// What New-Order reads of an item.
#[derive(Debug)]
pub struct Item {
    pub price: Cents,
    pub data: String,
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

/// What Payment reads of the customer that pays.
#[derive(Debug)]
pub struct Payer {
    pub credit: String,
    /// C_FIRST, C_LAST, C_BALANCE
    pub shown: Shown,
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

/// How a step can fail: `is_retryable` tells whether the whole transaction may simply be run again.
pub trait OpsError: std::fmt::Debug {
    fn is_retryable(&self) -> bool;
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
    /// None for the unused item number that makes 1 % of the orders roll back.
    fn item(&mut self, item: i64) -> Result<Option<Item>, Self::Error>;
    fn stock_for_update(&mut self, warehouse: i64, item: i64, district: i64) -> Result<Stock, Self::Error>;
    fn update_stock(&mut self, warehouse: i64, item: i64, stock: &Stock) -> Result<(), Self::Error>;
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
    fn payer_for_update(&mut self, customer: CustomerKey) -> Result<Payer, Self::Error>;
    fn customer_data(&mut self, customer: CustomerKey) -> Result<String, Self::Error>;
    /// Takes the amount from C_BALANCE, adds it to C_YTD_PAYMENT, counts the payment, and sets C_DATA if given.
    fn pay_customer(
        &mut self,
        customer: CustomerKey,
        amount: Cents,
        data: Option<&str>,
    ) -> Result<(), Self::Error>;
    fn insert_history(&mut self, paid: &Paid<'_>) -> Result<(), Self::Error>;

    // Order-Status, 2.6.2.2
    /// C_BALANCE and the customer's names.
    fn show_customer(&mut self, customer: CustomerKey) -> Result<Shown, Self::Error>;
    /// The customer's newest order and how many lines it says it has.
    fn newest_order(&mut self, customer: CustomerKey) -> Result<Option<(i64, i64)>, Self::Error>;
    /// Item, warehouse, quantity, amount and delivery date of an order's lines.
    fn show_lines(&mut self, order: OrderKey) -> Result<Vec<Shown>, Self::Error>;

    // Delivery, 2.7.4.2
    /// The oldest undelivered order of a district, locked.
    fn oldest_new_order(&mut self, warehouse: i64, district: i64) -> Result<Option<i64>, Self::Error>;
    fn delete_new_order(&mut self, order: OrderKey) -> Result<(), Self::Error>;
    fn order_customer(&mut self, order: OrderKey) -> Result<i64, Self::Error>;
    fn set_carrier(&mut self, order: OrderKey, carrier: i64) -> Result<(), Self::Error>;
    /// Sets OL_DELIVERY_D of the order's lines.
    fn set_delivered(&mut self, order: OrderKey, when: Micros) -> Result<(), Self::Error>;
    fn order_amount(&mut self, order: OrderKey) -> Result<Cents, Self::Error>;
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
