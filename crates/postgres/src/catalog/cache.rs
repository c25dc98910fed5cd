//! The catalog of the versions that are served: built once, and again when these have changed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tidetable_serving::{Tables, blocking};
use tidetable_sql::{Session, SystemTable, SystemTables};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::catalog::batch::batch;
use crate::catalog::relations::{Relation, by_name, cased_words, relations};
use crate::catalog::shapes::SHAPES;
use crate::catalog::{rows, standard};
use crate::error::Refusal;
use crate::statement::Settings;

/// For how long a catalog is not compared with a store in a bucket, where that is a request for each table.
const FRESH: Duration = Duration::from_secs(5);

/// System catalogs of a store.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    pub(crate) tables: Arc<SystemTables>,
    relations: HashMap<(String, String), i64>,
    words: HashSet<String>,
}

impl Catalog {
    /// Makes the catalogs of tables.
    ///
    /// # Errors
    /// If they cannot be held in memory.
    fn of(found: &[Relation]) -> Result<Self, Refusal> {
        let settings = Settings::default();
        let mut tables = Vec::with_capacity(SHAPES.len());
        for shape in SHAPES {
            let (schema, name, _) = shape;
            let rows = match schema {
                "information_schema" => standard::rows(name, found),
                _ => rows::rows(name, found, &settings),
            };
            let rows = batch(shape, &rows).map_err(|error| Refusal::internal(error.to_string()))?;
            tables.push(SystemTable { schema, name, rows });
        }
        let tables = Arc::new(SystemTables::new(tables)?);
        Ok(Self { tables, relations: by_name(found), words: cased_words(found) })
    }

    /// The object id of a table of the store.
    pub(super) fn relation(&self, schema: &str, name: &str) -> Option<i64> {
        self.relations.get(&(schema.to_owned(), name.to_owned())).copied()
    }

    /// Whether a word is a name of a table or a column that is not in lower case.
    pub(super) fn has_word(&self, word: &str) -> bool {
        self.words.contains(word)
    }
}

/// What a catalog was made of: versions of tables, and names of all that can be read.
#[derive(Debug, PartialEq, Eq)]
struct Made {
    versions: Vec<(String, u64)>,
    names: Vec<(String, String)>,
}

/// The catalog that was built last.
#[derive(Debug, Default)]
pub(crate) struct CatalogCache(Mutex<Option<Cached>>);

#[derive(Debug)]
struct Cached {
    made: Made,
    catalog: Arc<Catalog>,
    compared: Instant,
}

impl CatalogCache {
    /// The catalog of the tables that `session` reads. Opens tables only if the store has changed since the last one.
    ///
    /// # Errors
    /// If the store cannot be listed.
    pub(crate) async fn catalog(&self, tables: &Arc<Tables>, session: &Session) -> Result<Arc<Catalog>, Refusal> {
        let mut cached = self.0.lock().await;
        let is_far = tables.store().blobs().capabilities().round_trips;
        if let Some(cached) = cached.as_ref()
            && is_far
            && cached.compared.elapsed() < FRESH
        {
            return Ok(Arc::clone(&cached.catalog));
        }

        let (listed, named) = (Arc::clone(tables), session.clone());
        let list = move || Ok(Made { versions: listed.numbers()?, names: named.table_names() });
        let made: Made = blocking(list, |error| error).await?;
        if let Some(cached) = cached.as_mut()
            && cached.made == made
        {
            cached.compared = Instant::now();
            return Ok(Arc::clone(&cached.catalog));
        }

        let found = relations(session.all_tables().await);
        let catalog = Arc::new(Catalog::of(&found)?);
        *cached = Some(Cached { made, catalog: Arc::clone(&catalog), compared: Instant::now() });
        Ok(catalog)
    }
}
