//! Conversion between the server's text and Rust's, which is UTF-8 whatever the database's encoding is.

use crate::postgres::memory;
use pgrx::prelude::*;
use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};

const UTF8: c_int = pg_sys::pg_enc::PG_UTF8 as c_int;

/// The server's text in UTF-8.
pub fn from_server(text: &CStr) -> String {
    // SAFETY: a C string and its length; the result is a C string too, possibly the same one.
    let utf8 = unsafe {
        let length = text.count_bytes() as c_int;
        CStr::from_ptr(call!(pg_server_to_any(text.as_ptr(), length, UTF8)))
    };
    // A database with encoding SQL_ASCII holds any bytes.
    match utf8.to_string_lossy() {
        Cow::Borrowed(text) => memory::copied_text(text),
        Cow::Owned(text) => text,
    }
}

/// The text in the server's encoding. Raises core's error if a character does not exist there.
pub fn to_server(text: &str) -> CString {
    let utf8 = c_string(text.as_bytes());
    // SAFETY: as above.
    unsafe {
        let in_server = call!(pg_any_to_server(utf8.as_ptr(), text.len() as c_int, UTF8));
        if in_server.cast_const() == utf8.as_ptr() {
            return utf8;
        }
        c_string(CStr::from_ptr(in_server).to_bytes())
    }
}

fn c_string(text: &[u8]) -> CString {
    let mut bytes = Vec::new();
    memory::reserve(&mut bytes, text.len() + 1);
    bytes.extend_from_slice(text);
    CString::new(bytes).expect("a name has no zero byte")
}

/// A datum of SQL type `text`.
pub struct Text(pub String);

impl FromDatum for Text {
    unsafe fn from_polymorphic_datum(datum: pg_sys::Datum, is_null: bool, _: pg_sys::Oid) -> Option<Self> {
        // SAFETY: the caller's datum is a text.
        (!is_null).then(|| unsafe {
            let text = call!(text_to_cstring(datum.cast_mut_ptr()));
            Text(from_server(CStr::from_ptr(text)))
        })
    }
}

impl IntoDatum for Text {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        // SAFETY: a C string, which is copied.
        Some(unsafe { call!(cstring_to_text(to_server(&self.0).as_ptr())) }.into())
    }

    fn type_oid() -> pg_sys::Oid {
        pg_sys::TEXTOID
    }
}
