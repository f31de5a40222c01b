//! `read_only` and `super_read_only`: a server that takes no changes, but from administrators, or from nobody.

use super::api::AccountName;
use super::state::Session;
use crate::error::{ErrorCode, SqlError};

impl Session {
    /// Error 1290 for a change that the server does not take now.
    pub(super) fn check_server_takes_changes(&self) -> Result<(), SqlError> {
        match self.variables.globals.changes() {
            Changes::Anybody => Ok(()),
            Changes::Administrators if self.is_administrator() => Ok(()),
            Changes::Administrators => Err(ErrorCode::OPTION_PREVENTS_STATEMENT.with(&[&"--read-only"])),
            Changes::Nobody => Err(ErrorCode::OPTION_PREVENTS_STATEMENT.with(&[&"--super-read-only"])),
        }
    }

    fn is_administrator(&self) -> bool {
        is_administrator(&self.info.account)
    }
}

/// Who may do what administrators may.
pub(super) fn is_administrator(account: &AccountName) -> bool {
    account.user == "root"
}

/// Whose changes the server takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Changes {
    Anybody,
    Administrators,
    Nobody,
}
