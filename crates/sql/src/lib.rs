//! MySQL's SQL, without anybody who runs it: from text to a bound query.
//!
//! ```text
//!  text ─ parse ─▶ syntax tree ─ bind ─▶ bound algebra (plan) ─▶ point, fusion
//!            └── digest, lift: the text without its literals, for plans that are kept
//!
//!  conditions ─ ranges ─▶ where in an index the rows are ─▶ point
//! ```
//!
//! Knows values and their types (`avocet_types`) and, through [`bind::CatalogView`], what tables there are. Knows neither engine
//! nor executor: whatever routes, rewrites or explains statements needs nothing else.
#![deny(unsafe_code)]

pub mod bind;
pub mod explain;
pub mod facts;
mod item_name;
pub mod kept;
mod lift;
pub mod parse;
pub mod plan;
pub mod print;
pub mod qualify;
pub mod ranges;
pub mod relational;
pub mod testing;

pub use lift::lift;
