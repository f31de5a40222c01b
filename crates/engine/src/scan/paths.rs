//! Values at paths into documents, as columns and as conditions of a scan.
//!
//! A block has columns of some paths beside the documents (`shred.rs`); of these, what is asked for is made without a look at
//! the documents, but for rows that are marked. Other blocks and hot rows have the documents alone. Whichever it is, the outcome
//! is the same: what `types::json::shred` says of a value.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::UInt8Type;
use avocet_storage::cold::{
    Bitmap, Block, BlockMeta, ColdType, ColdValue, ColumnMeta, ColumnPredicate, CompareOp as ColdOp,
    EncodedColumn, Selection,
};
use avocet_types::expr::CompareOp;
use avocet_types::json::shred::{Form, PathTest, Target, find, mark};
use avocet_types::json::{JsonRef, Node};
use avocet_types::{ColumnBuilder, Datum, RowRef};

use crate::error::Result;

/// What a scan gives of a path.
#[derive(Clone, Debug)]
pub struct PathColumn {
    /// The position of the documents.
    pub column: usize,
    pub names: Arc<[Box<str>]>,
    pub form: Form,
}

/// Which rows a scan gives, by a path.
#[derive(Clone, Debug)]
pub struct PathCondition {
    /// The position of the documents.
    pub column: usize,
    pub names: Arc<[Box<str>]>,
    pub test: PathTest,
}

/// Rows whose conditions are tested at once.
const TESTED_AT_ONCE: usize = 8192;
/// Integers up to here are doubles, too.
const EXACT_IN_DOUBLE: i64 = 1 << 53;

/// The rows of a block that a batch is made of.
#[derive(Clone, Copy)]
pub(super) enum Chosen<'r> {
    Range(usize, usize),
    Rows(&'r [u32]),
}

impl Chosen<'_> {
    fn len(self) -> usize {
        match self {
            Self::Range(_, len) => len,
            Self::Rows(rows) => rows.len(),
        }
    }

    fn row(self, at: usize) -> u32 {
        match self {
            Self::Range(start, _) => (start + at) as u32,
            Self::Rows(rows) => rows[at],
        }
    }

    fn decode(self, column: &EncodedColumn) -> Result<ArrayRef> {
        Ok(match self {
            Self::Range(start, len) => column.decode_range(start, len)?,
            Self::Rows(rows) => column.decode_selected(Selection::Rows(rows))?,
        })
    }
}

/// Decodes the chunks of a batch, each once.
pub(super) struct Decoder<'r> {
    chosen: Chosen<'r>,
    done: Vec<(usize, ArrayRef)>,
}

impl<'r> Decoder<'r> {
    pub fn new(chosen: Chosen<'r>) -> Self {
        Self { chosen, done: Vec::new() }
    }

    fn get(&mut self, chunk: usize, column: &EncodedColumn) -> Result<ArrayRef> {
        if let Some((_, array)) = self.done.iter().find(|(done, _)| *done == chunk) {
            return Ok(array.clone());
        }
        let array = self.chosen.decode(column)?;
        self.done.push((chunk, array.clone()));
        Ok(array)
    }
}

/// Where a column of a batch comes from: chunks of a block by their numbers.
pub(super) enum Source {
    Column(usize, Arc<EncodedColumn>),
    Path(Form, PathSource),
}

/// A path's column in a block, or the documents where there is none.
pub(super) struct PathSource {
    names: Arc<[Box<str>]>,
    /// Absent if no row needs it.
    documents: Option<(usize, Arc<EncodedColumn>)>,
    values: Option<(usize, Arc<EncodedColumn>)>,
    marks: Option<(usize, Arc<EncodedColumn>)>,
}

impl Source {
    pub fn decode(&self, decoder: &mut Decoder<'_>) -> Result<ArrayRef> {
        match self {
            Self::Column(number, column) => decoder.get(*number, column),
            Self::Path(form, path) => path.decode(*form, decoder),
        }
    }
}

/// The values of a batch's rows at a path.
enum Values {
    Documents(ArrayRef),
    Shredded { values: ArrayRef, marks: Option<ArrayRef>, others: Option<ArrayRef> },
}

impl PathSource {
    fn open(block: &Block, column: usize, names: &Arc<[Box<str>]>) -> Result<Self> {
        let meta = block.meta();
        let load = |chunk: usize| -> Result<_> { Ok(Some((chunk, block.column(chunk)?))) };
        let names = names.clone();
        let Some(path) = path_of(meta, column, &names) else {
            return Ok(Self { names, documents: load(column)?, values: None, marks: None });
        };
        let chunk = meta.path_chunk(path);
        let marks = meta.paths[path].marks.as_ref();
        let has_others = marks.is_some_and(|marks| {
            let most = marks.bounds.as_ref().and_then(|bounds| bounds.max.as_integer()?.to_i128());
            most.is_none_or(|most| most >= i128::from(mark::OTHER))
        });
        Ok(Self {
            names,
            documents: if has_others { load(column)? } else { None },
            values: load(chunk)?,
            marks: if marks.is_some() { load(chunk + 1)? } else { None },
        })
    }

    fn values(&self, decoder: &mut Decoder<'_>) -> Result<Values> {
        let Some((chunk, values)) = &self.values else {
            let Some((chunk, documents)) = &self.documents else {
                unreachable!("a path has a column or documents");
            };
            return Ok(Values::Documents(decoder.get(*chunk, documents)?));
        };
        let values = decoder.get(*chunk, values)?;
        let marks = match &self.marks {
            None => None,
            Some((chunk, marks)) => Some(decoder.get(*chunk, marks)?),
        };
        let others = match (&marks, &self.documents) {
            (Some(marks), Some((_, documents))) => {
                let marks = marks.as_primitive::<UInt8Type>().values();
                let others = marks.iter().enumerate().filter(|(_, mark)| **mark == mark::OTHER);
                let rows: Vec<u32> = others.map(|(at, _)| decoder.chosen.row(at)).collect();
                Some(documents.decode_selected(Selection::Rows(&rows))?)
            }
            _ => None,
        };
        Ok(Values::Shredded { values, marks, others })
    }

    fn decode(&self, form: Form, decoder: &mut Decoder<'_>) -> Result<ArrayRef> {
        if let (Some((_, values)), None) = (&self.values, &self.marks)
            && form.is_nothing_of(&values.ty().to_arrow())
        {
            return Ok(form.nothing(decoder.chosen.len()));
        }
        Ok(match self.values(decoder)? {
            Values::Documents(documents) => form.of_documents(&documents, &self.names),
            Values::Shredded { values, marks, others } => {
                form.of_values(&values, marks.as_ref(), others.as_ref(), &self.names)
            }
        })
    }
}

/// The number of a path among those that a block has columns of.
fn path_of(meta: &BlockMeta, column: usize, names: &[Box<str>]) -> Option<usize> {
    meta.paths.iter().position(|path| usize::from(path.column) == column && *path.names == *names)
}

/// What a row's document has at a path.
fn value_of<'r>(row: &RowRef<'r>, column: usize, names: &[Box<str>]) -> Option<Node<'r>> {
    if row.is_null(column) {
        return None;
    }
    find(Node::new(row.var_bytes(column)), names)
}

impl PathColumn {
    pub(super) fn source(&self, block: &Block) -> Result<Source> {
        Ok(Source::Path(self.form, PathSource::open(block, self.column, &self.names)?))
    }

    /// Of a hot row.
    pub(super) fn append(&self, row: &RowRef<'_>, to: &mut ColumnBuilder) {
        self.form.append(value_of(row, self.column, &self.names), to);
    }
}

impl PathCondition {
    /// Whether a hot row is wanted.
    pub(super) fn allows(&self, row: &RowRef<'_>) -> bool {
        self.test.allows(value_of(row, self.column, &self.names))
    }

    /// The predicate on the path's column that says the same, and the number of the column's chunk.
    fn predicate(&self, meta: &BlockMeta) -> Option<(usize, ColumnPredicate)> {
        let path = path_of(meta, self.column, &self.names)?;
        let column = &meta.paths[path];
        if column.marks.is_some() {
            return None;
        }
        Some((meta.path_chunk(path), predicate_of(&self.test, &column.values)?))
    }

    /// Whether some row of a block may be wanted, by what is known of the block.
    pub(super) fn may_match(&self, meta: &BlockMeta) -> bool {
        self.predicate(meta).is_none_or(|(chunk, predicate)| meta.may_match(chunk, &predicate))
    }

    /// Removes the rows of a block that are not wanted.
    pub(super) fn filter(&self, block: &Block, selected: &mut Bitmap) -> Result<()> {
        if let Some((chunk, predicate)) = self.predicate(block.meta()) {
            return Ok(block.column(chunk)?.filter(&predicate, selected)?);
        }
        let source = PathSource::open(block, self.column, &self.names)?;
        let rows = selected.to_rows();
        for rows in rows.chunks(TESTED_AT_ONCE) {
            let drop = &mut |at: usize| selected.clear(rows[at] as usize);
            match source.values(&mut Decoder::new(Chosen::Rows(rows)))? {
                Values::Documents(documents) => self.test.of_documents(&documents, &self.names, drop),
                Values::Shredded { values, marks, others } => {
                    self.test.of_values(&values, marks.as_ref(), others.as_ref(), &self.names, drop);
                }
            }
        }
        Ok(())
    }
}

/// A test on a column of values, none of which is marked, as a predicate on the encoded column; `None` if there is none.
fn predicate_of(test: &PathTest, values: &ColumnMeta) -> Option<ColumnPredicate> {
    let compare = |op: CompareOp, value| Some(ColumnPredicate::Compare(cold_op(op)?, value));
    let bytes = |text: &str| ColdValue::Bytes(text.as_bytes().to_vec().into());
    match (test, values.ty) {
        (PathTest::Value(Target::Int, op, Datum::Int(c)), ColdType::Int64) => {
            compare(*op, ColdValue::Int(*c))
        }
        (PathTest::Value(Target::Double, op, Datum::Double(c)), ty) => beside_double(*op, *c, ty, values),
        // None of the values ends with a space, so padding makes no difference to equality.
        (PathTest::Text(op @ (CompareOp::Eq | CompareOp::Ne), text), ColdType::Utf8) => {
            compare(*op, bytes(text.trim_end_matches(' ')))
        }
        (PathTest::Document(op, document), ty) => match (Node::new(document).view(), ty) {
            (JsonRef::Int(c), ColdType::Int64) => compare(*op, ColdValue::Int(c)),
            (JsonRef::Int(c), ColdType::Float64) if is_exact(c) => compare(*op, ColdValue::F64(c as f64)),
            (JsonRef::Double(c), ty) => beside_double(*op, c, ty, values),
            (JsonRef::String(text), ColdType::Utf8) => compare(*op, bytes(text)),
            _ => None,
        },
        _ => None,
    }
}

/// A comparison of numbers with a double.
fn beside_double(op: CompareOp, c: f64, ty: ColdType, values: &ColumnMeta) -> Option<ColumnPredicate> {
    let compare = |op: CompareOp, value| Some(ColumnPredicate::Compare(cold_op(op)?, value));
    match ty {
        ColdType::Float64 if !c.is_nan() => compare(op, ColdValue::F64(c)),
        ColdType::Int64 if c.fract() == 0.0 && are_exact(values) && is_exact(c as i64) => {
            compare(op, ColdValue::Int(c as i64))
        }
        // Between two integers.
        ColdType::Int64 if c.is_finite() && c.fract() != 0.0 && are_exact(values) => match op {
            CompareOp::Lt | CompareOp::Le => compare(CompareOp::Le, ColdValue::Int(c.floor() as i64)),
            CompareOp::Gt | CompareOp::Ge => compare(CompareOp::Ge, ColdValue::Int(c.ceil() as i64)),
            CompareOp::Eq | CompareOp::Ne | CompareOp::NullSafeEq => None,
        },
        _ => None,
    }
}

fn is_exact(v: i64) -> bool {
    (-EXACT_IN_DOUBLE..=EXACT_IN_DOUBLE).contains(&v)
}

/// Whether all integers of a column are doubles, too.
fn are_exact(values: &ColumnMeta) -> bool {
    let is_exact = |bound: &ColdValue<'_>| matches!(bound, ColdValue::Int(v) if is_exact(*v));
    values.bounds.as_ref().is_some_and(|bounds| is_exact(&bounds.min) && is_exact(&bounds.max))
}

fn cold_op(op: CompareOp) -> Option<ColdOp> {
    Some(match op {
        CompareOp::Eq => ColdOp::Eq,
        CompareOp::Ne => ColdOp::Ne,
        CompareOp::Lt => ColdOp::Lt,
        CompareOp::Le => ColdOp::Le,
        CompareOp::Gt => ColdOp::Gt,
        CompareOp::Ge => ColdOp::Ge,
        CompareOp::NullSafeEq => return None,
    })
}
