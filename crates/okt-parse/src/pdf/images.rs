//! The pictures of a PDF: its pages as they look, and the images in them.

use std::collections::HashSet;
use std::io::Cursor;
use std::time::{Duration, Instant};

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{DynamicImage, ImageEncoder};
use pdfium_render::prelude::{
    PdfColorSpace, PdfPage, PdfPageImageObject, PdfPageObject, PdfPageObjectsCommon, PdfRenderConfig,
};
use sha2::{Digest, Sha256};

use crate::document::{Image, ImageKind, Limits};

/// How wide a page is drawn; and again, when that is more bytes than are taken.
const RENDER_WIDTHS: [i32; 2] = [1_200, 600];
const RENDER_HEIGHT: i32 = 4_000;
/// For drawing all pages, of the half minute that a file has: nobody loses a text because its pages are rich.
const RENDER_TIME: Duration = Duration::from_secs(10);
/// Smaller is a line, a bullet or a spy.
const LEAST: i32 = 32;
/// Of an image that is passed on as it is.
const PIXELS: i64 = 40_000_000;
/// Of one that has to be decoded here: it is in memory three times, four bytes a pixel, and all of it has 704 MiB.
const DECODED_PIXELS: i64 = 12_000_000;
/// How deep pieces of a page may be made of pieces, and how many are looked at on one page.
const DEPTH: u32 = 4;
const OBJECTS: usize = 50_000;

pub struct Gallery<'a> {
    limits: &'a Limits,
    out: &'a mut dyn FnMut(Image),
    renders: u32,
    drawing: Duration,
    inline: u32,
    /// The logo of every page is one image.
    seen: HashSet<[u8; 32]>,
}

impl<'a> Gallery<'a> {
    pub fn new(limits: &'a Limits, out: &'a mut dyn FnMut(Image)) -> Self {
        Self { limits, out, renders: 0, drawing: Duration::ZERO, inline: 0, seen: HashSet::new() }
    }

    pub fn take(&mut self, page: &PdfPage<'_>, number: u32) {
        let wanted = self.renders < self.limits.page_images && self.drawing < RENDER_TIME;
        let began = Instant::now();
        let drawn = if wanted { render(page, self.limits.image_bytes) } else { None };
        self.drawing += began.elapsed();
        if let Some((width, height, bytes)) = drawn {
            let position = self.renders;
            self.renders += 1;
            self.give(
                ImageKind::Page,
                position,
                number,
                Picture { width, height, content_type: "image/png", bytes },
            );
        }
        if self.inline < self.limits.images {
            let mut left = OBJECTS;
            let objects = page.objects();
            for index in 0..objects.len().min(OBJECTS) {
                if let Ok(object) = objects.get(index) {
                    self.object(&object, number, DEPTH, &mut left);
                }
            }
        }
    }

    fn object(&mut self, object: &PdfPageObject<'_>, number: u32, depth: u32, left: &mut usize) {
        if *left == 0 || depth == 0 || self.inline >= self.limits.images {
            return;
        }
        *left -= 1;
        match object {
            PdfPageObject::Image(image) => {
                let Some(picture) = extract(image, self.limits.image_bytes) else { return };
                if self.seen.insert(Sha256::digest(&picture.bytes).into()) {
                    let position = self.inline;
                    self.inline += 1;
                    self.give(ImageKind::Inline, position, number, picture);
                }
            }
            PdfPageObject::XObjectForm(form) => {
                for index in 0..form.len().min(*left) {
                    if let Ok(object) = form.get(index) {
                        self.object(&object, number, depth - 1, left);
                    }
                }
            }
            _ => {}
        }
    }

    fn give(&mut self, kind: ImageKind, position: u32, number: u32, picture: Picture) {
        (self.out)(Image {
            kind,
            page_number: Some(number),
            position,
            url: None,
            width: Some(picture.width),
            height: Some(picture.height),
            alt_text: None,
            content_type: Some(picture.content_type.to_owned()),
            bytes: picture.bytes,
        });
    }
}

struct Picture {
    width: u32,
    height: u32,
    content_type: &'static str,
    bytes: Vec<u8>,
}

fn render(page: &PdfPage<'_>, limit: u32) -> Option<(u32, u32, Vec<u8>)> {
    let (width, height) = (page.width().value, page.height().value);
    if !(width >= 1.0 && height >= 1.0) {
        return None;
    }
    for target in RENDER_WIDTHS {
        let config = PdfRenderConfig::new()
            .set_target_width(target)
            .set_maximum_width(target)
            .set_maximum_height(RENDER_HEIGHT)
            .render_form_data(false)
            .limit_render_image_cache_size(true);
        let picture = page.render_with_config(&config).ok()?.as_image().ok()?.into_rgb8();
        let (width, height) = picture.dimensions();
        let bytes = png(&picture.into())?;
        if fits(&bytes, limit) {
            return Some((width, height, bytes));
        }
    }
    None
}

fn extract(image: &PdfPageImageObject<'_>, limit: u32) -> Option<Picture> {
    let (width, height) = (image.width().ok()?, image.height().ok()?);
    let pixels = i64::from(width) * i64::from(height);
    if width < LEAST || height < LEAST || pixels > PIXELS {
        return None;
    }
    let filters = image.filters();
    let is_jpeg = filters.len() == 1 && filters.get(0).is_ok_and(|filter| filter.name() == "DCTDecode");
    // Browsers show the four inks of print in false colours.
    if is_jpeg && !matches!(image.color_space(), Ok(PdfColorSpace::DeviceCMYK)) {
        let bytes = image.get_raw_image_data().ok()?;
        if bytes.starts_with(&[0xff, 0xd8, 0xff]) && fits(&bytes, limit) {
            let (width, height) = (u32::try_from(width).ok()?, u32::try_from(height).ok()?);
            return Some(Picture { width, height, content_type: "image/jpeg", bytes });
        }
    }
    if pixels > DECODED_PIXELS {
        return None;
    }
    let picture = DynamicImage::from(image.get_raw_image().ok()?.into_rgb8());
    let (width, height) = (picture.width(), picture.height());
    let bytes = png(&picture)?;
    if fits(&bytes, limit) {
        return Some(Picture { width, height, content_type: "image/png", bytes });
    }
    let mut bytes = Vec::new();
    picture.write_with_encoder(JpegEncoder::new_with_quality(Cursor::new(&mut bytes), 80)).ok()?;
    fits(&bytes, limit).then_some(Picture { width, height, content_type: "image/jpeg", bytes })
}

fn fits(bytes: &[u8], limit: u32) -> bool {
    u32::try_from(bytes.len()).is_ok_and(|len| len <= limit)
}

pub fn png(picture: &DynamicImage) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let encoder = PngEncoder::new_with_quality(&mut bytes, CompressionType::Fast, FilterType::Adaptive);
    let (width, height) = (picture.width(), picture.height());
    encoder.write_image(picture.as_bytes(), width, height, picture.color().into()).ok()?;
    Some(bytes)
}
