// The extension "transcription/0": where the fields of abi.h's structs are, for a plugin with the structs written down in
// another language. plugrad-conform asks for the extension and compares field by field: the handshake compares hashes only,
// and a hash may have been copied. A plugin that includes abi.h needs no such extension.
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PLUGRAD_TRANSCRIPTION "transcription/0"

typedef struct plugrad_transcribed {
  const char* name;       // "view.offset": struct and field as in layout.json
  uint64_t offset, size;  // bytes, as the plugin's compiler lays the field out
} plugrad_transcribed;

// get_extension returns its address. It lives as long as the process.
typedef struct plugrad_transcription {
  uint32_t struct_size;
  uint32_t count;  // all fields of the plugin's revision
  const plugrad_transcribed* fields;
} plugrad_transcription;

#ifdef __cplusplus
}
#endif
