//! TPC-C's consistency conditions (clause 3.3.2) as queries, and the comparison of the database with the client's books.
//!
//! A query returns the rows that break its condition: none means that it holds.

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Row};

use super::driver::Books;
use crate::error::Result;
use crate::finding::Finding;
use crate::value::{int, units};

/// The conditions 1 to 12, each as a query for counter-examples.
const CONDITIONS: [(&str, &str); 12] = [
    (
        "1: W_YTD = sum(D_YTD)",
        "SELECT w_id, w_ytd, s FROM warehouse, (SELECT d_w_id, SUM(d_ytd) AS s FROM district GROUP BY d_w_id) d
         WHERE d_w_id = w_id AND w_ytd <> s",
    ),
    (
        "2: D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)",
        "SELECT d_w_id, d_id, d_next_o_id, o, n FROM district
         JOIN (SELECT o_w_id, o_d_id, MAX(o_id) AS o FROM orders GROUP BY o_w_id, o_d_id) x
              ON o_w_id = d_w_id AND o_d_id = d_id
         LEFT JOIN (SELECT no_w_id, no_d_id, MAX(no_o_id) AS n FROM new_order GROUP BY no_w_id, no_d_id) y
              ON no_w_id = d_w_id AND no_d_id = d_id
         WHERE d_next_o_id - 1 <> o OR d_next_o_id - 1 <> n",
    ),
    (
        "3: max(NO_O_ID) - min(NO_O_ID) + 1 = rows of NEW-ORDER",
        "SELECT no_w_id, no_d_id FROM new_order GROUP BY no_w_id, no_d_id
         HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)",
    ),
    (
        "4: sum(O_OL_CNT) = rows of ORDER-LINE",
        "SELECT o_w_id, o_d_id, c, l FROM
         (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS c FROM orders GROUP BY o_w_id, o_d_id) x,
         (SELECT ol_w_id, ol_d_id, COUNT(*) AS l FROM order_line GROUP BY ol_w_id, ol_d_id) y
         WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id AND c <> l",
    ),
    (
        "5: O_CARRIER_ID is null exactly for rows of NEW-ORDER",
        "SELECT o_w_id, o_d_id, o_id FROM orders LEFT JOIN new_order
         ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
         WHERE (o_carrier_id IS NULL AND no_o_id IS NULL) OR (o_carrier_id IS NOT NULL AND no_o_id IS NOT NULL)",
    ),
    (
        "6: O_OL_CNT = rows of ORDER-LINE, for every order",
        "SELECT o_w_id, o_d_id, o_id FROM orders LEFT JOIN
         (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) AS l FROM order_line GROUP BY ol_w_id, ol_d_id, ol_o_id) x
         ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE l IS NULL OR l <> o_ol_cnt",
    ),
    (
        "7: OL_DELIVERY_D is null exactly for undelivered orders",
        "SELECT ol_w_id, ol_d_id, ol_o_id FROM order_line JOIN orders
         ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
         WHERE (ol_delivery_d IS NULL AND o_carrier_id IS NOT NULL)
            OR (ol_delivery_d IS NOT NULL AND o_carrier_id IS NULL)",
    ),
    (
        "8: W_YTD = sum(H_AMOUNT)",
        "SELECT w_id, w_ytd, s FROM warehouse, (SELECT h_w_id, SUM(h_amount) AS s FROM history GROUP BY h_w_id) h
         WHERE h_w_id = w_id AND w_ytd <> s",
    ),
    (
        "9: D_YTD = sum(H_AMOUNT)",
        "SELECT d_w_id, d_id, d_ytd, s FROM district,
         (SELECT h_w_id, h_d_id, SUM(h_amount) AS s FROM history GROUP BY h_w_id, h_d_id) h
         WHERE h_w_id = d_w_id AND h_d_id = d_id AND d_ytd <> s",
    ),
    (
        "10: C_BALANCE = sum(delivered OL_AMOUNT) - sum(H_AMOUNT)",
        "SELECT w, d, c, SUM(x) AS off FROM
         (SELECT c_w_id AS w, c_d_id AS d, c_id AS c, c_balance AS x FROM customer
          UNION ALL SELECT h_c_w_id, h_c_d_id, h_c_id, h_amount FROM history
          UNION ALL SELECT o_w_id, o_d_id, o_c_id, -ol_amount FROM orders JOIN order_line
                    ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE ol_delivery_d IS NOT NULL) t
         GROUP BY w, d, c HAVING SUM(x) <> 0",
    ),
    (
        "11: rows of ORDER - rows of NEW-ORDER = delivered at load + delivered since",
        "SELECT o_w_id, o_d_id, o, n, del FROM
         (SELECT o_w_id, o_d_id, COUNT(*) AS o FROM orders GROUP BY o_w_id, o_d_id) x
         LEFT JOIN (SELECT no_w_id, no_d_id, COUNT(*) AS n FROM new_order GROUP BY no_w_id, no_d_id) y
                ON no_w_id = o_w_id AND no_d_id = o_d_id
         LEFT JOIN (SELECT c_w_id, c_d_id, SUM(c_delivery_cnt) AS del FROM customer GROUP BY c_w_id, c_d_id) z
                ON c_w_id = o_w_id AND c_d_id = o_d_id
         WHERE o - COALESCE(n, 0) <> del + {delivered_at_load}",
    ),
    (
        "12: C_BALANCE + C_YTD_PAYMENT = sum(delivered OL_AMOUNT)",
        "SELECT w, d, c, SUM(x) AS off FROM
         (SELECT c_w_id AS w, c_d_id AS d, c_id AS c, c_balance + c_ytd_payment AS x FROM customer
          UNION ALL SELECT o_w_id, o_d_id, o_c_id, -ol_amount FROM orders JOIN order_line
                    ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE ol_delivery_d IS NOT NULL) t
         GROUP BY w, d, c HAVING SUM(x) <> 0",
    ),
];

/// Checks all conditions on a database at rest.
pub fn conditions(options: &OptsBuilder, scale: &super::schema::Scale) -> Result<Vec<Finding>> {
    let mut conn = Conn::new(options.clone())?;
    let delivered = (scale.first_new_order() - 1).to_string();
    let mut findings = Vec::new();
    for (name, query) in CONDITIONS {
        let query = query.replace("{delivered_at_load}", &delivered);
        let rows: Vec<Row> = conn.query(format!("{query} LIMIT 3"))?;
        let broken = rows.first().map(|row| format!("{} or more rows, the first is {row:?}", rows.len()));
        findings.push(Finding { name: name.to_owned(), broken });
    }
    Ok(findings)
}

/// What the books are compared with: the state of the database before the booked run.
#[derive(Clone, Copy)]
pub struct Baseline {
    pub payments: i64,
    pub paid: i64,
}

impl Baseline {
    pub fn take(options: &OptsBuilder) -> Result<Baseline> {
        let mut conn = Conn::new(options.clone())?;
        let row: Option<Row> = conn.query_first("SELECT COUNT(*), SUM(h_amount) FROM history")?;
        match row {
            Some(row) => Ok(Baseline { payments: int(&row, 0)?, paid: units(&row, 1, 2)?.unwrap_or(0) }),
            None => Ok(Baseline { payments: 0, paid: 0 }),
        }
    }
}

/// Checks that all that was acknowledged is there. `in_doubt` transactions may be there without having been acknowledged:
/// those that were on their way when the server was killed.
pub fn books(options: &OptsBuilder, books: &Books, before: Baseline, in_doubt: u64) -> Result<Vec<Finding>> {
    let mut conn = Conn::new(options.clone())?;
    let keys: Vec<Row> = conn.query("SELECT o_w_id, o_d_id, o_id, o_carrier_id IS NULL FROM orders")?;
    let mut state = std::collections::HashMap::with_capacity(keys.len());
    for row in &keys {
        let key =
            super::ops::OrderKey { warehouse: int(row, 0)?, district: int(row, 1)?, order: int(row, 2)? };
        state.insert(key, int(row, 3)? == 0);
    }
    let lost_orders = books.orders.iter().filter(|key| !state.contains_key(*key)).count();
    let lost_deliveries = books.delivered.iter().filter(|key| state.get(*key) != Some(&true)).count();
    let now = Baseline::take(options)?;
    let (more, paid) = (now.payments - before.payments, now.paid - before.paid);
    let payments_kept = more >= books.payments as i64
        && more <= (books.payments + in_doubt) as i64
        && paid >= books.paid
        && (more > books.payments as i64 || paid == books.paid);
    let lost = |count: usize| (count > 0).then(|| format!("{count} are lost"));
    Ok(vec![
        Finding {
            name: format!("{} acknowledged orders are there", books.orders.len()),
            broken: lost(lost_orders),
        },
        Finding {
            name: format!("{} acknowledged deliveries are there", books.delivered.len()),
            broken: lost(lost_deliveries),
        },
        Finding {
            name: format!("{} acknowledged payments are there", books.payments),
            broken: (!payments_kept)
                .then(|| format!("{more} payments of {paid} cents, not {} cents", books.paid)),
        },
    ])
}
