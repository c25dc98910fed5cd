//! What pages show: plain data, without knowledge of where it came from.

mod cost;
mod heatmap;
mod layouts;
mod queries;
mod runs;
mod table;

pub use cost::{Capacity, Cost, Load, Monthly, Prices};
pub use heatmap::{Bucket, Heatmap, Matrix};
pub use layouts::{
    Better, Change, Column, Comparison, ComparisonRow, Figure, Finding, LayoutsPage, Note, PartBytes, Severity, Unit,
    Verdict,
};
pub use queries::{Answer, Query, QueryMatrix, QueryRow, Seen, Shape};
pub use runs::{Calendar, CalendarDay, CheckPoint, CheckSeries, DayState, Flow, FlowEdge, FlowNode, RunBar, RunsPage};
pub use table::{FamilyText, TablePage, TimeChart, TimeSlice, VersionText, WindowBar};
