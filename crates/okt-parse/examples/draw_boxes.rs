//! Draws the boxes of each sentence over the pages of a PDF, for looking at:
//!
//! `OKT_PDFIUM=$(scripts/pdfium) cargo run -p okt-parse --example draw_boxes -- FILE FOLDER`

use std::path::{Path, PathBuf};

use image::{Rgb, RgbImage};
use okt_parse::{ImageKind, Limits, Rect, pdf};

const COLOURS: [Rgb<u8>; 4] =
    [Rgb([220, 40, 40]), Rgb([30, 110, 220]), Rgb([20, 150, 60]), Rgb([200, 120, 0])];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(file), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("name a PDF and a folder".into());
    };
    let library = std::env::var_os("OKT_PDFIUM").ok_or("set OKT_PDFIUM to what scripts/pdfium prints")?;
    let engine = pdf::Engine::load(Path::new(&library))?;
    let mut pages = Vec::new();
    let document = pdf::parse(&engine, &std::fs::read(file)?, &Limits::default(), &mut |image| {
        if image.kind == ImageKind::Page {
            pages.push(image);
        }
    })?;
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("text.txt"), &document.text)?;
    std::fs::write(folder.join("text.md"), &document.markdown)?;
    std::fs::write(folder.join("document.json"), serde_json::to_vec_pretty(&document)?)?;
    for page in pages {
        let number = page.page_number.ok_or("a render without its page")?;
        let mut picture = image::load_from_memory(&page.bytes)?.into_rgb8();
        // The page's own size is not told; A4 and A5 are what the fixtures have, and the shape says which way it lies.
        let points = width_in_points(&document.boxes, &picture);
        for (index, boxes) in document.boxes.iter().enumerate() {
            for rect in boxes.iter().filter(|rect| rect.page == number) {
                draw(&mut picture, rect, points, COLOURS[index % COLOURS.len()]);
            }
        }
        picture.save(folder.join(format!("page-{number}.png")))?;
    }
    Ok(())
}

fn width_in_points(boxes: &[Vec<Rect>], picture: &RgbImage) -> f32 {
    if let Some(width) = std::env::var("WIDTH").ok().and_then(|width| width.parse().ok()) {
        return width;
    }
    let widest = boxes.iter().flatten().map(|rect| rect.x1).fold(0.0, f32::max);
    match (widest < 421.0, picture.width() > picture.height()) {
        (true, false) => 419.53,
        (_, false) => 595.28,
        (_, true) => 841.89,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "pixels"
)]
fn draw(picture: &mut RgbImage, rect: &Rect, points: f32, colour: Rgb<u8>) {
    let (width, height) = picture.dimensions();
    let scale = width as f32 / points;
    let x = |at: f32| ((at * scale) as u32).min(width - 1);
    let y = |at: f32| (height as f32 - at * scale).clamp(0.0, height as f32 - 1.0) as u32;
    let (x0, x1, y0, y1) = (x(rect.x0), x(rect.x1), y(rect.y1), y(rect.y0));
    for at in x0..=x1 {
        for thick in 0..2 {
            picture.put_pixel(at, (y0 + thick).min(height - 1), colour);
            picture.put_pixel(at, y1.saturating_sub(thick), colour);
        }
    }
    for at in y0..=y1 {
        for thick in 0..2 {
            picture.put_pixel((x0 + thick).min(width - 1), at, colour);
            picture.put_pixel(x1.saturating_sub(thick), at, colour);
        }
    }
}
