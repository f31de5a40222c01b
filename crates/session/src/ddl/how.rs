//! ALGORITHM and LOCK of ALTER TABLE, CREATE INDEX and DROP INDEX: they choose nothing here, but who names one wants the
//! statement to fail where it would take longer, or keep others out.

use std::fmt::Display;

use avocet_sql::parse::statement::{AlterAction, AlterHow};
use avocet_types::error::{ErrorCode, SqlError};

/// What a change of a table comes to, from little to much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Work {
    /// Of its definition alone.
    Definition,
    /// An index is built, while others go on.
    Index,
    /// Rows are looked at, while others wait.
    Rows,
    /// The rows are copied, while others wait.
    Copy,
}

impl Work {
    pub fn of(actions: &[AlterAction], copies: bool) -> Self {
        let of_action = |action: &AlterAction| match action {
            AlterAction::AddIndex(_) => Self::Index,
            AlterAction::AddForeignKey(_) => Self::Rows,
            _ => Self::Definition,
        };
        match copies {
            true => Self::Copy,
            false => actions.iter().map(of_action).max().unwrap_or(Self::Definition),
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
        ("INSTANT", Work::Index | Work::Rows) => return refuse("ALGORITHM", how.algorithm, "COPY/INPLACE"),
        _ => {}
    }
    match how.lock {
        "NONE" | "SHARED" if work > Work::Index => refuse("LOCK", how.lock, "EXCLUSIVE"),
        _ => Ok(()),
    }
}

/// As `check`, for what an ALTER TABLE's actions ask for together: the last ALGORITHM and the last LOCK.
pub(super) fn check_actions(actions: &[AlterAction], copies: bool) -> Result<(), SqlError> {
    let how = asked_for(actions);
    if how.algorithm == "INSTANT" && how.lock != "DEFAULT" {
        let together: [&dyn Display; 2] = [&"ALGORITHM=INSTANT", &"LOCK=NONE/SHARED/EXCLUSIVE"];
        return Err(ErrorCode::WRONG_USAGE.with(&together));
    }
    // As MySQL has it, though it is.
    if how.algorithm == "INSTANT" && shows_index(actions) {
        let (asked, instead) = ("ALGORITHM=INSTANT", "ALGORITHM=COPY/INPLACE");
        return Err(ErrorCode::ALTER_OPERATION_NOT_SUPPORTED.with(&[&asked, &instead]));
    }
    check(how, Work::of(actions, copies))
}

/// The last ALGORITHM and the last LOCK.
fn asked_for(actions: &[AlterAction]) -> AlterHow {
    let mut how = AlterHow::default();
    for action in actions {
        let AlterAction::How(AlterHow { algorithm, lock }) = action else { continue };
        how.algorithm = if *algorithm == "DEFAULT" { how.algorithm } else { algorithm };
        how.lock = if *lock == "DEFAULT" { how.lock } else { lock };
    }
    how
}

/// Whether others are to wait meanwhile, be it needed or not.
pub(super) fn keeps_others_out(actions: &[AlterAction]) -> bool {
    matches!(asked_for(actions).lock, "SHARED" | "EXCLUSIVE")
}

/// Whether rows are to be written again, be it needed or not.
pub(super) fn asks_for_copy(actions: &[AlterAction]) -> bool {
    actions.iter().any(|action| matches!(action, AlterAction::How(AlterHow { algorithm: "COPY", .. })))
}

fn shows_index(actions: &[AlterAction]) -> bool {
    actions.iter().any(|action| matches!(action, AlterAction::SetIndexVisible { .. }))
}
