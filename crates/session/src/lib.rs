//! Sessions: what a connection's statements run in.
//!
//! ```text
//!  text ─run.rs─┬─ select.rs ──┬─ point.rs      compiled plans, kept or for one run
//!               │              ├─ analytics.rs  the rest, on DataFusion
//!               │              └─ locking.rs    the same, with row locks
//!               ├─ insert.rs (bulk.rs), load/, modify.rs   store.rs converts what is stored
//!               ├─ ddl.rs      definitions
//!               ├─ call.rs     native procedures
//!               ├─ set.rs      variables (variables.rs, settings.rs)
//!               ├─ show.rs     what there is (info_schema.rs)
//!               ├─ privileges.rs  what the account may do, GRANT and REVOKE
//!               └─ accounts.rs, prepared.rs
//! ```
//!
//! Rows leave through one bounded channel, whoever makes them (`channel.rs`).
//!
//! A [`Database`] opens sessions; [`api`] is the joint to whatever drives them. A statement runs inline on the caller's
//! task; only DataFusion has threads of its own.

#![deny(unsafe_code)]

// The targets of `fuzz/`, some of which are part of the tests, name the crate.
#[cfg(test)]
extern crate self as avocet_session;

mod accounts;
mod analytics;
pub mod api;
mod assigned;
pub mod binary_log;
mod bulk;
mod call;
mod candidate;
mod collect;
mod commands;
mod counters;
mod database;
mod ddl;
mod deprecated;
mod diagnostics;
mod digest;
pub mod embedded;
mod engines;
mod explain;
mod found_rows;
mod guard;
mod held;
mod hints;
mod info_schema;
mod insert;
mod into;
mod load;
mod locked;
mod locking;
mod logged;
mod maintain;
mod metrics;
mod modify;
mod named_locks;
mod output;
mod parameters;
mod permitted_files;
mod persisted;
mod plan_cache;
mod point;
mod prepared;
mod prepared_statement;
mod privileges;
pub mod replication;
mod restart;
mod role_names;
mod routing;
mod run;
mod savepoints;
mod schemas;
mod select;
mod server_files;
mod server_functions;
mod set;
mod settings;
mod shared;
mod show;
pub mod spool;
mod sql_mode;
mod state;
mod status;
mod store;
mod sum_up;
mod summaries;
mod table_locks;
mod temporary;
mod through_views;
mod transaction;
mod variables;
mod view;

#[cfg(test)]
mod tests;

pub use avocet_sql::kept::compile as compile_rules;
pub use database::Database;
pub use embedded::{Answer, Connection};
pub use shared::Passwords;
pub use state::Session;
