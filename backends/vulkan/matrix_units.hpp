// The matrix units of a device multiply small matrices at once.
#pragma once
#include <backends/vulkan/api.hpp>

#include <span>
#include <vector>

namespace plugrad::vulkan {

// The fragments of product_units.comp: (rows, inner) times (inner, columns), of f16 with sums of f32. The members are the
// specialisation constants 7 to 10, in this order.
struct MatrixUnits {
  uint32_t rows = 0, columns = 0, inner = 0;  // 0: the device has no units for the shader
  uint32_t fragments = 0;                     // of rows x columns, of a tile and subgroup
};

// The shader demands subgroups without missing invocations; the second extension is for this demand.
inline constexpr const char* kMatrixUnitExtensions[] = {VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME,
                                                        VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME};

// Asks a device with these extensions. subgroup: the device's number of invocations in a subgroup.
MatrixUnits find_matrix_units(const InstanceFunctions& functions, VkPhysicalDevice device, uint32_t subgroup);

// Whether the module has matrices of SPV_NV_cooperative_matrix.
bool has_matrices(std::span<const uint32_t> module);

// Returns the module with the matrices of SPV_NV_cooperative_matrix replaced by matrices of SPV_KHR_cooperative_matrix. The
// two extensions differ in the encoding. Matrices are in row-major order in memory. Only SPV_KHR_cooperative_matrix states a
// matrix's use; the use follows from the specialisation constants of the matrix's shape.
std::vector<uint32_t> with_khr_matrices(std::span<const uint32_t> module);

}  // namespace plugrad::vulkan
