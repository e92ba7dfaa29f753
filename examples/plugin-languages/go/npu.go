// A plugrad backend in Go: an ADD of its own, and the SDK's loops for all other ops.
package main

/*
#define PLUGRAD_NO_ENTRY  // Go declares the entry itself
#include <plugrad/sdk/driver.h>
#include <plugrad/sdk/loops.h>

extern plugrad_kernel own;
extern plugrad_driver driver;
extern plugrad_backend table;
void refuse(const plugrad_host* host);
*/
import "C"

import "unsafe"

// With HOST_MEM a buffer is the address of its first byte.
func elements(view *C.plugrad_view) []float32 {
	first := unsafe.Add(unsafe.Pointer(view.buffer), uintptr(view.offset))
	return unsafe.Slice((*float32)(first), int(view.count))
}

//export npuAdd
func npuAdd(kernel *C.plugrad_kernel, stream *C.plugrad_stream, op *C.plugrad_op) C.int32_t {
	views := unsafe.Slice(op.views, 3)
	out, a, b := elements(views[0]), elements(views[1]), elements(views[2])
	for i := range out {
		out[i] = a[i] + b[i]
	}
	return C.PLUGRAD_OK
}

// Dense f32 operands; every kernel of an exact op obeys the two flags.
func serves(key *C.plugrad_signature) bool {
	if key.opcode != C.PLUGRAD_OP_ADD || key.outputs != 1 || key.inputs != 2 || key.layout != 0 {
		return false
	}
	for _, dtype := range key.dtypes[:3] {
		if dtype != C.PLUGRAD_F32 {
			return false
		}
	}
	return key.flags&^C.uint32_t(C.PLUGRAD_DETERMINISTIC|C.PLUGRAD_TF32) == 0
}

//export npuResolve
func npuResolve(loops *C.plugrad_device, key *C.plugrad_signature) *C.plugrad_kernel {
	if serves(key) {
		return &C.own
	}
	return C.plugrad_loops_resolve(loops, key)
}

//export npuCount
func npuCount(host *C.plugrad_host, devices *C.uint32_t) C.int32_t {
	*devices = 1
	return C.PLUGRAD_OK
}

//export npuOpen
func npuOpen(host *C.plugrad_host, index C.uint32_t, options *C.plugrad_options, device **C.plugrad_device, info *C.plugrad_device_info) C.int32_t {
	if index != 0 {
		C.refuse(host)
		return C.PLUGRAD_INVALID
	}
	status := C.plugrad_loops_open(host, options, device, info)
	if status == C.PLUGRAD_OK {
		for i, letter := range []byte("go\x00") {
			info.name[i] = C.char(letter)
		}
	}
	return C.int32_t(status)
}

//export npuExtension
func npuExtension(name *C.char) unsafe.Pointer {
	if C.GoString(name) == C.PLUGRAD_DRIVER {
		return unsafe.Pointer(&C.driver)
	}
	return nil
}

//export plugrad_backend_v0
func plugrad_backend_v0(host *C.plugrad_host) *C.plugrad_backend {
	return &C.table
}

func main() {}
