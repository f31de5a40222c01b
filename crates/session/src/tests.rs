//! Statements through sessions, over an engine on a simulated disk: SQL in, printed results out.

mod anomalies;
mod bounds;
mod calls;
mod client;
mod computed;
mod crowds;
mod ctes;
mod deadlocks;
mod definitions;
mod differential;
mod foreign_keys;
mod fuzz;
mod grammar;
mod growth;
mod hints;
mod histories;
mod index_locks;
mod into;
mod killed;
mod loading;
mod locking;
mod long_statements;
mod memory;
mod metadata_locks;
mod named_locks;
mod plans;
mod privileges;
mod queries;
mod sessions;
mod spilling;
mod storing;
mod transactions;
mod turns;
mod unwanted;
mod upserts;

use client::{Client, check};
