//! Queries and costs of layouts, as tables and JSON.

use std::io::Write;

use serde_json::{Value, json};
use tidetable_advisor::comparison::{Answer, Comparison, Economy};
use tidetable_advisor::cost::{GIB, Prices};
use tidetable_advisor::queries::Seen;

use super::rounded;
use crate::args::Output;
use crate::error::CliError;
use crate::output::{ResultRows, row};

/// What decides the order of layouts, in the columns of the tables.
pub const ORDER: &str = "order: those that are served and that no rule refuses first; then by the price of a month, within 1 % by the \
                         nodes that are busy, then by the guides' order, then by the rows and the bytes that queries see a second.";

/// The answers of a layout.
pub fn answers_of(economy: &Economy, layout: usize) -> Value {
    let answers = economy.answers.get(layout).map(Vec::as_slice).unwrap_or_default();
    answers.iter().map(answer).collect()
}

fn answer(answer: &Answer) -> Value {
    let mut object = json!({ "query": answer.query, "problem": answer.problem });
    if let Some(asked) = &answer.asked {
        object["per_second"] = json!(asked.per_second);
        object["need"] = json!(asked.need.name());
        object["draws"] = json!(asked.draws);
        let parts = [
            ("ranges", asked.ranges),
            ("rows_seen", asked.rows),
            ("cells_seen", asked.cells),
            ("bytes_seen", asked.bytes),
            ("records_returned", asked.records),
            ("values_returned", asked.values),
            ("bytes_returned", asked.value_bytes),
        ];
        for (name, Seen { p50, p95, mean }) in parts {
            object[name] = json!({ "p50": p50, "p95": p95, "mean": mean });
        }
    }
    object
}

/// The cost of a layout.
pub fn cost_of(economy: &Economy, layout: usize, prices: &Prices) -> Value {
    let (Some(cost), Some(score)) = (economy.costs.get(layout), economy.scores.get(layout)) else { return Value::Null };
    json!({
        "place": score.place,
        "pareto": score.is_pareto,
        "robust": rounded(score.robust),
        "unservable": cost.unservable.as_ref().map(ToString::to_string),
        "month_low": cost.month.0,
        "month_high": cost.month.1,
        "nodes_low": cost.nodes.0,
        "nodes_high": cost.nodes.1,
        "write_kib_per_second": cost.write_kib,
        "busy_month": cost.busy_month,
        "first_kib_per_second": cost.read_kib,
        "following_mb_per_second": cost.scan_mb,
        "read_kib_per_second": cost.read_kib,
        "scan_mb_per_second": cost.scan_mb,
        "write_load": cost.write_load,
        "read_load": cost.read_load,
        "stored_gib_low": cost.stored.0 / GIB,
        "stored_gib_high": cost.stored.1 / GIB,
        "rows_seen_per_second": cost.rows_seen(),
        "bytes_seen_per_second": cost.bytes_seen,
        "writes_per_second": economy.demand.writes_per_second,
        "kept_rows": economy.demand.kept_rows,
        "scale_factor": rounded(economy.demand.factor),
        "currency": prices.currency,
        "prices_date": prices.date,
        "region": prices.region,
    })
}

/// A factor with as many digits as mean something.
pub fn factor_text(factor: f64) -> String {
    if factor < 100.0 { format!("{factor:.2}") } else { format!("{factor:.0}") }
}

/// Shows both, and how they were computed.
pub fn show(economy: &Economy, comparison: &Comparison, prices: &Prices, out: &mut impl Write) -> Result<(), CliError> {
    writeln!(out)?;
    let names = || comparison.layouts.iter().map(|layout| layout.measured.layout.as_str());
    let mut rows =
        ResultRows::new(&["query", "layout", "need", "ranges", "rows seen", "cells seen", "bytes seen", "returned"]);
    for at in 0..economy.answers.first().map_or(0, Vec::len) {
        let of_query = economy.answers.iter().filter_map(|answers| answers.get(at));
        for (name, Answer { query, asked, .. }) in names().zip(of_query) {
            let Some(asked) = asked else {
                rows.push(row![query, name, "none", (), (), (), (), ()]);
                continue;
            };
            rows.push(row![
                query,
                name,
                asked.need.name(),
                asked.ranges.p50,
                asked.rows.p50,
                asked.cells.p50,
                asked.bytes.p50,
                asked.values.p50
            ]);
        }
    }
    rows.write(Output::Table, out)?;
    writeln!(out, "seen: all rows in the key ranges, median of the draws. returned: values of the wanted columns.")?;
    writeln!(out)?;
    let money = format!("{} a month", prices.currency);
    let mut rows = ResultRows::new(&[
        "place",
        "layout",
        "a month",
        "busy",
        "nodes",
        "GiB stored",
        "rows seen",
        "robust",
        "best of two",
    ]);
    let mut order: Vec<usize> = (0..economy.scores.len()).collect();
    order.sort_by_key(|at| economy.scores.get(*at).map(|score| score.place));
    for at in order {
        let (Some(cost), Some(score), Some(name)) = (economy.costs.get(at), economy.scores.get(at), names().nth(at))
        else {
            continue;
        };
        let dollars = match cost.unservable {
            Some(_) => "not served".to_owned(),
            None => format!("{:.0}..{:.0}", cost.month.0, cost.month.1),
        };
        rows.push(row![
            score.place,
            name,
            dollars,
            format!("{:.2}", cost.busy_month),
            cost.nodes.1 as u64,
            format!("{:.3}..{:.3}", cost.stored.0 / GIB, cost.stored.1 / GIB),
            format!("{:.1}", cost.rows_seen()),
            format!("{:.2}", score.robust),
            if score.is_pareto { "yes" } else { "" }
        ]);
    }
    rows.write(Output::Table, out)?;
    writeln!(
        out,
        "{money}: {:.1} source rows a second, kept {:.1} days: {} times what was measured.",
        economy.demand.writes_per_second,
        economy.demand.days(),
        factor_text(economy.demand.factor)
    )?;
    writeln!(out, "list prices of {} ({}), without discounts.", prices.region, prices.date)?;
    writeln!(out, "{ORDER}")?;
    writeln!(out, "best of two: no other layout costs less and lets queries see fewer bytes.")?;
    for (name, answers) in names().zip(&economy.answers) {
        for answer in answers {
            if let Some(problem) = &answer.problem {
                writeln!(out, "{name}, query {}: {problem}", answer.query)?;
            }
        }
    }
    for (name, cost) in names().zip(&economy.costs) {
        if cost.errors > 0 {
            writeln!(out, "{name}: a rule refuses it, so it comes after all that none refuses, whatever it costs.")?;
        }
        if let Some(nodes) = cost.hot_series {
            writeln!(out, "{name}: the newest rows of its busiest entity take the writes of {nodes:.1} nodes on one.")?;
        }
        if cost.is_sequential {
            writeln!(out, "{name}: its keys grow with time, so it comes after all others, whatever it costs.")?;
        }
        if let Some(reason) = &cost.unservable {
            writeln!(out, "{name} cannot be served: {reason}")?;
        }
    }
    Ok(())
}
