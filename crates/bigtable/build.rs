//! Makes the server traits of Bigtable's Data API and of its Table Admin API: the crates of messages have clients only.

use tonic_build::manual::{Builder, Method, Service};

const DATA: &str = "::googleapis_tonic_google_bigtable_v2::google::bigtable::v2";
const ADMIN: &str = "::googleapis_tonic_google_bigtable_admin_v2::google::bigtable::admin::v2";

/// Methods of `google.bigtable.v2.Bigtable`: name in Rust, route, and whether it streams.
const DATA_METHODS: &[(&str, &str, bool)] = &[
    ("read_rows", "ReadRows", true),
    ("sample_row_keys", "SampleRowKeys", true),
    ("mutate_row", "MutateRow", false),
    ("mutate_rows", "MutateRows", true),
    ("check_and_mutate_row", "CheckAndMutateRow", false),
    ("ping_and_warm", "PingAndWarm", false),
    ("read_modify_write_row", "ReadModifyWriteRow", false),
    ("prepare_query", "PrepareQuery", false),
    ("execute_query", "ExecuteQuery", true),
];

/// Methods of `google.bigtable.admin.v2.BigtableTableAdmin` that write, which are refused: name in Rust, and route.
const ADMIN_WRITES: &[(&str, &str)] = &[
    ("create_table", "CreateTable"),
    ("create_table_from_snapshot", "CreateTableFromSnapshot"),
    ("update_table", "UpdateTable"),
    ("delete_table", "DeleteTable"),
    ("undelete_table", "UndeleteTable"),
    ("modify_column_families", "ModifyColumnFamilies"),
    ("drop_row_range", "DropRowRange"),
    ("create_authorized_view", "CreateAuthorizedView"),
    ("update_authorized_view", "UpdateAuthorizedView"),
    ("delete_authorized_view", "DeleteAuthorizedView"),
    ("snapshot_table", "SnapshotTable"),
    ("delete_snapshot", "DeleteSnapshot"),
    ("create_backup", "CreateBackup"),
    ("update_backup", "UpdateBackup"),
    ("delete_backup", "DeleteBackup"),
    ("copy_backup", "CopyBackup"),
    ("restore_table", "RestoreTable"),
    ("set_iam_policy", "SetIamPolicy"),
    ("create_schema_bundle", "CreateSchemaBundle"),
    ("update_schema_bundle", "UpdateSchemaBundle"),
    ("delete_schema_bundle", "DeleteSchemaBundle"),
];

fn main() {
    let mut data = Service::builder().name("Bigtable").package("google.bigtable.v2");
    for (name, route, streams) in DATA_METHODS {
        // Rows are serialized where they are read.
        let (output, codec) = match *route {
            "ReadRows" => ("crate::serve::EncodedRows".to_owned(), "crate::serve::RowsCodec"),
            _ => (format!("{DATA}::{route}Response"), "::tonic_prost::ProstCodec"),
        };
        let method = Method::builder()
            .name(name)
            .route_name(route)
            .input_type(format!("{DATA}::{route}Request"))
            .output_type(output)
            .codec_path(codec);
        data = data.method(if *streams { method.server_streaming().build() } else { method.build() });
    }

    let mut admin = Service::builder()
        .name("BigtableTableAdmin")
        .package("google.bigtable.admin.v2")
        .method(admin_method("list_tables", "ListTables", &format!("{ADMIN}::ListTablesResponse")))
        .method(admin_method("get_table", "GetTable", &format!("{ADMIN}::Table")));
    for (name, route) in ADMIN_WRITES {
        // The messages are not looked at.
        let method = Method::builder()
            .name(name)
            .route_name(route)
            .input_type("crate::serve::Ignored")
            .output_type("crate::serve::Ignored");
        admin = admin.method(method.codec_path("::tonic_prost::ProstCodec").build());
    }
    Builder::new().build_client(false).compile(&[data.build(), admin.build()]);
}

fn admin_method(name: &str, route: &str, output: &str) -> Method {
    Method::builder()
        .name(name)
        .route_name(route)
        .input_type(format!("{ADMIN}::{route}Request"))
        .output_type(output)
        .codec_path("::tonic_prost::ProstCodec")
        .build()
}
