//! JSON Schema, draft 4, as MySQL has it: references within the schema alone, no formats.
//! MySQL 8.4 Reference Manual, 14.17.7 "JSON Schema Validation Functions".

use regex::RegexBuilder;

use crate::json::binary::{JsonRef, Node, Object};
use crate::json::order;

/// What a document has that its schema does not allow. Locations are JSON pointers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub document: String,
    pub schema: String,
    pub keyword: &'static str,
}

/// A schema that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaError {
    /// `$ref` to another document.
    RemoteReference,
    /// References that lead to themselves, or too far.
    TooDeep,
    /// A regular expression that cannot be had.
    Pattern(String),
    /// Whoever asked wants no answer any more.
    Stopped,
}

/// Schemas that are applied within one another: a reference can lead back to where it stands.
const MAX_NESTED: usize = 300;
/// Schemas that are applied between two questions whether to stop: a few of them can ask for any number (`anyOf` of references).
const BETWEEN_QUESTIONS: usize = 1 << 10;
/// A regular expression may take so much memory once it is compiled.
const PATTERN_BYTES: usize = 1 << 20;
/// Of a longer one no program fits, and its tree alone would take many times as much.
const LONGEST_PATTERN: usize = 64 << 10;
/// As many bytes of one that cannot be had are shown.
const SHOWN_PATTERN: usize = 200;

/// Checks a document by a schema; `None` if it is valid. `stopped` is asked from time to time.
pub fn validate(
    schema: Node<'_>,
    document: Node<'_>,
    stopped: &dyn Fn() -> bool,
) -> Result<Option<Violation>, SchemaError> {
    let mut validator = Validator { root: schema, nested: 0, applied: 0, document: "#".to_owned(), stopped };
    validator.check(schema, "#", document)
}

type Outcome = Result<Option<Violation>, SchemaError>;

struct Validator<'a> {
    root: Node<'a>,
    nested: usize,
    applied: usize,
    stopped: &'a dyn Fn() -> bool,
    /// Where in the document the check is.
    document: String,
}

fn number(node: Node<'_>) -> bool {
    matches!(node.view(), JsonRef::Int(_) | JsonRef::UInt(_) | JsonRef::Double(_) | JsonRef::Decimal(_))
}

fn count(node: Option<Node<'_>>) -> Option<usize> {
    match node?.view() {
        JsonRef::Int(v) => usize::try_from(v).ok(),
        JsonRef::UInt(v) => usize::try_from(v).ok(),
        _ => None,
    }
}

fn double(node: Node<'_>) -> Option<f64> {
    node.to_json().number().filter(|_| number(node)).map(|v| crate::compare::double(&v))
}

fn is_true(node: Option<Node<'_>>) -> bool {
    matches!(node.map(|node| node.view()), Some(JsonRef::Bool(true)))
}

fn is_of_type(node: Node<'_>, name: &str) -> bool {
    match node.view() {
        JsonRef::Null => name == "null",
        JsonRef::Bool(_) => name == "boolean",
        JsonRef::Int(_) | JsonRef::UInt(_) => name == "integer" || name == "number",
        JsonRef::Double(_) | JsonRef::Decimal(_) => name == "number",
        JsonRef::Array(_) => name == "array",
        JsonRef::Object(_) => name == "object",
        _ => name == "string",
    }
}

fn matches_pattern(pattern: &str, text: &str) -> Result<bool, SchemaError> {
    let regex = match pattern.len() {
        ..=LONGEST_PATTERN => RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).build().ok(),
        _ => None,
    };
    match regex {
        Some(regex) => Ok(regex.is_match(text)),
        None => Err(SchemaError::Pattern(pattern[..pattern.floor_char_boundary(SHOWN_PATTERN)].to_owned())),
    }
}

/// A name as a step of a JSON pointer.
fn step(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

impl<'a> Validator<'a> {
    fn violation(&self, schema: &str, keyword: &'static str) -> Outcome {
        Ok(Some(Violation { document: self.document.clone(), schema: schema.to_owned(), keyword }))
    }

    fn check(&mut self, schema: Node<'a>, at: &str, node: Node<'_>) -> Outcome {
        self.nested += 1;
        self.applied += 1;
        if self.applied.is_multiple_of(BETWEEN_QUESTIONS) && (self.stopped)() {
            return Err(SchemaError::Stopped);
        }
        if self.nested > MAX_NESTED {
            return Err(SchemaError::TooDeep);
        }
        let outcome = self.check_object(schema, at, node);
        self.nested -= 1;
        outcome
    }

    fn check_object(&mut self, schema: Node<'a>, at: &str, node: Node<'_>) -> Outcome {
        let JsonRef::Object(schema) = schema.view() else { return Ok(None) };
        if let Some(JsonRef::String(reference)) = schema.get("$ref").map(|node| node.view()) {
            return match self.resolve(reference)? {
                Some(target) => self.check(target, reference, node),
                None => Ok(None),
            };
        }
        let named = match schema.get("type").map(|node| node.view()) {
            Some(JsonRef::String(name)) => is_of_type(node, name),
            Some(JsonRef::Array(names)) => names
                .iter()
                .any(|name| matches!(name.view(), JsonRef::String(name) if is_of_type(node, name))),
            _ => true,
        };
        if !named {
            return self.violation(at, "type");
        }
        let violation = match node.view() {
            JsonRef::Object(members) => self.check_members(schema, at, members)?,
            JsonRef::Array(elements) => self.check_elements(schema, at, elements)?,
            JsonRef::String(text) => self.check_string(schema, at, text)?,
            _ if number(node) => self.check_number(schema, at, node)?,
            _ => None,
        };
        match violation {
            None => self.check_combined(schema, at, node),
            some => Ok(some),
        }
    }

    /// What a reference within the schema leads to.
    fn resolve(&self, reference: &str) -> Result<Option<Node<'a>>, SchemaError> {
        let Some(pointer) = reference.strip_prefix('#') else { return Err(SchemaError::RemoteReference) };
        let mut node = self.root;
        for part in pointer.split('/').skip(1) {
            let name = part.replace("~1", "/").replace("~0", "~");
            let next = match node.view() {
                JsonRef::Object(object) => object.get(&name),
                JsonRef::Array(array) => name.parse().ok().and_then(|at| array.get(at)),
                _ => None,
            };
            match next {
                Some(next) => node = next,
                None => return Ok(None),
            }
        }
        Ok(Some(node))
    }

    fn check_combined(&mut self, schema: Object<'a>, at: &str, node: Node<'_>) -> Outcome {
        if let Some(JsonRef::Array(allowed)) = schema.get("enum").map(|node| node.view())
            && !allowed.iter().any(|one| order::compare(one, node).is_eq())
        {
            return self.violation(at, "enum");
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let Some(JsonRef::Array(schemas)) = schema.get(keyword).map(|node| node.view()) else { continue };
            let mut valid = 0;
            for (i, one) in schemas.iter().enumerate() {
                valid += usize::from(self.check(one, &format!("{at}/{keyword}/{i}"), node)?.is_none());
            }
            let holds = match keyword {
                "allOf" => valid == schemas.len(),
                "anyOf" => valid > 0,
                _ => valid == 1,
            };
            if !holds {
                return self.violation(at, keyword);
            }
        }
        if let Some(not) = schema.get("not")
            && self.check(not, &format!("{at}/not"), node)?.is_none()
        {
            return self.violation(at, "not");
        }
        Ok(None)
    }

    fn check_number(&mut self, schema: Object<'a>, at: &str, node: Node<'_>) -> Outcome {
        let bound = |name: &str| schema.get(name).filter(|bound| number(*bound));
        if let Some(least) = bound("minimum") {
            let order = order::compare(node, least);
            if order.is_lt() || (order.is_eq() && is_true(schema.get("exclusiveMinimum"))) {
                return self.violation(at, "minimum");
            }
        }
        if let Some(greatest) = bound("maximum") {
            let order = order::compare(node, greatest);
            if order.is_gt() || (order.is_eq() && is_true(schema.get("exclusiveMaximum"))) {
                return self.violation(at, "maximum");
            }
        }
        let divided = bound("multipleOf").and_then(double).zip(double(node));
        if let Some((divisor, value)) = divided
            && divisor > 0.0
        {
            let quotient = value / divisor;
            if (quotient - quotient.round()).abs() > 1e-9 * quotient.abs().max(1.0) {
                return self.violation(at, "multipleOf");
            }
        }
        Ok(None)
    }

    fn check_string(&mut self, schema: Object<'a>, at: &str, text: &str) -> Outcome {
        let len = text.chars().count();
        if count(schema.get("minLength")).is_some_and(|least| len < least) {
            return self.violation(at, "minLength");
        }
        if count(schema.get("maxLength")).is_some_and(|most| len > most) {
            return self.violation(at, "maxLength");
        }
        if let Some(JsonRef::String(pattern)) = schema.get("pattern").map(|node| node.view())
            && !matches_pattern(pattern, text)?
        {
            return self.violation(at, "pattern");
        }
        Ok(None)
    }

    fn below(&mut self, name: &str, schema: Node<'a>, at: &str, node: Node<'_>) -> Outcome {
        let len = self.document.len();
        self.document.push('/');
        self.document.push_str(&step(name));
        let outcome = self.check(schema, at, node);
        self.document.truncate(len);
        outcome
    }

    fn check_elements(&mut self, schema: Object<'a>, at: &str, elements: crate::json::Array<'_>) -> Outcome {
        let items = schema.get("items");
        for (i, element) in elements.iter().enumerate() {
            let (one, place) = match items.map(|items| items.view()) {
                Some(JsonRef::Object(_)) => (items, format!("{at}/items")),
                Some(JsonRef::Array(tuple)) => match tuple.get(i) {
                    Some(one) => (Some(one), format!("{at}/items/{i}")),
                    None => match schema.get("additionalItems") {
                        Some(additional) if matches!(additional.view(), JsonRef::Bool(false)) => {
                            return self.violation(at, "items");
                        }
                        additional => (additional, format!("{at}/additionalItems")),
                    },
                },
                _ => (None, String::new()),
            };
            if let Some(one) = one
                && let Some(violation) = self.below(&i.to_string(), one, &place, element)?
            {
                return Ok(Some(violation));
            }
        }
        if count(schema.get("minItems")).is_some_and(|least| elements.len() < least) {
            return self.violation(at, "minItems");
        }
        if count(schema.get("maxItems")).is_some_and(|most| elements.len() > most) {
            return self.violation(at, "maxItems");
        }
        if is_true(schema.get("uniqueItems")) {
            let key = |node| {
                let mut key = Vec::new();
                order::sort_key(node, &mut key);
                key
            };
            let mut seen = std::collections::HashSet::new();
            if !elements.iter().all(|element| seen.insert(key(element))) {
                return self.violation(at, "uniqueItems");
            }
        }
        Ok(None)
    }

    fn check_members(&mut self, schema: Object<'a>, at: &str, members: Object<'_>) -> Outcome {
        let object = |name: &str| match schema.get(name).map(|node| node.view()) {
            Some(JsonRef::Object(object)) => Some(object),
            _ => None,
        };
        let (properties, patterns) = (object("properties"), object("patternProperties"));
        for (name, value) in members.iter() {
            let mut is_known = false;
            if let Some(one) = properties.and_then(|properties| properties.get(name)) {
                is_known = true;
                let place = format!("{at}/properties/{}", step(name));
                if let Some(violation) = self.below(name, one, &place, value)? {
                    return Ok(Some(violation));
                }
            }
            for (pattern, one) in patterns.into_iter().flat_map(Object::iter) {
                if !matches_pattern(pattern, name)? {
                    continue;
                }
                is_known = true;
                let place = format!("{at}/patternProperties/{}", step(pattern));
                if let Some(violation) = self.below(name, one, &place, value)? {
                    return Ok(Some(violation));
                }
            }
            if is_known {
                continue;
            }
            match schema.get("additionalProperties") {
                Some(additional) if matches!(additional.view(), JsonRef::Bool(false)) => {
                    return self.violation(at, "additionalProperties");
                }
                Some(additional) => {
                    let place = format!("{at}/additionalProperties");
                    if let Some(violation) = self.below(name, additional, &place, value)? {
                        return Ok(Some(violation));
                    }
                }
                None => {}
            }
        }
        let names = |list: crate::json::Array<'_>| {
            list.iter().all(|name| match name.view() {
                JsonRef::String(name) => members.get(name).is_some(),
                _ => true,
            })
        };
        if let Some(JsonRef::Array(required)) = schema.get("required").map(|node| node.view())
            && !names(required)
        {
            return self.violation(at, "required");
        }
        if count(schema.get("minProperties")).is_some_and(|least| members.len() < least) {
            return self.violation(at, "minProperties");
        }
        if count(schema.get("maxProperties")).is_some_and(|most| members.len() > most) {
            return self.violation(at, "maxProperties");
        }
        self.check_dependencies(schema, at, members)
    }

    fn check_dependencies(&mut self, schema: Object<'a>, at: &str, members: Object<'_>) -> Outcome {
        let Some(JsonRef::Object(dependencies)) = schema.get("dependencies").map(|node| node.view()) else {
            return Ok(None);
        };
        for (name, dependency) in dependencies.iter().filter(|(name, _)| members.get(name).is_some()) {
            let holds = match dependency.view() {
                JsonRef::Array(names) => names.iter().all(|name| match name.view() {
                    JsonRef::String(name) => members.get(name).is_some(),
                    _ => true,
                }),
                _ => {
                    let place = format!("{at}/dependencies/{}", step(name));
                    self.check(dependency, &place, members.node())?.is_none()
                }
            };
            if !holds {
                return self.violation(at, "dependencies");
            }
        }
        Ok(None)
    }
}
