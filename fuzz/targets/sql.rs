//! Statements: a session answers each with rows or an error, and goes on.

use std::cell::RefCell;

#[path = "client.rs"]
mod client;

use client::Client;

/// A client lives for so many statements, so that what they leave behind stays small.
const LIFE: u64 = 2000;

thread_local! {
    static CLIENT: RefCell<Option<(Client, u64)>> = const { RefCell::new(None) };
}

pub fn run(data: &[u8]) {
    let sql = String::from_utf8_lossy(data);
    if sql.to_ascii_uppercase().contains("SLEEP") {
        return;
    }
    CLIENT.with_borrow_mut(|kept| {
        let (client, statements) = kept.get_or_insert_with(|| (Client::new(), 0));
        client.execute(&sql);
        *statements += 1;
    });
    CLIENT.with_borrow_mut(|kept| kept.take_if(|(_, statements)| *statements >= LIFE));
}
