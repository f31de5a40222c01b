//! TATP's four tables and their population: a subscriber has one to four rows of access data and of special facilities, and
//! each facility has up to three call forwardings.
//!
//! Foreign keys are left out for every database alike; the one transaction that needs theirs looks at the facility itself.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use mysql::Conn;
use mysql::prelude::Queryable;

use super::DATABASE;
use crate::error::Result;
use crate::insert::{self, Inserter};
use crate::progress;
use crate::random::Random;
use crate::rival::Server;

/// Subscribers that are loaded together, with all that belongs to them.
const SUBSCRIBERS_OF_A_PIECE: i64 = 1_000;
/// The hours at which call forwardings begin.
pub const START_TIMES: [i64; 3] = [0, 8, 16];

fn create_subscriber() -> String {
    let mut columns = String::new();
    for (prefix, ty) in [("bit", "TINYINT"), ("hex", "TINYINT"), ("byte2", "SMALLINT")] {
        for number in 1..=10 {
            write!(columns, "{prefix}_{number} {ty} NOT NULL, ").expect("a String takes all text");
        }
    }
    format!(
        "CREATE TABLE subscriber (s_id INT NOT NULL, sub_nbr VARCHAR(15) NOT NULL, {columns}
         msc_location BIGINT NOT NULL, vlr_location BIGINT NOT NULL,
         PRIMARY KEY (s_id), UNIQUE KEY (sub_nbr)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"
    )
}

const CREATE: [&str; 3] = [
    "CREATE TABLE access_info (
        s_id INT NOT NULL, ai_type TINYINT NOT NULL, data1 SMALLINT NOT NULL, data2 SMALLINT NOT NULL, data3 CHAR(3) NOT NULL,
        data4 CHAR(5) NOT NULL, PRIMARY KEY (s_id, ai_type)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
    "CREATE TABLE special_facility (
        s_id INT NOT NULL, sf_type TINYINT NOT NULL, is_active TINYINT NOT NULL, error_cntrl SMALLINT NOT NULL,
        data_a SMALLINT NOT NULL, data_b CHAR(5) NOT NULL,
        PRIMARY KEY (s_id, sf_type)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
    "CREATE TABLE call_forwarding (
        s_id INT NOT NULL, sf_type TINYINT NOT NULL, start_time TINYINT NOT NULL, end_time TINYINT NOT NULL,
        numberx VARCHAR(15) NOT NULL,
        PRIMARY KEY (s_id, sf_type, start_time)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
];

/// The number under which a subscriber is called: the id in fifteen digits.
pub fn number_of(subscriber: i64) -> String {
    format!("{subscriber:015}")
}

/// Drops and makes the database, and loads it.
pub fn load(server: &Server, subscribers: i64) -> Result<()> {
    let mut conn = Conn::new(server.options())?;
    conn.query_drop(format!("DROP DATABASE IF EXISTS {DATABASE}"))?;
    conn.query_drop(format!("CREATE DATABASE {DATABASE}"))?;
    conn.query_drop(format!("USE {DATABASE}"))?;
    conn.query_drop(create_subscriber())?;
    CREATE.iter().try_for_each(|sql| conn.query_drop(sql))?;
    let done = AtomicU64::new(0);
    let pieces = (1..=subscribers).step_by(SUBSCRIBERS_OF_A_PIECE as usize);
    progress::rows(&format!("loading {}", server.name()), subscribers as u64, &done, || {
        insert::in_pieces(&super::options(server), 2, pieces, |conn, first| {
            let last = subscribers.min(first + SUBSCRIBERS_OF_A_PIECE - 1);
            Piece::draw(first, last).send(conn)?;
            done.fetch_add((last - first + 1) as u64, Ordering::Relaxed);
            Ok(())
        })
    })
}

/// Rows of a run of subscribers, by table.
#[derive(Default)]
struct Piece {
    subscribers: Vec<String>,
    access: Vec<String>,
    facilities: Vec<String>,
    forwardings: Vec<String>,
}

impl Piece {
    fn draw(first: i64, last: i64) -> Piece {
        // A piece has a seed of its own: the data are the same in whatever order pieces are loaded.
        let mut random = Random::new(first as u64);
        let mut piece = Piece::default();
        for subscriber in first..=last {
            piece.subscriber(subscriber, &mut random);
        }
        piece
    }

    fn subscriber(&mut self, id: i64, random: &mut Random) {
        let mut row = format!("{id},'{}'", number_of(id));
        for highest in [1, 15, 255] {
            for _ in 0..10 {
                write!(row, ",{}", random.uniform(0, highest)).expect("a String takes all text");
            }
        }
        let places = [(); 2].map(|()| random.uniform(1, i64::from(u32::MAX)));
        write!(row, ",{},{}", places[0], places[1]).expect("a String takes all text");
        self.subscribers.push(row);
        for ai_type in some_of_four(random) {
            let (data1, data2) = (random.uniform(0, 255), random.uniform(0, 255));
            let (data3, data4) = (random.letters(3), random.letters(5));
            self.access.push(format!("{id},{ai_type},{data1},{data2},'{data3}','{data4}'"));
        }
        for sf_type in some_of_four(random) {
            let active = i64::from(random.percent(85));
            let (error, data_a) = (random.uniform(0, 255), random.uniform(0, 255));
            self.facilities.push(format!("{id},{sf_type},{active},{error},{data_a},'{}'", random.letters(5)));
            self.forward(id, sf_type, random);
        }
    }

    fn forward(&mut self, id: i64, sf_type: i64, random: &mut Random) {
        let count = random.uniform(0, 3) as usize;
        let mut starts: Vec<i64> = random.permutation(3)[..count].to_vec();
        starts.sort_unstable();
        for start in starts.into_iter().map(|n| START_TIMES[(n - 1) as usize]) {
            let end = start + random.uniform(1, 8);
            self.forwardings.push(format!("{id},{sf_type},{start},{end},'{}'", random.digits(15)));
        }
    }

    fn send(&self, conn: &mut Conn) -> Result<()> {
        let tables = [
            ("subscriber", &self.subscribers),
            ("access_info", &self.access),
            ("special_facility", &self.facilities),
            ("call_forwarding", &self.forwardings),
        ];
        for (table, rows) in tables {
            let mut insert = Inserter::new(conn, table);
            rows.iter().try_for_each(|row| insert.row(|sql| sql.push_str(row)))?;
            insert.finish()?;
        }
        Ok(())
    }
}

/// One to four of the types 1 to 4, in order.
fn some_of_four(random: &mut Random) -> Vec<i64> {
    let count = random.uniform(1, 4) as usize;
    let mut types = random.permutation(4)[..count].to_vec();
    types.sort_unstable();
    types
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_has_the_population_s_proportions() {
        let piece = Piece::draw(1, 4_000);
        assert_eq!(piece.subscribers.len(), 4_000);
        // Two and a half rows for each, and one and a half forwardings for each of them.
        for rows in [piece.access.len(), piece.facilities.len()] {
            assert!((9_700..=10_300).contains(&rows), "{rows}");
        }
        assert!((14_300..=15_700).contains(&piece.forwardings.len()), "{}", piece.forwardings.len());
    }

    #[test]
    fn a_subscriber_s_number_has_fifteen_digits() {
        assert_eq!(number_of(42), "000000000000042");
    }
}
