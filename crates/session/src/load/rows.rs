//! LOAD DATA's rows: from fields, variables and assignments to values of the table's columns.

use std::sync::Arc;

use avocet_channel::blocking::blocking;
use avocet_engine::TableHandle;
use avocet_point::{RowCheck, implicit_default, is_of_row, now, rules_of, unstated_default};
use avocet_sql::bind::{CatalogView, Clause, TableBinder, TableStatistics};
use avocet_sql::parse::ast::TypeSpec;
use avocet_sql::parse::ast::{self, VariableScope};
use avocet_sql::parse::statement::{LoadData, LoadTarget, OnDuplicateKey};
use avocet_types::collation::Charset;
use avocet_types::convert::{StoreError, store_column};
use avocet_types::error::{ErrorCode, SqlError, store_error};
use avocet_types::expr::{Expr as BoundExpr, RowProgram, RowSource, Typer};
use avocet_types::schema::{ColumnDef, DefaultValue};
use avocet_types::{Collation, Datum, SqlType, TableDef, Value};

use super::blocks::Blocks;
use super::reader::Row;
use super::{charset_of, column_of};
use crate::bulk::string_bytes;
use crate::insert::compile_over;
use crate::insert::{Counts, Given, Inserter, OnDuplicate};
use crate::run::{Done, Text};
use crate::state::{Level, Session};
use crate::store::generates;

/// The first rows are stored as they come: most files are small, and their warnings are then in MySQL's order.
const ROWS_BEFORE_BLOCKS: u64 = 10_000;
const BYTES_BEFORE_BLOCKS: u64 = 4 << 20;

/// A LOAD DATA that is being run.
pub(super) struct Loading<'l> {
    inserter: Inserter<'l>,
    charset: Charset,
    /// What texts of the file are, unless their column says otherwise.
    text_type: SqlType,
    fields: Vec<Target>,
    /// The names of the variables that fields go to, in lower case, and their values in the row that is being stored.
    variables: Vec<String>,
    values: Vec<Value>,
    assignments: Vec<Assigned<'l>>,
    /// What columns get that no field and no assignment gives a value.
    defaults: Vec<Value>,
    /// By column: whether a field or an assignment gives it a value.
    is_given: Vec<bool>,
    /// Columns whose type has no default either, and that are never NULL.
    mandatory: Vec<usize>,
    /// The row that is being stored.
    row: Vec<Value>,
    /// What does not fit is warned of, and rows whose keys are there are passed over.
    lenient: bool,
    /// Fields of fixed size are never NULL.
    fixed: bool,
    /// How many rows were read.
    read: u64,
    /// From how many bytes.
    bytes: u64,
    /// Where rows go once there are many.
    blocks: Option<Blocks>,
}

#[derive(Clone, Copy)]
enum Target {
    Column(usize),
    /// A position in `variables`.
    Variable(usize),
}

struct Assigned<'l> {
    column: usize,
    value: Assignment<'l>,
}

enum Assignment<'l> {
    Default,
    Program(RowProgram),
    /// An expression with a subquery, and its answer for the row that is being stored.
    Query(&'l ast::Expr, Option<(Value, SqlType)>),
}

/// The columns of a row that is being put together.
struct Draft<'r>(&'r [Value]);

impl<'r> RowSource<'r> for Draft<'r> {
    fn datum(&self, column: usize) -> Datum<'r> {
        avocet_types::expr::program::reborrow(&self.0[column])
    }
}

impl<'l> Loading<'l> {
    pub fn new(
        session: &mut Session,
        load: &'l LoadData,
        table: Arc<TableHandle>,
        text: &Text<'_>,
    ) -> Result<Self, SqlError> {
        let charset = charset_of(session, load)?;
        let text_type = match charset {
            Charset::Binary => SqlType::VarBinary { len: u32::MAX },
            _ => SqlType::VarChar { len: u32::MAX, collation: session.settings.connection_collation },
        };
        let mut variables: Vec<String> = Vec::new();
        let fields = match &load.targets {
            None => {
                let is_visible = |at: &usize| !table.def.columns[*at].invisible;
                (0..table.def.columns.len()).filter(is_visible).map(Target::Column).collect()
            }
            Some(targets) => {
                let mut fields = Vec::with_capacity(targets.len());
                for target in targets {
                    fields.push(match target {
                        LoadTarget::Column(name) => Target::Column(column_of(&table, &name.name)?),
                        LoadTarget::Variable(name) => {
                            let known = variables.iter().position(|known| known == name);
                            Target::Variable(known.unwrap_or_else(|| {
                                variables.push(name.clone());
                                variables.len() - 1
                            }))
                        }
                    });
                }
                fields
            }
        };
        let on_duplicate = match load.on_duplicate {
            OnDuplicateKey::Fail => OnDuplicate::Fail,
            OnDuplicateKey::Ignore => OnDuplicate::Ignore,
            OnDuplicateKey::Replace => OnDuplicate::Replace,
        };
        let lenient = on_duplicate == OnDuplicate::Ignore;
        let defaults = session.load_defaults(&table, lenient);
        let is_mandatory = |column: &ColumnDef| {
            let has_other = column.auto_increment || column.is_computed();
            !column.nullable && !has_other && implicit_default(&column.ty).is_none()
        };
        let columns = table.def.columns.iter().enumerate();
        let mandatory = columns.filter(|(_, column)| is_mandatory(column)).map(|(at, _)| at).collect();
        let mut loading = Self {
            inserter: session.inserter_of_rows(table, on_duplicate, lenient),
            charset,
            text_type,
            fields,
            values: vec![Datum::Null; variables.len()],
            variables,
            assignments: Vec::new(),
            row: Vec::with_capacity(defaults.len()),
            is_given: vec![false; defaults.len()],
            defaults,
            mandatory,
            lenient,
            fixed: load.format.field_terminator.is_empty() && load.format.enclosed.is_empty(),
            read: 0,
            bytes: 0,
            blocks: None,
        };
        for assignment in &load.assignments {
            let column = column_of(&loading.inserter.table, &assignment.column.name)?;
            let value = loading.assignment(session, &assignment.value, text)?;
            loading.assignments.push(Assigned { column, value });
        }
        for field in &loading.fields {
            if let Target::Column(column) = field {
                loading.is_given[*column] = true;
            }
        }
        for assigned in &loading.assignments {
            loading.is_given[assigned.column] = true;
        }
        Ok(loading)
    }

    fn assignment(
        &self,
        session: &Session,
        value: &'l ast::Expr,
        text: &Text<'_>,
    ) -> Result<Assignment<'l>, SqlError> {
        if matches!(value.kind, ast::ExprKind::Default) {
            return Ok(Assignment::Default);
        }
        if value.has_subquery() {
            return Ok(Assignment::Query(value, None));
        }
        let session_view = session.view();
        let view = RowView { session: &session_view, variables: &self.variables, ty: self.text_type };
        let types = vec![self.text_type; self.variables.len()];
        let def = &self.inserter.table.def;
        let mut binder = TableBinder::new(text.source, &view, &types, def, None);
        let bound = binder.expr(value, Clause::Select)?;
        Ok(Assignment::Program(compile_over(&bound, def)?))
    }

    /// Rows have to meet these.
    pub fn check(&mut self, checks: Arc<[RowCheck]>) {
        self.inserter.checks = checks;
    }

    pub fn charset(&self) -> Charset {
        self.charset
    }

    /// How many fields a row has.
    pub fn fields(&self) -> usize {
        self.fields.len()
    }

    /// The types of the columns that fields go to.
    pub fn field_types(&self) -> impl Iterator<Item = &SqlType> {
        self.fields.iter().filter_map(|field| match field {
            Target::Column(column) => Some(&self.inserter.table.def.columns[*column].ty),
            Target::Variable(_) => None,
        })
    }

    pub fn has_subqueries(&self) -> bool {
        self.assignments.iter().any(|assigned| matches!(assigned.value, Assignment::Query(..)))
    }

    /// Takes the fields of the next row.
    pub fn read(&mut self, session: &mut Session, row: &Row, input: &[u8]) -> Result<(), SqlError> {
        self.read += 1;
        self.row.clear();
        self.row.extend_from_slice(&self.defaults);
        for at in 0..self.fields.len() {
            let target = self.fields[at];
            let field = if at < row.len() { row.field(at, input) } else { None };
            match target {
                // Whatever the file has for it.
                Target::Column(column) if self.inserter.table.def.columns[column].generated.is_some() => {}
                Target::Variable(variable) => {
                    self.values[variable] =
                        field.map_or(Datum::Null, |bytes| self.text(bytes, None).0.into_owned());
                }
                Target::Column(column) if at >= row.len() => {
                    self.row[column] = self.missing(column);
                    self.warn_or_fail(session, ErrorCode::WARN_TOO_FEW_RECORDS.with(&[&self.read]))?;
                }
                Target::Column(column) => {
                    self.row[column] = match field {
                        Some(bytes) => self.stored(session, column, bytes)?,
                        None => self.null(session, column)?,
                    };
                }
            }
        }
        Ok(())
    }

    /// A field's text as a value, with its type.
    fn text<'f>(&self, bytes: &'f [u8], column: Option<&ColumnDef>) -> (Datum<'f>, SqlType) {
        let binary = || (Datum::bytes(bytes), SqlType::VarBinary { len: u32::MAX });
        let is_binary = |ty: &SqlType| {
            // The bytes of a BIT are no text.
            matches!(
                ty,
                SqlType::Binary { .. }
                    | SqlType::VarBinary { .. }
                    | SqlType::Blob { .. }
                    | SqlType::Geometry { .. }
                    | SqlType::Bit { .. }
            )
        };
        if column.is_some_and(|column| is_binary(&column.ty)) {
            return binary();
        }
        match self.charset {
            Charset::Binary => binary(),
            Charset::Utf8mb3 | Charset::Utf8mb4 => match std::str::from_utf8(bytes) {
                Ok(text) => (Datum::str(text), self.text_type),
                Err(_) => binary(),
            },
            _ => match self.charset.decode(bytes) {
                Ok(text) => (Datum::Str(text.into()), self.text_type),
                Err(_) => binary(),
            },
        }
    }

    fn stored(&self, session: &mut Session, column: usize, bytes: &[u8]) -> Result<Value, SqlError> {
        let def = &self.inserter.table.def.columns[column];
        let (value, ty) = self.text(bytes, Some(def));
        // Elsewhere such a byte is a question mark.
        if let (Datum::Str(_), Some(at)) = (&value, self.charset.first_unassigned(bytes))
            && def.ty.is_string()
        {
            let problem = StoreError::incorrect_string(&bytes[at..]);
            self.warn_or_fail(session, store_error(&problem, &def.name, self.read))?;
        }
        if let Ok(stored) = store_column(value.clone(), &ty, def, &self.inserter.storing.convert)
            && stored.warning.is_none()
        {
            return Ok(stored.value.into_owned());
        }
        session.store(value.into_owned(), &ty, def, &self.inserter.storing, self.read)
    }

    /// What a column gets for `\N`.
    fn null(&self, session: &mut Session, column: usize) -> Result<Value, SqlError> {
        let def = &self.inserter.table.def.columns[column];
        if def.nullable || self.inserter.auto == Some(column) {
            return Ok(Datum::Null);
        }
        if let SqlType::Timestamp { .. } = def.ty {
            return Ok(self.now(&def.ty));
        }
        self.warn_or_fail(session, ErrorCode::WARN_NULL_TO_NOTNULL.with(&[&def.name, &self.read]))?;
        Ok(implicit_default(&def.ty).unwrap_or(Datum::Null))
    }

    /// What a column gets whose field is missing: not its default, unless that is NULL, but its type's.
    fn missing(&self, column: usize) -> Value {
        let def = &self.inserter.table.def.columns[column];
        match (&def.ty, &def.default) {
            (ty, default) if self.fixed && !matches!(ty, SqlType::Timestamp { .. }) => match default {
                Some(DefaultValue::Const(value)) if !value.is_null() => value.clone(),
                _ => implicit_default(ty).unwrap_or(Datum::Null),
            },
            (_, None | Some(DefaultValue::Dropped)) if def.nullable || self.inserter.auto == Some(column) => {
                Datum::Null
            }
            (_, Some(DefaultValue::Const(Datum::Null))) => Datum::Null,
            (_, Some(DefaultValue::Expr(_))) if def.nullable => Datum::Null,
            (SqlType::Timestamp { .. }, _) if !def.nullable => self.now(&def.ty),
            (ty, _) => implicit_default(ty).unwrap_or(Datum::Null),
        }
    }

    fn now(&self, ty: &SqlType) -> Value {
        let storing = &self.inserter.storing;
        now(ty, storing.now, storing.convert.zone)
    }

    /// An error in strict mode, a warning otherwise.
    fn warn_or_fail(&self, session: &mut Session, problem: SqlError) -> Result<(), SqlError> {
        if self.inserter.storing.convert.strict {
            return Err(problem);
        }
        session.warn(Level::Warning, problem.errno, problem.message);
        Ok(())
    }

    /// Evaluates the assignments that have subqueries, to which the row's variables are the session's.
    pub async fn ask(&mut self, session: &mut Session, text: &Text<'_>) -> Result<(), SqlError> {
        self.keep_variables(session)?;
        for at in 0..self.assignments.len() {
            let Assignment::Query(expr, _) = self.assignments[at].value else { continue };
            let answer = match session.given_by_query(expr, &self.inserter, text).await? {
                Given::Value(value, ty) => (value, ty),
                Given::Default => (Datum::Null, SqlType::Null),
            };
            self.assignments[at].value = Assignment::Query(expr, Some(answer));
        }
        Ok(())
    }

    /// Carries out SET.
    pub fn assign(&mut self, session: &mut Session) -> Result<(), SqlError> {
        for at in 0..self.assignments.len() {
            let column = self.assignments[at].column;
            if self.inserter.table.def.columns[column].generated.is_some() {
                continue;
            }
            let (value, ty) = match &mut self.assignments[at].value {
                Assignment::Default => {
                    let table = self.inserter.table.clone();
                    let (def, storing) = (&table.def.columns[column], &self.inserter.storing);
                    let computed = match rules_of(&table)? {
                        Some(rules) => {
                            session.computed_default(rules, column, def, &self.row, storing, self.read)?
                        }
                        None => None,
                    };
                    self.row[column] = match computed {
                        Some(value) => value,
                        None if self.inserter.auto == Some(column) => Datum::Null,
                        None => session.default_value(def, storing, self.read == 1)?,
                    };
                    continue;
                }
                Assignment::Query(_, answer) => answer.take().unwrap_or((Datum::Null, SqlType::Null)),
                Assignment::Program(program) => {
                    let value = program.eval(&Draft(&self.row), &self.values, &session.context)?;
                    (value.into_owned(), *program.ty())
                }
            };
            let def = &self.inserter.table.def.columns[column];
            self.row[column] = match value {
                Datum::Null if self.inserter.auto == Some(column) => Datum::Null,
                value => session.store(value, &ty, def, &self.inserter.storing, self.read)?,
            };
        }
        Ok(())
    }

    /// Inserts the row.
    pub fn store(&mut self, session: &mut Session, row: &Row, bytes: usize) -> Result<(), SqlError> {
        let mut values = std::mem::take(&mut self.row);
        for &column in &self.mandatory {
            if !values[column].is_null() {
                continue;
            }
            if self.defaults[column].is_null() {
                let name = &self.inserter.table.def.columns[column].name;
                return Err(ErrorCode::NO_DEFAULT_FOR_FIELD.with(&[name]));
            }
            values[column] = self.defaults[column].clone();
        }
        self.inserter.generated = None;
        let mut explicit = None;
        if let Some(auto) = self.inserter.auto {
            match generates(&values[auto], &self.inserter.storing) {
                true => values[auto] = session.generate(&mut self.inserter, auto, self.read)?,
                false => explicit = Some(values[auto].clone()),
            }
        }
        if !self.obey_rules(session, &mut values)? {
            self.row = values;
            return Ok(());
        }
        // An expression may make much of few bytes.
        let bytes = bytes.max(string_bytes(&values));
        self.bytes += bytes as u64;
        let before = self.inserter.counts.affected;
        if self.blocks.is_none() && self.read <= ROWS_BEFORE_BLOCKS && self.bytes <= BYTES_BEFORE_BLOCKS {
            session.insert_row(&mut self.inserter, values)?;
        } else {
            let memory = || session.shared.engine.memory().clone();
            let blocks = match &mut self.blocks {
                Some(blocks) => blocks,
                none => none.insert(Blocks::new(&self.inserter.table, memory())),
            };
            if self.inserter.counts.first_generated == 0 {
                self.inserter.counts.first_generated = self.inserter.generated.unwrap_or(0);
            }
            if let Some(number) = explicit.take() {
                session.note_auto_value(&mut self.inserter, &number);
            }
            blocks.push(session, &mut self.inserter, &values, bytes)?;
            self.row = values;
        }
        // Of a row that was passed over, the number is not used.
        if let Some(number) = explicit.filter(|_| self.inserter.counts.affected > before) {
            session.note_auto_value(&mut self.inserter, &number);
        }
        if row.cut {
            self.warn_or_fail(session, ErrorCode::WARN_TOO_MANY_RECORDS.with(&[&self.read]))?;
        }
        Ok(())
    }

    /// Evaluates what the table's definition says of the row; false if a CHECK constraint keeps it out, with a warning.
    fn obey_rules(&mut self, session: &mut Session, values: &mut [Value]) -> Result<bool, SqlError> {
        let table = self.inserter.table.clone();
        let Some(rules) = rules_of(&table)? else {
            return session.meets_checks(&mut self.inserter, values);
        };
        let (columns, storing) = (&table.def.columns, self.inserter.storing);
        session.compute_missing(rules, columns, values, &self.is_given, &storing, self.read)?;
        if let Some(at) = (0..columns.len()).find(|at| values[*at].is_null() && !columns[*at].nullable) {
            return Err(store_error(&StoreError::null_in(&columns[at].ty), &columns[at].name, self.read));
        }
        if !session.meets_checks(&mut self.inserter, values)? {
            return Ok(false);
        }
        match rules.check(&&values[..], &session.context) {
            Ok(()) => Ok(true),
            Err(error) if self.lenient && is_of_row(&error) => {
                session.warn(Level::Warning, error.errno, error.message);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// The variables keep what the last row gave them.
    fn keep_variables(&self, session: &mut Session) -> Result<(), SqlError> {
        for (name, value) in self.variables.iter().zip(&self.values) {
            session.user_variables.insert(
                name.clone(),
                (value.clone(), self.text_type),
                session.settings.time_zone,
            )?;
        }
        Ok(())
    }

    /// What the statement came to.
    pub fn finish(mut self, session: &mut Session) -> Result<Done, SqlError> {
        if let Some(mut blocks) = self.blocks.take() {
            blocking(|| blocks.finish(session, &mut self.inserter))?;
        }
        if self.read > 0 {
            self.keep_variables(session)?;
        }
        session.collect_warnings();
        // Rows that a CHECK constraint or a parent keeps out do not count.
        let Counts { affected, duplicates, first_generated, rows, .. } = self.inserter.counts;
        if first_generated > 0 {
            session.last_insert_id = first_generated;
        }
        let (deleted, skipped) = match self.lenient {
            true => (0, rows.saturating_sub(affected)),
            false => (duplicates, 0),
        };
        let warnings = session.condition_count();
        Ok(Done {
            affected_rows: affected,
            info: format!("Records: {rows}  Deleted: {deleted}  Skipped: {skipped}  Warnings: {warnings}"),
            ..Done::default()
        })
    }
}

impl Session {
    /// What a new row has in each column before any field or assignment: unlike those of INSERT, columns without a
    /// default are no error.
    fn load_defaults(&self, table: &TableHandle, lenient: bool) -> Vec<Value> {
        let storing = self.storing(lenient);
        let default = |column: &ColumnDef| match &column.default {
            Some(DefaultValue::Const(value)) => value.clone(),
            Some(DefaultValue::Now) => now(&column.ty, storing.now, storing.convert.zone),
            Some(DefaultValue::Expr(_)) => Datum::Null,
            None | Some(DefaultValue::Dropped)
                if column.nullable || column.auto_increment || column.generated.is_some() =>
            {
                Datum::Null
            }
            None | Some(DefaultValue::Dropped) => {
                unstated_default(column).or_else(|| implicit_default(&column.ty)).unwrap_or(Datum::Null)
            }
        };
        table.def.columns.iter().map(default).collect()
    }
}

/// The session's view, in which the variables that fields go to are parameters.
struct RowView<'v> {
    session: &'v dyn CatalogView,
    variables: &'v [String],
    ty: SqlType,
}

impl CatalogView for RowView<'_> {
    fn current_database(&self) -> Option<&str> {
        self.session.current_database()
    }

    fn has_database(&self, name: &str) -> bool {
        self.session.has_database(name)
    }

    fn view(&self, database: &str, name: &str) -> Option<Arc<TableDef>> {
        self.session.view(database, name)
    }

    fn table(&self, database: &str, name: &str) -> Option<Arc<TableDef>> {
        self.session.table(database, name)
    }

    fn statistics(&self, table: &TableDef) -> Option<Arc<TableStatistics>> {
        self.session.statistics(table)
    }

    fn typer(&self) -> Typer {
        self.session.typer()
    }

    fn system_variable(&self, scope: VariableScope, name: &str) -> Result<BoundExpr, SqlError> {
        self.session.system_variable(scope, name)
    }

    fn user_variable(&self, name: &str) -> BoundExpr {
        match self.variables.iter().position(|known| known == name) {
            Some(at) => BoundExpr::param(at, self.ty),
            None => self.session.user_variable(name),
        }
    }

    fn value_of_variable(&self, name: &str) -> Option<(Value, SqlType)> {
        self.session.value_of_variable(name)
    }

    fn column_type(&self, spec: &TypeSpec, column: &str) -> Result<SqlType, SqlError> {
        self.session.column_type(spec, column)
    }

    fn collation(&self, name: &str) -> Option<Collation> {
        self.session.collation(name)
    }
}
