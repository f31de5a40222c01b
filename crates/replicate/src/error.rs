//! What can go wrong between a source and this engine.

use avocet_engine::EngineError;
use avocet_types::error::SqlError;
use thiserror::Error;

pub type Result<T, E = ReplicateError> = std::result::Result<T, E>;

#[derive(Debug, Error)]
pub enum ReplicateError {
    /// The source cannot be reached, or has said no.
    #[error("the source: {}", said(.0))]
    Source(#[from] mysql::Error),
    #[error("{0}")]
    Engine(#[from] EngineError),
    #[error("error {}: {}", .0.errno, .0.message)]
    Sql(SqlError),
    /// What the source has sent is not what it may send: a cut or changed event.
    #[error("the binary log is damaged: {0}")]
    Damaged(String),
    /// It is understood, but not followed; the cure is in the text.
    #[error("{0}")]
    Refused(String),
    /// The transactions that come next are not in the source's logs any more.
    #[error("the source has purged transactions that are not in force here: {0}")]
    Purged(String),
    /// A transaction of the source, with its identifier.
    #[error("the source's transaction {0}; its tables are copied again")]
    TooLarge(String),
    #[error("it was stopped")]
    Stopped,
}

/// An error as the server or the system said it, without the driver's wrapping.
fn said(error: &mysql::Error) -> String {
    match error {
        mysql::Error::MySqlError(e) => format!("ERROR {} ({}): {}", e.code, e.state, e.message),
        mysql::Error::DriverError(e) => e.to_string(),
        mysql::Error::IoError(e) => e.to_string(),
        mysql::Error::TlsError(e) => format!("TLS: {e}"),
        mysql::Error::CodecError(e) => format!("it does not speak MySQL's protocol: {e}"),
        other => other.to_string(),
    }
}

impl From<SqlError> for ReplicateError {
    fn from(error: SqlError) -> Self {
        Self::Sql(error)
    }
}

/// What an attempt can do after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// Connect anew and go on from the position that is in force.
    Retry,
    /// Copy everything again.
    CopyAnew,
    /// Somebody has to look.
    Halt,
}

impl ReplicateError {
    pub fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged(what.into())
    }

    pub fn after(&self) -> After {
        match self {
            Self::Source(mysql::Error::MySqlError(error)) => after_refusal(error.code),
            // A connection that broke may have broken an event, too.
            Self::Source(_) | Self::Damaged(_) => After::Retry,
            // Memory may be free again.
            Self::Engine(avocet_engine::EngineError::OutOfMemory { .. }) => After::Retry,
            Self::Engine(error) => match error.kind() {
                avocet_engine::ErrorKind::Retry | avocet_engine::ErrorKind::NoSpace => After::Retry,
                _ => After::Halt,
            },
            Self::Purged(_) => After::CopyAnew,
            Self::TooLarge(_) => After::Retry,
            Self::Sql(error) if is_busy(error) => After::Retry,
            Self::Sql(_) | Self::Refused(_) | Self::Stopped => After::Halt,
        }
    }
}

/// Somebody here holds what a definition needs: a reader of its table, or a deadlock.
pub fn is_busy(error: &SqlError) -> bool {
    const LOCK_WAIT_TIMEOUT: u16 = 1205;
    const LOCK_DEADLOCK: u16 = 1213;
    matches!(error.errno, LOCK_WAIT_TIMEOUT | LOCK_DEADLOCK)
}

/// Errors of the source by their numbers. Most pass (too many connections, a host that is blocked, quotas, offline mode, shutdown, lock
/// waits), and there are ever new ones: only what another attempt cannot change needs somebody.
fn after_refusal(code: u16) -> After {
    match code {
        // Accounts: access denied, passwords to be changed, a locked account, a host that is not allowed, missing privileges.
        1044 | 1045 | 1698 | 1820 | 1862 | 3118 | 1130 | 1142 | 1143 | 1227 => After::Halt,
        // How to sign in: a protocol or a plugin that is not known, and TLS, which is asked for.
        1251 | 1524 | 3159 => After::Halt,
        // The server cannot do what is asked: syntax, variables, functions, and no binary log.
        1064 | 1193 | 1235 | 1305 | 1381 => After::Halt,
        // 1236, ER_SOURCE_FATAL_ERROR_READING_BINLOG, is also "purged", which is told apart before.
        _ => After::Retry,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(code: u16) -> After {
        let error = mysql::error::MySqlError { state: "HY000".into(), message: String::new(), code };
        ReplicateError::Source(mysql::Error::MySqlError(error)).after()
    }

    #[test]
    fn a_reader_here_is_waited_for_again() {
        let sql = |errno| {
            let mut error = avocet_types::error::ErrorCode::UNKNOWN_ERROR.because("x");
            error.errno = errno;
            ReplicateError::Sql(error).after()
        };
        assert_eq!((sql(1205), sql(1213), sql(1146)), (After::Retry, After::Retry, After::Halt));
    }

    #[test]
    fn only_what_stays_wrong_halts() {
        for code in [1040, 1053, 1129, 1203, 1205, 1213, 1226, 1236, 1290, 1836, 3032, 3168, 4031, 9999] {
            assert_eq!(after(code), After::Retry, "{code}");
        }
        for code in [1045, 1130, 1142, 1227, 1064, 1193, 1524, 3159] {
            assert_eq!(after(code), After::Halt, "{code}");
        }
    }
}
