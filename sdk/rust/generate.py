"""Writes the contract's structs and constants as Rust, from sdk/data/layout.json and ops.json.

generate.py DATA OUTPUT           writes OUTPUT
generate.py DATA OUTPUT --check   fails if it would write something else
"""
import json
import sys
from pathlib import Path

HEADER = '''\
//! The C interface between plugrad and its backend plugins, transcribed from `plugrad/sdk/abi.h`, which explains every item.
//! Generated from `layout.json` and `ops.json`, which the SDK installs: do not edit. Needs Rust 1.63.
#![allow(non_camel_case_types)]

use std::mem::{size_of, MaybeUninit};
use std::os::raw::{c_char, c_void};
use std::ptr::{addr_of, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::Once;

pub type plugrad_status = i32;
'''
OPAQUE = ("device", "stream", "buffer")
GROUP_TYPES = {"abi": "usize", "status": "plugrad_status", "layout": "u16", "flags": "u32", "capabilities": "u32",
               "fft": "u32", "unnamed_use": "u32", "place": "u32", "role": "u32", "level": "u32"}
SCALARS = {"void": "c_void", "char": "c_char", "u8": "u8", "u16": "u16", "u32": "u32", "u64": "u64", "i32": "i32",
           "i64": "i64", "f64": "f64"}
FOOTER = '''
// The fields of this transcription, as its compiler lays them out.

#[repr(C)]
pub struct plugrad_transcribed {
    pub name: *const c_char,
    pub offset: u64,
    pub size: u64,
}

#[repr(C)]
pub struct plugrad_transcription {
    pub struct_size: u32,
    pub count: u32,
    pub fields: *const plugrad_transcribed,
}

/// The extension by which plugrad-conform compares a transcription with its own structs, field by field.
pub const PLUGRAD_TRANSCRIPTION: &[u8] = b"transcription/0\\0";

/// Returns the answer to that extension. It lives as long as the process.
pub fn transcription() -> *const plugrad_transcription {
    static ONCE: Once = Once::new();
    static ANSWER: AtomicPtr<plugrad_transcription> = AtomicPtr::new(null_mut());
    ONCE.call_once(|| {
        let fields: &'static [plugrad_transcribed] = Box::leak(fields().into_boxed_slice());
        let answer = plugrad_transcription {
            struct_size: size_of::<plugrad_transcription>() as u32,
            count: fields.len() as u32,
            fields: fields.as_ptr(),
        };
        ANSWER.store(Box::into_raw(Box::new(answer)), Ordering::Release);
    });
    ANSWER.load(Ordering::Acquire)
}

/// Returns the layout hash of these structs; the definition is in `layout.json`.
pub fn layout_hash() -> u64 {
    const PRIME: u64 = 0x100000001b3;
    fields().iter().fold(0xcbf29ce484222325, |hash, field| {
        let name = unsafe { std::ffi::CStr::from_ptr(field.name) };
        let named = name.to_bytes().iter().fold(hash, |h, byte| (h ^ u64::from(*byte)).wrapping_mul(PRIME));
        ((named ^ field.offset).wrapping_mul(PRIME) ^ field.size).wrapping_mul(PRIME)
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_layout_is_that_of_the_contract() {
        assert_eq!(super::layout_hash(), super::PLUGRAD_LAYOUTS[super::PLUGRAD_REVISION]);
    }
}
'''


def named(text):
    """The Rust type of a C type such as "const view* const*"."""
    words = text.replace("*", " * ").split()
    constant = words[0] == "const"
    base = words[constant]
    rust = SCALARS.get(base, f"plugrad_{base}")
    for word in words[constant + 1:]:
        if word == "*":
            rust, constant = ("*const " if constant else "*mut ") + rust, False
        else:
            constant = True
    return rust


def field_type(field):
    if field["type"] == "function":
        result = "" if field["returns"] == "void" else " -> " + named(field["returns"])
        return f"Option<unsafe extern \"C\" fn({', '.join(map(named, field['parameters']))}){result}>"
    one = named(field["type"])
    return f"[{one}; {field['count']}]" if "count" in field else one


def structs(layout):
    for name in OPAQUE:
        yield f"\n#[repr(C)]\npub struct plugrad_{name} {{\n    _private: [u8; 0],\n}}\n"
    for struct in layout["structs"]:
        rows = "".join(f"    pub {field['name']}: {field_type(field)},\n" for field in struct["fields"])
        yield (f"\n#[repr(C)]\npub struct plugrad_{struct['name']} {{\n{rows}}}\n"
               f"const _: () = assert!(size_of::<plugrad_{struct['name']}>() == {struct['size']});\n")
    for name in ("backend", "kernel"):  # they never change, and any thread may read them
        yield f"\nunsafe impl Sync for plugrad_{name} {{}}\nunsafe impl Send for plugrad_{name} {{}}\n"


def constants(layout, ops):
    for group, values in layout["constants"].items():
        of = GROUP_TYPES[group]
        yield "\n" + "".join(f"pub const PLUGRAD_{name}: {of} = {value};\n" for name, value in values.items())
    yield "\n" + "".join(f"pub const PLUGRAD_{dtype['name']}: u8 = {dtype['id']};\n" for dtype in ops["dtypes"])
    yield "\n" + "".join(f"pub const PLUGRAD_OP_{op['name']}: u32 = {op['id']};\n" for op in ops["ops"])
    hashes = ", ".join(layout["hashes"])
    yield f"\n/// One hash for each revision.\npub static PLUGRAD_LAYOUTS: [u64; PLUGRAD_REVISION + 1] = [{hashes}];\n"
    yield f"pub const PLUGRAD_ENTRY: &str = \"{layout['entry']}\";\n"


def measured(layout):
    yield "\nfn fields() -> Vec<plugrad_transcribed> {\n    let mut all = Vec::new();\n"
    yield ("    macro_rules! fields {\n        ($type:ty, $name:literal, $($field:ident),+) => {{\n"
           "            let object = MaybeUninit::<$type>::uninit();\n            let begin = object.as_ptr();\n"
           "            $(all.push(plugrad_transcribed {\n"
           "                name: concat!($name, \".\", stringify!($field), \"\\0\").as_ptr() as *const c_char,\n"
           "                offset: unsafe { addr_of!((*begin).$field) as u64 - begin as u64 },\n"
           "                size: size_of_field(|object: &$type| addr_of!(object.$field)) as u64,\n"
           "            });)+\n        }};\n    }\n")
    for struct in layout["structs"]:
        names = ", ".join(field["name"] for field in struct["fields"])
        yield f"    fields!(plugrad_{struct['name']}, \"{struct['name']}\", {names});\n"
    yield "    all\n}\n"
    yield "\nfn size_of_field<S, F>(_: fn(&S) -> *const F) -> usize {\n    size_of::<F>()\n}\n"


def main(data, output, *options):
    layout = json.loads((Path(data) / "layout.json").read_text(encoding="utf-8"))
    ops = json.loads((Path(data) / "ops.json").read_text(encoding="utf-8"))
    parts = [HEADER, *constants(layout, ops), *structs(layout), *measured(layout), FOOTER]
    text = "".join(parts)
    if "--check" in options:
        if Path(output).read_text(encoding="utf-8") != text:
            sys.exit(f"{output} differs from what {Path(__file__).name} would write: run it without --check")
    else:
        Path(output).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
