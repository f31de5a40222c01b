//! SET PERSIST over restarts.

use avocet_base::env::{Env, SimDisk};

use super::Client;

fn opened(disk: &SimDisk) -> Client {
    Client::with(|options| options.env = Env { disk: disk.env().disk, ..Env::os() })
}

#[test]
fn values_are_there_after_a_restart() {
    let disk = SimDisk::new();
    let mut client = opened(&disk);
    client.check("SET PERSIST lock_wait_timeout = 50", "ok 0");
    client.check("SET PERSIST_ONLY group_concat_max_len = 2000", "ok 0");
    client.check("SET PERSIST sql_mode = 'NO_ZERO_DATE', GLOBAL net_read_timeout = 7", "ok 0");
    client.check("SELECT @@global.lock_wait_timeout, @@global.group_concat_max_len", "50|1024");
    drop(client);

    let disk = disk.kill();
    let mut client = opened(&disk);
    let values = "SELECT @@lock_wait_timeout, @@group_concat_max_len, @@sql_mode, @@net_read_timeout";
    client.check(values, "50|2000|NO_ZERO_DATE|30");
    client.check(
        "SELECT * FROM performance_schema.persisted_variables",
        "group_concat_max_len|2000\nlock_wait_timeout|50\nsql_mode|NO_ZERO_DATE",
    );
    client.database.set_default("lock_wait_timeout", "60").expect("known");
    client.database.set_default("net_read_timeout", "60").expect("known");
    client.check("SELECT @@global.lock_wait_timeout, @@global.net_read_timeout", "50|60");
    client.check("RESET PERSIST lock_wait_timeout", "ok 0");
    drop(client);

    let disk = disk.kill();
    let mut client = opened(&disk);
    client.check(values, "31536000|2000|NO_ZERO_DATE|30");
    client.check("RESET PERSIST", "ok 0");
    drop(client);

    let mut client = opened(&disk.kill());
    client.check("SELECT @@group_concat_max_len", "1024");
}

#[test]
fn a_file_that_cannot_be_read_stops_the_start() {
    let disk = SimDisk::new();
    let mut client = opened(&disk);
    client.check("SET PERSIST lock_wait_timeout = 50", "ok 0");
    drop(client);
    let disk = disk.kill();
    let path = std::path::Path::new("/data/mysqld-auto.cnf");
    disk.tamper(path, |bytes| bytes.truncate(20)).expect("it is there");
    let options = avocet_engine::EngineOptions {
        env: Env { disk: disk.env().disk, ..Env::os() },
        background: false,
        ..avocet_engine::EngineOptions::new("/data")
    };
    let engine = avocet_engine::Engine::open(options).expect("it opens");
    let error = crate::database::Database::new(engine, None).err().expect("no whole file");
    assert!(error.message.contains("mysqld-auto.cnf"), "{}", error.message);
}
