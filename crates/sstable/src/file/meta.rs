//! Meta: schema, metadata, filter location and stripe table. Compressed, at the end of the file before the footer.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use tidetable_layout::{FieldType, StoredSchema, ValueType};

use crate::codec::block_compression;
use crate::coding::{Input, put_block, put_varint};
use crate::error::{ReadError, WriteError};
use crate::file::filter::Kind;
use crate::format::{HEADER_LEN, MAX_META_BYTES};
use crate::options::Compression;
use crate::stats::StripeMeta;

/// The location and the checksum of the key filter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FilterRef {
    pub(crate) kind: Kind,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) checksum: u64,
}

/// What a reader keeps of a file in memory.
#[derive(Debug, PartialEq)]
pub(crate) struct Meta {
    pub(crate) schema: Arc<StoredSchema>,
    /// Pairs that the writer's caller attached, such as who made the file.
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) filter: FilterRef,
    /// The stripe table, in key order.
    pub(crate) stripes: Vec<StripeMeta>,
}

impl Meta {
    /// The bytes of meta, compressed.
    ///
    /// # Errors
    /// If it exceeds [`MAX_META_BYTES`], or an encoder fails.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, WriteError> {
        let mut raw = Vec::new();
        put_block(&mut raw, &serde_json::to_vec(self.schema.as_ref())?);
        put_varint(&mut raw, self.metadata.len() as u64);
        for (key, value) in &self.metadata {
            put_block(&mut raw, key.as_bytes());
            put_block(&mut raw, value.as_bytes());
        }

        raw.push(self.filter.kind as u8);
        put_varint(&mut raw, self.filter.len);
        raw.extend_from_slice(&self.filter.checksum.to_le_bytes());

        put_varint(&mut raw, self.stripes.len() as u64);
        self.stripes.iter().for_each(|stripe| stripe.put(&mut raw, &self.schema));
        if raw.len() > MAX_META_BYTES {
            return Err(WriteError::TooLarge { what: "bytes of meta", found: raw.len(), limit: MAX_META_BYTES });
        }

        let mut out = Vec::new();
        block_compression::put(&mut out, &raw, Compression::Dense)?;
        Ok(out)
    }

    /// Decodes meta at `offset` of a file of this version. The offset says where the filter must end.
    ///
    /// # Errors
    /// If the bytes are damaged, or lengths do not add up to the offset.
    pub(crate) fn decode(bytes: Bytes, offset: u64, version: u32) -> Result<Self, ReadError> {
        let mut input = Input::new(bytes, offset, "meta");
        let raw = block_compression::read(&mut input, MAX_META_BYTES)?;
        let mut input = Input::new(raw, offset, "meta");

        let schema: StoredSchema = serde_json::from_slice(&input.on("schema").block()?).map_err(|_| input.corrupt())?;
        if !is_representable(&schema) {
            return Err(input.corrupt());
        }
        let pairs = input.on("metadata").varint()?;
        let mut metadata = BTreeMap::new();
        for _ in 0..pairs {
            let (key, value) = (text(&mut input)?, text(&mut input)?);
            metadata.insert(key, value);
        }

        let kind = Kind::of(input.on("filter entry").u8()?).ok_or_else(|| input.corrupt())?;
        let (filter_len, checksum) = (input.varint()?, input.u64()?);

        let count = input.on("stripe table").varint()?;
        let (mut stripes, mut next): (Vec<StripeMeta>, _) = (Vec::new(), HEADER_LEN as u64);
        for _ in 0..count {
            let stripe = StripeMeta::read(&mut input, &schema, next, version)?;
            next = next.checked_add(stripe.len).filter(|end| *end <= offset).ok_or_else(|| input.corrupt())?;
            if stripes.last().is_some_and(|last| last.last_key >= stripe.first_key) {
                return Err(input.corrupt());
            }
            stripes.push(stripe);
        }
        input.finish()?;
        if next.checked_add(filter_len) != Some(offset) {
            return Err(input.corrupt());
        }
        let filter = FilterRef { kind, offset: next, len: filter_len, checksum };
        Ok(Self { schema: Arc::new(schema), metadata, filter, stripes })
    }
}

fn text(input: &mut Input) -> Result<String, ReadError> {
    let bytes = input.block()?;
    String::from_utf8(bytes.into()).map_err(|_| input.corrupt())
}

/// Whether Arrow can represent the types of a schema, and 64 bits the tails of its keys.
fn is_representable(schema: &StoredSchema) -> bool {
    let mut columns = schema.groups.iter().flat_map(|group| &group.columns);
    let fit = columns.all(|column| match column.value {
        ValueType::Field(FieldType::Decimal { precision, scale }) => {
            (1..=38).contains(&precision) && scale <= precision
        }
        _ => true,
    });
    schema.tail.digits() <= 19 && fit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::VERSION;

    #[test]
    fn round_trip_and_corruption() {
        let schema = Arc::new(StoredSchema { tail: Default::default(), groups: vec![], upsert: false });
        let stripe = StripeMeta {
            offset: 32,
            len: 68,
            first_key: Bytes::from_static(b"a"),
            last_key: Bytes::from_static(b"b"),
            rows: 2,
            records: vec![],
            one_version_each: vec![],
            fills_rows: vec![],
            group_cells: vec![],
            cells: 0,
            timestamps: Some((-1, 1)),
            columns: vec![],
            head_len: 60,
            head_checksum: 9,
        };
        let metadata = BTreeMap::from([("table".to_owned(), "SENSOR".to_owned())]);
        let meta =
            Meta { schema, metadata, filter: FilterRef { offset: 100, ..Default::default() }, stripes: vec![stripe] };
        let bytes = meta.encode().unwrap();
        assert_eq!(Meta::decode(bytes.clone().into(), 100, VERSION).unwrap(), meta);
        assert!(Meta::decode(bytes.clone().into(), 101, VERSION).is_err());
        assert!(Meta::decode(bytes[..bytes.len() - 1].to_vec().into(), 100, VERSION).is_err());
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            // Checksums are the footer's affair; here nothing may panic.
            drop(Meta::decode(bytes.into(), 100, VERSION));
        }
    }
}
