//! Reading and assigning user variables, see `expr/assigned.rs`.

use crate::datum::{Datum, Value};
use crate::expr::typing::{Typer, ValueClass};
use crate::expr::{Expr, ExprKind, Function};
use crate::sql_type::{Collation, LobSize, SqlType};

impl Typer {
    /// A variable that the statement assigns to, read where it runs; `before` is what it was.
    pub fn read_variable(&self, name: &str, before: Option<(Value, SqlType)>) -> Expr {
        let ty = match &before {
            // It is made by the statement.
            None => long_text(self.connection_collation),
            Some((value, ty)) => type_read(value, ty, self.connection_collation),
        };
        let before = before.map_or(Expr::null(), |(value, ty)| Expr::literal(value, ty));
        Expr::new(ExprKind::Call(Function::ReadVariable, vec![self.string(name), before]), ty, true)
    }

    /// `@name := value`
    pub fn assign_variable(&self, name: &str, value: Expr) -> Expr {
        let value = match value.ty {
            SqlType::Null => value,
            SqlType::Bit { .. } => self.convert(value, SqlType::BIGINT_UNSIGNED),
            _ => match ValueClass::of(&value.ty) {
                ValueClass::Int => {
                    let unsigned = value.ty.is_unsigned();
                    let ty = if unsigned { SqlType::BIGINT_UNSIGNED } else { SqlType::BIGINT };
                    self.convert(value, ty)
                }
                ValueClass::Decimal => value,
                ValueClass::Double => self.convert(value, SqlType::DOUBLE),
                _ => self.text(value),
            },
        };
        // NULL is an empty string of bytes.
        let ty = if value.ty == SqlType::Null { SqlType::VarBinary { len: 0 } } else { value.ty };
        let nullable = value.nullable;
        Expr::new(ExprKind::Call(Function::AssignVariable, vec![self.string(name), value]), ty, nullable)
    }
}

impl Expr {
    /// Whether it assigns to a variable, or reads one that its statement assigns to.
    pub fn uses_assigned(&self) -> bool {
        self.any(&mut |expr| {
            matches!(expr.kind, ExprKind::Call(Function::ReadVariable | Function::AssignVariable, _))
        })
    }
}

fn long_text(collation: Collation) -> SqlType {
    SqlType::Text { size: LobSize::Long, collation }
}

/// The type that a variable is read as.
fn type_read(value: &Value, ty: &SqlType, connection: Collation) -> SqlType {
    match value {
        Datum::Null => SqlType::Blob { size: LobSize::Medium },
        Datum::Int(_) => SqlType::BIGINT,
        Datum::UInt(_) => SqlType::BIGINT_UNSIGNED,
        Datum::Decimal(_) => SqlType::Decimal { precision: 65, scale: 30, unsigned: false },
        Datum::Float(_) | Datum::Double(_) => SqlType::DOUBLE,
        Datum::Bytes(_) if *ty != SqlType::Json => SqlType::Blob { size: LobSize::Medium },
        Datum::Str(_) | Datum::Bytes(_) | Datum::Date(_) | Datum::DateTime(_) | Datum::Time(_) => {
            long_text(ty.collation().unwrap_or(connection))
        }
    }
}
