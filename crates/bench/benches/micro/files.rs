//! Inputs and tables for the benchmarks, made once.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use tidetable_bench::{Bench, Shape, Telemetry};
use tidetable_source::{Chunk, Parser};
use tidetable_store::Snapshot;

/// A new empty directory in the target directory; it stays after the run.
pub fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("micro").join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Telemetry whose first file is of about one chunk, and which lies in one day.
fn telemetry(shape: Shape) -> Telemetry {
    match shape {
        Shape::Meter => Telemetry::new(1500, 1),
        Shape::Metric => Telemetry::new(2500, 10),
    }
}

/// The first chunk of one file, and its length in bytes.
pub fn chunk(shape: Shape, name: &str) -> (Arc<Parser>, Chunk, u64) {
    let folder = folder(name);
    let first = shape.write(&folder, telemetry(shape)).unwrap().paths.remove(0);
    first_chunk(shape, &folder, &first)
}

fn first_chunk(shape: Shape, folder: &Path, file: &Path) -> (Arc<Parser>, Chunk, u64) {
    let bench = Bench::new(shape, folder, folder).unwrap();
    let source = shape.source(&[file.file_name().unwrap().to_str().unwrap()]);
    let input = bench.storage().discover(&source).unwrap().remove(0);
    let mut reader = bench.storage().open(&source, &input).unwrap();
    let chunk = reader.next().unwrap().unwrap();
    (reader.parser(), chunk, reader.bytes_read())
}

/// The rows of that chunk.
pub fn batch(shape: Shape, name: &str) -> RecordBatch {
    let (parser, chunk, _) = chunk(shape, name);
    parser.parse(chunk).unwrap().batch
}

/// The same rows as a chunk of a Parquet file.
pub fn parquet_chunk(shape: Shape, name: &str) -> (Arc<Parser>, Chunk, u64) {
    let batch = batch(shape, name);
    let folder = folder(name);
    let path = folder.join("rows.parquet");
    let zstd = Compression::ZSTD(ZstdLevel::default());
    let properties = WriterProperties::builder().set_compression(zstd).build();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    first_chunk(shape, &folder, &path)
}

/// A table of `loads` loads, each with some instants: the row of a meter is in that many SSTs.
pub fn table(shape: Shape, loads: usize, name: &str) -> Snapshot {
    let folder = folder(name);
    let (inputs, parts) = (folder.join("inputs"), folder.join("parts"));
    std::fs::create_dir_all(&parts).unwrap();
    let paths = shape.write(&inputs, telemetry(shape)).unwrap().paths;
    let texts: Vec<String> = paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let header = texts[0].lines().next().unwrap();
    let lines: Vec<&str> = texts.iter().flat_map(|text| text.lines().skip(1)).collect();
    let bench = Bench::new(shape, &parts, &folder.join("store")).unwrap();
    for (part, lines) in lines.chunks(lines.len().div_ceil(loads)).enumerate() {
        let file = format!("{part}.csv");
        std::fs::write(parts.join(&file), format!("{header}\n{}\n", lines.join("\n"))).unwrap();
        bench.load(&[&file]).unwrap();
    }
    let snapshot = bench.snapshot().unwrap();
    assert_eq!(snapshot.version().ssts().count(), loads);
    snapshot
}
