//! Loads into tables whose definitions have expressions: defaults of columns that the file does not have, generated columns, CHECK
//! constraints.

use arrow::array::ArrayRef;
use avocet_engine::TableHandle;
use avocet_session::compile_rules;
use avocet_types::Value;
use avocet_types::arrow_map::{ColumnBuilder, datum_at};
use avocet_types::convert::{ConvertContext, store_column};
use avocet_types::expr::EvalContext;
use avocet_types::rules::evaluate;

use crate::Failure;

/// Puts computed values in the place of columns for which `is_given` does not hold, and checks the rows; the first one has this
/// number.
pub fn complete(
    table: &TableHandle,
    columns: &mut [ArrayRef],
    is_given: &dyn Fn(usize) -> bool,
    first_row: u64,
    now_us: i64,
) -> Result<(), Failure> {
    let Some(rules) = table.rules(compile_rules)? else { return Ok(()) };
    let defs = &table.def.columns;
    let rows = columns.first().map_or(0, |column| column.len());
    let defaults = (0..defs.len()).filter_map(|at| Some((at, rules.default_of(at)?)));
    let generated = rules.generated().iter().map(|(at, program)| (*at, program));
    let computed: Vec<_> = defaults.chain(generated).filter(|(at, _)| !is_given(*at)).collect();
    let builder = |(at, _): &(usize, _)| ColumnBuilder::new(&defs[*at].ty, rows);
    let mut builders: Vec<_> = computed.iter().map(builder).collect();
    let mut context = EvalContext::new(now_us, now_us as u64);
    context.storing = true;
    for row in 0..rows {
        let number = first_row + row as u64;
        let value = |at: usize| datum_at(columns[at].as_ref(), row, &defs[at].ty).into_owned();
        let mut values: Vec<Value> = (0..defs.len()).map(value).collect();
        for ((at, program), builder) in computed.iter().zip(&mut builders) {
            let value = evaluate(program, &defs[*at], &&values[..], &context, number)?;
            let stored = store_column(value, program.ty(), &defs[*at], &ConvertContext::STRICT_UTC)
                .map_err(|error| format!("{error} for column '{}' at row {number}", defs[*at].name))?;
            let stored = stored.value.into_owned();
            builder.append(&stored);
            values[*at] = stored;
        }
        rules.check(&&values[..], &context).map_err(|error| format!("{error} at row {number}"))?;
    }
    for ((at, _), mut builder) in computed.into_iter().zip(builders) {
        columns[at] = builder.finish();
    }
    Ok(())
}
