//! Dropping what MySQL stores of programs: procedures, functions, triggers and events. There are none but the procedures that the
//! program registers, so DROP says that they do not exist, as dumps and tools expect.

use avocet_sql::bind::unsupported;
use avocet_sql::parse::ast::ObjectName;
use avocet_sql::parse::statement::ProgramKind;
use avocet_types::error::{ErrorCode, SqlError};

use crate::run::Outcome;
use crate::state::Session;

impl Session {
    pub(super) fn drop_program(
        &mut self,
        kind: ProgramKind,
        name: &ObjectName,
        if_exists: bool,
    ) -> Result<Outcome, SqlError> {
        let own = &name.name.name;
        // Without a database it may be a loadable function.
        let is_loadable = kind == ProgramKind::Function && name.database.is_none() && self.database.is_none();
        if is_loadable {
            return self.no_program(ErrorCode::SP_DOES_NOT_EXIST.with(&[&"FUNCTION (UDF)", own]), if_exists);
        }
        let (database, _) = self.full_name(name)?;
        let routine = format_args!("{database}.{own}");
        let missing = match kind {
            ProgramKind::Procedure if self.shared.engine.procedure(&database, own).is_ok() => {
                return Err(unsupported("DROP PROCEDURE of one that the program registers"));
            }
            ProgramKind::Procedure => ErrorCode::SP_DOES_NOT_EXIST.with(&[&"PROCEDURE", &routine]),
            ProgramKind::Function => ErrorCode::SP_DOES_NOT_EXIST.with(&[&"FUNCTION", &routine]),
            ProgramKind::Trigger if self.stored_catalog().database(&database).is_none() => {
                ErrorCode::BAD_DB_ERROR.with(&[&database])
            }
            ProgramKind::Trigger => ErrorCode::TRG_DOES_NOT_EXIST.with(&[]),
            ProgramKind::Event if if_exists => ErrorCode::SP_DOES_NOT_EXIST.with(&[&"Event", own]),
            ProgramKind::Event => ErrorCode::EVENT_DOES_NOT_EXIST.with(&[own]),
        };
        self.no_program(missing, if_exists)
    }

    fn no_program(&mut self, missing: SqlError, if_exists: bool) -> Result<Outcome, SqlError> {
        if !if_exists {
            return Err(missing);
        }
        self.note(&missing);
        Ok(Outcome::ok())
    }
}
