//! The C interface between plugrad and its backend plugins, transcribed from `plugrad/sdk/abi.h`, which explains every item.
//! Generated from `layout.json` and `ops.json`, which the SDK installs: do not edit. Needs Rust 1.63.
#![allow(non_camel_case_types)]

use std::mem::{size_of, MaybeUninit};
use std::os::raw::{c_char, c_void};
use std::ptr::{addr_of, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::Once;

pub type plugrad_status = i32;

pub const PLUGRAD_ABI_MAJOR: usize = 0;
pub const PLUGRAD_REVISION: usize = 0;
pub const PLUGRAD_MAX_RANK: usize = 8;
pub const PLUGRAD_MAX_OPERANDS: usize = 16;
pub const PLUGRAD_PRIVATE_OPS: usize = 32768;

pub const PLUGRAD_OK: plugrad_status = 0;
pub const PLUGRAD_INVALID: plugrad_status = 1;
pub const PLUGRAD_UNSUPPORTED: plugrad_status = 2;
pub const PLUGRAD_OUT_OF_MEMORY: plugrad_status = 3;
pub const PLUGRAD_INDEX_ERROR: plugrad_status = 4;
pub const PLUGRAD_DEVICE_ERROR: plugrad_status = 5;
pub const PLUGRAD_DEVICE_LOST: plugrad_status = 6;
pub const PLUGRAD_INTERNAL: plugrad_status = 7;

pub const PLUGRAD_STRIDED: u16 = 1;
pub const PLUGRAD_BROADCAST: u16 = 2;
pub const PLUGRAD_NEGATIVE: u16 = 4;
pub const PLUGRAD_UNALIGNED: u16 = 8;
pub const PLUGRAD_WIDE_INDEX: u16 = 16;
pub const PLUGRAD_IMMEDIATE: u16 = 32;
pub const PLUGRAD_ALL_LAYOUTS: u16 = 63;

pub const PLUGRAD_ACCUMULATE: u32 = 1;
pub const PLUGRAD_DETERMINISTIC: u32 = 2;
pub const PLUGRAD_TF32: u32 = 4;

pub const PLUGRAD_HOST_MEM: u32 = 1;
pub const PLUGRAD_ASYNC: u32 = 2;
pub const PLUGRAD_FLUSHES_DENORMALS: u32 = 4;

pub const PLUGRAD_ONLY_BY_NAME: u32 = 0;
pub const PLUGRAD_AS_FALLBACK: u32 = 1;
pub const PLUGRAD_AS_DEFAULT: u32 = 2;

pub const PLUGRAD_HOST: u32 = 0;
pub const PLUGRAD_PINNED: u32 = 1;
pub const PLUGRAD_DEVICE: u32 = 2;

pub const PLUGRAD_COMPUTE_STREAM: u32 = 0;
pub const PLUGRAD_COPY_STREAM: u32 = 1;

pub const PLUGRAD_FFT_FORWARD: u32 = 0;
pub const PLUGRAD_FFT_BACKWARD: u32 = 1;
pub const PLUGRAD_FFT_REAL: u32 = 2;
pub const PLUGRAD_FFT_INVERSE_REAL: u32 = 3;

pub const PLUGRAD_DEBUG: u32 = 0;
pub const PLUGRAD_INFO: u32 = 1;
pub const PLUGRAD_WARNING: u32 = 2;
pub const PLUGRAD_ERROR: u32 = 3;

pub const PLUGRAD_F32: u8 = 1;
pub const PLUGRAD_F64: u8 = 2;
pub const PLUGRAD_F16: u8 = 3;
pub const PLUGRAD_BF16: u8 = 4;
pub const PLUGRAD_I32: u8 = 5;
pub const PLUGRAD_I64: u8 = 6;
pub const PLUGRAD_U8: u8 = 7;
pub const PLUGRAD_I8: u8 = 9;
pub const PLUGRAD_I16: u8 = 10;
pub const PLUGRAD_BOOL: u8 = 8;

pub const PLUGRAD_OP_FILL: u32 = 1;
pub const PLUGRAD_OP_COPY: u32 = 2;
pub const PLUGRAD_OP_CAST: u32 = 3;
pub const PLUGRAD_OP_IOTA: u32 = 4;
pub const PLUGRAD_OP_NEG: u32 = 8;
pub const PLUGRAD_OP_ABS: u32 = 9;
pub const PLUGRAD_OP_SIGN: u32 = 10;
pub const PLUGRAD_OP_SQRT: u32 = 11;
pub const PLUGRAD_OP_EXP: u32 = 12;
pub const PLUGRAD_OP_LOG: u32 = 13;
pub const PLUGRAD_OP_TANH: u32 = 14;
pub const PLUGRAD_OP_RELU: u32 = 15;
pub const PLUGRAD_OP_SIGMOID: u32 = 16;
pub const PLUGRAD_OP_ERF: u32 = 17;
pub const PLUGRAD_OP_SIN: u32 = 18;
pub const PLUGRAD_OP_COS: u32 = 19;
pub const PLUGRAD_OP_ATAN: u32 = 20;
pub const PLUGRAD_OP_GELU: u32 = 128;
pub const PLUGRAD_OP_GELU_TANH: u32 = 129;
pub const PLUGRAD_OP_SILU: u32 = 130;
pub const PLUGRAD_OP_ADD: u32 = 24;
pub const PLUGRAD_OP_SUB: u32 = 25;
pub const PLUGRAD_OP_MUL: u32 = 26;
pub const PLUGRAD_OP_DIV: u32 = 27;
pub const PLUGRAD_OP_POW: u32 = 28;
pub const PLUGRAD_OP_MAXIMUM: u32 = 29;
pub const PLUGRAD_OP_MINIMUM: u32 = 30;
pub const PLUGRAD_OP_FMOD: u32 = 31;
pub const PLUGRAD_OP_QUOTIENT: u32 = 32;
pub const PLUGRAD_OP_BITWISE_AND: u32 = 33;
pub const PLUGRAD_OP_BITWISE_OR: u32 = 34;
pub const PLUGRAD_OP_BITWISE_XOR: u32 = 35;
pub const PLUGRAD_OP_BITWISE_LEFT_SHIFT: u32 = 36;
pub const PLUGRAD_OP_BITWISE_RIGHT_SHIFT: u32 = 37;
pub const PLUGRAD_OP_EQ: u32 = 40;
pub const PLUGRAD_OP_NE: u32 = 41;
pub const PLUGRAD_OP_LT: u32 = 42;
pub const PLUGRAD_OP_LE: u32 = 43;
pub const PLUGRAD_OP_WHERE: u32 = 44;
pub const PLUGRAD_OP_SUM: u32 = 48;
pub const PLUGRAD_OP_MAX: u32 = 49;
pub const PLUGRAD_OP_MIN: u32 = 50;
pub const PLUGRAD_OP_ARGMAX: u32 = 51;
pub const PLUGRAD_OP_MATMUL: u32 = 56;
pub const PLUGRAD_OP_MATMUL_ADD: u32 = 57;
pub const PLUGRAD_OP_QUANTIZED_MATMUL: u32 = 58;
pub const PLUGRAD_OP_INTEGER_MATMUL: u32 = 59;
pub const PLUGRAD_OP_ATTENTION: u32 = 160;
pub const PLUGRAD_OP_ATTENTION_BACKWARD: u32 = 161;
pub const PLUGRAD_OP_GATHER: u32 = 60;
pub const PLUGRAD_OP_SCATTER_ADD: u32 = 61;
pub const PLUGRAD_OP_SCATTER_SUM: u32 = 176;
pub const PLUGRAD_OP_UNIFORM: u32 = 64;
pub const PLUGRAD_OP_NORMAL: u32 = 65;
pub const PLUGRAD_OP_LOG_SOFTMAX: u32 = 72;
pub const PLUGRAD_OP_CROSS_ENTROPY: u32 = 73;
pub const PLUGRAD_OP_ARGSORT: u32 = 74;
pub const PLUGRAD_OP_SOFTMAX: u32 = 134;
pub const PLUGRAD_OP_LAYER_NORM: u32 = 135;
pub const PLUGRAD_OP_RMS_NORM: u32 = 136;
pub const PLUGRAD_OP_BATCH_NORM: u32 = 137;
pub const PLUGRAD_OP_TOPK: u32 = 178;
pub const PLUGRAD_OP_CUMSUM: u32 = 177;
pub const PLUGRAD_OP_FFT: u32 = 179;
pub const PLUGRAD_OP_RELU_BACKWARD: u32 = 80;
pub const PLUGRAD_OP_SIGMOID_BACKWARD: u32 = 81;
pub const PLUGRAD_OP_TANH_BACKWARD: u32 = 82;
pub const PLUGRAD_OP_GELU_BACKWARD: u32 = 131;
pub const PLUGRAD_OP_GELU_TANH_BACKWARD: u32 = 132;
pub const PLUGRAD_OP_SILU_BACKWARD: u32 = 133;
pub const PLUGRAD_OP_LOG_SOFTMAX_BACKWARD: u32 = 83;
pub const PLUGRAD_OP_CROSS_ENTROPY_BACKWARD: u32 = 84;
pub const PLUGRAD_OP_SOFTMAX_BACKWARD: u32 = 138;
pub const PLUGRAD_OP_LAYER_NORM_BACKWARD: u32 = 139;
pub const PLUGRAD_OP_RMS_NORM_BACKWARD: u32 = 140;
pub const PLUGRAD_OP_BATCH_NORM_BACKWARD: u32 = 141;
pub const PLUGRAD_OP_DESCENT_STEP: u32 = 95;
pub const PLUGRAD_OP_SGD_STEP: u32 = 96;
pub const PLUGRAD_OP_ADAM_STEP: u32 = 97;
pub const PLUGRAD_OP_CONVOLUTION: u32 = 112;
pub const PLUGRAD_OP_CONVOLUTION_BIAS: u32 = 113;
pub const PLUGRAD_OP_CONVOLUTION_INPUT_GRAD: u32 = 114;
pub const PLUGRAD_OP_CONVOLUTION_WEIGHT_GRAD: u32 = 115;
pub const PLUGRAD_OP_MAX_POOL: u32 = 116;
pub const PLUGRAD_OP_MAX_POOL_BACKWARD: u32 = 117;

/// One hash for each revision.
pub static PLUGRAD_LAYOUTS: [u64; PLUGRAD_REVISION + 1] = [0x185aa4f6f13e2c92];
pub const PLUGRAD_ENTRY: &str = "plugrad_backend_v0";

#[repr(C)]
pub struct plugrad_device {
    _private: [u8; 0],
}

#[repr(C)]
pub struct plugrad_stream {
    _private: [u8; 0],
}

#[repr(C)]
pub struct plugrad_buffer {
    _private: [u8; 0],
}

#[repr(C)]
pub struct plugrad_view {
    pub buffer: *mut plugrad_buffer,
    pub offset: u64,
    pub count: i64,
    pub dtype: u8,
    pub rank: u8,
    pub layout: u16,
    pub reserved: [u8; 4],
    pub shape: [i64; 8],
    pub strides: [i64; 8],
}
const _: () = assert!(size_of::<plugrad_view>() == 160);

#[repr(C)]
pub struct plugrad_op {
    pub struct_size: u32,
    pub opcode: u32,
    pub number: u64,
    pub views: *const *const plugrad_view,
    pub attributes: *const c_void,
    pub outputs: u16,
    pub inputs: u16,
    pub flags: u32,
    pub workspace: *mut plugrad_buffer,
    pub workspace_offset: u64,
    pub workspace_bytes: u64,
}
const _: () = assert!(size_of::<plugrad_op>() == 64);

#[repr(C)]
pub struct plugrad_axis {
    pub struct_size: u32,
    pub axis: i32,
}
const _: () = assert!(size_of::<plugrad_axis>() == 8);

#[repr(C)]
pub struct plugrad_sort {
    pub struct_size: u32,
    pub axis: i32,
    pub descending: u32,
}
const _: () = assert!(size_of::<plugrad_sort>() == 12);

#[repr(C)]
pub struct plugrad_convolution {
    pub struct_size: u32,
    pub reserved: u32,
    pub groups: i64,
    pub stride: [i64; 3],
    pub padding: [i64; 3],
    pub dilation: [i64; 3],
}
const _: () = assert!(size_of::<plugrad_convolution>() == 88);

#[repr(C)]
pub struct plugrad_pool {
    pub struct_size: u32,
    pub reserved: u32,
    pub size: [i64; 3],
    pub stride: [i64; 3],
    pub padding: [i64; 3],
    pub dilation: [i64; 3],
}
const _: () = assert!(size_of::<plugrad_pool>() == 104);

#[repr(C)]
pub struct plugrad_norm {
    pub struct_size: u32,
    pub reserved: u32,
    pub epsilon: f64,
}
const _: () = assert!(size_of::<plugrad_norm>() == 16);

#[repr(C)]
pub struct plugrad_scan {
    pub struct_size: u32,
    pub axis: i32,
    pub reverse: u32,
}
const _: () = assert!(size_of::<plugrad_scan>() == 12);

#[repr(C)]
pub struct plugrad_fft {
    pub struct_size: u32,
    pub axis: i32,
    pub kind: u32,
    pub reserved: u32,
    pub scale: f64,
}
const _: () = assert!(size_of::<plugrad_fft>() == 24);

#[repr(C)]
pub struct plugrad_attention {
    pub struct_size: u32,
    pub causal: u32,
    pub scale: f64,
}
const _: () = assert!(size_of::<plugrad_attention>() == 16);

#[repr(C)]
pub struct plugrad_sgd {
    pub struct_size: u32,
    pub nesterov: u32,
    pub momentum: f64,
    pub weight_decay: f64,
}
const _: () = assert!(size_of::<plugrad_sgd>() == 24);

#[repr(C)]
pub struct plugrad_adam {
    pub struct_size: u32,
    pub decoupled: u32,
    pub beta1: f64,
    pub beta2: f64,
    pub epsilon: f64,
    pub weight_decay: f64,
}
const _: () = assert!(size_of::<plugrad_adam>() == 40);

#[repr(C)]
pub struct plugrad_kernel {
    pub struct_size: u32,
    pub reserved: u32,
    pub run: Option<unsafe extern "C" fn(*const plugrad_kernel, *mut plugrad_stream, *const plugrad_op) -> i32>,
    pub workspace: Option<unsafe extern "C" fn(*const plugrad_kernel, *const plugrad_op) -> u64>,
}
const _: () = assert!(size_of::<plugrad_kernel>() == 24);

#[repr(C)]
pub struct plugrad_signature {
    pub struct_size: u32,
    pub opcode: u32,
    pub flags: u32,
    pub layout: u16,
    pub outputs: u8,
    pub inputs: u8,
    pub dtypes: [u8; 16],
    pub attributes: *const c_void,
}
const _: () = assert!(size_of::<plugrad_signature>() == 40);

#[repr(C)]
pub struct plugrad_place {
    pub struct_size: u32,
    pub kind: u32,
    pub device: *mut plugrad_device,
    pub buffer: *mut plugrad_buffer,
    pub offset: u64,
}
const _: () = assert!(size_of::<plugrad_place>() == 32);

#[repr(C)]
pub struct plugrad_copy {
    pub struct_size: u32,
    pub reserved: u32,
    pub number: u64,
    pub bytes: u64,
    pub to: plugrad_place,
    pub from: plugrad_place,
}
const _: () = assert!(size_of::<plugrad_copy>() == 88);

#[repr(C)]
pub struct plugrad_failure {
    pub struct_size: u32,
    pub status: i32,
    pub first: u64,
    pub last: u64,
}
const _: () = assert!(size_of::<plugrad_failure>() == 24);

#[repr(C)]
pub struct plugrad_option {
    pub struct_size: u32,
    pub reserved: u32,
    pub key: *const c_char,
    pub value: *const c_char,
}
const _: () = assert!(size_of::<plugrad_option>() == 24);

#[repr(C)]
pub struct plugrad_options {
    pub struct_size: u32,
    pub count: u32,
    pub stride: u64,
    pub items: *const plugrad_option,
}
const _: () = assert!(size_of::<plugrad_options>() == 24);

#[repr(C)]
pub struct plugrad_device_info {
    pub struct_size: u32,
    pub capabilities: u32,
    pub alignment: u64,
    pub memory: u64,
    pub dlpack_type: i32,
    pub dlpack_index: i32,
    pub numa_node: i32,
    pub reserved: u32,
    pub name: [c_char; 64],
    pub identity: [c_char; 64],
}
const _: () = assert!(size_of::<plugrad_device_info>() == 168);

#[repr(C)]
pub struct plugrad_host {
    pub struct_size: u32,
    pub revision: u32,
    pub layouts: *const u64,
    pub report: Option<unsafe extern "C" fn(*const plugrad_host, i32, *const c_char)>,
    pub log: Option<unsafe extern "C" fn(*const plugrad_host, u32, *const c_char)>,
    pub get_extension: Option<unsafe extern "C" fn(*const plugrad_host, *const c_char) -> *const c_void>,
}
const _: () = assert!(size_of::<plugrad_host>() == 40);

#[repr(C)]
pub struct plugrad_backend {
    pub struct_size: u32,
    pub revision: u32,
    pub layouts: *const u64,
    pub name: *const c_char,
    pub version: *const c_char,
    pub count: Option<unsafe extern "C" fn(*const plugrad_host, *mut u32) -> i32>,
    pub open: Option<unsafe extern "C" fn(*const plugrad_host, u32, *const plugrad_options, *mut *mut plugrad_device, *mut plugrad_device_info) -> i32>,
    pub resolve: Option<unsafe extern "C" fn(*mut plugrad_device, *const plugrad_signature) -> *const plugrad_kernel>,
    pub get_extension: Option<unsafe extern "C" fn(*const c_char) -> *const c_void>,
    pub alloc: Option<unsafe extern "C" fn(*mut plugrad_device, u64, *mut *mut plugrad_buffer) -> i32>,
    pub free: Option<unsafe extern "C" fn(*mut plugrad_device, *mut plugrad_buffer)>,
    pub memory_info: Option<unsafe extern "C" fn(*mut plugrad_device, *mut u64, *mut u64) -> i32>,
    pub pin: Option<unsafe extern "C" fn(*mut plugrad_device, u64, *mut *mut c_void) -> i32>,
    pub unpin: Option<unsafe extern "C" fn(*mut plugrad_device, *mut c_void)>,
    pub copy: Option<unsafe extern "C" fn(*mut plugrad_stream, *const plugrad_copy) -> i32>,
    pub stream_create: Option<unsafe extern "C" fn(*mut plugrad_device, u32, *mut *mut plugrad_stream) -> i32>,
    pub completed: Option<unsafe extern "C" fn(*mut plugrad_stream, *mut u64) -> i32>,
    pub wait: Option<unsafe extern "C" fn(*mut plugrad_stream, *mut plugrad_stream, *mut u64) -> i32>,
    pub sync: Option<unsafe extern "C" fn(*mut plugrad_stream, *mut plugrad_failure) -> i32>,
    pub unnamed_use: u32,
    pub reserved: u32,
}
const _: () = assert!(size_of::<plugrad_backend>() == 152);

unsafe impl Sync for plugrad_backend {}
unsafe impl Send for plugrad_backend {}

unsafe impl Sync for plugrad_kernel {}
unsafe impl Send for plugrad_kernel {}

fn fields() -> Vec<plugrad_transcribed> {
    let mut all = Vec::new();
    macro_rules! fields {
        ($type:ty, $name:literal, $($field:ident),+) => {{
            let object = MaybeUninit::<$type>::uninit();
            let begin = object.as_ptr();
            $(all.push(plugrad_transcribed {
                name: concat!($name, ".", stringify!($field), "\0").as_ptr() as *const c_char,
                offset: unsafe { addr_of!((*begin).$field) as u64 - begin as u64 },
                size: size_of_field(|object: &$type| addr_of!(object.$field)) as u64,
            });)+
        }};
    }
    fields!(plugrad_view, "view", buffer, offset, count, dtype, rank, layout, reserved, shape, strides);
    fields!(plugrad_op, "op", struct_size, opcode, number, views, attributes, outputs, inputs, flags, workspace, workspace_offset, workspace_bytes);
    fields!(plugrad_axis, "axis", struct_size, axis);
    fields!(plugrad_sort, "sort", struct_size, axis, descending);
    fields!(plugrad_convolution, "convolution", struct_size, reserved, groups, stride, padding, dilation);
    fields!(plugrad_pool, "pool", struct_size, reserved, size, stride, padding, dilation);
    fields!(plugrad_norm, "norm", struct_size, reserved, epsilon);
    fields!(plugrad_scan, "scan", struct_size, axis, reverse);
    fields!(plugrad_fft, "fft", struct_size, axis, kind, reserved, scale);
    fields!(plugrad_attention, "attention", struct_size, causal, scale);
    fields!(plugrad_sgd, "sgd", struct_size, nesterov, momentum, weight_decay);
    fields!(plugrad_adam, "adam", struct_size, decoupled, beta1, beta2, epsilon, weight_decay);
    fields!(plugrad_kernel, "kernel", struct_size, reserved, run, workspace);
    fields!(plugrad_signature, "signature", struct_size, opcode, flags, layout, outputs, inputs, dtypes, attributes);
    fields!(plugrad_place, "place", struct_size, kind, device, buffer, offset);
    fields!(plugrad_copy, "copy", struct_size, reserved, number, bytes, to, from);
    fields!(plugrad_failure, "failure", struct_size, status, first, last);
    fields!(plugrad_option, "option", struct_size, reserved, key, value);
    fields!(plugrad_options, "options", struct_size, count, stride, items);
    fields!(plugrad_device_info, "device_info", struct_size, capabilities, alignment, memory, dlpack_type, dlpack_index, numa_node, reserved, name, identity);
    fields!(plugrad_host, "host", struct_size, revision, layouts, report, log, get_extension);
    fields!(plugrad_backend, "backend", struct_size, revision, layouts, name, version, count, open, resolve, get_extension, alloc, free, memory_info, pin, unpin, copy, stream_create, completed, wait, sync, unnamed_use, reserved);
    all
}

fn size_of_field<S, F>(_: fn(&S) -> *const F) -> usize {
    size_of::<F>()
}

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
pub const PLUGRAD_TRANSCRIPTION: &[u8] = b"transcription/0\0";

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
