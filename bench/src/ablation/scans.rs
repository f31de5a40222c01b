//! TPC-C's steps on tables without any index: rows are found by the engine's column scans, with their predicates on encoded
//! blocks and the blocks' bounds, as a column store finds them. What needs no finding is `EngineOps`'s.
//!
//! A row that was found at the snapshot, and has moved or gone since, is a conflict: the transaction runs again.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::{Array, UInt64Array};
use avocet_engine::{
    ColdValue, ColumnPredicate, CompareOp, Engine, EngineError, Freshness, RowBuf, RowId, RowLock,
    ScanRequest, TableHandle, Txn, TxnOptions,
};
use avocet_types::{Datum, Decimal, RowRef};

use crate::tpcc::DATABASE;
use crate::tpcc::ops::*;
use crate::tpcc::steps::{EngineOps, Tables};

type Result<T> = std::result::Result<T, EngineError>;

/// One client.
pub struct ScanOps {
    engine: Arc<Engine>,
    txn: Option<Txn>,
    /// For what is inserted.
    tables: Tables,
    warehouse: Arc<TableHandle>,
    district: Arc<TableHandle>,
    customer: Arc<TableHandle>,
    new_order: Arc<TableHandle>,
    orders: Arc<TableHandle>,
    order_line: Arc<TableHandle>,
    item: Arc<TableHandle>,
    stock: Arc<TableHandle>,
}

/// A row that was found, with its columns by name.
struct Row<'r> {
    table: &'r TableHandle,
    row: RowRef<'r>,
}

fn column(table: &TableHandle, name: &str) -> usize {
    table.def.column(name).expect("TPC-C's tables have TPC-C's columns")
}

impl Row<'_> {
    fn int(&self, name: &str) -> i64 {
        match self.row.get(column(self.table, name)) {
            Datum::Int(v) => v,
            other => unreachable!("{name} is an integer, not {other:?}"),
        }
    }

    fn units(&self, name: &str) -> i64 {
        match self.row.get(column(self.table, name)) {
            Datum::Decimal(d) => d.as_i128().expect("TPC-C's decimals are narrow") as i64,
            other => unreachable!("{name} is a decimal, not {other:?}"),
        }
    }

    fn text(&self, name: &str) -> String {
        match self.row.get(column(self.table, name)) {
            Datum::Str(s) => s.into_owned(),
            other => unreachable!("{name} is text, not {other:?}"),
        }
    }
}

fn money(units: i64) -> Datum<'static> {
    Datum::Decimal(Decimal::new(units.into(), 2))
}

/// What a column must be.
fn compare(table: &TableHandle, name: &str, op: CompareOp, value: i64) -> (usize, ColumnPredicate) {
    (column(table, name), ColumnPredicate::Compare(op, ColdValue::Int(value)))
}

fn equal(table: &TableHandle, keys: &[(&str, i64)]) -> Vec<(usize, ColumnPredicate)> {
    keys.iter().map(|(name, value)| compare(table, name, CompareOp::Eq, *value)).collect()
}

impl ScanOps {
    pub fn new(engine: &Arc<Engine>) -> Result<ScanOps> {
        let catalog = engine.catalog();
        let open = |name: &str| {
            let missing = || EngineError::NoSuchTable(DATABASE.into(), name.into());
            catalog.table(DATABASE, name).cloned().ok_or_else(missing)
        };
        Ok(ScanOps {
            engine: engine.clone(),
            txn: None,
            tables: Tables::open(engine)?,
            warehouse: open("warehouse")?,
            district: open("district")?,
            customer: open("customer")?,
            new_order: open("new_order")?,
            orders: open("orders")?,
            order_line: open("order_line")?,
            item: open("item")?,
            stock: open("stock")?,
        })
    }

    fn txn(&mut self) -> &mut Txn {
        self.txn.as_mut().expect("begin was called")
    }

    /// Inserts need no finding.
    fn inserts(&mut self) -> EngineOps<'_> {
        let txn = self.txn.as_mut().expect("begin was called");
        EngineOps { txn, tables: &mut self.tables }
    }

    /// The rows that the snapshot sees of which all this holds.
    fn find(
        &mut self,
        table: &Arc<TableHandle>,
        predicates: Vec<(usize, ColumnPredicate)>,
    ) -> Result<Vec<RowId>> {
        let request = ScanRequest { predicates, with_row_id: true, ..ScanRequest::default() };
        let scan = self.txn().scan(table, request);
        let mut found = Vec::new();
        for morsel in 0..scan.morsels() {
            let _ = scan.read(morsel, &mut |batch| {
                let ids = batch.column(0).as_any().downcast_ref::<UInt64Array>();
                found.extend(ids.expect("row ids are u64").values().iter().map(|id| RowId(*id)));
                ControlFlow::Continue(())
            })?;
        }
        Ok(found)
    }

    /// Reads all rows with these keys.
    fn read<R>(
        &mut self,
        table: &Arc<TableHandle>,
        predicates: Vec<(usize, ColumnPredicate)>,
        mut each: impl FnMut(RowId, &Row<'_>) -> R,
    ) -> Result<Vec<R>> {
        let mut buf = RowBuf::default();
        let mut all = Vec::new();
        for id in self.find(table, predicates)? {
            if self.txn().read(table, id, &mut buf)? {
                all.push(each(id, &Row { table, row: buf.row(&table.layout) }));
            }
        }
        Ok(all)
    }

    /// Reads the row with these keys.
    fn get<R>(
        &mut self,
        table: &Arc<TableHandle>,
        keys: &[(&str, i64)],
        mut read: impl FnMut(&Row<'_>) -> R,
    ) -> Result<Option<R>> {
        Ok(self.read(table, equal(table, keys), |_, row| read(row))?.pop())
    }

    /// Locks, reads and changes the rows with these keys.
    fn change<R>(
        &mut self,
        table: &Arc<TableHandle>,
        keys: &[(&str, i64)],
        mut change: impl FnMut(&Row<'_>, &mut Vec<(usize, Datum<'static>)>) -> R,
    ) -> Result<Vec<R>> {
        let moved = || EngineError::SnapshotConflict(table.def.name.clone());
        let mut buf = RowBuf::default();
        let mut all = Vec::new();
        for id in self.find(table, equal(table, keys))? {
            let txn = self.txn();
            if !txn.lock_row(table, id, RowLock::FOR_UPDATE, &mut buf)? {
                return Err(moved());
            }
            let mut changes = Vec::new();
            all.push(change(&Row { table, row: buf.row(&table.layout) }, &mut changes));
            txn.update(table, id, &changes)?.ok_or_else(moved)?;
        }
        Ok(all)
    }
}

fn one<T>(mut found: Vec<T>) -> T {
    found.pop().expect("a row that TPC-C has is there")
}

fn customer_keys(c: &CustomerKey) -> [(&'static str, i64); 3] {
    [("c_w_id", c.warehouse), ("c_d_id", c.district), ("c_id", c.customer)]
}

fn line_keys(o: &OrderKey) -> [(&'static str, i64); 3] {
    [("ol_w_id", o.warehouse), ("ol_d_id", o.district), ("ol_o_id", o.order)]
}

impl TpccOps for ScanOps {
    type Error = EngineError;

    fn begin(&mut self) -> Result<()> {
        let options = TxnOptions { freshness: Freshness::Logged, ..TxnOptions::default() };
        self.txn = Some(self.engine.begin(options));
        Ok(())
    }

    /// Whoever runs the transaction waits for it to be visible.
    fn commit(&mut self) -> Result<()> {
        self.txn.take().expect("begin was called").commit().map(drop)
    }

    fn rollback(&mut self) -> Result<()> {
        if let Some(txn) = self.txn.take() {
            txn.rollback();
        }
        Ok(())
    }

    fn buyer(&mut self, c: CustomerKey) -> Result<Buyer> {
        let (warehouse, customer) = (self.warehouse.clone(), self.customer.clone());
        let tax = self.get(&warehouse, &[("w_id", c.warehouse)], |row| row.units("w_tax"))?;
        let warehouse_tax = tax.expect("a row that TPC-C has is there");
        let buyer = self.get(&customer, &customer_keys(&c), |row| Buyer {
            discount: row.units("c_discount"),
            warehouse_tax,
            shown: Shown(vec![row.text("c_last"), row.text("c_credit")]),
        })?;
        Ok(buyer.expect("a row that TPC-C has is there"))
    }

    fn take_order_number(&mut self, warehouse: i64, district: i64) -> Result<(i64, Rate)> {
        let table = self.district.clone();
        let next = column(&table, "d_next_o_id");
        let taken = self.change(&table, &[("d_w_id", warehouse), ("d_id", district)], |row, to| {
            let number = row.int("d_next_o_id");
            to.push((next, Datum::Int(number + 1)));
            (number, row.units("d_tax"))
        })?;
        Ok(one(taken))
    }

    fn insert_order(&mut self, order: &NewOrderRow) -> Result<()> {
        self.inserts().insert_order(order)
    }

    fn insert_new_order(&mut self, order: OrderKey) -> Result<()> {
        self.inserts().insert_new_order(order)
    }

    fn item(&mut self, item: i64) -> Result<Option<Item>> {
        let table = self.item.clone();
        self.get(&table, &[("i_id", item)], |row| Item {
            price: row.units("i_price"),
            original: is_original(&row.text("i_data")),
            shown: Shown(vec![row.text("i_name")]),
        })
    }

    fn take_from_stock(&mut self, taking: &Taking, district_info: &mut String) -> Result<bool> {
        let table = self.stock.clone();
        let keys = [("s_w_id", taking.warehouse), ("s_i_id", taking.item)];
        let info = format!("s_dist_{:02}", taking.district);
        let columns = ["s_quantity", "s_ytd", "s_order_cnt", "s_remote_cnt"].map(|name| column(&table, name));
        let taken = self.change(&table, &keys, |row, to| {
            let after = [
                stock_after(row.int("s_quantity"), taking.quantity),
                row.int("s_ytd") + taking.quantity,
                row.int("s_order_cnt") + 1,
                row.int("s_remote_cnt") + i64::from(taking.remote),
            ];
            to.extend(columns.into_iter().zip(after.map(Datum::Int)));
            *district_info = row.text(&info);
            is_original(&row.text("s_data"))
        })?;
        Ok(one(taken))
    }

    fn insert_line(&mut self, line: &NewLine<'_>) -> Result<()> {
        self.inserts().insert_line(line)
    }

    fn pay_warehouse(&mut self, warehouse: i64, amount: Cents) -> Result<String> {
        let table = self.warehouse.clone();
        let ytd = column(&table, "w_ytd");
        let names = self.change(&table, &[("w_id", warehouse)], |row, to| {
            to.push((ytd, money(row.units("w_ytd") + amount)));
            row.text("w_name")
        })?;
        Ok(one(names))
    }

    fn pay_district(&mut self, warehouse: i64, district: i64, amount: Cents) -> Result<String> {
        let table = self.district.clone();
        let ytd = column(&table, "d_ytd");
        let names = self.change(&table, &[("d_w_id", warehouse), ("d_id", district)], |row, to| {
            to.push((ytd, money(row.units("d_ytd") + amount)));
            row.text("d_name")
        })?;
        Ok(one(names))
    }

    fn customers_by_last(&mut self, warehouse: i64, district: i64, last: &str) -> Result<Vec<i64>> {
        let table = self.customer.clone();
        let mut predicates = equal(&table, &[("c_w_id", warehouse), ("c_d_id", district)]);
        let name = ColdValue::Bytes(last.as_bytes().to_vec().into());
        predicates.push((column(&table, "c_last"), ColumnPredicate::Compare(CompareOp::Eq, name)));
        let mut found = self.read(&table, predicates, |_, row| (row.text("c_first"), row.int("c_id")))?;
        found.sort();
        Ok(found.into_iter().map(|(_, id)| id).collect())
    }

    fn pay_customer(&mut self, payment: &PaymentNote) -> Result<Shown> {
        let table = self.customer.clone();
        let columns = ["c_balance", "c_ytd_payment", "c_payment_cnt", "c_data"].map(|n| column(&table, n));
        let shown = self.change(&table, &customer_keys(&payment.customer), |row, to| {
            to.push((columns[0], money(row.units("c_balance") - payment.amount)));
            to.push((columns[1], money(row.units("c_ytd_payment") + payment.amount)));
            to.push((columns[2], Datum::Int(row.int("c_payment_cnt") + 1)));
            if row.text("c_credit") == "BC" {
                to.push((columns[3], Datum::Str(payment.bad_credit(&row.text("c_data")).into())));
            }
            Shown(vec![row.text("c_first"), row.text("c_last")])
        })?;
        Ok(one(shown))
    }

    fn insert_history(&mut self, paid: &Paid<'_>) -> Result<()> {
        self.inserts().insert_history(paid)
    }

    fn show_customer(&mut self, c: CustomerKey) -> Result<Shown> {
        let table = self.customer.clone();
        let names = ["c_first", "c_middle", "c_last"];
        let shown = self.get(&table, &customer_keys(&c), |row| {
            std::hint::black_box(row.units("c_balance"));
            Shown(names.map(|name| row.text(name)).to_vec())
        })?;
        Ok(shown.expect("a row that TPC-C has is there"))
    }

    fn newest_order(&mut self, c: CustomerKey) -> Result<Option<(i64, i64)>> {
        let table = self.orders.clone();
        let keys = equal(&table, &[("o_w_id", c.warehouse), ("o_d_id", c.district), ("o_c_id", c.customer)]);
        Ok(self.read(&table, keys, |_, row| (row.int("o_id"), row.int("o_ol_cnt")))?.into_iter().max())
    }

    fn show_lines(&mut self, order: OrderKey) -> Result<Vec<Shown>> {
        let table = self.order_line.clone();
        let keys = equal(&table, &line_keys(&order));
        self.read(&table, keys, |_, row| {
            std::hint::black_box((row.int("ol_i_id"), row.int("ol_quantity"), row.units("ol_amount")));
            Shown::default()
        })
    }

    fn take_oldest_new_order(&mut self, warehouse: i64, district: i64) -> Result<Option<i64>> {
        let table = self.new_order.clone();
        let keys = equal(&table, &[("no_w_id", warehouse), ("no_d_id", district)]);
        let oldest = self.read(&table, keys, |id, row| (row.int("no_o_id"), id))?.into_iter().min();
        let Some((order, id)) = oldest else { return Ok(None) };
        if !self.txn().delete(&table, id)? {
            return Err(EngineError::SnapshotConflict(table.def.name.clone()));
        }
        Ok(Some(order))
    }

    fn set_carrier(&mut self, order: OrderKey, carrier: i64) -> Result<i64> {
        let table = self.orders.clone();
        let keys = [("o_w_id", order.warehouse), ("o_d_id", order.district), ("o_id", order.order)];
        let carriers = column(&table, "o_carrier_id");
        let customers = self.change(&table, &keys, |row, to| {
            to.push((carriers, Datum::Int(carrier)));
            row.int("o_c_id")
        })?;
        Ok(one(customers))
    }

    fn deliver_lines(&mut self, order: OrderKey, when: Micros) -> Result<Cents> {
        let table = self.order_line.clone();
        let delivered = column(&table, "ol_delivery_d");
        let to_the_second = when.div_euclid(1_000_000) * 1_000_000;
        let amounts = self.change(&table, &line_keys(&order), |row, to| {
            to.push((delivered, Datum::DateTime(to_the_second)));
            row.units("ol_amount")
        })?;
        Ok(amounts.into_iter().sum())
    }

    fn credit_customer(&mut self, c: CustomerKey, amount: Cents) -> Result<()> {
        let table = self.customer.clone();
        let columns = ["c_balance", "c_delivery_cnt"].map(|name| column(&table, name));
        self.change(&table, &customer_keys(&c), |row, to| {
            to.push((columns[0], money(row.units("c_balance") + amount)));
            to.push((columns[1], Datum::Int(row.int("c_delivery_cnt") + 1)));
        })
        .map(one)
    }

    fn next_order_number(&mut self, warehouse: i64, district: i64) -> Result<i64> {
        let table = self.district.clone();
        let next =
            self.get(&table, &[("d_w_id", warehouse), ("d_id", district)], |row| row.int("d_next_o_id"))?;
        Ok(next.expect("a row that TPC-C has is there"))
    }

    fn low_stock(&mut self, warehouse: i64, district: i64, next: i64, threshold: i64) -> Result<i64> {
        let lines = self.order_line.clone();
        let mut predicates = equal(&lines, &[("ol_w_id", warehouse), ("ol_d_id", district)]);
        predicates.push(compare(&lines, "ol_o_id", CompareOp::Lt, next));
        predicates.push(compare(&lines, "ol_o_id", CompareOp::Ge, next - 20));
        let mut items = self.read(&lines, predicates, |_, row| row.int("ol_i_id"))?;
        items.sort_unstable();
        items.dedup();
        let stock = self.stock.clone();
        let mut predicates = equal(&stock, &[("s_w_id", warehouse)]);
        let wanted = items.into_iter().map(ColdValue::Int).collect();
        predicates.push((column(&stock, "s_i_id"), ColumnPredicate::In(wanted)));
        predicates.push(compare(&stock, "s_quantity", CompareOp::Lt, threshold));
        Ok(self.find(&stock, predicates)?.len() as i64)
    }
}
