"""Writes the contract's constants and structs in a language, from layout.json and ops.json of the SDK.

generate.py DATA zig|pascal|ada OUTPUT     DATA: the SDK's folder share/plugrad/abi

All pointers, and pointers to functions, are untyped addresses: layout.json tells what each points to.
"""
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Constants = list[tuple[str, int]]
Structs = list[dict[str, Any]]

NUMBERS = {"zig": {"char": "u8", **{n: n for n in ("u8", "u16", "u32", "u64", "i32", "i64", "f64")}},
           "pascal": {"char": "UInt8", "u8": "UInt8", "u16": "UInt16", "u32": "UInt32", "u64": "UInt64", "i32": "Int32",
                      "i64": "Int64", "f64": "Double"},
           "ada": {"char": "Unsigned_8", "u8": "Unsigned_8", "u16": "Unsigned_16", "u32": "Unsigned_32",
                   "u64": "Unsigned_64", "i32": "Integer_32", "i64": "Integer_64", "f64": "Long_Float"}}
POINTER = {"zig": "?*const anyopaque", "pascal": "Pointer", "ada": "System.Address"}


STRUCT = {"zig": "", "pascal": "T", "ada": "T_"}  # before a struct's name


def type_of(field: dict[str, Any], language: str) -> str:
    kind = str(field["type"])
    return NUMBERS[language].get(kind, POINTER[language] if "*" in kind or kind == "function" else STRUCT[language] + kind)


def zig(constants: Constants, hashes: list[str], structs: Structs) -> Iterator[str]:
    yield from (f"pub const {name} = {value};" for name, value in constants)
    yield f"pub const layouts = [_]u64{{ {', '.join(hashes)} }};"
    for struct in structs:
        yield f"pub const {struct['name']} = extern struct {{"
        for field in struct["fields"]:
            array = f"[{field['count']}]" if "count" in field else ""
            yield f"    {field['name']}: {array}{type_of(field, 'zig')},"
        yield "};"


def pascal(constants: Constants, hashes: list[str], structs: Structs) -> Iterator[str]:
    yield from ("unit plugrad;", "{$mode objfpc}{$packrecords c}", "interface", "const")
    yield from (f"  PLUGRAD_{name} = {value};" for name, value in constants)
    yield f"  Layouts: array[0..{len(hashes) - 1}] of UInt64 = ({', '.join('UInt64($' + h[2:] + ')' for h in hashes)});"
    yield "type"
    for struct in structs:
        yield f"  P{struct['name']} = ^T{struct['name']};"
        yield f"  T{struct['name']} = record"
        for field in struct["fields"]:
            array = f"array[0..{field['count'] - 1}] of " if "count" in field else ""
            yield f"    &{field['name']}: {array}{type_of(field, 'pascal')};"  # &: the name may be a keyword
        yield "  end;"
    yield from ("implementation", "end.")


def ada(constants: Constants, hashes: list[str], structs: Structs) -> Iterator[str]:
    yield from ("with Interfaces; use Interfaces;", "with System;", "package Plugrad is", "   pragma Pure;")
    yield from (f"   PLUGRAD_{name} : constant := {value};" for name, value in constants)
    yield from (f"   Layout_{i} : constant Unsigned_64 := 16#{each[2:]}#;" for i, each in enumerate(hashes))
    for size in sorted({(f["count"], type_of(f, "ada")) for s in structs for f in s["fields"] if "count" in f}):
        yield f"   type {size[1].replace('.', '_')}_Array_{size[0]} is array (0 .. {size[0] - 1}) of {size[1]};"
    for struct in structs:
        yield f"   type T_{struct['name']} is record"
        for field in struct["fields"]:
            kind = type_of(field, "ada")
            kind = f"{kind.replace('.', '_')}_Array_{field['count']}" if "count" in field else kind
            yield f"      F_{field['name']} : {kind};"
        yield "   end record with Convention => C;"
    yield "end Plugrad;"


def main(data: str, language: str, output: str) -> None:
    layout = json.loads((Path(data) / "layout.json").read_text())
    tables = json.loads((Path(data) / "ops.json").read_text())
    constants = [(name, value) for group in layout["constants"].values() for name, value in group.items()]
    constants += [(each["name"], each["id"]) for each in tables["dtypes"]]
    constants += [("OP_" + each["name"], each["id"]) for each in tables["ops"]]
    lines = {"zig": zig, "pascal": pascal, "ada": ada}[language](constants, layout["hashes"], layout["structs"])
    Path(output).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
