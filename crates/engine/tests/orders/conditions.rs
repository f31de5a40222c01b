//! What holds in every snapshot.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use avocet_engine::*;

use super::{Tables, int};

/// Everything that a snapshot sees: rows by table, sorted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen([Vec<Vec<i64>>; 6]);

/// Reads all tables by scans of their columns, or along their last indexes.
pub fn see(txn: &Txn, tables: &Tables, by_index: bool) -> Seen {
    let Tables { district, customer, orders, pending, line, stock } = tables;
    let read = |table| if by_index { along_index(txn, table) } else { scan(txn, table) };
    Seen([district, customer, orders, pending, line, stock].map(read))
}

fn scan(txn: &Txn, table: &Arc<TableHandle>) -> Vec<Vec<i64>> {
    let width = table.def.columns.len();
    let scan = txn.scan(table, ScanRequest { columns: (0..width).collect(), ..ScanRequest::default() });
    let mut rows = Vec::new();
    for morsel in 0..scan.morsels() {
        let read = scan.read(morsel, &mut |batch| {
            let columns: Vec<_> =
                (0..width).map(|c| batch.column(c).as_primitive::<Int64Type>().values()).collect();
            rows.extend((0..batch.num_rows()).map(|at| columns.iter().map(|c| c[at]).collect::<Vec<_>>()));
            ControlFlow::Continue(())
        });
        assert!(read.expect("readable").is_continue());
    }
    rows.sort_unstable();
    rows
}

fn along_index(txn: &Txn, table: &Arc<TableHandle>) -> Vec<Vec<i64>> {
    let index = table.indexes().last().expect("a primary key at least").clone();
    let width = table.def.columns.len();
    let (mut rows, mut scratch) = (Vec::new(), ReadScratch::default());
    let each = &mut |_, row: avocet_types::RowRef<'_>| {
        rows.push((0..width).map(|c| int(&row, c)).collect::<Vec<_>>());
        ControlFlow::Continue(())
    };
    txn.index_scan(table, &index, &KeyRange::all(), Direction::Ascending, &mut scratch, each)
        .expect("readable");
    rows.sort_unstable();
    rows
}

type Sums = BTreeMap<(i64, i64), i64>;

impl Seen {
    /// TPC-C's consistency conditions (clause 3.3.2), as far as there are such tables, and that no row is there twice.
    /// Says which one does not hold.
    pub fn violation(&self) -> Option<String> {
        let [districts, customers, orders, pending, lines, stock] = &self.0;
        for (rows, key) in self.0.iter().zip([1, 2, 2, 2, 3, 1]) {
            if let Some(pair) = rows.windows(2).find(|pair| pair[0][..key] == pair[1][..key]) {
                return Some(format!("a row is there twice: {pair:?}"));
            }
        }
        let mut paid: BTreeMap<i64, i64> = BTreeMap::new();
        customers.iter().for_each(|c| *paid.entry(c[0]).or_default() += c[3]);
        for district in districts {
            let d = district[0];
            let of = |rows: &[Vec<i64>]| -> Vec<i64> {
                rows.iter().filter(|row| row[0] == d).map(|row| row[1]).collect()
            };
            let (ordered, waiting) = (of(orders), of(pending));
            if ordered != (1..district[1]).collect::<Vec<_>>() {
                return Some(format!("district {district:?} has orders {ordered:?}"));
            }
            let newest = (district[1] - waiting.len() as i64)..district[1];
            if waiting != newest.collect::<Vec<_>>() {
                return Some(format!("district {district:?} has pending orders {waiting:?}"));
            }
            if paid.get(&d) != Some(&district[2]) {
                return Some(format!("district {district:?}: its customers paid {paid:?}"));
            }
        }
        Self::violation_of_orders(orders, pending, lines)
            .or_else(|| Self::violation_of_customers(customers, orders, lines))
            .or_else(|| Self::violation_of_stock(stock, lines))
    }

    fn violation_of_orders(orders: &[Vec<i64>], pending: &[Vec<i64>], lines: &[Vec<i64>]) -> Option<String> {
        let mut counts = Sums::new();
        let mut delivered = Sums::new();
        for line in lines {
            *counts.entry((line[0], line[1])).or_default() += 1;
            *delivered.entry((line[0], line[1])).or_default() += line[6];
        }
        for order in orders {
            let id = (order[0], order[1]);
            let waits = pending.iter().any(|p| p[0] == id.0 && p[1] == id.1);
            if waits != (order[3] == 0) {
                return Some(format!("order {order:?} is pending: {waits}"));
            }
            if counts.get(&id) != Some(&order[4]) {
                return Some(format!("order {order:?} has {:?} lines", counts.get(&id)));
            }
            if delivered[&id] != if waits { 0 } else { order[4] } {
                return Some(format!("order {order:?} has {} delivered lines", delivered[&id]));
            }
        }
        (counts.len() != orders.len()).then(|| format!("{} orders have lines", counts.len()))
    }

    /// Conditions 10 and 12: a balance is what was delivered less what was paid.
    fn violation_of_customers(
        customers: &[Vec<i64>],
        orders: &[Vec<i64>],
        lines: &[Vec<i64>],
    ) -> Option<String> {
        let customer_of: BTreeMap<(i64, i64), i64> = orders.iter().map(|o| ((o[0], o[1]), o[2])).collect();
        let mut delivered = Sums::new();
        for line in lines.iter().filter(|line| line[6] == 1) {
            *delivered.entry((line[0], customer_of[&(line[0], line[1])])).or_default() += line[5];
        }
        let mut deliveries = Sums::new();
        for order in orders.iter().filter(|order| order[3] != 0) {
            *deliveries.entry((order[0], order[2])).or_default() += 1;
        }
        customers.iter().find_map(|customer| {
            let id = (customer[0], customer[1]);
            let got = delivered.get(&id).copied().unwrap_or(0);
            let times = deliveries.get(&id).copied().unwrap_or(0);
            let holds = customer[2] == got - customer[3] && customer[4] == times;
            (!holds).then(|| format!("customer {customer:?} was delivered {got} in {times} orders"))
        })
    }

    fn violation_of_stock(stock: &[Vec<i64>], lines: &[Vec<i64>]) -> Option<String> {
        let counted = stock.first().map(|item| item[3]);
        stock.iter().find_map(|item| {
            let of_item = || lines.iter().filter(|line| line[3] == item[0]);
            let (sold, orders) = (of_item().map(|line| line[4]).sum::<i64>(), of_item().count() as i64);
            let holds = item[1] == sold && item[2] == orders && Some(item[3]) == counted;
            (!holds).then(|| format!("item {item:?}: {sold} in {orders} lines; others counted {counted:?}"))
        })
    }
}
