#include <backends/cpu/fusion_frame.hpp>

#include <backends/cpu/operand.hpp>
#include <backends/cpu/streaming.hpp>

#include <algorithm>
#include <numeric>

namespace plugrad::cpu {
namespace {
constexpr int64_t kTileElements = 1024;  // small tiles stay in the first cache, and their loads overlap with arithmetic
constexpr int64_t kWideTile = 4096;      // of fusions with few values in buffers
constexpr int kFewBuffers = 2;
constexpr int64_t kLongestRow = 16384;  // elements of a reduced row: its values stay in the second cache
constexpr int64_t kTaskElements = 32768;
constexpr int64_t kShortFold = 16;  // shorter rows are folded side by side, by another kernel
constexpr int64_t kNarrow = 32;     // and narrower matrices several rows at once

int64_t aligned(int64_t bytes) { return ceil_div(bytes, 64) * 64; }
int64_t power_below(int64_t n) { return int64_t{1} << (63 - __builtin_clzll(static_cast<uint64_t>(n))); }
}  // namespace

FusionFrame::FusionFrame(const FusionPlan& plan, int rank, int threads, const plugrad_op& op, bool follows)
    : plan_(plan), threads_(threads), follows_(follows) {
  for (int k = 0; k < op.outputs + op.inputs; ++k) shown_.push_back(*op.views[k]);
  choose_shapes(rank, op);
  follows_ = follows_ && columns_ >= kLeastFollowed;
  choose_tile();
  serves_ = folds_serve();
  if (!serves_) return;
  choose_tasks();
  lay_out(op);
  lay_out_buffers();
  find_whole_steps();
  for (uint16_t v = 1; follows_ && v < plan_.values.size(); ++v)  // the first input is what the other kernel has just made
    if (is_far(v) && layouts_[v].is_even) far_input_ = v;
  far_.resize(plan_.steps.size());
}

bool FusionFrame::is_for(const plugrad_op& op) const {
  for (size_t k = 0; k < shown_.size(); ++k) {
    const plugrad_view &a = shown_[k], &b = *op.views[k];
    if (a.rank != b.rank) return false;
    for (int d = 0; d < a.rank; ++d)
      if (a.shape[d] != b.shape[d] || a.strides[d] != b.strides[d]) return false;
  }
  return true;
}

void FusionFrame::choose_shapes(int rank, const plugrad_op& op) {
  outer_rank_ = rank - 1;
  const auto space = space_of(op, rank);
  std::copy_n(space.begin(), outer_rank_, outer_.begin());
  rows_ = std::accumulate(outer_.begin(), outer_.begin() + outer_rank_, int64_t{1}, std::multiplies<>());
  columns_ = space[static_cast<size_t>(outer_rank_)];
}

// Rows of a tile are evenly spaced for all operands, and are in one block of rows of a fold.
void FusionFrame::choose_tile() {
  for (const FusionPlan::Fold& each : plan_.all) block_ = std::max(block_, each.reduction->block_length);
  const int64_t elements = plan_.has_rows || plan_.buffers > kFewBuffers ? kTileElements : kWideTile;
  const int64_t most = std::max(elements, rows_ == 1 ? block_ : 0);
  tile_columns_ = plan_.has_rows ? columns_ : std::min(columns_, most);
  if (rows_ == 1 || follows_) return;
  if (tile_columns_ < columns_ || columns_ > elements / 2) return;
  tile_rows_ = std::min(power_below(elements / columns_), power_below(rows_));
  if (!plan_.columns.empty()) tile_rows_ = std::min(tile_rows_, kBlockRows);
  if (outer_rank_ > 1)
    while (outer_[static_cast<size_t>(outer_rank_ - 1)] % tile_rows_) tile_rows_ /= 2;
}

bool FusionFrame::folds_serve() const {
  const bool folds_rows = std::any_of(plan_.steps.begin(), plan_.steps.end(),
                                      [](const FusionStep& each) { return each.kind == FusionStep::fold_row; });
  if (plan_.has_rows && columns_ > kLongestRow) return false;
  if (folds_rows && columns_ < kShortFold) return false;
  return plan_.columns.empty() || (columns_ > kNarrow && rows_ > 1);
}

// A task has whole blocks of all folds.
void FusionFrame::choose_tasks() {
  if (rows_ == 1) {
    task_ = plan_.has_rows ? columns_ : kTaskElements;
    tasks_ = ceil_div(columns_, task_);
  } else {
    int64_t unit = tile_rows_;
    if (!plan_.columns.empty()) unit = std::max(unit, kBlockRows);
    if (block_) unit = std::lcm(unit, block_ / std::gcd(block_, columns_));
    task_ = ceil_div(std::max<int64_t>(1, kTaskElements / columns_), unit) * unit;
    tasks_ = ceil_div(rows_, task_);
  }
  slots_ = follows_ ? threads_ : static_cast<int>(std::min<int64_t>(threads_, tasks_));
}

// --- The places of values.

void FusionFrame::lay_out_input(size_t value, const plugrad_view& view) {
  Layout& it = layouts_[value];
  const int64_t size = plan_.values[value].size;
  if (is_immediate(view) || plan_.values[value].form == Form::number) return;
  const int last = view.rank - 1;
  it.column_step = view.strides[last] * size;
  if (!outer_rank_) {
    it.is_dense = true;
    return;
  }
  it.row_step = it.tile_step = view.strides[last - 1] * size;
  for (int d = 0; d < outer_rank_; ++d) it.strides[static_cast<size_t>(d)] = view.strides[d] * size;
  for (int d = 1; d < outer_rank_; ++d) it.is_even = it.is_even && view.strides[d - 1] == view.strides[d] * view.shape[d];
  const Form form = plan_.values[value].form;
  it.is_dense = form == Form::full ? it.row_step == tile_columns_ * size && it.column_step : it.row_step == size;
}

void FusionFrame::lay_out(const plugrad_op& op) {
  layouts_.resize(plan_.values.size());
  for (size_t v = 0; v < plan_.values.size(); ++v) {
    const FusionValue& it = plan_.values[v];
    if (it.input >= 0) lay_out_input(v, *op.views[op.outputs + it.input]);
    if (it.form == Form::number || it.form == Form::column || it.input >= 0) continue;
    const bool is_full = it.form == Form::full;
    Layout& layout = layouts_[v];
    layout.is_dense = is_full ? tile_columns_ == columns_ || tile_rows_ == 1 : true;
    layout.tile_step = it.size * (is_full ? it.output >= 0 ? columns_ : tile_columns_ : 1);
    if (it.output < 0) {
      layout.is_dense = true;
      continue;
    }
    layout.row_step = it.size * (is_full ? columns_ : 1);
    layout.column_step = is_full ? it.size : 0;
  }
}

// A slot has the buffers, copies of inputs and staged elements of one task at a time.
void FusionFrame::lay_out_buffers() {
  int64_t bytes = 0;
  const auto reserve = [&](int64_t wanted) { return std::exchange(bytes, bytes + aligned(wanted)); };
  for (size_t b = 0; b < plan_.buffer_sizes.size(); ++b)
    buffer_offsets_.push_back(reserve(plan_.buffer_sizes[b] * tile_rows_ * (plan_.buffer_is_full[b] ? tile_columns_ : 1)));
  for (size_t v = 0; v < plan_.values.size(); ++v) {
    Layout& it = layouts_[v];
    const auto value = static_cast<uint16_t>(v);
    const int64_t size = plan_.values[v].size;
    const bool is_held = plan_.values[v].input >= 0 || plan_.values[v].output >= 0;
    if (is_held && (it.row_step || it.column_step || !it.is_even)) moving_.push_back(value);
    if (is_held && plan_.values[v].form == Form::full && it.column_step) bytes_ += rows_ * columns_ * size;
    if (plan_.values[v].input < 0 || tile_rows_ == 1) continue;
    if (plan_.values[v].form == Form::column) {
      repeated_.push_back({value, reserve(size * tile_rows_ * tile_columns_), 0});
      std::erase(moving_, value);
      it.is_dense = true;
      it.tile_step = size * tile_columns_;
    } else if (plan_.values[v].form == Form::row && !it.is_dense) {
      gathered_.push_back({value, reserve(size * tile_rows_), it.tile_step});
      it.is_dense = true;
      it.tile_step = size;
    }
  }
  for (const FusionPlan::Fold& each : plan_.all) staging_.push_back(reserve(rows_ == 1 ? 0 : each.reduction->size * block_));
  slot_bytes_ = bytes;
  bytes *= slots_;
  for (const FusionPlan::Fold& each : plan_.columns)
    column_results_.push_back(reserve(each.reduction->size * ceil_div(rows_, kBlockRows) * columns_));
  for (const FusionPlan::Fold& each : plan_.all)
    all_results_.push_back(reserve(each.reduction->size * ceil_div(rows_ * columns_, each.reduction->block_length)));
  workspace_ = static_cast<uint64_t>(bytes);
}

void FusionFrame::find_whole_steps() {
  for (const FusionStep& step : plan_.steps) {
    bool whole = tile_rows_ == 1 || step.over_rows;
    if (!whole) {
      whole = true;
      for (const uint16_t v : step.operands)
        whole =
            whole && (plan_.values[v].form == Form::number || (plan_.values[v].form != Form::row && layouts_[v].is_dense));
    }
    whole_.push_back(whole);
  }
}

// Whether the value is an input with many elements.
bool FusionFrame::is_far(uint16_t value) const {
  const FusionValue& it = plan_.values[value];
  return it.input >= 0 && it.form == Form::full && layouts_[value].column_step && rows_ * columns_ * it.size >= kFarBytes;
}

void FusionFrame::use_far_code() {
  if (follows_) return;
  const auto is_written_far = [&](uint16_t value) {
    const FusionValue& it = plan_.values[value];
    return it.output >= 0 && !it.replaces && it.form == Form::full && rows_ * columns_ * it.size >= kFarBytes;
  };
  for (size_t i = 0; i < far_.size(); ++i) {
    const FusionStep& step = plan_.steps[i];
    if (!step.code.function || step.over_rows) continue;
    FarOperands far;
    for (const uint16_t value : step.run.inputs) far.is_read_ahead.push_back(is_far(value));
    for (const uint16_t value : step.run.results) {
      far.is_streamed.push_back(is_streamed(value));
      far.is_written_ahead.push_back(!far.is_streamed.back() && is_written_far(value));
      if (far.is_streamed.back()) streamed_.push_back(value);
    }
    const bool has_any = std::count(far.is_read_ahead.begin(), far.is_read_ahead.end(), true) ||
                         std::count(far.is_written_ahead.begin(), far.is_written_ahead.end(), true) ||
                         std::count(far.is_streamed.begin(), far.is_streamed.end(), true);
    if (has_any) far_[i] = compile(step.run, plan_.vector_bytes, far);
  }
}

// Whether the value is an output larger than the caches and not read by a step, and is aligned in all tiles if it is in the
// first.
bool FusionFrame::is_streamed(uint16_t value) const {
  for (const FusionStep& each : plan_.steps)
    if (std::find(each.operands.begin() + each.results, each.operands.end(), value) != each.operands.end()) return false;
  const FusionValue& it = plan_.values[value];
  const bool is_even = tile_columns_ * it.size % 64 == 0 && (rows_ == 1 || columns_ * it.size % 64 == 0);
  return it.output >= 0 && !it.replaces && it.form == Form::full && is_even && rows_ * columns_ * it.size >= kStreamedBytes;
}

}  // namespace plugrad::cpu
