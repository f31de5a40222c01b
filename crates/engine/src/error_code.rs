//! The engine's errors as MySQL's.

use avocet_types::error::{ErrorCode, SqlError};

use crate::error::{EngineError, ErrorKind, ForeignKeyError};

impl From<EngineError> for SqlError {
    fn from(error: EngineError) -> Self {
        match &error {
            EngineError::DuplicateKey { entry, table, key } => {
                ErrorCode::DUP_ENTRY.with(&[entry, &format_args!("{table}.{key}")])
            }
            EngineError::ForeignKey(error) => foreign_key_error(error),
            EngineError::DuplicateCheck(name) => ErrorCode::CHECK_CONSTRAINT_DUP_NAME.with(&[name]),
            EngineError::LockNotAvailable => ErrorCode::LOCK_NOWAIT.with(&[]),
            EngineError::LockWaitTimeout | EngineError::WaitDeferred => {
                ErrorCode::LOCK_WAIT_TIMEOUT.with(&[])
            }
            EngineError::SnapshotConflict(table) => ErrorCode::CHECKREAD.with(&[table]),
            EngineError::SerializationFailure => ErrorCode::LOCK_DEADLOCK.with(&[]),
            // A bulk statement that lost a race is repeated as a deadlock's victim is.
            EngineError::Deadlock | EngineError::WriteConflict => ErrorCode::LOCK_DEADLOCK.with(&[]),
            EngineError::Interrupted => ErrorCode::QUERY_INTERRUPTED.with(&[]),
            EngineError::NoSuchDatabase(name) => ErrorCode::BAD_DB_ERROR.with(&[name]),
            EngineError::DatabaseExists(name) => ErrorCode::DB_CREATE_EXISTS.with(&[name]),
            EngineError::NoSuchTable(database, name) => ErrorCode::NO_SUCH_TABLE.with(&[database, name]),
            EngineError::StaleDefinition(..) | EngineError::DefinitionChanged(..) => {
                ErrorCode::TABLE_DEF_CHANGED.with(&[])
            }
            EngineError::TableExists(name) => ErrorCode::TABLE_EXISTS_ERROR.with(&[name]),
            EngineError::NoSuchIndex(name) => ErrorCode::CANT_DROP_FIELD_OR_KEY.with(&[name]),
            EngineError::IndexExists(name) => ErrorCode::DUP_KEYNAME.with(&[name]),
            EngineError::KeyTooLong { max, .. } => ErrorCode::TOO_LONG_KEY.with(&[max]),
            EngineError::RowTooLarge { max, .. } => ErrorCode::TOO_BIG_ROWSIZE.with(&[max]),
            EngineError::NotLocked(table) => ErrorCode::TABLE_NOT_LOCKED.with(&[table]),
            EngineError::LockedForRead(table) => ErrorCode::TABLE_NOT_LOCKED_FOR_WRITE.with(&[table]),
            EngineError::ReadOnly => ErrorCode::CANT_EXECUTE_IN_READ_ONLY_TRANSACTION.with(&[]),
            EngineError::NullInColumn(column) => ErrorCode::BAD_NULL_ERROR.with(&[column]),
            EngineError::NoSuchProcedure(name) => ErrorCode::SP_DOES_NOT_EXIST.with(&[&"PROCEDURE", name]),
            EngineError::WrongArgumentCount { procedure, expected, got } => {
                ErrorCode::SP_WRONG_NO_OF_ARGS.with(&[&"PROCEDURE", procedure, expected, got])
            }
            EngineError::Signal { errno, sqlstate, message } => {
                Self { errno: *errno, sqlstate: *sqlstate, message: message.clone() }
            }
            EngineError::BadValue { why, .. } => {
                ErrorCode::TRUNCATED_WRONG_VALUE_FOR_FIELD.because(why.as_str())
            }
            EngineError::OutOfMemory { .. } | EngineError::IndexTooLarge { .. } => {
                ErrorCode::OUT_OF_RESOURCES.because(format!("Out of memory: {error}"))
            }
            EngineError::Withheld { .. } => ErrorCode::UNKNOWN_ERROR.because(error.to_string()),
            EngineError::TransactionTooLarge { .. } | EngineError::RecordTooLarge { .. } => {
                ErrorCode::TRANS_CACHE_FULL.because(error.to_string())
            }
            other if other.kind() == ErrorKind::NoSpace => ErrorCode::DISK_FULL.with(&[other]),
            other => ErrorCode::GET_ERRNO.because(format!("Got error from storage engine: {other}")),
        }
    }
}

fn foreign_key_error(error: &ForeignKeyError) -> SqlError {
    use ForeignKeyError as E;
    match error {
        E::NoParent { database, table, constraint } => {
            ErrorCode::NO_REFERENCED_ROW_2.with(&[database, table, constraint])
        }
        E::HasChildren { database, table, constraint } => {
            ErrorCode::ROW_IS_REFERENCED_2.with(&[database, table, constraint])
        }
        E::TooDeep(levels) => ErrorCode::FK_DEPTH_EXCEEDED.with(&[levels]),
        E::NoSuchParent(table) => ErrorCode::FK_CANNOT_OPEN_PARENT.with(&[table]),
        E::NoSuchColumn { key, parent, column } => {
            ErrorCode::FK_NO_COLUMN_PARENT.with(&[column, key, parent])
        }
        E::NoUniqueIndex { key, parent } => ErrorCode::FK_NO_UNIQUE_INDEX_PARENT.with(&[key, parent]),
        E::Incompatible { key, column, parent_column } => {
            ErrorCode::FK_INCOMPATIBLE_COLUMNS.with(&[column, parent_column, key])
        }
        E::DuplicateName(key) => ErrorCode::FK_DUP_NAME.with(&[key]),
        E::CannotSetNull { key, column } => ErrorCode::FK_COLUMN_NOT_NULL.with(&[column, key]),
        E::UnfitParent => ErrorCode::CANNOT_ADD_FOREIGN.with(&[]),
        E::Referenced { table, key, child } => ErrorCode::FK_CANNOT_DROP_PARENT.with(&[table, key, child]),
        E::CannotTruncate { database, child, key } => {
            ErrorCode::TRUNCATE_ILLEGAL_FK.with(&[database, child, key])
        }
        E::NeedsIndex(index) => ErrorCode::DROP_INDEX_FK.with(&[index]),
        E::NoSuchKey(key) => ErrorCode::CANT_DROP_FIELD_OR_KEY.with(&[key]),
    }
}
