// The parameters of products of matrices, as parameters.hpp declares them.
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Product {
  uint64_t base[4];  // out, a, b, addend
  uint m, n, k, accumulates, tiles_across, tiles_of_one, tiles, batch_rank;
  uint batch_extent[8];
  int64_t batch[4][8], row[4], column[4];  // strides in elements
};
const uint SIZE_OF_PRODUCT = 416;  // in bytes
layout(push_constant) uniform Push { Product product; };

const uint TILE = 64;  // rows, and columns, of the output that a workgroup computes at a time

// Finds the offset of a matrix of the batch in each operand, in elements.
void find_offsets(uint matrix, out int64_t offset[4]) {
  for (uint i = 0; i < 4; ++i) offset[i] = 0;
  for (uint d = 0; d < product.batch_rank; ++d) {
    uint above = matrix / product.batch_extent[d];
    int64_t at = int64_t(matrix - above * product.batch_extent[d]);
    for (uint i = 0; i < 4; ++i) offset[i] += at * product.batch[i][d];
    matrix = above;
  }
}

// Returns the address of an element of `size` bytes.
uint64_t address_of(uint operand, int64_t offset, uint row, uint column, int size) {
  int64_t at = offset + int64_t(row) * product.row[operand] + int64_t(column) * product.column[operand];
  return product.base[operand] + uint64_t(at * size);
}
