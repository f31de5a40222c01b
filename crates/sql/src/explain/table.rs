//! FORMAT=TRADITIONAL: a row for each table that is read, in the order in which they are.

use super::{Access, Block, Note, Step};

/// Columns that may be NULL are options.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    pub id: Option<u64>,
    pub select_type: &'static str,
    pub table: Option<String>,
    pub kind: Option<&'static str>,
    pub possible_keys: Option<String>,
    pub key: Option<String>,
    pub key_len: Option<String>,
    pub refs: Option<String>,
    pub rows: Option<u64>,
    pub filtered: Option<f64>,
    pub extra: Option<String>,
}

pub fn rows(step: &Step) -> Vec<Row> {
    let mut table = Table { rows: Vec::new(), blocks: 1 };
    let first = match step.block {
        Some(block) => block.name(),
        None if has_blocks(step) => "PRIMARY",
        None => "SIMPLE",
    };
    table.block(step, 1, first);
    table.rows
}

fn has_blocks(step: &Step) -> bool {
    step.inputs.iter().any(|input| input.block.is_some() || has_blocks(input))
}

struct Table {
    rows: Vec<Row>,
    /// How many there are so far.
    blocks: u64,
}

impl Table {
    /// The rows of a block, then those of the blocks within it.
    fn block(&mut self, step: &Step, id: u64, select_type: &'static str) {
        let (mut notes, mut within) = (Vec::new(), Vec::new());
        let first = self.rows.len();
        self.tables(step, true, id, select_type, &mut notes, &mut within);
        notes.sort_unstable();
        if self.rows.len() == first {
            let extra = Some("No tables used".to_owned());
            self.rows.push(Row { id: Some(id), select_type, extra, ..Row::default() });
        } else if !notes.is_empty() {
            let extra = &mut self.rows[first].extra;
            let notes = notes.iter().map(|note: &Note| note.text());
            *extra =
                Some(extra.take().iter().map(String::as_str).chain(notes).collect::<Vec<_>>().join("; "));
        }
        let mut united = vec![id];
        for (block, kind) in within {
            self.blocks += 1;
            let id = self.blocks;
            if kind == Block::Union {
                united.push(id);
            }
            self.block(block, id, kind.name());
        }
        if united.len() > 1 {
            let of = united.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
            let table = Some(format!("<union{of}>"));
            let (kind, extra) = (Some("ALL"), Some(Note::Temporary.text().to_owned()));
            self.rows.push(Row { select_type: "UNION RESULT", table, kind, extra, ..Row::default() });
        }
    }

    fn tables<'s>(
        &mut self,
        step: &'s Step,
        is_first: bool,
        id: u64,
        select_type: &'static str,
        notes: &mut Vec<Note>,
        within: &mut Vec<(&'s Step, Block)>,
    ) {
        if let Some(block) = step.block.filter(|_| !is_first) {
            return within.push((step, block));
        }
        for note in &step.notes {
            if !notes.contains(note) {
                notes.push(*note);
            }
        }
        if let Some(access) = &step.access {
            self.rows.push(row(access, id, select_type));
        }
        for input in &step.inputs {
            self.tables(input, false, id, select_type, notes, within);
        }
    }
}

fn row(access: &Access, id: u64, select_type: &'static str) -> Row {
    let list = |names: &[String]| (!names.is_empty()).then(|| names.join(","));
    let mut extra: Vec<_> = access.condition.iter().map(|_| "Using where").collect();
    extra.extend(access.notes.iter().map(|note| note.text()));
    Row {
        id: Some(id),
        select_type,
        table: Some(access.table.clone()),
        kind: Some(access.kind.name()),
        possible_keys: list(&access.possible_keys),
        key: access.key.clone(),
        key_len: access.key_len.map(|len| len.to_string()),
        refs: list(&access.refs),
        rows: Some(access.rows.max(1.0) as u64),
        filtered: Some(access.filtered.clamp(0.0, 100.0)),
        extra: (!extra.is_empty()).then(|| extra.join("; ")),
    }
}
