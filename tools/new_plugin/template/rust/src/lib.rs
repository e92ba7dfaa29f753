//! A plugrad backend for @NAME@. From the start it has every kernel for training: plain loops in host memory, from the SDK.
//! Replace them by your device's kernels, op by op; plugrad-conform tells whether each kernel computes the right values.
#[allow(dead_code)]
mod plugrad_sys;

use plugrad_sys::*;
use std::ffi::{CStr, CString};
use std::mem::size_of;
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::{null, null_mut};

const DEVICES: u32 = 1;

extern "C" {
    fn plugrad_loops_open(
        host: *const plugrad_host,
        options: *const plugrad_options,
        loops: *mut *mut plugrad_device,
        info: *mut plugrad_device_info,
    ) -> plugrad_status;
    fn plugrad_loops_resolve(loops: *mut plugrad_device, key: *const plugrad_signature) -> *const plugrad_kernel;
}

/// A kernel of this device. The host passes its address to `run`.
#[repr(C)]
struct Kernel {
    base: plugrad_kernel, // first
    host: *const plugrad_host,
}

/// The target of a `plugrad_device*` of this plugin.
struct Device {
    add: Kernel,
    loops: *mut plugrad_device,
}

/// Why a call fails.
struct Failure(plugrad_status, String);

/// Runs the body of a call. A failure, or a panic, is reported on the calling thread and becomes the status.
unsafe fn status_of(host: *const plugrad_host, body: impl FnOnce() -> Result<(), Failure>) -> plugrad_status {
    let result = catch_unwind(AssertUnwindSafe(body))
        .unwrap_or_else(|_| Err(Failure(PLUGRAD_INTERNAL, "the plugin panicked".to_string())));
    let Failure(status, message) = match result {
        Ok(()) => return PLUGRAD_OK,
        Err(failure) => failure,
    };
    if let (Some(report), Ok(message)) = ((*host).report, CString::new(message)) {
        report(host, status, message.as_ptr());
    }
    status
}

/// The elements of a dense view in f32. With HOST_MEM a buffer is the address of its first byte.
unsafe fn f32s(view: &plugrad_view) -> *mut f32 {
    (view.buffer as *mut u8).add(view.offset as usize) as *mut f32
}

/// A kernel of your own: `find_add` chooses it for dense f32 operands. The output may be the same memory as an input.
unsafe extern "C" fn add(kernel: *const plugrad_kernel, _: *mut plugrad_stream, op: *const plugrad_op) -> plugrad_status {
    status_of((*(kernel as *const Kernel)).host, || {
        let views = (*op).views;
        let (out, a, b) = (f32s(&**views), f32s(&**views.add(1)), f32s(&**views.add(2)));
        for i in 0..(**views).count as usize {
            *out.add(i) = *a.add(i) + *b.add(i);
        }
        Ok(())
    })
}

fn find_add(device: &Device, key: &plugrad_signature) -> Option<*const plugrad_kernel> {
    let flags = PLUGRAD_DETERMINISTIC | PLUGRAD_TF32; // every kernel of an exact op obeys them
    let serves = key.opcode == PLUGRAD_OP_ADD
        && (key.outputs, key.inputs) == (1, 2)
        && key.dtypes[..3] == [PLUGRAD_F32; 3]
        && key.layout == 0
        && key.flags & !flags == 0;
    serves.then(|| &device.add.base as *const plugrad_kernel)
}

/// Returns the kernel for a signature, or null: the host then computes the op in another way.
unsafe extern "C" fn resolve(device: *mut plugrad_device, key: *const plugrad_signature) -> *const plugrad_kernel {
    let device = &*(device as *const Device);
    find_add(device, &*key).unwrap_or_else(|| plugrad_loops_resolve(device.loops, key))
}

/// Stores the number of devices. If the hardware or its driver is missing: store 0, report the reason with PLUGRAD_OK.
unsafe extern "C" fn count(_: *const plugrad_host, devices: *mut u32) -> plugrad_status {
    *devices = DEVICES;
    PLUGRAD_OK
}

unsafe extern "C" fn open(
    host: *const plugrad_host,
    index: u32,
    options: *const plugrad_options,
    device: *mut *mut plugrad_device,
    info: *mut plugrad_device_info,
) -> plugrad_status {
    let mut loops = null_mut();
    let opened = status_of(host, || match index {
        0 => Ok(()),
        _ => Err(Failure(PLUGRAD_INVALID, "[open] there is one device, @NAME@:0".to_string())),
    });
    if opened != PLUGRAD_OK {
        return opened;
    }
    // Describes memory for the host to allocate, read and write. Otherwise provide alloc, free and copy in the table below,
    // and take HOST_MEM out of the capabilities.
    let status = plugrad_loops_open(host, options, &mut loops, info);
    if status != PLUGRAD_OK {
        return status; // reported already
    }
    let name = b"@NAME@\0";
    for (to, from) in (*info).name.iter_mut().zip(name) {
        *to = *from as c_char;
    }
    let base = plugrad_kernel { struct_size: size_of::<plugrad_kernel>() as u32, reserved: 0, run: Some(add), workspace: None };
    *device = Box::into_raw(Box::new(Device { add: Kernel { base, host }, loops })) as *mut plugrad_device;
    PLUGRAD_OK
}

unsafe extern "C" fn get_extension(name: *const c_char) -> *const c_void {
    match CStr::from_ptr(name).to_bytes_with_nul() {
        PLUGRAD_TRANSCRIPTION => transcription() as *const c_void,
        _ => null(),
    }
}

static TABLE: plugrad_backend = plugrad_backend {
    struct_size: size_of::<plugrad_backend>() as u32,
    revision: PLUGRAD_REVISION as u32,
    layouts: PLUGRAD_LAYOUTS.as_ptr(),
    name: b"@NAME@\0" as *const u8 as *const c_char,
    version: b"0.1\0" as *const u8 as *const c_char,
    count: Some(count),
    open: Some(open),
    resolve: Some(resolve),
    get_extension: Some(get_extension),
    alloc: None,
    free: None,
    memory_info: None,
    pin: None,
    unpin: None,
    copy: None,
    stream_create: None,
    completed: None,
    wait: None,
    sync: None,
    unnamed_use: PLUGRAD_ONLY_BY_NAME,
    reserved: 0,
};

/// The only symbol the core looks for.
#[no_mangle]
pub extern "C" fn plugrad_backend_v0(_: *const plugrad_host) -> *const plugrad_backend {
    &TABLE
}
