//! The result channel: the one way from every executor to whoever takes its rows, and what ends a statement on the way.
//!
//! ```text
//!  compiled plan (point) ──────── row ──┐          ┌── full: wants_flush ──▶ Cancellation::flush[_in_place]
//!  DataFusion (fusion) ───────── batch ─┼──▶ ResultSink, bounded                 │ waits for the client;
//!  SHOW, CALL, EXPLAIN (session) ─ row ─┘          └── end, ok ──▶ one write     ▼ KILL, deadline, write time-out
//! ```
//!
//! [`result`] is what flows, [`Interrupt`] and [`Cancellation`] end it, [`blocking`] is how what takes long shares a thread.
#![deny(unsafe_code)]

pub mod blocking;
mod cancellation;
mod interrupt;
mod result;

pub use cancellation::{Cancellation, LONGEST_DELAY, write_some};
pub use interrupt::{Interrupt, Interruption};
pub use result::{
    ColumnFlags, LocalFiles, OkReply, OutputColumn, PlanColumns, ResultSink, ResultsCharset, SessionChange,
    SinkError, Status,
};
