//! What new SSTs mean for cells of earlier loads: which they replace, and whether their order matters.

mod near;
mod overtaken;
mod replaced;
mod row_cursor;
