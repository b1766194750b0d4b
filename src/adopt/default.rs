//! Whether a column's default mints ids already.

use crate::layout::{INSTAGRAM, Layout};
use pgrx::list::List;
use pgrx::prelude::*;
use std::ffi::{CStr, c_void};

/// The layout of the ids that a stored expression mints, where it is a call of one of the functions `minting`, cast or
/// not, and the layout a constant.
pub fn layout_of(expression: &CStr, minting: &[pg_sys::Oid]) -> Option<Layout> {
    // SAFETY: the text is a pg_node_tree of the catalog.
    unsafe {
        let node = uncast(pg_sys::stringToNode(expression.as_ptr()).cast());
        if !pgrx::is_a(node, pg_sys::NodeTag::T_FuncExpr) {
            return None;
        }
        let call = node.cast::<pg_sys::FuncExpr>();
        if !minting.contains(&(*call).funcid) {
            return None;
        }
        pgrx::memcx::current_context(|context| {
            let arguments = List::<*mut c_void>::downcast_ptr_in_memcx((*call).args, context)?;
            // Left out it is the default; defaults of arguments are not stored with a call.
            let Some(&layout) = arguments.get(2) else { return Some(INSTAGRAM) };
            if !pgrx::is_a(layout.cast(), pg_sys::NodeTag::T_Const) {
                return None;
            }
            let value = (*layout.cast::<pg_sys::Const>()).constvalue;
            Layout::unpack(value.value() as u64)
        })
    }
}

/// What is below the casts to `snowflake` or to a domain.
unsafe fn uncast(mut node: *mut pg_sys::Node) -> *mut pg_sys::Node {
    // SAFETY: each node is of the type that its tag says.
    unsafe {
        loop {
            if pgrx::is_a(node, pg_sys::NodeTag::T_RelabelType) {
                node = (*node.cast::<pg_sys::RelabelType>()).arg.cast();
            } else if pgrx::is_a(node, pg_sys::NodeTag::T_CoerceToDomain) {
                node = (*node.cast::<pg_sys::CoerceToDomain>()).arg.cast();
            } else {
                return node;
            }
        }
    }
}
