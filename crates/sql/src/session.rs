//! Sessions: configuration, planning and execution of queries over one store.

pub(crate) mod centroids;
pub(crate) mod declared;
pub(crate) mod execution;
pub(crate) mod expressions;
pub(crate) mod nodes;
pub(crate) mod numbered;
pub(crate) mod options;
pub(crate) mod parameters;
pub(crate) mod planning;
pub(crate) mod references;
pub(crate) mod signatures;
pub(crate) mod spill;
pub(crate) mod tables;
pub(crate) mod utc;

use std::ops::Range;
use std::sync::Arc;

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::{CatalogProviderList, MemoryCatalogProviderList};
use datafusion::execution::disk_manager::DiskManagerBuilder;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use datafusion::scalar::ScalarValue;
use futures::StreamExt;
use tidetable_functions::bound_sizes;
use tidetable_store::read::ALL_TIMES;
use tidetable_store::{Snapshot, Store};
use tidetable_upstream::rules::node_rule::Rule;

use crate::catalog::exports::{bucket_url, files_url};
use crate::catalog::external::ExternalTables;
use crate::catalog::files::arrow_format::CheckedArrowFactory;
use crate::catalog::files::is_file;
use crate::catalog::{StoreCatalog, TableVersions, TableViews, Tables, with_schemas};
use crate::error::{Result, SqlError};
use crate::names::{CATALOG, RECORDS, ROWS};
use crate::optimizer::group_top_k::top_by_group;
use crate::optimizer::key_order::windows_in_key_order;
use crate::optimizer::newest_windows::newest_windows_first;
use crate::optimizer::partial_aggregate::aggregate_in_scan;
use crate::optimizer::sort_merge_join::joins_that_spill;
use crate::optimizer::{logical_rules, plain_rules};
use crate::planning_thread::plan_on_thread;
use crate::row_windows::exec::windows_by_batch;
use crate::scan::spec::FixedBatchSize;
use crate::session::centroids::bounded_centroids;
use crate::session::numbered::{numbered_types, plan_numbered};
use crate::session::options::{set_planning_options, with_sql_features};
use crate::session::parameters::replace_parameters;
use crate::session::planning::{
    PlannedQuery, physical, plan_frame, stoppable_analyzer, stoppable_logical, stoppable_physical,
};
use crate::session::references::table_references;
use crate::session::signatures::scans_of;
use crate::session::spill::SpillSpace;
use crate::session::tables::{TableColumns, all_tables, table_names};
use crate::session::utc::convert_to_utc;
use crate::shared_scan::{ScanSignatures, SharedScan, SharedScanPeriod};
use crate::syntax::googlesql::GoogleSql;
use crate::syntax::headings::with_written_names;
use crate::syntax::statement::{NamedStatement, parse, parse_with_names, plan_named, plan_statement};
use crate::system::{System, SystemNames, SystemTables};

/// Fewest rows of a batch under a memory limit.
const MIN_BATCH_ROWS: usize = 128;
/// Spilled runs that a sort merges at a time. With more, one input of a sort merge join would take the memory that the
/// sort of the other input needs.
const SPILL_MERGE_FAN_IN: usize = 4;

/// How often a query is planned whose export is published again before it has rows.
const MAX_PLANS: usize = 4;

/// How a session reads its store and runs its queries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionOptions {
    /// Partitions that run concurrently; by default one per core.
    pub target_partitions: Option<usize>,
    /// Memory limit of sorts, aggregations and joins, bytes; none by default. Beyond it they spill to disk. With a
    /// limit, a query runs in one partition.
    pub memory: Option<u64>,
    /// Versions of the tables to read; the newest by default.
    pub versions: TableVersions,
    /// Whether quoted file names are tables: `SELECT * FROM 'readings.parquet'`.
    pub files: bool,
    /// External tables of the session, to which `CREATE EXTERNAL TABLE` adds; `None` refuses that statement.
    pub external: Option<ExternalTables>,
    /// Disables pushdown into scans: slower, with the same results.
    pub without_push_down: bool,
    /// Whether columns without a name are named as the query writes them: `sum(kwh)`, not `sum(SENSOR.kwh)`. Exports
    /// keep the names that DataFusion gives.
    pub written_names: bool,
}

/// Queries over a store. Each table is read in one version: the one that the options name, or else the newest one at
/// the first use of the table. Sessions derived from one another share these versions.
#[derive(Clone)]
pub struct Session {
    context: SessionContext,
    tables: Arc<Tables>,
    /// Event times of the records in `records.T`, microseconds, half-open.
    time: Range<i64>,
    push_down: bool,
    written_names: bool,
    external: Option<ExternalTables>,
    /// System catalogs, for a session that answers queries of these.
    system: Option<System>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("tables", &self.tables).field("time", &self.time).finish_non_exhaustive()
    }
}

impl Session {
    /// A session over the tables that `store` has now; in a bucket, over those that it has when a query first names them. A
    /// table that cannot be opened fails the queries that use it.
    ///
    /// # Errors
    /// If the store cannot be listed.
    pub fn open(store: &Store, options: &SessionOptions) -> Result<Self> {
        let external = options.external.clone().unwrap_or_default();
        let tables = Arc::new(Tables::open(store, options.versions.clone(), external, options.files)?);

        let mut config = SessionConfig::new()
            .with_create_default_catalog_and_schema(false)
            .with_default_catalog_and_schema(CATALOG, RECORDS)
            .with_information_schema(true);
        set_planning_options(&mut config);
        if let Some(partitions) = options.target_partitions {
            config = config.with_target_partitions(partitions.max(1));
        }
        let mut runtime = RuntimeEnvBuilder::new();
        if let Some(memory) = options.memory {
            let memory = usize::try_from(memory).unwrap_or(usize::MAX);
            let disk = DiskManagerBuilder::default()
                .with_max_spill_merge_fan_in(SPILL_MERGE_FAN_IN)
                .with_temp_file_factory(Arc::new(SpillSpace::default()));
            runtime = runtime.with_disk_manager_builder(disk);
            runtime = runtime.with_memory_pool(Arc::new(FairSpillPool::new(memory)));
            set_spill_options(&mut config, memory);
        }

        let push_down = !options.without_push_down;
        let views = TableViews { tables: Arc::clone(&tables), push_down };

        let runtime = runtime.build_arc()?;
        let mut logical = if push_down { logical_rules() } else { plain_rules() };
        logical.push(bounded_centroids());
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(Arc::clone(&runtime))
            .with_analyzer_rules(stoppable_analyzer(tidetable_upstream::analyzer_rules()))
            .with_optimizer_rules(stoppable_logical(logical))
            .with_physical_optimizer_rules(stoppable_physical(physical_rules(options.memory, push_down)))
            .with_catalog_list(catalogs(&tables, &ALL_TIMES, None, push_down));

        let mut state = with_sql_features(state, Arc::new(views));
        if let Some(memory) = options.memory {
            state = bound_sizes(state, usize::try_from(memory).unwrap_or(usize::MAX), &runtime.memory_pool);
        }

        let mut state = state.build();
        state.register_file_format(Arc::new(CheckedArrowFactory), true)?;
        let context = SessionContext::new_with_state(state);
        tables.read_files_with(&context)?;
        match store.blobs().bucket() {
            Some(bucket) => context.register_object_store(&bucket_url()?, bucket.client),
            None => context.register_object_store(&files_url()?, Arc::clone(tables.published().files()) as _),
        };

        let (written_names, external) = (options.written_names, options.external.clone());
        Ok(Self { context, tables, time: ALL_TIMES, push_down, written_names, external, system: None })
    }

    /// A session in which `records.T`, for each table `T`, has only the records with an event time in `time`
    /// (microseconds since the epoch, half-open) and in the time range of this session. `cells.T`, `rows.T` and
    /// `exports` are not restricted.
    #[must_use]
    pub fn restricted(&self, time: Range<i64>) -> Self {
        self.with_time_range(time, None)
    }

    /// A sequential session for one period of a shared scan: restricted to the event times of the period. Its scans
    /// take their records from the shared scan where that has them.
    #[must_use]
    pub fn for_shared_scan(&self, scan: &Arc<SharedScan>, period: usize) -> Self {
        let time = scan.time(period);
        self.with_time_range(time, Some(SharedScanPeriod { scan: Arc::clone(scan), period })).sequential()
    }

    fn with_time_range(&self, time: Range<i64>, shared_scan: Option<SharedScanPeriod>) -> Self {
        let time = time.start.max(self.time.start)..time.end.min(self.time.end);
        let state = SessionStateBuilder::new_from_existing(self.context.state())
            .with_catalog_list(catalogs(&self.tables, &time, shared_scan, self.push_down))
            .build();
        Self { context: SessionContext::new_with_state(state), time, ..self.clone() }
    }

    /// A session in which a table without a schema is `rows.T`, as in GoogleSQL for Bigtable, instead of `records.T`.
    #[must_use]
    pub fn with_rows(&self) -> Self {
        self.with_default_schema(ROWS)
    }

    /// A session in which a table without a schema is one of `schema`, such as `cells`. Schemas that do not exist have no tables.
    #[must_use]
    pub fn with_default_schema(&self, schema: &str) -> Self {
        let existing = self.context.state();
        let config = existing.config().clone().with_default_catalog_and_schema(CATALOG, schema);
        let state = SessionStateBuilder::new_from_existing(existing).with_config(config).build();
        Self { context: SessionContext::new_with_state(state), ..self.clone() }
    }

    /// A session whose queries are GoogleSQL throughout, not only in their functions: `1 / 2` is 0.5, `"x"` is text, `[0]` is the
    /// first item of an array. With `strict` it refuses what Bigtable refuses, such as joins.
    #[must_use]
    pub fn with_googlesql(&self, strict: bool) -> Self {
        let existing = self.context.state();
        let mut config = existing.config().clone().with_extension(Arc::new(GoogleSql { strict }));
        config.options_mut().sql_parser.parse_float_as_decimal = false;
        let state = SessionStateBuilder::new_from_existing(existing).with_config(config).build();
        Self { context: SessionContext::new_with_state(state), ..self.clone() }
    }

    /// A session that runs queries in one partition and without partial aggregation in the scan, so that the same data
    /// gives the same rows in the same order and the same statistics, such as `stddev`, also after a compaction.
    #[must_use]
    pub fn sequential(&self) -> Self {
        let existing = self.context.state();
        let config = existing.config().clone().with_target_partitions(1).with_extension(Arc::new(FixedBatchSize));
        let state = SessionStateBuilder::new_from_existing(existing)
            .with_config(config)
            .with_physical_optimizer_rules(stoppable_physical(tidetable_upstream::physical_rules()))
            .build();
        Self { context: SessionContext::new_with_state(state), ..self.clone() }
    }

    /// Plans a query. Dropping the future gives it up.
    ///
    /// # Errors
    /// If it is not valid, or one of its tables cannot be opened.
    pub async fn sql(&self, query: &str) -> Result<DataFrame> {
        let (session, query) = (self.clone(), query.to_owned());
        plan_on_thread(move || async move { session.sql_here(&query).await }).await
    }

    /// As [`Session::sql`], but on the stack of the calling thread.
    async fn sql_here(&self, query: &str) -> Result<DataFrame> {
        let state = self.context.state();
        if !self.written_names {
            let plan = plan_statement(&state, parse(&state, query)?).await?;
            return convert_to_utc(self.context.execute_logical_plan(plan).await?);
        }

        let NamedStatement { statement, with_inner_names, names } = parse_with_names(&state, query)?;
        let plan = plan_named(&state, statement, with_inner_names).await?;
        let frame = convert_to_utc(self.context.execute_logical_plan(plan).await?)?;
        match names {
            Some(names) => Ok(with_written_names(frame, &names)?),
            None => Ok(frame),
        }
    }

    /// Declares an external table and returns its name, if `statement` is a `CREATE EXTERNAL TABLE` and this session
    /// has [`SessionOptions::external`]; otherwise returns `None` and does nothing.
    ///
    /// # Errors
    /// If the statement is not SQL, or the table cannot be declared.
    pub async fn declare(&self, statement: &str) -> Result<Option<String>> {
        let Some(external) = &self.external else { return Ok(None) };
        let state = self.context.state();
        let statement = parse(&state, statement).map_err(SqlError::planning)?;
        external.declare(&state, statement, |name| Ok(self.tables.names()?.iter().any(|table| table == name))).await
    }

    /// Plans a query with values for its `$name` parameters; unused values are ignored.
    ///
    /// # Errors
    /// As [`Session::sql`], and if a parameter of the query is not in `params`.
    pub async fn sql_with(&self, query: &str, params: &[(&str, ScalarValue)]) -> Result<DataFrame> {
        let frame = self.sql(query).await?;
        frame.with_param_values(params.to_vec()).map_err(SqlError::planning)
    }

    /// Plans a query with values for its parameters, which are written `@name` as in GoogleSQL; unused values are ignored.
    ///
    /// # Errors
    /// As [`Session::sql`], and if a parameter of the query is not in `params`, or cannot have its type.
    pub async fn sql_with_parameters(&self, query: &str, params: &[(&str, ScalarValue)]) -> Result<DataFrame> {
        let (session, query) = (self.clone(), query.to_owned());
        let params: Vec<(String, ScalarValue)> =
            params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        plan_on_thread(move || async move {
            let state = session.context.state();
            let mut statement = parse(&state, &query)?;
            replace_parameters(&mut statement, &params)?;
            let plan = plan_statement(&state, statement).await?;
            convert_to_utc(session.context.execute_logical_plan(plan).await?)
        })
        .await
    }

    /// Plans a query with values for its parameters `$1`, `$2`, ..; values that it does not name are ignored.
    ///
    /// # Errors
    /// As [`Session::sql`], and if there are fewer values than parameters, or one has a type that parameters cannot have.
    pub async fn sql_with_values(&self, query: &str, values: &[ScalarValue]) -> Result<DataFrame> {
        let (session, query, values) = (self.clone(), query.to_owned(), values.to_vec());
        plan_on_thread(move || async move {
            let system = session.system.as_ref();
            plan_numbered(&session.context, system, &query, values, session.written_names).await
        })
        .await
    }

    /// The types of the parameters `$1`, `$2`, .. of a query: those that are declared, and those that follow from what a parameter
    /// is compared with. `None` where nothing tells.
    ///
    /// # Errors
    /// If the query cannot be parsed. One that cannot be planned tells no types.
    pub async fn parameter_types(&self, query: &str, declared: &[Option<DataType>]) -> Result<Vec<Option<DataType>>> {
        let (session, query, declared) = (self.clone(), query.to_owned(), declared.to_vec());
        plan_on_thread(move || async move {
            numbered_types(&session.context.state(), session.system.as_ref(), &query, declared).await
        })
        .await
    }

    /// All tables with their columns, by schema and name. Opens each; one that cannot be read has no columns.
    pub async fn all_tables(&self) -> Vec<TableColumns> {
        all_tables(&self.context).await
    }

    /// Schemas and names of all tables, in the order of [`Session::all_tables`]. Opens none of them.
    pub fn table_names(&self) -> Vec<(String, String)> {
        table_names(&self.context)
    }

    /// A session that also has the tables of system catalogs, and reads queries of these as PostgreSQL does. `names` tells what
    /// names and functions mean in them.
    #[must_use]
    pub fn with_system(&self, tables: &Arc<SystemTables>, names: Arc<dyn SystemNames>) -> Self {
        let store = StoreCatalog::new(&self.tables, &self.time, None, self.push_down);
        let catalogs = MemoryCatalogProviderList::new();
        catalogs.register_catalog(CATALOG.to_owned(), Arc::new(with_schemas(store, tables.schemas())));

        let existing = self.context.state();
        // That of DataFusion opens all tables for a query, and has the types of Arrow.
        let config = existing.config().clone().with_information_schema(false);
        let state = SessionStateBuilder::new_from_existing(existing).with_config(config);
        let state = state.with_catalog_list(Arc::new(catalogs)).build();
        let system = Some(System { tables: Arc::clone(tables), names });
        Self { context: SessionContext::new_with_state(state), system, ..self.clone() }
    }

    /// Plans a query and executes it as a stream.
    ///
    /// # Errors
    /// As [`Session::sql`].
    pub async fn stream(&self, query: &str) -> Result<SendableRecordBatchStream> {
        self.stream_after(query, None, || ()).await
    }

    /// As [`Self::stream`], with values for the parameters `$1`, `$2`, .. of the query. The schema of the stream is that of the
    /// query before it was optimized, with the metadata of its fields.
    ///
    /// # Errors
    /// As [`Session::sql_with_values`].
    pub async fn stream_with_values(&self, query: &str, values: &[ScalarValue]) -> Result<SendableRecordBatchStream> {
        self.stream_after(query, Some(values), || ()).await
    }

    /// As [`Self::stream`]; calls `is_planned` each time when the query is planned, and nothing is read yet.
    async fn stream_after(
        &self,
        query: &str,
        values: Option<&[ScalarValue]>,
        is_planned: impl Fn(),
    ) -> Result<SendableRecordBatchStream> {
        let mut plans = 0;
        loop {
            plans += 1;
            match self.begun(query, values, &is_planned).await {
                Err(_) if self.plans_again(plans) => {}
                begun => return begun,
            }
        }
    }

    /// Whether a query that failed before its first rows, planned `plans` times by now, is to be planned again: a file of an
    /// export that it reads was replaced. Then the lists of exports are read again, too.
    pub fn plans_again(&self, plans: usize) -> bool {
        let is_replaced = plans < MAX_PLANS && self.tables.published().files().were_replaced();
        if is_replaced {
            self.tables.published().forget();
        }
        is_replaced
    }

    /// Whether a query of this session has been planned that reads files of exports. Whoever begins such a query reads up to its
    /// first rows before anything is written, and [plans it again](Self::plans_again) if a file was replaced meanwhile.
    pub fn reads_exports(&self) -> bool {
        self.tables.published().files().are_read()
    }

    /// Plans and executes a query. If it reads exports, then up to its first rows.
    async fn begun(
        &self,
        query: &str,
        values: Option<&[ScalarValue]>,
        is_planned: &impl Fn(),
    ) -> Result<SendableRecordBatchStream> {
        let (session, query, values) = (self.clone(), query.to_owned(), values.map(<[ScalarValue]>::to_vec));
        let (schema, planned) = plan_on_thread(move || async move { session.described(&query, values).await }).await?;
        is_planned();

        let mut rows = planned.stream();
        if !self.reads_exports() {
            return Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)));
        }
        let first = rows.next().await.transpose()?;
        let all = futures::stream::iter(first.map(Ok)).chain(rows);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, all)))
    }

    /// The plan of a query, and the schema that its batches are shown with: of a query with values that of its logical plan.
    async fn described(&self, query: &str, values: Option<Vec<ScalarValue>>) -> Result<(SchemaRef, PlannedQuery)> {
        let Some(values) = values else {
            let planned = physical(self.sql_here(query).await?).await?;
            return Ok((planned.plan.schema(), planned));
        };
        let frame = plan_numbered(&self.context, self.system.as_ref(), query, values, self.written_names).await?;
        let schema = Arc::new(frame.schema().as_arrow().clone());
        Ok((schema, physical(frame).await?))
    }

    /// The scans of a query as a sequential session plans it: what a [`SharedScan`] may provide records for.
    ///
    /// # Errors
    /// As [`Session::sql_with`].
    pub async fn asked(&self, query: &str, params: &[(&str, ScalarValue)]) -> Result<ScanSignatures> {
        let frame = self.sequential().sql_with(query, params).await?;
        Ok(scans_of(&plan_frame(frame).await?.plan)?)
    }

    /// The tables and exports that `query` reads, as schema and name, ascending. A view with options, such as
    /// `T(with_history => true)`, is listed as `rows.T`.
    ///
    /// # Errors
    /// If it is not valid SQL.
    pub fn references(&self, query: &str) -> Result<Vec<(String, String)>> {
        table_references(&self.context, query, self.tables.names()?)
    }

    /// The versions of tables that queries of this session have opened so far, in no order.
    pub fn opened(&self) -> Vec<Snapshot> {
        self.tables.opened()
    }

    /// Whether `query` asks anything of the store: its tables, exports or runs, or which of them there are. Paths and URLs
    /// are files.
    ///
    /// # Errors
    /// If it is not valid SQL.
    pub fn asks_store(&self, query: &str) -> Result<bool> {
        let state = self.context.state();
        for (schema, name) in self.references(query)? {
            let is_external = self.external.as_ref().is_some_and(|external| external.get(&name).is_some());
            let needs_no_store = is_file(&name) || is_external || state.table_functions().contains_key(&name);
            if schema != RECORDS || !needs_no_store {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The DataFusion session behind this one.
    pub fn context(&self) -> &SessionContext {
        &self.context
    }
}

/// Configures spilling to disk for a memory limit of `memory` bytes.
fn set_spill_options(config: &mut SessionConfig, memory: usize) {
    // 16 batches fit into the limit if a row takes 1 KiB.
    let rows = config.batch_size().min(memory / (16 * 1024)).max(MIN_BATCH_ROWS);
    // Concurrent partitions can deadlock: repartitioning may wait for memory that another partition holds.
    *config = config.clone().with_batch_size(rows).with_target_partitions(1);
    let options = config.options_mut();
    // Memory that each sort reserves for merging spilled runs; the default of 10 MiB may exceed the limit.
    let reservation = &mut options.execution.sort_spill_reservation_bytes;
    *reservation = (*reservation).min(memory / 8);
}

/// DataFusion's physical rules, the workarounds and the rules of this crate. Those for joins and partial aggregation
/// follow filter pushdown; that for the newest records precedes the last rule that changes scans.
fn physical_rules(memory: Option<u64>, push_down: bool) -> Vec<Rule> {
    let mut rules = tidetable_upstream::physical_rules();
    let after_pushdown = rules.iter().position(|rule| rule.name() == "FilterPushdown").map_or(rules.len(), |at| at + 1);
    if let Some(memory) = memory {
        let max_build_bytes = usize::try_from(memory / 4).unwrap_or(usize::MAX);
        rules.insert(after_pushdown, joins_that_spill(max_build_bytes));
    } else {
        let before_sorts = rules.iter().position(|rule| rule.name() == "WindowTopN").unwrap_or(0);
        rules.insert(before_sorts, top_by_group());
    }
    rules.insert(after_pushdown, aggregate_in_scan());
    let before_order = rules.iter().position(|rule| rule.name() == "EnsureRequirements").unwrap_or(0);
    rules.insert(before_order, windows_in_key_order());
    let before_last = rules.iter().position(|rule| rule.name() == tidetable_upstream::LAST).unwrap_or(rules.len());
    rules.insert(before_last, newest_windows_first());
    if push_down {
        rules.push(windows_by_batch());
    }
    rules
}

fn catalogs(
    tables: &Arc<Tables>,
    time: &Range<i64>,
    shared_scan: Option<SharedScanPeriod>,
    push_down: bool,
) -> Arc<dyn CatalogProviderList> {
    let list = MemoryCatalogProviderList::new();
    list.register_catalog(CATALOG.to_owned(), Arc::new(StoreCatalog::new(tables, time, shared_scan, push_down)));
    Arc::new(list)
}

#[cfg(test)]
mod tests;
