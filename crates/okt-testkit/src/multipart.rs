//! Forms with a file, as a browser sends them.

use std::fmt::Write as _;

const BOUNDARY: &str = "a-line-between";

/// The header that goes with a form.
pub const CONTENT_TYPE: &str = "multipart/form-data; boundary=a-line-between";

/// A form with these texts and a file.
pub fn form(texts: &[(&str, &str)], name: &str, content_type: &str, bytes: &[u8]) -> Vec<u8> {
    let mut head = String::new();
    for (field, text) in texts {
        let _ = write!(
            head,
            "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{field}\"\r\n\r\n{text}\r\n"
        );
    }
    let _ = write!(
        head,
        "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
         content-type: {content_type}\r\n\r\n"
    );
    [head.as_bytes(), bytes, format!("\r\n--{BOUNDARY}--\r\n").as_bytes()].concat()
}
