//! What a document holds, and where.

use std::collections::HashSet;

use super::{Args, document, encoded, is_one, is_too_much, path, single_path};
use crate::collation::LikePattern;
use crate::datum::Datum;
use crate::expr::context::EvalContext;
use crate::expr::error::{EvalError, EvalResult};
use crate::expr::func::string::too_large;
use crate::expr::func::text;
use crate::expr::program::CallInfo;
use crate::json::{self, Json, JsonRef, Leg, Node, Path, Place, Wrap, array_of, compare};
use crate::sql_type::Collation;

pub(crate) fn extract<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let Some(bytes) = document(args, 0, "json_extract", info, ctx)? else { return Ok(Datum::Null) };
    let root = Node::new(&bytes);
    let mut paths = Vec::with_capacity(args.len() - 1);
    for index in 1..args.len() {
        match path(args, index, info)? {
            Some(path) => paths.push(path),
            None => return Ok(Datum::Null),
        }
    }
    if let [path] = &paths[..]
        && !path.is_wild()
    {
        return Ok(path.find(root).map_or(Datum::Null, |node| Datum::Bytes(node.to_document().into())));
    }
    let mut found = Vec::new();
    for path in &paths {
        found.extend(path.find_all(root, || ctx.check())?);
    }
    if is_too_much(&found, ctx) {
        return too_large("json_extract", ctx);
    }
    match found.is_empty() {
        true => Ok(Datum::Null),
        false => Ok(Datum::Bytes(array_of(&found).map_err(EvalError::Json)?.into())),
    }
}

/// JSON_CONTAINS. Elements of arrays can be many on both sides.
struct Contains<'c> {
    ctx: &'c EvalContext,
    compared: usize,
}

/// Arrays that have more elements are looked up by sorted keys.
const FEW_ELEMENTS: usize = 8;
const COMPARED_PER_CHECK: usize = 1 << 14;

impl Contains<'_> {
    /// Whether the candidate is in the target: a scalar if it is equal, an array if each of its elements is in some element,
    /// an object if each of its members is in the member of that name; what is no array is in an array if it is in an element.
    fn contains(&mut self, target: Node<'_>, candidate: Node<'_>) -> EvalResult<bool> {
        self.compared += 1;
        if self.compared.is_multiple_of(COMPARED_PER_CHECK) {
            self.ctx.check()?;
        }
        match (target.view(), candidate.view()) {
            (JsonRef::Object(target), JsonRef::Object(candidate)) => {
                for (name, value) in candidate.iter() {
                    let Some(member) = target.get(name) else { return Ok(false) };
                    if !self.contains(member, value)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (JsonRef::Array(target), JsonRef::Array(candidate)) => {
                let is_large = target.len() > FEW_ELEMENTS && candidate.len() > FEW_ELEMENTS;
                let keys = if is_large { keys_of(target) } else { HashSet::new() };
                for value in candidate.iter() {
                    let is_found = is_large && keys.contains(&key_of(value));
                    if !is_found && !self.has(target, value)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (JsonRef::Array(target), _) => self.has(target, candidate),
            _ => Ok(compare(target, candidate).is_eq()),
        }
    }

    fn has(&mut self, target: json::Array<'_>, candidate: Node<'_>) -> EvalResult<bool> {
        for element in target.iter() {
            if self.contains(element, candidate)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn key_of(node: Node<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    json::sort_key(node, &mut key);
    key
}

fn keys_of(array: json::Array<'_>) -> HashSet<Vec<u8>> {
    array.iter().map(key_of).collect()
}

pub(crate) fn contained<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let Some(target) = document(args, 0, "json_contains", info, ctx)? else { return Ok(Datum::Null) };
    let Some(candidate) = document(args, 1, "json_contains", info, ctx)? else { return Ok(Datum::Null) };
    let mut node = Some(Node::new(&target));
    if args.len() == 3 {
        let Some(path) = single_path(args, 2, info)? else { return Ok(Datum::Null) };
        node = node.and_then(|root| path.find(root));
    }
    let Some(node) = node else { return Ok(Datum::Null) };
    let contained = Contains { ctx, compared: 0 }.contains(node, Node::new(&candidate))?;
    Ok(Datum::Int(contained.into()))
}

pub(crate) fn contains_path<'a>(
    args: Args<'_, 'a>,
    info: &CallInfo,
    ctx: &EvalContext,
) -> EvalResult<Datum<'a>> {
    let Some(bytes) = document(args, 0, "json_contains_path", info, ctx)? else { return Ok(Datum::Null) };
    if args[1].is_null() {
        return Ok(Datum::Null);
    }
    let one = is_one(&args[1], "json_contains_path")?;
    for index in 2..args.len() {
        let Some(path) = path(args, index, info)? else { return Ok(Datum::Null) };
        if path.exists(Node::new(&bytes), || ctx.check())? == one {
            return Ok(Datum::Int(one.into()));
        }
    }
    Ok(Datum::Int((!one).into()))
}

pub(crate) fn overlaps<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let Some(left) = document(args, 0, "json_overlaps", info, ctx)? else { return Ok(Datum::Null) };
    let Some(right) = document(args, 1, "json_overlaps", info, ctx)? else { return Ok(Datum::Null) };
    let (left, right) = (Node::new(&left), Node::new(&right));
    let has = |array: json::Array<'_>, value: Node<'_>| array.iter().any(|e| compare(e, value).is_eq());
    let overlap = match (left.view(), right.view()) {
        (JsonRef::Object(left), JsonRef::Object(right)) => left
            .iter()
            .any(|(name, value)| right.get(name).is_some_and(|other| compare(value, other).is_eq())),
        (JsonRef::Array(left), JsonRef::Array(right)) => overlap(left, right),
        (JsonRef::Array(array), _) => has(array, right),
        (_, JsonRef::Array(array)) => has(array, left),
        _ => compare(left, right).is_eq(),
    };
    Ok(Datum::Int(overlap.into()))
}

/// Whether arrays have an element in common.
fn overlap(left: json::Array<'_>, right: json::Array<'_>) -> bool {
    let keys = keys_of(left);
    right.iter().any(|node| keys.contains(&key_of(node)))
}

pub(crate) fn member_of<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    if args[0].is_null() {
        return Ok(Datum::Null);
    }
    let Some(array) = document(args, 1, "member of", info, ctx)? else { return Ok(Datum::Null) };
    let (value, array) = (Node::new(text::bytes(&args[0])), Node::new(&array));
    let found = match array.view() {
        JsonRef::Array(array) => array.iter().any(|element| compare(element, value).is_eq()),
        _ => compare(array, value).is_eq(),
    };
    Ok(Datum::Int(found.into()))
}

/// Looks for strings that are LIKE a pattern.
struct Search<'p> {
    pattern: &'p LikePattern,
    one: bool,
    ctx: &'p EvalContext,
    visited: usize,
    at: Path,
    seen: HashSet<Place>,
    found: Vec<String>,
    found_bytes: u64,
}

impl Search<'_> {
    /// Visits a value and all within it; strings count where a path leads to them, or to what they are in.
    fn visit(&mut self, node: Node<'_>, starts: Option<&HashSet<Place>>) -> EvalResult<()> {
        if self.one && !self.found.is_empty() || self.found_bytes > self.ctx.max_allowed_packet {
            return Ok(());
        }
        self.visited += 1;
        if self.visited.is_multiple_of(COMPARED_PER_CHECK) {
            self.ctx.check()?;
        }
        let starts = starts.filter(|starts| !starts.contains(&node.place()));
        match node.view() {
            JsonRef::String(text)
                if starts.is_none() && self.pattern.matches(text) && self.seen.insert(node.place()) =>
            {
                let at = self.at.to_string();
                self.found_bytes += at.len() as u64;
                self.found.push(at);
            }
            JsonRef::Array(array) => {
                for (i, element) in array.iter().enumerate() {
                    let cell = Leg::Cell(json::Index { at: i as u32, from_end: false });
                    self.below(cell, element, starts)?;
                }
            }
            JsonRef::Object(object) => {
                for (name, value) in object.iter() {
                    self.below(Leg::Member(name.to_owned()), value, starts)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn below(&mut self, leg: Leg, node: Node<'_>, starts: Option<&HashSet<Place>>) -> EvalResult<()> {
        self.at.legs.push(leg);
        let outcome = self.visit(node, starts);
        self.at.legs.pop();
        outcome
    }
}

pub(crate) fn search<'a>(args: Args<'_, 'a>, info: &CallInfo, ctx: &EvalContext) -> EvalResult<Datum<'a>> {
    let Some(bytes) = document(args, 0, "json_search", info, ctx)? else { return Ok(Datum::Null) };
    if args[1].is_null() {
        return Ok(Datum::Null);
    }
    let one = is_one(&args[1], "json_search")?;
    let escape = match args.get(3) {
        None | Some(Datum::Null) => '\\',
        Some(escape) => {
            let mut chars = text::chars(escape).chars();
            match (chars.next(), chars.next()) {
                (None, _) => '\\',
                (Some(c), None) => c,
                _ => return Err(EvalError::WrongArguments("ESCAPE")),
            }
        }
    };
    if args[2].is_null() {
        return Ok(Datum::Null);
    }
    let pattern = LikePattern::new(text::chars(&args[2]), Some(escape), Collation::UTF8MB4_BIN);
    let at = Path { legs: Vec::new() };
    let mut search = Search {
        pattern: &pattern,
        one,
        ctx,
        visited: 0,
        at,
        seen: HashSet::new(),
        found: Vec::new(),
        found_bytes: 0,
    };
    let root = Node::new(&bytes);
    if args.len() < 5 {
        search.visit(root, None)?;
    }
    for index in 4..args.len() {
        let Some(path) = path(args, index, info)? else { return Ok(Datum::Null) };
        let starts = path.seek(root, Wrap::Nothing, || ctx.check())?;
        search.visit(root, Some(&starts.iter().map(Node::place).collect()))?;
    }
    // Each place is shown with all that it is in, however long the names there are.
    if search.found_bytes > ctx.max_allowed_packet {
        return too_large("json_search", ctx);
    }
    let mut found: Vec<_> = search.found.into_iter().map(Json::String).collect();
    match found.len() {
        0 => Ok(Datum::Null),
        1 => encoded(&found.remove(0)),
        _ => encoded(&Json::Array(found)),
    }
}
