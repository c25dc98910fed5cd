//! Compiles a declared layout against the columns of its source; reports all errors at once.

mod aggregate;
mod columns;
mod compiler;
mod packed;
mod records;
mod stored;

use std::sync::Arc;

use crate::compile::compiler::{Compiler, Scope};
use crate::error::{LayoutError, Place, Problem};
use crate::plan::Layout;
use crate::schema::{FieldType, StoredSchema};
use crate::spec::{SourceSchema, TableSpec};

impl Layout {
    /// Compiles `spec` for batches of `source`. Consequences that are no errors are in [`Layout::warnings`].
    ///
    /// # Errors
    /// All errors of the layout.
    pub fn compile(spec: &TableSpec, source: &SourceSchema) -> Result<Self, Vec<LayoutError>> {
        let mut compiler = Compiler::new(&source.fields);
        if source.fields.get(source.time).is_none_or(|field| field.kind != FieldType::Timestamp) {
            compiler.error(Place::Table, 0..0, Problem::NoEventTime);
            return Err(compiler.errors);
        }

        let unpivot = compiler.unpivot(spec);
        let key = compiler.row_key(spec);
        let scope = Scope { spec, source, unpivot: unpivot.as_ref(), key: &key };
        let columns = compiler.columns(&scope);
        compiler.check_qualifiers(spec, &columns);
        compiler.check_upsert(spec, &columns);
        if !compiler.errors.is_empty() {
            return Err(compiler.errors);
        }

        let (groups, stored) = stored::group(spec, source, &columns);
        let (key, tail) = stored::split_key(key);
        let mut layout = Self {
            spec: spec.clone(),
            source: source.clone(),
            stored: Arc::new(StoredSchema { tail, groups: stored, upsert: spec.upsert }),
            warnings: compiler.warnings,
            fields: compiler.fields,
            key,
            groups,
            unpivot,
            records: Vec::new(),
            records_schema: Arc::new(arrow::datatypes::Schema::empty()),
            lost: Vec::new(),
            record_order: Vec::new(),
        };
        records::plan_records(&mut layout);
        Ok(layout)
    }
}
