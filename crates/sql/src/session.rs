//! Sessions: queries over one store as it was when they were opened.

pub(crate) mod declared;
pub(crate) mod dialect;
pub(crate) mod meaning;
pub(crate) mod numbers;
pub(crate) mod script;
pub(crate) mod select_all;
pub(crate) mod statement;
pub(crate) mod unsteady;

use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::catalog::{CatalogProviderList, MemoryCatalogProviderList};
use datafusion::common::Column;
use datafusion::execution::disk_manager::DiskManagerBuilder;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder};
use datafusion::logical_expr::{Expr, cast};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use datafusion::scalar::ScalarValue;
use tidetable_store::Store;

use crate::catalog::external::ExternalTables;
use crate::catalog::names::{CATALOG, RECORDS};
use crate::catalog::{StoreCatalog, TableVersions, TableViews, Tables};
use crate::error::Result;
use crate::functions::{register, totals};
use crate::optimizer::partial_aggregate::AggregateInScan;
use crate::optimizer::sort_merge_join::JoinsThatSpill;
use crate::optimizer::top_k::TopInOrder;
use crate::pushdown::value_sets::ALWAYS;
use crate::scan::spec::EvenBatches;
use crate::session::statement::{OwnTypes, parse, plan};
use crate::shared_scan::{Asked, InPass, SharedScan};
use crate::views::planner::{ViewPlanner, Views, name_tables};
use crate::workarounds;
use crate::workarounds::floats;

/// Rows that are worked on at a time, at least.
const LEAST_ROWS: usize = 128;
/// What a sort wrote to disk is merged by so many runs at a time: of more it would take all memory that is free, and leave
/// none to the other sort of a join.
const MERGED_AT_ONCE: usize = 4;

/// How a session runs its queries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionOptions {
    /// Parts of a query that run side by side; as many as there are cores by default.
    pub target_partitions: Option<usize>,
    /// Bytes that sorting, grouping and joining may hold; no limit by default. What is more is written to disk. With a limit
    /// a query runs as one part.
    pub memory: Option<u64>,
    /// Which versions of tables are read; the newest by default.
    pub versions: TableVersions,
    /// Whether files are tables by their names in quotes: `SELECT * FROM 'readings.parquet'`.
    pub files: bool,
    /// Tables that were declared over files, and may be; without, none can be declared.
    pub external: Option<ExternalTables>,
    /// Reads whole tables whatever the query asks for. Slower, and with the same answers.
    pub without_push_down: bool,
}

/// Answers queries about a store. A table is read in the version that the options name, or else in the
/// one that was the newest when the session, or one it was made from, first used it.
#[derive(Clone)]
pub struct Session {
    context: SessionContext,
    tables: Arc<Tables>,
    time: Range<i64>,
    push_down: bool,
    external: Option<ExternalTables>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("tables", &self.tables).field("time", &self.time).finish_non_exhaustive()
    }
}

impl Session {
    /// A session over the tables that `store` has now. A table that cannot be opened gives its error
    /// to the query that uses it.
    ///
    /// # Errors
    /// If the store cannot be listed.
    pub fn open(store: &Store, options: &SessionOptions) -> Result<Self> {
        let tables =
            Arc::new(Tables::list(store, options.versions.clone(), options.external.clone().unwrap_or_default())?);
        let mut config = SessionConfig::new()
            .with_create_default_catalog_and_schema(false)
            .with_default_catalog_and_schema(CATALOG, RECORDS)
            .with_information_schema(true);
        read_as_written(&mut config);
        if let Some(partitions) = options.target_partitions {
            config = config.with_target_partitions(partitions.max(1));
        }
        let mut runtime = RuntimeEnvBuilder::new();
        if let Some(memory) = options.memory {
            let memory = usize::try_from(memory).unwrap_or(usize::MAX);
            let disk = DiskManagerBuilder::default().with_max_spill_merge_fan_in(MERGED_AT_ONCE);
            runtime = runtime.with_disk_manager_builder(disk);
            runtime = runtime.with_memory_pool(Arc::new(FairSpillPool::new(memory)));
            spill(&mut config, memory);
        }
        let push_down = !options.without_push_down;
        let views = TableViews { tables: Arc::clone(&tables), push_down };
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime.build_arc()?)
            .with_analyzer_rules(floats::analyzer_rules())
            .with_optimizer_rules(workarounds::logical_rules())
            .with_physical_optimizer_rules(physical_rules(options.memory))
            .with_catalog_list(catalogs(&tables, &ALWAYS, None, push_down));
        let state = with_views(state, Arc::new(views)).build();
        let context = SessionContext::new_with_state(state);
        let context = if options.files { context.enable_url_table() } else { context };
        Ok(Self { context, tables, time: ALWAYS, push_down, external: options.external.clone() })
    }

    /// A session in which every `records.T` shows only records whose event time lies in `time`
    /// (microseconds since the epoch, half-open) and in the range of this session. `cells.T`,
    /// `rows.T` and `exports` show everything.
    #[must_use]
    pub fn restricted(&self, time: Range<i64>) -> Self {
        self.with_records(time, None)
    }

    /// A sequential session for the period `at` of a pass: restricted to it, and given what the pass reads for several
    /// periods.
    #[must_use]
    pub fn in_pass(&self, pass: &Arc<SharedScan>, at: usize) -> Self {
        self.with_records(pass.time(at), Some(InPass { pass: Arc::clone(pass), at })).sequential()
    }

    fn with_records(&self, time: Range<i64>, pass: Option<InPass>) -> Self {
        let time = time.start.max(self.time.start)..time.end.min(self.time.end);
        let state = SessionStateBuilder::new_from_existing(self.context.state())
            .with_catalog_list(catalogs(&self.tables, &time, pass, self.push_down))
            .build();
        Self { context: SessionContext::new_with_state(state), time, ..self.clone() }
    }

    /// A session that runs its queries as one part each, so that the same data gives the same rows in
    /// the same order, and the same sums of floats: also when a compaction has cut the table otherwise, so nothing is
    /// summed up in parts.
    #[must_use]
    pub fn sequential(&self) -> Self {
        let existing = self.context.state();
        let config = existing.config().clone().with_target_partitions(1).with_extension(Arc::new(EvenBatches));
        let state = SessionStateBuilder::new_from_existing(existing)
            .with_config(config)
            .with_physical_optimizer_rules(workarounds::physical_rules())
            .build();
        Self { context: SessionContext::new_with_state(state), ..self.clone() }
    }

    /// Plans a query.
    ///
    /// # Errors
    /// If it is not valid, or a table of it cannot be opened.
    pub async fn sql(&self, query: &str) -> Result<DataFrame> {
        let plan = plan(&self.context.state(), query).await?;
        in_utc(self.context.execute_logical_plan(plan).await?)
    }

    /// Declares a table over files, if `statement` is a `CREATE EXTERNAL TABLE` and this session may have such tables. Returns
    /// its name; `None` for any other statement, of which nothing is done.
    ///
    /// # Errors
    /// If the statement is not SQL, or the table cannot be declared.
    pub async fn declare(&self, statement: &str) -> Result<Option<String>> {
        let Some(external) = &self.external else { return Ok(None) };
        let state = self.context.state();
        external.declare(&state, parse(&state, statement)?, self.tables.names()).await
    }

    /// Plans a query with values for its `$name` parameters; values it does not ask for are ignored.
    ///
    /// # Errors
    /// As [`Session::sql`], and if the query has a parameter that `params` does not.
    pub async fn sql_with(&self, query: &str, params: &[(&str, ScalarValue)]) -> Result<DataFrame> {
        let frame = self.sql(query).await?;
        Ok(frame.with_param_values(params.to_vec())?)
    }

    /// Plans a query and starts it; its rows come as it is asked for them.
    ///
    /// # Errors
    /// As [`Session::sql`].
    pub async fn stream(&self, query: &str) -> Result<SendableRecordBatchStream> {
        Ok(self.sql(query).await?.execute_stream().await?)
    }

    /// What a query asks of files when it is run in sequence.
    ///
    /// # Errors
    /// As [`Session::sql_with`].
    pub async fn asked(&self, query: &str, params: &[(&str, ScalarValue)]) -> Result<Asked> {
        let frame = self.sequential().sql_with(query, params).await?;
        Ok(Asked::of(&frame.create_physical_plan().await?)?)
    }

    /// The tables and exports that `query` reads, by schema and name, ascending. A view of rows with
    /// options reads `rows.T`.
    ///
    /// # Errors
    /// If it is not valid SQL.
    pub fn references(&self, query: &str) -> Result<Vec<(String, String)>> {
        table_references(&self.context, query, self.tables.names())
    }

    /// The engine's own session.
    pub fn context(&self) -> &SessionContext {
        &self.context
    }
}

/// Moments that a query gives in another zone, in UTC, as those of tables are: whatever prints or writes them need not know zones.
fn in_utc(frame: DataFrame) -> Result<DataFrame> {
    let is_utc = |zone: &str| matches!(zone, "UTC" | "+00:00");
    let elsewhere = |kind: &DataType| match kind {
        DataType::Timestamp(unit, Some(zone)) if !is_utc(zone) => Some(DataType::Timestamp(*unit, Some("UTC".into()))),
        _ => None,
    };
    let schema = frame.schema();
    if !schema.fields().iter().any(|field| elsewhere(field.data_type()).is_some()) {
        return Ok(frame);
    }
    let columns: Vec<Expr> = schema
        .iter()
        .map(|(table, field)| {
            let column = Expr::Column(Column::from((table, field)));
            match elsewhere(field.data_type()) {
                Some(utc) => cast(column, utc).alias_qualified(table.cloned(), field.name()),
                None => column,
            }
        })
        .collect();
    Ok(frame.select(columns)?)
}

/// See [`Session::references`]; `tables` are those that there are.
pub(crate) fn table_references(
    context: &SessionContext,
    query: &str,
    tables: &[String],
) -> Result<Vec<(String, String)>> {
    let state = context.state();
    let mut statement = parse(&state, query)?;
    name_tables(&mut statement, tables)?;
    let references = state.resolve_table_references(&statement)?;
    let mut names: Vec<(String, String)> = references
        .into_iter()
        .map(|reference| reference.resolve(CATALOG, RECORDS))
        .map(|reference| (reference.schema.to_string(), reference.table.to_string()))
        .collect();
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// What every session has beside its tables: views of rows, and the functions and types that are
/// written for Bigtable.
pub(crate) fn with_views(builder: SessionStateBuilder, views: Arc<dyn Views>) -> SessionStateBuilder {
    let builder = totals::register(register(builder.with_default_features()));
    builder.with_type_planner(Arc::new(OwnTypes)).with_relation_planners(vec![Arc::new(ViewPlanner(views))])
}

/// Names keep their case, and `600.60` is that decimal and not the double nearest to it.
pub(crate) fn read_as_written(config: &mut SessionConfig) {
    let parser = &mut config.options_mut().sql_parser;
    parser.enable_ident_normalization = false;
    parser.parse_float_as_decimal = true;
    // So that a mistake has a place.
    parser.collect_spans = true;
}

/// Settings with which sorts, groups and joins do with `memory` bytes, and write to disk what does not fit.
fn spill(config: &mut SessionConfig, memory: usize) {
    // What a part holds at a time, of rows of a kilobyte, so that some of it fits.
    let rows = config.batch_size().min(memory / (16 * 1024)).max(LEAST_ROWS);
    // Parts that run side by side wait for each other's memory, and may wait for ever where rows are dealt out between them.
    *config = config.clone().with_batch_size(rows).with_target_partitions(1);
    let options = config.options_mut();
    // Kept free by each sort for merging what it wrote; the usual 10 MiB may be more than there is.
    let merging = &mut options.execution.sort_spill_reservation_bytes;
    *merging = (*merging).min(memory / 8);
}

/// DataFusion's rules with workarounds, and ours once filters are in their final place and before partitions are merged.
fn physical_rules(memory: Option<u64>) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = workarounds::physical_rules();
    let place = rules.iter().position(|rule| rule.name() == "FilterPushdown").map_or(rules.len(), |at| at + 1);
    if let Some(memory) = memory {
        let most = usize::try_from(memory / 4).unwrap_or(usize::MAX);
        rules.insert(place, Arc::new(JoinsThatSpill { most }));
    }
    rules.insert(place, Arc::new(AggregateInScan));
    let last = rules.iter().position(|rule| rule.name() == workarounds::LAST).unwrap_or(rules.len());
    rules.insert(last, Arc::new(TopInOrder));
    rules
}

fn catalogs(
    tables: &Arc<Tables>,
    time: &Range<i64>,
    pass: Option<InPass>,
    push_down: bool,
) -> Arc<dyn CatalogProviderList> {
    let list = MemoryCatalogProviderList::new();
    list.register_catalog(CATALOG.to_owned(), Arc::new(StoreCatalog::new(tables, time, pass, push_down)));
    Arc::new(list)
}
