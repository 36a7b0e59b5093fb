//! PDFs made by hand, each object as it is given.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, ZlibEncoder};

/// A file of these objects, the first of which is the catalogue.
pub fn file<T: AsRef<[u8]>>(objects: &[T]) -> Vec<u8> {
    file_with(objects, "")
}

/// The same, with more in its trailer.
pub fn file_with<T: AsRef<[u8]>>(objects: &[T], trailer: &str) -> Vec<u8> {
    let mut file = b"%PDF-1.7\n".to_vec();
    let mut table = b"0000000000 65535 f \n".to_vec();
    for (index, object) in objects.iter().enumerate() {
        writeln!(table, "{:010} 00000 n ", file.len()).unwrap();
        write!(file, "{} 0 obj ", index + 1).unwrap();
        file.extend_from_slice(object.as_ref());
        file.extend_from_slice(b" endobj\n");
    }
    let (at, size) = (file.len(), objects.len() + 1);
    write!(file, "xref\n0 {size}\n").unwrap();
    file.extend_from_slice(&table);
    write!(file, "trailer <</Size {size}/Root 1 0 R{trailer}>>\nstartxref\n{at}\n%%EOF").unwrap();
    file
}

pub fn stream(entries: &str, data: &[u8]) -> Vec<u8> {
    let mut object = format!("<</Length {}{entries}>>stream\n", data.len()).into_bytes();
    object.extend_from_slice(data);
    object.extend_from_slice(b"\nendstream");
    object
}

/// One page with this content; the font F is not in the file.
pub fn page(content: &str) -> Vec<u8> {
    page_of(&stream("", content.as_bytes()), "", &[])
}

/// One page: its content (object 4), more entries for the page, and more objects (from 6 on).
pub fn page_of(content: &[u8], entries: &str, more: &[Vec<u8>]) -> Vec<u8> {
    let resources = if entries.contains("/Resources") { "" } else { "/Resources<</Font<</F 5 0 R>>>>" };
    let media = if entries.contains("/MediaBox") { "" } else { "/MediaBox[0 0 612 792]" };
    let mut objects = vec![
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>".to_vec(),
        format!("<</Type/Page/Parent 2 0 R/Contents 4 0 R{resources}{media}{entries}>>").into_bytes(),
        content.to_vec(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>".to_vec(),
    ];
    objects.extend_from_slice(more);
    file(&objects)
}

/// So many of the same byte, packed. One packed megabyte is repeated: it refers to nothing before itself.
pub fn bomb(byte: u8, len: usize) -> Vec<u8> {
    let block = vec![byte; 1024 * 1024];
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&block).unwrap();
    packed.flush().unwrap();
    let mut bytes = vec![0x78, 0x9c];
    bytes.extend_from_slice(&packed.get_ref().repeat(len / block.len()));
    bytes.extend_from_slice(&[3, 0, 0, 0, 0, 0]);
    bytes
}

pub fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

/// The same noise every time.
pub fn noise(len: usize) -> Vec<u8> {
    let mut state = 42_u32;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    })
    .take(len)
    .collect()
}
