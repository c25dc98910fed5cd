//! Benchmark of queries in a warm session: `queries ROOT [METERS]`.
//!
//! ROOT is a store; METERS a Parquet file, registered as the table `side.public.meters`. Requests are lines of JSON
//! on stdin, responses lines of JSON on stdout, so that a script can run other engines in between:
//!
//! | request | answer |
//! |---|---|
//! | `{"sql": "..", "runs": 5}` | `{"seconds": [..], "rows": 10}`: planning, running and gathering the rows |
//! | the same with `"answer": "FILE"` | and the rows as lines of tab-separated text in FILE |
//! | `{"table": "SENSOR", "row": "0000000007#20170730", "runs": 1000}` | the same for the records of a row through the store's own interface |
//!
//! A failure gives a response with `error`. `--without-push-down` disables predicate pushdown.

use std::fs::File;
use std::io::{self, BufRead, BufWriter, Write, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::catalog::{CatalogProvider, MemTable, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider};
use datafusion::prelude::ParquetReadOptions;
use serde_json::{Value, json};
use tidetable_bench::Result;
use tidetable_blobs::LocalBlobs;
use tidetable_layout::KeyRange;
use tidetable_sql::{Session, SessionOptions};
use tidetable_store::Store;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const USAGE: &str = "usage: queries ROOT [METERS] [--without-push-down]";

fn main() -> Result<ExitCode> {
    let (options, paths): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|arg| arg.starts_with('-'));
    let (Some(root), true) = (paths.first(), options.iter().all(|option| option == "--without-push-down")) else {
        writeln!(io::stderr(), "{USAGE}")?;
        return Ok(ExitCode::from(2));
    };

    let store = Store::new(Arc::new(LocalBlobs::new(std::path::absolute(root)?)));
    let options = SessionOptions { without_push_down: !options.is_empty(), ..SessionOptions::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let session = Session::open(&store, &options)?;
    if let Some(meters) = paths.get(1) {
        runtime.block_on(register(&session, Path::new(meters)))?;
    }

    for line in stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let answer = match (&request["sql"], &request["row"]) {
            (Value::String(sql), _) => runtime.block_on(query(&session, sql, &request)),
            (_, Value::String(row)) => read_row(&store, row, &request),
            _ => Err("a request has `sql` or `row`".into()),
        };
        let answer = answer.unwrap_or_else(|error| json!({ "error": error.to_string() }));
        writeln!(stdout(), "{answer}")?;
        stdout().flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn register(session: &Session, meters: &Path) -> Result<()> {
    let context = session.context();
    let frame = context.read_parquet(meters.to_string_lossy().as_ref(), ParquetReadOptions::default()).await?;
    let schema = Arc::new(frame.schema().as_arrow().clone());
    let table = MemTable::try_new(schema, vec![frame.collect().await?])?;
    let (catalog, tables) = (MemoryCatalogProvider::new(), Arc::new(MemorySchemaProvider::new()));
    tables.register_table("meters".to_owned(), Arc::new(table))?;
    catalog.register_schema("public", tables)?;
    context.register_catalog("side", Arc::new(catalog));
    Ok(())
}

fn runs(request: &Value) -> u64 {
    request["runs"].as_u64().unwrap_or(1).max(1)
}

async fn query(session: &Session, sql: &str, request: &Value) -> Result<Value> {
    let (mut seconds, mut last) = (Vec::new(), Vec::new());
    for _ in 0..runs(request) {
        let clock = Instant::now();
        last = session.sql(sql).await?.collect().await?;
        seconds.push(clock.elapsed().as_secs_f64());
    }
    if let Value::String(path) = &request["answer"] {
        write_rows(&PathBuf::from(path), &last)?;
    }
    Ok(json!({ "seconds": seconds, "rows": last.iter().map(RecordBatch::num_rows).sum::<usize>() }))
}

fn write_rows(path: &Path, batches: &[RecordBatch]) -> Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let options = FormatOptions::default().with_null("NULL");
    for batch in batches {
        let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column.as_ref(), &options));
        let columns: Vec<ArrayFormatter<'_>> = columns.collect::<std::result::Result<_, _>>()?;
        for row in 0..batch.num_rows() {
            for (at, column) in columns.iter().enumerate() {
                write!(out, "{}{}", if at == 0 { "" } else { "\t" }, column.value(row))?;
            }
            writeln!(out)?;
        }
    }
    Ok(out.flush()?)
}

/// Reads the records of one row repeatedly, in one snapshot, through the store's own interface.
fn read_row(store: &Store, row: &str, request: &Value) -> Result<Value> {
    let snapshot = store.snapshot(request["table"].as_str().ok_or("a row is one of a `table`")?)?;
    let layout = snapshot.layout();
    let fields: Vec<usize> = (0..layout.records_schema().fields().len()).collect();
    let projection = layout.projection(&fields);
    let end = [row.as_bytes(), &[0]].concat();
    let range = KeyRange { start: row.as_bytes().to_vec(), end: Some(end) };

    let (mut seconds, mut rows) = (Vec::new(), 0);
    for _ in 0..runs(request) {
        let clock = Instant::now();
        rows = 0;
        if let Some(slice) = snapshot.whole(&range) {
            for block in snapshot.scan(&slice, &projection)? {
                rows += layout.decode(block?, &fields)?.num_rows();
            }
        }
        seconds.push(clock.elapsed().as_secs_f64());
    }
    Ok(json!({ "seconds": seconds, "rows": rows }))
}
