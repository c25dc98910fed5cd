//! The events of a run: that it began, and how it ended, with what it read and wrote.
//!
//! The form is that of [OpenLineage 2](https://openlineage.io/docs/spec/object-model); facets have the versions of its Python client
//! 1.54.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, SecondsFormat};
use serde_json::{Map, Value, json};
use tidetable_job::{Job, Project, Source};
use tidetable_record::{CheckRecord, ExportRecord, InputState, LoadRecord, Outcome, PartState, RunRecord};
use ulid::Ulid;

use super::dataset::Dataset;

const PRODUCER: &str = concat!("urn:tidetable:", env!("CARGO_PKG_VERSION"));
const SCHEMA: &str = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent";
/// States of inputs that a load read.
const READ: [InputState; 4] = [InputState::New, InputState::Changed, InputState::Grown, InputState::ReadAgain];

/// What events are about: a run of a job.
pub(super) struct RunEvents<'a> {
    pub(super) project: &'a Project,
    pub(super) job: &'a Job,
    pub(super) namespace: &'a str,
}

/// Facets by their keys.
type Facets = Map<String, Value>;

/// The facets of a dataset that is read or written.
#[derive(Default)]
struct DatasetFacets {
    /// Those of the dataset itself.
    own: Facets,
    /// Those of this reading or writing.
    of_run: Facets,
}

impl RunEvents<'_> {
    /// That a run began.
    pub(super) fn begin(&self, record: &RunRecord) -> Value {
        let inputs = self.sources().into_keys().map(|dataset| (dataset, DatasetFacets::default())).collect();
        self.event("START", record.started, record, inputs, self.outputs(record))
    }

    /// How a run ended. It read `others`, tables that other jobs make.
    pub(super) fn end(&self, record: &RunRecord, others: &BTreeSet<String>) -> Value {
        let state = match record.outcome {
            Outcome::Ok => "COMPLETE",
            Outcome::Interrupted => "ABORT",
            Outcome::Partial | Outcome::Checks | Outcome::Failed | Outcome::Running => "FAIL",
        };
        let at = record.finished.unwrap_or(record.started);
        self.event(state, at, record, self.inputs(record, others), self.outputs(record))
    }

    fn event(
        &self,
        state: &str,
        at: i64,
        record: &RunRecord,
        inputs: BTreeMap<Dataset, DatasetFacets>,
        outputs: BTreeMap<Dataset, DatasetFacets>,
    ) -> Value {
        json!({
            "eventType": state,
            "eventTime": time_text(at),
            "producer": PRODUCER,
            "schemaURL": SCHEMA,
            "run": { "runId": run_id(&record.run), "facets": run_facets(record) },
            "job": { "namespace": self.namespace, "name": self.job.name, "facets": job_facets() },
            "inputs": datasets(inputs, "inputFacets"),
            "outputs": datasets(outputs, "outputFacets"),
        })
    }

    /// The places that a source reads.
    fn places(&self, source: &Source) -> BTreeSet<Dataset> {
        source.spec.files.iter().map(|pattern| Dataset::of_files(self.project, pattern)).collect()
    }

    /// All places of sources, with the sources that read there.
    fn sources(&self) -> BTreeMap<Dataset, Vec<&Source>> {
        let mut sources: BTreeMap<Dataset, Vec<&Source>> = BTreeMap::new();
        for source in &self.job.sources {
            for place in self.places(source) {
                sources.entry(place).or_default().push(source);
            }
        }
        sources
    }

    /// What the run read: its sources, `others`, and what its checks asked.
    fn inputs(&self, record: &RunRecord, others: &BTreeSet<String>) -> BTreeMap<Dataset, DatasetFacets> {
        let mut inputs: BTreeMap<Dataset, DatasetFacets> = BTreeMap::new();
        for (dataset, sources) in self.sources() {
            let facets = inputs.entry(dataset).or_default();
            facets.own.extend([schema(&sources)]);
            // What a source of several places read is not known of each.
            if sources.iter().all(|source| self.places(source).len() == 1) {
                facets.of_run.extend(read_of(&sources, &record.loads));
            }
        }

        for table in others {
            inputs.entry(Dataset::of_table(self.project, table)).or_default();
        }

        let mut checks: BTreeMap<Dataset, Vec<&CheckRecord>> = BTreeMap::new();
        for check in &record.checks {
            checks.entry(Dataset::of_checked(self.project, self.job, &check.on)).or_default().push(check);
        }
        for (dataset, checks) in checks {
            inputs.entry(dataset).or_default().of_run.extend([assertions(&checks)]);
        }
        inputs
    }

    /// The tables and exports of the job, with what the run wrote of them.
    fn outputs(&self, record: &RunRecord) -> BTreeMap<Dataset, DatasetFacets> {
        let mut outputs: BTreeMap<Dataset, DatasetFacets> = BTreeMap::new();
        let asked = &record.asked.select;
        let is_asked = |name: String| asked.is_empty() || asked.contains(&name);

        for table in &self.job.tables {
            let name = &table.spec.name;
            let load = record.loads.iter().find(|load| load.table == *name);
            if !is_asked(format!("table:{name}")) && load.is_none() {
                continue;
            }

            let facets = outputs.entry(Dataset::of_table(self.project, name)).or_default();
            if let Some(load) = load {
                facets.own.extend([version(load)]);
                facets.of_run.extend((load.version != load.before).then(|| written(load)));
            }
        }
        for export in self.job.exports.iter().filter(|export| is_asked(format!("export:{}", export.name))) {
            let facets = outputs.entry(Dataset::of_export(self.project, &export.name)).or_default();
            let parts = record.exports.iter();
            let parts = parts.filter(|part| part.export == export.name && part.state == PartState::Published);
            let parts: Vec<&ExportRecord> = parts.collect();
            facets.of_run.extend((!parts.is_empty()).then(|| published(&parts)));
        }
        outputs
    }
}

/// The id of a run: its name, a ULID, whose 128 bits are written as those of a UUID.
fn run_id(run: &str) -> String {
    let bits = Ulid::from_string(run).unwrap_or_default().0;
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

fn time_text(micros: i64) -> String {
    DateTime::from_timestamp_micros(micros).unwrap_or_default().to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// A facet with its key; `schema` is its name and version in the standard.
fn facet(key: &str, schema: &str, mut fields: Value) -> (String, Value) {
    let (version, name) = schema.split_once('/').unwrap_or_default();
    fields["_producer"] = json!(PRODUCER);
    fields["_schemaURL"] = json!(format!("https://openlineage.io/spec/facets/{version}/{name}.json#/$defs/{name}"));
    (key.to_owned(), fields)
}

fn run_facets(record: &RunRecord) -> Facets {
    let engine = json!({ "name": "tidetable", "version": env!("CARGO_PKG_VERSION") });
    let mut facets = Facets::from_iter([
        facet("processing_engine", "1-1-1/ProcessingEngineRunFacet", engine),
        facet("nominalTime", "1-0-1/NominalTimeRunFacet", json!({ "nominalStartTime": time_text(record.now) })),
    ]);
    if let Some(message) = record.failure() {
        let error = json!({ "message": message, "programmingLanguage": "Rust" });
        facets.extend([facet("errorMessage", "1-0-1/ErrorMessageRunFacet", error)]);
    }
    facets
}

fn job_facets() -> Facets {
    let kind = json!({ "processingType": "BATCH", "integration": "TIDETABLE", "jobType": "JOB" });
    Facets::from_iter([facet("jobType", "2-0-4/JobTypeJobFacet", kind)])
}

fn datasets(datasets: BTreeMap<Dataset, DatasetFacets>, of_run: &str) -> Vec<Value> {
    let values = datasets.into_iter().map(|(dataset, facets)| {
        let mut value = json!(dataset);
        value["facets"] = json!(facets.own);
        value[of_run] = json!(facets.of_run);
        value
    });
    values.collect()
}

/// The declared columns of sources.
fn schema(sources: &[&Source]) -> (String, Value) {
    let mut names = BTreeSet::new();
    let columns = sources.iter().flat_map(|source| &source.spec.columns).filter(|column| names.insert(&column.name));
    let fields = columns.map(|column| json!({ "name": column.name, "type": column.kind.to_string() }));
    facet("schema", "1-2-0/SchemaDatasetFacet", json!({ "fields": fields.collect::<Vec<_>>() }))
}

/// What loads read of sources. Tables of one source read the same rows.
fn read_of(sources: &[&Source], loads: &[LoadRecord]) -> Option<(String, Value)> {
    let (mut rows, mut bytes, mut files) = (0, 0, 0);
    for source in sources {
        let loads = loads.iter().filter(|load| load.source == source.spec.name);
        let most = loads.max_by_key(|load| load.stats.rows_read)?;
        rows += most.stats.rows_read;
        bytes += most.stats.bytes_in;
        files += READ.iter().map(|state| most.count(*state)).sum::<u64>();
    }
    let read = json!({ "rowCount": rows, "size": bytes, "fileCount": files });
    Some(facet("inputStatistics", "1-0-0/InputStatisticsInputDatasetFacet", read))
}

/// The results of checks of one dataset.
fn assertions(checks: &[&CheckRecord]) -> (String, Value) {
    let results = checks.iter().map(|check| {
        let (rule, of) = check.rule.split_once(' ').unwrap_or((&check.rule, ""));
        let assertion = if rule == "rows" { "row_count" } else { rule };
        let mut result = json!({
            "assertion": assertion,
            "success": check.passed,
            "severity": check.severity,
            "name": check.check,
            "description": format!("{} of {}", check.rule, check.label),
            "actual": check.measured.to_string(),
        });
        if rule == "not_null" {
            result["column"] = json!(of);
        }
        result
    });
    let results: Vec<Value> = results.collect();
    facet("dataQualityAssertions", "1-1-0/DataQualityAssertionsDatasetFacet", json!({ "assertions": results }))
}

fn version(load: &LoadRecord) -> (String, Value) {
    let version = json!({ "datasetVersion": load.version.to_string() });
    facet("version", "1-0-1/DatasetVersionDatasetFacet", version)
}

fn written(load: &LoadRecord) -> (String, Value) {
    let LoadRecord { stats, ssts, .. } = load;
    output(json!({ "rowCount": stats.rows_written, "size": stats.bytes_out, "fileCount": ssts.len() }))
}

fn published(parts: &[&ExportRecord]) -> (String, Value) {
    let rows: u64 = parts.iter().map(|part| part.rows).sum();
    let bytes: u64 = parts.iter().map(|part| part.bytes).sum();
    output(json!({ "rowCount": rows, "size": bytes }))
}

fn output(statistics: Value) -> (String, Value) {
    facet("outputStatistics", "1-0-2/OutputStatisticsOutputDatasetFacet", statistics)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_keeps_its_bits_as_a_uuid() {
        assert_eq!(run_id("01ARZ3NDEKTSV4RRFFQ69G5FAV"), "01563e3a-b5d3-d676-4c61-efb99302bd5b");
    }
}
