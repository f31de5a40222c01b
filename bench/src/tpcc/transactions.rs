//! The five transactions of TPC-C (clause 2) over `TpccOps`: inputs are drawn once, so that a retry after a deadlock runs
//! the same transaction again.

use super::ops::*;
use super::random::NuRand;
use super::schema::{DISTRICTS, Scale};
use crate::random::Random;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

impl Kind {
    pub const ALL: [Kind; 5] =
        [Kind::NewOrder, Kind::Payment, Kind::OrderStatus, Kind::Delivery, Kind::StockLevel];

    /// In the order of `ALL`.
    pub const NAMES: [&str; 5] = ["New-Order", "Payment", "Order-Status", "Delivery", "Stock-Level"];
}

/// Twenty-three cards in random order give the mix 10:10:1:1:1 (clause 5.2.4.2), which is within 45/43/4/4/4.
pub struct Deck {
    cards: Vec<Kind>,
    next: usize,
}

impl Default for Deck {
    fn default() -> Deck {
        let mut cards = vec![Kind::OrderStatus, Kind::Delivery, Kind::StockLevel];
        cards.extend([Kind::NewOrder; 10]);
        cards.extend([Kind::Payment; 10]);
        Deck { next: cards.len(), cards }
    }
}

impl Deck {
    pub fn draw(&mut self, random: &mut Random) -> Kind {
        if self.next == self.cards.len() {
            for i in (1..self.cards.len()).rev() {
                self.cards.swap(i, random.uniform(0, i as i64) as usize);
            }
            self.next = 0;
        }
        self.next += 1;
        self.cards[self.next - 1]
    }
}

/// A customer by number, or by last name in 60 % of the cases.
#[derive(Debug)]
pub(super) enum Who {
    Number(i64),
    Last(String),
}

/// One order line's input.
#[derive(Debug)]
pub struct Wanted {
    pub(super) item: i64,
    pub(super) supply_warehouse: i64,
    pub(super) quantity: i64,
}

/// A transaction with its inputs.
#[derive(Debug)]
pub enum Transaction {
    NewOrder(NewOrder),
    Payment(Payment),
    OrderStatus(OrderStatus),
    Delivery(Delivery),
    StockLevel(StockLevel),
}

#[derive(Debug)]
pub struct NewOrder {
    pub(super) customer: CustomerKey,
    pub(super) entry: Micros,
    pub(super) lines: Vec<Wanted>,
}

#[derive(Debug)]
pub struct Payment {
    pub(super) warehouse: i64,
    pub(super) district: i64,
    pub(super) customer_warehouse: i64,
    pub(super) customer_district: i64,
    pub(super) who: Who,
    pub(super) amount: Cents,
    pub(super) when: Micros,
}

#[derive(Debug)]
pub struct OrderStatus {
    pub(super) warehouse: i64,
    pub(super) district: i64,
    pub(super) who: Who,
}

#[derive(Debug)]
pub struct Delivery {
    pub(super) warehouse: i64,
    pub(super) carrier: i64,
    pub(super) when: Micros,
}

#[derive(Debug)]
pub struct StockLevel {
    pub(super) warehouse: i64,
    pub(super) district: i64,
    pub(super) threshold: i64,
}

/// What a committed transaction has changed, for the client's own books.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Ordered(OrderKey),
    /// The 1 % of New-Order that names an unused item and rolls back.
    RolledBack,
    Paid {
        warehouse: i64,
        amount: Cents,
    },
    Delivered(Vec<OrderKey>),
    Read,
}

/// Draws inputs for a terminal.
pub struct Inputs {
    pub random: Random,
    pub nurand: NuRand,
    pub scale: Scale,
    pub deck: Deck,
    pub home: i64,
}

impl Inputs {
    /// For a terminal of warehouse `home`.
    pub fn new(scale: Scale, home: i64, seed: u64) -> Inputs {
        Inputs { random: Random::new(seed), nurand: NuRand::run(), scale, deck: Deck::default(), home }
    }

    /// The next transaction of the mix, with its inputs.
    pub fn draw(&mut self, now: Micros) -> (Kind, Transaction) {
        let kind = self.deck.draw(&mut self.random);
        let transaction = match kind {
            Kind::NewOrder => Transaction::NewOrder(self.new_order(now)),
            Kind::Payment => Transaction::Payment(self.payment(now)),
            Kind::OrderStatus => {
                let district = self.district();
                Transaction::OrderStatus(OrderStatus { warehouse: self.home, district, who: self.who() })
            }
            Kind::Delivery => Transaction::Delivery(Delivery {
                warehouse: self.home,
                carrier: self.random.uniform(1, 10),
                when: now,
            }),
            Kind::StockLevel => Transaction::StockLevel(StockLevel {
                warehouse: self.home,
                district: self.district(),
                threshold: self.random.uniform(10, 20),
            }),
        };
        (kind, transaction)
    }

    fn district(&mut self) -> i64 {
        self.random.uniform(1, DISTRICTS)
    }

    fn other_warehouse(&mut self) -> i64 {
        if self.scale.warehouses == 1 {
            return self.home;
        }
        let other = self.random.uniform(1, self.scale.warehouses - 1);
        if other >= self.home { other + 1 } else { other }
    }

    fn who(&mut self) -> Who {
        if self.random.percent(60) {
            Who::Last(self.nurand.last_name(&mut self.random, self.scale.last_names()))
        } else {
            Who::Number(self.nurand.customer(&mut self.random, self.scale.customers))
        }
    }

    /// Clause 2.4.1: 5 to 15 lines, 1 % of them from another warehouse, 1 % of the orders with an unused item at the end.
    fn new_order(&mut self, now: Micros) -> NewOrder {
        let district = self.district();
        let customer = self.nurand.customer(&mut self.random, self.scale.customers);
        let count = self.random.uniform(5, 15);
        let rolls_back = self.random.percent(1);
        let mut lines = Vec::with_capacity(count as usize);
        for number in 1..=count {
            let unused = rolls_back && number == count;
            let item = self.nurand.item(&mut self.random, self.scale.items);
            let remote = self.random.percent(1);
            lines.push(Wanted {
                item: if unused { self.scale.items + 1 } else { item },
                supply_warehouse: if remote { self.other_warehouse() } else { self.home },
                quantity: self.random.uniform(1, 10),
            });
        }
        NewOrder { customer: CustomerKey { warehouse: self.home, district, customer }, entry: now, lines }
    }

    /// Clause 2.5.1: 15 % pay at a warehouse that is not the customer's.
    fn payment(&mut self, now: Micros) -> Payment {
        let district = self.district();
        let remote = self.random.percent(15);
        let (customer_warehouse, customer_district) =
            if remote { (self.other_warehouse(), self.district()) } else { (self.home, district) };
        Payment {
            warehouse: self.home,
            district,
            customer_warehouse,
            customer_district,
            who: self.who(),
            amount: self.random.uniform(100, 500_000),
            when: now,
        }
    }
}

impl Transaction {
    pub fn kind(&self) -> Kind {
        match self {
            Transaction::NewOrder(_) => Kind::NewOrder,
            Transaction::Payment(_) => Kind::Payment,
            Transaction::OrderStatus(_) => Kind::OrderStatus,
            Transaction::Delivery(_) => Kind::Delivery,
            Transaction::StockLevel(_) => Kind::StockLevel,
        }
    }

    /// Runs the transaction once. After an error nothing is committed, but the transaction may still be open.
    pub fn run<O: TpccOps>(&self, ops: &mut O) -> Result<Outcome, O::Error> {
        ops.begin()?;
        let outcome = match self {
            Transaction::NewOrder(t) => t.run(ops)?,
            Transaction::Payment(t) => t.run(ops)?,
            Transaction::OrderStatus(t) => t.run(ops)?,
            Transaction::Delivery(t) => t.run(ops)?,
            Transaction::StockLevel(t) => t.run(ops)?,
        };
        if outcome == Outcome::RolledBack {
            ops.rollback()?;
        } else {
            ops.commit()?;
        }
        Ok(outcome)
    }
}

impl NewOrder {
    fn run<O: TpccOps>(&self, ops: &mut O) -> Result<Outcome, O::Error> {
        let CustomerKey { warehouse, district, customer } = self.customer;
        ops.look_ahead(&self.lines);
        let buyer = ops.buyer(self.customer)?;
        let (number, district_tax) = ops.take_order_number(warehouse, district)?;
        let key = OrderKey { warehouse, district, order: number };
        let all_local = self.lines.iter().all(|line| line.supply_warehouse == warehouse);
        let line_count = self.lines.len() as i64;
        ops.insert_order(&NewOrderRow { key, customer, entry: self.entry, line_count, all_local })?;
        ops.insert_new_order(key)?;
        let mut sum = 0;
        let mut district_info = String::new();
        for (wanted, number) in self.lines.iter().zip(1..) {
            let Some(item) = ops.item(wanted.item)? else { return Ok(Outcome::RolledBack) };
            sum += order_line(ops, warehouse, key, number, wanted, &item, &mut district_info)?;
        }
        let total = total_amount(sum, buyer.discount, buyer.warehouse_tax, district_tax);
        std::hint::black_box((total, buyer.shown));
        Ok(Outcome::Ordered(key))
    }
}

/// Takes the goods from stock and writes the line; returns its amount.
fn order_line<O: TpccOps>(
    ops: &mut O,
    home: i64,
    order: OrderKey,
    number: i64,
    wanted: &Wanted,
    item: &Item,
    district_info: &mut String,
) -> Result<Cents, O::Error> {
    let Wanted { item: id, supply_warehouse, quantity } = *wanted;
    let taking = Taking {
        warehouse: supply_warehouse,
        item: id,
        district: order.district,
        quantity,
        remote: supply_warehouse != home,
    };
    let brand = ops.take_from_stock(&taking, district_info)? && item.original;
    std::hint::black_box((brand, &item.shown));
    let amount = quantity * item.price;
    ops.insert_line(&NewLine { order, number, item: id, supply_warehouse, quantity, amount, district_info })?;
    Ok(amount)
}

/// Clause 2.4.2.2: sum × (1 − discount) × (1 + warehouse tax + district tax), in cents.
pub(super) fn total_amount(sum: Cents, discount: Rate, warehouse_tax: Rate, district_tax: Rate) -> Cents {
    sum * (10_000 - discount) / 10_000 * (10_000 + warehouse_tax + district_tax) / 10_000
}

/// Clause 2.5.2.2: of several customers of one last name, the one in the middle.
fn find_customer<O: TpccOps>(
    ops: &mut O,
    warehouse: i64,
    district: i64,
    who: &Who,
) -> Result<Option<CustomerKey>, O::Error> {
    let customer = match who {
        Who::Number(number) => *number,
        Who::Last(last) => {
            let found = ops.customers_by_last(warehouse, district, last)?;
            match found.get(found.len().saturating_sub(1) / 2) {
                Some(customer) => *customer,
                None => return Ok(None),
            }
        }
    };
    Ok(Some(CustomerKey { warehouse, district, customer }))
}

impl Payment {
    fn run<O: TpccOps>(&self, ops: &mut O) -> Result<Outcome, O::Error> {
        let warehouse_name = ops.pay_warehouse(self.warehouse, self.amount)?;
        let district_name = ops.pay_district(self.warehouse, self.district, self.amount)?;
        let found = find_customer(ops, self.customer_warehouse, self.customer_district, &self.who)?;
        let Some(customer) = found else { return Ok(Outcome::RolledBack) };
        let payment =
            PaymentNote { warehouse: self.warehouse, district: self.district, customer, amount: self.amount };
        std::hint::black_box(ops.pay_customer(&payment)?);
        ops.insert_history(&Paid {
            customer,
            warehouse: self.warehouse,
            district: self.district,
            when: self.when,
            amount: self.amount,
            data: &format!("{warehouse_name}    {district_name}"),
        })?;
        Ok(Outcome::Paid { warehouse: self.warehouse, amount: self.amount })
    }
}

impl OrderStatus {
    fn run<O: TpccOps>(&self, ops: &mut O) -> Result<Outcome, O::Error> {
        let Some(customer) = find_customer(ops, self.warehouse, self.district, &self.who)? else {
            return Ok(Outcome::Read);
        };
        ops.show_customer(customer)?;
        if let Some((order, line_count)) = ops.newest_order(customer)? {
            let lines =
                ops.show_lines(OrderKey { warehouse: self.warehouse, district: self.district, order })?;
            assert_eq!(lines.len() as i64, line_count, "an order is seen with some of its lines");
        }
        Ok(Outcome::Read)
    }
}

impl Delivery {
    /// All ten districts in one transaction; a district without new orders is skipped (clause 2.7.4.2).
    fn run<O: TpccOps>(&self, ops: &mut O) -> Result<Outcome, O::Error> {
        let mut delivered = Vec::new();
        for district in 1..=DISTRICTS {
            let Some(order) = ops.take_oldest_new_order(self.warehouse, district)? else { continue };
            let key = OrderKey { warehouse: self.warehouse, district, order };
            let customer = ops.set_carrier(key, self.carrier)?;
            let amount = ops.deliver_lines(key, self.when)?;
            ops.credit_customer(CustomerKey { warehouse: self.warehouse, district, customer }, amount)?;
            delivered.push(key);
        }
        Ok(Outcome::Delivered(delivered))
    }
}

impl StockLevel {
    fn run<O: TpccOps>(&self, ops: &mut O) -> Result<Outcome, O::Error> {
        let next = ops.next_order_number(self.warehouse, self.district)?;
        ops.low_stock(self.warehouse, self.district, next, self.threshold)?;
        Ok(Outcome::Read)
    }
}
