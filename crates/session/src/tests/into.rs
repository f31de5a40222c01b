//! SELECT … INTO: files as MySQL 9.7 writes them, where they may be, and what is left of those that failed.

use std::fs;

use avocet_channel::Interruption;

use super::Client;

/// A client with a table, and the folder that it may write to.
fn client() -> (Client, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a directory");
    let mut client = Client::new();
    client.database.set_option("secure_file_priv", &folder.path().display().to_string()).expect("known");
    client.run(
        "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(20), c DATE, d VARBINARY(10), e DECIMAL(5,2));
         INSERT INTO t VALUES (1, 'a\\tb\\\\c\\nd\"e', '2001-02-03', x'0001', 1.5), (2, NULL, NULL, NULL, NULL),
             (3, '', '2001-01-01', 'x', -2), (4, 'ü,N', NULL, 'é', 0)",
    );
    (client, folder)
}

/// Without CHARACTER SET, texts have the bytes that they have in their columns: what LOAD DATA expects of them.
#[test]
fn texts_are_written_in_their_own_character_sets() {
    let (mut client, folder) = client();
    client.run(
        "CREATE TABLE u (l VARCHAR(10) CHARACTER SET latin1, s TEXT CHARACTER SET sjis, e ENUM('é') CHARACTER SET latin1, j JSON);
         INSERT INTO u VALUES ('é', 'ソ表', 'é', '[\"é\"]')",
    );
    let path = folder.path().join("out").display().to_string();
    let mut written = |query: &str| {
        let answer = client.run(&query.replace("FILE", &format!("FILE '{path}'")));
        assert!(answer.starts_with("ok "), "{query}: {answer}");
        let bytes = fs::read(&path).expect("written");
        fs::remove_file(&path).expect("removed");
        bytes
    };
    assert_eq!(written("SELECT l, s, e FROM u INTO OUTFILE"), b"\xE9\t\x83\\\x95\\\t\xE9\n");
    assert_eq!(written("SELECT j, 'é' FROM u INTO OUTFILE"), "[\"é\"]\té\n".as_bytes());
    assert_eq!(written("SELECT l FROM u INTO OUTFILE CHARACTER SET utf8mb4"), "é\n".as_bytes());
    assert_eq!(written("SELECT l, s FROM u INTO DUMPFILE"), b"\xE9\x83\\\x95\\");
    // A BLOB among them has no size, and then nothing has.
    assert_eq!(
        written("SELECT 1, l, s FROM u INTO OUTFILE FIELDS TERMINATED BY '' ENCLOSED BY ''"),
        b"1\xE9\x83\\\x95\\\n"
    );
}

#[test]
fn rows_beyond_a_limit_are_counted() {
    let (mut client, folder) = client();
    let path = folder.path().join("out").display().to_string();
    client.run("SELECT SQL_CALC_FOUND_ROWS a FROM t ORDER BY a LIMIT 1 INTO @a");
    assert_eq!(client.run("SELECT @a, FOUND_ROWS()"), "1|4\n");
    client.run(&format!("SELECT SQL_CALC_FOUND_ROWS a FROM t LIMIT 2 INTO OUTFILE '{path}'"));
    assert_eq!(client.run("SELECT FOUND_ROWS()"), "4\n");
}

#[test]
fn files_are_written_as_by_mysql() {
    let (mut client, folder) = client();
    let path = folder.path().join("out").display().to_string();
    let mut written = |query: &str| {
        let answer = client.run(&query.replace("FILE", &format!("OUTFILE '{path}'")));
        assert!(answer.starts_with("ok "), "{query}: {answer}");
        let bytes = fs::read(&path).expect("written");
        fs::remove_file(&path).expect("removed");
        String::from_utf8_lossy(&bytes).into_owned()
    };
    assert_eq!(
        written("SELECT * FROM t ORDER BY a INTO FILE"),
        "1\ta\\\tb\\\\c\\\nd\"e\t2001-02-03\t\\0\x01\t1.50\n2\t\\N\t\\N\t\\N\t\\N\n3\t\t2001-01-01\tx\t-2.00\n\
         4\tü,N\t\\N\té\t0.00\n"
    );
    assert_eq!(
        written("SELECT * FROM t WHERE a < 3 ORDER BY a INTO FILE FIELDS TERMINATED BY ',' ENCLOSED BY '\"'"),
        "\"1\",\"a\tb\\\\c\\\nd\\\"e\",\"2001-02-03\",\"\\0\x01\",\"1.50\"\n\"2\",\\N,\\N,\\N,\\N\n"
    );
    assert_eq!(
        written(
            "SELECT * INTO FILE FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' LINES STARTING BY '>>'
             TERMINATED BY '<\\r\\n' FROM t WHERE a IN (1, 3) ORDER BY a"
        ),
        ">>1,\"a\tb\\\\c\nd\\\"e\",\"2001-02-03\",\"\\0\x01\",1.50<\r\n>>3,\"\",\"2001-01-01\",\"x\",-2.00<\r\n"
    );
    assert_eq!(
        written(
            "SELECT a, b, e FROM t WHERE a < 4 ORDER BY a INTO FILE FIELDS TERMINATED BY ',' ESCAPED BY ''"
        ),
        "1,a\tb\\c\nd\"e,1.50\n2,NULL,NULL\n3,,-2.00\n"
    );
    assert_eq!(
        written(
            "SELECT a, b FROM t ORDER BY a INTO FILE CHARACTER SET latin1 FIELDS TERMINATED BY 'n'
             LINES TERMINATED BY 'xy'"
        ),
        "1na\tb\\\\c\nd\"exy2n\\Nxy3nxy4n\u{FFFD},Nxy"
    );
    assert_eq!(
        written("SELECT a, b FROM t WHERE a = 1 INTO FILE FIELDS TERMINATED BY '' ENCLOSED BY ''"),
        format!("1          a\tb\\\\c\\\nd\"e{}\n", " ".repeat(71))
    );
    assert_eq!(
        written(
            "SELECT a, b FROM t WHERE a > 1 ORDER BY a INTO FILE FIELDS TERMINATED BY 't' ENCLOSED BY 'N'"
        ),
        "N2Nt\\N\nN3NtNN\nN4NtNü,NNN\n"
    );
    assert_eq!(
        written("SELECT a, e FROM t ORDER BY a INTO FILE FIELDS TERMINATED BY ',' ENCLOSED BY '1'"),
        "1\\11,1\\1.501\n121,\\N\n131,1-2.001\n141,10.001\n"
    );
    // Something is between rows.
    assert_eq!(
        written("SELECT a, e FROM t WHERE a < 3 ORDER BY a INTO FILE LINES TERMINATED BY ''"),
        "1\t1.50\t2\t\\N\t"
    );
    let dumped = client.run(&format!("SELECT b, d FROM t WHERE a = 1 INTO DUMPFILE '{path}'"));
    assert_eq!(dumped, "ok 1\n");
    assert_eq!(fs::read(&path).expect("written"), b"a\tb\\c\nd\"e\0\x01");
}

/// The bytes of BIT are protected as those of strings are, so that the file can be read back; characters of several bytes stay as they
/// are, whatever bytes they have.
#[test]
fn bytes_are_protected_as_by_mysql() {
    let (mut client, folder) = client();
    client.run(
        "CREATE TABLE bits (a BIT(8), b BIT(16), z INT(6) ZEROFILL);
         INSERT INTO bits VALUES (9, 10, 7), (10, 0x5c22, 8), (92, 0x0922, 9), (44, 0x6162, 1);
         CREATE TABLE back LIKE bits",
    );
    let path = folder.path().join("out").display().to_string();
    let mut written = |query: &str, back: &str| {
        let answer = client.run(&query.replace("FILE", &format!("OUTFILE '{path}'")));
        assert!(answer.starts_with("ok "), "{query}: {answer}");
        if !back.is_empty() {
            let loaded = client.run(&format!("LOAD DATA INFILE '{path}' INTO TABLE back {back}"));
            assert!(loaded.starts_with("ok 4"), "{query}: {loaded}");
            let rows = client.run("SELECT a+0, b+0, z FROM back ORDER BY z");
            assert_eq!(rows, client.run("SELECT a+0, b+0, z FROM bits ORDER BY z"), "{query}");
            client.run("TRUNCATE back");
        }
        let bytes = fs::read(&path).expect("written");
        fs::remove_file(&path).expect("removed");
        bytes
    };
    assert_eq!(
        written("SELECT * FROM bits INTO FILE", "FIELDS TERMINATED BY '\t'"),
        b"\\\t\t\\0\\\n\t000007\n\\\n\t\\\\\"\t000008\n\\\\\t\\\t\"\t000009\n,\tab\t000001\n"
    );
    let form = "FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"'";
    assert_eq!(
        written(&format!("SELECT * FROM bits INTO FILE {form}"), form),
        b"\"\t\",\"\\0\\\n\",000007\n\"\\\n\",\"\\\\\\\"\",000008\n\"\\\\\",\"\t\\\"\",000009\n\",\",\"ab\",000001\n"
    );
    let form = "FIELDS TERMINATED BY ',' ENCLOSED BY '\"'";
    assert_eq!(
        written(&format!("SELECT 12, DATE '2020-01-01', 'a\"é' INTO FILE CHARACTER SET utf16 {form}"), ""),
        b"\"\x001\x002\",\"\x002\x000\x002\x000\x00-\x000\x001\x00-\x000\x001\",\"\0a\0\"\0\xe9\"\n"
    );
    assert_eq!(
        written(&format!("SELECT 'ソ表a\"', X'5c22835c00' INTO FILE CHARACTER SET sjis {form}"), ""),
        b"\"\x83\x5c\x95\x5ca\\\"\",\"\\\\\\\"\x83\\\\0\"\n"
    );
}

#[test]
fn what_was_written_is_loaded_as_it_was() {
    let (mut client, folder) = client();
    client.run("CREATE TABLE u LIKE t");
    let formats = [
        "",
        "FIELDS TERMINATED BY ',' ENCLOSED BY '\"'",
        "FIELDS TERMINATED BY '||' OPTIONALLY ENCLOSED BY '''' ESCAPED BY '#' LINES STARTING BY '>' TERMINATED BY '<>'",
        "CHARACTER SET utf8mb4 FIELDS TERMINATED BY 'n' LINES TERMINATED BY ';'",
    ];
    for (at, format) in formats.iter().enumerate() {
        let path = folder.path().join(at.to_string()).display().to_string();
        let written = client.run(&format!("SELECT * FROM t INTO OUTFILE '{path}' {format}"));
        assert_eq!(written, "ok 4\n", "{format}");
        let loaded = client.run(&format!("DELETE FROM u; LOAD DATA INFILE '{path}' INTO TABLE u {format}"));
        assert!(loaded.ends_with("Deleted: 0  Skipped: 0  Warnings: 0)\n"), "{format}: {loaded}");
        let same = "t.a <=> u.a AND t.b <=> u.b AND t.c <=> u.c AND t.d <=> u.d AND t.e <=> u.e";
        assert_eq!(client.run(&format!("SELECT COUNT(*) FROM t JOIN u ON {same}")), "4\n", "{format}");
    }
}

#[test]
fn files_are_made_below_one_folder_and_go_if_their_query_fails() {
    let (mut client, folder) = client();
    let outside = tempfile::tempdir().expect("a directory");
    std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).expect("linked");
    let path = |name: &str| folder.path().join(name).display().to_string();
    for name in [
        outside.path().join("x").display().to_string(),
        path("link/x"),
        path("../x"),
        path(".."),
        path("nosuch/x"),
        "x".into(),
        "/".into(),
    ] {
        let answer = client.run(&format!("SELECT 1 INTO OUTFILE '{name}'"));
        assert!(answer.starts_with("ERROR 1290: "), "{name}: {answer}");
    }
    fs::write(path("there"), "old").expect("written");
    let there = client.run(&format!("SELECT 1 INTO OUTFILE '{}'", path("there")));
    assert_eq!(there, format!("ERROR 1086: File '{}' already exists\n", path("there")));
    assert_eq!(fs::read(path("there")).expect("it is there"), b"old");
    let many = client.run(&format!("SELECT a FROM t INTO DUMPFILE '{}'", path("many")));
    assert_eq!(many, "ERROR 1172: Result consisted of more than one row\n");
    client.run("CREATE TABLE big (id INT PRIMARY KEY, v VARCHAR(40))");
    client.run("LOAD DATA LOCAL INFILE 'rows:50000' INTO TABLE big");
    let interrupt = client.session.info.interrupt.clone();
    interrupt.raise(Interruption::Statement);
    let query = "SELECT x.id FROM big x JOIN big y ON x.id < y.id";
    let killed = client.run(&format!("{query} INTO OUTFILE '{}'", path("killed")));
    interrupt.begin_statement();
    assert!(killed.starts_with("ERROR 1317: "), "{killed}");
    let entries = fs::read_dir(folder.path()).expect("a folder");
    let mut left: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
    left.sort();
    assert_eq!(left, ["link", "there"]);
    let whole = client.run(&format!("SELECT * FROM big INTO OUTFILE '{}'", path("whole")));
    assert_eq!(whole, "ok 50000\n");
    assert_eq!(fs::read_to_string(path("whole")).expect("written").lines().count(), 50_000);
}
