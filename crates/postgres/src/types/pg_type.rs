//! Types of PostgreSQL, with their object ids.

/// A scalar type of PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Base {
    Bool,
    Bytea,
    /// `"char"`: one byte, which system catalogs have.
    Char,
    Name,
    Int8,
    Int2,
    Int4,
    Regproc,
    Text,
    Oid,
    Json,
    Float4,
    Float8,
    Unknown,
    Bpchar,
    Varchar,
    Date,
    Time,
    Timestamp,
    TimestampTz,
    Interval,
    Numeric,
    Uuid,
    Jsonb,
}

/// A type, or arrays of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PgType {
    pub(crate) base: Base,
    pub(crate) is_array: bool,
}

/// What `pg_type` says of a scalar type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) base: Base,
    /// Name in `pg_type`.
    pub(crate) name: &'static str,
    /// Name as `format_type` writes it.
    pub(crate) sql: &'static str,
    pub(crate) oid: u32,
    /// Object id of the type of arrays of it; 0 if there is none.
    pub(crate) array: u32,
    /// Bytes of a value; -1 if values differ.
    pub(crate) length: i16,
    /// Category of `pg_type`, by which drivers group types.
    pub(crate) category: char,
}

const fn entry(
    base: Base,
    name: &'static str,
    sql: &'static str,
    [oid, array]: [u32; 2],
    length: i16,
    category: char,
) -> Entry {
    Entry { base, name, sql, oid, array, length, category }
}

/// All scalar types that the server knows, with the ids that PostgreSQL has for ever.
pub(crate) const TYPES: [Entry; 24] = [
    entry(Base::Bool, "bool", "boolean", [16, 1000], 1, 'B'),
    entry(Base::Bytea, "bytea", "bytea", [17, 1001], -1, 'U'),
    entry(Base::Char, "char", "\"char\"", [18, 1002], 1, 'Z'),
    entry(Base::Name, "name", "name", [19, 1003], 64, 'S'),
    entry(Base::Int8, "int8", "bigint", [20, 1016], 8, 'N'),
    entry(Base::Int2, "int2", "smallint", [21, 1005], 2, 'N'),
    entry(Base::Int4, "int4", "integer", [23, 1007], 4, 'N'),
    entry(Base::Regproc, "regproc", "regproc", [24, 1008], 4, 'N'),
    entry(Base::Text, "text", "text", [25, 1009], -1, 'S'),
    entry(Base::Oid, "oid", "oid", [26, 1028], 4, 'N'),
    entry(Base::Json, "json", "json", [114, 199], -1, 'U'),
    entry(Base::Float4, "float4", "real", [700, 1021], 4, 'N'),
    entry(Base::Float8, "float8", "double precision", [701, 1022], 8, 'N'),
    entry(Base::Unknown, "unknown", "unknown", [705, 0], -2, 'X'),
    entry(Base::Bpchar, "bpchar", "character", [1042, 1014], -1, 'S'),
    entry(Base::Varchar, "varchar", "character varying", [1043, 1015], -1, 'S'),
    entry(Base::Date, "date", "date", [1082, 1182], 4, 'D'),
    entry(Base::Time, "time", "time without time zone", [1083, 1183], 8, 'D'),
    entry(Base::Timestamp, "timestamp", "timestamp without time zone", [1114, 1115], 8, 'D'),
    entry(Base::TimestampTz, "timestamptz", "timestamp with time zone", [1184, 1185], 8, 'D'),
    entry(Base::Interval, "interval", "interval", [1186, 1187], 16, 'T'),
    entry(Base::Numeric, "numeric", "numeric", [1700, 1231], -1, 'N'),
    entry(Base::Uuid, "uuid", "uuid", [2950, 2951], 16, 'U'),
    entry(Base::Jsonb, "jsonb", "jsonb", [3802, 3807], -1, 'U'),
];

impl Base {
    /// What `pg_type` says of it.
    pub(crate) fn entry(self) -> &'static Entry {
        TYPES.iter().find(|entry| entry.base == self).unwrap_or(&TYPES[8])
    }

    /// The type of one value of it.
    pub(crate) const fn one(self) -> PgType {
        PgType { base: self, is_array: false }
    }

    /// The type of arrays of it.
    pub(crate) const fn array(self) -> PgType {
        PgType { base: self, is_array: true }
    }
}

impl PgType {
    /// The type with an object id; `None` if the server does not know it.
    pub(crate) fn of_oid(oid: u32) -> Option<Self> {
        let entry = TYPES.iter().find(|entry| entry.oid == oid || (entry.array == oid && oid != 0))?;
        Some(Self { base: entry.base, is_array: entry.oid != oid })
    }

    /// The type that a name of `pg_type` means; those of arrays begin with an underscore.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let (name, is_array) = match name.strip_prefix('_') {
            Some(item) => (item, true),
            None => (name, false),
        };
        TYPES.iter().find(|entry| entry.name == name).map(|entry| Self { base: entry.base, is_array })
    }

    /// Its object id.
    pub(crate) fn oid(self) -> u32 {
        let entry = self.base.entry();
        if self.is_array { entry.array } else { entry.oid }
    }

    /// Bytes of a value; negative if values differ.
    pub(crate) fn length(self) -> i16 {
        if self.is_array { -1 } else { self.base.entry().length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_by_id_and_name() {
        for entry in &TYPES {
            assert_eq!(PgType::of_oid(entry.oid), Some(entry.base.one()));
            assert_eq!(PgType::of_name(entry.name), Some(entry.base.one()));
            assert_eq!(entry.base.one().oid(), entry.oid);
            if entry.array != 0 {
                assert_eq!(PgType::of_oid(entry.array), Some(entry.base.array()));
                assert_eq!(PgType::of_name(&format!("_{}", entry.name)), Some(entry.base.array()));
            }
        }
        assert_eq!(PgType::of_oid(0), None);
        assert_eq!(PgType::of_name("geometry"), None);
    }
}
