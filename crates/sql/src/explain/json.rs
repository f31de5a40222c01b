//! FORMAT=JSON: the steps as nested objects, in the manner of MySQL's second JSON format (`explain_json_format_version` 2).

use std::fmt::Write;

use super::{Access, Measured, Step};

pub fn json(step: &Step) -> String {
    let mut out = String::from("{\n  \"query_plan\": ");
    write_step(&mut out, step, 1);
    out.push_str(",\n  \"json_schema_version\": \"2.0\"\n}");
    out
}

fn write_step(out: &mut String, step: &Step, depth: usize) {
    let mut object = Object { out, depth: depth + 1, is_empty: true };
    object.out.push('{');
    object.text("operation", &step.what);
    if let Some(block) = step.block {
        object.text("select_type", block.name());
    }
    if let Some(access) = &step.access {
        write_access(&mut object, access);
    }
    if let Some(estimate) = step.estimate {
        object.number("estimated_rows", estimate.rows);
        object.number("estimated_total_cost", estimate.cost);
        object.text("estimated_from", estimate.from);
    }
    if let Some(Measured { rows, loops, first_ms, all_ms, memory }) = step.actual {
        object.number("actual_rows", rows);
        object.number("actual_loops", loops as f64);
        object.number("actual_first_row_ms", first_ms);
        object.number("actual_last_row_ms", all_ms);
        if let Some(memory) = memory {
            object.number("actual_memory_bytes", memory as f64);
        }
    }
    if !step.inputs.is_empty() {
        object.key("inputs");
        object.out.push('[');
        for (at, input) in step.inputs.iter().enumerate() {
            object.out.push_str(if at == 0 { "" } else { "," });
            object.line(1);
            write_step(object.out, input, object.depth + 1);
        }
        object.line(0);
        object.out.push(']');
    }
    object.end();
}

fn write_access(object: &mut Object<'_>, access: &Access) {
    object.text("table_name", &access.table);
    object.text("access_type", access.kind.name());
    object.texts("possible_keys", &access.possible_keys);
    if let Some(key) = &access.key {
        object.text("index_name", key);
    }
    if let Some(len) = access.key_len {
        object.text("key_length", &len.to_string());
    }
    object.texts("ref", &access.refs);
    object.number("rows_examined_per_scan", access.rows);
    object.text("filtered", &format!("{:.2}", access.filtered));
    if let Some(condition) = &access.condition {
        object.text("attached_condition", condition);
    }
}

struct Object<'o> {
    out: &'o mut String,
    depth: usize,
    is_empty: bool,
}

impl Object<'_> {
    fn line(&mut self, deeper: usize) {
        let _ = write!(self.out, "\n{:indent$}", "", indent = (self.depth + deeper) * 2);
    }

    fn key(&mut self, key: &str) {
        self.out.push_str(if self.is_empty { "" } else { "," });
        self.is_empty = false;
        self.line(0);
        let _ = write!(self.out, "\"{key}\": ");
    }

    fn text(&mut self, key: &str, value: &str) {
        self.key(key);
        write_text(self.out, value);
    }

    fn texts(&mut self, key: &str, values: &[String]) {
        if values.is_empty() {
            return;
        }
        self.key(key);
        self.out.push('[');
        for (at, value) in values.iter().enumerate() {
            self.out.push_str(if at == 0 { "" } else { ", " });
            write_text(self.out, value);
        }
        self.out.push(']');
    }

    fn number(&mut self, key: &str, value: f64) {
        self.key(key);
        let _ = match value.fract() {
            0.0 => write!(self.out, "{value:.0}"),
            _ => write!(self.out, "{value:.4}"),
        };
    }

    fn end(&mut self) {
        self.depth -= 1;
        self.line(0);
        self.out.push('}');
    }
}

fn write_text(out: &mut String, value: &str) {
    out.push('"');
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}
