// WORD: the type of SIZE bytes for ops that only move elements.
#if SIZE == 2
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
uint16_t chosen(bool holds, uint16_t a, uint16_t b) { return holds ? a : b; }
#endif
#if SIZE == 1
#define WORD uint8_t
#elif SIZE == 2
#define WORD uint16_t
#elif SIZE == 4
#define WORD uint
#else
#define WORD uint64_t
#endif
REFERENCE(Element, WORD, SIZE)
