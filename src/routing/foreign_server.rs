//! The server of a foreign table, and its connection options.

use crate::postgres::result_row::Nullable;
use pgrx::list::List;
use pgrx::prelude::*;
use std::ffi::CStr;

/// The name of a foreign table's server, and the server's options host, port and dbname; null for an option
/// that is not set. A port that is not a number, such as the list for several hosts, is null too.
pub fn of_foreign_table(relid: pg_sys::Oid) -> [Nullable; 4] {
    // SAFETY: a foreign table has a server, and the server's name is a C string.
    unsafe {
        let server = &*pg_sys::GetForeignServer((*pg_sys::GetForeignTable(relid)).serverid);
        let name = pgrx::direct_function_call_as_datum(pg_sys::namein, &[Some(server.servername.into())]);
        let host = option(server, c"host").map(text);
        let port = option(server, c"port").and_then(number);
        let dbname = option(server, c"dbname").map(text);
        [name, host, port, dbname]
    }
}

/// The value of an option of the server.
unsafe fn option<'a>(server: &'a pg_sys::ForeignServer, name: &CStr) -> Option<&'a CStr> {
    // SAFETY: the options are a list of nodes, each with a name and a string, in memory that outlives the call.
    unsafe {
        pgrx::memcx::current_context(|context| {
            let options = List::<*mut std::ffi::c_void>::downcast_ptr_in_memcx(server.options, context)?;
            options
                .iter()
                .map(|&option| option.cast::<pg_sys::DefElem>())
                .find(|&option| CStr::from_ptr((*option).defname) == name)
                .map(|option| CStr::from_ptr(pg_sys::defGetString(option)))
        })
    }
}

fn text(value: &CStr) -> pg_sys::Datum {
    // SAFETY: a C string in, a palloc'd text out.
    unsafe { pg_sys::cstring_to_text(value.as_ptr()) }.into()
}

fn number(value: &CStr) -> Nullable {
    Some(value.to_str().ok()?.parse::<i32>().ok()?.into())
}
