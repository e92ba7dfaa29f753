// A workgroup computes a tile of 64 x 64 elements, and an invocation 4 x 4 elements of it. A shader defines Element, and
// `finish`, which takes the elements of an invocation. MODE 1: MATMUL_ADD. A shader may define RIGHT_ELEMENT, the right
// operand's element (inner, column).
const uint SIDE = 4;
void finish(uint matrix, int64_t offset, uint row, uint column, T value[SIDE][SIDE]);

const uint DEPTH = 16;
const uint SUMS_FROM = 16;  // sums of DEPTH * SUMS_FROM products are added to a total, so that errors grow slowly
shared T left[DEPTH][TILE + 1], right[DEPTH][TILE + 1];

T element(uint operand, int64_t offset, uint row, uint column) {
  return flushed(Element(address_of(operand, offset, row, column, SIZE)).v);
}

#ifndef RIGHT_ELEMENT
#define RIGHT_ELEMENT(offset, inner, column) element(2, offset, inner, column)
#endif

// Fills left and right with the elements of a and b that have the inner indices `inner` .. inner + DEPTH - 1. Adjacent
// invocations read along the axis whose elements are adjacent. Elements outside the matrix are 0. Their address is clamped
// to that of the first element, because a device may read it.
void load(int64_t offset_a, int64_t offset_b, uint row, uint column, uint inner) {
  bool along_a = product.column[1] == 1, along_b = product.row[2] == 1;
  for (uint e = gl_LocalInvocationIndex; e < TILE * DEPTH; e += GROUP) {
    uint d = along_a ? e % DEPTH : e / TILE, q = along_a ? e / DEPTH : e % TILE;
    bool inside = row + q < product.m && inner + d < product.k;
    T found = element(1, offset_a, inside ? row + q : 0, inside ? inner + d : 0);
    left[d][q] = inside ? found : T(0);
    d = along_b ? e % DEPTH : e / TILE;
    q = along_b ? e / DEPTH : e % TILE;
    inside = column + q < product.n && inner + d < product.k;
    found = RIGHT_ELEMENT(offset_b, inside ? inner + d : 0, inside ? column + q : 0);
    right[d][q] = inside ? found : T(0);
  }
}

void compute(uint matrix, uint row, uint column) {
  int64_t offset[4];
  find_offsets(matrix, offset);
  uint y = gl_LocalInvocationIndex / 16 * SIDE, x = gl_LocalInvocationIndex % 16 * SIDE;
  T sum[SIDE][SIDE], total[SIDE][SIDE];
  for (uint i = 0; i < SIDE; ++i)
    for (uint j = 0; j < SIDE; ++j) {
      sum[i][j] = T(0);
      total[i][j] = T(0);
    }
  uint loads = 0;
  for (uint inner = 0; inner < product.k; inner += DEPTH) {
    load(offset[1], offset[2], row, column, inner);
    barrier();
    for (uint d = 0; d < DEPTH; ++d) {
      T a[SIDE], b[SIDE];
      for (uint i = 0; i < SIDE; ++i) {
        a[i] = left[d][y + i];
        b[i] = right[d][x + i];
      }
      for (uint i = 0; i < SIDE; ++i)
        for (uint j = 0; j < SIDE; ++j) sum[i][j] = a[i] * b[j] + sum[i][j];
    }
    barrier();
    if (++loads % SUMS_FROM == 0)
      for (uint i = 0; i < SIDE; ++i)
        for (uint j = 0; j < SIDE; ++j) {
          total[i][j] += sum[i][j];
          sum[i][j] = T(0);
        }
  }
  for (uint i = 0; i < SIDE; ++i)
    for (uint j = 0; j < SIDE; ++j) {
      total[i][j] += sum[i][j];
      bool inside = row + y + i < product.m && column + x + j < product.n;
      if (MODE == 1 && inside) total[i][j] += element(3, offset[3], row + y + i, column + x + j);
    }
  finish(matrix, offset[0], row + y, column + x, total);
}

void main() {
  for (uint tile = gl_WorkGroupID.x; tile < product.tiles; tile += gl_NumWorkGroups.x) {
    uint matrix = tile / product.tiles_of_one, inside = tile - matrix * product.tiles_of_one;
    compute(matrix, inside / product.tiles_across * TILE, inside % product.tiles_across * TILE);
  }
}
