//! Errors of this crate.

use thiserror::Error;

/// Why a page cannot be made.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum PageError {
    /// The values of a heatmap do not fill a rectangle of slices and buckets.
    #[error("the heatmap of {layout} has {values} values for {buckets} buckets, or a slice without length")]
    Matrix { layout: String, values: usize, buckets: usize },
    /// A heatmap has other top shares than slices.
    #[error("the heatmap of {layout} has {shares} top shares for {slices} slices")]
    TopShare { layout: String, shares: usize, slices: usize },
    /// A row of a table has more or fewer fields than the table has columns.
    #[error("the row of {layout} has {found} fields for {columns} columns")]
    Row { layout: String, found: usize, columns: usize },
    /// Data that cannot be written as JSON.
    #[error("the page's data cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A picture that cannot be encoded.
    #[error("a heatmap cannot be drawn: {0}")]
    Picture(#[from] png::EncodingError),
    /// Bytes that cannot be compressed.
    #[error("a heatmap cannot be compressed: {0}")]
    Compress(#[from] std::io::Error),
    /// A template that cannot be filled.
    #[error("the page cannot be written: {0}")]
    Template(#[from] askama::Error),
}
