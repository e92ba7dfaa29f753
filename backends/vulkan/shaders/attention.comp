// ATTENTION and its gradients, in f32. A workgroup computes a tile of 16 rows and 64 columns; the 16 invocations of a row
// hold its columns lane, lane + 16, lane + 32 and lane + 48. Scores are never stored in memory: the loops take 64 keys or
// queries at a time, and scale the sums of a row when a larger score appears (Dao and others, "FlashAttention", 2022).
// MODE 0 computes out and lse, in tiles of queries. MODE 1 computes grad_query, in tiles of queries, and stores the sum of
// grad * out of each query for MODE 2. MODE 2 computes grad_key and grad_value, in tiles of keys, over all queries that
// share the keys.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "functions.glsl"

// The operands, and their indices in the arrays.
const uint QUERY = 0, KEY = 1, VALUE = 2, MASK = 3, OUT = 4, LSE = 5, GRAD = 6, GRAD_QUERY = 7, GRAD_KEY = 8, GRAD_VALUE = 9;

layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Attention {
  uint64_t base[10], products;            // products: the sums of grad * out, one for each query of each batch
  uint l, s, e, v, causal, across, tiles_of_one, tiles;
  uint rank, members;                     // members: the number of batches that share a key; their axes come first
  uint extent[8];
  int64_t batch[10][8];                   // strides in elements
  int row[10], column[10];                // strides in elements; a matrix spans less than 2^31 elements
  float scale, number;                    // number: added to each score if has_mask is 0
  uint has_mask;
};
layout(push_constant) uniform Push { Attention p; };
REFERENCE(Element, float, 4)

const uint ROWS = 16, COLUMNS = 64, DEPTH = 32;
shared float left[DEPTH][ROWS + 1], right[DEPTH][COLUMNS + 1], weights[ROWS][COLUMNS + 1], shares[GROUP];

uint row_of_me() { return gl_LocalInvocationIndex / 16; }
uint lane() { return gl_LocalInvocationIndex % 16; }

// A matrix of an operand: its address, strides and extents, and the first row that a tile needs.
struct Side {
  uint64_t address;
  int row_step, column_step;
  uint rows, columns, row;
};

Side side(uint operand, uint batch, uint rows, uint columns, uint row) {
  int64_t offset = 0;
  for (uint d = 0; d < p.rank; ++d) {
    uint above = batch / p.extent[d];
    offset += int64_t(batch - above * p.extent[d]) * p.batch[operand][d];
    batch = above;
  }
  return Side(p.base[operand] + uint64_t(offset * 4), p.row[operand], p.column[operand], rows, columns, row);
}

uint64_t address(Side x, uint row, uint column) {
  return x.address + uint64_t(int64_t(int(row) * x.row_step + int(column) * x.column_step) * 4);
}
// Elements outside the matrix are 0. Their address is clamped to that of the first element, because a device may read it.
float element(Side x, uint row, uint column) {
  bool inside = row < x.rows && column < x.columns;
  float found = flushed(Element(address(x, inside ? row : 0, inside ? column : 0)).v);
  return inside ? found : 0.0;
}

vec4 of_lanes(uint d) {
  uint c = lane();
  return vec4(right[d][c], right[d][c + 16], right[d][c + 32], right[d][c + 48]);
}

// Returns the products of my row of a and four rows of b.
vec4 products(Side a, Side b) {
  vec4 total = vec4(0.0);
  uint end = DEPTH * min(COLUMNS, b.rows - b.row);
  for (uint inner = 0; inner < a.columns; inner += DEPTH) {
    uint depth = min(DEPTH, a.columns - inner);
    barrier();
    for (uint i = gl_LocalInvocationIndex; i < DEPTH * ROWS; i += GROUP)
      left[i % DEPTH][i / DEPTH] = element(a, a.row + i / DEPTH, inner + i % DEPTH);
    for (uint i = gl_LocalInvocationIndex; i < DEPTH * COLUMNS; i += GROUP) right[i % DEPTH][i / DEPTH] = 0.0;
    for (uint i = gl_LocalInvocationIndex; i < end; i += GROUP)
      right[i % DEPTH][i / DEPTH] = element(b, b.row + i / DEPTH, inner + i % DEPTH);
    barrier();
    vec4 sum = vec4(0.0);
    for (uint d = 0; d < depth; ++d) sum += left[d][row_of_me()] * of_lanes(d);
    total += sum;
  }
  return total;
}

// Stores my weights for weighted_rows.
void share(vec4 mine) {
  barrier();
  for (uint i = 0; i < 4; ++i) weights[row_of_me()][lane() + 16 * i] = mine[i];
  barrier();
}

// Returns the sums over 64 rows of x, times their weights in my row, for four of the 64 columns that begin at `column`.
vec4 weighted_rows(Side x, uint column) {
  vec4 total = vec4(0.0);
  uint rows = min(COLUMNS, x.rows - x.row);
  for (uint first = 0; first < rows; first += DEPTH) {
    uint depth = min(DEPTH, rows - first);
    barrier();
    for (uint i = gl_LocalInvocationIndex; i < depth * COLUMNS; i += GROUP)
      right[i / COLUMNS][i % COLUMNS] = element(x, x.row + first + i / COLUMNS, column + i % COLUMNS);
    barrier();
    vec4 sum = vec4(0.0);
    for (uint d = 0; d < depth; ++d) sum += weights[row_of_me()][first + d] * of_lanes(d);
    total += sum;
  }
  return total;
}

// Returns the sum, or the largest, of the numbers that the invocations of my row pass.
float over_row(float mine, const bool is_sum) {
  barrier();
  shares[gl_LocalInvocationIndex] = mine;
  barrier();
  uint first = row_of_me() * 16;
  float all = shares[first];
  for (uint i = 1; i < 16; ++i) {
    float next = shares[first + i];
    all = is_sum ? all + next : larger(all, next);
  }
  return all;
}

// Returns the score of a query and a key from their product; -INFINITE outside the matrix and for a key that causal
// attention hides.
float score(Side mask, uint query, uint key, float product) {
  bool is_seen = query < p.l && key < p.s && (p.causal == 0 || key <= query);
  float added = p.number;
  if (p.has_mask != 0) added = element(mask, query, key);
  return is_seen ? product * p.scale + added : -INFINITE;
}

void put(Side to, uint row, uint column, vec4 values) {
  for (uint i = 0; i < 4; ++i) {
    uint c = column + lane() + 16 * i;
    if (row < to.rows && c < to.columns) Element(address(to, row, c)).v = flushed(values[i]);
  }
}

// Returns the end of the keys that a tile of queries attends to.
uint end_of_keys(uint row) { return p.causal != 0 ? min(p.s, row + ROWS) : p.s; }

void attend(uint batch, uint row, uint column) {
  uint query = row + row_of_me();
  float largest = -INFINITE, sum = 0.0;
  vec4 total = vec4(0.0);
  Side queries = side(QUERY, batch, p.l, p.e, row), mask = side(MASK, batch, p.l, p.s, 0);
  Side keys = side(KEY, batch, p.s, p.e, 0), values = side(VALUE, batch, p.s, p.v, 0);
  for (uint key = 0; key < end_of_keys(row); key += COLUMNS) {
    keys.row = values.row = key;
    vec4 x = products(queries, keys);
    float most = -INFINITE;
    for (uint i = 0; i < 4; ++i) {
      x[i] = score(mask, query, key + lane() + 16 * i, x[i]);
      most = larger(most, x[i]);
    }
    most = larger(largest, over_row(most, false));
    float shift = most == -INFINITE ? 0.0 : most, kept = exponential(largest - shift);
    for (uint i = 0; i < 4; ++i) x[i] = exponential(x[i] - shift);
    largest = most;
    sum = sum * kept + over_row(x[0] + x[1] + x[2] + x[3], true);
    share(x);
    total = total * kept + weighted_rows(values, column);
  }
  put(side(OUT, batch, p.l, p.v, 0), query, column, sum == 0.0 ? vec4(0.0) : total / sum);
  if (column == 0 && lane() == 0 && query < p.l)
    Element(address(side(LSE, batch, p.l, 1, 0), query, 0)).v =
        flushed(sum == 0.0 ? -INFINITE : largest + logarithm(sum));
}

// Returns e^(score - lse), or 0 if the score or lse is -INFINITE.
float weight(float score, float lse) { return score == -INFINITE || lse == -INFINITE ? 0.0 : exponential(score - lse); }

uint64_t place_of_product(uint batch, uint query) { return p.products + (uint64_t(batch) * p.l + query) * 4; }

void differentiate_queries(uint batch, uint row, uint column) {
  uint query = row + row_of_me();
  Side queries = side(QUERY, batch, p.l, p.e, row), grads = side(GRAD, batch, p.l, p.v, row);
  Side keys = side(KEY, batch, p.s, p.e, 0), values = side(VALUE, batch, p.s, p.v, 0);
  Side mask = side(MASK, batch, p.l, p.s, 0), outs = side(OUT, batch, p.l, p.v, 0);
  float lse = element(side(LSE, batch, p.l, 1, 0), query, 0), share_of_product = 0.0;
  for (uint c = lane(); c < p.v; c += 16) share_of_product += element(grads, query, c) * element(outs, query, c);
  float product = over_row(share_of_product, true);
  if (column == 0 && lane() == 0 && query < p.l) Element(place_of_product(batch, query)).v = product;
  vec4 total = vec4(0.0);
  for (uint key = 0; key < end_of_keys(row); key += COLUMNS) {
    keys.row = values.row = key;
    vec4 slope = products(grads, values), x = products(queries, keys);
    for (uint i = 0; i < 4; ++i)
      x[i] = p.scale * weight(score(mask, query, key + lane() + 16 * i, x[i]), lse) * (slope[i] - product);
    share(x);
    total += weighted_rows(keys, column);
  }
  put(side(GRAD_QUERY, batch, p.l, p.e, 0), query, column, total);
}

void differentiate_keys(uint owner, uint row, uint column) {
  uint key = row + row_of_me(), any = owner * p.members;
  vec4 keys_total = vec4(0.0), values_total = vec4(0.0);
  Side keys = side(KEY, any, p.s, p.e, row), values = side(VALUE, any, p.s, p.v, row);
  for (uint batch = any; batch < any + p.members; ++batch) {
    Side queries = side(QUERY, batch, p.l, p.e, 0), grads = side(GRAD, batch, p.l, p.v, 0);
    Side mask = side(MASK, batch, p.l, p.s, 0), lse = side(LSE, batch, p.l, 1, 0);
    for (uint first = p.causal != 0 ? row / COLUMNS * COLUMNS : 0; first < p.l; first += COLUMNS) {
      queries.row = grads.row = first;
      vec4 slope = products(values, grads), x = products(keys, queries);
      for (uint i = 0; i < 4; ++i) {
        uint query = first + lane() + 16 * i, there = min(query, p.l - 1);
        x[i] = weight(score(mask, query, key, x[i]), element(lse, there, 0));
        slope[i] = p.scale * x[i] * (slope[i] - Element(place_of_product(batch, there)).v);
      }
      share(x);
      values_total += weighted_rows(grads, column);
      share(slope);
      keys_total += weighted_rows(queries, column);
    }
  }
  put(side(GRAD_KEY, any, p.s, p.e, 0), key, column, keys_total);
  put(side(GRAD_VALUE, any, p.s, p.v, 0), key, column, values_total);
}

void main() {
  for (uint tile = gl_WorkGroupID.x; tile < p.tiles; tile += gl_NumWorkGroups.x) {
    uint matrix = tile / p.tiles_of_one, inside = tile - matrix * p.tiles_of_one;
    uint row = inside / p.across * ROWS, column = inside % p.across * COLUMNS;
    if (MODE == 0) attend(matrix, row, column);
    else if (MODE == 1) differentiate_queries(matrix, row, column);
    else differentiate_keys(matrix, row, column);
  }
}
