//! Draws the boxes of each sentence over the pages of a PDF, for looking at:
//!
//! `OKT_PDFIUM=$(scripts/pdfium) cargo run -p okt-parse --example reader -- draw FILE FOLDER`

use std::path::{Path, PathBuf};

use image::{Rgb, RgbImage};
use okt_parse::{ImageKind, Limits, Rect, pdf};

const COLOURS: [Rgb<u8>; 4] =
    [Rgb([220, 40, 40]), Rgb([30, 110, 220]), Rgb([20, 150, 60]), Rgb([200, 120, 0])];

pub fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(2).map(PathBuf::from);
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
        let size =
            document.pages.iter().find(|size| size.number == number).ok_or("a page without its size")?;
        for (index, boxes) in document.boxes.iter().enumerate() {
            for rect in boxes.iter().filter(|rect| rect.page == number) {
                draw(&mut picture, rect, size.width, COLOURS[index % COLOURS.len()]);
            }
        }
        picture.save(folder.join(format!("page-{number}.png")))?;
    }
    Ok(())
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
