//! Functions that ask about the server, and texts of several statements of which one is none.

use super::{Client, check};

#[test]
fn statements_before_an_error_are_run() {
    let syntax = "ERROR 1064: You have an error in your SQL syntax; check the manual that corresponds to your MySQL \
                  server version for the right syntax to use near";
    check(&[
        ("CREATE TABLE t (a INT)", "ok 0"),
        ("INSERT INTO t VALUES (1); xyzzy", &format!("ok 1\n{syntax} 'xyzzy' at line 1")),
        (
            "INSERT INTO t VALUES (2);\nSELECT COUNT(*) FROM t;\n\n  SELECT\nFROM; SELECT 3",
            &format!("ok 1\n2\n{syntax} 'FROM; SELECT 3' at line 2"),
        ),
        ("xyzzy; INSERT INTO t VALUES (3)", &format!("{syntax} 'xyzzy; INSERT INTO t VALUES (3)' at line 1")),
        ("SELECT SUM(a) FROM t", "3"),
    ]);
}

#[test]
fn files_are_read_below_the_folder_that_is_set() {
    let client = Client::new();
    let folder = tempfile::tempdir().expect("a directory");
    std::fs::write(folder.path().join("f"), b"a\xFFb").expect("a file");
    let load = format!("SELECT HEX(LOAD_FILE('{}'))", folder.path().join("f").display());
    client.another().check(&load, "NULL");
    client.database.set_option("secure_file_priv", &folder.path().display().to_string()).expect("known");
    client.another().check(&load, "61FF62");
    client.another().run("CREATE USER reader, nobody; GRANT FILE ON *.* TO reader");
    client.of("reader").check(&load, "61FF62");
    client.of("nobody").check(&load, "NULL");
    client.of("reader").check(&format!("SELECT LOAD_FILE('{}')", folder.path().display()), "NULL");
    client.of("reader").check("SELECT LOAD_FILE('/etc/hostname')", "NULL");
}

#[test]
fn roles_are_a_graph_for_who_may_see_them() {
    let client = Client::new();
    let mut root = client.another();
    root.run("CREATE ROLE r; CREATE USER u; GRANT r TO u WITH ADMIN OPTION");
    let graph = root.run("SELECT ROLES_GRAPHML()");
    assert!(graph.contains("<data key=\"key1\">`r`@`%`</data>"), "{graph}");
    assert_eq!(graph.matches("<edge ").count(), 1, "{graph}");
    assert!(graph.contains("<data key=\"key0\">1</data>"), "{graph}");
    client.of("u").check("SELECT ROLES_GRAPHML()", "<?xml version=\"1.0\" encoding=\"UTF-8\"?><graphml />");
}
