//! Long expressions and large values.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::ToDFSchema;
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, col,
};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use datafusion::prelude::{SessionConfig, SessionContext};

use super::{plain, rows, still_broken};

/// A function that counts how often it is asked for its name.
#[derive(Debug)]
struct Named {
    asked: Arc<AtomicUsize>,
    signature: Signature,
}

impl PartialEq for Named {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Named {}

impl std::hash::Hash for Named {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

impl ScalarUDFImpl for Named {
    fn name(&self) -> &str {
        "named"
    }

    fn schema_name(&self, args: &[Expr]) -> datafusion::error::Result<String> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Ok(format!("named({})", args[0].schema_name()))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> datafusion::error::Result<DataType> {
        Ok(kinds[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> datafusion::error::Result<ColumnarValue> {
        Ok(args.args[0].clone())
    }
}

#[tokio::test]
async fn still_broken_types_of_nested_functions_need_their_names() {
    let asked = Arc::new(AtomicUsize::new(0));
    let signature = Signature::any(1, Volatility::Immutable);
    let function = ScalarUDF::new_from_impl(Named { asked: Arc::clone(&asked), signature });
    let schema = Schema::new(vec![Field::new("a", DataType::Int64, true)]).to_dfschema().unwrap();
    let expr = (0..20).fold(col("a"), |inner, _| function.call(vec![inner]));
    assert_eq!(expr.get_type(&schema).unwrap(), DataType::Int64);
    let found = asked.load(Ordering::Relaxed).to_string();
    // Names of 1, 2, .. 20 levels; a type needs none.
    let remove = "crates/functions/src/chain.rs and coerce_chain in crates/upstream/src/floats/coerce.rs";
    still_broken(&[found], &["210"], &["0"], remove);
}

fn depth(expr: &Arc<dyn PhysicalExpr>) -> usize {
    1 + expr.children().into_iter().map(depth).max().unwrap_or_default()
}

fn filters(plan: &Arc<dyn ExecutionPlan>) -> Vec<usize> {
    let own = plan.downcast_ref::<FilterExec>().map(|filter| depth(filter.predicate()));
    own.into_iter().chain(plan.children().into_iter().flat_map(filters)).collect()
}

#[tokio::test]
async fn still_broken_filters_are_as_deep_as_they_have_conditions() {
    let conditions = (0..20).map(|at| format!("v <> {at}")).collect::<Vec<_>>().join(" AND ");
    let query = format!("SELECT v FROM (VALUES (1), (200)) AS t (v) WHERE {conditions}");
    let plan = plain().sql(&query).await.unwrap().create_physical_plan().await.unwrap();
    let found: Vec<String> = filters(&plan).iter().map(ToString::to_string).collect();
    let remove =
        "MIN_BALANCED_OPERANDS in crates/sql/src/syntax/dialect.rs and crates/sql/src/optimizer/balanced_filters.rs";
    still_broken(&found, &["21"], &["7"], remove);
}

#[tokio::test]
async fn still_broken_values_of_functions_are_not_counted() {
    let pool = Arc::new(GreedyMemoryPool::new(1 << 20));
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap();
    let context = SessionContext::new_with_config_rt(SessionConfig::new().with_target_partitions(1), runtime);
    let query = "SELECT length(repeat('x', v)) FROM (VALUES (10000000)) AS t (v)";
    let remove = "crates/functions/src/sized/mod.rs";
    still_broken(&rows(&context, query).await, &["10000000"], &["an error: the limit is 1 MiB"], remove);
}
