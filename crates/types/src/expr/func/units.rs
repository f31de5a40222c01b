//! Amounts in units for people. MySQL 8.4 Reference Manual, 14.21 "Performance Schema Functions".

use crate::datum::Datum;
use crate::expr::context::EvalContext;
use crate::expr::error::EvalResult;
use crate::expr::func::double;
use crate::expr::func::text::string;
use crate::expr::program::CallInfo;

type Args<'x, 'a> = &'x mut [Datum<'a>];

/// Units with what they hold of the smallest, the greatest first.
type Units = [(f64, &'static str)];

const BYTES: &Units = &[
    ((1u64 << 60) as f64, "EiB"),
    ((1u64 << 50) as f64, "PiB"),
    ((1u64 << 40) as f64, "TiB"),
    ((1u64 << 30) as f64, "GiB"),
    ((1u64 << 20) as f64, "MiB"),
    (1024.0, "KiB"),
];

const PICOSECONDS: &Units =
    &[(8.64e16, "d"), (3.6e15, "h"), (6e13, "min"), (1e12, "s"), (1e9, "ms"), (1e6, "us"), (1e3, "ns")];

fn shown(value: &Datum<'_>, units: &Units, smallest: &str, width: usize) -> String {
    let Datum::Double(value) = value else { return String::new() };
    match units.iter().find(|(size, _)| value.abs() >= *size) {
        Some((size, unit)) => match value / size {
            // More digits than there is room for.
            amount if amount.abs() >= 100_000.0 => format!("{} {unit}", scientific(amount)),
            amount => format!("{amount:.2} {unit}"),
        },
        None => format!("{:width$} {smallest}", value.trunc() as i64),
    }
}

/// FORMAT_PICO_TIME
pub fn shown_pico_time(picos: f64) -> String {
    shown(&Datum::Double(picos), PICOSECONDS, "ps", 3)
}

/// `1.16e+05`
fn scientific(value: f64) -> String {
    let text = format!("{value:.2e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => format!("{mantissa}e+{exponent:0>2}"),
        None => text,
    }
}

pub(crate) fn format_bytes<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(string(shown(&args[0], BYTES, "bytes", 4)))
}

pub(crate) fn format_pico_time<'a>(
    args: Args<'_, 'a>,
    _: &CallInfo,
    _: &EvalContext,
) -> EvalResult<Datum<'a>> {
    Ok(string(shown_pico_time(double(&args[0]))))
}
