//! How long comments may be.

use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::schema::TableDef;

use crate::state::{Level, Session};

/// Characters of a table's comment.
const OF_TABLE: usize = 2048;
/// Characters of a column's or a key's.
const OF_PART: usize = 1024;

impl Session {
    /// Cuts comments that are too long, with a warning; in strict mode they are an error.
    pub(super) fn check_comments(&mut self, def: &mut TableDef) -> Result<(), SqlError> {
        let TableDef { name, comment, columns, indexes, kept_keys, .. } = def;
        self.check_comment(comment, OF_TABLE, ErrorCode::TOO_LONG_TABLE_COMMENT, name)?;
        for column in columns {
            self.check_comment(
                &mut column.comment,
                OF_PART,
                ErrorCode::TOO_LONG_FIELD_COMMENT,
                &column.name,
            )?;
        }
        let of_keys = kept_keys.iter_mut().map(|key| (&key.name, &mut key.comment));
        for (name, comment) in
            indexes.iter_mut().map(|index| (&index.name, &mut index.comment)).chain(of_keys)
        {
            self.check_comment(comment, OF_PART, ErrorCode::TOO_LONG_INDEX_COMMENT, name)?;
        }
        Ok(())
    }

    fn check_comment(
        &mut self,
        comment: &mut String,
        most: usize,
        code: ErrorCode,
        name: &str,
    ) -> Result<(), SqlError> {
        let Some((end, _)) = comment.char_indices().nth(most) else { return Ok(()) };
        let error = code.with(&[&name, &most]);
        if self.settings.sql_mode.is_strict() {
            return Err(error);
        }
        self.warn(Level::Warning, error.errno, error.message);
        comment.truncate(end);
        Ok(())
    }
}
