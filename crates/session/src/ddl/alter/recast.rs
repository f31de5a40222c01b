//! What becomes of a value where ALTER TABLE gives its column another type. Unlike what an INSERT stores, it goes from one column
//! to the other as MySQL copies fields: a number becomes a text as its column shows it (with the decimals and zeros of its type),
//! also on its way to a member of ENUM or SET; a JSON document is its text; from and to BIT everything is an integer.

use avocet_types::error::SqlError;
use avocet_types::expr::{CastTarget, EvalContext, Expr, RowProgram};
use avocet_types::schema::ColumnDef;
use avocet_types::{SqlType, Value};

use super::Draft;
use crate::state::Session;

/// The first step of a value's way to a column of another type.
pub(super) struct Recast {
    program: RowProgram,
    /// What it gives.
    ty: SqlType,
}

impl Recast {
    pub fn run(&self, value: Value, context: &EvalContext) -> Result<(Value, SqlType), SqlError> {
        let told = context.warning_count();
        let row = [value];
        let made = self.program.eval(&&row[..], &[], context)?.into_owned();
        // Only what is stored then can have something wrong.
        context.truncate_warnings(told);
        Ok((made, self.ty))
    }
}

impl Session {
    /// By column of the draft.
    pub(super) fn recasts(&self, draft: &Draft, old: &[ColumnDef]) -> Result<Vec<Option<Recast>>, SqlError> {
        let columns = draft.def.columns.iter().zip(&draft.sources);
        let recast = |(column, source): (&ColumnDef, &Option<usize>)| match source {
            Some(at) if column.generated.is_none() => self.recast(&old[*at], &column.ty),
            _ => Ok(None),
        };
        columns.map(recast).collect()
    }

    /// `None` if the value itself is stored.
    fn recast(&self, from: &ColumnDef, to: &SqlType) -> Result<Option<Recast>, SqlError> {
        let Some(target) = target(&from.ty, to) else { return Ok(None) };
        let mut typer = self.settings.typer();
        if let Some(width) = from.zerofill.or_else(|| (from.ty == SqlType::DOUBLE).then_some(0)) {
            typer.zero_filled.insert(0, width);
        }
        let expr = typer.cast(Expr::column(0, from.ty, true), target)?;
        Ok(Some(Recast { ty: expr.ty, program: RowProgram::compile(&expr)? }))
    }
}

/// Whether a string that is too long counts as data that is cut: it goes from one column to the other without a conversion.
pub(super) fn is_cut(from: &SqlType, to: &SqlType) -> bool {
    match (from, to) {
        (SqlType::Char { collation: a, .. }, SqlType::Char { collation: b, .. })
        | (SqlType::VarChar { collation: a, .. }, SqlType::VarChar { collation: b, .. }) => a == b,
        (SqlType::Binary { .. }, SqlType::Binary { .. })
        | (SqlType::VarBinary { .. }, SqlType::VarBinary { .. }) => true,
        _ => false,
    }
}

/// The type that a value goes through.
fn target(from: &SqlType, to: &SqlType) -> Option<CastTarget> {
    use CastTarget::{Binary, Char, Signed};
    let is_number =
        from.is_integer() || matches!(from, SqlType::Float(_) | SqlType::Double(_) | SqlType::Decimal { .. });
    let is_text = |ty: &SqlType| ty.is_string() || ty.is_bytes();
    match (from, to) {
        _ if from == to => None,
        // A document of a BIT is of bytes, which JSON refuses.
        (SqlType::Bit { .. }, SqlType::Text { .. } | SqlType::Blob { .. } | SqlType::Json) => {
            Some(Binary(None))
        }
        (SqlType::Bit { .. }, _) => None,
        (SqlType::Json | SqlType::Int { .. } | SqlType::Bool, SqlType::Bit { .. }) => None,
        (_, SqlType::Bit { .. }) => Some(Signed).filter(|_| !from.is_coded()),
        (SqlType::Json, SqlType::Float(_) | SqlType::Double(_)) => Some(Char(None, None)),
        (SqlType::Json, _) => Some(Char(None, None)).filter(|_| to.is_integer() || to.is_temporal()),
        (_, SqlType::Json) => Some(Char(None, None)).filter(|_| !is_text(from)),
        (_, SqlType::Enum(_) | SqlType::Set(_)) => Some(Char(None, None)).filter(|_| is_number),
        _ => Some(Char(None, None)).filter(|_| is_number && is_text(to)),
    }
}
