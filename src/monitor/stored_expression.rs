//! The generator calls in a stored expression, and what is known of their arguments without evaluating
//! anything: the expression is the work of a table's owner, and may be read by a superuser.

use crate::layout_type::SqlLayout;
use crate::postgres::call::guarded;
use crate::postgres::encoding::Text;
use crate::postgres::memory;
use crate::postgres::report::c_text;
use pg_snowflake_ids::{Layout, presets::DEFAULT};
use pgrx::callconv::{Arg, ArgAbi};
use pgrx::pg_catalog::pg_proc::PgProc;
use pgrx::pg_sys::errcodes::PgSqlErrorCode;
use pgrx::pg_sys::{self, NodeTag};
use pgrx::pgrx_sql_entity_graph::metadata::{ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin};
use pgrx::{IntoDatum, PgTryBuilder};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::AssertUnwindSafe;
use std::ptr;

/// A generator call, with those of its arguments that are constants.
#[derive(Clone, Debug)]
pub struct GeneratorCall {
    /// The generator.
    pub function: pg_sys::Oid,
    /// The sequence.
    pub sequence: SequenceArgument,
    /// The shard.
    pub shard: ShardArgument,
    /// The layout.
    pub layout: Option<Layout>,
    /// The modulus and the number of generators of a homed ID, which add to the shard; `None` if there are none, or if they are not
    /// constants.
    pub modulus_and_generators: Option<[i32; 2]>,
}

impl GeneratorCall {
    /// The layouts of the calls, each once in a row. `None` stands for one that is not a constant, or for a call that is not known.
    pub fn layouts(calls: Vec<Option<GeneratorCall>>) -> Vec<Option<Layout>> {
        let mut layouts: Vec<_> = calls.into_iter().map(|call| call.and_then(|call| call.layout)).collect();
        layouts.dedup();
        layouts
    }
}

/// The sequence argument of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SequenceArgument {
    /// A constant OID, even if it is not one of a sequence; or that of the relation that now has the name that the call looks up:
    /// `'ids'::text::regclass`.
    Relation(pg_sys::Oid),
    /// Such a name that no relation has.
    NotFound(String),
    /// Known only by evaluating it.
    Unknown,
}

impl SequenceArgument {
    /// The OID, if there is one.
    pub fn oid(&self) -> Option<pg_sys::Oid> {
        match *self {
            SequenceArgument::Relation(oid) => Some(oid),
            SequenceArgument::NotFound(_) | SequenceArgument::Unknown => None,
        }
    }
}

/// The shard argument of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardArgument {
    /// A constant.
    Constant(i32),
    /// The value of `pg_snowflake.shard_id` at the time of the call.
    CurrentShard,
    /// Known only by evaluating it.
    Unknown,
}

/// Why the stored expression of a default cannot be read, for a row: it is longer than [`MAX_TEXT`], or nested too deeply for this
/// session's `max_stack_depth`.
pub struct Unreadable(pub String);

/// The maximum size of an expression, in bytes of text. Users can write expressions of up to 1 GB; reading one
/// takes memory and time in proportion, and cannot be cancelled. An array of a thousand calls has 0.45 MB.
const MAX_TEXT: usize = 1 << 20;

/// A stored expression, of SQL type `pg_node_tree`. Only the server can make a value of that type.
pub struct StoredExpression(pg_sys::Datum);

// SAFETY: the SQL declaration uses `pg_node_tree` for it, which is a text that nodeToString() wrote.
unsafe impl<'fcx> ArgAbi<'fcx> for StoredExpression {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: the datum of a text is a pointer, as wide as an i64; the function is strict.
        let datum: i64 = unsafe { arg.unbox_arg_using_from_datum() }.expect("a strict function");
        StoredExpression(datum.into())
    }
}

// SAFETY: the SQL declarations are written by hand; this only names the type to pgrx.
unsafe impl SqlTranslatable for StoredExpression {
    const TYPE_IDENT: &'static str = "pg_snowflake::monitor::stored_expression::StoredExpression";
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal("pg_node_tree"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> = Err(ReturnsError::Datum);
}

impl StoredExpression {
    /// The generator calls in expressions that were read as text. `None` stands for an expression that cannot be read.
    pub fn calls_in_texts(texts: Vec<String>) -> Vec<Option<GeneratorCall>> {
        let mut found = Vec::new();
        for text in texts {
            match Text(text).into_datum().map(|datum| StoredExpression(datum).calls()) {
                Some(Ok(calls)) => found.extend(calls.into_iter().map(Some)),
                _ => found.push(None),
            }
        }
        found
    }

    /// The generator calls in the expression, from the outermost to the innermost.
    pub fn calls(&self) -> Result<Vec<GeneratorCall>, Unreadable> {
        let (_, functions) = self.tree()?;
        // SAFETY: a C string. The extension is there, since a function of it runs.
        let extension = unsafe { call!(get_extension_oid(c"pg_snowflake".as_ptr(), false)) };
        let mut calls = Vec::new();
        memory::reserve(&mut calls, functions.len());
        // SAFETY: the functions are of the server's own tree.
        calls.extend(functions.into_iter().filter_map(|function| unsafe { call(function, extension) }));
        Ok(calls)
    }

    /// Whether the expression is a call of core's `nextval` of this sequence, and no more. An expression of which the call is a part can
    /// generate IDs of its own.
    pub fn is_nextval_of(&self, sequence: pg_sys::Oid) -> bool {
        let Ok((root, _)) = self.tree() else { return false };
        // SAFETY: the server's own tree; nextval() has one argument, which is of type regclass.
        unsafe {
            let call = as_call(without_integer_casts(root).0).filter(|&call| (*call).funcid.to_u32() == pg_sys::F_NEXTVAL);
            call.is_some_and(|call| sequence_argument(first_argument(call)).oid() == Some(sequence))
        }
    }

    /// The expression, and all function calls in it.
    fn tree(&self) -> Result<(*mut pg_sys::Node, Vec<*mut pg_sys::FuncExpr>), Unreadable> {
        // SAFETY: a text that the server stores as a pg_node_tree. Reading its size does not read it from disk.
        let length = unsafe { call!(toast_raw_datum_size(self.0)) } - pg_sys::VARHDRSZ;
        if length > MAX_TEXT {
            let error = format!("default is too long to read: Its expression tree has {length} bytes; the limit is {MAX_TEXT}.");
            return Err(Unreadable(error));
        }
        // SAFETY: as above.
        let text = unsafe { call!(text_to_cstring(self.0.cast_mut_ptr())) };
        catch_too_deep(|| {
            let mut functions = Vec::new();
            // SAFETY: nodeToString() wrote the text, and the tree is the server's own. An ERROR, for a tree
            // that is too deep, jumps over the walker's frames, which own nothing.
            unsafe {
                let tree = call!(stringToNode(text)).cast();
                guarded(|| collect_functions(tree, (&raw mut functions).cast()));
                (tree, functions)
            }
        })
    }
}

/// Runs a function that reads a tree, and catches the error that the tree is too deep for the stack.
///
/// Core cannot be asked beforehand: how deep a tree may be depends on the frames of its own functions. Catching an ERROR without rolling
/// back a subtransaction is sound for what is run here: it computes in memory that is freed with the query, and takes no lock, pin or
/// reference that a rollback would have to release. The position in the text that stringToNode() keeps in a global is set again by its next
/// call. Only check_stack_depth() raises this SQLSTATE there. All other errors propagate, including a cancellation.
fn catch_too_deep<T>(read: impl FnOnce() -> T) -> Result<T, Unreadable> {
    let error = "default is nested too deeply to read: Simplify it, or raise max_stack_depth.";
    PgTryBuilder::new(AssertUnwindSafe(|| Ok(read())))
        .catch_when(PgSqlErrorCode::ERRCODE_STATEMENT_TOO_COMPLEX, |_| Err(Unreadable(error.to_owned())))
        .execute()
}

type Walker = unsafe extern "C-unwind" fn(*mut pg_sys::Node, *mut c_void) -> bool;

unsafe extern "C-unwind" {
    // nodes/nodeFuncs.h: a macro around a function of another name from 16 on.
    #[cfg_attr(not(feature = "pg15"), link_name = "expression_tree_walker_impl")]
    fn expression_tree_walker(node: *mut pg_sys::Node, walker: Walker, context: *mut c_void) -> bool;
}

/// Appends each function call below `node` to the `Vec` that `functions` points to.
unsafe extern "C-unwind" fn collect_functions(node: *mut pg_sys::Node, functions: *mut c_void) -> bool {
    // SAFETY: the server's own tree, with null for missing children; functions() passes the Vec.
    unsafe {
        if node.is_null() {
            return false;
        }
        if let Some(function) = as_call(node) {
            (*functions.cast::<Vec<*mut pg_sys::FuncExpr>>()).push(function);
        }
        expression_tree_walker(node, collect_functions, functions)
    }
}

/// The functions that return an ID, which a default can call.
const GENERATORS: [&CStr; 3] = [c"snowflake_nextval", c"snowflake_nextval_homed", c"snowflake_nextval_homed_in_ranges"];

/// The call, if it is one of a generator.
///
/// # Safety
/// `function` is part of a valid tree.
unsafe fn call(function: *mut pg_sys::FuncExpr, extension: pg_sys::Oid) -> Option<GeneratorCall> {
    // SAFETY: as the caller promises; the arguments are of the types that the generators are declared with.
    unsafe {
        let funcid = (*function).funcid;
        let is_named = |name| is_extension_function(funcid, name, extension);
        if !GENERATORS.iter().any(|name| is_named(name)) {
            return None;
        }
        let call = |sequence, shard, layout| GeneratorCall {
            function: funcid,
            sequence: sequence_argument(sequence),
            shard,
            layout,
            modulus_and_generators: None,
        };
        let layout_of = |node| constant(node).and_then(SqlLayout::of_datum).map(|layout| layout.0);
        match *arguments(function).as_slice() {
            [sequence] => Some(call(sequence, ShardArgument::CurrentShard, Some(DEFAULT))),
            // Of four, the third is the ranges of a homed ID.
            [sequence, shard_id, layout] | [sequence, shard_id, _, layout] => {
                Some(call(sequence, shard(shard_id, extension), layout_of(layout)))
            }
            [sequence, shard_id, modulus, generators, layout] => {
                let [modulus, generators] = [modulus, generators].map(|node| integer_constant(node));
                let modulus_and_generators = modulus.zip(generators).map(Into::into);
                Some(GeneratorCall { modulus_and_generators, ..call(sequence, shard(shard_id, extension), layout_of(layout)) })
            }
            _ => None,
        }
    }
}

/// The arguments in the order of the declaration, including named and default ones, as the planner expands them.
unsafe fn arguments(function: *mut pg_sys::FuncExpr) -> Vec<*mut pg_sys::Node> {
    // SAFETY: the function exists, as the expression depends on it; a List has `length` elements.
    unsafe {
        let cache_id = pg_sys::SysCacheIdentifier::PROCOID as c_int;
        let procedure = call!(SearchSysCache1(cache_id, (*function).funcid.into()));
        if procedure.is_null() {
            return Vec::new();
        }
        let list = call!(expand_function_arguments((*function).args, false, (*function).funcresulttype, procedure));
        call!(ReleaseSysCache(procedure));
        if list.is_null() {
            return Vec::new();
        }
        let elements = std::slice::from_raw_parts((*list).elements, (*list).length as usize);
        elements.iter().map(|element| element.ptr_value.cast()).collect()
    }
}

/// A constant of type regclass or oid, or a constant text that is cast to regclass.
unsafe fn sequence_argument(node: *mut pg_sys::Node) -> SequenceArgument {
    // SAFETY: the node is of a type that is binary-coercible to regclass; the cast has one argument, a text.
    unsafe {
        if let Some(datum) = constant(node) {
            return SequenceArgument::Relation(pg_sys::Oid::from(datum.value() as u32));
        }
        let cast = as_call(node).filter(|&cast| (*cast).funcid.to_u32() == pg_sys::F_REGCLASS);
        let name = cast.and_then(|cast| constant(first_argument(cast)));
        name.map_or(SequenceArgument::Unknown, |name| named(call!(text_to_cstring(name.cast_mut_ptr()))))
    }
}

/// The relation that `text::regclass` finds, as `text_regclass()` (utils/adt/regproc.c) does, but without raising an error.
///
/// # Safety
/// `name` is a C string, which is changed.
unsafe fn named(name: *mut c_char) -> SequenceArgument {
    // SAFETY: as the caller promises; the list has pointers to parts of the string.
    unsafe {
        let not_found = SequenceArgument::NotFound(c_text(name));
        let mut parts = ptr::null_mut();
        if !call!(SplitIdentifierString(name, b'.' as c_char, &mut parts)) || parts.is_null() {
            return not_found;
        }
        let parts = std::slice::from_raw_parts((*parts).elements, (*parts).length as usize);
        let parts: Vec<*const c_char> = parts.iter().map(|part| part.ptr_value.cast::<c_char>().cast_const()).collect();
        let (schema, relation) = match *parts {
            [relation] => (None, relation),
            [schema, relation] => (Some(schema), relation),
            [database, schema, relation] if is_this_database(database) => (Some(schema), relation),
            _ => return not_found,
        };
        let oid = match schema {
            None => call!(RelnameGetRelid(relation)),
            Some(schema) => {
                let namespace = call!(LookupNamespaceNoError(schema));
                call!(get_relname_relid(relation, namespace))
            }
        };
        if oid == pg_sys::InvalidOid { not_found } else { SequenceArgument::Relation(oid) }
    }
}

/// # Safety
/// `name` is a C string.
unsafe fn is_this_database(name: *const c_char) -> bool {
    // SAFETY: as the caller promises; a session's database has a name.
    unsafe {
        let this = call!(get_database_name(pg_sys::MyDatabaseId));
        !this.is_null() && CStr::from_ptr(this) == CStr::from_ptr(name)
    }
}

unsafe fn shard(node: *mut pg_sys::Node, extension: pg_sys::Oid) -> ShardArgument {
    // SAFETY: the node is an integer expression of a sound tree.
    unsafe {
        let is_setting = |&call: &*mut pg_sys::FuncExpr| {
            (*call).args.is_null() && is_extension_function((*call).funcid, c"snowflake_current_shard", extension)
        };
        match as_call(node).filter(is_setting) {
            Some(_) => ShardArgument::CurrentShard,
            None => integer_constant(node).map_or(ShardArgument::Unknown, ShardArgument::Constant),
        }
    }
}

/// A constant `int`, possibly cast from and to other integer types. Casts that all preserve the value can be applied in any order.
unsafe fn integer_constant(node: *mut pg_sys::Node) -> Option<i32> {
    // SAFETY: the node is an integer expression of a sound tree; a constant has a value of its type.
    unsafe {
        let (node, is_small) = without_integer_casts(node);
        let value = constant(node)?.value() as i64;
        if is_small { i16::try_from(value).ok().map(Into::into) } else { i32::try_from(value).ok() }
    }
}

/// Core's casts between the integer types: `3::smallint` is stored as a function call. A cast that overflows raises an error.
const INTEGER_CASTS: [u32; 6] =
    [pg_sys::F_INT2_INT4, pg_sys::F_INT2_INT8, pg_sys::F_INT4_INT2, pg_sys::F_INT4_INT8, pg_sys::F_INT8_INT2, pg_sys::F_INT8_INT4];

/// What integer casts are applied to, and whether one of them is to smallint. A loop, because users can nest casts to any depth.
unsafe fn without_integer_casts(mut node: *mut pg_sys::Node) -> (*mut pg_sys::Node, bool) {
    // SAFETY: a cast has one argument.
    unsafe {
        let mut is_small = false;
        while let Some(cast) = as_call(node).filter(|&cast| INTEGER_CASTS.contains(&(*cast).funcid.to_u32())) {
            is_small |= (*cast).funcresulttype == pg_sys::INT2OID;
            node = first_argument(cast);
        }
        (node, is_small)
    }
}

/// # Safety
/// The call has an argument.
unsafe fn first_argument(call: *mut pg_sys::FuncExpr) -> *mut pg_sys::Node {
    // SAFETY: as the caller promises.
    unsafe { (*(*(*call).args).elements).ptr_value.cast() }
}

/// The value of a constant that is not null, possibly relabeled as another type.
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

/// The node as a call of a function, if it is one.
unsafe fn as_call(node: *mut pg_sys::Node) -> Option<*mut pg_sys::FuncExpr> {
    // SAFETY: as for the caller.
    unsafe { as_node(node, NodeTag::T_FuncExpr) }
}

/// The node as the struct with this tag, if it is one: `IsA()`.
unsafe fn as_node<T>(node: *mut pg_sys::Node, tag: NodeTag) -> Option<*mut T> {
    // SAFETY: a node begins with its tag; the caller names the struct that belongs to it.
    unsafe { (!node.is_null() && (*node).type_ == tag).then(|| node.cast()) }
}

/// `ClanguageId` (catalog/pg_language.h).
const C_LANGUAGE: u32 = 13;

/// Whether this is a function of this extension with this name, in any schema.
///
/// The extension's owner may add functions to the extension with any arguments. None of them is in C, which takes a superuser.
unsafe fn is_extension_function(function: pg_sys::Oid, name: &CStr, extension: pg_sys::Oid) -> bool {
    // SAFETY: both take any OID, and the name is null or a C string.
    unsafe {
        let found = call!(get_func_name(function));
        !found.is_null()
            && CStr::from_ptr(found) == name
            && call!(getExtensionOfObject(pg_sys::ProcedureRelationId, function)) == extension
            && PgProc::new(function).is_some_and(|function| function.prolang().to_u32() == C_LANGUAGE)
    }
}
