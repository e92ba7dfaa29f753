# Compiles each variant of the shaders to SPIR-V, and writes shaders.cpp, which contains them all.
set(PLUGRAD_SHADERS ${CMAKE_CURRENT_LIST_DIR}/shaders)
set(PLUGRAD_SPIRV ${CMAKE_CURRENT_BINARY_DIR}/spirv)

# table.glsl: the numbers of ops and dtypes, from the SDK's tables.
set(PLUGRAD_TABLE "// Made from ops.def and dtypes.def.\n")
foreach(entry "ops.def;PLUGRAD_OP;OP_;" "dtypes.def;PLUGRAD_DTYPE;;_ID")
  list(GET entry 0 file)
  list(GET entry 1 macro)
  list(GET entry 2 before)
  list(GET entry 3 after)
  set(file ${PROJECT_SOURCE_DIR}/sdk/include/plugrad/sdk/${file})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  string(REGEX MATCHALL "${macro}\\([A-Z0-9_]+, *[0-9]+" rows "${text}")
  foreach(row IN LISTS rows)
    string(REGEX MATCH "([A-Z0-9_]+), *([0-9]+)" row "${row}")
    string(APPEND PLUGRAD_TABLE "#define ${before}${CMAKE_MATCH_1}${after} ${CMAKE_MATCH_2}u\n")
  endforeach()
endforeach()

# plugrad_cases(VARIABLE FROM TO): the ops with a case in elementwise.glsl between two texts.
set(PLUGRAD_ELEMENTWISE ${PLUGRAD_SHADERS}/elementwise.glsl)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PLUGRAD_ELEMENTWISE})
file(READ ${PLUGRAD_ELEMENTWISE} PLUGRAD_ELEMENTWISE)
string(REPLACE ";" "," PLUGRAD_ELEMENTWISE "${PLUGRAD_ELEMENTWISE}")  # a list's separator otherwise
function(plugrad_cases variable from to)
  string(FIND "${PLUGRAD_ELEMENTWISE}" "${from}" begin)
  string(SUBSTRING "${PLUGRAD_ELEMENTWISE}" ${begin} -1 rest)
  string(FIND "${rest}" "${to}" length)
  string(SUBSTRING "${rest}" 0 ${length} part)
  string(REGEX MATCHALL "case OP_[A-Z0-9_]+" cases "${part}")
  if(NOT cases)
    message(FATAL_ERROR "elementwise.glsl has no cases between '${from}' and '${to}'")
  endif()
  list(TRANSFORM cases REPLACE "case OP_" "")
  set(${variable} ${cases} PARENT_SCOPE)
endfunction()
plugrad_cases(PLUGRAD_MOVED "T moved(" "return a,")
plugrad_cases(PLUGRAD_OF_F32 "float function(" "return r,\n}")
plugrad_cases(PLUGRAD_FLOATING "T computed(" "#else")
plugrad_cases(PLUGRAD_INTEGERS "return r,\n#else" "return a,")
list(TRANSFORM PLUGRAD_MOVED REPLACE "(.+)" "F(\\1)" OUTPUT_VARIABLE moved)
list(TRANSFORM PLUGRAD_FLOATING REPLACE "(.+)" "F(\\1)" OUTPUT_VARIABLE floating)
list(TRANSFORM PLUGRAD_OF_F32 REPLACE "(.+)" "F(\\1)" OUTPUT_VARIABLE functions)
list(JOIN moved " " moved)
list(JOIN floating " " floating)
list(JOIN functions " " functions)
string(APPEND PLUGRAD_TABLE "#define FUNCTIONS(F) ${moved} ${floating} ${functions}\n")
file(CONFIGURE OUTPUT spirv/table.glsl CONTENT "${PLUGRAD_TABLE}" @ONLY)

set(PLUGRAD_SHADER_CODE "// Made by shaders.cmake.\n#include <backends/vulkan/pipelines.hpp>\n
namespace plugrad::vulkan {\nnamespace {\n")
set(PLUGRAD_SHADER_ROWS "")
set(PLUGRAD_SHADER_FILES "")
file(GLOB included CONFIGURE_DEPENDS ${PLUGRAD_SHADERS}/*.glsl)

# plugrad_shader(NAME SOURCE BITS DEFINITION...): BITS is the width of the floating numbers that it computes with.
function(plugrad_shader name source bits)
  list(TRANSFORM ARGN PREPEND -D)
  # The templates of fusions keep their functions and their names. Debian 12's optimiser crashes on cooperative matrices.
  set(optimise -O)
  if(name MATCHES "^(fusion|product_fusion|product_units)$")
    set(optimise -O0)
  endif()
  set(file ${PLUGRAD_SPIRV}/${name}.inc)
  add_custom_command(OUTPUT ${file}
    COMMAND ${PLUGRAD_GLSLC} --target-env=vulkan1.2 ${optimise} -mfmt=num -I${PLUGRAD_SPIRV} -I${PLUGRAD_SHADERS} ${ARGN}
      ${PLUGRAD_SHADERS}/${source}.comp -o ${file}
    DEPENDS ${PLUGRAD_SHADERS}/${source}.comp ${included} ${PLUGRAD_SPIRV}/table.glsl
    COMMENT "Compiling shader ${name}" VERBATIM)
  set(PLUGRAD_SHADER_FILES ${PLUGRAD_SHADER_FILES} ${file} PARENT_SCOPE)
  set(PLUGRAD_SHADER_CODE
    "${PLUGRAD_SHADER_CODE}constexpr uint32_t k_${name}[] = {\n#include \"spirv/${name}.inc\"\n};\n" PARENT_SCOPE)
  set(PLUGRAD_SHADER_ROWS
    "${PLUGRAD_SHADER_ROWS}    {\"${name}\", k_${name}, std::size(k_${name}), ${bits}},\n" PARENT_SCOPE)
endfunction()

foreach(entry "f32;F32;32" "f64;F64;64" "i64;I64;0" "i32;I32;0")
  list(GET entry 0 suffix)
  list(GET entry 1 type)
  list(GET entry 2 bits)
  plugrad_shader(elementwise_${suffix} elementwise ${bits} ${type})
  plugrad_shader(compare_${suffix} compare ${bits} ${type})
  plugrad_shader(scatter_${suffix} scatter ${bits} ${type})
  plugrad_shader(iota_${suffix} iota ${bits} ${type})
endforeach()
plugrad_shader(compare_u8 compare 0 U8)
plugrad_shader(iota_f32_by_f64 iota 32 F32 WITH_F64)
foreach(size 1 2 4 8)
  plugrad_shader(move_${size} move 0 SIZE=${size})
  plugrad_shader(gather_${size} gather 0 SIZE=${size})
endforeach()
plugrad_shader(cast cast 32)
plugrad_shader(cast_16 cast 32 WITH_16)
plugrad_shader(cast_f64 cast 32 WITH_F64)
plugrad_shader(cast_16_f64 cast 32 WITH_16 WITH_F64)
plugrad_shader(random random 32 F32)
plugrad_shader(update update 32 F32)
plugrad_shader(reduce_f32 reduce 32 F32 A=float ASIZE=4)
plugrad_shader(reduce_f64 reduce 64 F64 A=double ASIZE=8)
plugrad_shader(reduce_i64 reduce 0 I64 A=int64_t ASIZE=8)
plugrad_shader(reduce_i32 reduce 0 I32 A=int ASIZE=4)
plugrad_shader(reduce_i32_to_i64 reduce 0 I32 A=int64_t ASIZE=8)
plugrad_shader(reduce_u8_to_i64 reduce 0 U8 A=int64_t ASIZE=8)
plugrad_shader(product_f32 product 32 F32)
plugrad_shader(product_f64 product 64 F64)
plugrad_shader(product_units product_units 32 F32)
plugrad_shader(quantized quantized 32 F32)
plugrad_shader(softmax softmax 32 F32)
plugrad_shader(norms norms 32 F32)
plugrad_shader(attention attention 32 F32)
plugrad_shader(fusion fusion 32 F32)
plugrad_shader(product_fusion product_fusion 32 F32)

set(PLUGRAD_ELEMENTWISE_CODE "")
foreach(kind MOVED FLOATING OF_F32 INTEGERS)
  list(TRANSFORM PLUGRAD_${kind} PREPEND "PLUGRAD_OP_")
  list(JOIN PLUGRAD_${kind} ", " ops)
  string(APPEND PLUGRAD_ELEMENTWISE_CODE "  static constexpr uint32_t k${kind}[] = {${ops}}\\;\n")
endforeach()
string(REPLACE "\\;" ";" PLUGRAD_ELEMENTWISE_CODE "${PLUGRAD_ELEMENTWISE_CODE}")
file(CONFIGURE OUTPUT shaders.cpp CONTENT "@PLUGRAD_SHADER_CODE@}  // namespace

ElementwiseOps elementwise_ops() {
@PLUGRAD_ELEMENTWISE_CODE@  return {kMOVED, kFLOATING, kOF_F32, kINTEGERS};
}

const Shader& shader_of(std::string_view name) {
  static constexpr Shader kShaders[] = {
@PLUGRAD_SHADER_ROWS@  };
  for (const Shader& each : kShaders)
    if (each.name == name) return each;
  throw BackendError(PLUGRAD_INTERNAL, \"there is no shader \" + std::string(name));
}

}  // namespace plugrad::vulkan
" @ONLY)
set_property(SOURCE ${CMAKE_CURRENT_BINARY_DIR}/shaders.cpp APPEND PROPERTY OBJECT_DEPENDS "${PLUGRAD_SHADER_FILES}")
