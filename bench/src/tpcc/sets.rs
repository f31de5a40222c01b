//! TPC-C with a statement for a set of rows where it has several: an order's items, stocks and lines, and the ten districts of a
//! Delivery. That is how third-party clients (go-tpc) send it: lists and row constructors of as many keys as there are.

use std::collections::HashMap;

use mysql::prelude::Queryable;
use mysql::{OptsBuilder, Params, Row, Value};

use super::driver::Runner;
use super::ops::*;
use super::schema::DISTRICTS;
use super::sql::{SqlOps, change_one, decimal, shown};
use super::transactions::{Delivery, NewOrder, Outcome, Transaction, total_amount};
use crate::error::{Error, Result};
use crate::value::{cents, datetime, int, text};

/// A terminal's connection. Payment, Order-Status and Stock-Level are of single rows and ranges in either style.
pub struct Sets(SqlOps);

/// What New-Order reads of a stock, and what is left of it.
struct Stock {
    quantity: i64,
    district_info: String,
    original: bool,
}

/// `(?, ?), (?, ?)`: so many tuples of so many marks.
fn tuples(count: usize, width: usize) -> String {
    let marks = vec!["?"; width].join(", ");
    let tuple = if width == 1 { marks } else { format!("({marks})") };
    vec![tuple; count].join(", ")
}

fn positional(values: impl IntoIterator<Item = i64>) -> Params {
    Params::Positional(values.into_iter().map(Value::from).collect())
}

impl Sets {
    pub fn connect(options: OptsBuilder) -> Result<Sets> {
        SqlOps::connect(options).map(Sets)
    }

    /// Rows of a statement that is prepared once for its text.
    fn rows(&mut self, sql: &str, params: Params) -> Result<Vec<Row>> {
        Ok(self.0.conn.exec(sql, params)?)
    }

    /// Runs a statement that must change so many rows, or as many as it finds.
    fn change(&mut self, sql: &str, params: Params, wanted: Option<usize>) -> Result<()> {
        self.0.conn.exec_drop(sql, params)?;
        let changed = self.0.conn.affected_rows();
        match wanted {
            Some(wanted) if changed != wanted as u64 => {
                Err(Error::Check(format!("a statement that changes {wanted} rows changed {changed}")))
            }
            _ => Ok(()),
        }
    }

    /// Price, whether it is original, by item; items that are not there are missing.
    fn items(&mut self, order: &NewOrder) -> Result<HashMap<i64, (Cents, bool)>> {
        let wanted = order.lines.iter().map(|line| line.item);
        let sql = format!(
            "SELECT i_price, i_name, i_data, i_id FROM item WHERE i_id IN ({})",
            tuples(order.lines.len(), 1)
        );
        let rows = self.rows(&sql, positional(wanted))?;
        let each = rows.iter().map(|row| {
            std::hint::black_box(shown(row, &[1])?);
            Ok((int(row, 3)?, (decimal(row, 0, 2)?, is_original(&text(row, 2)?))))
        });
        each.collect()
    }

    /// Locks the stocks of an order, by warehouse and item.
    fn stocks(&mut self, order: &NewOrder) -> Result<HashMap<(i64, i64), Stock>> {
        let wanted = order.lines.iter().flat_map(|line| [line.supply_warehouse, line.item]);
        let infos: Vec<_> = (1..=DISTRICTS).map(|district| format!("s_dist_{district:02}")).collect();
        let sql = format!(
            "SELECT s_w_id, s_i_id, s_quantity, s_data, {} FROM stock WHERE (s_w_id, s_i_id) IN ({}) FOR UPDATE",
            infos.join(", "),
            tuples(order.lines.len(), 2)
        );
        let rows = self.rows(&sql, positional(wanted))?;
        let each = rows.iter().map(|row| {
            let stock = Stock {
                quantity: int(row, 2)?,
                district_info: text(row, 3 + order.customer.district as usize)?,
                original: is_original(&text(row, 3)?),
            };
            Ok(((int(row, 0)?, int(row, 1)?), stock))
        });
        each.collect()
    }

    fn new_order(&mut self, order: &NewOrder) -> Result<Outcome> {
        let CustomerKey { warehouse, district, customer } = order.customer;
        let buyer = self.0.buyer(order.customer)?;
        let (number, district_tax) = self.0.take_order_number(warehouse, district)?;
        let key = OrderKey { warehouse, district, order: number };
        let all_local = order.lines.iter().all(|line| line.supply_warehouse == warehouse);
        let line_count = order.lines.len() as i64;
        self.0.insert_order(&NewOrderRow { key, customer, entry: order.entry, line_count, all_local })?;
        self.0.insert_new_order(key)?;
        let items = self.items(order)?;
        if order.lines.iter().any(|line| !items.contains_key(&line.item)) {
            return Ok(Outcome::RolledBack);
        }
        let mut stocks = self.stocks(order)?;
        let mut lines = Vec::with_capacity(order.lines.len() * 9);
        let mut sum = 0;
        for (line, place) in order.lines.iter().zip(1_i64..) {
            let stock = stocks
                .get_mut(&(line.supply_warehouse, line.item))
                .ok_or_else(|| Error::Check("a stock that TPC-C has is not there".into()))?;
            // An order may have an item twice.
            stock.quantity = stock_after(stock.quantity, line.quantity);
            let remote = i64::from(line.supply_warehouse != warehouse);
            let update = "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1,
                s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?";
            let values = [stock.quantity, line.quantity, remote, line.supply_warehouse, line.item];
            let statement = self.0.conn.prep(update)?;
            change_one(&mut self.0.conn, &statement, positional(values))?;
            let (price, original) = items[&line.item];
            std::hint::black_box(original && stock.original);
            let amount = line.quantity * price;
            sum += amount;
            let keys = [number, district, warehouse, place, line.item, line.supply_warehouse, line.quantity];
            lines.extend(keys.map(Value::from));
            lines.extend([cents(amount), Value::from(&stock.district_info)]);
        }
        let sql = format!(
            "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity,
             ol_amount, ol_dist_info) VALUES {}",
            tuples(order.lines.len(), 9)
        );
        self.change(&sql, Params::Positional(lines), Some(order.lines.len()))?;
        let total = total_amount(sum, buyer.discount, buyer.warehouse_tax, district_tax);
        std::hint::black_box((total, buyer.shown));
        Ok(Outcome::Ordered(key))
    }

    /// The oldest new order of every district that has one.
    fn oldest(&mut self, warehouse: i64) -> Result<Vec<OrderKey>> {
        let mut keys = Vec::new();
        for district in 1..=DISTRICTS {
            let sql = "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ?
                ORDER BY no_o_id ASC LIMIT 1 FOR UPDATE";
            let rows = self.rows(sql, positional([warehouse, district]))?;
            if let Some(row) = rows.first() {
                keys.push(OrderKey { warehouse, district, order: int(row, 0)? });
            }
        }
        Ok(keys)
    }

    fn deliver(&mut self, delivery: &Delivery) -> Result<Outcome> {
        let keys = self.oldest(delivery.warehouse)?;
        if keys.is_empty() {
            return Ok(Outcome::Delivered(keys));
        }
        let count = keys.len();
        let set = tuples(count, 3);
        let values = || keys.iter().flat_map(|key| [key.warehouse, key.district, key.order]).map(Value::from);
        let with = |first: Value| Params::Positional(std::iter::once(first).chain(values()).collect());
        let of_set = || Params::Positional(values().collect());
        let sql = format!("DELETE FROM new_order WHERE (no_w_id, no_d_id, no_o_id) IN ({set})");
        self.change(&sql, of_set(), Some(count))?;
        let sql = format!("UPDATE orders SET o_carrier_id = ? WHERE (o_w_id, o_d_id, o_id) IN ({set})");
        self.change(&sql, with(Value::from(delivery.carrier)), Some(count))?;
        // They are its own changes by now, so that the snapshot sees them however new they are.
        let sql = format!("SELECT o_d_id, o_c_id FROM orders WHERE (o_w_id, o_d_id, o_id) IN ({set})");
        let customers = by_district(&self.rows(&sql, of_set())?, |row| int(row, 1))?;
        let sql =
            format!("UPDATE order_line SET ol_delivery_d = ? WHERE (ol_w_id, ol_d_id, ol_o_id) IN ({set})");
        self.change(&sql, with(datetime(delivery.when)), None)?;
        let sql = format!(
            "SELECT ol_d_id, SUM(ol_amount) FROM order_line WHERE (ol_w_id, ol_d_id, ol_o_id) IN ({set})
             GROUP BY ol_d_id"
        );
        let amounts = by_district(&self.rows(&sql, of_set())?, |row| decimal(row, 1, 2))?;
        for OrderKey { warehouse, district, .. } in &keys {
            let (Some(customer), Some(amount)) = (customers.get(district), amounts.get(district)) else {
                return Err(Error::Check("an order is delivered without its customer or its lines".into()));
            };
            let customer = CustomerKey { warehouse: *warehouse, district: *district, customer: *customer };
            self.0.credit_customer(customer, *amount)?;
        }
        Ok(Outcome::Delivered(keys))
    }
}

/// Values of rows that begin with a district.
fn by_district(rows: &[Row], value: impl Fn(&Row) -> Result<i64>) -> Result<HashMap<i64, i64>> {
    rows.iter().map(|row| Ok((int(row, 0)?, value(row)?))).collect()
}

impl Runner for Sets {
    type Error = Error;

    fn run(&mut self, transaction: &Transaction) -> Result<Outcome> {
        let outcome = match transaction {
            Transaction::NewOrder(order) => {
                self.0.begin()?;
                self.new_order(order)?
            }
            Transaction::Delivery(delivery) => {
                self.0.begin()?;
                self.deliver(delivery)?
            }
            Transaction::Payment(_) | Transaction::OrderStatus(_) | Transaction::StockLevel(_) => {
                return transaction.run(&mut self.0);
            }
        };
        match outcome {
            Outcome::RolledBack => self.0.rollback()?,
            _ => self.0.commit()?,
        }
        Ok(outcome)
    }

    fn roll_back(&mut self) -> Result<()> {
        self.0.rollback()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_tuples_of_marks() {
        assert_eq!(tuples(2, 3), "(?, ?, ?), (?, ?, ?)");
        assert_eq!(tuples(3, 1), "?, ?, ?");
    }
}
