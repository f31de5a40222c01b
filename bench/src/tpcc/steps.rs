//! TPC-C's steps as calls of the engine's API, for the native procedures: no SQL, no protocol, the same transaction logic.
//!
//! A row that is read and changed is so in one visit (`modify_unique`), as any procedure would do it; columns are found by
//! name once, when the tables are opened. What a terminal would display is copied to a screen that is used again.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use avocet_engine::{
    Ahead, Direction, Engine, EngineError, ErrorKind, IndexHandle, KeyList, KeyRange, ReadScratch, RowChange,
    TableHandle, Txn,
};
use avocet_types::{Datum, Decimal, RowRef};

use super::DATABASE;
use super::ops::*;
use super::transactions::{Kind, Wanted};

impl OpsError for EngineError {
    fn is_retryable(&self) -> bool {
        self.kind() == ErrorKind::Retry
    }
}

type Result<T> = std::result::Result<T, EngineError>;

fn open(engine: &Engine, name: &str) -> Result<Arc<TableHandle>> {
    let missing = || EngineError::NoSuchTable(DATABASE.into(), name.into());
    engine.catalog().table(DATABASE, name).cloned().ok_or_else(missing)
}

/// A table, its indexes, and where its columns are.
macro_rules! tables {
    ($($table:ident: $name:literal { $($column:ident),* })*) => { $(
        struct $table { handle: Arc<TableHandle>, indexes: Vec<Arc<IndexHandle>>, $($column: usize),* }

        impl $table {
            fn open(engine: &Engine) -> Result<$table> {
                let handle = open(engine, $name)?;
                let column = |name| handle.def.column(name).expect("TPC-C's tables have TPC-C's columns");
                Ok($table {
                    $($column: column(stringify!($column)),)*
                    indexes: handle.indexes().to_vec(),
                    handle,
                })
            }
        }
    )* };
}

tables! {
    Warehouse: "warehouse" { w_tax, w_ytd, w_name }
    District: "district" { d_next_o_id, d_tax, d_ytd, d_name }
    Customer: "customer" {
        c_id, c_first, c_middle, c_last, c_credit, c_discount, c_balance, c_ytd_payment, c_payment_cnt,
        c_delivery_cnt, c_data
    }
    NewOrders: "new_order" { no_o_id }
    Orders: "orders" { o_id, o_c_id, o_carrier_id, o_ol_cnt }
    OrderLines: "order_line" { ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity, ol_amount }
    Items: "item" { i_price, i_name, i_data }
    Stock: "stock" { s_quantity, s_dist_01, s_ytd, s_order_cnt, s_remote_cnt, s_data }
}

/// The steps of one call.
pub struct EngineOps<'c> {
    pub txn: &'c mut Txn,
    pub tables: &'c mut Tables,
}

/// TPC-C's tables as one catalog has them, and memory that calls use one after the other.
pub struct Tables {
    /// The catalog's.
    version: u64,
    warehouse: Warehouse,
    district: District,
    customer: Customer,
    history: Arc<TableHandle>,
    new_order: NewOrders,
    orders: Orders,
    order_line: OrderLines,
    item: Items,
    stock: Stock,
    scratch: ReadScratch,
    key: Vec<u8>,
    keys: KeyList,
    range: KeyRange,
    /// What the terminal displays.
    screen: String,
    items: Vec<i64>,
}

const PRIMARY: usize = 0;
/// CUSTOMER by last name, ORDERS by customer.
const SECONDARY: usize = 1;

fn int(row: &RowRef<'_>, column: usize) -> i64 {
    match row.get(column) {
        Datum::Int(v) => v,
        other => unreachable!("an integer column holds {other:?}"),
    }
}

fn text<'r>(row: &RowRef<'r>, column: usize) -> std::borrow::Cow<'r, str> {
    match row.get(column) {
        Datum::Str(s) => s,
        other => unreachable!("a text column holds {other:?}"),
    }
}

fn units(row: &RowRef<'_>, column: usize) -> i64 {
    match row.get(column) {
        Datum::Decimal(d) => d.as_i128().expect("TPC-C's decimals are narrow") as i64,
        other => unreachable!("a decimal column holds {other:?}"),
    }
}

fn money(cents: Cents) -> Datum<'static> {
    Datum::Decimal(Decimal::new(cents.into(), 2))
}

/// DATETIME columns of TPC-C's tables have no fraction.
fn to_the_second(micros: Micros) -> Datum<'static> {
    Datum::DateTime(micros.div_euclid(1_000_000) * 1_000_000)
}

/// Columns that only the terminal wants.
fn show(screen: &mut String, row: &RowRef<'_>, columns: &[usize]) {
    columns.iter().for_each(|&column| screen.push_str(&text(row, column)));
}

impl Tables {
    pub fn open(engine: &Engine) -> Result<Tables> {
        Ok(Tables {
            // Before the tables are looked up: what is found is no older.
            version: engine.catalog_version(),
            warehouse: Warehouse::open(engine)?,
            district: District::open(engine)?,
            customer: Customer::open(engine)?,
            history: open(engine, "history")?,
            new_order: NewOrders::open(engine)?,
            orders: Orders::open(engine)?,
            order_line: OrderLines::open(engine)?,
            item: Items::open(engine)?,
            stock: Stock::open(engine)?,
            scratch: ReadScratch::default(),
            key: Vec::new(),
            keys: KeyList::default(),
            range: KeyRange::all(),
            screen: String::new(),
            items: Vec::new(),
        })
    }

    /// Holds what a kind of transaction uses; false if these tables are not what the catalog has any more.
    pub fn hold(&self, txn: &mut Txn, kind: Kind) -> Result<bool> {
        let Tables {
            warehouse, district, customer, history, new_order, orders, order_line, item, stock, ..
        } = self;
        let (w, d, c) = (&warehouse.handle, &district.handle, &customer.handle);
        let (no, o, ol) = (&new_order.handle, &orders.handle, &order_line.handle);
        let (i, s) = (&item.handle, &stock.handle);
        let used: &[&Arc<TableHandle>] = match kind {
            Kind::NewOrder => &[w, d, c, no, o, ol, i, s],
            Kind::Payment => &[w, d, c, history],
            Kind::OrderStatus => &[c, o, ol],
            Kind::Delivery => &[no, o, ol, c],
            Kind::StockLevel => &[d, ol, s],
        };
        txn.use_tables(used.iter().copied(), self.version)
    }
}

/// Rows that are looked ahead for at a time.
const AHEAD: usize = 32;

/// What a step needs of the tables, all of it at the same time.
macro_rules! parts {
    ($self:ident, $table:ident => $step:ident, $t:ident, $screen:ident) => {
        let Tables { $table: $t, scratch, key, range, screen: $screen, .. } = &mut *$self.tables;
        let txn = &mut *$self.txn;
        let mut $step = Step { txn, table: &$t.handle, index: &$t.indexes[PRIMARY], scratch, key, range };
    };
}

/// One access to a table by one of its indexes.
struct Step<'s> {
    txn: &'s mut Txn,
    table: &'s Arc<TableHandle>,
    index: &'s IndexHandle,
    scratch: &'s mut ReadScratch,
    key: &'s mut Vec<u8>,
    range: &'s mut KeyRange,
}

impl Step<'_> {
    fn encode(&mut self, values: &[i64]) {
        self.key.clear();
        encode(self.index, values, self.key);
    }

    /// Reads the row with a key at the snapshot.
    fn get<R>(&mut self, values: &[i64], mut read: impl FnMut(&RowRef<'_>) -> R) -> Result<Option<R>> {
        self.encode(values);
        let mut found = None;
        let one = &mut |_, row: RowRef<'_>| found = Some(read(&row));
        self.txn.peek_unique(self.table, self.index, self.key, self.scratch, one)?;
        Ok(found)
    }

    /// Locks, reads and changes the newest row with a key.
    fn modify<R>(
        &mut self,
        values: &[i64],
        mut change: impl FnMut(&RowRef<'_>, &mut RowChange<'_>) -> R,
    ) -> Result<R> {
        self.encode(values);
        let mut found = None;
        let one = &mut |row: RowRef<'_>, to: &mut RowChange<'_>| found = Some(change(&row, to));
        self.txn.modify_unique(self.table, self.index, self.key, self.scratch, one)?;
        Ok(required(found))
    }

    /// Reads the rows whose key begins so, in order, until told to stop.
    fn scan(
        &mut self,
        values: &[i64],
        direction: Direction,
        mut each: impl FnMut(&RowRef<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        self.encode(values);
        self.range.set(Bound::Included(self.key), Bound::Included(self.key));
        self.scan_range(direction, &mut each)
    }

    fn scan_range(
        &mut self,
        direction: Direction,
        each: &mut dyn FnMut(&RowRef<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let each = &mut |_, row: RowRef<'_>| each(&row);
        self.txn.index_scan(self.table, self.index, self.range, direction, self.scratch, each)
    }

    /// Locks and changes the rows whose key begins so, in order, until told to stop.
    fn modify_all(
        &mut self,
        values: &[i64],
        mut each: impl FnMut(&RowRef<'_>, &mut RowChange<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        self.encode(values);
        self.range.set(Bound::Included(self.key), Bound::Included(self.key));
        let each = &mut |row: RowRef<'_>, to: &mut RowChange<'_>| each(&row, to);
        self.txn.modify_range(self.table, self.index, self.range, Direction::Ascending, self.scratch, each)
    }
}

/// Appends the key of these values.
fn encode(index: &IndexHandle, values: &[i64], key: &mut Vec<u8>) {
    assert!(index.keys.encode_integers(values, key), "TPC-C's keys fit their columns");
}

fn required<T>(found: Option<T>) -> T {
    found.expect("a row that TPC-C has is there")
}

impl TpccOps for EngineOps<'_> {
    type Error = EngineError;

    fn begin(&mut self) -> Result<()> {
        self.tables.screen.clear();
        Ok(())
    }

    /// The call's transaction is committed by whoever called.
    fn commit(&mut self) -> Result<()> {
        std::hint::black_box(&self.tables.screen);
        Ok(())
    }

    /// As is rolling back.
    fn rollback(&mut self) -> Result<()> {
        Ok(())
    }

    fn buyer(&mut self, c: CustomerKey) -> Result<Buyer> {
        let warehouse_tax = {
            parts!(self, warehouse => step, t, _screen);
            required(step.get(&[c.warehouse], |row| units(row, t.w_tax))?)
        };
        parts!(self, customer => step, t, screen);
        let buyer = step.get(&[c.warehouse, c.district, c.customer], |row| {
            show(screen, row, &[t.c_last, t.c_credit]);
            Buyer { discount: units(row, t.c_discount), warehouse_tax, shown: Shown::default() }
        })?;
        Ok(required(buyer))
    }

    fn take_order_number(&mut self, warehouse: i64, district: i64) -> Result<(i64, Rate)> {
        parts!(self, district => step, t, _screen);
        step.modify(&[warehouse, district], |row, to| {
            let number = int(row, t.d_next_o_id);
            to.set(t.d_next_o_id, &Datum::Int(number + 1));
            (number, units(row, t.d_tax))
        })
    }

    fn insert_order(&mut self, order: &NewOrderRow) -> Result<()> {
        let row = [
            Datum::Int(order.key.order),
            Datum::Int(order.key.district),
            Datum::Int(order.key.warehouse),
            Datum::Int(order.customer),
            to_the_second(order.entry),
            Datum::Null,
            Datum::Int(order.line_count),
            Datum::Int(order.all_local.into()),
        ];
        self.txn.insert(&self.tables.orders.handle, &row).map(drop)
    }

    fn insert_new_order(&mut self, order: OrderKey) -> Result<()> {
        let row = [order.order, order.district, order.warehouse].map(Datum::Int);
        self.txn.insert(&self.tables.new_order.handle, &row).map(drop)
    }

    fn look_ahead(&mut self, lines: &[Wanted]) {
        let Tables { item, stock, keys, .. } = &mut *self.tables;
        let (items, stocks) = (&item.indexes[PRIMARY], &stock.indexes[PRIMARY]);
        keys.clear();
        lines.iter().for_each(|line| keys.push(|key| encode(items, &[line.item], key)));
        self.txn.look_ahead(&item.handle, items, keys, Ahead::Rows);
        keys.clear();
        let places = lines.iter().map(|line| [line.supply_warehouse, line.item]);
        places.for_each(|place| keys.push(|key| encode(stocks, &place, key)));
        self.txn.look_ahead(&stock.handle, stocks, keys, Ahead::Rows);
    }

    fn item(&mut self, item: i64) -> Result<Option<Item>> {
        parts!(self, item => step, t, screen);
        step.get(&[item], |row| {
            show(screen, row, &[t.i_name]);
            Item {
                price: units(row, t.i_price),
                original: is_original(&text(row, t.i_data)),
                shown: Shown::default(),
            }
        })
    }

    fn take_from_stock(&mut self, taking: &Taking, district_info: &mut String) -> Result<bool> {
        parts!(self, stock => step, t, _screen);
        step.modify(&[taking.warehouse, taking.item], |row, to| {
            to.set(t.s_quantity, &Datum::Int(stock_after(int(row, t.s_quantity), taking.quantity)));
            to.set(t.s_ytd, &Datum::Int(int(row, t.s_ytd) + taking.quantity));
            to.set(t.s_order_cnt, &Datum::Int(int(row, t.s_order_cnt) + 1));
            if taking.remote {
                to.set(t.s_remote_cnt, &Datum::Int(int(row, t.s_remote_cnt) + 1));
            }
            district_info.clear();
            district_info.push_str(&text(row, t.s_dist_01 + taking.district as usize - 1));
            is_original(&text(row, t.s_data))
        })
    }

    fn insert_line(&mut self, line: &NewLine<'_>) -> Result<()> {
        let row = [
            Datum::Int(line.order.order),
            Datum::Int(line.order.district),
            Datum::Int(line.order.warehouse),
            Datum::Int(line.number),
            Datum::Int(line.item),
            Datum::Int(line.supply_warehouse),
            Datum::Null,
            Datum::Int(line.quantity),
            money(line.amount),
            Datum::str(line.district_info),
        ];
        self.txn.insert(&self.tables.order_line.handle, &row).map(drop)
    }

    fn pay_warehouse(&mut self, warehouse: i64, amount: Cents) -> Result<String> {
        parts!(self, warehouse => step, t, _screen);
        step.modify(&[warehouse], |row, to| {
            to.set(t.w_ytd, &money(units(row, t.w_ytd) + amount));
            text(row, t.w_name).into_owned()
        })
    }

    fn pay_district(&mut self, warehouse: i64, district: i64, amount: Cents) -> Result<String> {
        parts!(self, district => step, t, _screen);
        step.modify(&[warehouse, district], |row, to| {
            to.set(t.d_ytd, &money(units(row, t.d_ytd) + amount));
            text(row, t.d_name).into_owned()
        })
    }

    fn customers_by_last(&mut self, warehouse: i64, district: i64, last: &str) -> Result<Vec<i64>> {
        parts!(self, customer => step, t, _screen);
        step.index = &t.indexes[SECONDARY];
        step.key.clear();
        let prefix = [Datum::Int(warehouse), Datum::Int(district), Datum::str(last)];
        assert!(step.index.keys.encode_prefix(&prefix, step.key), "TPC-C's keys fit their columns");
        step.range.set(Bound::Included(step.key), Bound::Included(step.key));
        let mut ids = Vec::with_capacity(4);
        step.scan_range(Direction::Ascending, &mut |row| {
            ids.push(int(row, t.c_id));
            ControlFlow::Continue(())
        })?;
        Ok(ids)
    }

    fn pay_customer(&mut self, payment: &PaymentNote) -> Result<Shown> {
        let c = payment.customer;
        parts!(self, customer => step, t, screen);
        step.modify(&[c.warehouse, c.district, c.customer], |row, to| {
            show(screen, row, &[t.c_first, t.c_last]);
            to.set(t.c_balance, &money(units(row, t.c_balance) - payment.amount));
            to.set(t.c_ytd_payment, &money(units(row, t.c_ytd_payment) + payment.amount));
            to.set(t.c_payment_cnt, &Datum::Int(int(row, t.c_payment_cnt) + 1));
            if text(row, t.c_credit) == "BC" {
                to.set(t.c_data, &Datum::str(&payment.bad_credit(&text(row, t.c_data))));
            }
            Shown::default()
        })
    }

    fn insert_history(&mut self, paid: &Paid<'_>) -> Result<()> {
        let row = [
            Datum::Int(paid.customer.customer),
            Datum::Int(paid.customer.district),
            Datum::Int(paid.customer.warehouse),
            Datum::Int(paid.district),
            Datum::Int(paid.warehouse),
            to_the_second(paid.when),
            money(paid.amount),
            Datum::str(paid.data),
        ];
        self.txn.insert(&self.tables.history, &row).map(drop)
    }

    fn show_customer(&mut self, c: CustomerKey) -> Result<Shown> {
        parts!(self, customer => step, t, screen);
        let shown = step.get(&[c.warehouse, c.district, c.customer], |row| {
            show(screen, row, &[t.c_first, t.c_middle, t.c_last]);
            std::hint::black_box(units(row, t.c_balance));
            Shown::default()
        })?;
        Ok(required(shown))
    }

    fn newest_order(&mut self, c: CustomerKey) -> Result<Option<(i64, i64)>> {
        parts!(self, orders => step, t, _screen);
        step.index = &t.indexes[SECONDARY];
        let mut newest = None;
        step.scan(&[c.warehouse, c.district, c.customer], Direction::Descending, |row| {
            newest = Some((int(row, t.o_id), int(row, t.o_ol_cnt)));
            ControlFlow::Break(())
        })?;
        Ok(newest)
    }

    fn show_lines(&mut self, order: OrderKey) -> Result<Vec<Shown>> {
        parts!(self, order_line => step, t, _screen);
        let mut lines = Vec::with_capacity(15);
        step.scan(&[order.warehouse, order.district, order.order], Direction::Ascending, |row| {
            let numbers = [t.ol_i_id, t.ol_supply_w_id, t.ol_quantity].map(|column| int(row, column));
            std::hint::black_box((numbers, units(row, t.ol_amount)));
            lines.push(Shown::default());
            ControlFlow::Continue(())
        })?;
        Ok(lines)
    }

    fn take_oldest_new_order(&mut self, warehouse: i64, district: i64) -> Result<Option<i64>> {
        parts!(self, new_order => step, t, _screen);
        let mut oldest = None;
        step.modify_all(&[warehouse, district], |row, to| {
            oldest = Some(int(row, t.no_o_id));
            to.delete();
            ControlFlow::Break(())
        })?;
        Ok(oldest)
    }

    fn set_carrier(&mut self, order: OrderKey, carrier: i64) -> Result<i64> {
        parts!(self, orders => step, t, _screen);
        step.modify(&[order.warehouse, order.district, order.order], |row, to| {
            to.set(t.o_carrier_id, &Datum::Int(carrier));
            int(row, t.o_c_id)
        })
    }

    fn deliver_lines(&mut self, order: OrderKey, when: Micros) -> Result<Cents> {
        parts!(self, order_line => step, t, _screen);
        let mut sum = 0;
        step.modify_all(&[order.warehouse, order.district, order.order], |row, to| {
            sum += units(row, t.ol_amount);
            to.set(t.ol_delivery_d, &to_the_second(when));
            ControlFlow::Continue(())
        })?;
        Ok(sum)
    }

    fn credit_customer(&mut self, c: CustomerKey, amount: Cents) -> Result<()> {
        parts!(self, customer => step, t, _screen);
        step.modify(&[c.warehouse, c.district, c.customer], |row, to| {
            to.set(t.c_balance, &money(units(row, t.c_balance) + amount));
            to.set(t.c_delivery_cnt, &Datum::Int(int(row, t.c_delivery_cnt) + 1));
        })
    }

    fn next_order_number(&mut self, warehouse: i64, district: i64) -> Result<i64> {
        parts!(self, district => step, t, _screen);
        Ok(required(step.get(&[warehouse, district], |row| int(row, t.d_next_o_id))?))
    }

    fn low_stock(&mut self, warehouse: i64, district: i64, next: i64, threshold: i64) -> Result<i64> {
        let mut items = std::mem::take(&mut self.tables.items);
        items.clear();
        {
            parts!(self, order_line => step, t, _screen);
            step.encode(&[warehouse, district, next]);
            let upper = step.key.clone();
            step.encode(&[warehouse, district, next - 20]);
            step.range.set(Bound::Included(step.key), Bound::Excluded(&upper));
            step.scan_range(Direction::Ascending, &mut |row| {
                items.push(int(row, t.ol_i_id));
                ControlFlow::Continue(())
            })?;
        }
        items.sort_unstable();
        items.dedup();
        let mut low = 0;
        for items in items.chunks(AHEAD) {
            let Tables { stock, keys, .. } = &mut *self.tables;
            keys.clear();
            items
                .iter()
                .for_each(|&item| keys.push(|key| encode(&stock.indexes[PRIMARY], &[warehouse, item], key)));
            self.txn.look_ahead(&stock.handle, &stock.indexes[PRIMARY], keys, Ahead::Numbers);
            parts!(self, stock => step, t, _screen);
            for &item in items {
                let left = step.get(&[warehouse, item], |row| int(row, t.s_quantity))?;
                low += i64::from(required(left) < threshold);
            }
        }
        self.tables.items = items;
        Ok(low)
    }
}
