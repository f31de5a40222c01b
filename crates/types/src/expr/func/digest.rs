//! Digests and base 64.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use sha1::Digest as _;

use crate::datum::Datum;
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::func::int;
use crate::expr::func::numeral::hex_text;
use crate::expr::func::text::{bytes, make, string};
use crate::expr::program::CallInfo;

type Args<'x, 'a> = &'x mut [Datum<'a>];

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Characters per line of TO_BASE64.
const BASE64_LINE: usize = 76;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

pub(crate) fn md5<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(string(hex_text(&md5::Md5::digest(bytes(&args[0])), DIGITS)))
}

pub(crate) fn sha1<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(string(hex_text(&sha1::Sha1::digest(bytes(&args[0])), DIGITS)))
}

/// SHA2(text, bits); NULL for a length that there is not.
pub(crate) fn sha2<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let text = bytes(&args[0]);
    Ok(string(match int(&args[1]) {
        224 => hex_text(&sha2::Sha224::digest(text), DIGITS),
        0 | 256 => hex_text(&sha2::Sha256::digest(text), DIGITS),
        384 => hex_text(&sha2::Sha384::digest(text), DIGITS),
        512 => hex_text(&sha2::Sha512::digest(text), DIGITS),
        _ => {
            ctx.note(&EvalError::WrongParameters("sha2"));
            return Ok(Datum::Null);
        }
    }))
}

pub(crate) fn to_base64<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let encoded = BASE64.encode(bytes(&args[0]));
    let lines: Vec<&str> = encoded
        .as_bytes()
        .chunks(BASE64_LINE)
        .map(|line| std::str::from_utf8(line).expect("base 64 is ASCII"))
        .collect();
    Ok(string(lines.join("\n")))
}

/// NULL for what is not base 64; white space is skipped.
pub(crate) fn from_base64<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let dense: Vec<u8> = bytes(&args[0]).iter().copied().filter(|b| !b.is_ascii_whitespace()).collect();
    Ok(BASE64.decode(dense).map_or(Datum::Null, |decoded| make(false, decoded)))
}
