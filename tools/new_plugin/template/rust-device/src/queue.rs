//! Queues of a driver, as traits: plugrad/sdk/queue.h, transcribed. You need not change this file.
use crate::plugrad_sys::*;
use std::mem::size_of;
use std::os::raw::{c_char, c_int, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};

/// A place in device memory.
#[derive(Clone, Copy)]
pub struct Place {
    pub buffer: *mut plugrad_buffer,
    pub offset: u64, // in bytes
}

/// A device's driver. Errors are statuses of the contract; PLUGRAD_DEVICE_LOST: the device is gone.
pub trait Driver: Sync + 'static {
    type Queue: Queue;
    const NAME: &'static [u8]; // of the device, with a 0 at its end
    const ALIGNMENT: u32; // of buffers, in bytes: a power of two
    /// Allocates device memory of `bytes` (above 0). Any thread.
    fn alloc(&self, bytes: u64) -> Result<*mut plugrad_buffer, plugrad_status>;
    /// Frees a buffer. Nothing in flight uses the buffer. Any thread.
    fn free(&self, buffer: *mut plugrad_buffer);
    /// Opens a queue, which lives as long as the process. `role`: PLUGRAD_COMPUTE_STREAM or PLUGRAD_COPY_STREAM, a hint.
    fn queue(&self, role: u32) -> Result<Self::Queue, plugrad_status>;
}

/// An in-order queue. One thread at a time calls it, in the order of a stream. All functions but `finish` may return before
/// the work is done.
#[allow(clippy::missing_safety_doc)]
pub trait Queue: Send + 'static {
    /// Copies bytes from host memory, which stays valid until `finish` returns.
    unsafe fn write(&mut self, to: Place, from: *const u8, bytes: usize) -> Result<(), plugrad_status>;
    /// Copies bytes to host memory. They have arrived when `finish` returns.
    unsafe fn read(&mut self, to: *mut u8, from: Place, bytes: usize) -> Result<(), plugrad_status>;
    /// Copies bytes on the device. The ranges do not overlap.
    unsafe fn copy(&mut self, to: Place, from: Place, bytes: usize) -> Result<(), plugrad_status>;
    /// Waits until all work in the queue is done.
    fn finish(&mut self) -> Result<(), plugrad_status>;
    /// Called after `finish`: whether a kernel since the last call found an index out of range.
    fn take_index_error(&mut self) -> bool {
        false
    }
}

type Start<Q> = unsafe fn(&mut Q, &plugrad_op) -> Result<(), plugrad_status>;

/// A kernel of the plugin's own: `start` puts an op into the driver's queue.
#[repr(C)]
pub struct Kernel<Q: Queue> {
    base: plugrad_kernel, // first
    c_start: unsafe extern "C" fn(*const Kernel<Q>, *mut c_void, *const plugrad_op) -> plugrad_status,
    start: Start<Q>,
}

impl<Q: Queue> Kernel<Q> {
    pub const fn new(start: Start<Q>) -> Kernel<Q> {
        let struct_size = size_of::<plugrad_kernel>() as u32;
        let base = plugrad_kernel { struct_size, reserved: 0, run: Some(plugrad_queues_run), workspace: None };
        Kernel { base, c_start: start_kernel::<Q>, start }
    }

    pub fn handle(&'static self) -> *const plugrad_kernel {
        self as *const Kernel<Q> as *const plugrad_kernel
    }
}

unsafe extern "C" fn start_kernel<Q: Queue>(
    kernel: *const Kernel<Q>,
    queue: *mut c_void,
    op: *const plugrad_op,
) -> plugrad_status {
    status_of(|| ((*kernel).start)(&mut *(queue as *mut Q), &*op))
}

/// Opens a device over the driver, which from now on lives as long as the process.
#[allow(clippy::missing_safety_doc)]
pub unsafe fn open_driver<D: Driver>(
    host: *const plugrad_host,
    options: *const plugrad_options,
    driver: D,
    device: *mut *mut plugrad_device,
    info: *mut plugrad_device_info,
) -> plugrad_status {
    let functions = plugrad_queue_driver {
        struct_size: size_of::<plugrad_queue_driver>() as u32,
        alignment: D::ALIGNMENT,
        name: D::NAME.as_ptr() as *const c_char,
        alloc: Some(alloc::<D>),
        free: Some(free::<D>),
        queue_create: Some(queue_create::<D>),
        write: Some(write::<D::Queue>),
        read: Some(read::<D::Queue>),
        copy: Some(copy::<D::Queue>),
        finish: Some(finish::<D::Queue>),
        take_index_error: Some(take_index_error::<D::Queue>),
        message: None,
    };
    let driver = Box::into_raw(Box::new(driver)) as *mut c_void;
    plugrad_queues_open(host, options, Box::into_raw(Box::new(functions)), driver, device, info)
}

// A panic becomes a status: it must not cross functions of C.
fn status_of(body: impl FnOnce() -> Result<(), plugrad_status>) -> plugrad_status {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => PLUGRAD_OK,
        Ok(Err(status)) => status,
        Err(_) => PLUGRAD_INTERNAL,
    }
}

unsafe extern "C" fn alloc<D: Driver>(driver: *mut c_void, bytes: u64, buffer: *mut *mut plugrad_buffer) -> plugrad_status {
    status_of(|| (*(driver as *const D)).alloc(bytes).map(|made| *buffer = made))
}

unsafe extern "C" fn free<D: Driver>(driver: *mut c_void, buffer: *mut plugrad_buffer) {
    status_of(|| {
        (*(driver as *const D)).free(buffer);
        Ok(())
    });
}

unsafe extern "C" fn queue_create<D: Driver>(driver: *mut c_void, role: u32, queue: *mut *mut c_void) -> plugrad_status {
    status_of(|| (*(driver as *const D)).queue(role).map(|made| *queue = Box::into_raw(Box::new(made)) as *mut c_void))
}

unsafe extern "C" fn write<Q: Queue>(
    queue: *mut c_void,
    buffer: *mut plugrad_buffer,
    offset: u64,
    from: *const c_void,
    bytes: u64,
) -> plugrad_status {
    status_of(|| (*(queue as *mut Q)).write(Place { buffer, offset }, from as *const u8, bytes as usize))
}

unsafe extern "C" fn read<Q: Queue>(
    queue: *mut c_void,
    to: *mut c_void,
    buffer: *mut plugrad_buffer,
    offset: u64,
    bytes: u64,
) -> plugrad_status {
    status_of(|| (*(queue as *mut Q)).read(to as *mut u8, Place { buffer, offset }, bytes as usize))
}

unsafe extern "C" fn copy<Q: Queue>(
    queue: *mut c_void,
    to: *mut plugrad_buffer,
    to_offset: u64,
    from: *mut plugrad_buffer,
    from_offset: u64,
    bytes: u64,
) -> plugrad_status {
    let (to, from) = (Place { buffer: to, offset: to_offset }, Place { buffer: from, offset: from_offset });
    status_of(|| (*(queue as *mut Q)).copy(to, from, bytes as usize))
}

unsafe extern "C" fn finish<Q: Queue>(queue: *mut c_void) -> plugrad_status {
    status_of(|| (*(queue as *mut Q)).finish())
}

unsafe extern "C" fn take_index_error<Q: Queue>(queue: *mut c_void) -> c_int {
    catch_unwind(AssertUnwindSafe(|| (*(queue as *mut Q)).take_index_error())).unwrap_or(true) as c_int
}

#[repr(C)]
pub struct plugrad_queue_driver {
    struct_size: u32,
    alignment: u32,
    name: *const c_char,
    alloc: Option<unsafe extern "C" fn(*mut c_void, u64, *mut *mut plugrad_buffer) -> plugrad_status>,
    free: Option<unsafe extern "C" fn(*mut c_void, *mut plugrad_buffer)>,
    queue_create: Option<unsafe extern "C" fn(*mut c_void, u32, *mut *mut c_void) -> plugrad_status>,
    write: Option<unsafe extern "C" fn(*mut c_void, *mut plugrad_buffer, u64, *const c_void, u64) -> plugrad_status>,
    read: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, *mut plugrad_buffer, u64, u64) -> plugrad_status>,
    copy: Option<
        unsafe extern "C" fn(*mut c_void, *mut plugrad_buffer, u64, *mut plugrad_buffer, u64, u64) -> plugrad_status,
    >,
    finish: Option<unsafe extern "C" fn(*mut c_void) -> plugrad_status>,
    take_index_error: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    message: Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>,
}

extern "C" {
    fn plugrad_queues_open(
        host: *const plugrad_host,
        options: *const plugrad_options,
        functions: *const plugrad_queue_driver,
        driver: *mut c_void,
        device: *mut *mut plugrad_device,
        info: *mut plugrad_device_info,
    ) -> plugrad_status;
    pub fn plugrad_queues_resolve(device: *mut plugrad_device, key: *const plugrad_signature) -> *const plugrad_kernel;
    fn plugrad_queues_run(
        kernel: *const plugrad_kernel,
        stream: *mut plugrad_stream,
        op: *const plugrad_op,
    ) -> plugrad_status;
    pub fn plugrad_queues_alloc(device: *mut plugrad_device, bytes: u64, buffer: *mut *mut plugrad_buffer) -> plugrad_status;
    pub fn plugrad_queues_free(device: *mut plugrad_device, buffer: *mut plugrad_buffer);
    pub fn plugrad_queues_copy(stream: *mut plugrad_stream, copy: *const plugrad_copy) -> plugrad_status;
    pub fn plugrad_queues_stream_create(
        device: *mut plugrad_device,
        role: u32,
        stream: *mut *mut plugrad_stream,
    ) -> plugrad_status;
    pub fn plugrad_queues_completed(stream: *mut plugrad_stream, number: *mut u64) -> plugrad_status;
    pub fn plugrad_queues_wait(
        stream: *mut plugrad_stream,
        other: *mut plugrad_stream,
        number: *mut u64,
    ) -> plugrad_status;
    pub fn plugrad_queues_sync(stream: *mut plugrad_stream, failure: *mut plugrad_failure) -> plugrad_status;
}
