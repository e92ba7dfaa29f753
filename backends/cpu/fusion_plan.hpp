// What a fusion does, whatever the shapes of its operands: its values, and the steps that each tile goes through.
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

// How a value lies in the space: rows of the last axis.
enum class Form : uint8_t {
  full,    // an element for each place
  row,     // one element for a row
  column,  // one row for all
  number,  // one element
};

struct FusionValue {
  uint8_t size;  // bytes of an element
  Form form;
  int input = -1;         // the operand that it is
  int output = -1;        // the output in whose memory it is computed
  int buffer = -1;        // else the buffer of the tile in which it is
  bool is_made = false;   // by a step
  bool replaces = false;  // the output lies in the memory of an input
};

struct FusionStep {
  enum Kind : uint8_t {
    elementwise,   // function
    fold_row,      // rows to elements; of the tile
    fold_columns,  // all rows to one
    fold_all,
    copy,    // the second operand to the first, an output
    update,  // results, the old values that they replace, the gradient, and numbers
  } kind;
  bool over_rows = false;            // its elements are those of the rows of a tile, not of their places
  uint32_t opcode = 0;               // of an elementwise step of one op
  const Elementwise* row = nullptr;  // the same
  bool is_floating = false;          // the same: its last operand is f32 or f64
  RowFunction function = nullptr;
  FusedRun run = {};    // of an elementwise step of several ops
  FusedCode code = {};  // the same
  const Reduction* reduction = nullptr;
  int number = 0;  // among those of its kind
  const Update* rule = nullptr;
  std::vector<uint64_t> attributes = {};  // of the update
  uint8_t results = 1;
  std::vector<uint16_t> operands = {};  // values, results first
};

// An exponent of POW that must be one for which the result of an element does not depend on its neighbours.
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

// Returns nothing if a kernel of these rows does not do for a fusion.
std::optional<FusionPlan> plan_of(const Fusion& fusion, const RowList& rows, int vector_bytes);

}  // namespace plugrad::cpu
