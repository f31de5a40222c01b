//! Internet addresses. MySQL 8.4 Reference Manual, 14.23 "Miscellaneous Functions".

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::datum::Datum;
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::func::text::{bytes, chars, string};
use crate::expr::program::CallInfo;

type Args<'x, 'a> = &'x mut [Datum<'a>];

/// NULL, with a warning that names what was no address.
fn incorrect<'a>(
    kind: &'static str,
    value: String,
    function: &'static str,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    ctx.warn(EvalError::IncorrectForFunction { kind, value, function })?;
    Ok(Datum::Null)
}

/// The number that an address in dotted form is. Its last part stands at the end where there are fewer than four, and a part
/// may be empty, but not the last.
fn dotted(text: &str) -> Option<u64> {
    let parts: Vec<&str> = text.split('.').collect();
    if parts.len() > 4 || parts.last().is_some_and(|last| last.is_empty()) {
        return None;
    }
    let mut value = 0;
    for part in &parts {
        let digit = |byte: u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
        let more = |number: u64, byte| Some(number * 10 + digit(byte)?).filter(|number| *number < 256);
        value = value << 8 | part.bytes().try_fold(0, more)?;
    }
    let last = value & 0xff;
    Some(match parts.len() {
        1 => last,
        len => (value >> 8) << (8 * (5 - len)) | last,
    })
}

pub(crate) fn aton<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let text = chars(&args[0]);
    match dotted(text) {
        Some(value) => Ok(Datum::UInt(value)),
        None => incorrect("string", format!("'{text}'"), "inet_aton", ctx),
    }
}

pub(crate) fn ntoa<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let (number, shown) = match &args[0] {
        Datum::UInt(v) => (u32::try_from(*v).ok(), v.to_string()),
        Datum::Int(v) => (u32::try_from(*v).ok(), v.to_string()),
        _ => (None, String::new()),
    };
    match number {
        Some(number) => Ok(string(Ipv4Addr::from(number).to_string())),
        None => incorrect("integer", shown, "inet_ntoa", ctx),
    }
}

/// Four parts of up to three digits, zeros in front of them allowed.
fn ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        if part.is_empty() || part.len() > 3 || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *octet = part.parse().ok()?;
    }
    parts.next().is_none().then(|| octets.into())
}

/// Eight groups, or fewer around `::`; the last two can be an address of four parts.
fn ipv6(text: &str) -> Option<Ipv6Addr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    // Zeros in front of the parts of a dotted end are not taken by the library.
    let (head, tail) = text.rsplit_once(':')?;
    let [a, b, c, d] = ipv4(tail)?.octets();
    format!("{head}:{a:02x}{b:02x}:{c:02x}{d:02x}").parse().ok()
}

pub(crate) fn aton6<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let text = chars(&args[0]);
    let octets = match (ipv4(text), ipv6(text)) {
        (Some(address), _) => address.octets().to_vec(),
        (None, Some(address)) => address.octets().to_vec(),
        (None, None) => return incorrect("string", format!("'{text}'"), "inet6_aton", ctx),
    };
    Ok(Datum::Bytes(octets.into()))
}

/// As MySQL writes it: the first of the longest runs of zero groups is left out, also a single one.
fn shown6(address: Ipv6Addr) -> String {
    let groups = address.segments();
    let (mut gap, mut len) = (0, 0);
    let mut start = 0;
    while start < 8 {
        let run = groups[start..].iter().take_while(|group| **group == 0).count();
        if run > len {
            (gap, len) = (start, run);
        }
        start += run.max(1);
    }
    let is_v4 = gap == 0 && (len == 6 || len == 5 && groups[5] == 0xffff);
    let end = if is_v4 { 6 } else { 8 };
    let join = |groups: &[u16]| groups.iter().map(|group| format!("{group:x}")).collect::<Vec<_>>().join(":");
    let mut text = match len {
        0 => join(&groups[..end]),
        _ => format!("{}::{}", join(&groups[..gap]), join(&groups[(gap + len).min(end)..end])),
    };
    if is_v4 {
        let [.., a, b, c, d] = address.octets();
        if !text.ends_with(':') {
            text.push(':');
        }
        text.push_str(&Ipv4Addr::new(a, b, c, d).to_string());
    }
    text
}

pub(crate) fn ntoa6<'a>(args: Args<'_, 'a>, _: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let is_binary = matches!(args[0], Datum::Bytes(_));
    let octets = bytes(&args[0]);
    if let (true, Ok(octets)) = (is_binary, <[u8; 4]>::try_from(octets)) {
        return Ok(string(Ipv4Addr::from(octets).to_string()));
    }
    if let (true, Ok(octets)) = (is_binary, <[u8; 16]>::try_from(octets)) {
        return Ok(string(shown6(octets.into())));
    }
    incorrect("string", format!("'{}'", String::from_utf8_lossy(octets)), "inet6_ntoa", ctx)
}

pub(crate) fn is_ipv4<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(Datum::Int(ipv4(chars(&args[0])).is_some().into()))
}

pub(crate) fn is_ipv6<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    Ok(Datum::Int(ipv6(chars(&args[0])).is_some().into()))
}

/// `::a.b.c.d`, but neither `::` nor `::1`.
pub(crate) fn is_compatible<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let is = <[u8; 16]>::try_from(bytes(&args[0]))
        .is_ok_and(|octets| octets[..12] == [0; 12] && u128::from_be_bytes(octets) > 0xff);
    Ok(Datum::Int(is.into()))
}

/// `::ffff:a.b.c.d`
pub(crate) fn is_mapped<'a>(args: Args<'_, 'a>, _: &CallInfo, _: &EvalContext) -> EvalResult<Datum<'a>> {
    let is = <[u8; 16]>::try_from(bytes(&args[0]))
        .is_ok_and(|octets| Ipv6Addr::from(octets).to_ipv4_mapped().is_some());
    Ok(Datum::Int(is.into()))
}
