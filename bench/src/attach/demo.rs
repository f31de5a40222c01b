//! `make demo-attach`: what a user of MySQL should see of Avocet. A real MySQL 9.7 with CH-benCHmark's tables and transactions that
//! run all the time is followed; the application's connections go to the front instead, which passes on what MySQL does well and has
//! the dear queries answered by Avocet, on data as fresh as MySQL's own. In the end every table is compared by value.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use mysql::Conn;
use mysql::prelude::Queryable;

use super::pair::{self, Pair, Source};
use super::session::{Routed, Session};
use super::{compare, connect};
use crate::analytics::{ask as timed, compare as answers};
use crate::cache;
use crate::ch::{self, queries::QUERIES};
use crate::contest::{geomean, median};
use crate::error::{Error, IoContext, Result};
use crate::oltp::driver::Latency;
use crate::report::number;
use crate::tpcc;
use crate::tpcc::driver::{Control, Plan, Run, Watch};
use crate::tpcc::schema::Scale;
use crate::tpcc::sql::SqlOps;
use crate::value::now_micros;

#[derive(Args, Clone)]
pub struct Options {
    /// Size of the data: about half a million rows, 100 MB, for each
    #[arg(long, default_value_t = 1)]
    warehouses: i64,
    /// Clients that run TPC-C's transactions, through the front
    #[arg(long, default_value_t = 2)]
    terminals: usize,
    /// Transactions that they begin in a second
    #[arg(long, default_value_t = 40.0, value_name = "PER_SECOND")]
    rate: f64,
    /// Where MySQL's time for a query ends, for each
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
    at_most: f64,
    /// A few thousand rows for each warehouse: for a look at whether it works
    #[arg(long)]
    tiny: bool,
    /// Where the data go; what is there is removed first. By default a folder in the cache
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Go on serving after the end, until interrupted
    #[arg(long)]
    serve: bool,
    /// An option passed on to `avocet attach`; may be given several times
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    serve_option: Vec<String>,
}

/// `bench/run demo-attach`.
pub fn command(options: &Options) -> Result<()> {
    let folder = options.data.clone().unwrap_or_else(|| cache::root().join("demo-attach"));
    if folder.exists() {
        std::fs::remove_dir_all(&folder).context(|| format!("removing {}", folder.display()))?;
    }
    let scale = if options.tiny { Scale::tiny(options.warehouses) } else { Scale::full(options.warehouses) };
    println!("1. A MySQL 9.7 with data, as you have one.");
    let began = Instant::now();
    let source = pair::source(Source::Mysql, &folder)?;
    ch::load(&source, scale)?;
    // Its rows cannot be told apart otherwise; `avocet attach --check` says so, with this statement.
    const KEY: &str =
        "ALTER TABLE history ADD COLUMN id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT INVISIBLE PRIMARY KEY";
    // MySQL would take its statistics by itself some seconds later; until then its optimizer thinks that all tables are small.
    const ANALYZE: &str = "ANALYZE TABLE customer, district, history, item, new_order, orders, order_line, stock, supplier, warehouse";
    let mut conn = Conn::new(tpcc::options(&source))?;
    conn.query_drop(KEY)?;
    conn.query_drop(ANALYZE)?;
    println!(
        "   MySQL at 127.0.0.1:{} has CH-benCHmark's twelve tables, {} warehouse{}, loaded in {:.0?}.\n",
        source.port(),
        scale.warehouses,
        if scale.warehouses == 1 { "" } else { "s" },
        began.elapsed()
    );
    println!("2. Avocet is attached. Nothing is locked, nothing is changed at the source.");
    let began = Instant::now();
    let pair = Pair::attach(Source::Mysql, source, &folder, &options.serve_option)?;
    println!(
        "   avocet attach mysql://root@127.0.0.1:{}/ --data {} --listen 127.0.0.1:{} --front 127.0.0.1:{}",
        pair.source.port(),
        pair.replica.data().display(),
        pair.replica.port(),
        pair.front.unwrap_or_default()
    );
    let outcome = Show { options, scale, pair: &pair }.run(began)?;
    println!(
        "\n5. The writes have ended: all tables of MySQL and Avocet are compared, every value of every row."
    );
    pair.settle()?;
    println!("   {}.", compare::all(&pair, tpcc::DATABASE)?);
    println!("   {}.", same_answers(&pair, options.at_most)?);
    if let Some(why) = outcome {
        return Err(Error::Check(why));
    }
    println!("\nEverything held.");
    if options.serve {
        println!(
            "Serving until interrupted: mysql -h 127.0.0.1 -P {} -u root {}",
            pair.front.unwrap_or_default(),
            tpcc::DATABASE
        );
        loop {
            std::thread::park();
        }
    }
    Ok(())
}

/// What takes longer is run once: it has warmed itself up.
const WORTH_REPEATING: Duration = Duration::from_secs(1);

/// What the probe and the queries share.
#[derive(Default)]
struct Probe {
    stop: AtomicBool,
    /// All tables are copied.
    settled: AtomicBool,
    /// The newest marker whose commit MySQL has acknowledged.
    acknowledged: AtomicI64,
}

/// What one query gave.
struct Asked {
    front: Duration,
    routed: Routed,
    /// None if it did not end in time.
    source: Option<Duration>,
    /// The last marker that was acknowledged before was not seen after it.
    is_stale: bool,
}

struct Show<'a> {
    options: &'a Options,
    scale: Scale,
    pair: &'a Pair,
}

impl Show<'_> {
    /// All that runs beside the writes; says what did not hold.
    fn run(&self, began: Instant) -> Result<Option<String>> {
        let (control, probe) = (Control::default(), Probe::default());
        let plan = Plan {
            terminals: self.options.terminals,
            warm_up: Duration::ZERO,
            measure: Duration::from_secs(3600),
            seed: 4_711,
            rate: Some(self.options.rate),
        };
        // The application: it has another port, and nothing else is changed.
        let front = self.pair.front_options().db_name(Some(tpcc::DATABASE));
        std::thread::scope(|threads| {
            let terminals = threads.spawn(|| {
                tpcc::driver::run(
                    plan,
                    self.scale,
                    &control,
                    || SqlOps::connect(front.clone()),
                    |_| {
                        if probe.stop.load(Ordering::SeqCst) { Watch::EndNow } else { Watch::GoOn }
                    },
                )
            });
            let lag = threads.spawn(|| self.lag(&probe));
            let outcome = self.beside_writes(began, &probe);
            probe.stop.store(true, Ordering::SeqCst);
            let lag = lag.join().unwrap_or_else(|_| Err(Error::Setup("the probe has panicked".into())));
            let run =
                terminals.join().unwrap_or_else(|_| Err(Error::Setup("a terminal has panicked".into())));
            let asked = outcome?;
            let (run, errors) = run?;
            if let Some(error) = errors.into_iter().next() {
                return Err(error);
            }
            Ok(self.conclude(&asked, &run, &lag?))
        })
    }

    fn beside_writes(&self, began: Instant, probe: &Probe) -> Result<Vec<Asked>> {
        self.pair.settle()?;
        probe.settled.store(true, Ordering::SeqCst);
        let bytes = cache::bytes_below(self.pair.replica.data())? >> 20;
        println!(
            "   All tables were copied and up to date after {:.1?} ({bytes} MiB on disk).\n",
            began.elapsed()
        );
        println!(
            "3. {} clients run TPC-C's transactions through the front, {} a second. Meanwhile the 22 analytical queries of
   CH-benCHmark, one after the other: through the front, and on MySQL itself.\n",
            self.options.terminals, self.options.rate
        );
        let options = self.pair.front_options().db_name(Some(tpcc::DATABASE));
        let settings = "avocet_route = 'auto', avocet_freshness = 'latest'";
        let mut front = Session::open(options, settings)?;
        let mut source = Conn::new(tpcc::options(&self.pair.source))?;
        let millis = (self.options.at_most * 1_000.0) as u64;
        source.query_drop(format!("SET max_execution_time = {millis}"))?;
        println!("   query   ran on  waited ms   front ms   MySQL ms   times faster");
        let mut all = Vec::new();
        for (number, sql) in (1..).zip(QUERIES) {
            let asked = ask(&mut front, &mut source, sql, probe)?;
            self.show(number, &asked);
            all.push(asked);
        }
        Ok(all)
    }

    fn show(&self, query: usize, asked: &Asked) {
        let millis = |time: Duration| number(Some(time.as_secs_f64() * 1_000.0));
        let (there, faster) = match asked.source {
            Some(time) if !asked.routed.here => (millis(time), "-".into()),
            Some(time) => (millis(time), number(Some(time.as_secs_f64() / asked.front.as_secs_f64()))),
            None => {
                let least = self.options.at_most / asked.front.as_secs_f64();
                (format!("> {}", self.options.at_most * 1_000.0), format!("> {}", number(Some(least))))
            }
        };
        println!(
            "   Q{query:<4} {:>8} {:>10} {:>10} {there:>10} {faster:>14}{}",
            if asked.routed.here { "avocet" } else { "MySQL" },
            millis(asked.routed.waited),
            millis(asked.front),
            if asked.routed.here { String::new() } else { format!("   ({})", asked.routed.why) },
        );
    }

    /// What is committed at the source: the time until it is visible at the replica.
    fn lag(&self, probe: &Probe) -> Result<Latency> {
        let (mut source, mut replica) = (connect(&self.pair.source)?, connect(&self.pair.replica)?);
        let mut lag = Latency::default();
        while !probe.settled.load(Ordering::SeqCst) && !probe.stop.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(20));
        }
        while !probe.stop.load(Ordering::SeqCst) {
            let marker = now_micros();
            source.exec_drop("UPDATE tpcc.freshness SET written = ? WHERE id = 1", (marker,))?;
            probe.acknowledged.store(marker, Ordering::SeqCst);
            let committed = Instant::now();
            loop {
                let seen: Option<i64> =
                    replica.query_first("SELECT written FROM tpcc.freshness WHERE id = 1")?;
                if seen >= Some(marker) {
                    lag.record(committed.elapsed());
                    break;
                }
                if probe.stop.load(Ordering::SeqCst) {
                    break;
                }
                std::thread::sleep(Duration::from_micros(500));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(lag)
    }

    fn conclude(&self, asked: &[Asked], run: &Run, lag: &Latency) -> Option<String> {
        let here: Vec<&Asked> = asked.iter().filter(|asked| asked.routed.here).collect();
        let stale = asked.iter().filter(|asked| asked.is_stale).count();
        let least = |asked: &&Asked| asked.source.map_or(self.options.at_most, |time| time.as_secs_f64());
        let ratios: Vec<f64> = here.iter().map(|asked| least(asked) / asked.front.as_secs_f64()).collect();
        let front: f64 = here.iter().map(|asked| asked.front.as_secs_f64()).sum();
        let there: f64 = here.iter().map(least).sum();
        let waited = median(here.iter().map(|asked| asked.routed.waited.as_secs_f64() * 1_000.0));
        let worst = here.iter().map(|asked| asked.routed.waited).max().unwrap_or_default();
        println!("\n4. What this says:");
        println!(
            "   {} of {} queries ran on Avocet: {:.2} s instead of {:.2} s, {} times faster (each by itself: {}, geometric mean).",
            here.len(),
            asked.len(),
            front,
            there,
            number(Some(there / front)),
            number(geomean(&ratios))
        );
        println!(
            "   Before it ran, a query waited {} ms (median; at most {}) until all was there that MySQL had committed;
   {stale} answers lacked something that had been acknowledged before.",
            number(waited),
            number(Some(worst.as_secs_f64() * 1_000.0))
        );
        println!(
            "   A commit at MySQL is visible at Avocet after {} ms (median; p99 {} ms).",
            number(Some(lag.millis(0.5))),
            number(Some(lag.millis(0.99)))
        );
        println!(
            "   Meanwhile the application ran {:.0} transactions a second through the front:\n",
            run.per_second()
        );
        println!("{}", indented(&tpcc::latency_table(std::iter::once(run))));
        match (stale, here.len()) {
            (1.., _) => Some(format!("{stale} answers were stale")),
            (_, 0) => Some("no query ran on Avocet".into()),
            _ => None,
        }
    }
}

/// A query through the front and on the source. What takes less than a second runs twice, and the second time counts.
fn ask(front: &mut Session, source: &mut Conn, sql: &str, probe: &Probe) -> Result<Asked> {
    let is_stale = !sees_all(front, probe)?;
    let (mut took, _) = timed(&mut front.conn, sql)?;
    let mut routed = last_routed(front)?;
    if took < WORTH_REPEATING {
        (took, _) = timed(&mut front.conn, sql)?;
        routed = last_routed(front)?;
    }
    let there = match timed(source, sql) {
        Ok((took, _)) if took < WORTH_REPEATING => Some(timed(source, sql)?.0),
        Ok((took, _)) => Some(took),
        // Its time is over.
        Err(error) if error.errno() == Some(3024) => None,
        Err(error) => return Err(error),
    };
    Ok(Asked { front: took, routed, source: there, is_stale })
}

/// Whether what was acknowledged before is seen by a query on Avocet.
fn sees_all(front: &mut Session, probe: &Probe) -> Result<bool> {
    let known = probe.acknowledged.load(Ordering::SeqCst);
    let marker = "SELECT /*+ SET_VAR(avocet_route = here) */ written FROM freshness WHERE id = 1";
    let seen: Option<i64> = front.conn.query_first(marker)?;
    let routed = front.last_routed()?;
    match routed.here {
        true => Ok(seen >= Some(known)),
        false => Err(Error::Check(format!("the marker was read from MySQL: {}", routed.why))),
    }
}

/// Of a query that the front has passed on without a question nothing is kept.
fn last_routed(front: &mut Session) -> Result<Routed> {
    let passed_on =
        || Routed { here: false, why: "known to be cheap".into(), cost: None, waited: Duration::ZERO };
    Ok(front.routed()?.pop().unwrap_or_else(passed_on))
}

/// The queries once more on both servers, whose data is the same now.
fn same_answers(pair: &Pair, at_most: f64) -> Result<String> {
    let options = pair.front_options().db_name(Some(tpcc::DATABASE));
    let mut front = Session::open(options, "avocet_route = 'here'")?;
    let mut source = Conn::new(tpcc::options(&pair.source))?;
    source.query_drop(format!("SET max_execution_time = {}", (at_most * 1_000.0) as u64))?;
    let mut same = 0;
    for (number, sql) in (1..).zip(QUERIES) {
        let mut there = match timed(&mut source, sql) {
            Ok((_, rows)) => rows,
            Err(error) if error.errno() == Some(3024) => continue,
            Err(error) => return Err(error),
        };
        let (_, mut here) = timed(&mut front.conn, sql)?;
        // Not all of them name an order for all rows.
        there.sort();
        here.sort();
        answers::compare(&there, &here, &[]).map_err(|why| Error::Check(format!("Q{number}: {why}")))?;
        same += 1;
    }
    Ok(format!("{same} of {} queries have the same answers on both", QUERIES.len()))
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("   {line}\n")).collect()
}
