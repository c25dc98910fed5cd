//! Google's XML API, asked by its client.

use std::sync::Arc;

use futures::TryStreamExt;
use object_store::gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder};
use object_store::path::Path;
use object_store::{
    ClientOptions, CopyMode, CopyOptions, Error, MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, PutOptions,
    UpdateVersion,
};
use tidetable_bucket_server::{Options, Server};

use super::{retry, runtime, started};

fn client(server: &Server) -> Arc<GoogleCloudStorage> {
    let account = format!(
        r#"{{"gcs_base_url": "{}", "disable_oauth": true, "client_email": "", "private_key": "", "private_key_id": ""}}"#,
        server.endpoint()
    );
    let builder = GoogleCloudStorageBuilder::new()
        .with_service_account_key(account)
        .with_client_options(ClientOptions::new().with_allow_http(true))
        .with_bucket_name("tidetable")
        .with_retry(retry(0));
    Arc::new(builder.build().unwrap())
}

#[test]
fn generations_are_compared() {
    let server = started(Options { page: 3, ..Options::default() });
    let (store, runtime) = (client(&server), runtime());
    runtime.block_on(async {
        let path = Path::from("a/b c");
        let first = store.put_opts(&path, "one".into(), PutMode::Create.into()).await.unwrap();
        let again = store.put_opts(&path, "two".into(), PutMode::Create.into()).await;
        assert!(matches!(again, Err(Error::AlreadyExists { .. })), "{again:?}");
        let update = |version: UpdateVersion| PutOptions { mode: PutMode::Update(version), ..PutOptions::default() };
        let second = store.put_opts(&path, "two".into(), update(first.clone().into())).await.unwrap();
        assert_ne!(first.version, second.version);
        let stale = store.put_opts(&path, "three".into(), update(first.into())).await;
        assert!(matches!(stale, Err(Error::Precondition { .. })), "{stale:?}");
        let got = store.get(&path).await.unwrap();
        assert_eq!(got.meta.version, second.version);
        assert_eq!(got.bytes().await.unwrap(), "two");
        // The client of object_store 0.13.2 has the two modes of a copy the wrong way round: this one creates.
        let create = CopyOptions { mode: CopyMode::Overwrite, ..CopyOptions::default() };
        store.copy_opts(&path, &Path::from("copy"), create.clone()).await.unwrap();
        let taken = store.copy_opts(&path, &Path::from("copy"), create).await;
        assert!(matches!(taken, Err(Error::AlreadyExists { .. })), "{taken:?}");
    });
}

#[test]
fn objects_are_uploaded_listed_and_deleted() {
    let server = started(Options { page: 3, ..Options::default() });
    let (store, runtime) = (client(&server), runtime());
    runtime.block_on(async {
        let path = Path::from("large");
        let mut upload = store.put_multipart(&path).await.unwrap();
        upload.put_part(vec![1; 5 << 20].into()).await.unwrap();
        upload.put_part("end".into()).await.unwrap();
        let put = upload.complete().await.unwrap();
        assert!(put.version.is_some());
        assert_eq!(store.get_range(&path, (5 << 20)..(5 << 20) + 3).await.unwrap(), "end");
        for number in 0..8 {
            store.put(&Path::from(format!("{number}")), "x".into()).await.unwrap();
        }
        let all: Vec<_> = store.list(None).try_collect().await.unwrap();
        assert_eq!(all.len(), 9);
        store.delete(&path).await.unwrap();
        assert!(matches!(store.delete(&path).await, Err(Error::NotFound { .. })));
    });
}
