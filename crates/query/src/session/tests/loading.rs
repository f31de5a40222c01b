//! LOAD DATA: what the client is told, what is refused, and files of the server.

use super::Client;

/// What a text answers, without the counts for people.
fn run(client: &mut Client, sql: &str) -> String {
    let answer = client.run(sql);
    answer.lines().map(|line| format!("{}\n", line.split(" (Records").next().unwrap_or_default())).collect()
}

#[test]
fn the_reply_counts_rows_and_warnings() {
    let mut client = Client::new();
    client.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)");
    let mut info = |sql: &str| {
        let reply = client.run(sql);
        reply.split(['(', ')']).nth(1).unwrap_or(&reply).to_owned()
    };
    assert_eq!(
        info("LOAD DATA LOCAL INFILE 'data:1\\t1\\n2\\tx\\n1\\t3\\n' INTO TABLE t"),
        "Records: 3  Deleted: 0  Skipped: 1  Warnings: 2"
    );
    assert_eq!(
        info("LOAD DATA LOCAL INFILE 'data:1\\t1\\n2\\t2\\n3\\t3\\n' REPLACE INTO TABLE t"),
        "Records: 3  Deleted: 2  Skipped: 0  Warnings: 0"
    );
    // More warnings than are kept are counted.
    let many =
        format!("LOAD DATA LOCAL INFILE 'data:{}' INTO TABLE t (@skip) SET id = 7", "x\\n".repeat(3000));
    assert_eq!(info(&many), "Records: 3000  Deleted: 0  Skipped: 2999  Warnings: 2999");
    assert_eq!(client.run("SHOW COUNT(*) WARNINGS"), "2999\n");
}

#[test]
fn columns_without_any_default_need_a_value() {
    let mut client = Client::new();
    client.run("CREATE TABLE t (id INT PRIMARY KEY, at DATETIME NOT NULL); SET sql_mode = ''");
    for load in ["'data:1\\n'", "'data:1\\t\\\\N\\n'", "'data:\\t\\n' INTO TABLE t (id) -- "] {
        let answer = client.run(&format!("LOAD DATA LOCAL INFILE {load} INTO TABLE t"));
        assert_eq!(answer, "ERROR 1364: Field 'at' doesn't have a default value\n", "{load}");
    }
}

#[test]
fn files_of_the_server_are_read_below_one_folder_alone() {
    let folder = tempfile::tempdir().expect("a directory");
    let outside = tempfile::tempdir().expect("a directory");
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("rows.txt"), "1\t10\n2\t20\n").expect("written");
    std::fs::write(outside.path().join("secret"), "3\t30\n").expect("written");
    std::os::unix::fs::symlink(outside.path().join("secret"), path("link")).expect("linked");
    let mut client = Client::new();
    client.run("CREATE TABLE t (id INT PRIMARY KEY, v INT)");
    let load = |name: &str| format!("LOAD DATA INFILE '{name}' INTO TABLE t");
    let denied = "ERROR 1290: The MySQL server is running with the --secure-file-priv option so it cannot execute \
                  this statement\n";
    // By default there is no such folder.
    assert_eq!(client.run("SELECT @@secure_file_priv"), "NULL\n");
    assert_eq!(run(&mut client, &load(&path("rows.txt"))), denied);
    client.database.set_option("secure_file_priv", &folder.path().display().to_string()).expect("known");
    assert_eq!(run(&mut client, &load(&path("rows.txt"))), "ok 2\n");
    assert_eq!(
        run(&mut client, &load(&path("rows.txt"))),
        "ERROR 1062: Duplicate entry '1' for key 't.PRIMARY'\n"
    );
    for name in [
        path("link"),
        path(&format!("../{}/secret", outside.path().file_name().expect("a name").to_string_lossy())),
        outside.path().join("secret").display().to_string(),
        outside.path().join("nosuch").display().to_string(),
        path("nosuch/../../etc/passwd"),
        "/etc/passwd".into(),
        "rows.txt".into(),
        String::new(),
    ] {
        assert_eq!(run(&mut client, &load(&name)), denied, "{name}");
    }
    let missing = run(&mut client, &load(&path("nosuch")));
    assert!(missing.starts_with("ERROR 13: Can't get stat of "), "{missing}");
    let directory = run(&mut client, &load(&folder.path().display().to_string()));
    assert!(directory.starts_with("ERROR 1085: "), "{directory}");
    assert_eq!(client.run("SELECT * FROM t"), "1|10\n2|20\n");
}

#[test]
fn rows_longer_than_the_buffer_arrive_whole_and_too_long_ones_are_refused() {
    let mut client = Client::new();
    client.run("CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)");
    let before = client.database.engine().memory().in_use().queries;
    let text = "0123456789".repeat(100_000);
    let load = format!("LOAD DATA LOCAL INFILE 'data:1\\t{text}\\n2\\t{text}' INTO TABLE t");
    assert_eq!(run(&mut client, &load), "ok 2\n");
    assert_eq!(
        client.run("SELECT id, LENGTH(v), MD5(v) = MD5(REPEAT('0123456789', 100000)) FROM t"),
        "1|1000000|1\n2|1000000|1\n"
    );
    client.run("SET max_allowed_packet = 500000");
    assert_eq!(
        run(&mut client, &load.replace("data:1", "data:3")),
        "ERROR 1153: Got a packet bigger than 'max_allowed_packet' bytes\n"
    );
    assert_eq!(client.run("SELECT COUNT(*) FROM t"), "2\n");
    assert_eq!(client.database.engine().memory().in_use().queries, before, "all memory is given back");
}

#[test]
fn a_load_is_a_part_of_its_transaction() {
    let mut client = Client::new();
    client.run("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(40))");
    client.run("BEGIN; INSERT INTO t VALUES (1000000, 'mine')");
    assert_eq!(run(&mut client, "LOAD DATA LOCAL INFILE 'rows:1000' INTO TABLE t"), "ok 1000\n");
    assert_eq!(client.another().run("SELECT COUNT(*) FROM t"), "0\n");
    assert_eq!(
        run(&mut client, "SELECT COUNT(*) FROM t; ROLLBACK; SELECT COUNT(*) FROM t"),
        "1001\nok 0\n0\n"
    );
    for level in ["SERIALIZABLE", "READ COMMITTED"] {
        client.run(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"));
        assert_eq!(
            run(&mut client, "LOAD DATA LOCAL INFILE 'rows:10' REPLACE INTO TABLE t; DELETE FROM t"),
            "ok 10\nok 10\n"
        );
    }
}
