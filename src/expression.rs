//! The calls of our generators in a stored expression, and what can be said of their arguments without evaluating
//! anything: an expression is whatever the owner of a table wrote, and who looks at it may be a superuser.

use crate::layout::{INSTAGRAM, Layout};
use pgrx::callconv::{Arg, ArgAbi};
use pgrx::pg_sys::{self, NodeTag};
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use std::ffi::{CStr, c_void};

/// A call of a generator, with the arguments that are constants.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Which generator.
    pub function: pg_sys::Oid,
    /// What is passed as the sequence, be it one or not.
    pub sequence: Option<pg_sys::Oid>,
    /// For which shard.
    pub shard: Shard,
    /// In which layout.
    pub layout: Option<Layout>,
}

/// The shard that a call names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shard {
    /// A constant.
    Constant(i32),
    /// Whatever `pg_snowflake.shard_id` says when the call is made.
    OfThisDatabase,
    /// Only an evaluation would tell.
    Unknown,
}

/// A stored expression, of SQL type `pg_node_tree`. Nobody but the server can make a value of that type.
pub struct Expression(*mut pg_sys::Node);

// SAFETY: the SQL declaration gives `pg_node_tree` for it, which is a text that nodeToString() wrote.
unsafe impl<'fcx> ArgAbi<'fcx> for Expression {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: the datum of a text is a pointer, as wide as an i64; the function is strict.
        unsafe {
            let datum: i64 = arg.unbox_arg_using_from_datum().expect("a strict function");
            let text = pg_sys::text_to_cstring(pg_sys::Datum::from(datum).cast_mut_ptr());
            Expression::parse(CStr::from_ptr(text))
        }
    }
}

// SAFETY: the SQL declarations are written by hand; this tells pgrx no more than the type's name.
unsafe impl SqlTranslatable for Expression {
    const TYPE_IDENT: &'static str = "pg_snowflake::expression::Expression";
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> =
        Ok(SqlMappingRef::literal("pg_node_tree"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> = Err(ReturnsError::Datum);
}

impl Expression {
    /// The expression that nodeToString() wrote as this text.
    ///
    /// # Safety
    /// The text is one that the server keeps as a `pg_node_tree`.
    unsafe fn parse(text: &CStr) -> Self {
        // SAFETY: as the caller promises.
        unsafe { Expression(pg_sys::stringToNode(text.as_ptr()).cast()) }
    }

    /// The calls of generators in the expression, from the outermost to the innermost.
    pub fn calls(&self) -> Vec<Call> {
        let extension = this_extension();
        let mut functions: Vec<*mut pg_sys::FuncExpr> = Vec::new();
        // SAFETY: the tree is the server's own. An ERROR, of a tree that is too deep, jumps over the walker's frames,
        // which own nothing.
        unsafe {
            pg_sys::ffi::pg_guard_ffi_boundary(|| {
                collect_functions(self.0, (&raw mut functions).cast())
            });
            functions.into_iter().filter_map(|function| call(function, extension)).collect()
        }
    }
}

type Walker = unsafe extern "C-unwind" fn(*mut pg_sys::Node, *mut c_void) -> bool;

unsafe extern "C-unwind" {
    // nodes/nodeFuncs.h: a macro around a function of another name from 16 on.
    #[cfg_attr(not(feature = "pg15"), link_name = "expression_tree_walker_impl")]
    fn expression_tree_walker(
        node: *mut pg_sys::Node,
        walker: Walker,
        context: *mut c_void,
    ) -> bool;
}

/// Puts each function call below `node` into the `Vec` that `functions` points to.
unsafe extern "C-unwind" fn collect_functions(
    node: *mut pg_sys::Node,
    functions: *mut c_void,
) -> bool {
    // SAFETY: the server's own tree, whose empty places are null; calls() passes the Vec.
    unsafe {
        if node.is_null() {
            return false;
        }
        if let Some(function) = as_node(node, NodeTag::T_FuncExpr) {
            (*functions.cast::<Vec<*mut pg_sys::FuncExpr>>()).push(function);
        }
        expression_tree_walker(node, collect_functions, functions)
    }
}

/// The call, if it is one of our generators.
///
/// # Safety
/// `function` is of a sound tree.
unsafe fn call(function: *mut pg_sys::FuncExpr, extension: pg_sys::Oid) -> Option<Call> {
    // SAFETY: as the caller promises; the arguments are of the types that the generators are declared with.
    unsafe {
        let funcid = (*function).funcid;
        if !is_ours(funcid, c"snowflake_nextval", extension) {
            return None;
        }
        match *arguments(function).as_slice() {
            [sequence] => Some(Call {
                function: funcid,
                sequence: oid(sequence),
                shard: Shard::OfThisDatabase,
                layout: Some(INSTAGRAM),
            }),
            [sequence, shard_id, layout] => Some(Call {
                function: funcid,
                sequence: oid(sequence),
                shard: shard(shard_id, extension),
                layout: constant(layout).and_then(|layout| Layout::unpack(layout.value() as u64)),
            }),
            _ => None,
        }
    }
}

/// The arguments in the order of the declaration, those by name and those that were left out too, as the planner puts
/// them.
unsafe fn arguments(function: *mut pg_sys::FuncExpr) -> Vec<*mut pg_sys::Node> {
    // SAFETY: the function exists, as the expression depends on it; a List has `length` elements.
    unsafe {
        let cache_id = pg_sys::SysCacheIdentifier::PROCOID as i32;
        let procedure = pg_sys::SearchSysCache1(cache_id, (*function).funcid.into());
        if procedure.is_null() {
            return Vec::new();
        }
        let list = pg_sys::expand_function_arguments(
            (*function).args,
            false,
            (*function).funcresulttype,
            procedure,
        );
        pg_sys::ReleaseSysCache(procedure);
        if list.is_null() {
            return Vec::new();
        }
        let elements = std::slice::from_raw_parts((*list).elements, (*list).length as usize);
        elements.iter().map(|element| element.ptr_value.cast()).collect()
    }
}

/// An OID that is a constant, as regclass or as oid.
unsafe fn oid(node: *mut pg_sys::Node) -> Option<pg_sys::Oid> {
    // SAFETY: the node is of a type that is binary-coercible to regclass.
    unsafe { constant(node).map(|datum| pg_sys::Oid::from(datum.value() as u32)) }
}

unsafe fn shard(node: *mut pg_sys::Node, extension: pg_sys::Oid) -> Shard {
    // SAFETY: the node is an integer expression of a sound tree.
    unsafe {
        let is_setting =
            as_node::<pg_sys::FuncExpr>(node, NodeTag::T_FuncExpr).is_some_and(|function| {
                (*function).args.is_null()
                    && is_ours((*function).funcid, c"snowflake_shard_id", extension)
            });
        if is_setting {
            return Shard::OfThisDatabase;
        }
        let shard = integer(node).and_then(|shard| i32::try_from(shard).ok());
        shard.map_or(Shard::Unknown, Shard::Constant)
    }
}

/// Core's casts between the integer types: `3::smallint` is stored as a call of one. One that overflows is an error.
const INTEGER_CASTS: [u32; 6] = [
    pg_sys::F_INT2_INT4,
    pg_sys::F_INT2_INT8,
    pg_sys::F_INT4_INT2,
    pg_sys::F_INT4_INT8,
    pg_sys::F_INT8_INT2,
    pg_sys::F_INT8_INT4,
];

/// An integer constant of any width, under casts to others.
unsafe fn integer(node: *mut pg_sys::Node) -> Option<i64> {
    // SAFETY: a constant has a value of its type, and a cast has one argument.
    unsafe {
        if let Some(function) = as_node::<pg_sys::FuncExpr>(node, NodeTag::T_FuncExpr) {
            if !INTEGER_CASTS.contains(&(*function).funcid.to_u32()) {
                return None;
            }
            let argument = integer((*(*(*function).args).elements).ptr_value.cast())?;
            return narrowed(argument, (*function).funcresulttype);
        }
        let value = constant(node)?.value() as i64;
        narrowed(value, pg_sys::exprType(node))
    }
}

/// The value, if it is one of that integer type.
fn narrowed(value: i64, typid: pg_sys::Oid) -> Option<i64> {
    match typid {
        pg_sys::INT2OID => i16::try_from(value).ok().map(Into::into),
        pg_sys::INT4OID => i32::try_from(value).ok().map(Into::into),
        pg_sys::INT8OID => Some(value),
        _ => None,
    }
}

/// The value of a constant that is not null, under casts that change nothing but the type.
unsafe fn constant(mut node: *mut pg_sys::Node) -> Option<pg_sys::Datum> {
    // SAFETY: a node is what its tag says.
    unsafe {
        while let Some(relabeled) = as_node::<pg_sys::RelabelType>(node, NodeTag::T_RelabelType) {
            node = (*relabeled).arg.cast();
        }
        let constant = as_node::<pg_sys::Const>(node, NodeTag::T_Const)?;
        (!(*constant).constisnull).then_some((*constant).constvalue)
    }
}

/// The node as the struct of that tag, if it is one. `IsA()`.
unsafe fn as_node<T>(node: *mut pg_sys::Node, tag: NodeTag) -> Option<*mut T> {
    // SAFETY: a node begins with its tag; the caller names the struct that belongs to it.
    unsafe { (!node.is_null() && (*node).type_ == tag).then(|| node.cast()) }
}

/// Whether that is a function of this extension with that name, in whatever schema it is.
unsafe fn is_ours(function: pg_sys::Oid, name: &CStr, extension: pg_sys::Oid) -> bool {
    // SAFETY: both take any OID, and the name is null or a C string.
    unsafe {
        let found = pg_sys::get_func_name(function);
        !found.is_null()
            && CStr::from_ptr(found) == name
            && pg_sys::getExtensionOfObject(pg_sys::ProcedureRelationId, function) == extension
    }
}

fn this_extension() -> pg_sys::Oid {
    // SAFETY: a C string. The extension is there, since a function of it runs.
    unsafe { pg_sys::get_extension_oid(c"pg_snowflake".as_ptr(), false) }
}
