//! A plugrad backend in Zig: an ADD of its own, and the SDK's loops for all other ops.
const abi = @import("abi.zig");

extern fn plugrad_loops_open(host: *const abi.host, options: ?*const anyopaque, loops: *?*anyopaque, info: *abi.device_info) i32;
extern fn plugrad_loops_resolve(loops: ?*anyopaque, key: *const abi.signature) ?*const abi.kernel;

// With HOST_MEM a buffer is the address of its first byte.
fn elements(operands: *const abi.op, index: usize) [*]f32 {
    const views: [*]const *const abi.view = @ptrCast(@alignCast(operands.views.?));
    return @ptrFromInt(@intFromPtr(views[index].buffer.?) + views[index].offset);
}

fn add(_: *const abi.kernel, _: ?*anyopaque, operands: *const abi.op) callconv(.c) i32 {
    const views: [*]const *const abi.view = @ptrCast(@alignCast(operands.views.?));
    const out = elements(operands, 0);
    const a = elements(operands, 1);
    const b = elements(operands, 2);
    for (0..@intCast(views[0].count)) |i| out[i] = a[i] + b[i];
    return abi.OK;
}

const own = abi.kernel{ .struct_size = @sizeOf(abi.kernel), .reserved = 0, .run = &add, .workspace = null };

// Dense f32 operands; every kernel of an exact op obeys the two flags.
fn serves(key: *const abi.signature) bool {
    if (key.opcode != abi.OP_ADD or key.outputs != 1 or key.inputs != 2 or key.layout != 0) return false;
    for (key.dtypes[0..3]) |dtype| if (dtype != abi.F32) return false;
    return key.flags & ~@as(u32, abi.DETERMINISTIC | abi.TF32) == 0;
}

fn resolve(loops: ?*anyopaque, key: *const abi.signature) callconv(.c) ?*const abi.kernel {
    return if (serves(key)) &own else plugrad_loops_resolve(loops, key);
}

fn count(_: *const abi.host, devices: *u32) callconv(.c) i32 {
    devices.* = 1;
    return abi.OK;
}

fn open(host: *const abi.host, index: u32, options: ?*const anyopaque, device: *?*anyopaque, info: *abi.device_info) callconv(.c) i32 {
    if (index != 0) {
        const report: *const fn (*const abi.host, i32, [*:0]const u8) callconv(.c) void = @ptrCast(@alignCast(host.report.?));
        report(host, abi.INVALID, "[open] there is one device, zig:0");
        return abi.INVALID;
    }
    const status = plugrad_loops_open(host, options, device, info);
    if (status == abi.OK) @memcpy(info.name[0..4], "zig\x00");
    return status;
}

fn extension(_: [*:0]const u8) callconv(.c) ?*const anyopaque {
    return null;
}

const table = abi.backend{
    .struct_size = @sizeOf(abi.backend),
    .revision = abi.REVISION,
    .layouts = &abi.layouts,
    .name = "zig",
    .version = "0.1",
    .count = &count,
    .open = &open,
    .resolve = &resolve,
    .get_extension = &extension,
    .alloc = null,
    .free = null,
    .memory_info = null,
    .pin = null,
    .unpin = null,
    .copy = null,
    .stream_create = null,
    .completed = null,
    .wait = null,
    .sync = null,
    .unnamed_use = abi.ONLY_BY_NAME,
    .reserved = 0,
};

export fn plugrad_backend_v0(_: *const abi.host) *const abi.backend {
    return &table;
}
