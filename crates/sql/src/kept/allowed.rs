//! What expressions of definitions may not contain: whatever is not a function of the row (for defaults: and of the statement).

use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::Function;

use crate::parse::ast::{Expr, ExprKind};
use crate::parse::grow_stack;

/// What an expression is for, with the name that errors say.
#[derive(Clone, Copy, Debug)]
pub enum Place<'n> {
    /// The default of this column.
    Default(&'n str),
    /// The values of this generated column.
    Generated(&'n str),
    /// A key part of this index.
    KeyPart(&'n str),
    /// The condition of this CHECK constraint.
    Check(&'n str),
}

/// Functions that no definition may use: they are about the session's last statements, wait, or read what is no row.
const NEVER: &[Function] = &[
    Function::Version,
    Function::LastInsertId,
    Function::SetLastInsertId,
    Function::FoundRows,
    Function::RowCount,
    Function::Sleep,
    Function::GetLock,
    Function::ReleaseLock,
    Function::ReleaseAllLocks,
    Function::IsFreeLock,
    Function::IsUsedLock,
    Function::WaitForExecutedGtidSet,
    Function::SourcePosWait,
];

/// Functions of the time and the session, and random ones: they give a default, and nothing that is to hold later.
const ONLY_DEFAULTS: &[Function] = &[
    Function::Now,
    Function::CurDate,
    Function::CurTime,
    Function::UtcTimestamp,
    Function::UtcDate,
    Function::UtcTime,
    Function::UnixTimestamp,
    Function::Rand,
    Function::RandomBytes,
    Function::Uuid,
    Function::Database,
    Function::User,
    Function::CurrentUser,
    Function::CurrentRole,
    Function::ConnectionId,
];

/// Functions whose value a new column's old rows would each get anew, and another one on a copy of the table.
const UNSAFE_FOR_OLD_ROWS: &[Function] = &[
    Function::Rand,
    Function::RandomBytes,
    Function::Uuid,
    Function::Sysdate,
    Function::User,
    Function::CurrentUser,
];

impl Place<'_> {
    fn disallowed(self, function: &str) -> SqlError {
        match self {
            Self::Default(name) => {
                ErrorCode::DEFAULT_VAL_GENERATED_NAMED_FUNCTION_IS_NOT_ALLOWED.with(&[&name, &function])
            }
            Self::Generated(name) => {
                ErrorCode::GENERATED_COLUMN_NAMED_FUNCTION_IS_NOT_ALLOWED.with(&[&name, &function])
            }
            Self::KeyPart(index) => ErrorCode::FUNCTIONAL_INDEX_FUNCTION_IS_NOT_ALLOWED.with(&[&index]),
            Self::Check(name) => {
                ErrorCode::CHECK_CONSTRAINT_NAMED_FUNCTION_IS_NOT_ALLOWED.with(&[&name, &function])
            }
        }
    }

    fn has_subquery(self) -> SqlError {
        match self {
            Self::Default(name) => ErrorCode::DEFAULT_VAL_GENERATED_FUNCTION_IS_NOT_ALLOWED.with(&[&name]),
            Self::Generated(name) => ErrorCode::GENERATED_COLUMN_FUNCTION_IS_NOT_ALLOWED.with(&[&name]),
            Self::KeyPart(index) => ErrorCode::FUNCTIONAL_INDEX_FUNCTION_IS_NOT_ALLOWED.with(&[&index]),
            Self::Check(name) => ErrorCode::CHECK_CONSTRAINT_FUNCTION_IS_NOT_ALLOWED.with(&[&name]),
        }
    }

    fn has_variable(self) -> SqlError {
        match self {
            Self::Default(name) | Self::Generated(name) | Self::KeyPart(name) => {
                ErrorCode::DEFAULT_VAL_GENERATED_VARIABLES.with(&[&name])
            }
            Self::Check(name) => ErrorCode::CHECK_CONSTRAINT_VARIABLES.with(&[&name]),
        }
    }

    fn takes(self, function: Function) -> bool {
        let is_default = matches!(self, Self::Default(_));
        // SYSDATE() is allowed in conditions, whatever it gives.
        let is_sysdate =
            function == Function::Sysdate && matches!(self, Self::Generated(_) | Self::KeyPart(_));
        !NEVER.contains(&function) && !is_sysdate && (is_default || !ONLY_DEFAULTS.contains(&function))
    }

    /// Whether an expression may stand here, as far as its syntax tells.
    pub fn check(self, expr: &Expr) -> Result<(), SqlError> {
        self.check_tree(&mut expr.clone())
    }

    fn check_tree(self, expr: &mut Expr) -> Result<(), SqlError> {
        match &expr.kind {
            ExprKind::Subquery(_)
            | ExprKind::Exists(_)
            | ExprKind::InSubquery { .. }
            | ExprKind::Quantified { .. } => return Err(self.has_subquery()),
            ExprKind::UserVariable { .. }
            | ExprKind::SystemVariable { .. }
            | ExprKind::AssignVariable { .. } => {
                return Err(self.has_variable());
            }
            ExprKind::InsertedValue { .. } => return Err(self.disallowed("values")),
            ExprKind::Default | ExprKind::DefaultOf { .. } if matches!(self, Self::KeyPart(_)) => {
                return Err(self.disallowed("default"));
            }
            ExprKind::Aggregate(_) => return Err(ErrorCode::INVALID_GROUP_FUNC_USE.with(&[])),
            ExprKind::Window(call) => {
                return Err(ErrorCode::WINDOW_INVALID_WINDOW_FUNC_USE.with(&[&call.name.to_lowercase()]));
            }
            ExprKind::Function { name, .. } if name.eq_ignore_ascii_case("GROUPING") => {
                return Err(ErrorCode::INVALID_GROUP_FUNC_USE.with(&[]));
            }
            ExprKind::Function { name, .. } => match Function::lookup(name) {
                Some(function) if self.takes(function) => {}
                Some(Function::Version) => return Err(self.disallowed("version()")),
                Some(function) => return Err(self.disallowed(&function.name().to_lowercase())),
                None => return Err(self.disallowed(&format!("`{name}`"))),
            },
            _ => {}
        }
        grow_stack(|| expr.children_mut().into_iter().try_for_each(|child| self.check_tree(child)))
    }
}

/// 1674 if a new column's default would give rows that are there already what nobody can reproduce.
pub fn check_for_old_rows(expr: &Expr) -> Result<(), SqlError> {
    check_tree_for_old_rows(&mut expr.clone())
}

fn check_tree_for_old_rows(expr: &mut Expr) -> Result<(), SqlError> {
    if let ExprKind::Function { name, .. } = &expr.kind
        && Function::lookup(name).is_some_and(|function| UNSAFE_FOR_OLD_ROWS.contains(&function))
    {
        return Err(ErrorCode::BINLOG_UNSAFE_SYSTEM_FUNCTION.with(&[]));
    }
    grow_stack(|| expr.children_mut().into_iter().try_for_each(check_tree_for_old_rows))
}
