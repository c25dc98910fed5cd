//! The listings of the Table Admin API.

use std::sync::Arc;

use tidetable_serving::Tables;
use tonic::{Request, Response, Status};

use crate::proto::admin::table::{TimestampGranularity, View};
use crate::proto::admin::{GetTableRequest, ListTablesRequest, ListTablesResponse, Table};
use crate::proto::admin_server::BigtableTableAdmin;
use crate::push::TableSchema;
use crate::serve::names::Address;
use crate::serve::refusal::{Refusal, blocking, of_serving};

/// Answers the Table Admin API.
#[derive(Debug, Clone)]
pub(crate) struct AdminService {
    pub(crate) tables: Arc<Tables>,
    pub(crate) address: Address,
}

/// A message of a method that is refused, which is not looked at.
pub(crate) type Ignored = ();

/// Whether a view has more than names.
fn has_schema(view: i32, default: View) -> Result<bool, Refusal> {
    let view = View::try_from(view)
        .map_err(|_| Refusal::Field { field: "view", problem: format!("{view} is no view of a table") })?;
    let view = if view == View::Unspecified { default } else { view };
    Ok(view != View::NameOnly)
}

fn table(tables: &Tables, name: String, id: &str, has_schema: bool) -> Result<Table, Status> {
    if !has_schema {
        return Ok(Table { name, ..Table::default() });
    }
    let table = TableSchema::of(&tables.snapshot(id).map_err(of_serving)?)?.table();
    // Requests leave milliseconds out, answers do not.
    let unspecified = i32::from(TimestampGranularity::Unspecified);
    let granularity = Some(table.granularity).filter(|granularity| *granularity != unspecified);
    Ok(Table { name, granularity: granularity.unwrap_or(TimestampGranularity::Millis.into()), ..table })
}

fn refused(method: &'static str) -> Result<Response<Ignored>, Status> {
    Err(Refusal::Write { method }.into())
}

#[tonic::async_trait]
impl BigtableTableAdmin for AdminService {
    async fn list_tables(&self, request: Request<ListTablesRequest>) -> Result<Response<ListTablesResponse>, Status> {
        let request = request.into_inner();
        self.address.instance(&request.parent)?;
        let has_schema = has_schema(request.view, View::NameOnly)?;
        let size = usize::try_from(request.page_size)
            .map_err(|_| Refusal::Field { field: "page_size", problem: "it must not be negative".to_owned() })?;

        let tables = Arc::clone(&self.tables);
        blocking(move || {
            // The token of a page is the last name of the one before.
            let mut names = tables.names().map_err(of_serving)?;
            names.retain(|name| *name > request.page_token);
            let is_last = size == 0 || names.len() <= size;
            if !is_last {
                names.truncate(size);
            }
            let next_page_token = names.last().filter(|_| !is_last).cloned().unwrap_or_default();

            let mut listed = Vec::with_capacity(names.len());
            for id in &names {
                listed.push(table(&tables, format!("{}/tables/{id}", request.parent), id, has_schema)?);
            }
            Ok(Response::new(ListTablesResponse { tables: listed, next_page_token }))
        })
        .await
    }

    async fn get_table(&self, request: Request<GetTableRequest>) -> Result<Response<Table>, Status> {
        let request = request.into_inner();
        let id = self.address.table(&request.name)?.to_owned();
        let has_schema = has_schema(request.view, View::SchemaView)?;
        let tables = Arc::clone(&self.tables);
        blocking(move || {
            tables.snapshot(&id).map_err(of_serving)?;
            table(&tables, request.name, &id, has_schema).map(Response::new)
        })
        .await
    }

    async fn create_table(&self, _: Request<Ignored>) -> Result<Response<Ignored>, Status> {
        refused("CreateTable")
    }

    async fn create_table_from_snapshot(&self, _: Request<Ignored>) -> Result<Response<Ignored>, Status> {
        refused("CreateTableFromSnapshot")
    }

    async fn update_table(&self, _: Request<Ignored>) -> Result<Response<Ignored>, Status> {
        refused("UpdateTable")
    }

    async fn delete_table(&self, _: Request<Ignored>) -> Result<Response<Ignored>, Status> {
        refused("DeleteTable")
    }

    async fn undelete_table(&self, _: Request<Ignored>) -> Result<Response<Ignored>, Status> {
        refused("UndeleteTable")
    }

    async fn modify_column_families(&self, _: Request<Ignored>) -> Result<Response<Ignored>, Status> {
        refused("ModifyColumnFamilies")
    }

    async fn drop_row_range(&self, _: Request<Ignored>) -> Result<Response<Ignored>, Status> {
        refused("DropRowRange")
    }

    async fn create_authorized_view(&self, _: Request<Ignored>) -> Result<Response<Ignored>, Status> {
        refused("CreateAuthorizedView")
    }

    async fn update_authorized_view(&self, _: Request<Ignored>) -> Result<Response<Ignored>, Status> {
        refused("UpdateAuthorizedView")
    }

    async fn delete_authorized_view(&self, _: Request<Ignored>) -> Result<Response<Ignored>, Status> {
        refused("DeleteAuthorizedView")
    }

    async fn snapshot_table(&self, _: Request<Ignored>) -> Result<Response<Ignored>, Status> {
        refused("SnapshotTable")
    }

    async fn delete_snapshot(&self, _: Request<Ignored>) -> Result<Response<Ignored>, Status> {
        refused("DeleteSnapshot")
    }

    async fn create_backup(&self, _: Request<Ignored>) -> Result<Response<Ignored>, Status> {
        refused("CreateBackup")
    }

    async fn update_backup(&self, _: Request<Ignored>) -> Result<Response<Ignored>, Status> {
        refused("UpdateBackup")
    }

    async fn delete_backup(&self, _: Request<Ignored>) -> Result<Response<Ignored>, Status> {
        refused("DeleteBackup")
    }

    async fn copy_backup(&self, _: Request<Ignored>) -> Result<Response<Ignored>, Status> {
        refused("CopyBackup")
    }

    async fn restore_table(&self, _: Request<Ignored>) -> Result<Response<Ignored>, Status> {
        refused("RestoreTable")
    }

    async fn set_iam_policy(&self, _: Request<Ignored>) -> Result<Response<Ignored>, Status> {
        refused("SetIamPolicy")
    }

    async fn create_schema_bundle(&self, _: Request<Ignored>) -> Result<Response<Ignored>, Status> {
        refused("CreateSchemaBundle")
    }

    async fn update_schema_bundle(&self, _: Request<Ignored>) -> Result<Response<Ignored>, Status> {
        refused("UpdateSchemaBundle")
    }

    async fn delete_schema_bundle(&self, _: Request<Ignored>) -> Result<Response<Ignored>, Status> {
        refused("DeleteSchemaBundle")
    }
}
