//! A plugrad backend for @NAME@, a device with memory of its own and in-order queues. From the start it has every op for
//! training: the SDK's loops, on copies of the operands in host memory, in their place in the queue. Replace them by your
//! device's kernels, op by op; plugrad-conform tells whether each kernel computes the right values.
mod queue;
#[allow(dead_code)]
mod plugrad_sys;

use plugrad_sys::*;
use queue::*;
use std::alloc::{alloc, dealloc, Layout};
use std::collections::HashMap;
use std::ffi::CStr;
use std::mem::size_of;
use std::os::raw::{c_char, c_void};
use std::ptr::{copy_nonoverlapping, null};
use std::sync::Mutex;

const DEVICES: u32 = 1;
const ALIGNMENT: usize = 256;

/// The driver. These functions stand for it, in host memory: put your driver's functions in their place. Functions with a
/// queue may enqueue and return; `finish` waits.
struct MyDriver {
    layouts: Mutex<HashMap<usize, Layout>>, // of the buffers, by address
}

struct MyQueue;

impl Driver for MyDriver {
    type Queue = MyQueue;
    const NAME: &'static [u8] = b"@NAME@\0";
    const ALIGNMENT: u32 = ALIGNMENT as u32;

    fn alloc(&self, bytes: u64) -> Result<*mut plugrad_buffer, plugrad_status> {
        let layout = Layout::from_size_align(bytes as usize, ALIGNMENT).map_err(|_| PLUGRAD_OUT_OF_MEMORY)?;
        let address = unsafe { alloc(layout) };
        if address.is_null() {
            return Err(PLUGRAD_OUT_OF_MEMORY);
        }
        self.layouts.lock().unwrap().insert(address as usize, layout);
        Ok(address as *mut plugrad_buffer)
    }

    fn free(&self, buffer: *mut plugrad_buffer) {
        if let Some(layout) = self.layouts.lock().unwrap().remove(&(buffer as usize)) {
            unsafe { dealloc(buffer as *mut u8, layout) }
        }
    }

    fn queue(&self, _role: u32) -> Result<MyQueue, plugrad_status> {
        Ok(MyQueue)
    }
}

impl Queue for MyQueue {
    unsafe fn write(&mut self, to: Place, from: *const u8, bytes: usize) -> Result<(), plugrad_status> {
        copy_nonoverlapping(from, address(to), bytes);
        Ok(())
    }

    unsafe fn read(&mut self, to: *mut u8, from: Place, bytes: usize) -> Result<(), plugrad_status> {
        copy_nonoverlapping(address(from), to, bytes);
        Ok(())
    }

    unsafe fn copy(&mut self, to: Place, from: Place, bytes: usize) -> Result<(), plugrad_status> {
        copy_nonoverlapping(address(from), address(to), bytes);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), plugrad_status> {
        Ok(())
    }
}

unsafe fn address(place: Place) -> *mut u8 {
    (place.buffer as *mut u8).add(place.offset as usize)
}

unsafe fn f32s(view: &plugrad_view) -> *mut f32 {
    address(Place { buffer: view.buffer, offset: view.offset }) as *mut f32
}

/// A kernel of your own: `find_add` chooses it for dense f32 operands. The output may be the same memory as an input.
unsafe fn add(_queue: &mut MyQueue, op: &plugrad_op) -> Result<(), plugrad_status> {
    let (out, a, b) = (f32s(&**op.views), f32s(&**op.views.add(1)), f32s(&**op.views.add(2)));
    for i in 0..(**op.views).count as usize {
        *out.add(i) = *a.add(i) + *b.add(i);
    }
    Ok(())
}

static ADD: Kernel<MyQueue> = Kernel::new(add);

fn find_add(key: &plugrad_signature) -> Option<*const plugrad_kernel> {
    let flags = PLUGRAD_DETERMINISTIC | PLUGRAD_TF32; // every kernel of an exact op obeys them
    let serves = key.opcode == PLUGRAD_OP_ADD
        && (key.outputs, key.inputs) == (1, 2)
        && key.dtypes[..3] == [PLUGRAD_F32; 3]
        && key.layout == 0
        && key.flags & !flags == 0;
    serves.then(|| ADD.handle())
}

/// Returns the kernel for a signature, or null: the host then computes the op in another way.
unsafe extern "C" fn resolve(device: *mut plugrad_device, key: *const plugrad_signature) -> *const plugrad_kernel {
    find_add(&*key).unwrap_or_else(|| plugrad_queues_resolve(device, key))
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
    if index >= DEVICES {
        let reason = b"[open] there is one device, @NAME@:0\0";
        if let Some(report) = (*host).report {
            report(host, PLUGRAD_INVALID, reason.as_ptr() as *const c_char);
        }
        return PLUGRAD_INVALID;
    }
    open_driver(host, options, MyDriver { layouts: Mutex::new(HashMap::new()) }, device, info)
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
    alloc: Some(plugrad_queues_alloc),
    free: Some(plugrad_queues_free),
    memory_info: None,
    pin: None,
    unpin: None,
    copy: Some(plugrad_queues_copy),
    stream_create: Some(plugrad_queues_stream_create),
    completed: Some(plugrad_queues_completed),
    wait: Some(plugrad_queues_wait),
    sync: Some(plugrad_queues_sync),
    unnamed_use: PLUGRAD_ONLY_BY_NAME,
    reserved: 0,
};

/// The only symbol the core looks for.
#[no_mangle]
pub extern "C" fn plugrad_backend_v0(_: *const plugrad_host) -> *const plugrad_backend {
    &TABLE
}
