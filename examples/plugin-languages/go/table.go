package main

// The tables of the contract. cgo takes definitions only from a file that exports nothing.

/*
#define PLUGRAD_NO_ENTRY
#include <plugrad/sdk/driver.h>

int32_t npuCount(plugrad_host*, uint32_t*);
int32_t npuOpen(plugrad_host*, uint32_t, plugrad_options*, plugrad_device**, plugrad_device_info*);
plugrad_kernel* npuResolve(plugrad_device*, plugrad_signature*);
void* npuExtension(char*);
int32_t npuAdd(plugrad_kernel*, plugrad_stream*, plugrad_op*);

// Go's pointers may not be kept by C, so the tables are C's.
plugrad_kernel own = {sizeof own, 0, (plugrad_status(*)(const plugrad_kernel*, plugrad_stream*, const plugrad_op*))npuAdd, 0};
plugrad_driver driver = {sizeof driver, PLUGRAD_DRIVER_SIGNALS};  // Go's runtime installs signal handlers
plugrad_backend table = {
    .struct_size = sizeof table,
    .revision = PLUGRAD_REVISION,
    .layouts = plugrad_layouts,
    .name = "go",
    .version = "0.1",
    .count = (plugrad_status(*)(const plugrad_host*, uint32_t*))npuCount,
    .open = (plugrad_status(*)(const plugrad_host*, uint32_t, const plugrad_options*, plugrad_device**, plugrad_device_info*))npuOpen,
    .resolve = (const plugrad_kernel* (*)(plugrad_device*, const plugrad_signature*))npuResolve,
    .get_extension = (const void* (*)(const char*))npuExtension,
    .unnamed_use = PLUGRAD_ONLY_BY_NAME,
};

void refuse(const plugrad_host* host) { host->report(host, PLUGRAD_INVALID, "[open] there is one device, go:0"); }
*/
import "C"
