//! CH-benCHmark's tables beside TPC-C's: supplier, nation and region, loaded as its paper has them.
//!
//! A nation's key is the ASCII code of a letter or digit, so that the first character of C_STATE names a customer's nation; a
//! stock row's supplier is `S_W_ID * S_I_ID mod 10000`.

use std::fmt::Write;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

use crate::error::Result;
use crate::insert::Inserter;
use crate::random::Random;

const CREATE: [&str; 4] = [
    "CREATE TABLE region (
        r_regionkey INT NOT NULL, r_name VARCHAR(55) NOT NULL, r_comment VARCHAR(152) NOT NULL,
        PRIMARY KEY (r_regionkey)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
    "CREATE TABLE nation (
        n_nationkey INT NOT NULL, n_name VARCHAR(25) NOT NULL, n_regionkey INT NOT NULL, n_comment VARCHAR(152) NOT NULL,
        PRIMARY KEY (n_nationkey)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
    "CREATE TABLE supplier (
        su_suppkey INT NOT NULL, su_name VARCHAR(25) NOT NULL, su_address VARCHAR(40) NOT NULL, su_nationkey INT NOT NULL,
        su_phone CHAR(15) NOT NULL, su_acctbal DECIMAL(12,2) NOT NULL, su_comment VARCHAR(101) NOT NULL,
        PRIMARY KEY (su_suppkey)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
    // Not of the benchmark: the clock that tells how fresh an answer is.
    "CREATE TABLE freshness (id INT NOT NULL, written BIGINT NOT NULL, PRIMARY KEY (id))",
];

const REGIONS: [&str; 5] = ["Africa", "America", "Asia", "Australia", "Europe"];
const SUPPLIERS: i64 = 10_000;

/// Sixty-two nations, one for each digit and letter in ASCII order, with their regions.
const NATIONS: [(&str, usize); 62] = [
    ("Algeria", 0),
    ("Argentina", 1),
    ("Armenia", 2),
    ("Australia", 3),
    ("Austria", 4),
    ("Bangladesh", 2),
    ("Belgium", 4),
    ("Bolivia", 1),
    ("Botswana", 0),
    ("Brazil", 1),
    ("Bulgaria", 4),
    ("Cambodia", 2),
    ("Cameroon", 0),
    ("Canada", 1),
    ("Chile", 1),
    ("China", 2),
    ("Colombia", 1),
    ("Croatia", 4),
    ("Cuba", 1),
    ("Denmark", 4),
    ("Ecuador", 1),
    ("Egypt", 0),
    ("Estonia", 4),
    ("Ethiopia", 0),
    ("Fiji", 3),
    ("Finland", 4),
    ("France", 4),
    ("Gabon", 0),
    ("Georgia", 2),
    ("Germany", 4),
    ("Ghana", 0),
    ("Greece", 4),
    ("Guatemala", 1),
    ("Hungary", 4),
    ("Iceland", 4),
    ("India", 2),
    ("Indonesia", 2),
    ("Ireland", 4),
    ("Italy", 4),
    ("Jamaica", 1),
    ("Japan", 2),
    ("Kenya", 0),
    ("Latvia", 4),
    ("Madagascar", 0),
    ("Malaysia", 2),
    ("Mexico", 1),
    ("Mongolia", 2),
    ("Morocco", 0),
    ("Nepal", 2),
    ("Netherlands", 4),
    ("New Zealand", 3),
    ("Norway", 4),
    ("Peru", 1),
    ("Poland", 4),
    ("Portugal", 4),
    ("Samoa", 3),
    ("Senegal", 0),
    ("Spain", 4),
    ("Tonga", 3),
    ("Uruguay", 1),
    ("Vanuatu", 3),
    ("Vietnam", 2),
];

/// The nation keys: the codes of `0`–`9`, `A`–`Z`, `a`–`z`.
fn nation_keys() -> impl Iterator<Item = u8> {
    (b'0'..=b'9').chain(b'A'..=b'Z').chain(b'a'..=b'z')
}

/// Makes and fills the three tables, and the marker row, in TPC-C's database.
pub fn load(options: OptsBuilder) -> Result<()> {
    let mut conn = Conn::new(options)?;
    for statement in CREATE {
        conn.query_drop(statement)?;
    }
    conn.query_drop("INSERT INTO freshness VALUES (1, 0)")?;
    let mut random = Random::new(22);
    let mut regions = Inserter::new(&mut conn, "region");
    for (key, name) in REGIONS.iter().enumerate() {
        regions.row(|sql| put(sql, format_args!("{key},'{name}','{}'", random.alphanumeric(30, 100))))?;
    }
    regions.finish()?;
    let mut nations = Inserter::new(&mut conn, "nation");
    for (key, (name, region)) in nation_keys().zip(NATIONS) {
        nations.row(|sql| {
            put(sql, format_args!("{key},'{name}',{region},'{}'", random.alphanumeric(30, 100)))
        })?;
    }
    nations.finish()?;
    suppliers(&mut conn, &mut random)
}

fn suppliers(conn: &mut Conn, random: &mut Random) -> Result<()> {
    let keys: Vec<u8> = nation_keys().collect();
    let mut insert = Inserter::new(conn, "supplier");
    for supplier in 0..SUPPLIERS {
        let address = random.alphanumeric(15, 40);
        let nation = keys[random.uniform(0, keys.len() as i64 - 1) as usize];
        let phone = random.digits(15);
        let balance = crate::value::decimal_text(random.uniform(-99_999, 999_999), 2);
        let comment = random.alphanumeric(25, 90) + if random.percent(1) { " bad" } else { "" };
        insert.row(|sql| {
            let name = format!("Supplier#{supplier:09}");
            put(
                sql,
                format_args!("{supplier},'{name}','{address}',{nation},'{phone}',{balance},'{comment}'"),
            );
        })?;
    }
    insert.finish()
}

fn put(sql: &mut String, text: std::fmt::Arguments<'_>) {
    sql.write_fmt(text).expect("a String takes all text");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_its_nation() {
        assert_eq!(nation_keys().count(), NATIONS.len());
        assert!(NATIONS.iter().all(|(_, region)| *region < REGIONS.len()));
        assert!(NATIONS.is_sorted());
    }
}
