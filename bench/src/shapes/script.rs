//! The shapes' statements (`bench/queries/shapes`) and their parameters.
//!
//! ```text
//! -- name_of_the_shape
//! SELECT * FROM orders WHERE id = :order        statements end at a `;`
//! ```
//!
//! A parameter is named after what it is drawn from, with a number where there are several, and `_text` or `_decimal` where the
//! client sends another type than the column's.

use mysql::Value;

use super::data::{self, Scale};
use crate::error::{Error, Result};
use crate::random::Random;

/// Statements that are asked one after the other, and measured together.
pub struct Shape {
    pub name: String,
    pub statements: Vec<Statement>,
    /// It changes nothing: its answers are compared.
    pub is_read: bool,
}

/// Text with parameters: a piece of text before each, and one after the last.
pub struct Statement {
    pieces: Vec<String>,
    params: Vec<String>,
}

/// The shapes of a file.
pub fn parse(text: &str, is_read: bool) -> Vec<Shape> {
    let mut shapes: Vec<(String, String)> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match (line.strip_prefix("-- "), shapes.last_mut()) {
            (Some(name), _) if is_name(name) => shapes.push((name.to_owned(), String::new())),
            (Some(_), _) | (None, None) => {}
            (None, Some((_, sql))) => {
                sql.push_str(line);
                sql.push('\n');
            }
        }
    }
    let shape = |(name, sql): (String, String)| {
        let statements = sql.split(";\n").map(|sql| Statement::of(sql.trim())).collect();
        Shape { name, statements, is_read }
    };
    shapes.into_iter().map(shape).collect()
}

fn is_name(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

impl Statement {
    fn of(sql: &str) -> Self {
        let (mut pieces, mut params) = (Vec::new(), Vec::new());
        let mut parts = sql.split(':');
        let mut piece = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|c: char| !c.is_ascii_lowercase() && !c.is_ascii_digit() && c != '_');
            let (name, rest) = part.split_at(end.unwrap_or(part.len()));
            pieces.push(std::mem::replace(&mut piece, rest.to_owned()));
            params.push(name.to_owned());
        }
        pieces.push(piece);
        Self { pieces, params }
    }

    /// With `?` for the parameters.
    pub fn prepared(&self) -> String {
        self.pieces.join("?")
    }

    /// With these values in the parameters' places.
    pub fn text(&self, values: &[Value]) -> String {
        let mut sql = self.pieces[0].clone();
        for (value, piece) in values.iter().zip(&self.pieces[1..]) {
            sql.push_str(&value.as_sql(false));
            sql.push_str(piece);
        }
        sql
    }

    pub fn values(&self, drawn: &mut Drawn) -> Result<Vec<Value>> {
        self.params.iter().map(|name| drawn.value(name)).collect()
    }
}

/// What one run of a shape has drawn: a name has one value in all its statements.
pub struct Drawn {
    random: Random,
    scale: Scale,
    values: Vec<(String, Value)>,
}

impl Drawn {
    pub fn new(scale: Scale, seed: u64) -> Self {
        Self { random: Random::new(seed), scale, values: Vec::new() }
    }

    fn value(&mut self, name: &str) -> Result<Value> {
        if let Some((_, value)) = self.values.iter().find(|(known, _)| known == name) {
            return Ok(value.clone());
        }
        let value = self.draw(name)?;
        self.values.push((name.to_owned(), value.clone()));
        Ok(value)
    }

    fn draw(&mut self, name: &str) -> Result<Value> {
        let (kind, sent_as) = match name.rsplit_once('_') {
            Some((kind, how @ ("text" | "decimal"))) => (kind, Some(how)),
            _ => (name, None),
        };
        let (scale, random) = (self.scale, &mut self.random);
        let most = match kind.trim_end_matches(|c: char| c.is_ascii_digit()) {
            "order" => scale.orders,
            "user" => scale.users(),
            "product" => scale.products(),
            "tag" => data::TAGS,
            "category" => data::CATEGORIES,
            "counter" => data::COUNTERS,
            "doc" => data::DOCS,
            "owner" => data::OWNERS,
            "job" => data::JOBS,
            "ticket" => scale.tickets(),
            "tenant" => scale.tenants(),
            "price" => return Ok(Value::from(format!("{}.05", random.uniform(0, scale.tickets() / 20)))),
            "title" => return Ok(Value::from(format!("ticket {}", random.uniform(0, scale.tickets() / 20)))),
            "number" => {
                let number = data::ticket_number(random.uniform(1, scale.tickets()));
                return Ok(if sent_as.is_some() {
                    Value::from(number.to_string())
                } else {
                    Value::from(number)
                });
            }
            "state" => data::STATES - 1,
            "day" => return Ok(Value::from(data::day(random))),
            "country" => return Ok(Value::from(data::country(random))),
            "email" => return Ok(Value::from(data::email(random.uniform(1, scale.users())))),
            "email_start" => return Ok(Value::from(format!("user{}", random.uniform(10, 99)))),
            "token" => return Ok(Value::from(format!("token{}", random.uniform(1, data::JOBS)))),
            _ => return Err(Error::Setup(format!("nothing is known to draw :{name} from"))),
        };
        let number = random.uniform(1, most);
        Ok(match sent_as {
            Some("text") => Value::from(number.to_string()),
            Some(_) => Value::Double(number as f64),
            None => Value::from(number),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_carry_their_parameters() {
        let shapes =
            parse("-- About.\n\n-- one\nSELECT :user,\n :user_text;\nSELECT 2\n-- two\nSELECT 3\n", true);
        assert_eq!(
            shapes.iter().map(|shape| (&*shape.name, shape.statements.len())).collect::<Vec<_>>(),
            [("one", 2), ("two", 1)]
        );
        let statement = &shapes[0].statements[0];
        assert_eq!(statement.prepared(), "SELECT ?,\n ?");
        assert_eq!(statement.text(&[Value::Int(1), Value::from("2")]), "SELECT 1,\n '2'");
    }

    #[test]
    fn all_shapes_have_names_and_parameters_of_their_own() {
        let shapes = super::super::all();
        let mut names: Vec<_> = shapes.iter().map(|shape| &shape.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), shapes.len());
        assert!(names.len() >= 150, "{} shapes", names.len());
        for statement in shapes.iter().flat_map(|shape| &shape.statements) {
            let mut drawn = Drawn::new(Scale { orders: 1_000 }, 1);
            statement.values(&mut drawn).expect("known parameters");
        }
    }
}
