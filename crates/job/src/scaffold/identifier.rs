//! Quoting of SQL identifiers.

const RESERVED: &str = "\
    all and any array as between by case cast cross current date distinct else end except exists false fetch for \
    from full group having in inner intersect interval into is join left like limit natural not null offset on or \
    order outer over partition right row select table then time timestamp true union user using values where";

/// Quotes a name for SQL if needed: if it is reserved, or has other letters than small ones, digits and `_`.
pub fn identifier(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && !RESERVED.split(' ').any(|word| word == name);
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}
