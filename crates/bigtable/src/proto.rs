//! Messages of Bigtable's APIs, their clients, and the server traits that the build script makes.

pub use googleapis_tonic_google_bigtable_admin_v2::google::bigtable::admin::v2 as admin;
pub use googleapis_tonic_google_bigtable_v2::google::bigtable::v2 as data;
pub use googleapis_tonic_google_bigtable_v2::google::rpc;
pub use googleapis_tonic_google_bigtable_v2::google::r#type as dates;

/// Server trait of the Data API.
#[expect(unused_qualifications, clippy::all, reason = "made by tonic-build")]
pub mod data_server {
    tonic::include_proto!("google.bigtable.v2.Bigtable");
    pub use self::bigtable_server::{Bigtable, BigtableServer};
}

/// Server trait of the Table Admin API.
#[expect(unused_qualifications, reason = "made by tonic-build")]
pub mod admin_server {
    tonic::include_proto!("google.bigtable.admin.v2.BigtableTableAdmin");
    pub use self::bigtable_table_admin_server::{BigtableTableAdmin, BigtableTableAdminServer};
}
