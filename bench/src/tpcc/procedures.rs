//! TPC-C's steps as calls of the engine's API, in process: no SQL, no protocol, the same transaction logic.
//!
//! A worker logs a transaction and goes on with the next; it is counted when its group is durable. At most
//! `MAX_UNACKNOWLEDGED` are on their way at a time.

use std::collections::VecDeque;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use avocet_engine::{
    CommitTicket, Direction, Engine, EngineError, ErrorKind, Freshness, IndexHandle, KeyRange, ReadScratch,
    TableHandle, Txn, TxnOptions,
};
use avocet_types::{Datum, Decimal, RowRef};

use super::ops::*;
use super::{DATABASE, schema};

/// Commits that a worker may have on their way to the disk.
const MAX_UNACKNOWLEDGED: usize = 512;

impl OpsError for EngineError {
    fn is_retryable(&self) -> bool {
        self.kind() == ErrorKind::Retry
    }
}

type Result<T> = std::result::Result<T, EngineError>;

/// A table and where its columns are.
struct Table {
    handle: Arc<TableHandle>,
    primary: Arc<IndexHandle>,
}

impl Table {
    fn open(engine: &Engine, name: &str) -> Result<Table> {
        let catalog = engine.catalog();
        let missing = || EngineError::NoSuchTable(DATABASE.into(), name.into());
        let handle = catalog.table(DATABASE, name).ok_or_else(missing)?.clone();
        let primary = handle.indexes().first().cloned();
        // HISTORY has no key; it is never looked up.
        let primary =
            primary.unwrap_or_else(|| catalog.table(DATABASE, "item").expect("loaded").indexes()[0].clone());
        Ok(Table { handle, primary })
    }

    fn column(&self, name: &str) -> usize {
        self.handle.def.column(name).expect("TPC-C's tables have TPC-C's columns")
    }
}

macro_rules! columns {
    ($table:expr, $($name:literal),*) => { [$($table.column($name)),*] };
}

/// One worker in process.
pub struct EngineOps {
    engine: Arc<Engine>,
    txn: Option<Txn>,
    unacknowledged: VecDeque<CommitTicket>,
    warehouse: Table,
    district: Table,
    customer: Table,
    history: Table,
    new_order: Table,
    orders: Table,
    order_line: Table,
    item: Table,
    stock: Table,
    customer_last: Arc<IndexHandle>,
    orders_customer: Arc<IndexHandle>,
    scratch: ReadScratch,
    key: Vec<u8>,
}

fn int(row: &RowRef<'_>, column: usize) -> i64 {
    match row.get(column) {
        Datum::Int(v) => v,
        other => unreachable!("an integer column holds {other:?}"),
    }
}

fn text(row: &RowRef<'_>, column: usize) -> String {
    match row.get(column) {
        Datum::Str(s) => s.into_owned(),
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

impl EngineOps {
    pub fn new(engine: &Arc<Engine>) -> Result<EngineOps> {
        let open = |name: &str| Table::open(engine, name);
        let (customer, orders) = (open("customer")?, open("orders")?);
        let secondary = |table: &Table| table.handle.indexes()[1].clone();
        Ok(EngineOps {
            customer_last: secondary(&customer),
            orders_customer: secondary(&orders),
            warehouse: open("warehouse")?,
            district: open("district")?,
            history: open("history")?,
            new_order: open("new_order")?,
            order_line: open("order_line")?,
            item: open("item")?,
            stock: open("stock")?,
            customer,
            orders,
            engine: engine.clone(),
            txn: None,
            unacknowledged: VecDeque::new(),
            scratch: ReadScratch::default(),
            key: Vec::new(),
        })
    }
}

/// Parts of `EngineOps` that a step needs at the same time.
macro_rules! parts {
    ($self:ident, $table:ident => $txn:ident, $t:ident, $scratch:ident, $key:ident) => {
        let EngineOps { txn, $table: $t, scratch: $scratch, key: $key, .. } = $self;
        let $txn = txn.as_mut().expect("begin was called");
    };
}

fn encode(index: &IndexHandle, values: &[i64], key: &mut Vec<u8>) {
    key.clear();
    let mut datums = [const { Datum::Null }; 4];
    for (datum, value) in datums.iter_mut().zip(values) {
        *datum = Datum::Int(*value);
    }
    assert!(index.keys.encode_prefix(&datums[..values.len()], key), "TPC-C's keys fit their columns");
}

/// Reads the row with a primary key at the snapshot.
fn get<R>(
    txn: &Txn,
    table: &Table,
    values: &[i64],
    scratch: &mut ReadScratch,
    key: &mut Vec<u8>,
    read: impl Fn(&RowRef<'_>) -> R,
) -> Result<Option<R>> {
    encode(&table.primary, values, key);
    let mut found = None;
    txn.get_unique(&table.handle, &table.primary, key, scratch, &mut |_, row| found = Some(read(&row)))?;
    Ok(found)
}

/// Locks and reads the newest row with a primary key; its place.
fn lock<R>(
    txn: &mut Txn,
    table: &Table,
    values: &[i64],
    scratch: &mut ReadScratch,
    key: &mut Vec<u8>,
    read: impl Fn(&RowRef<'_>) -> R,
) -> Result<(avocet_engine::RowId, R)> {
    encode(&table.primary, values, key);
    let mut found = None;
    let range = KeyRange::prefix(key);
    let one = &mut |id, row: RowRef<'_>| {
        found = Some((id, read(&row)));
        ControlFlow::Break(())
    };
    txn.lock_scan(&table.handle, &table.primary, &range, Direction::Ascending, scratch, one)?;
    Ok(found.expect("a row that TPC-C has is there"))
}

fn required<T>(found: Option<T>) -> T {
    found.expect("a row that TPC-C has is there")
}

impl TpccOps for EngineOps {
    type Error = EngineError;

    fn begin(&mut self) -> Result<()> {
        let options = TxnOptions { freshness: Freshness::Logged, ..TxnOptions::default() };
        self.txn = Some(self.engine.begin(options));
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        let ticket = self.txn.take().expect("begin was called").commit()?;
        self.unacknowledged.push_back(ticket);
        while self.unacknowledged.front().is_some_and(CommitTicket::is_durable) {
            self.unacknowledged.pop_front();
        }
        if self.unacknowledged.len() >= MAX_UNACKNOWLEDGED {
            self.unacknowledged.pop_front().expect("not empty").wait()?;
        }
        Ok(())
    }

    fn rollback(&mut self) -> Result<()> {
        if let Some(txn) = self.txn.take() {
            txn.rollback();
        }
        Ok(())
    }

    fn buyer(&mut self, c: CustomerKey) -> Result<Buyer> {
        let tax = {
            parts!(self, warehouse => txn, table, scratch, key);
            let column = table.column("w_tax");
            required(get(txn, table, &[c.warehouse], scratch, key, |row| units(row, column))?)
        };
        parts!(self, customer => txn, table, scratch, key);
        let [discount, last, credit] = columns!(table, "c_discount", "c_last", "c_credit");
        let values = [c.warehouse, c.district, c.customer];
        let buyer = get(txn, table, &values, scratch, key, |row| Buyer {
            discount: units(row, discount),
            warehouse_tax: tax,
            shown: Shown(vec![text(row, last), text(row, credit)]),
        })?;
        Ok(required(buyer))
    }

    fn take_order_number(&mut self, warehouse: i64, district: i64) -> Result<(i64, Rate)> {
        parts!(self, district => txn, table, scratch, key);
        let [next, tax] = columns!(table, "d_next_o_id", "d_tax");
        let read = |row: &RowRef<'_>| (int(row, next), units(row, tax));
        let (id, (number, tax)) = lock(txn, table, &[warehouse, district], scratch, key, read)?;
        txn.update(&table.handle, id, &[(next, Datum::Int(number + 1))])?;
        Ok((number, tax))
    }

    fn insert_order(&mut self, order: &NewOrderRow) -> Result<()> {
        let txn = self.txn.as_mut().expect("begin was called");
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
        txn.insert(&self.orders.handle, &row).map(drop)
    }

    fn insert_new_order(&mut self, order: OrderKey) -> Result<()> {
        let txn = self.txn.as_mut().expect("begin was called");
        let row = [order.order, order.district, order.warehouse].map(Datum::Int);
        txn.insert(&self.new_order.handle, &row).map(drop)
    }

    fn item(&mut self, item: i64) -> Result<Option<Item>> {
        parts!(self, item => txn, table, scratch, key);
        let [price, data, name] = columns!(table, "i_price", "i_data", "i_name");
        get(txn, table, &[item], scratch, key, |row| Item {
            price: units(row, price),
            data: text(row, data),
            shown: Shown(vec![text(row, name)]),
        })
    }

    fn stock_for_update(&mut self, warehouse: i64, item: i64, district: i64) -> Result<Stock> {
        parts!(self, stock => txn, table, scratch, key);
        let [quantity, ytd, orders, remote, data, first] =
            columns!(table, "s_quantity", "s_ytd", "s_order_cnt", "s_remote_cnt", "s_data", "s_dist_01");
        let read = |row: &RowRef<'_>| Stock {
            quantity: int(row, quantity),
            ytd: int(row, ytd),
            order_count: int(row, orders),
            remote_count: int(row, remote),
            district_info: text(row, first + district as usize - 1),
            data: text(row, data),
        };
        Ok(lock(txn, table, &[warehouse, item], scratch, key, read)?.1)
    }

    fn update_stock(&mut self, warehouse: i64, item: i64, stock: &Stock) -> Result<()> {
        parts!(self, stock => txn, table, scratch, key);
        let [quantity, ytd, orders, remote] =
            columns!(table, "s_quantity", "s_ytd", "s_order_cnt", "s_remote_cnt");
        let (id, ()) = lock(txn, table, &[warehouse, item], scratch, key, |_| ())?;
        let changes = [
            (quantity, Datum::Int(stock.quantity)),
            (ytd, Datum::Int(stock.ytd)),
            (orders, Datum::Int(stock.order_count)),
            (remote, Datum::Int(stock.remote_count)),
        ];
        txn.update(&table.handle, id, &changes).map(drop)
    }

    fn insert_line(&mut self, line: &NewLine<'_>) -> Result<()> {
        let txn = self.txn.as_mut().expect("begin was called");
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
        txn.insert(&self.order_line.handle, &row).map(drop)
    }

    fn pay_warehouse(&mut self, warehouse: i64, amount: Cents) -> Result<String> {
        parts!(self, warehouse => txn, table, scratch, key);
        let [ytd, name] = columns!(table, "w_ytd", "w_name");
        let read = |row: &RowRef<'_>| (units(row, ytd), text(row, name));
        let (id, (had, name)) = lock(txn, table, &[warehouse], scratch, key, read)?;
        txn.update(&table.handle, id, &[(ytd, money(had + amount))])?;
        Ok(name)
    }

    fn pay_district(&mut self, warehouse: i64, district: i64, amount: Cents) -> Result<String> {
        parts!(self, district => txn, table, scratch, key);
        let [ytd, name] = columns!(table, "d_ytd", "d_name");
        let read = |row: &RowRef<'_>| (units(row, ytd), text(row, name));
        let (id, (had, name)) = lock(txn, table, &[warehouse, district], scratch, key, read)?;
        txn.update(&table.handle, id, &[(ytd, money(had + amount))])?;
        Ok(name)
    }

    fn customers_by_last(&mut self, warehouse: i64, district: i64, last: &str) -> Result<Vec<i64>> {
        let index = self.customer_last.clone();
        parts!(self, customer => txn, table, scratch, key);
        key.clear();
        let prefix = [Datum::Int(warehouse), Datum::Int(district), Datum::str(last)];
        assert!(index.keys.encode_prefix(&prefix, key), "TPC-C's keys fit their columns");
        let id = table.column("c_id");
        let mut ids = Vec::new();
        let range = KeyRange::prefix(key);
        txn.index_scan(&table.handle, &index, &range, Direction::Ascending, scratch, &mut |_, row| {
            ids.push(int(&row, id));
            ControlFlow::Continue(())
        })?;
        Ok(ids)
    }

    fn payer_for_update(&mut self, c: CustomerKey) -> Result<Payer> {
        parts!(self, customer => txn, table, scratch, key);
        let [credit, first, last] = columns!(table, "c_credit", "c_first", "c_last");
        let read = |row: &RowRef<'_>| Payer {
            credit: text(row, credit),
            shown: Shown(vec![text(row, first), text(row, last)]),
        };
        Ok(lock(txn, table, &[c.warehouse, c.district, c.customer], scratch, key, read)?.1)
    }

    fn customer_data(&mut self, c: CustomerKey) -> Result<String> {
        parts!(self, customer => txn, table, scratch, key);
        let data = table.column("c_data");
        let values = [c.warehouse, c.district, c.customer];
        Ok(required(get(txn, table, &values, scratch, key, |row| text(row, data))?))
    }

    fn pay_customer(&mut self, c: CustomerKey, amount: Cents, data: Option<&str>) -> Result<()> {
        parts!(self, customer => txn, table, scratch, key);
        let [balance, ytd, count, c_data] =
            columns!(table, "c_balance", "c_ytd_payment", "c_payment_cnt", "c_data");
        let read = |row: &RowRef<'_>| (units(row, balance), units(row, ytd), int(row, count));
        let values = [c.warehouse, c.district, c.customer];
        let (id, (had, paid, times)) = lock(txn, table, &values, scratch, key, read)?;
        let mut changes =
            vec![(balance, money(had - amount)), (ytd, money(paid + amount)), (count, Datum::Int(times + 1))];
        changes.extend(data.map(|data| (c_data, Datum::str(data))));
        txn.update(&table.handle, id, &changes).map(drop)
    }

    fn insert_history(&mut self, paid: &Paid<'_>) -> Result<()> {
        let txn = self.txn.as_mut().expect("begin was called");
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
        txn.insert(&self.history.handle, &row).map(drop)
    }

    fn show_customer(&mut self, c: CustomerKey) -> Result<Shown> {
        parts!(self, customer => txn, table, scratch, key);
        let names = columns!(table, "c_first", "c_middle", "c_last");
        let balance = table.column("c_balance");
        let values = [c.warehouse, c.district, c.customer];
        let shown = get(txn, table, &values, scratch, key, |row| {
            let mut shown = vec![units(row, balance).to_string()];
            shown.extend(names.iter().map(|&name| text(row, name)));
            Shown(shown)
        })?;
        Ok(required(shown))
    }

    fn newest_order(&mut self, c: CustomerKey) -> Result<Option<(i64, i64)>> {
        let index = self.orders_customer.clone();
        parts!(self, orders => txn, table, scratch, key);
        encode(&index, &[c.warehouse, c.district, c.customer], key);
        let [id, lines] = columns!(table, "o_id", "o_ol_cnt");
        let mut newest = None;
        let range = KeyRange::prefix(key);
        txn.index_scan(&table.handle, &index, &range, Direction::Descending, scratch, &mut |_, row| {
            newest = Some((int(&row, id), int(&row, lines)));
            ControlFlow::Break(())
        })?;
        Ok(newest)
    }

    fn show_lines(&mut self, order: OrderKey) -> Result<Vec<Shown>> {
        parts!(self, order_line => txn, table, scratch, key);
        let [item, warehouse, quantity, amount] =
            columns!(table, "ol_i_id", "ol_supply_w_id", "ol_quantity", "ol_amount");
        encode(&table.primary, &[order.warehouse, order.district, order.order], key);
        let mut lines = Vec::new();
        let range = KeyRange::prefix(key);
        txn.index_scan(
            &table.handle,
            &table.primary,
            &range,
            Direction::Ascending,
            scratch,
            &mut |_, row| {
                let numbers =
                    [int(&row, item), int(&row, warehouse), int(&row, quantity), units(&row, amount)];
                lines.push(Shown(numbers.iter().map(i64::to_string).collect()));
                ControlFlow::Continue(())
            },
        )?;
        Ok(lines)
    }

    fn oldest_new_order(&mut self, warehouse: i64, district: i64) -> Result<Option<i64>> {
        parts!(self, new_order => txn, table, scratch, key);
        let order = table.column("no_o_id");
        encode(&table.primary, &[warehouse, district], key);
        let mut oldest = None;
        let range = KeyRange::prefix(key);
        txn.lock_scan(
            &table.handle,
            &table.primary,
            &range,
            Direction::Ascending,
            scratch,
            &mut |_, row| {
                oldest = Some(int(&row, order));
                ControlFlow::Break(())
            },
        )?;
        Ok(oldest)
    }

    fn delete_new_order(&mut self, order: OrderKey) -> Result<()> {
        parts!(self, new_order => txn, table, scratch, key);
        let values = [order.warehouse, order.district, order.order];
        let (id, ()) = lock(txn, table, &values, scratch, key, |_| ())?;
        txn.delete(&table.handle, id).map(drop)
    }

    fn order_customer(&mut self, order: OrderKey) -> Result<i64> {
        parts!(self, orders => txn, table, scratch, key);
        let customer = table.column("o_c_id");
        let values = [order.warehouse, order.district, order.order];
        Ok(required(get(txn, table, &values, scratch, key, |row| int(row, customer))?))
    }

    fn set_carrier(&mut self, order: OrderKey, carrier: i64) -> Result<()> {
        parts!(self, orders => txn, table, scratch, key);
        let column = table.column("o_carrier_id");
        let values = [order.warehouse, order.district, order.order];
        let (id, ()) = lock(txn, table, &values, scratch, key, |_| ())?;
        txn.update(&table.handle, id, &[(column, Datum::Int(carrier))]).map(drop)
    }

    fn set_delivered(&mut self, order: OrderKey, when: Micros) -> Result<()> {
        parts!(self, order_line => txn, table, scratch, key);
        let column = table.column("ol_delivery_d");
        encode(&table.primary, &[order.warehouse, order.district, order.order], key);
        let mut ids = Vec::with_capacity(15);
        let range = KeyRange::prefix(key);
        txn.lock_scan(&table.handle, &table.primary, &range, Direction::Ascending, scratch, &mut |id, _| {
            ids.push(id);
            ControlFlow::Continue(())
        })?;
        for id in ids {
            txn.update(&table.handle, id, &[(column, to_the_second(when))])?;
        }
        Ok(())
    }

    fn order_amount(&mut self, order: OrderKey) -> Result<Cents> {
        parts!(self, order_line => txn, table, scratch, key);
        let amount = table.column("ol_amount");
        encode(&table.primary, &[order.warehouse, order.district, order.order], key);
        let mut sum = 0;
        let range = KeyRange::prefix(key);
        txn.index_scan(
            &table.handle,
            &table.primary,
            &range,
            Direction::Ascending,
            scratch,
            &mut |_, row| {
                sum += units(&row, amount);
                ControlFlow::Continue(())
            },
        )?;
        Ok(sum)
    }

    fn credit_customer(&mut self, c: CustomerKey, amount: Cents) -> Result<()> {
        parts!(self, customer => txn, table, scratch, key);
        let [balance, count] = columns!(table, "c_balance", "c_delivery_cnt");
        let read = |row: &RowRef<'_>| (units(row, balance), int(row, count));
        let values = [c.warehouse, c.district, c.customer];
        let (id, (had, times)) = lock(txn, table, &values, scratch, key, read)?;
        let changes = [(balance, money(had + amount)), (count, Datum::Int(times + 1))];
        txn.update(&table.handle, id, &changes).map(drop)
    }

    fn next_order_number(&mut self, warehouse: i64, district: i64) -> Result<i64> {
        parts!(self, district => txn, table, scratch, key);
        let next = table.column("d_next_o_id");
        Ok(required(get(txn, table, &[warehouse, district], scratch, key, |row| int(row, next))?))
    }

    fn low_stock(&mut self, warehouse: i64, district: i64, next: i64, threshold: i64) -> Result<i64> {
        let mut items = Vec::with_capacity(200);
        {
            parts!(self, order_line => txn, table, scratch, key);
            let item = table.column("ol_i_id");
            encode(&table.primary, &[warehouse, district, next - 20], key);
            let mut upper = Vec::new();
            encode(&table.primary, &[warehouse, district, next], &mut upper);
            let range = KeyRange::new(Bound::Included(key), Bound::Excluded(&upper));
            txn.index_scan(
                &table.handle,
                &table.primary,
                &range,
                Direction::Ascending,
                scratch,
                &mut |_, row| {
                    items.push(int(&row, item));
                    ControlFlow::Continue(())
                },
            )?;
        }
        items.sort_unstable();
        items.dedup();
        parts!(self, stock => txn, table, scratch, key);
        let quantity = table.column("s_quantity");
        let mut low = 0;
        for item in items {
            let left = get(txn, table, &[warehouse, item], scratch, key, |row| int(row, quantity))?;
            low += i64::from(required(left) < threshold);
        }
        Ok(low)
    }
}

/// Runs one worker in process for the planned time, on a data directory that was loaded before.
pub fn measure(
    engine: &Arc<Engine>,
    scale: schema::Scale,
    plan: super::driver::Plan,
) -> Result<super::driver::Run> {
    let control = super::driver::Control::default();
    let connect = || EngineOps::new(engine);
    let (run, errors) =
        super::driver::run(plan, scale, &control, connect, |_| super::driver::Watch::EndInTime)?;
    // What is still on its way belongs to the run.
    let options = TxnOptions { freshness: Freshness::Logged, ..TxnOptions::default() };
    engine.begin(options).commit()?.wait()?;
    match errors.into_iter().next() {
        Some(e) => Err(e),
        None => Ok(run),
    }
}
