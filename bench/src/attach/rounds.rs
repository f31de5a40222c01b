//! Rounds of random definitions and changes at the source, with sessions through the front beside them and perhaps a kill; after
//! each every table is compared.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::schema::{self, Table};
use super::transfers::{self, Noted, Seen};
use super::{Options, Pair, compare, connect, families, pair, writes};
use crate::cache::Scratch;
use crate::error::{Error, Result};
use crate::random::Random;

/// Sessions through the front that ask for sums, and that look for what they have written.
const SUMS: u64 = 2;
const NOTES: u64 = 2;

pub fn run(options: &Options, seed: u64) -> Result<()> {
    let folder = Scratch::new("attach")?;
    let mut random = Random::new(seed);
    let mut tables: Vec<Table> = Vec::new();
    let kind = options.source;
    let (serve, peers) = (&options.common.serve_option, options.peers);
    let pair = Pair::start_with_peers(kind, folder.path(), serve, peers, |source| {
        let mut conn = connect(source)?;
        mysql::prelude::Queryable::query_drop(&mut conn, "CREATE DATABASE r")?;
        for _ in 0..5 {
            schema::create(&mut conn, &mut random, &mut tables)?;
        }
        transfers::load(&mut conn, NOTES)?;
        families::load(&mut conn, &mut random)?;
        let mut writer = writes::Writer::new(kind, random.bits());
        (0..40).try_for_each(|_| writer.step(&mut conn, &tables).map(drop))
    })?;
    let mut stage = Stage { pair, tables, random, notes: vec![Noted::default(); NOTES as usize] };
    let mut all = Seen::default();
    for round in 1..=options.common.rounds {
        let in_round = |error| Error::Check(format!("round {round} with seed {seed}: {error}"));
        let lives = Duration::from_micros(stage.random.uniform(50_000, (options.lives * 1e6) as i64) as u64);
        let (what, seen) = stage.round(options, lives).map_err(in_round)?;
        all.add(seen);
        stage.pair.settle().map_err(in_round)?;
        let compared = compare::all(&stage.pair, "r").map_err(|error| {
            let positions = stage.pair.positions().unwrap_or_else(|error| error.to_string());
            in_round(Error::Check(format!("{error}\n{positions}")))
        })?;
        println!("round {round}: {lives:.2?}, {what}; {compared}");
    }
    if options.peers > 0 && all.of_peers == 0 {
        all.add(transfers::long_at_once(&stage.pair.front_options())?);
    }
    println!(
        "{} answers were right, {} of them known to be Avocet's, {} of a peer; {} connections were lost",
        all.answers, all.here, all.of_peers, all.lost
    );
    all.elsewhere.iter().for_each(|(why, count)| println!("  {count} on the source: {why}"));
    match (all.here, all.of_peers) {
        (0, _) => Err(Error::Check(format!("seed {seed}: no answer was Avocet's"))),
        (_, 0) if options.peers > 0 => Err(Error::Check(format!("seed {seed}: no answer was a peer's"))),
        _ => Ok(()),
    }
}

/// What goes on from round to round.
struct Stage {
    pair: Pair,
    tables: Vec<Table>,
    random: Random,
    notes: Vec<Noted>,
}

impl Stage {
    /// Changes, definitions, and perhaps a kill.
    fn round(&mut self, options: &Options, lives: Duration) -> Result<(String, Seen)> {
        let Self { pair, tables, random, notes } = self;
        let stop = AtomicBool::new(false);
        let stop = &stop;
        let known = tables.clone();
        let seeds = |random: &mut Random, count| (0..count).map(|_| random.bits()).collect::<Vec<u64>>();
        let (writers, sums) = (seeds(random, options.writers), seeds(random, SUMS));
        let (movers, noters) = (seeds(random, 2), seeds(random, NOTES));
        let kind = pair.kind;
        let (source, front) = (pair::options(&pair.source), pair.front_options());
        let copy = pair.replica.options();
        let mut what = String::from("no kill");
        std::thread::scope(|scope| {
            let writers: Vec<_> = writers
                .into_iter()
                .map(|seed| {
                    let (source, known) = (source.clone(), &known);
                    scope.spawn(move || writes::write(kind, source, seed, known, stop))
                })
                .collect();
            let movers: Vec<_> = movers
                .into_iter()
                .zip([source.clone(), front.clone()])
                .map(|(seed, options)| scope.spawn(move || transfers::transfer(options, seed, stop)))
                .collect();
            let sums = sums.into_iter().map(|seed| {
                let front = front.clone();
                scope.spawn(move || transfers::sum(front, seed, stop))
            });
            let copied = scope.spawn(move || transfers::sum_of_copy(copy, stop));
            let sums: Vec<_> = sums.collect();
            let noters = noters.into_iter().zip(&mut *notes).zip(0..).map(|((seed, noted), id)| {
                let front = front.clone();
                scope.spawn(move || transfers::note(front, id, seed, noted, stop))
            });
            let noters: Vec<_> = noters.collect();
            let outcome = disturb(pair, options, random, tables, lives, &mut what);
            stop.store(true, Ordering::SeqCst);
            let panicked = |_| Err(Error::Setup("a session has panicked".into()));
            let statements: Vec<_> =
                writers.into_iter().map(|writer| writer.join().unwrap_or_else(panicked)).collect();
            let moved: Vec<_> =
                movers.into_iter().map(|mover| mover.join().unwrap_or_else(panicked)).collect();
            let seen: Vec<_> = sums
                .into_iter()
                .chain(noters)
                .chain([copied])
                .map(|session| {
                    session.join().unwrap_or_else(|_| Err(Error::Setup("a session has panicked".into())))
                })
                .collect();
            outcome?;
            let statements = statements.into_iter().sum::<Result<u64>>()?;
            let moved = moved.into_iter().sum::<Result<u64>>()?;
            let mut all = Seen::default();
            for one in seen {
                all.add(one?);
            }
            let what = format!(
                "{what}, {statements} statements, {moved} transfers, {} checked answers ({} Avocet's)",
                all.answers, all.here
            );
            Ok((what, all))
        })
    }
}

/// Definitions, and a kill in some rounds.
fn disturb(
    pair: &mut Pair,
    options: &Options,
    random: &mut Random,
    tables: &mut Vec<Table>,
    lives: Duration,
    what: &mut String,
) -> Result<()> {
    let begin = Instant::now();
    let kill_at = lives.mul_f64(random.unit());
    let mut kills = random.percent(options.kills);
    let kills_source = random.percent(25);
    let kills_peer = !pair.peers.is_empty() && random.percent(60);
    loop {
        if kills && begin.elapsed() >= kill_at {
            kills = false;
            let (server, name) = match (kills_source, pair.peers.first_mut().filter(|_| kills_peer)) {
                (_, Some(peer)) => (peer, "peer killed"),
                (true, None) => (&mut pair.source, "source killed"),
                (false, None) => (&mut pair.replica, "replica killed"),
            };
            server.kill()?;
            server.start_again()?;
            *what = name.into();
            if kills_source && !kills_peer {
                writes::end_prepared(&mut connect(&pair.source)?, random)?;
            }
        }
        if begin.elapsed() >= lives {
            return Ok(());
        }
        if random.percent(30) {
            let conn = &mut connect(&pair.source)?;
            if random.percent(25) {
                families::define(conn, random)?;
            }
            match pair.kind.is_mariadb() && random.percent(25) {
                true => schema::define_as_mariadb(conn, random, tables)?,
                false => schema::define(conn, random, tables)?,
            }
        }
        std::thread::sleep(Duration::from_millis(random.uniform(1, 120) as u64));
    }
}
