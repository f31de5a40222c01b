//! `read_only` and `super_read_only`: a server that takes no changes, but from administrators, or from nobody.

use avocet_engine::Privileges;
use avocet_types::error::{ErrorCode, SqlError};

use super::state::Session;
use super::variables::Changes;

/// Who has any of these may change what others may not, and gets in when the server is full.
pub(super) const ADMINISTRATORS: Privileges = Privileges::SUPER.or(Privileges::CONNECTION_ADMIN);

impl Session {
    /// Error 1290 for a change that the server does not take now.
    pub(super) fn check_server_takes_changes(&self) -> Result<(), SqlError> {
        match self.variables.globals.changes() {
            Changes::Anybody => Ok(()),
            _ if self.applies => Ok(()),
            Changes::Administrators if self.seen().global().intersects(ADMINISTRATORS) => Ok(()),
            Changes::Administrators => Err(ErrorCode::OPTION_PREVENTS_STATEMENT.with(&[&"--read-only"])),
            Changes::Nobody => Err(ErrorCode::OPTION_PREVENTS_STATEMENT.with(&[&"--super-read-only"])),
        }
    }
}
