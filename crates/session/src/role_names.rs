//! Names of roles, as variables and functions have them.

use avocet_engine::AccountId;

/// The roles that a variable's text names: `name[@host]`, separated by commas, quoted or not; `None` if it cannot be
/// read.
pub(crate) fn parse_roles(text: &str) -> Option<Vec<AccountId>> {
    let mut rest = text.trim();
    let mut roles = Vec::new();
    while !rest.is_empty() {
        let (name, after) = part(rest, &['@', ','])?;
        rest = after;
        let mut host = "%".to_owned();
        if let Some(after) = rest.strip_prefix('@') {
            (host, rest) = part(after.trim_start(), &[','])?;
        }
        if name.is_empty() {
            return None;
        }
        roles.push((name, host.to_lowercase()));
        rest = match rest.strip_prefix(',') {
            Some(after) if !after.trim().is_empty() => after.trim_start(),
            Some(_) => return None,
            None if rest.is_empty() => rest,
            None => return None,
        };
    }
    Some(roles)
}

/// A name up to one of `ends`, and what comes after it.
fn part<'t>(text: &'t str, ends: &[char]) -> Option<(String, &'t str)> {
    match text.chars().next() {
        Some(quote @ ('\'' | '"' | '`')) => {
            let (name, after) = text[1..].split_once(quote)?;
            Some((name.to_owned(), after.trim_start()))
        }
        _ => {
            let at = text.find(ends).unwrap_or(text.len());
            Some((text[..at].trim().to_owned(), &text[at..]))
        }
    }
}

/// As CURRENT_ROLE() shows them.
pub(crate) fn quoted((name, host): &AccountId) -> String {
    let quote = |text: &str| format!("`{}`", text.replace('`', "``"));
    format!("{}@{}", quote(name), quote(host))
}
