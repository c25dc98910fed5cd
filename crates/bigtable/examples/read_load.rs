//! Reads from a server of the Data API and prints how fast: `read_load HOST:PORT TABLE points|scan [--seconds N] [--streams N]`.
//!
//! `points` reads single rows, each of a random key, in so many streams at a time; `scan` reads the whole table. One JSON
//! object goes to standard output.

use std::collections::VecDeque;
use std::error::Error;
use std::io::Write;
use std::time::{Duration, Instant};

use prost::Message;
use tidetable_bigtable::proto::data::bigtable_client::BigtableClient;
use tidetable_bigtable::proto::data::row_filter::{Chain, Filter};
use tidetable_bigtable::proto::data::{ReadRowsRequest, ReadRowsResponse, RowFilter, RowSet};
use tonic::transport::{Channel, Endpoint};

type Failed = Box<dyn Error + Send + Sync>;
type Client = BigtableClient<Channel>;

struct Load {
    table: String,
    mode: String,
    time: Duration,
    streams: usize,
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let mut args: VecDeque<String> = std::env::args().skip(1).collect();
    let mut next = || args.pop_front();
    let usage = "usage: read_load HOST:PORT TABLE points|scan [--seconds N] [--streams N]";
    let (Some(address), Some(table), Some(mode)) = (next(), next(), next()) else { return Err(usage.into()) };
    let mut load = Load {
        table: format!("projects/p/instances/i/tables/{table}"),
        mode,
        time: Duration::from_secs(5),
        streams: 16,
    };
    while let Some(option) = next() {
        let number: u64 = next().ok_or(usage)?.parse()?;
        match option.as_str() {
            "--seconds" => load.time = Duration::from_secs(number),
            "--streams" => load.streams = usize::try_from(number)?.max(1),
            _ => return Err(usage.into()),
        }
    }
    // As clients of Bigtable do it: windows that are large enough for a scan.
    let endpoint = Endpoint::from_shared(format!("http://{address}"))?
        .initial_stream_window_size(8 << 20)
        .initial_connection_window_size(16 << 20);
    let client = BigtableClient::new(endpoint.connect().await?).max_decoding_message_size(256 << 20);
    let line = match load.mode.as_str() {
        "points" => points(client, &endpoint, &load).await?,
        "scan" => scan(client, &load).await?,
        _ => return Err(usage.into()),
    };
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}

fn filter(filter: Filter) -> RowFilter {
    RowFilter { filter: Some(filter) }
}

/// Reads all rows, and counts.
async fn scan(mut client: Client, load: &Load) -> Result<String, Failed> {
    let started = Instant::now();
    let request = ReadRowsRequest { table_name: load.table.clone(), ..ReadRowsRequest::default() };
    let mut stream = client.read_rows(request).await?.into_inner();
    let (mut rows, mut cells, mut bytes) = (0_u64, 0_u64, 0_u64);
    while let Some(response) = stream.message().await? {
        bytes += response.encoded_len() as u64;
        for chunk in &response.chunks {
            cells += u64::from(chunk.value_size == 0);
            rows += u64::from(chunk.row_status.is_some());
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    let rate = |number: u64| number as f64 / seconds;
    Ok(format!(
        r#"{{"rows":{rows},"cells":{cells},"bytes":{bytes},"seconds":{seconds:.3},"cells_per_second":{:.0},"bytes_per_second":{:.0}}}"#,
        rate(cells),
        rate(bytes)
    ))
}

/// Keys of some rows.
async fn keys(mut client: Client, load: &Load) -> Result<Vec<bytes::Bytes>, Failed> {
    let filters = vec![filter(Filter::CellsPerRowLimitFilter(1)), filter(Filter::StripValueTransformer(true))];
    let request = ReadRowsRequest {
        table_name: load.table.clone(),
        filter: Some(filter(Filter::Chain(Chain { filters }))),
        ..ReadRowsRequest::default()
    };
    let mut stream = client.read_rows(request).await?.into_inner();
    let mut keys = Vec::new();
    while let Some(response) = stream.message().await? {
        keys.extend(response.chunks.into_iter().map(|chunk| chunk.row_key).filter(|key| !key.is_empty()));
    }
    Ok(keys)
}

/// Reads single rows in several streams for a time.
async fn points(client: Client, endpoint: &Endpoint, load: &Load) -> Result<String, Failed> {
    let keys = std::sync::Arc::new(keys(client, load).await?);
    if keys.is_empty() {
        return Err("the table is empty".into());
    }
    let started = Instant::now();
    let end = started + load.time;
    let mut running = Vec::new();
    for stream in 0..load.streams {
        // A connection for four streams, as a pool of channels has.
        let channel = if stream % 4 == 0 { Some(endpoint.connect().await?) } else { None };
        running.push((stream, channel));
    }
    let mut channels: Vec<Channel> = Vec::new();
    let mut tasks = Vec::new();
    for (stream, channel) in running {
        channels.extend(channel);
        let channel = channels.last().cloned().ok_or("no channel")?;
        let (keys, table) = (std::sync::Arc::clone(&keys), load.table.clone());
        tasks.push(tokio::spawn(async move {
            let mut client = BigtableClient::new(channel);
            let mut state = 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(stream as u64 + 1);
            let mut times = Vec::new();
            while Instant::now() < end {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let key = keys[(state >> 33) as usize % keys.len()].clone();
                let request = ReadRowsRequest {
                    table_name: table.clone(),
                    rows: Some(RowSet { row_keys: vec![key.clone()], row_ranges: Vec::new() }),
                    ..ReadRowsRequest::default()
                };
                let begun = Instant::now();
                let mut found = client.read_rows(request).await?.into_inner();
                let mut answer: Option<ReadRowsResponse> = None;
                while let Some(response) = found.message().await? {
                    answer.get_or_insert(response);
                }
                times.push(begun.elapsed());
                let is_right =
                    answer.is_some_and(|answer| answer.chunks.first().is_some_and(|chunk| chunk.row_key == key));
                if !is_right {
                    return Err::<Vec<Duration>, Failed>("a row was not found".into());
                }
            }
            Ok(times)
        }));
    }
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await??);
    }
    let seconds = started.elapsed().as_secs_f64();
    times.sort();
    let at = |share: f64| {
        times
            .get(((times.len() as f64 * share) as usize).min(times.len() - 1))
            .map_or(0.0, |time| time.as_secs_f64() * 1e3)
    };
    Ok(format!(
        r#"{{"reads":{},"seconds":{seconds:.3},"reads_per_second":{:.0},"p50_ms":{:.3},"p99_ms":{:.3},"max_ms":{:.3}}}"#,
        times.len(),
        times.len() as f64 / seconds,
        at(0.5),
        at(0.99),
        at(1.0)
    ))
}
