//! Partitions: of CREATE TABLE, and what ALTER TABLE does to them. Partitions that go take their rows along: the table is copied
//! without them. Whatever else is changed is a matter of the definition, as all rows stand in one relation.

use avocet_sql::kept::partitions::{
    self, Bound, Part, Partitioning, Source, condition_of, resolve, resolve_parts,
};
use avocet_sql::parse::ast::Ident;
use avocet_sql::parse::statement::{PartitionBy, PartitionChange, PartitionSpec};
use avocet_types::TableDef;
use avocet_types::error::{ErrorCode, SqlError};
use avocet_types::expr::RowProgram;
use avocet_types::names;

use super::alter::Draft;
use crate::run::Text;
use crate::state::Session;

impl Session {
    /// Gives a table its partitions.
    pub(super) fn partition(
        &self,
        def: &mut TableDef,
        by: &PartitionBy,
        text: &Text<'_>,
    ) -> Result<(), SqlError> {
        let partitioning = resolve(by, def, self.kept_source(text))?;
        def.partitioning = Some(partitioning.kept_text());
        Ok(())
    }

    fn kept_source<'t>(&self, text: &'t Text<'_>) -> Source<'t> {
        let charset = self.settings.connection_collation.info().charset;
        Source { text: text.source, charset }
    }

    pub(super) fn change_partitions(
        &self,
        draft: &mut Draft,
        change: &PartitionChange,
        text: &Text<'_>,
    ) -> Result<(), SqlError> {
        if let PartitionChange::By(by) = change {
            if draft.def.id.is_temporary() {
                return Err(ErrorCode::PARTITION_NO_TEMPORARY.with(&[]));
            }
            self.partition(&mut draft.def, by, text)?;
            draft.verifies |= draft.def.is_partitioned_by_bounds();
            return Ok(());
        }
        let kept = draft.def.partitioning.as_ref();
        let kept = kept.ok_or_else(|| ErrorCode::PARTITION_MGMT_ON_NONPARTITIONED.with(&[]))?;
        let mut partitioning = partitions::read(kept)?;
        match change {
            PartitionChange::By(_) => {}
            PartitionChange::Remove => {
                draft.def.partitioning = None;
                return Ok(());
            }
            PartitionChange::Add(specs) => self.add(&mut partitioning, specs, &draft.def, text)?,
            PartitionChange::AddCount(count) => {
                if partitioning.function.is_bounded() {
                    let name = partitioning.function.name();
                    let name = name.split(' ').next().unwrap_or_default();
                    return Err(ErrorCode::PARTITIONS_MUST_BE_DEFINED_ERROR.with(&[&name]));
                }
                if *count == 0 {
                    return Err(ErrorCode::ADD_PARTITION_NO_NEW_PARTITION.with(&[]));
                }
                more(&mut partitioning, *count);
            }
            PartitionChange::Coalesce(count) => coalesce(&mut partitioning, *count)?,
            PartitionChange::Drop(names) => drop_parts(draft, &mut partitioning, names)?,
            PartitionChange::Truncate(names) => {
                draft.copies = true;
                draft.left_out = Some(match names {
                    Some(names) => rows_of(&draft.def, names)?,
                    None => compile(&draft.def, avocet_types::expr::Expr::bool(true))?,
                });
                return Ok(());
            }
            PartitionChange::Rebuild(names) => {
                let unknown = |name: &&Ident| partitioning.position(&name.name).is_none();
                if names.iter().flatten().any(|name| unknown(&name)) {
                    return Err(ErrorCode::DROP_PARTITION_NON_EXISTENT.with(&[&"REBUILD"]));
                }
                return Ok(());
            }
            PartitionChange::Reorganize { names, into } => {
                let new = resolve_parts(&partitioning, into, &draft.def, self.kept_source(text))?;
                reorganize(&mut partitioning, names, new, &draft.def)?;
                draft.verifies = true;
            }
        }
        draft.def.partitioning = Some(partitioning.kept_text());
        Ok(())
    }

    fn add(
        &self,
        partitioning: &mut Partitioning,
        specs: &[PartitionSpec],
        def: &TableDef,
        text: &Text<'_>,
    ) -> Result<(), SqlError> {
        let mut new = resolve_parts(partitioning, specs, def, self.kept_source(text))?;
        let is_max = |part: &Part| matches!(&part.bound, Bound::LessThan(values) if partitioning.function.expr.is_some() && values[..] == [None]);
        if partitioning.parts.last().is_some_and(is_max) {
            return Err(ErrorCode::PARTITION_MAXVALUE_ERROR.with(&[]));
        }
        partitioning.parts = partitioning.all_parts();
        partitioning.count = 0;
        partitioning.parts.append(&mut new);
        Ok(())
    }
}

/// More partitions by HASH or KEY, with default names. Which rows are in which is not kept, so nothing moves.
fn more(partitioning: &mut Partitioning, count: u64) {
    let before = partitioning.counts().0;
    match partitioning.parts.is_empty() {
        true => partitioning.count = before.saturating_add(count),
        false => {
            let all = before.saturating_add(count).min(1 << 16);
            let model = Partitioning { parts: Vec::new(), count: all, ..partitioning.clone() };
            let new = model.all_parts().into_iter().skip(before as usize);
            partitioning.parts.extend(new);
        }
    }
}

fn coalesce(partitioning: &mut Partitioning, count: u64) -> Result<(), SqlError> {
    if partitioning.function.is_bounded() {
        return Err(ErrorCode::COALESCE_ONLY_ON_HASH_PARTITION.with(&[]));
    }
    if count == 0 {
        return Err(ErrorCode::COALESCE_PARTITION_NO_PARTITION.with(&[]));
    }
    let left = partitioning.counts().0.saturating_sub(count);
    if left == 0 {
        return Err(ErrorCode::DROP_LAST_PARTITION.with(&[]));
    }
    match partitioning.parts.is_empty() {
        true => partitioning.count = left,
        false => partitioning.parts.truncate(left as usize),
    }
    Ok(())
}

fn drop_parts(draft: &mut Draft, partitioning: &mut Partitioning, names: &[Ident]) -> Result<(), SqlError> {
    if !partitioning.function.is_bounded() {
        return Err(ErrorCode::ONLY_ON_RANGE_LIST_PARTITION.with(&[&"DROP"]));
    }
    if names.len() >= partitioning.parts.len() {
        return Err(ErrorCode::DROP_LAST_PARTITION.with(&[]));
    }
    let mut gone = Vec::with_capacity(names.len());
    for name in names {
        match partitioning.position(&name.name) {
            Some(at) if !gone.contains(&at) => gone.push(at),
            _ => return Err(ErrorCode::DROP_PARTITION_NON_EXISTENT.with(&[&"DROP"])),
        }
    }
    draft.copies = true;
    draft.left_out = Some(rows_of(&draft.def, names)?);
    let mut at = 0;
    partitioning.parts.retain(|_| {
        at += 1;
        !gone.contains(&(at - 1))
    });
    Ok(())
}

/// Consecutive partitions become others. Of ranges the whole stays what it was, but that the last may end later.
fn reorganize(
    partitioning: &mut Partitioning,
    names: &[Ident],
    new: Vec<Part>,
    def: &TableDef,
) -> Result<(), SqlError> {
    if !partitioning.function.is_bounded() {
        return Err(avocet_sql::bind::unsupported("REORGANIZE PARTITION of partitions by HASH or KEY"));
    }
    if names.len() > partitioning.parts.len() {
        return Err(ErrorCode::REORG_PARTITION_NOT_EXIST.with(&[]));
    }
    let mut places = Vec::with_capacity(names.len());
    for name in names {
        match partitioning.parts.iter().position(|part| names::eq(&part.name, &name.name)) {
            Some(at) if !places.contains(&at) => places.push(at),
            _ => return Err(ErrorCode::DROP_PARTITION_NON_EXISTENT.with(&[&"REORGANIZE"])),
        }
    }
    places.sort_unstable();
    let (first, last) = (places[0], places[places.len() - 1]);
    let is_range = matches!(partitioning.parts[0].bound, Bound::LessThan(_));
    if is_range {
        if last - first + 1 != places.len() {
            return Err(ErrorCode::CONSECUTIVE_REORG_PARTITIONS.with(&[]));
        }
        let (old, is_last) = (&partitioning.parts[last], last + 1 == partitioning.parts.len());
        let keeps_end = match new.last() {
            Some(end) if is_last => partitions::reaches(partitioning, def, end, old)?,
            end => end.map(|part| &part.bound) == Some(&old.bound),
        };
        if !keeps_end {
            return Err(ErrorCode::REORG_OUTSIDE_RANGE.with(&[]));
        }
    }
    let mut at = 0;
    partitioning.parts.retain(|_| {
        at += 1;
        !places.contains(&(at - 1))
    });
    partitioning.parts.splice(first..first, new);
    Ok(())
}

fn compile(def: &TableDef, condition: avocet_types::expr::Expr) -> Result<RowProgram, SqlError> {
    let name = |column: usize| format!("`{}`", def.columns[column].name);
    Ok(RowProgram::compile_named(&condition.fold(), &name)?)
}

/// Whether a row is in one of these partitions.
fn rows_of(def: &TableDef, names: &[Ident]) -> Result<RowProgram, SqlError> {
    let names: Vec<&str> = names.iter().map(|name| name.name.as_str()).collect();
    let condition = condition_of(&std::sync::Arc::new(def.clone()), &def.name, &names)?;
    compile(def, condition)
}

/// Error 3855 if partitions are made by a column that is to go.
pub(super) fn check_is_unused(def: &TableDef, column: usize) -> Result<(), SqlError> {
    check_is_not_among(&partitions::columns_of(def)?, def, column)
}

/// Error 3855 if what partitions are made by names a column that is to be called otherwise.
pub(super) fn check_is_unnamed(def: &TableDef, column: usize) -> Result<(), SqlError> {
    check_is_not_among(&partitions::named_columns_of(def)?, def, column)
}

fn check_is_not_among(used: &[usize], def: &TableDef, column: usize) -> Result<(), SqlError> {
    match used.contains(&column) {
        true => Err(ErrorCode::DEPENDENT_BY_PARTITION_FUNC.with(&[&def.columns[column].name])),
        false => Ok(()),
    }
}
