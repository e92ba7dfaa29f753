// The plan of a fusion for operands of any shape: its values, and the steps of each tile.
#pragma once
#include <backends/cpu/fusion_code.hpp>
#include <backends/cpu/reduction.hpp>
#include <backends/cpu/rows.hpp>
#include <backends/cpu/update.hpp>
#include <plugrad/sdk/fusion.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace plugrad::cpu {

inline constexpr int kMaxStepOperands = 32;

// The form of a value in the space: rows of the last axis.
enum class Form : uint8_t {
  full,    // an element for each place
  row,     // one element for a row
  column,  // one row for all
  number,  // one element
};

struct FusionValue {
  uint8_t size;  // bytes of an element
  Form form;
  int input = -1;         // its operand
  int output = -1;        // its output, if computed in the output's memory
  int buffer = -1;        // else its buffer of the tile
  bool is_made = false;   // by a step
  bool replaces = false;  // the output has the memory of an input
};

struct FusionStep {
  enum Kind : uint8_t {
    elementwise,   // function
    fold_row,      // rows to elements; of the tile
    fold_columns,  // all rows to one
    fold_all,
    copy,    // the second operand to the first, an output
    update,  // results, the replaced old values, the gradient, and numbers
  } kind;
  bool over_rows = false;            // it has an element for each row of a tile, not for each place
  uint32_t opcode = 0;               // of an elementwise step of one op
  const Elementwise* row = nullptr;  // the same
  bool is_floating = false;          // the same: its last operand is f32 or f64
  RowFunction function = nullptr;
  FusedRun run = {};    // of an elementwise step of several ops
  FusedCode code = {};  // the same
  const Reduction* reduction = nullptr;
  int number = 0;  // among the steps of its kind
  const Update* rule = nullptr;
  std::vector<uint64_t> attributes = {};  // of the update
  uint8_t results = 1;
  std::vector<uint16_t> operands = {};  // values, results first
};

// An exponent of POW. For its value, the result of an element must not depend on the element's neighbours.
struct SteadyExponent {
  uint16_t input;
};

struct FusionPlan {
  std::vector<FusionValue> values;
  std::vector<FusionStep> steps;
  std::vector<SteadyExponent> exponents;
  struct Fold {
    const Reduction* reduction;
    uint16_t output;  // of the fusion
  };
  std::vector<Fold> columns, all;  // fold_columns, fold_all
  int vector_bytes = 0;            // see compile in fusion_code.hpp
  int buffers = 0;
  std::vector<uint8_t> buffer_sizes;  // bytes of an element
  std::vector<bool> buffer_is_full;   // else it has an element for each row
  bool has_rows = false;              // whether a step is fold_row or over rows
};

// Returns nothing for a fusion that kernels of these rows cannot run.
std::optional<FusionPlan> plan_of(const Fusion& fusion, const RowList& rows, int vector_bytes);

}  // namespace plugrad::cpu
