//! The databases whose tables are the server's own, by their names.

/// The name of the schema, in MySQL's way of writing it.
pub(super) const NAME: &str = "information_schema";

pub(super) fn is_schema(name: &str) -> bool {
    name.eq_ignore_ascii_case(NAME)
}

/// The schema of the grant tables, which are views of the catalog's accounts.
pub(super) const MYSQL: &str = "mysql";

pub(super) const PERFORMANCE: &str = "performance_schema";

/// Views for people over the others.
pub(super) const SYS: &str = "sys";

/// What no MySQL has. SHOW DATABASES does not list it: clients take what that lists for their own.
pub(super) const OWN: &str = "avocet";

/// Those whose tables are filled when they are read, as far as they are listed.
pub(super) const SCHEMAS: [&str; 4] = [NAME, MYSQL, PERFORMANCE, SYS];

pub(super) fn is_sys(name: &str) -> bool {
    name == SYS
}

/// Whether a schema's tables are the server's own.
pub(super) fn is_virtual(name: &str) -> bool {
    is_open(name) || name == MYSQL
}

/// Whether everybody may read a schema's tables.
pub(super) fn is_open(name: &str) -> bool {
    is_schema(name) || [PERFORMANCE, SYS, OWN].contains(&name)
}

/// The table of statements by digest.
pub(super) const DIGESTS: &str = "events_statements_summary_by_digest";

/// Whether it is the table of statements by digest, which TRUNCATE TABLE begins anew.
pub(super) fn is_digest_summary(schema: &str, name: &str) -> bool {
    schema == PERFORMANCE && name == DIGESTS
}

/// Whether TRUNCATE TABLE begins it anew, were it not empty: tables of sums and of what has been.
pub(super) fn is_forgotten(schema: &str, name: &str) -> bool {
    let words = ["_summary_", "_history", "_histogram_"];
    schema == PERFORMANCE && (name == "host_cache" || words.iter().any(|word| name.contains(word)))
}
