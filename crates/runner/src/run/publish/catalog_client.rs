//! A client of Iceberg's REST catalogs: what a run asks of one table. Each request is answered within a time limit, and no message
//! shows the token.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Method, StatusCode, Url};
use serde_json::{Value, json};
use tidetable_export::{CatalogRequest, CatalogTable};
use tidetable_job::{Catalog, Project};

use crate::fault::catalog_failure::CatalogFailure;
use crate::secrets::value;
use crate::web::{AGENT, reason_of};

/// Time limit for the connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Time limit of a request. A catalog reads and writes metadata of the table before it answers.
const ANSWER: Duration = Duration::from_secs(30);
/// How often a request is repeated, each time from what the catalog has by then.
const TRIES: usize = 3;
/// Most characters of what a catalog says of a refusal.
const SAID: usize = 300;

/// The table of an export in a catalog.
pub(crate) struct CatalogClient<'a> {
    catalog: &'a Catalog,
    export: &'a str,
    client: Client,
    token: Option<String>,
    /// URL of the catalog with `/v1`, and the prefix that it asks for.
    base: String,
}

impl<'a> CatalogClient<'a> {
    /// Asks a catalog for its configuration.
    ///
    /// # Errors
    /// If the token is missing, or the catalog does not answer as one.
    pub(crate) async fn open(project: &Project, catalog: &'a Catalog, export: &'a str) -> Result<Self, CatalogFailure> {
        let token = catalog.token.as_ref().map(|token| value(project, token)).transpose();
        let token = token.map_err(|error| CatalogFailure::Token { reason: error.to_string() })?;
        let client = Client::builder().connect_timeout(CONNECT).timeout(ANSWER).user_agent(AGENT).build();
        let client = client.map_err(|error| CatalogFailure::NoAnswer { reason: reason_of(error) })?;
        let mut open = Self { catalog, export, client, token, base: format!("{}/v1", catalog.uri) };

        let mut path = "config".to_owned();
        if let Some(name) = &catalog.warehouse
            && let Ok(url) = Url::parse_with_params("http://any", [("warehouse", name)])
        {
            path = format!("config?{}", url.query().unwrap_or_default());
        }
        let config = open.ask(Method::GET, &path, None).await?;

        let prefix = [&config["overrides"], &config["defaults"]].into_iter().find_map(|of| of["prefix"].as_str());
        if let Some(prefix) = prefix.filter(|prefix| !prefix.is_empty()) {
            open.base = format!("{}/{}", open.base, prefix.trim_matches('/'));
        }
        Ok(open)
    }

    /// The metadata of the table; `None` without one.
    ///
    /// # Errors
    /// If the catalog does not answer, or refuses.
    pub(crate) async fn load(&self) -> Result<Option<Value>, CatalogFailure> {
        match self.ask(Method::GET, &self.table_path(), None).await {
            Ok(answer) => Ok(Some(self.metadata_of(answer)?)),
            Err(CatalogFailure::Refused { status: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Commits what the catalog lacks of `table`, of which it has `theirs`. A request that may have been applied without an
    /// answer is repeated from what the catalog then has, so that it is applied once.
    ///
    /// # Errors
    /// If the catalog does not have it in the end.
    pub(crate) async fn bring_up(&self, table: &CatalogTable, mut theirs: Option<Value>) -> Result<(), CatalogFailure> {
        let mut failure = CatalogFailure::Unheeded;
        for _ in 0..TRIES {
            let Some(request) = table.request(theirs.as_ref())? else { return Ok(()) };
            match self.send(request).await {
                Ok(answer) => theirs = Some(answer),
                Err(error) if error.may_have_arrived() => {
                    // If it cannot be asked either, the first error tells more.
                    match self.load().await {
                        Ok(found) => theirs = found,
                        Err(_) => return Err(error),
                    }
                    failure = error;
                }
                Err(error) => return Err(error),
            }
        }

        match table.request(theirs.as_ref())? {
            None => Ok(()),
            Some(_) => Err(failure),
        }
    }

    /// Sends a request. Returns the metadata that the catalog has after it.
    async fn send(&self, request: CatalogRequest) -> Result<Value, CatalogFailure> {
        let answer = match request {
            CatalogRequest::Register { metadata } => {
                self.make_namespace().await?;
                let body = json!({ "name": self.export, "metadata-location": metadata });
                let path = format!("{}/register", namespace_path(&self.catalog.namespace));
                self.ask(Method::POST, &path, Some(body)).await?
            }
            CatalogRequest::Commit { requirements, updates } => {
                let identifier = json!({ "namespace": self.catalog.namespace, "name": self.export });
                let body = json!({ "identifier": identifier, "requirements": requirements, "updates": updates });
                self.ask(Method::POST, &self.table_path(), Some(body)).await?
            }
        };
        self.metadata_of(answer)
    }

    /// Creates the levels of the namespace that are absent.
    async fn make_namespace(&self) -> Result<(), CatalogFailure> {
        for depth in 1..=self.catalog.namespace.len() {
            let levels = self.catalog.namespace.get(..depth).unwrap_or_default();
            match self.ask(Method::GET, &namespace_path(levels), None).await {
                Err(CatalogFailure::Refused { status: 404, .. }) => {}
                found => {
                    found?;
                    continue;
                }
            }

            let body = json!({ "namespace": levels, "properties": {} });
            match self.ask(Method::POST, "namespaces", Some(body)).await {
                // Another job has created it.
                Ok(_) | Err(CatalogFailure::Refused { status: 409, .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The metadata in an answer about the table.
    fn metadata_of(&self, mut answer: Value) -> Result<Value, CatalogFailure> {
        let metadata = answer["metadata"].take();
        match metadata.is_object() {
            true => Ok(metadata),
            false => Err(CatalogFailure::NoCatalog { request: format!("{}/{}", self.base, self.table_path()) }),
        }
    }

    fn table_path(&self) -> String {
        format!("{}/tables/{}", namespace_path(&self.catalog.namespace), self.export)
    }

    /// Sends one request; `path` is relative to the base. Returns the JSON of the answer.
    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value, CatalogFailure> {
        let url = format!("{}/{path}", self.base);
        let shown = format!("{method} {url}");
        let mut request = self.client.request(method, &url);
        if let Some(token) = &self.token {
            let mut bearer = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| CatalogFailure::NoHeader)?;
            bearer.set_sensitive(true);
            request = request.header(AUTHORIZATION, bearer);
        }
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        }

        let failed = |error| CatalogFailure::NoAnswer { reason: format!("{shown}: {}", reason_of(error)) };
        let answer = request.send().await.map_err(failed)?;
        let status = answer.status();
        let bytes = answer.bytes().await.map_err(failed)?;
        let parsed = serde_json::from_slice::<Value>(&bytes);
        if !status.is_success() {
            let said = self.said(&parsed.unwrap_or_default());
            let advice = advice(status);
            return Err(CatalogFailure::Refused { request: shown, status: status.as_u16(), said, advice });
        }
        match parsed {
            Ok(answer) if answer.is_object() => Ok(answer),
            _ => Err(CatalogFailure::NoCatalog { request: shown }),
        }
    }

    /// What a catalog says of a refusal, on one line.
    fn said(&self, answer: &Value) -> String {
        let Some(message) = answer["error"]["message"].as_str().filter(|message| !message.is_empty()) else {
            return String::new();
        };
        let message = match self.token.as_deref() {
            Some(token) => message.replace(token, "***"),
            None => message.to_owned(),
        };
        let line: String = message.split_whitespace().collect::<Vec<_>>().join(" ");
        format!(" ({})", line.chars().take(SAID).collect::<String>())
    }
}

/// The path of a namespace: the specification parts its levels by the unit separator.
fn namespace_path(levels: &[String]) -> String {
    format!("namespaces/{}", levels.join("%1F"))
}

/// What to do about a refusal.
fn advice(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "check `token` of `[catalog]` and what it permits",
        StatusCode::NOT_FOUND => "check `uri` and `warehouse` of `[catalog]`",
        StatusCode::CONFLICT => "another writer commits to this table",
        status if status.is_server_error() => "see to the catalog",
        _ => "see to `[catalog]`",
    }
}
