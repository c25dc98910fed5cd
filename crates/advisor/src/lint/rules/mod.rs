//! The rules, a file for each subject.

mod columns;
mod key_fields;
mod key_order;
mod key_values;
mod queries;
mod rows;
mod tables;
mod writes;

use super::rule::Rule;

/// Every rule: of row keys, rows, columns, tables, writes and queries, each by number; then of allowances.
pub const RULES: &[&Rule] = &[
    &key_order::TIME_FIRST,
    &key_values::SEQUENTIAL,
    &key_fields::HASH,
    &key_fields::UNPADDED,
    &key_values::DOMAIN,
    &key_values::HOT_DOMAINS,
    &writes::REWRITTEN,
    &key_fields::KEY_LENGTH,
    &key_order::SALT,
    &key_order::REVERSED_TIME,
    &key_values::GRANULAR,
    &key_fields::NO_YEAR,
    &key_fields::PERSONAL,
    &key_values::DELIMITER,
    &writes::OVERWRITTEN,
    &key_order::TENANT,
    &key_fields::RAW_BYTES,
    &rows::ROW_SIZE,
    &rows::CELL_SIZE,
    &rows::ENDLESS,
    &rows::VERSIONS,
    &queries::ATOMIC,
    &rows::ROW_CELL_COUNT,
    &columns::FAMILIES,
    &columns::LONG_NAMES,
    &columns::QUALIFIER_LENGTH,
    &columns::MESSAGE,
    &columns::COLLECTED,
    &queries::FAMILIES_READ,
    &queries::AGGREGATES,
    &columns::ROWS_FOR_COLUMNS,
    &tables::TABLES,
    &tables::ALIKE,
    &tables::APART,
    &writes::ONE_RANGE,
    &writes::HOT_ROW,
    &writes::BURSTS,
    &queries::SCAN,
    &queries::READ_FOR_NOTHING,
    &tables::UNKNOWN_RULE,
];
