//! ALGORITHM and LOCK of ALTER TABLE, CREATE INDEX and DROP INDEX: they choose nothing here, but who names one wants the
//! statement to fail where it would take longer, or keep others out.

use avocet_sql::parse::statement::{AlterAction, AlterHow};
use avocet_types::error::{ErrorCode, SqlError};

/// What a change of a table comes to, from little to much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Work {
    /// Of its definition alone.
    Definition,
    /// An index is built, while others wait.
    Index,
    /// The rows are copied, while others wait.
    Copy,
}

impl Work {
    pub fn of(actions: &[AlterAction], copies: bool) -> Self {
        let builds =
            |action: &AlterAction| matches!(action, AlterAction::AddIndex(_) | AlterAction::AddForeignKey(_));
        match (copies, actions.iter().any(builds)) {
            (true, _) => Self::Copy,
            (false, true) => Self::Index,
            (false, false) => Self::Definition,
        }
    }
}

/// Error 1845 if a change cannot be had as it is asked for.
pub(super) fn check(how: AlterHow, work: Work) -> Result<(), SqlError> {
    let refuse = |what: &str, asked: &str, instead: &str| {
        let (asked, instead) = (format!("{what}={asked}"), format!("{what}={instead}"));
        Err(ErrorCode::ALTER_OPERATION_NOT_SUPPORTED.with(&[&asked, &instead]))
    };
    match (how.algorithm, work) {
        ("INSTANT" | "INPLACE", Work::Copy) => return refuse("ALGORITHM", how.algorithm, "COPY"),
        ("INSTANT", Work::Index) => return refuse("ALGORITHM", how.algorithm, "COPY/INPLACE"),
        _ => {}
    }
    match how.lock {
        "NONE" | "SHARED" if work > Work::Definition => refuse("LOCK", how.lock, "EXCLUSIVE"),
        _ => Ok(()),
    }
}

/// As `check`, for each ALGORITHM and LOCK among an ALTER TABLE's actions.
pub(super) fn check_actions(actions: &[AlterAction], copies: bool) -> Result<(), SqlError> {
    let work = Work::of(actions, copies);
    actions.iter().try_for_each(|action| match action {
        // As MySQL has it, though it is.
        AlterAction::How(AlterHow { algorithm: "INSTANT", .. }) if shows_index(actions) => {
            let (asked, instead) = ("ALGORITHM=INSTANT", "ALGORITHM=COPY/INPLACE");
            Err(ErrorCode::ALTER_OPERATION_NOT_SUPPORTED.with(&[&asked, &instead]))
        }
        AlterAction::How(how) => check(*how, work),
        _ => Ok(()),
    })
}

fn shows_index(actions: &[AlterAction]) -> bool {
    actions.iter().any(|action| matches!(action, AlterAction::SetIndexVisible { .. }))
}
