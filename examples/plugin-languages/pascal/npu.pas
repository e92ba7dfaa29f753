{ A plugrad backend in Free Pascal: an ADD of its own, and the SDK's loops for all other ops. }
library npu;
{$mode objfpc}{$pointermath on}
{$linklib plugrad-loops}{$linklib stdc++}{$linklib m}{$linklib gcc_s}{$linklib c}

uses plugrad;

type
  TReport = procedure(host: Phost; status: Int32; reason: PChar); cdecl;
  PPview = ^Pview;

function plugrad_loops_open(host: Phost; options: Poptions; loops: PPointer; info: Pdevice_info): Int32; cdecl; external;
function plugrad_loops_resolve(loops: Pointer; key: Psignature): Pkernel; cdecl; external;

{ With HOST_MEM a buffer is the address of its first byte. }
function Elements(view: Pview): PSingle;
begin
  Result := PSingle(PByte(view^.buffer) + view^.offset);
end;

function Add(kernel: Pkernel; stream: Pointer; op: Pop): Int32; cdecl;
var
  views: PPview;
  target, a, b: PSingle;
  i: Int64;
begin
  views := PPview(op^.views);
  target := Elements(views[0]);
  a := Elements(views[1]);
  b := Elements(views[2]);
  for i := 0 to views[0]^.count - 1 do target[i] := a[i] + b[i];
  Result := PLUGRAD_OK;
end;

var
  Own: Tkernel;
  Table: Tbackend;

{ Dense f32 operands; every kernel of an exact op obeys the two flags. }
function Serves(key: Psignature): Boolean;
var
  i: Integer;
begin
  Result := (key^.opcode = PLUGRAD_OP_ADD) and (key^.outputs = 1) and (key^.inputs = 2) and (key^.layout = 0)
    and (key^.flags and not UInt32(PLUGRAD_DETERMINISTIC or PLUGRAD_TF32) = 0);
  for i := 0 to 2 do Result := Result and (key^.dtypes[i] = PLUGRAD_F32);
end;

function Resolve(loops: Pointer; key: Psignature): Pkernel; cdecl;
begin
  if Serves(key) then Result := @Own else Result := plugrad_loops_resolve(loops, key);
end;

function Count(host: Phost; devices: PUInt32): Int32; cdecl;
begin
  devices^ := 1;
  Result := PLUGRAD_OK;
end;

function Open(host: Phost; index: UInt32; options: Poptions; device: PPointer; info: Pdevice_info): Int32; cdecl;
const
  Name: array[0..6] of Char = 'pascal'#0;
begin
  if index <> 0 then
  begin
    TReport(host^.report)(host, PLUGRAD_INVALID, '[open] there is one device, pascal:0');
    Exit(PLUGRAD_INVALID);
  end;
  Result := plugrad_loops_open(host, options, device, info);
  if Result = PLUGRAD_OK then Move(Name, info^.name, SizeOf(Name));
end;

function Extension(name: PChar): Pointer; cdecl;
begin
  Result := nil;
end;

{ Fills the table at the first call; later calls write the same values. }
function plugrad_backend_v0(host: Phost): Pbackend; cdecl;
begin
  Own.struct_size := SizeOf(Own);
  Own.run := @Add;
  Table.struct_size := SizeOf(Table);
  Table.revision := PLUGRAD_REVISION;
  Table.layouts := @Layouts;
  Table.name := PChar('pascal');
  Table.version := PChar('0.1');
  Table.count := @Count;
  Table.open := @Open;
  Table.resolve := @Resolve;
  Table.get_extension := @Extension;
  Table.unnamed_use := PLUGRAD_ONLY_BY_NAME;
  Result := @Table;
end;

exports
  plugrad_backend_v0;
end.
