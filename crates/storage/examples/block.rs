//! Measures column blocks on TPC-H data: size on disk, encoding and decoding rates, filters, point access.
//!
//! `cargo run --release -p avocet-storage --example block -- [scale factor] [table…]`

use std::hint::black_box;
use std::time::Instant;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::Schema;
use avocet_storage::cold::{
    Bitmap, ColdType, ColdValue, ColumnPredicate, CompareOp, EncodedChunk, EncodedColumn, MAX_ROWS, Ordinals,
    Selection, assemble, encode_column,
};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow,
    SupplierArrow,
};

/// What one column did over all blocks of a table.
#[derive(Default)]
struct Figures {
    encodings: Vec<String>,
    rows: usize,
    raw: usize,
    bytes: usize,
    encode: Series,
    parse: Series,
    decode: Series,
    sparse: Series,
    filter: Series,
    point: Series,
}

/// Nanoseconds per value of one thing done for each block. The fastest tenth stands for all, so that what
/// else runs on the machine disturbs little.
#[derive(Default)]
struct Series(Vec<f64>);

impl Series {
    fn time<T>(&mut self, values: usize, f: impl FnOnce() -> T) -> T {
        let (start, cpu) = (Instant::now(), cpu_ns());
        let out = black_box(f());
        let wall = start.elapsed().as_nanos() as f64;
        // Processor time comes in ticks of milliseconds: of use only where there are many of them.
        let used = match cpu.zip(cpu_ns()) {
            Some((from, to)) if wall > 1e7 => wall.min((to - from) as f64),
            _ => wall,
        };
        self.0.push(used / values.max(1) as f64);
        out
    }

    fn typical(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 10).copied().unwrap_or(0.0)
    }
}

/// Processor time of this thread, where the system tells.
fn cpu_ns() -> Option<u64> {
    std::fs::read_to_string("/proc/thread-self/schedstat").ok()?.split(' ').next()?.parse().ok()
}

fn main() {
    let mut args = std::env::args().skip(1);
    let sf: f64 = args.next().map_or(1.0, |a| a.parse().expect("a scale factor"));
    let tables: Vec<String> = args.collect();
    let all = ["lineitem", "orders", "partsupp", "part", "customer", "supplier", "nation", "region"];
    let mut total = 0;
    for table in all {
        if tables.is_empty() || tables.iter().any(|t| t == table) {
            total += measure(table, batches(table, sf));
        }
    }
    println!("\nall tables: {:.1} MB", total as f64 / 1e6);
}

fn batches(table: &str, sf: f64) -> Box<dyn Iterator<Item = RecordBatch>> {
    macro_rules! table {
        ($arrow:ident, $generator:ident) => {
            Box::new(
                $arrow::new($generator::new(sf, 1, 1))
                    .with_batch_size(MAX_ROWS)
                    .map(|batch| batch.expect("generated data makes batches")),
            )
        };
    }
    match table {
        "lineitem" => table!(LineItemArrow, LineItemGenerator),
        "orders" => table!(OrderArrow, OrderGenerator),
        "partsupp" => table!(PartSuppArrow, PartSuppGenerator),
        "part" => table!(PartArrow, PartGenerator),
        "customer" => table!(CustomerArrow, CustomerGenerator),
        "supplier" => table!(SupplierArrow, SupplierGenerator),
        "nation" => table!(NationArrow, NationGenerator),
        _ => table!(RegionArrow, RegionGenerator),
    }
}

fn measure(table: &str, batches: impl Iterator<Item = RecordBatch>) -> usize {
    let mut figures: Vec<Figures> = Vec::new();
    let mut schema = None;
    let (mut stored, mut blocks) = (0, 0);
    for batch in batches {
        let types = ColdType::of_schema(&batch.schema()).expect("TPC-H has supported types");
        schema.get_or_insert_with(|| batch.schema());
        figures.resize_with(types.len(), Figures::default);
        let mut chunks = Vec::new();
        for ((figures, &ty), array) in figures.iter_mut().zip(types.iter()).zip(batch.columns()) {
            chunks.push(measure_column(figures, ty, array));
        }
        let block = assemble(chunks, Ordinals::Dense(batch.num_rows() as u32)).expect("chunks make a block");
        stored += block.bytes.len();
        blocks += 1;
    }
    let schema = schema.expect("a table has rows");
    print(table, &schema, &figures);
    let data: usize = figures.iter().map(|f| f.bytes).sum();
    let encode: f64 = figures.iter().map(|f| f.encode.typical() * f.rows as f64 / 1e9).sum();
    let raw: usize = figures.iter().map(|f| f.raw).sum();
    println!(
        "{table}: {:.2} MB in {blocks} blocks ({:.2} MB chunks), encoded at {:.0} MB/s of Arrow ({:.2} s)",
        stored as f64 / 1e6,
        data as f64 / 1e6,
        raw as f64 / 1e6 / encode,
        encode
    );
    stored
}

fn measure_column(figures: &mut Figures, ty: ColdType, array: &ArrayRef) -> EncodedChunk {
    let rows = array.len();
    let chunk = figures.encode.time(rows, || encode_column(ty, array)).expect("the column encodes");
    let name = format!("{:?}", chunk.meta.encoding);
    if !figures.encodings.contains(&name) {
        figures.encodings.push(name);
    }
    figures.rows += rows;
    figures.raw += array.get_buffer_memory_size().min(array.get_array_memory_size());
    figures.bytes += chunk.bytes.len();
    let column = figures
        .parse
        .time(rows, || EncodedColumn::parse(&chunk.meta, rows, &chunk.bytes))
        .expect("what was encoded parses");
    figures.decode.time(rows, || column.decode()).expect("what was encoded decodes");
    let some: Vec<u32> = (0..rows as u32).step_by(20).collect();
    figures.sparse.time(some.len(), || column.decode_selected(Selection::Rows(&some))).expect("rows decode");
    let pivot = column.value_at(rows / 2).expect("a value").map(ColdValue::into_owned);
    if let Some(pivot) = pivot {
        let mut selected = Bitmap::ones(rows);
        let pred = ColumnPredicate::Compare(CompareOp::Lt, pivot);
        figures.filter.time(rows, || column.filter(&pred, &mut selected)).expect("the filter runs");
    }
    let points: Vec<usize> = (0..1000).map(|i| i * 7919 % rows).collect();
    figures.point.time(points.len(), || {
        for &row in &points {
            black_box(column.value_at(row).expect("a value"));
        }
    });
    chunk
}

fn print(table: &str, schema: &Schema, figures: &[Figures]) {
    println!(
        "\n{table:<18} {:<12} {:>8} {:>6} {:>8} {:>8} {:>9} {:>9} {:>9} {:>8}",
        "encoding", "MB", "bits/v", "enc ns/v", "parse", "dec ns/v", "1/20 ns/v", "filt ns/v", "point ns"
    );
    for (field, f) in schema.fields().iter().zip(figures) {
        println!(
            "{:<18} {:<12} {:>8.3} {:>6.1} {:>8.2} {:>8.3} {:>9.3} {:>9.3} {:>9.3} {:>8.1}",
            field.name(),
            f.encodings.join("+"),
            f.bytes as f64 / 1e6,
            f.bytes as f64 * 8.0 / f.rows as f64,
            f.encode.typical(),
            f.parse.typical(),
            f.decode.typical(),
            f.sparse.typical(),
            f.filter.typical(),
            f.point.typical(),
        );
    }
}
