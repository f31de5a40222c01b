//! TPC-C's initial population (clause 4.3.3), loaded in parallel over the MySQL protocol.
//!
//! Work is cut into pieces (the items, a part of a warehouse's stock, one district). A piece's random
//! numbers come from its own seed, so the data are the same however many workers there are.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use super::random::{NuRand, data_with_original, last_name};
use super::schema::{CREATE, DISTRICTS, Scale};
use crate::error::Result;
use crate::insert::{self, Inserter};
use crate::random::Random;
use crate::value::{datetime_text, decimal_text, now_micros};

/// Rows loaded so far, for a progress bar.
#[derive(Default)]
pub struct Progress {
    pub rows: AtomicU64,
}

/// One piece of loading work.
#[derive(Clone, Copy, Debug)]
enum Piece {
    Items,
    Warehouse(i64),
    Stock { warehouse: i64, first: i64, last: i64 },
    District { warehouse: i64, district: i64 },
}

/// Rows of the whole database, to within the random number of order lines.
pub fn expected_rows(scale: &Scale) -> u64 {
    let district =
        scale.customers * 3 + scale.customers * 10 + (scale.customers + 1 - scale.first_new_order());
    (scale.items + scale.warehouses * (1 + DISTRICTS + scale.items + DISTRICTS * district)) as u64
}

/// Drops and makes the database `name`, and loads it with `workers` connections.
pub fn load(
    options: &OptsBuilder,
    name: &str,
    scale: Scale,
    workers: usize,
    progress: &Progress,
) -> Result<()> {
    let mut conn = Conn::new(options.clone())?;
    conn.query_drop(format!("DROP DATABASE IF EXISTS {name}"))?;
    conn.query_drop(format!("CREATE DATABASE {name}"))?;
    conn.query_drop(format!("USE {name}"))?;
    for statement in CREATE {
        conn.query_drop(statement)?;
    }
    let options = options.clone().db_name(Some(name));
    insert::in_pieces(&options, workers, pieces(&scale), |conn, piece| {
        Loader { conn, scale, now: now_micros(), progress }.piece(piece)
    })
}

fn pieces(scale: &Scale) -> Vec<Piece> {
    const STOCK_OF_A_PIECE: i64 = 10_000;
    let mut all = vec![Piece::Items];
    for warehouse in 1..=scale.warehouses {
        all.push(Piece::Warehouse(warehouse));
        for first in (1..=scale.items).step_by(STOCK_OF_A_PIECE as usize) {
            all.push(Piece::Stock { warehouse, first, last: scale.items.min(first + STOCK_OF_A_PIECE - 1) });
        }
        all.extend((1..=DISTRICTS).map(|district| Piece::District { warehouse, district }));
    }
    all
}

struct Loader<'p> {
    conn: &'p mut Conn,
    scale: Scale,
    now: i64,
    progress: &'p Progress,
}

impl Loader<'_> {
    fn piece(&mut self, piece: Piece) -> Result<()> {
        match piece {
            Piece::Items => self.items(),
            Piece::Warehouse(warehouse) => self.warehouse(warehouse),
            Piece::Stock { warehouse, first, last } => self.stock(warehouse, first, last),
            Piece::District { warehouse, district } => {
                let mut random = Random::new(((warehouse * 100 + district) * 1_000_003) as u64);
                self.customers(warehouse, district, &mut random)?;
                self.history(warehouse, district, &mut random)?;
                self.orders(warehouse, district, &mut random)
            }
        }
    }

    fn table(&mut self, table: &str, rows: i64, mut row: impl FnMut(&mut String, i64)) -> Result<()> {
        let mut insert = Inserter::new(self.conn, table);
        for number in 1..=rows {
            insert.row(|sql| row(sql, number))?;
            self.progress.rows.fetch_add(1, Ordering::Relaxed);
        }
        insert.finish()
    }

    fn items(&mut self) -> Result<()> {
        let mut random = Random::new(11);
        self.table("item", self.scale.items, |sql, item| {
            let image = random.uniform(1, 10_000);
            let name = random.alphanumeric(14, 24);
            let price = decimal_text(random.uniform(100, 10_000), 2);
            put(sql, format_args!("{item},{image},'{name}',{price},'{}'", data_with_original(&mut random)));
        })
    }

    fn warehouse(&mut self, warehouse: i64) -> Result<()> {
        let mut random = Random::new(1_000 + warehouse as u64);
        let per_district = self.scale.customers * 1_000;
        self.table("warehouse", 1, |sql, _| {
            let (name, address, tax) = place(&mut random);
            let ytd = decimal_text(per_district * DISTRICTS, 2);
            put(sql, format_args!("{warehouse},'{name}',{address},{tax},{ytd}"));
        })?;
        let next = self.scale.customers + 1;
        self.table("district", DISTRICTS, |sql, district| {
            let (name, address, tax) = place(&mut random);
            let ytd = decimal_text(per_district, 2);
            put(sql, format_args!("{district},{warehouse},'{name}',{address},{tax},{ytd},{next}"));
        })
    }

    fn stock(&mut self, warehouse: i64, first: i64, last: i64) -> Result<()> {
        let mut random = Random::new((warehouse * 10_000_000 + first) as u64);
        self.table("stock", last - first + 1, |sql, number| {
            put(sql, format_args!("{},{warehouse},{}", first + number - 1, random.uniform(10, 100)));
            for _ in 0..DISTRICTS {
                put(sql, format_args!(",'{}'", random.alphanumeric(24, 24)));
            }
            put(sql, format_args!(",0,0,0,'{}'", data_with_original(&mut random)));
        })
    }

    fn customers(&mut self, warehouse: i64, district: i64, random: &mut Random) -> Result<()> {
        let names = self.scale.last_names();
        let since = datetime_text(self.now);
        self.table("customer", self.scale.customers, |sql, customer| {
            let last = if customer <= names {
                last_name(customer - 1)
            } else {
                NuRand::load().last_name(random, names)
            };
            let first = random.alphanumeric(8, 16);
            let (address, phone) = (address(random), random.digits(16));
            let credit = if random.percent(10) { "BC" } else { "GC" };
            let discount = decimal_text(random.uniform(0, 5_000), 4);
            put(
                sql,
                format_args!(
                    "{customer},{district},{warehouse},'{first}','OE','{last}',{address},'{phone}',"
                ),
            );
            put(sql, format_args!("'{since}','{credit}',50000.00,{discount},-10.00,10.00,1,0,"));
            put(sql, format_args!("'{}'", random.alphanumeric(300, 500)));
        })
    }

    fn history(&mut self, warehouse: i64, district: i64, random: &mut Random) -> Result<()> {
        let now = datetime_text(self.now);
        self.table("history", self.scale.customers, |sql, customer| {
            let data = random.alphanumeric(12, 24);
            put(
                sql,
                format_args!(
                    "{customer},{district},{warehouse},{district},{warehouse},'{now}',10.00,'{data}'"
                ),
            );
        })
    }

    /// Orders of a random permutation of the customers; the last three tenths are not delivered yet.
    fn orders(&mut self, warehouse: i64, district: i64, random: &mut Random) -> Result<()> {
        let scale = self.scale;
        let now = datetime_text(self.now);
        let customers = random.permutation(scale.customers);
        let line_counts: Vec<i64> = customers.iter().map(|_| random.uniform(5, 15)).collect();
        self.table("orders", scale.customers, |sql, order| {
            let at = (order - 1) as usize;
            let carrier = if order < scale.first_new_order() {
                random.uniform(1, 10).to_string()
            } else {
                "NULL".into()
            };
            let (customer, lines) = (customers[at], line_counts[at]);
            put(sql, format_args!("{order},{district},{warehouse},{customer},'{now}',{carrier},{lines},1"));
        })?;
        let keys: Vec<(i64, i64)> = line_counts
            .iter()
            .zip(1..)
            .flat_map(|(count, order)| (1..=*count).map(move |number| (order, number)))
            .collect();
        self.table("order_line", keys.len() as i64, |sql, row| {
            let (order, number) = keys[(row - 1) as usize];
            let item = random.uniform(1, scale.items);
            let new = order >= scale.first_new_order();
            let delivered = if new { "NULL".into() } else { format!("'{now}'") };
            let amount = if new { decimal_text(random.uniform(1, 999_999), 2) } else { "0.00".into() };
            put(
                sql,
                format_args!("{order},{district},{warehouse},{number},{item},{warehouse},{delivered},5,"),
            );
            put(sql, format_args!("{amount},'{}'", random.alphanumeric(24, 24)));
        })?;
        let first = scale.first_new_order();
        self.table("new_order", scale.customers - first + 1, |sql, number| {
            put(sql, format_args!("{},{district},{warehouse}", first + number - 1));
        })
    }
}

/// Name, address and tax of a warehouse or district.
fn place(random: &mut Random) -> (String, String, String) {
    (random.alphanumeric(6, 10), address(random), decimal_text(random.uniform(0, 2_000), 4))
}

/// Two streets, city, state and zip as five literals.
fn address(random: &mut Random) -> String {
    let streets = (random.alphanumeric(10, 20), random.alphanumeric(10, 20));
    let city = random.alphanumeric(10, 20);
    let state = random.alphanumeric(2, 2);
    format!("'{}','{}','{city}','{state}','{}11111'", streets.0, streets.1, random.digits(4))
}

fn put(sql: &mut String, text: std::fmt::Arguments<'_>) {
    sql.write_fmt(text).expect("a String takes all text");
}
