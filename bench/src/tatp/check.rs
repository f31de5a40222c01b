//! What must hold after a run of TATP: no table but the call forwardings has changed its number of rows, these have as many
//! more as the terminals know of, each belongs to a facility, and every subscriber is where some terminal put it last.

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Row};

use super::terminal::Books;
use crate::error::Result;
use crate::finding::Finding;
use crate::value::int;

/// Rows of the four tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    subscribers: i64,
    access: i64,
    facilities: i64,
    forwardings: i64,
}

fn count(conn: &mut Conn, from: &str) -> Result<i64> {
    let row: Option<Row> = conn.query_first(format!("SELECT COUNT(*) FROM {from}"))?;
    row.map_or(Ok(0), |row| int(&row, 0))
}

impl Counts {
    pub fn take(options: &OptsBuilder) -> Result<Counts> {
        let mut conn = Conn::new(options.clone())?;
        Ok(Counts {
            subscribers: count(&mut conn, "subscriber")?,
            access: count(&mut conn, "access_info")?,
            facilities: count(&mut conn, "special_facility")?,
            forwardings: count(&mut conn, "call_forwarding")?,
        })
    }
}

/// Compares the database with the books, and notes its state for the next run.
pub fn check(options: &OptsBuilder, before: &mut Counts, books: &Books) -> Result<Vec<Finding>> {
    let now = Counts::take(options)?;
    let wanted = Counts { forwardings: before.forwardings + books.inserted - books.deleted, ..*before };
    let mut conn = Conn::new(options.clone())?;
    let orphans = count(
        &mut conn,
        "call_forwarding LEFT JOIN special_facility USING (s_id, sf_type) WHERE special_facility.s_id IS NULL",
    )?;
    let rows: Vec<Row> = conn.query("SELECT s_id, vlr_location FROM subscriber")?;
    let mut astray = 0;
    for row in &rows {
        let (id, location) = (int(row, 0)?, int(row, 1)?);
        astray += i64::from(books.locations.get(&id).is_some_and(|last| !last.contains(&location)));
    }
    *before = now;
    let (inserted, deleted, moved) = (books.inserted, books.deleted, books.locations.len());
    Ok(vec![
        Finding::new(
            format!("rows of all tables, with {inserted} inserted and {deleted} deleted"),
            now == wanted,
            || format!("{now:?}, not {wanted:?}"),
        ),
        Finding::new("every call forwarding has its facility", orphans == 0, || {
            format!("{orphans} have none")
        }),
        Finding::new(format!("{moved} subscribers are where they were put last"), astray == 0, || {
            format!("{astray} are not")
        }),
    ])
}
