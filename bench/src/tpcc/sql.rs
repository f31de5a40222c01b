//! TPC-C's steps as prepared statements over the MySQL protocol: the same text for every database.

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Params, Row, Statement, Value};

use super::ops::*;
use super::schema::DISTRICTS;
use crate::error::{Error, Result};
use crate::value::{self, cents, datetime, int, text};

macro_rules! statements {
    ($($name:ident: $sql:expr;)*) => {
        struct Statements { $($name: Statement,)* stock: Vec<Statement> }

        impl Statements {
            fn prepare(conn: &mut Conn) -> Result<Statements> {
                let mut stock = Vec::new();
                for district in 1..=DISTRICTS {
                    stock.push(conn.prep(format!(
                        "SELECT s_quantity, s_ytd, s_order_cnt, s_remote_cnt, s_dist_{district:02}, s_data FROM stock
                         WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE"
                    ))?);
                }
                Ok(Statements { $($name: conn.prep($sql)?,)* stock })
            }
        }
    };
}

statements! {
    buyer: "SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse
            WHERE w_id = ? AND c_w_id = ? AND c_d_id = ? AND c_id = ?";
    district_for_update: "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE";
    take_order_number: "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?";
    insert_order: "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
                   VALUES (?, ?, ?, ?, ?, ?, ?)";
    insert_new_order: "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)";
    item: "SELECT i_price, i_name, i_data FROM item WHERE i_id = ?";
    update_stock: "UPDATE stock SET s_quantity = ?, s_ytd = ?, s_order_cnt = ?, s_remote_cnt = ?
                   WHERE s_w_id = ? AND s_i_id = ?";
    insert_line: "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity,
                  ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    pay_warehouse: "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?";
    warehouse: "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = ?";
    pay_district: "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?";
    district: "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district
               WHERE d_w_id = ? AND d_id = ?";
    customers_by_last: "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first";
    payer: "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit,
            c_credit_lim, c_discount, c_balance, c_since FROM customer
            WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE";
    customer_data: "SELECT c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    pay_customer: "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?,
                   c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    pay_customer_data: "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?,
                        c_payment_cnt = c_payment_cnt + 1, c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    insert_history: "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
                     VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
    customer_balance: "SELECT c_balance, c_first, c_middle, c_last FROM customer
                       WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    newest_order: "SELECT o_id, o_ol_cnt, o_entry_d, o_carrier_id FROM orders
                   WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1";
    lines: "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
            WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
    oldest_new_order: "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ?
                       ORDER BY no_o_id LIMIT 1 FOR UPDATE";
    delete_new_order: "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?";
    // Found by a locking read, the order may be newer than the snapshot of plain ones.
    order_customer: "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ? FOR UPDATE";
    set_carrier: "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?";
    set_delivered: "UPDATE order_line SET ol_delivery_d = ? WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
    order_amount: "SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
    credit_customer: "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1
                      WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    next_order_number: "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?";
    low_stock: "SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock
                WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id < ? AND ol_o_id >= ?
                AND s_w_id = ? AND s_i_id = ol_i_id AND s_quantity < ?";
}

/// One terminal's connection with all its statements prepared.
pub struct SqlOps {
    pub(super) conn: Conn,
    statements: Statements,
}

/// Positional parameters from anything that converts to a value.
macro_rules! params {
    ($($value:expr),* $(,)?) => { Params::Positional(vec![$(Value::from($value)),*]) };
}

impl SqlOps {
    pub fn connect(options: OptsBuilder) -> Result<SqlOps> {
        let mut conn = Conn::new(options)?;
        let statements = Statements::prepare(&mut conn)?;
        Ok(SqlOps { conn, statements })
    }
}

/// Runs a statement that must find a row.
fn one(conn: &mut Conn, statement: &Statement, params: Params) -> Result<Row> {
    conn.exec_first(statement, params)?
        .ok_or_else(|| Error::Check("a row that TPC-C has is not there".into()))
}

/// Runs a statement that must change exactly one row.
pub(super) fn change_one(conn: &mut Conn, statement: &Statement, params: Params) -> Result<()> {
    conn.exec_drop(statement, params)?;
    match conn.affected_rows() {
        1 => Ok(()),
        n => Err(Error::Check(format!("a statement that changes one row changed {n}"))),
    }
}

/// Text (and decimal) columns that are only displayed.
pub(super) fn shown(row: &Row, columns: &[usize]) -> Result<Shown> {
    Ok(Shown(columns.iter().map(|column| text(row, *column)).collect::<Result<_>>()?))
}

/// A decimal column that is never NULL.
pub(super) fn decimal(row: &Row, column: usize, digits: usize) -> Result<i64> {
    value::units(row, column, digits)?.ok_or_else(|| Error::Check("an unexpected NULL".into()))
}

impl TpccOps for SqlOps {
    type Error = Error;

    fn begin(&mut self) -> Result<()> {
        Ok(self.conn.query_drop("START TRANSACTION")?)
    }

    fn commit(&mut self) -> Result<()> {
        Ok(self.conn.query_drop("COMMIT")?)
    }

    fn rollback(&mut self) -> Result<()> {
        Ok(self.conn.query_drop("ROLLBACK")?)
    }

    fn buyer(&mut self, c: CustomerKey) -> Result<Buyer> {
        let keys = params![c.warehouse, c.warehouse, c.district, c.customer];
        let row = one(&mut self.conn, &self.statements.buyer, keys)?;
        Ok(Buyer {
            discount: decimal(&row, 0, 4)?,
            warehouse_tax: decimal(&row, 3, 4)?,
            shown: shown(&row, &[1, 2])?,
        })
    }

    fn take_order_number(&mut self, warehouse: i64, district: i64) -> Result<(i64, Rate)> {
        let row = one(&mut self.conn, &self.statements.district_for_update, params![warehouse, district])?;
        change_one(&mut self.conn, &self.statements.take_order_number, params![warehouse, district])?;
        Ok((int(&row, 0)?, decimal(&row, 1, 4)?))
    }

    fn insert_order(&mut self, order: &NewOrderRow) -> Result<()> {
        let OrderKey { warehouse, district, order: number } = order.key;
        let row = params![
            number,
            district,
            warehouse,
            order.customer,
            datetime(order.entry),
            order.line_count,
            i64::from(order.all_local)
        ];
        Ok(self.conn.exec_drop(&self.statements.insert_order, row)?)
    }

    fn insert_new_order(&mut self, o: OrderKey) -> Result<()> {
        Ok(self
            .conn
            .exec_drop(&self.statements.insert_new_order, params![o.order, o.district, o.warehouse])?)
    }

    fn item(&mut self, item: i64) -> Result<Option<Item>> {
        let row: Option<Row> = self.conn.exec_first(&self.statements.item, params![item])?;
        row.map(|row| {
            Ok(Item {
                price: decimal(&row, 0, 2)?,
                original: is_original(&text(&row, 2)?),
                shown: shown(&row, &[1])?,
            })
        })
        .transpose()
    }

    fn take_from_stock(&mut self, t: &Taking, district_info: &mut String) -> Result<bool> {
        let statement = &self.statements.stock[(t.district - 1) as usize];
        let row = one(&mut self.conn, statement, params![t.warehouse, t.item])?;
        let [quantity, ytd, orders, remote] = [int(&row, 0)?, int(&row, 1)?, int(&row, 2)?, int(&row, 3)?];
        let changes = params![
            stock_after(quantity, t.quantity),
            ytd + t.quantity,
            orders + 1,
            remote + i64::from(t.remote),
            t.warehouse,
            t.item
        ];
        change_one(&mut self.conn, &self.statements.update_stock, changes)?;
        *district_info = text(&row, 4)?;
        Ok(is_original(&text(&row, 5)?))
    }

    fn insert_line(&mut self, line: &NewLine<'_>) -> Result<()> {
        let row = params![
            line.order.order,
            line.order.district,
            line.order.warehouse,
            line.number,
            line.item,
            line.supply_warehouse,
            line.quantity,
            cents(line.amount),
            line.district_info
        ];
        Ok(self.conn.exec_drop(&self.statements.insert_line, row)?)
    }

    fn pay_warehouse(&mut self, warehouse: i64, amount: Cents) -> Result<String> {
        change_one(&mut self.conn, &self.statements.pay_warehouse, params![cents(amount), warehouse])?;
        text(&one(&mut self.conn, &self.statements.warehouse, params![warehouse])?, 0)
    }

    fn pay_district(&mut self, warehouse: i64, district: i64, amount: Cents) -> Result<String> {
        change_one(
            &mut self.conn,
            &self.statements.pay_district,
            params![cents(amount), warehouse, district],
        )?;
        text(&one(&mut self.conn, &self.statements.district, params![warehouse, district])?, 0)
    }

    fn customers_by_last(&mut self, warehouse: i64, district: i64, last: &str) -> Result<Vec<i64>> {
        let keys = params![warehouse, district, last];
        let rows: Vec<Row> = self.conn.exec(&self.statements.customers_by_last, keys)?;
        rows.iter().map(|row| int(row, 0)).collect()
    }

    fn pay_customer(&mut self, payment: &PaymentNote) -> Result<Shown> {
        let CustomerKey { warehouse, district, customer } = payment.customer;
        let keys = || params![warehouse, district, customer];
        let row = one(&mut self.conn, &self.statements.payer, keys())?;
        let data = match text(&row, 9)?.as_str() {
            "BC" => {
                let old = text(&one(&mut self.conn, &self.statements.customer_data, keys())?, 0)?;
                Some(payment.bad_credit(&old))
            }
            _ => None,
        };
        let mut values = vec![cents(payment.amount), cents(payment.amount)];
        values.extend(data.as_deref().map(Value::from));
        values.extend([warehouse, district, customer].map(Value::from));
        let s = &self.statements;
        let statement = if data.is_some() { &s.pay_customer_data } else { &s.pay_customer };
        change_one(&mut self.conn, statement, Params::Positional(values))?;
        shown(&row, &[0, 2, 12])
    }

    fn insert_history(&mut self, paid: &Paid<'_>) -> Result<()> {
        let row = params![
            paid.customer.customer,
            paid.customer.district,
            paid.customer.warehouse,
            paid.district,
            paid.warehouse,
            datetime(paid.when),
            cents(paid.amount),
            paid.data
        ];
        Ok(self.conn.exec_drop(&self.statements.insert_history, row)?)
    }

    fn show_customer(&mut self, c: CustomerKey) -> Result<Shown> {
        let keys = params![c.warehouse, c.district, c.customer];
        shown(&one(&mut self.conn, &self.statements.customer_balance, keys)?, &[0, 1, 2, 3])
    }

    fn newest_order(&mut self, c: CustomerKey) -> Result<Option<(i64, i64)>> {
        let keys = params![c.warehouse, c.district, c.customer];
        let row: Option<Row> = self.conn.exec_first(&self.statements.newest_order, keys)?;
        row.map(|row| Ok((int(&row, 0)?, int(&row, 1)?))).transpose()
    }

    fn show_lines(&mut self, o: OrderKey) -> Result<Vec<Shown>> {
        let keys = params![o.warehouse, o.district, o.order];
        let rows: Vec<Row> = self.conn.exec(&self.statements.lines, keys)?;
        rows.iter().map(|row| shown(row, &[3])).collect()
    }

    fn take_oldest_new_order(&mut self, warehouse: i64, district: i64) -> Result<Option<i64>> {
        let row: Option<Row> =
            self.conn.exec_first(&self.statements.oldest_new_order, params![warehouse, district])?;
        let Some(row) = row else { return Ok(None) };
        let order = int(&row, 0)?;
        change_one(&mut self.conn, &self.statements.delete_new_order, params![warehouse, district, order])?;
        Ok(Some(order))
    }

    fn set_carrier(&mut self, o: OrderKey, carrier: i64) -> Result<i64> {
        let keys = params![o.warehouse, o.district, o.order];
        let row = one(&mut self.conn, &self.statements.order_customer, keys)?;
        let changes = params![carrier, o.warehouse, o.district, o.order];
        change_one(&mut self.conn, &self.statements.set_carrier, changes)?;
        int(&row, 0)
    }

    fn deliver_lines(&mut self, o: OrderKey, when: Micros) -> Result<Cents> {
        let changes = params![datetime(when), o.warehouse, o.district, o.order];
        self.conn.exec_drop(&self.statements.set_delivered, changes)?;
        let keys = params![o.warehouse, o.district, o.order];
        decimal(&one(&mut self.conn, &self.statements.order_amount, keys)?, 0, 2)
    }

    fn credit_customer(&mut self, c: CustomerKey, amount: Cents) -> Result<()> {
        let row = params![cents(amount), c.warehouse, c.district, c.customer];
        change_one(&mut self.conn, &self.statements.credit_customer, row)
    }

    fn next_order_number(&mut self, warehouse: i64, district: i64) -> Result<i64> {
        let row = one(&mut self.conn, &self.statements.next_order_number, params![warehouse, district])?;
        int(&row, 0)
    }

    fn low_stock(&mut self, warehouse: i64, district: i64, next: i64, threshold: i64) -> Result<i64> {
        let keys = params![warehouse, district, next, next - 20, warehouse, threshold];
        int(&one(&mut self.conn, &self.statements.low_stock, keys)?, 0)
    }
}
