//! Digests, base 64, compression and random bytes.

use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use sha1::Digest as _;

use crate::datum::Datum;
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::func::int;
use crate::expr::func::numeral::hex_text;
use crate::expr::func::string::too_large;
use crate::expr::func::text::{bytes, make, string};
use crate::expr::program::CallInfo;

type Args<'x, 'a> = &'x mut [Datum<'a>];

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Characters per line of TO_BASE64.
const BASE64_LINE: usize = 76;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical)
        // Bits that no encoder sets are left out of account.
        .with_decode_allow_trailing_bits(true),
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

pub(crate) fn to_base64<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let len = bytes(&args[0]).len().div_ceil(3) * 4;
    if (len + len / BASE64_LINE) as u64 > ctx.max_allowed_packet {
        return too_large("to_base64", ctx);
    }
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

/// Random bytes that nobody can guess: keys are made of them.
pub(crate) fn random_bytes<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let Ok(len @ 1..=1024) = usize::try_from(int(&args[0])) else {
        return Err(EvalError::OutOfRange { kind: "length", expr: "random_bytes".to_owned() });
    };
    let mut random = vec![0; len];
    match &ctx.host {
        Some(host) => host.random_bytes(&mut random),
        None => random.iter_mut().for_each(|byte| *byte = ctx.next_random() as u8),
    }
    Ok(Datum::Bytes(random.into()))
}

/// The length before, in four bytes, and what zlib makes of the string. An empty string stays one.
pub(crate) fn compress<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let given = bytes(&args[0]);
    let mut out = Vec::new();
    if !given.is_empty() {
        out.extend_from_slice(&(given.len() as u32 & LENGTH_BITS).to_le_bytes());
        let mut encoder = ZlibEncoder::new(out, Compression::default());
        out = encoder.write_all(given).and_then(|()| encoder.finish()).expect("a vector takes all");
        // What ends with a space would lose it in a CHAR column.
        if out.last() == Some(&b' ') {
            out.push(b'.');
        }
    }
    Ok(Datum::Bytes(out.into()))
}

const LENGTH_BITS: u32 = 0x3fff_ffff;

/// The length that a compressed string says it had.
fn length_before(given: &[u8]) -> Option<u32> {
    given.first_chunk().map(|len| u32::from_le_bytes(*len) & LENGTH_BITS)
}

pub(crate) fn uncompress<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let given = bytes(&args[0]);
    if given.is_empty() {
        return Ok(Datum::bytes(b""));
    }
    let Some(len) = length_before(given).filter(|_| given.len() > 4) else {
        ctx.warn(EvalError::ZlibData)?;
        return Ok(Datum::Null);
    };
    if u64::from(len) > ctx.max_allowed_packet {
        ctx.warn(EvalError::UncompressedTooLarge(ctx.max_allowed_packet))?;
        return Ok(Datum::Null);
    }
    let mut out = Vec::new();
    let read = ZlibDecoder::new(&given[4..]).take(u64::from(len) + 1).read_to_end(&mut out);
    match read {
        Ok(_) if out.len() <= len as usize => Ok(Datum::Bytes(out.into())),
        Ok(_) => {
            ctx.warn(EvalError::ZlibBuffer)?;
            Ok(Datum::Null)
        }
        Err(_) => {
            ctx.warn(EvalError::ZlibData)?;
            Ok(Datum::Null)
        }
    }
}

pub(crate) fn uncompressed_length<'a>(
    args: Args<'_, 'a>,
    _: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let given = bytes(&args[0]);
    if given.is_empty() {
        return Ok(Datum::Int(0));
    }
    let Some(len) = length_before(given).filter(|_| given.len() > 4) else {
        ctx.warn(EvalError::ZlibData)?;
        return Ok(Datum::Int(0));
    };
    Ok(Datum::Int(len.into()))
}
