//! All statements of TPC-C have point plans, and read what they should.

use super::*;

const TABLES: [&str; 9] = [
    "CREATE TABLE warehouse (w_id INT NOT NULL, w_name VARCHAR(10) NOT NULL, w_tax DECIMAL(4,4) NOT NULL,
        w_ytd DECIMAL(12,2) NOT NULL, PRIMARY KEY (w_id))",
    "CREATE TABLE district (d_id INT NOT NULL, d_w_id INT NOT NULL, d_name VARCHAR(10) NOT NULL, d_tax DECIMAL(4,4) NOT NULL,
        d_ytd DECIMAL(12,2) NOT NULL, d_next_o_id INT NOT NULL, PRIMARY KEY (d_w_id, d_id))",
    "CREATE TABLE customer (c_id INT NOT NULL, c_d_id INT NOT NULL, c_w_id INT NOT NULL, c_first VARCHAR(16) NOT NULL,
        c_last VARCHAR(16) NOT NULL, c_credit CHAR(2) NOT NULL, c_discount DECIMAL(4,4) NOT NULL,
        c_balance DECIMAL(12,2) NOT NULL, c_ytd_payment DECIMAL(12,2) NOT NULL, c_payment_cnt INT NOT NULL,
        c_delivery_cnt INT NOT NULL, c_data VARCHAR(500) NOT NULL,
        PRIMARY KEY (c_w_id, c_d_id, c_id), KEY customer_last (c_w_id, c_d_id, c_last, c_first))",
    "CREATE TABLE history (h_c_id INT NOT NULL, h_c_d_id INT NOT NULL, h_c_w_id INT NOT NULL, h_d_id INT NOT NULL,
        h_w_id INT NOT NULL, h_date DATETIME NOT NULL, h_amount DECIMAL(6,2) NOT NULL, h_data VARCHAR(24) NOT NULL)",
    "CREATE TABLE new_order (no_o_id INT NOT NULL, no_d_id INT NOT NULL, no_w_id INT NOT NULL,
        PRIMARY KEY (no_w_id, no_d_id, no_o_id))",
    "CREATE TABLE orders (o_id INT NOT NULL, o_d_id INT NOT NULL, o_w_id INT NOT NULL, o_c_id INT NOT NULL,
        o_entry_d DATETIME NOT NULL, o_carrier_id INT, o_ol_cnt INT NOT NULL, o_all_local INT NOT NULL,
        PRIMARY KEY (o_w_id, o_d_id, o_id), KEY orders_customer (o_w_id, o_d_id, o_c_id, o_id))",
    "CREATE TABLE order_line (ol_o_id INT NOT NULL, ol_d_id INT NOT NULL, ol_w_id INT NOT NULL, ol_number INT NOT NULL,
        ol_i_id INT NOT NULL, ol_supply_w_id INT NOT NULL, ol_delivery_d DATETIME, ol_quantity INT NOT NULL,
        ol_amount DECIMAL(6,2) NOT NULL, ol_dist_info CHAR(24) NOT NULL,
        PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number))",
    "CREATE TABLE item (i_id INT NOT NULL, i_name VARCHAR(24) NOT NULL, i_price DECIMAL(5,2) NOT NULL,
        i_data VARCHAR(50) NOT NULL, PRIMARY KEY (i_id))",
    "CREATE TABLE stock (s_i_id INT NOT NULL, s_w_id INT NOT NULL, s_quantity INT NOT NULL, s_dist_01 CHAR(24) NOT NULL,
        s_ytd INT NOT NULL, s_order_cnt INT NOT NULL, s_remote_cnt INT NOT NULL, s_data VARCHAR(50) NOT NULL,
        PRIMARY KEY (s_w_id, s_i_id))",
];

/// The driver's statements, on tables with fewer columns.
const STATEMENTS: [&str; 32] = [
    "SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse
     WHERE w_id = ? AND c_w_id = ? AND c_d_id = ? AND c_id = ?",
    "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE",
    "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?",
    "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) VALUES (?, ?, ?, ?, ?, ?, ?)",
    "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)",
    "SELECT i_price, i_name, i_data FROM item WHERE i_id = ?",
    "SELECT s_quantity, s_ytd, s_order_cnt, s_remote_cnt, s_dist_01, s_data FROM stock
     WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE",
    "UPDATE stock SET s_quantity = ?, s_ytd = ?, s_order_cnt = ?, s_remote_cnt = ? WHERE s_w_id = ? AND s_i_id = ?",
    "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount,
     ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?",
    "SELECT w_name FROM warehouse WHERE w_id = ?",
    "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?",
    "SELECT d_name FROM district WHERE d_w_id = ? AND d_id = ?",
    "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first",
    "SELECT c_first, c_last, c_credit, c_discount, c_balance FROM customer
     WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE",
    "SELECT c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
    "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?,
     c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
    "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?,
     c_payment_cnt = c_payment_cnt + 1, c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
    "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    "SELECT c_balance, c_first, c_last FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
    "SELECT o_id, o_ol_cnt, o_entry_d, o_carrier_id FROM orders
     WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1",
    "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
     WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
    "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1 FOR UPDATE",
    "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?",
    "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?",
    "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?",
    "UPDATE order_line SET ol_delivery_d = ? WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
    "SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
    "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1
     WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
    "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?",
    LOW_STOCK,
    NEWEST,
];

const LOW_STOCK: &str = "SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock
    WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id < ? AND ol_o_id >= ? AND s_w_id = ? AND s_i_id = ol_i_id
    AND s_quantity < ?";

const NEWEST: &str =
    "SELECT o_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1";

fn ints<const N: usize>(values: [i64; N]) -> [Datum<'static>; N] {
    values.map(Datum::Int)
}

#[test]
fn every_statement_has_a_plan() {
    let world = World::new(&TABLES);
    for sql in STATEMENTS {
        let plan = world.plan(sql);
        assert!(plan.is_current(&world.engine.catalog()));
        if let Kind::Select(select) = &plan.kind {
            assert!(select.output.order.is_empty(), "{sql} sorts");
            for level in &select.levels {
                let select::Source::Table { access, .. } = &level.source else { panic!("{sql}: {plan:#?}") };
                assert!(access.index.is_some(), "{sql}: {plan:#?}");
                assert!(access.row_limit > 50_000_000, "{sql}");
            }
        }
    }
}

#[test]
fn orders_are_entered_delivered_and_looked_up() {
    let mut w = World::new(&TABLES);
    for order in 1..=4 {
        let header = [1, 2, 7, order % 2].map(Datum::Int);
        let entry = Datum::DateTime(1_600_000_000_000_000);
        let [district, warehouse, _, customer] = header;
        let row = [Datum::Int(order), district, warehouse, customer, entry, Datum::Int(2), Datum::Int(1)];
        w.change(STATEMENTS[3], &row).expect("inserted");
        w.change(STATEMENTS[4], &ints([order, 1, 2])).expect("inserted");
        for line in 1..=2 {
            let amount = Datum::Decimal(avocet_types::Decimal::new((order * 100 + line).into(), 2));
            let [o, d, w_id, number, item, supply, quantity] = ints([order, 1, 2, line, order * line, 2, 5]);
            let row = [o, d, w_id, number, item, supply, quantity, amount, Datum::str("info")];
            w.change(STATEMENTS[8], &row).expect("inserted");
        }
    }
    for item in 1..=8 {
        let row = format!("INSERT INTO stock VALUES ({item}, 2, {}, 'd', 0, 0, 0, 'x')", item * 10);
        w.change(&row, &[]).expect("inserted");
    }
    assert_eq!(w.query(NEWEST, &ints([2, 1, 0])), ["4"]);
    assert_eq!(w.query(STATEMENTS[22], &ints([2, 1])), ["1"]);
    assert_eq!(w.change(STATEMENTS[23], &ints([2, 1, 1])).expect("deleted").changed, 1);
    assert_eq!(w.query(STATEMENTS[22], &ints([2, 1])), ["2"]);
    assert_eq!(w.query(STATEMENTS[27], &ints([2, 1, 3])), ["6.03"]);
    // Items 2, 4, 3 and 6 of orders 2 and 3; those below 40 are 2 and 3.
    assert_eq!(w.query(LOW_STOCK, &ints([2, 1, 4, 2, 2, 40])), ["2"]);
    let delivered = [Datum::DateTime(1), Datum::Int(2), Datum::Int(1), Datum::Int(3)];
    assert_eq!(w.change(STATEMENTS[26], &delivered).expect("updated").changed, 2);
    let lines = w.query(STATEMENTS[21], &ints([2, 1, 3]));
    assert_eq!(lines, ["3 2 5 3.01 1970-01-01 00:00:00", "6 2 5 3.02 1970-01-01 00:00:00"]);
}
