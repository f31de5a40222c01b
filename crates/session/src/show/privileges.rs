//! SHOW PRIVILEGES: what can be granted, on what.

use avocet_engine::Privileges;

use crate::output::{Rowset, text, varchar};

const SERVER: &str = "Server Admin";

/// Each static privilege with its name in this list, what it can be granted on, and what it allows.
const STATIC: &[(&str, &str, &str)] = &[
    ("Alter", "Tables", "To alter tables"),
    ("Alter routine", "Functions,Procedures", "To alter or drop stored routines"),
    ("Create", "Databases,Tables,Indexes", "To create databases and tables"),
    ("Create routine", "Databases", "To create stored routines"),
    ("Create role", SERVER, "To create roles"),
    ("Create temporary tables", "Databases", "To create temporary tables"),
    ("Create view", "Tables", "To create views"),
    ("Create user", SERVER, "To create accounts"),
    ("Delete", "Tables", "To delete rows"),
    ("Drop", "Databases,Tables", "To drop databases, tables and views"),
    ("Drop role", SERVER, "To drop roles"),
    ("Event", SERVER, "To create, alter, drop and run events"),
    ("Execute", "Functions,Procedures", "To run stored routines"),
    ("File", "File access on server", "To read and write files on the server"),
    ("Grant option", "Databases,Tables,Functions,Procedures", "To give others what one has"),
    ("Index", "Tables", "To create and drop indexes"),
    ("Insert", "Tables", "To insert rows"),
    ("Lock tables", "Databases", "To lock tables that one can read"),
    ("Process", SERVER, "To see what other connections run"),
    ("Proxy", SERVER, "To act as another account"),
    ("References", "Databases,Tables", "To refer to tables by foreign keys"),
    ("Reload", SERVER, "To reload or flush tables, logs and privileges"),
    ("Replication client", SERVER, "To see where sources and replicas are"),
    ("Replication slave", SERVER, "To read the binary log"),
    ("Select", "Tables", "To read rows"),
    ("Show databases", SERVER, "To see all databases"),
    ("Show view", "Tables", "To see how views are defined"),
    ("Shutdown", SERVER, "To shut the server down"),
    ("Super", SERVER, "To kill connections, set global variables and change the source"),
    ("Trigger", "Tables", "To create and drop triggers"),
    ("Create tablespace", SERVER, "To create, alter and drop tablespaces"),
    ("Update", "Tables", "To update rows"),
    ("Usage", SERVER, "Nothing: to connect only"),
];

pub(super) fn privileges() -> Rowset {
    let mut rows =
        Rowset::new("", &[("Privilege", varchar(64)), ("Context", varchar(64)), ("Comment", varchar(128))]);
    for (name, context, comment) in STATIC {
        rows.push([*name, context, comment].map(text).to_vec());
    }
    for name in Privileges::DYNAMIC.names() {
        rows.push([name, SERVER, ""].map(text).to_vec());
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_static_privilege_is_listed_once() {
        let mut listed: Vec<_> = STATIC.iter().map(|(name, ..)| name.to_uppercase()).collect();
        listed.sort();
        let mut known: Vec<_> = Privileges::STATIC.names().map(str::to_owned).collect();
        // That of acting as others is kept elsewhere, and that of nothing nowhere.
        known.extend(["PROXY".to_owned(), "USAGE".to_owned()]);
        known.sort();
        assert_eq!(listed, known);
    }
}
