//! What ALTER TABLE leads to is a definition: SHOW CREATE TABLE, run as it is, makes the same table again.

use avocet_types::schema::{ColumnDef, IndexDef};

use super::Client;

/// A sequence of numbers that a seed gives: xorshift64.
struct Choices(u64);

impl Choices {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most as u64) as usize
    }

    fn of<'t>(&mut self, list: &[&'t str]) -> &'t str {
        list[self.below(list.len())]
    }
}

const TYPES: &[&str] = &[
    "INT",
    "BIGINT UNSIGNED",
    "DECIMAL(6,2)",
    "DOUBLE",
    "BIT(5)",
    "YEAR",
    "DATE",
    "DATETIME(3)",
    "TIME",
    "CHAR(5)",
    "VARCHAR(3)",
    "VARCHAR(10)",
    "VARCHAR(900)",
    "VARCHAR(2000)",
    "VARCHAR(20) CHARSET latin1",
    "VARCHAR(3000) CHARSET latin1",
    "VARCHAR(10) COLLATE utf8mb4_bin",
    "VARCHAR(10) DEFAULT '日'",
    "CHAR(10) DEFAULT 'ä'",
    "TINYTEXT",
    "TEXT",
    "TEXT CHARSET latin1",
    "MEDIUMTEXT",
    "VARBINARY(4)",
    "VARBINARY(20)",
    "BLOB",
    "ENUM('a','b') DEFAULT 'b'",
    "SET('x','y')",
    "JSON",
    "GEOMETRY",
    "POINT NOT NULL",
];

const CHARSETS: &[&str] =
    &["latin1", "utf8mb4", "utf8mb4 COLLATE utf8mb4_bin", "utf8mb3", "utf16", "ascii", "binary"];

const PARTITIONS: &[&str] = &[
    "PARTITION BY RANGE COLUMNS(b) (PARTITION p VALUES LESS THAN (10))",
    "PARTITION BY RANGE COLUMNS(b) (PARTITION p VALUES LESS THAN ('k'))",
    "PARTITION BY LIST COLUMNS(b) (PARTITION p VALUES IN ('k', 'ä'))",
    "PARTITION BY LIST COLUMNS(b) (PARTITION p VALUES IN ('2020-01-01'))",
    "PARTITION BY RANGE (b) (PARTITION p VALUES LESS THAN (10))",
    "PARTITION BY KEY (b) PARTITIONS 2",
    "REMOVE PARTITIONING",
];

fn action(choices: &mut Choices, step: usize) -> String {
    let column = choices.of(&["a", "b", "c", "d"]);
    let other = choices.of(&["a", "b", "c"]);
    let kind = choices.of(&["KEY", "KEY", "UNIQUE"]);
    let (ty, null) = (choices.of(TYPES), choices.of(&["", "", " NOT NULL"]));
    match choices.below(16) {
        0..=4 => format!("MODIFY {column} {ty}{null}"),
        5 => format!("CHANGE {column} d {ty} FIRST"),
        6 => format!("ADD COLUMN d {ty}{null} AFTER {other}"),
        7 => format!("DROP COLUMN {column}"),
        8 => format!("ADD {kind} i{step} ({column})"),
        9 => format!("ADD {kind} i{step} ({column}({}))", choices.of(&["2", "5", "10", "300", "800"])),
        10 => format!("ADD {kind} i{step} ({column}, {other}(3) DESC)"),
        11 => format!("ADD PRIMARY KEY ({column})"),
        12 => format!("ALTER {column} SET DEFAULT {}", choices.of(&["1", "'b'", "'日'", "(1 + 1)", "NULL"])),
        13 | 14 => format!("CONVERT TO CHARACTER SET {}", choices.of(CHARSETS)),
        _ => choices.of(PARTITIONS).to_owned(),
    }
}

/// The statement that SHOW CREATE TABLE gives of `t`, in the database that is in use.
fn shown(client: &mut Client) -> String {
    let shown = client.run("SHOW CREATE TABLE t");
    shown.trim_end().strip_prefix("t|").unwrap_or_else(|| panic!("{shown}")).to_owned()
}

/// All that the definition of `t` says, but for what names a collation that the table has anyway.
fn meant(client: &Client, database: &str) -> String {
    let catalog = client.database.engine().catalog();
    let def = &catalog.table(database, "t").expect("it is there").def;
    let columns = def.columns.iter().map(|column| ColumnDef { collation_named: false, ..column.clone() });
    let index = |index: &IndexDef| format!("{} {:?} {:?}", index.name, index.kind, index.parts);
    let mut indexes: Vec<String> = def.indexes.iter().map(index).collect();
    // SHOW CREATE TABLE gives unique ones first.
    indexes.sort();
    let columns: Vec<ColumnDef> = columns.collect();
    format!("{columns:#?}\n{indexes:#?}\n{:?}\n{:?}", def.partitioning, def.default_collation)
}

#[test]
fn what_alter_table_leads_to_can_be_made_again() {
    let mut client = Client::new();
    client.check("CREATE DATABASE again", "ok 1");
    let (mut altered, mut others) = (0, Vec::new());
    for seed in 1..=150u64 {
        let mut choices = Choices(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let (b, c) = (choices.of(TYPES), choices.of(TYPES));
        let key = choices.of(&["", ", KEY (b)", ", KEY (b(3))", ", UNIQUE (a, c(5))"]);
        client.run("USE test; DROP TABLE IF EXISTS t");
        client.run(&format!("CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY, b {b}, c {c}{key})"));
        if client.run("SELECT COUNT(*) FROM t").starts_with("ERROR") {
            client.check("CREATE TABLE t (a INT, b VARCHAR(20), c TEXT, KEY (b(5)))", "ok 0");
        }
        let mut done = Vec::new();
        for step in 0..12 {
            let alter = format!("ALTER TABLE t {}", action(&mut choices, step));
            if client.run(&alter).starts_with("ERROR") {
                continue;
            }
            done.push(alter);
            altered += 1;
            let definition = shown(&mut client);
            let made = client.run(&format!("USE again; DROP TABLE IF EXISTS t; {definition}"));
            let is_made = !made.contains("ERROR");
            let [first, again] = ["test", "again"].map(|database| is_made.then(|| meant(&client, database)));
            client.run("USE test");
            if again.is_none() || again != first {
                others.push(format!("seed {seed}, {done:#?}\n{definition}\n{made}\n{first:?}\n{again:?}"));
                break;
            }
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
    assert!(altered > 300, "{altered} succeeded");
}

#[test]
fn an_auto_increment_column_has_no_other_default() {
    super::check(&[
        ("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY)", "ok 0"),
        ("ALTER TABLE t ALTER id SET DEFAULT 5", "ERROR 1067: Invalid default value for 'id'"),
        ("ALTER TABLE t ALTER id SET DEFAULT (5)", "ERROR 1067: Invalid default value for 'id'"),
        ("ALTER TABLE t ALTER id DROP DEFAULT", "ok 0 (Records: 0  Duplicates: 0  Warnings: 0)"),
    ]);
}

#[test]
fn a_table_has_no_more_columns_than_create_table_takes() {
    let mut client = Client::new();
    let columns: Vec<String> = (0..4095).map(|n| format!("c{n} BIT")).collect();
    client.check(&format!("CREATE TABLE t ({})", columns.join(",")), "ok 0");
    let all_done = "ok 0 (Records: 0  Duplicates: 0  Warnings: 0)";
    client.check("ALTER TABLE t ADD d BIT", all_done);
    client.check("ALTER TABLE t ADD e BIT", "ERROR 1117: Too many columns");
    client.check("ALTER TABLE t ADD e BIT, DROP d", all_done);
}
