//! What the front costs the statements that it passes on: reads of a row by its primary key, as text and prepared, through the front
//! and through a relay that does nothing.
//!
//! Both are measured in the same run by the same threads, in turns of milliseconds, so that whatever else the machine does meets both.

use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Statement};

use super::Pair;
use super::relay::Relay;
use crate::error::{Error, Result};
use crate::oltp::driver::Latency;
use crate::random::Random;
use crate::report::{Report, Table, number};
use crate::rival::server;

/// Rows of the table that is read.
const ROWS: i64 = 100_000;
/// Connections, besides one alone.
const SESSIONS: usize = 8;
/// How long one of the two is measured before it is the other's turn.
const TURN: Duration = Duration::from_millis(20);
const WARM_UP: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Text,
    Prepared,
}

/// Latencies through the front, and through the relay.
type Both = [Latency; 2];

/// Makes the table; to be called before the source is followed.
pub fn load(conn: &mut Conn) -> Result<()> {
    conn.query_drop("CREATE TABLE r.points (id INT PRIMARY KEY, n INT NOT NULL, a VARCHAR(100) NOT NULL)")?;
    conn.query_drop("SET SESSION cte_max_recursion_depth = 100000000")?;
    Ok(conn.query_drop(format!(
        "INSERT INTO r.points WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < {ROWS})
         SELECT i, i * 7 % 1000, RPAD(i, 80, 'point ') FROM i"
    ))?)
}

/// Adds `attach.point_read_added_p99_ms` and `attach.front_share`: the worst of all forms.
pub fn measure(pair: &Pair, seconds: f64, report: &mut Report) -> Result<()> {
    let relay = Relay::start(pair.source.port())?;
    let paths = [pair.front_options(), server::options(relay.port)];
    let time = Duration::from_secs_f64(seconds);
    let mut table = Table::new(&[
        "point reads",
        "connections",
        "front p50 ms",
        "relay p50 ms",
        "front p99 ms",
        "relay p99 ms",
        "front 1/s",
        "relay 1/s",
    ]);
    let (mut added, mut share) = (f64::NEG_INFINITY, f64::INFINITY);
    for form in [Form::Text, Form::Prepared] {
        for sessions in [1, SESSIONS] {
            let both = run(&paths, form, sessions, time)?;
            let rate = |path: &Latency| path.count() as f64 / (seconds / 2.0);
            let [front, relay] = &both;
            added = added.max(front.millis(0.99) - relay.millis(0.99));
            share = share.min(rate(front) / rate(relay));
            let mut cells = vec![format!("{form:?}").to_lowercase(), sessions.to_string()];
            cells.extend(both.iter().map(|path| number(Some(path.millis(0.5)))));
            cells.extend(both.iter().map(|path| number(Some(path.millis(0.99)))));
            cells.extend(both.iter().map(|path| number(Some(rate(path)))));
            table.row(cells);
        }
    }
    println!("\n{}", table.text());
    report.add("attach.point_read_added_p99_ms", "ms", Some(added), None);
    report.add("attach.front_share", "share", Some(share), None);
    Ok(())
}

fn run(paths: &[OptsBuilder; 2], form: Form, sessions: usize, time: Duration) -> Result<Both> {
    let connected = (0..sessions)
        .map(|number| Ok((number, Reader::connect(&paths[0], form)?, Reader::connect(&paths[1], form)?)))
        .collect::<Result<Vec<_>>>()?;
    let begin = Instant::now();
    std::thread::scope(|threads| {
        let running: Vec<_> = connected
            .into_iter()
            .map(|(number, front, relay)| {
                threads.spawn(move || read(number as u64, [front, relay], begin, time))
            })
            .collect();
        let mut total = Both::default();
        for thread in running {
            let one = thread.join().map_err(|_| Error::Setup("a reader has panicked".into()))??;
            total.iter_mut().zip(&one).for_each(|(all, one)| all.add(one));
        }
        Ok(total)
    })
}

fn read(seed: u64, mut readers: [Reader; 2], begin: Instant, time: Duration) -> Result<Both> {
    let mut random = Random::new(seed);
    let mut both = Both::default();
    loop {
        let at = begin.elapsed();
        if at >= WARM_UP + time {
            return Ok(both);
        }
        let turn = (at.as_millis() / TURN.as_millis()) as usize % 2;
        let id = random.uniform(1, ROWS);
        let asked = Instant::now();
        let answer = readers[turn].read(id)?;
        let took = asked.elapsed();
        if answer != Some(id * 7 % 1000) {
            return Err(Error::Check(format!("row {id} is answered with {answer:?}")));
        }
        if at >= WARM_UP {
            both[turn].record(took);
        }
    }
}

struct Reader {
    conn: Conn,
    prepared: Option<Statement>,
}

impl Reader {
    fn connect(options: &OptsBuilder, form: Form) -> Result<Self> {
        let mut conn = Conn::new(options.clone())?;
        let prepared = match form {
            Form::Text => None,
            Form::Prepared => Some(conn.prep("SELECT n, a FROM r.points WHERE id = ?")?),
        };
        Ok(Self { conn, prepared })
    }

    fn read(&mut self, id: i64) -> Result<Option<i64>> {
        let row: Option<(i64, String)> = match &self.prepared {
            Some(statement) => self.conn.exec_first(statement, (id,))?,
            None => self.conn.query_first(format!("SELECT n, a FROM r.points WHERE id = {id}"))?,
        };
        Ok(row.map(|(n, _)| n))
    }
}
