//! A heatmap as a PNG: what remains of it without a script.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use png::{BitDepth, ColorType, Compression, Encoder};

use super::colours::{Scale, palette};
use crate::error::PageError;
use crate::view::Heatmap;

/// The map as a PNG, a pixel a value: slices from left to right, buckets from top to bottom.
pub(crate) fn png(map: &Heatmap, scale: &Scale) -> Result<Vec<u8>, PageError> {
    let (slices, buckets) = (map.slices(), map.buckets.len());
    let mut levels = Vec::with_capacity(map.values.len());
    for bucket in 0..buckets {
        levels.extend((0..slices).map(|slice| scale.level(map.at(slice, bucket))));
    }

    let [width, height] = [slices, buckets].map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, width, height);
    encoder.set_color(ColorType::Indexed);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_compression(Compression::High);
    encoder.set_filter(png::Filter::NoFilter);
    encoder.set_palette(palette().as_flattened().to_vec());

    let mut writer = encoder.write_header()?;
    writer.write_image_data(&levels)?;
    writer.finish()?;
    Ok(file)
}

/// The map as a `data:` URL of its PNG.
pub(crate) fn url(map: &Heatmap, scale: &Scale) -> Result<String, PageError> {
    Ok(format!("data:image/png;base64,{}", STANDARD.encode(png(map, scale)?)))
}
