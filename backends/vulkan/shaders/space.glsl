// The parameters of fusions, as parameters.hpp declares them.
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Space {
  uint count, rank, zero, pass;
  uint divisor[8], magic[8], shift[8];  // the innermost axis first
  int stride[32][8];                    // of outputs, then inputs, in elements
  uint64_t base[32];                    // 0: an immediate, whose bits are in value
  uint64_t value[32];
  uint64_t partials;                    // a number for each reduction, row and chunk
  uint rows, row, span, chunks;         // rows of `row` elements, in chunks of `span`
  uint reductions, unused;
  uint op[8];                           // of the reductions
};
