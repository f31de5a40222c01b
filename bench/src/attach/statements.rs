//! A server that follows by statements: CHANGE REPLICATION SOURCE, START and STOP REPLICA in the middle of random changes, under TLS,
//! with kills of both; after each round every table is compared.

use mysql::Conn;
use mysql::prelude::Queryable;
use std::time::Duration;

use super::pair::Source;
use super::schema::{self, Table};
use super::{Options, Pair, back, compare, connect, pair};
use crate::cache::Scratch;
use crate::error::{Error, Result};
use crate::random::Random;
use crate::rival::Server;
use crate::rival::avocet::Avocet;

/// `--by-statement`: so many rounds.
pub fn run(options: &Options, seed: u64, rounds: u64) -> Result<()> {
    let folder = Scratch::new("by-statement")?;
    let mut random = Random::new(seed);
    let source = pair::source(Source::Mysql, folder.path())?;
    let replica =
        Server::start(Box::new(Avocet::find(&options.common.serve_option)?), &folder.path().join("replica"))?;
    let mut tables: Vec<Table> = Vec::new();
    let mut conn = connect(&source)?;
    conn.query_drop("CREATE DATABASE r")?;
    for _ in 0..5 {
        schema::create(&mut conn, &mut random, &mut tables)?;
    }
    let authorities = source.data().join("ca.pem");
    begin(&mut connect(&replica)?, source.port(), &authorities.display().to_string())?;
    let mut pair = Pair { kind: Source::Mysql, source, replica, peers: Vec::new(), front: None };
    for round in 1..=rounds {
        let in_round = |error| Error::Check(format!("round {round} by statement with seed {seed}: {error}"));
        let lives = Duration::from_secs_f64(options.lives);
        let Pair { source, replica, .. } = &mut pair;
        let what =
            back::changes(options, source, replica, &mut random, &mut tables, lives).map_err(in_round)?;
        let mut conn = connect(&pair.replica)?;
        conn.query_drop("STOP REPLICA")?;
        expect(&mut conn, "STOP REPLICA", "Note 3084")?;
        conn.query_drop("START REPLICA")?;
        expect(&mut conn, "START REPLICA", "Note 3083")?;
        expect(&mut conn, "RESET REPLICA ALL", "3081")?;
        expect(&mut conn, "CHANGE REPLICATION SOURCE TO SOURCE_PORT = 1", "3021")?;
        pair.settle().map_err(in_round)?;
        let compared = compare::all(&pair, "r").map_err(in_round)?;
        println!("by statement, round {round}: {what}; {compared}");
    }
    let mut conn = connect(&pair.replica)?;
    conn.query_drop("STOP REPLICA")?;
    conn.query_drop("RESET REPLICA ALL")?;
    expect(&mut conn, "START REPLICA", "1200")?;
    match conn.query_first::<mysql::Row, _>("SHOW REPLICA STATUS")? {
        None => Ok(()),
        Some(_) => Err(Error::Check("a source that was forgotten is shown".into())),
    }
}

/// Names the source, first in ways that cannot be followed.
fn begin(conn: &mut Conn, port: u16, authorities: &str) -> Result<()> {
    expect(conn, "START REPLICA", "1200")?;
    expect(conn, "CHANGE REPLICATION SOURCE TO SOURCE_HOST = ''", "1210")?;
    expect(conn, "CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'localhost', SOURCE_USER = 'root'", "1235")?;
    let named = "SOURCE_USER = 'root', SOURCE_AUTO_POSITION = 1, SOURCE_CONNECT_RETRY = 1";
    conn.query_drop(format!(
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {port}, {named}, SOURCE_SSL = 1, \
         SOURCE_SSL_VERIFY_SERVER_CERT = 1, SOURCE_SSL_CA = '{authorities}'"
    ))?;
    // The certificate that a MySQL makes for itself has no host's name.
    expect(conn, "START REPLICA", "certificate")?;
    expect(conn, "CHANGE REPLICATION SOURCE TO SOURCE_SSL_VERIFY_SERVER_CERT = 0", "verifies nothing")?;
    expect(conn, "CHANGE REPLICATION SOURCE TO SOURCE_SSL = 0", "need SOURCE_SSL = 1")?;
    expect(conn, "CHANGE REPLICATION SOURCE TO SOURCE_SSL_CA = ''", "are not named")?;
    expect(conn, "CHANGE REPLICATION SOURCE TO SOURCE_SSL_CA = '/nowhere/ca.pem'", "No such file")?;
    expect(conn, "START REPLICA", "certificate")?;
    conn.query_drop(
        "CHANGE REPLICATION SOURCE TO SOURCE_SSL_VERIFY_SERVER_CERT = 0, SOURCE_SSL_CA = '', SOURCE_PASSWORD = 'wrong'",
    )?;
    expect(conn, "START REPLICA", "1045")?;
    conn.query_drop("CHANGE REPLICATION SOURCE TO SOURCE_PASSWORD = ''")?;
    conn.query_drop("CREATE DATABASE r")?;
    conn.query_drop("CREATE TABLE r.own (a INT)")?;
    expect(conn, "START REPLICA", "r.own is here")?;
    conn.query_drop("DROP DATABASE r")?;
    conn.query_drop("START REPLICA")?;
    Ok(())
}

/// A statement fails, or leaves a note, in these words.
pub fn expect(conn: &mut Conn, sql: &str, words: &str) -> Result<()> {
    let said = match conn.query_drop(sql) {
        Err(error) => error.to_string(),
        Ok(()) => {
            let notes: Vec<(String, u16, String)> = conn.query("SHOW WARNINGS")?;
            notes.into_iter().map(|(level, code, text)| format!("{level} {code} {text}")).collect()
        }
    };
    match said.contains(words) {
        true => Ok(()),
        false => Err(Error::Check(format!("{sql}: {words} is expected, but it said: {said}"))),
    }
}
