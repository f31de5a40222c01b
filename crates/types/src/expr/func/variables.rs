//! Reading and assigning user variables, see `expr/assigned.rs`.

use crate::datum::Datum;
use crate::expr::coerce;
use crate::expr::context::EvalContext;
use crate::expr::error::EvalResult;
use crate::expr::program::CallInfo;
use crate::expr::typing::ValueClass;

fn name<'d>(arg: &'d Datum<'_>) -> &'d str {
    match arg {
        Datum::Str(name) => name,
        _ => "",
    }
}

/// The arguments are the name, and what the variable was before the statement.
pub(crate) fn read<'a>(args: &mut [Datum<'a>], info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let assigned = ctx.assigned.with(|assigned| assigned.get(name(&args[0])).cloned());
    let (value, from) = assigned.unwrap_or_else(|| (args[1].clone().into_owned(), info.arg_types[1]));
    match (&value, ValueClass::of(&info.ty)) {
        // A decimal has the digits that it has.
        (Datum::Decimal(_), ValueClass::Decimal) => Ok(value),
        // Cut, not rounded.
        (Datum::Double(v), ValueClass::Int) => {
            coerce::convert(Datum::Double(v.trunc()), &from, &info.ty, ctx)
        }
        // What is no number is none without a word, and never an error.
        (Datum::Str(_) | Datum::Bytes(_), class)
            if !matches!(class, ValueClass::Text | ValueClass::Bytes) =>
        {
            let mut unheard = ctx.quiet();
            unheard.storing = false;
            coerce::convert(value, &from, &info.ty, &unheard)
        }
        _ => coerce::convert(value, &from, &info.ty, ctx),
    }
}

/// The arguments are the name and the value, which is the result, too.
pub(crate) fn assign<'a>(
    args: &mut [Datum<'a>],
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let value = std::mem::replace(&mut args[1], Datum::Null);
    let kept = (value.clone().into_owned(), info.ty);
    ctx.assigned.with(|assigned| match assigned.get_mut(name(&args[0])) {
        Some(place) => *place = kept,
        None => drop(assigned.insert(name(&args[0]).to_owned(), kept)),
    });
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{ArithOp, Expr, RowProgram, Typer};
    use crate::sql_type::SqlType;

    #[test]
    fn what_is_assigned_is_read_as_what_it_was() {
        let (typer, ctx) = (Typer::default(), EvalContext::new(0, 1));
        let read = || typer.read_variable("n", Some((Datum::Int(4), SqlType::BIGINT)));
        let next = typer.arith(ArithOp::Add, read(), Expr::int(1)).expect("numbers");
        let assign = RowProgram::compile(&typer.assign_variable("n", next)).expect("it compiles");
        for wanted in [5, 6] {
            let value = assign.eval_const(&[], &ctx).expect("no overflow");
            assert!(value.is_same(&Datum::Int(wanted)), "{value:?}");
        }
        let text = RowProgram::compile(&typer.assign_variable("n", typer.string("7x"))).expect("it compiles");
        text.eval_const(&[], &ctx).expect("a text");
        let read = RowProgram::compile(&read()).expect("it compiles");
        assert!(read.eval_const(&[], &ctx).expect("a number").is_same(&Datum::Int(7)));
        let kept = ctx.assigned.take();
        assert!(kept["n"].0.is_same(&Datum::str("7x")));
        assert!(read.eval_const(&[], &ctx).expect("a number").is_same(&Datum::Int(4)));
    }
}
