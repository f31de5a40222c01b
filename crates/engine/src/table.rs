//! A table as the engine runs it: its definition, its relation and its indexes.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use avocet_base::{IndexId, RowId, TableId, Timestamp};
use avocet_storage::TxnState;
use avocet_storage::cold::Block;
use avocet_storage::index::{BTree, Direction};
use avocet_storage::relation::{Relation, RowsPerSegment};
use avocet_types::error::SqlError;
use avocet_types::key::KeyLayout;
use avocet_types::{Datum, IndexDef, IndexKind, IndexPart, RowLayout, RowRef, RowRules, TableDef};
use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::buffers::ReadScratch;
use crate::cardinality::DistinctCache;
use crate::columns::BlockView;
use crate::error::Result;
use crate::hints::Hints;
use crate::keys::KeyRange;
use crate::metadata_lock::MetadataLock;
use crate::sample::SampleCache;
use crate::touched::TouchedRows;

/// A column in a definition, a layout and a key, about.
const COLUMN_BYTES: usize = 256;
/// What a byte of an expression's text takes, there and in its program, about.
const PROGRAM_BYTES: usize = 32;

/// Makes programs of the SQL texts in a definition. The engine does not know SQL.
pub type RuleCompiler = fn(&TableDef) -> std::result::Result<RowRules, SqlError>;

/// Immutable once published; DDL publishes a new handle that shares what stayed.
pub struct TableHandle {
    pub def: Arc<TableDef>,
    pub layout: Arc<RowLayout>,
    pub(crate) relation: Arc<Relation>,
    pub(crate) indexes: Vec<Arc<IndexHandle>>,
    /// By column: whether an index uses it.
    key_columns: Box<[bool]>,
    /// The next AUTO_INCREMENT value.
    pub(crate) auto_increment: Arc<AtomicU64>,
    pub(crate) rows: Arc<AtomicI64>,
    pub(crate) metadata_lock: Arc<MetadataLock>,
    pub(crate) sample: Arc<SampleCache>,
    pub(crate) relocations: Arc<Relocations>,
    /// A foreign key refers to the table. Changes only while nobody uses it.
    referenced: Arc<AtomicBool>,
    /// The definition has expressions for its rows.
    has_rules: bool,
    /// These, compiled for the first that asks.
    rules: OnceLock<std::result::Result<RowRules, SqlError>>,
    pub(crate) touched: Arc<TouchedRows>,
    /// How the table sees blocks; made for the first that is opened.
    block_view: Arc<OnceLock<BlockView>>,
    /// The commit that made the table what it is: snapshots before it do not have its rows.
    readable_from: Timestamp,
    /// The commit that made its newest index, or the table.
    changed_at: Timestamp,
}

/// Where changed rows went that have another place since, as long as a snapshot may still see them in their old places.
///
/// A transaction under REPEATABLE READ can change a row that moved after its snapshot: it then sees its own change in the
/// new place, and must not see the row of its snapshot in the old one. A row may have moved more than once since: the places
/// that it had are a chain.
#[derive(Default)]
pub(crate) struct Relocations {
    count: AtomicUsize,
    moves: Mutex<Moves>,
}

#[derive(Default)]
struct Moves {
    /// From the new place to the old one, and who moved the row.
    old: HashMap<RowId, (RowId, Arc<TxnState>)>,
    /// The way back.
    new: HashMap<RowId, RowId>,
}

impl Moves {
    fn remove(&mut self, to: RowId) -> Option<(RowId, Arc<TxnState>)> {
        let moved = self.old.remove(&to)?;
        // Whoever was rolled back may have moved the row to somewhere else before.
        if self.new.get(&moved.0) == Some(&to) {
            self.new.remove(&moved.0);
        }
        Some(moved)
    }
}

impl Relocations {
    pub fn note(&self, from: RowId, to: RowId, by: &Arc<TxnState>) {
        let mut moves = self.moves.lock();
        moves.old.insert(to, (from, by.clone()));
        moves.new.insert(from, to);
        self.count.store(moves.old.len(), Ordering::Relaxed);
    }

    /// The places that a row had before transactions moved it which a snapshot at `ts` does not see. It sees the row in one of
    /// them, if at all.
    pub fn unseen_at(&self, ts: Timestamp, id: RowId) -> Vec<RowId> {
        let mut places = Vec::new();
        if self.count.load(Ordering::Relaxed) == 0 {
            return places;
        }
        let moves = self.moves.lock();
        let mut at = id;
        while let Some((from, by)) = moves.old.get(&at)
            && by.committed_at().is_some_and(|at| at > ts)
        {
            places.push(*from);
            at = *from;
        }
        places
    }

    /// Every snapshot sees the row in this place, or none does any more.
    pub fn forget(&self, to: RowId) {
        self.change(|moves| drop(moves.remove(to)));
    }

    /// No snapshot sees the row in this place, to which it came and which it has left again: it went on from the place before.
    pub fn pass_over(&self, place: RowId) {
        self.change(|moves| {
            let Some((from, _)) = moves.remove(place) else { return };
            if let Some(next) = moves.new.remove(&place)
                && let Some(moved) = moves.old.get_mut(&next)
            {
                moved.0 = from;
                moves.new.insert(from, next);
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut Moves)) {
        if self.count.load(Ordering::Relaxed) > 0 {
            let mut moves = self.moves.lock();
            change(&mut moves);
            self.count.store(moves.old.len(), Ordering::Relaxed);
        }
    }
}

/// Where the entries of an index with these parts of its keys are.
pub(crate) type Trees<'t> = dyn Fn(&IndexDef, &[IndexPart]) -> Option<Arc<BTree>> + 't;

pub struct IndexHandle {
    pub def: IndexDef,
    /// What its entries are ordered by, before their row ids: the columns of `def`, and perhaps the primary key's
    /// ([`IndexDef::key_parts`]). Where the primary key becomes another one, this becomes another index.
    pub parts: Box<[IndexPart]>,
    pub keys: KeyLayout,
    pub(crate) tree: Arc<BTree>,
    /// Of a unique index: where keys were found last.
    pub(crate) hints: Hints,
    pub(crate) distinct: DistinctCache,
    /// The commit that made the index, which has no entries of versions that only snapshots before it see.
    readable_from: AtomicU64,
}

impl IndexHandle {
    pub(crate) fn new(table: &TableDef, def: IndexDef) -> Self {
        Self::over(&|_, _| None, table, def)
    }

    /// With the entries of a tree, if there is one.
    pub(crate) fn over(trees: &Trees<'_>, table: &TableDef, def: IndexDef) -> Self {
        let parts = def.key_parts(table);
        let keys = KeyLayout::new(table, &parts);
        let readable_from = AtomicU64::new(Timestamp::MIN.0);
        let tree = trees(&def, &parts).unwrap_or_default();
        let hints = Hints::default();
        let distinct = DistinctCache::default();
        Self { parts: parts.into(), keys, def, tree, hints, distinct, readable_from }
    }

    /// The same entries, of a table whose columns have other places: `moved` says where each of the old ones is now. None of the
    /// index's columns has gone or has changed its type.
    pub(crate) fn moved(
        &self,
        table: &TableDef,
        def: IndexDef,
        moved: &dyn Fn(usize) -> Option<usize>,
    ) -> Option<Self> {
        let part = |part: &IndexPart| Some(IndexPart { column: moved(part.column)?, ..*part });
        let parts = self.parts.iter().map(part).collect::<Option<Box<[_]>>>()?;
        let readable_from = AtomicU64::new(self.readable_from.load(Ordering::Relaxed));
        let keys = KeyLayout::new(table, &parts);
        let (hints, distinct) = (Hints::default(), DistinctCache::default());
        Some(Self { parts, keys, def, tree: self.tree.clone(), hints, distinct, readable_from })
    }

    /// Whether its entries are those that the index has in a table of this definition.
    pub(crate) fn has_parts_in(&self, table: &TableDef) -> bool {
        *self.parts == *self.def.key_parts(table)
    }

    /// Whether it leads to all that a snapshot sees.
    pub(crate) fn is_readable_at(&self, snapshot: Timestamp) -> bool {
        self.readable_from.load(Ordering::Relaxed) <= snapshot.0
    }

    /// Whether a snapshot that does not see the commit at `ts` may read it.
    pub(crate) fn is_readable_before(&self, ts: Timestamp) -> bool {
        self.readable_from.load(Ordering::Relaxed) < ts.0
    }

    /// Appends the whole entry of a row: key, then row id.
    pub(crate) fn entry(&self, row: &RowRef<'_>, id: RowId, to: &mut Vec<u8>) {
        self.keys.encode_row(row, to);
        to.extend_from_slice(&id.0.to_be_bytes());
    }

    /// Whether a change of this column changes keys.
    pub(crate) fn uses(&self, column: usize) -> bool {
        self.parts.iter().any(|part| part.column == column)
    }

    /// A key with a NULL in it equals no other.
    pub(crate) fn has_null(&self, row: &RowRef<'_>) -> bool {
        self.def.parts.iter().any(|part| row.is_null(part.column))
    }

    pub fn entries(&self) -> u64 {
        self.tree.len()
    }

    /// Whether a row has this whole key, or had it not long ago, committed or not. Waits for nobody.
    pub fn may_have_key(&self, key: &[u8], scratch: &mut ReadScratch) -> bool {
        let (range, mut found) = (KeyRange::prefix(key), false);
        let (lower, upper) = range.bounds();
        self.tree.scan(lower, upper, Direction::Ascending, &mut scratch.scan, &mut |_| {
            found = true;
            ControlFlow::Break(())
        });
        found
    }

    pub fn bytes(&self) -> u64 {
        self.tree.bytes() + self.hints.bytes()
    }
}

fn key_columns(def: &TableDef, indexes: &[Arc<IndexHandle>]) -> Box<[bool]> {
    (0..def.columns.len()).map(|column| indexes.iter().any(|index| index.uses(column))).collect()
}

/// The row id at the end of an index entry, and the key before it.
pub(crate) fn split_entry(entry: &[u8]) -> (&[u8], RowId) {
    let (key, id) = entry.split_at(entry.len() - 8);
    (key, RowId(u64::from_be_bytes(id.try_into().expect("eight bytes"))))
}

impl TableHandle {
    pub(crate) fn new(def: TableDef, segment_rows: RowsPerSegment) -> Self {
        let layout = Arc::new(RowLayout::new(def.columns.iter().map(|c| &c.ty)));
        let indexes: Vec<_> =
            def.indexes.iter().map(|i| Arc::new(IndexHandle::new(&def, i.clone()))).collect();
        Self {
            key_columns: key_columns(&def, &indexes),
            relation: Arc::new(Relation::new(layout.clone(), segment_rows)),
            layout,
            indexes,
            auto_increment: Arc::new(AtomicU64::new(1)),
            rows: Arc::new(AtomicI64::new(0)),
            metadata_lock: Arc::new(MetadataLock::new()),
            relocations: Arc::default(),
            referenced: Arc::default(),
            sample: Arc::default(),
            has_rules: def.has_rules(),
            rules: OnceLock::new(),
            touched: Arc::default(),
            block_view: Arc::default(),
            readable_from: Timestamp::MIN,
            changed_at: Timestamp::MIN,
            def: Arc::new(def),
        }
    }

    /// The same rows under a definition that differs in its names, its indexes or its foreign keys.
    pub(crate) fn with_indexes(&self, def: TableDef, indexes: Vec<Arc<IndexHandle>>) -> Self {
        // Recovery makes trees of the definition alone.
        debug_assert!(indexes.iter().all(|index| index.has_parts_in(&def)), "an index of other parts");
        Self {
            key_columns: key_columns(&def, &indexes),
            has_rules: def.has_rules(),
            rules: OnceLock::new(),
            def: Arc::new(def),
            layout: self.layout.clone(),
            relation: self.relation.clone(),
            indexes,
            auto_increment: self.auto_increment.clone(),
            rows: self.rows.clone(),
            metadata_lock: self.metadata_lock.clone(),
            relocations: self.relocations.clone(),
            referenced: self.referenced.clone(),
            sample: self.sample.clone(),
            touched: self.touched.clone(),
            block_view: self.block_view.clone(),
            readable_from: self.readable_from,
            changed_at: self.changed_at,
        }
    }

    /// A block with the table's columns, of one as it was written; see [`BlockView::see`].
    pub(crate) fn view(&self, block: Arc<Block>) -> Result<Arc<Block>> {
        if self.block_view.get().is_none() {
            let _ = self.block_view.set(BlockView::of(&self.def)?);
        }
        self.block_view.get().expect("it was made above").see(block)
    }

    /// Another relation of the same table, under a definition of which some columns are new or gone. Nothing of it is known yet
    /// but what outlives such a change.
    pub(crate) fn with_relation(&self, def: TableDef, indexes: Vec<Arc<IndexHandle>>) -> Self {
        let new = Self::new(def, self.relation.segment_rows());
        Self {
            key_columns: key_columns(&new.def, &indexes),
            indexes,
            auto_increment: self.auto_increment.clone(),
            rows: self.rows.clone(),
            referenced: self.referenced.clone(),
            metadata_lock: self.metadata_lock.clone(),
            ..new
        }
    }

    /// Made by the commit at `now`: snapshots before that must not read it.
    pub(crate) fn readable_from(self, now: Timestamp) -> Self {
        Self { readable_from: now, changed_at: now, ..self }
    }

    /// Some of its indexes were made by the commit at `now`.
    pub(crate) fn with_new_indexes(self, new: &[IndexId], now: Timestamp) -> Self {
        for index in self.indexes.iter().filter(|index| new.contains(&index.def.id)) {
            index.readable_from.store(now.0, Ordering::Relaxed);
        }
        let changed_at = if new.is_empty() { self.changed_at } else { now };
        Self { changed_at, ..self }
    }

    /// Under the metadata lock of the table that it replaces.
    pub(crate) fn locked_as(self, old: &Self) -> Self {
        Self { metadata_lock: old.metadata_lock.clone(), ..self }
    }

    /// Whether a snapshot has the table's rows.
    pub(crate) fn is_readable_at(&self, snapshot: Timestamp) -> bool {
        self.readable_from <= snapshot
    }

    /// The commit that made the table or its newest index.
    pub(crate) fn changed_at(&self) -> Timestamp {
        self.changed_at
    }

    /// What the table takes of memory without any row: its definition, its directory, and what its indexes have beside
    /// their trees.
    pub(crate) fn fixed_bytes(&self) -> usize {
        const SHARED_PARTS: usize = size_of::<TableDef>()
            + size_of::<RowLayout>()
            + size_of::<MetadataLock>()
            + size_of::<Relocations>()
            + size_of::<SampleCache>();
        let names = |texts: &mut dyn Iterator<Item = &String>| texts.map(String::len).sum::<usize>();
        let columns = self.def.columns.len() * COLUMN_BYTES
            + names(&mut self.def.columns.iter().flat_map(|c| [&c.name, &c.comment]));
        let expressions = self.def.expressions().map(str::len).sum::<usize>() * PROGRAM_BYTES;
        let indexes = self.indexes.iter().map(|index| {
            size_of::<IndexHandle>() + index.parts.len() * COLUMN_BYTES + 2 * index.def.name.len()
        });
        size_of::<Self>()
            + SHARED_PARTS
            + self.relation.directory_bytes()
            + columns
            + expressions
            + indexes.sum::<usize>()
    }

    /// What it takes with its first rows, beside these: it has a page then.
    pub(crate) fn bytes_of_few_rows(&self) -> usize {
        let trees: u64 = self.indexes.iter().map(|index| index.bytes()).sum();
        self.fixed_bytes() + trees as usize + self.relation.slots_per_page() * self.layout.fixed_size
    }

    /// Counts the rows, which nobody changes meanwhile.
    pub(crate) fn count_rows(&self) -> u64 {
        self.relation.count_rows()
    }

    pub fn id(&self) -> TableId {
        self.def.id
    }

    /// With its database, for messages.
    pub(crate) fn name(&self) -> String {
        format!("{}.{}", self.def.database, self.def.name)
    }

    /// Whether a foreign key refers to it.
    pub fn is_parent(&self) -> bool {
        self.referenced.load(Ordering::Relaxed)
    }

    pub(crate) fn set_parent(&self, is_parent: bool) {
        self.referenced.store(is_parent, Ordering::Relaxed);
    }

    /// What the definition says of rows beyond types, if it says anything: for who writes rows. `compile` reads the definition,
    /// once.
    #[inline]
    pub fn rules(&self, compile: RuleCompiler) -> Result<Option<&RowRules>, SqlError> {
        if !self.has_rules {
            return Ok(None);
        }
        match self.rules.get_or_init(|| compile(&self.def)) {
            Ok(rules) => Ok(Some(rules)),
            Err(error) => Err(error.clone()),
        }
    }

    /// Whether it has foreign keys.
    pub fn is_child(&self) -> bool {
        !self.def.foreign_keys.is_empty()
    }

    /// Whether a change of this column changes keys of some index.
    pub(crate) fn is_key_column(&self, column: usize) -> bool {
        self.key_columns[column]
    }

    /// The unique index whose key stands for the row: the primary key, else (as in InnoDB) the first one without NULLs.
    pub(crate) fn clustered_index(&self) -> Option<usize> {
        let never_null = |index: &IndexDef| {
            index
                .parts
                .iter()
                .all(|part| part.prefix_len.is_none() && !self.def.columns[part.column].nullable)
        };
        let mut indexes = self.def.indexes.iter();
        let primary = indexes.position(|index| index.kind == IndexKind::Primary);
        primary.or_else(|| self.def.indexes.iter().position(|i| i.kind.is_unique() && never_null(i)))
    }

    /// Which of its indexes this is.
    pub(crate) fn position_of(&self, index: &IndexHandle) -> usize {
        let at = self.indexes.iter().position(|of| std::ptr::eq(&**of, index));
        at.expect("a scan goes along an index of its table")
    }

    /// Whether an index of another handle has the entries of one of this.
    pub(crate) fn has_tree_of(&self, other: &Self, index: usize) -> bool {
        self.indexes.iter().any(|own| Arc::ptr_eq(&own.tree, &other.indexes[index].tree))
    }

    pub fn indexes(&self) -> &[Arc<IndexHandle>] {
        &self.indexes
    }

    /// Rows, as of the newest committed changes; exact when nothing runs.
    pub fn row_count(&self) -> u64 {
        self.rows.load(Ordering::Relaxed).max(0) as u64
    }

    /// Bytes of its rows: of hot ones in memory, of column blocks as they are stored.
    pub fn data_bytes(&self) -> u64 {
        self.relation.data_bytes()
    }

    /// The value that the next insert without one will get.
    pub fn next_auto_increment(&self) -> u64 {
        self.auto_increment.load(Ordering::Relaxed)
    }

    /// The next generated value is this one. Nobody uses the table.
    pub(crate) fn set_auto_increment(&self, next: u64) {
        self.auto_increment.store(next.max(1), Ordering::Relaxed);
    }

    /// Reserves `count` consecutive AUTO_INCREMENT values and returns the first.
    pub fn reserve_auto_increment(&self, count: u64) -> u64 {
        let next = |first: u64| Some(first.saturating_add(count));
        match self.auto_increment.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
            Ok(first) | Err(first) => first,
        }
    }

    /// A value was stored in the AUTO_INCREMENT column, or is in a row that comes from elsewhere: later generated ones are greater.
    pub fn note_stored_number(&self, value: &Datum<'_>) {
        match *value {
            Datum::Int(used) => self.note_auto_increment(u64::try_from(used).unwrap_or(0)),
            Datum::UInt(used) => self.note_auto_increment(used),
            _ => {}
        }
    }

    /// An explicit value was stored: later generated ones are greater.
    pub fn note_auto_increment(&self, used: u64) {
        self.auto_increment.fetch_max(used.saturating_add(1), Ordering::Relaxed);
    }
}
