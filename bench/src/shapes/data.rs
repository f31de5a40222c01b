//! The shop that the shapes are asked of: a million orders, and what belongs to them. Tables that shapes change are not read by others,
//! so that all answers stay comparable.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use crate::error::Result;
use crate::insert::{self, Inserter};
use crate::progress;
use crate::random::Random;
use crate::rival::Server;

pub const DATABASE: &str = "shapes";
const ROWS_OF_A_PIECE: i64 = 10_000;
/// Of the smaller tables.
pub const TAGS: i64 = 200;
pub const CATEGORIES: i64 = 1_000;
pub const COUNTERS: i64 = 1_000;
pub const DOCS: i64 = 20_000;
pub const OWNERS: i64 = 2_000;
pub const JOBS: i64 = 10_000;
pub const STATES: i64 = 5;
pub const COUNTRIES: i64 = 40;

const CREATE: [&str; 14] = [
    "CREATE TABLE users (id INT PRIMARY KEY, email VARCHAR(60) NOT NULL, name VARCHAR(40) NOT NULL, country CHAR(2),
     score INT NOT NULL, created DATETIME NOT NULL, deleted_at DATETIME, UNIQUE KEY (email), KEY (country, score))",
    "CREATE TABLE products (id INT PRIMARY KEY, sku VARCHAR(20) NOT NULL, category INT NOT NULL,
     price DECIMAL(10,2) NOT NULL, UNIQUE KEY (sku), KEY (category, price))",
    "CREATE TABLE orders (id INT PRIMARY KEY, user_id INT NOT NULL, product_id INT NOT NULL, status TINYINT NOT NULL,
     amount DECIMAL(10,2) NOT NULL, created DATETIME NOT NULL, note VARCHAR(40), KEY (user_id, created),
     KEY (product_id), KEY (status, created), KEY (created))",
    "CREATE TABLE tags (id INT PRIMARY KEY, name VARCHAR(20) NOT NULL, UNIQUE KEY (name))",
    "CREATE TABLE product_tags (product_id INT NOT NULL, tag_id INT NOT NULL, PRIMARY KEY (product_id, tag_id),
     KEY (tag_id, product_id))",
    "CREATE TABLE categories (id INT PRIMARY KEY, parent_id INT, name VARCHAR(20) NOT NULL, KEY (parent_id))",
    "CREATE TABLE events (id BIGINT PRIMARY KEY AUTO_INCREMENT, user_id INT NOT NULL, kind INT NOT NULL,
     at DATETIME NOT NULL, data VARCHAR(40), KEY (user_id, at))",
    "CREATE TABLE counters (id INT PRIMARY KEY, n BIGINT NOT NULL)",
    "CREATE TABLE carts (user_id INT NOT NULL, product_id INT NOT NULL, quantity INT NOT NULL,
     PRIMARY KEY (user_id, product_id), KEY (product_id))",
    "CREATE TABLE sessions (token VARCHAR(40) PRIMARY KEY, user_id INT NOT NULL, expires DATETIME NOT NULL,
     data VARCHAR(200), KEY (expires))",
    "CREATE TABLE docs (id INT PRIMARY KEY, owner INT NOT NULL, reviewer INT NOT NULL, version INT NOT NULL,
     title VARCHAR(60), deleted_at DATETIME, KEY (owner), KEY (reviewer))",
    "CREATE TABLE jobs (id BIGINT PRIMARY KEY AUTO_INCREMENT, state TINYINT NOT NULL, run_at DATETIME NOT NULL,
     payload VARCHAR(40), KEY (state, run_at))",
    // Read only: a few values are frequent, one is rare, and numbers are larger than a double counts.
    "CREATE TABLE tickets (id BIGINT PRIMARY KEY, tenant INT NOT NULL, state TINYINT NOT NULL, urgent TINYINT(1) NOT NULL,
     price DECIMAL(12,2) NOT NULL, number BIGINT NOT NULL, title VARCHAR(40) NOT NULL, closed DATETIME, KEY (tenant),
     KEY (state), KEY (urgent), KEY (price), UNIQUE KEY (number), KEY (title))",
    "CREATE TABLE tasks (id BIGINT PRIMARY KEY, state TINYINT NOT NULL, due DATETIME NOT NULL, v INT NOT NULL, KEY (state),
     KEY (due))",
];

/// How many rows the tables have that grow.
#[derive(Clone, Copy)]
pub struct Scale {
    pub orders: i64,
}

impl Scale {
    pub fn users(&self) -> i64 {
        (self.orders / 20).max(100)
    }

    pub fn tickets(&self) -> i64 {
        (self.orders / 5).max(1_000)
    }

    /// Each has some 2,000 tickets.
    pub fn tenants(&self) -> i64 {
        (self.tickets() / 2_000).max(1)
    }

    pub fn products(&self) -> i64 {
        (self.orders / 50).max(100)
    }
}

/// Connection options with the database in use.
pub fn options(server: &Server) -> OptsBuilder {
    server.options().db_name(Some(DATABASE))
}

pub fn day(random: &mut Random) -> String {
    let (month, day) = (random.uniform(1, 12), random.uniform(1, 28));
    format!("2023-{month:02}-{day:02} {:02}:00:00", random.uniform(0, 23))
}

/// Beyond 2^53, where several integers are one double.
pub fn ticket_number(id: i64) -> i64 {
    (1 << 53) + id
}

pub fn email(user: i64) -> String {
    format!("user{user}@example.com")
}

pub fn country(random: &mut Random) -> String {
    let number = random.uniform(0, COUNTRIES - 1) as u8;
    format!("{}{}", (b'A' + number / 8) as char, (b'A' + number % 8) as char)
}

/// A table whose rows are numbered, and what makes the values of a row.
type Numbered = (&'static str, i64, fn(&mut String, i64, Scale, &mut Random));

fn numbered(scale: Scale) -> [Numbered; 12] {
    /// Appends to a String, which takes all text.
    macro_rules! put {
        ($sql:expr, $($format:tt)*) => { write!($sql, $($format)*).expect("a String takes all text") };
    }
    [
        ("users", scale.users(), |sql, id, _, r| {
            let (mail, country, score, created) = (email(id), country(r), r.uniform(0, 9_999), day(r));
            let deleted = if r.percent(5) { format!("'{}'", day(r)) } else { "NULL".to_owned() };
            put!(sql, "{id},'{mail}','Name {id}','{country}',{score},'{created}',{deleted}");
        }),
        ("products", scale.products(), |sql, id, _, r| {
            put!(sql, "{id},'sku-{id}',{},{}.{:02}", r.uniform(1, CATEGORIES), r.uniform(1, 99), id % 100);
        }),
        ("orders", scale.orders, |sql, id, scale, r| {
            let (user, product) = (r.uniform(1, scale.users()), r.uniform(1, scale.products()));
            let note = if r.percent(30) { format!("'note {id}'") } else { "NULL".to_owned() };
            let (state, whole) = (r.uniform(0, STATES - 1), r.uniform(1, 999));
            put!(sql, "{id},{user},{product},{state},{whole}.{:02},'{}',{note}", id % 100, day(r));
        }),
        ("tags", TAGS, |sql, id, _, _| put!(sql, "{id},'tag {id}'")),
        ("categories", CATEGORIES, |sql, id, _, _| match id {
            1 => put!(sql, "1,NULL,'root'"),
            id => put!(sql, "{id},{},'category {id}'", id / 4 + 1 - i64::from(id < 4)),
        }),
        ("counters", COUNTERS, |sql, id, _, _| put!(sql, "{id},0")),
        ("docs", DOCS, |sql, id, _, r| {
            put!(sql, "{id},{},{},1,'title {id}',NULL", r.uniform(1, OWNERS), r.uniform(1, OWNERS));
        }),
        ("jobs", JOBS, |sql, id, _, r| put!(sql, "{id},{},'{}','payload'", i64::from(r.percent(50)), day(r))),
        ("events", JOBS, |sql, id, scale, r| {
            put!(sql, "{id},{},1,'{}','data'", r.uniform(1, scale.users()), day(r));
        }),
        ("tickets", scale.tickets(), |sql, id, scale, r| {
            let (tenant, state, urgent) =
                (r.uniform(1, scale.tenants()), r.uniform(0, STATES - 1), id % 2_000 == 7);
            let (whole, number) = (r.uniform(0, scale.tickets() / 20), ticket_number(id));
            let closed = if id % 20 == 0 { "NULL".to_owned() } else { format!("'{}'", day(r)) };
            let urgent = i64::from(urgent);
            put!(sql, "{id},{tenant},{state},{urgent},{whole}.05,{number},'ticket {whole}',{closed}");
        }),
        ("tasks", DOCS, |sql, id, _, r| put!(sql, "{id},{},'{}',0", r.uniform(0, STATES - 1), day(r))),
        ("sessions", JOBS, |sql, id, scale, r| {
            put!(sql, "'token{id}',{},'{}','data'", r.uniform(1, scale.users()), day(r));
        }),
    ]
}

/// Makes the tables and fills them: the same rows on every server.
pub fn load(server: &Server, scale: Scale) -> Result<()> {
    let mut conn = Conn::new(server.options())?;
    conn.query_drop(format!("CREATE DATABASE {DATABASE}"))?;
    conn.query_drop(format!("USE {DATABASE}"))?;
    CREATE.iter().try_for_each(|sql| conn.query_drop(sql))?;
    let tables = numbered(scale);
    let total: i64 = tables.iter().map(|(_, rows, _)| rows).sum();
    let pieces = tables.iter().flat_map(|table| {
        let begins = (1..=table.1).step_by(ROWS_OF_A_PIECE as usize);
        begins.map(move |first| (table, first))
    });
    let done = AtomicU64::new(0);
    progress::rows(&format!("loading {}", server.name()), total as u64, &done, || {
        insert::in_pieces(&options(server), 2, pieces, |conn, ((name, rows, values), first)| {
            let last = (*rows).min(first + ROWS_OF_A_PIECE - 1);
            let mut random = Random::new(first as u64);
            let mut inserter = Inserter::new(conn, name);
            for id in first..=last {
                inserter.row(|sql| values(sql, id, scale, &mut random))?;
            }
            done.fetch_add((last - first + 1) as u64, Ordering::Relaxed);
            inserter.finish()
        })
    })?;
    // Five tags for each product, none of them twice; carts likewise.
    for (table, rows, count) in
        [("product_tags", scale.products(), TAGS), ("carts", scale.users().min(JOBS), scale.products())]
    {
        let mut random = Random::new(7);
        let mut inserter = Inserter::new(&mut conn, table);
        for id in 1..=rows {
            let first = random.uniform(0, count - 1);
            for other in 0..5 {
                let to = (first + other * (count / 7).max(1)) % count + 1;
                let quantity = if table == "carts" { ",1" } else { "" };
                inserter.row(|sql| write!(sql, "{id},{to}{quantity}").expect("a String takes all text"))?;
            }
        }
        inserter.finish()?;
    }
    // Both know their tables as well as they do after a while.
    for table in [
        "users",
        "products",
        "orders",
        "product_tags",
        "docs",
        "jobs",
        "carts",
        "sessions",
        "tickets",
        "tasks",
    ] {
        conn.query_drop(format!("ANALYZE TABLE {table}"))?;
    }
    Ok(())
}
