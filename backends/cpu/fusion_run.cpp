// Runs a fusion: tasks of tiles. Each tile goes through all steps.
#include <backends/cpu/fusion_frame.hpp>
#include <backends/cpu/pool.hpp>
#include <backends/cpu/streaming.hpp>
#include <backends/cpu/tile.hpp>

#include <hwy/cache_control.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace plugrad::cpu {

struct FusionFrame::Run {
  Run(const FusionPlan& plan, const plugrad_op& with)
      : op(with), workspace(reinterpret_cast<char*>(op.workspace) + op.workspace_offset) {
    for (size_t v = 0; v < plan.values.size(); ++v) {
      const FusionValue& it = plan.values[v];
      base[v] = nullptr;
      if (it.input >= 0) base[v] = address(*op.views[op.outputs + it.input], numbers[v]);
      else if (it.output >= 0) base[v] = data<char>(*op.views[it.output]);
    }
  }
  static constexpr size_t kMostValues = 4 * (PLUGRAD_FUSION_OPERANDS + PLUGRAD_FUSION_INSTRUCTIONS);

  const plugrad_op& op;
  char* const workspace;
  bool is_aligned = true;   // of streamable values
  char* base[kMostValues];  // by value: its first element, if an operand holds it
  alignas(8) char numbers[kMostValues][8];
  alignas(8) char updates[PLUGRAD_FUSION_INSTRUCTIONS][kUpdateNumbers];  // their rows' arguments besides operands
};

// The memory of one task at a time.
struct FusionFrame::Slot {
  char* memory;
  char* at[Run::kMostValues] = {};  // by value: its first element in the tile
};

void FusionFrame::run(const plugrad_op& op) const {
  Run run(plan_, op);
  prepare(run);
  std::atomic<int64_t> next{0};
  const int64_t turned = begins_at_end(bytes_) ? tasks_ - 1 : 0;
  parallel(threads_, slots_, [&](int64_t number) {
    Slot slot{.memory = run.workspace + number * slot_bytes_};
    for (int64_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks_;)
      run_task(run, slot, turned ? turned - task : task);
    if (!streamed_.empty()) hwy::FlushStream();  // for threads with later reads
  });
  for (size_t i = 0; i < plan_.columns.size(); ++i) finish_columns(run, i);
  for (size_t i = 0; i < plan_.all.size(); ++i) finish_all(run, i);
}

void FusionFrame::prepare(Run& run) const {
  for (const uint16_t v : streamed_) run.is_aligned = run.is_aligned && reinterpret_cast<uintptr_t>(run.base[v]) % 64 == 0;
  for (const FusionStep& step : plan_.steps) {
    if (step.kind != FusionStep::update) continue;
    const char* numbers[kMaxStepOperands];
    const size_t first = 2u * step.results + 1;
    for (size_t k = first; k < step.operands.size(); ++k) numbers[k - first] = run.base[step.operands[k]];
    step.rule->prepare(run.updates[step.number], step.attributes.data(), numbers, rows_ * columns_);
  }
}

// Points to values with the same place for all tiles.
void FusionFrame::start(const Run& run, Slot& slot) const {
  for (size_t v = 0; v < plan_.values.size(); ++v) {
    const int buffer = plan_.values[v].buffer;
    slot.at[v] = buffer >= 0 ? slot.memory + buffer_offsets_[static_cast<size_t>(buffer)] : run.base[v];
  }
  for (const Copied& each : repeated_) {
    const int64_t bytes = plan_.values[each.value].size * tile_columns_;
    slot.at[each.value] = slot.memory + each.offset;
    for (int64_t r = 0; r < tile_rows_; ++r) std::memcpy(slot.at[each.value] + r * bytes, run.base[each.value], bytes);
  }
}

void FusionFrame::run_task(const Run& run, Slot& slot, int64_t task) const {
  start(run, slot);
  if (rows_ == 1) {
    const int64_t end = std::min(columns_, (task + 1) * task_);
    for (int64_t c = task * task_; c < end; c += tile_columns_)
      run_tile(run, slot, {0, 1, c, std::min(tile_columns_, end - c)});
    return;
  }
  const int64_t end = std::min(rows_, (task + 1) * task_);
  for (int64_t r = task * task_; r < end; r += tile_rows_)
    for (int64_t c = 0; c < columns_; c += tile_columns_)
      run_tile(run, slot, {r, std::min(tile_rows_, end - r), c, std::min(tile_columns_, columns_ - c)});
}

// Points to a tile's values in operands.
void FusionFrame::point(const Run& run, Slot& slot, const Part& tile) const {
  for (const uint16_t v : moving_) {
    const Layout& it = layouts_[v];
    char* p = run.base[v] + tile.column * it.column_step;
    int64_t row = tile.row;
    if (it.is_even) p += row * it.row_step;
    else
      for (int d = outer_rank_ - 1; d >= 0; row /= outer_[static_cast<size_t>(d--)])
        p += row % outer_[static_cast<size_t>(d)] * it.strides[static_cast<size_t>(d)];
    slot.at[v] = p;
  }
  for (const Copied& each : gathered_) {
    const int64_t size = plan_.values[each.value].size;
    char* const to = slot.memory + each.offset;
    copy_tile({to, 0, size}, {slot.at[each.value], 0, each.step}, 1, tile.rows, static_cast<int>(size));
    slot.at[each.value] = to;
  }
}

void FusionFrame::run_tile(const Run& run, Slot& slot, const Part& tile) const {
  point(run, slot, tile);
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const FusionStep& step = plan_.steps[i];
    switch (step.kind) {
      case FusionStep::elementwise: run_elementwise(i, run, slot, tile); break;
      case FusionStep::copy: copy(step, slot, tile); break;
      case FusionStep::fold_row: fold_rows(step, slot, tile); break;
      case FusionStep::fold_columns: fold_columns(step, run, slot, tile); break;
      case FusionStep::fold_all: fold_all(step, run, slot, tile); break;
      case FusionStep::update: update(i, run, slot, tile); break;
    }
  }
}

void FusionFrame::run_elementwise(size_t i, const Run& run, const Slot& slot, const Part& tile) const {
  const FusionStep& step = plan_.steps[i];
  const RowFunction function = far_[i].function && run.is_aligned ? far_[i].function : step.function;
  char* at[kMaxStepOperands];
  const size_t operands = step.operands.size();
  for (size_t k = 0; k < operands; ++k) at[k] = slot.at[step.operands[k]];
  if (whole_[i]) return function(at, step.over_rows ? tile.rows : tile.rows * tile.columns, nullptr);
  for (int64_t r = 0; r < tile.rows; ++r) {
    function(at, tile.columns, nullptr);
    for (size_t k = 0; k < operands; ++k) at[k] += layouts_[step.operands[k]].tile_step;
  }
}

void FusionFrame::copy(const FusionStep& step, const Slot& slot, const Part& tile) const {
  const int64_t size = plan_.values[step.operands[0]].size, count = step.over_rows ? tile.rows : tile.rows * tile.columns;
  std::memcpy(slot.at[step.operands[0]], slot.at[step.operands[1]], static_cast<size_t>(count * size));
}

// Updates in the memory of the results. Old values from elsewhere are first copied to it.
void FusionFrame::update(size_t i, const Run& run, const Slot& slot, const Part& tile) const {
  const FusionStep& step = plan_.steps[i];
  const size_t results = step.results;
  char *at[kMaxRowOperands], *old[kMaxRowOperands];
  const auto value = [&](size_t k) { return step.operands[k < results ? k : k + results]; };  // of an operand of the row
  for (size_t k = 0; k <= results; ++k) at[k] = slot.at[value(k)];
  for (size_t k = 0; k < results; ++k) old[k] = slot.at[step.operands[results + k]];
  const int64_t rows = whole_[i] ? 1 : tile.rows, n = whole_[i] ? tile.rows * tile.columns : tile.columns;
  for (int64_t r = 0; r < rows; ++r) {
    for (size_t k = 0; k < results; ++k)
      if (at[k] != old[k]) std::memcpy(at[k], old[k], static_cast<size_t>(n * plan_.values[value(k)].size));
    step.function(at, n, run.updates[step.number]);
    for (size_t k = 0; k <= results; ++k) at[k] += layouts_[value(k)].tile_step;
    for (size_t k = 0; k < results; ++k) old[k] += layouts_[step.operands[results + k]].tile_step;
  }
}

void FusionFrame::fold_rows(const FusionStep& step, const Slot& slot, const Part& tile) const {
  const Reduction& kind = *step.reduction;
  const int64_t row_step = layouts_[step.operands[1]].tile_step;
  kind.each_row(slot.at[step.operands[0]], kind.size, slot.at[step.operands[1]], row_step, tile.rows, tile.columns, false);
}

// A tile's rows are in one block.
void FusionFrame::fold_columns(const FusionStep& step, const Run& run, const Slot& slot, const Part& tile) const {
  const Reduction& kind = *step.reduction;
  char* const results = run.workspace + column_results_[static_cast<size_t>(step.number)];
  char* const to = results + (tile.row / kBlockRows * columns_ + tile.column) * kind.size;
  if (tile.row % kBlockRows == 0) kind.start(to, tile.columns);
  kind.add_rows(to, slot.at[step.operands[1]], tile.rows, layouts_[step.operands[1]].tile_step, tile.columns);
}

// A space of one row has tiles of whole blocks; otherwise elements are staged until a block is complete.
void FusionFrame::fold_all(const FusionStep& step, const Run& run, const Slot& slot, const Part& tile) const {
  const Reduction& kind = *step.reduction;
  const auto fold = static_cast<size_t>(step.number);
  char* const results = run.workspace + all_results_[fold];
  const char* p = slot.at[step.operands[1]];
  int64_t count = tile.rows * tile.columns, place = tile.row * columns_ + tile.column;
  while (count) {
    const int64_t done = place % kind.block_length, some = std::min(count, kind.block_length - done);
    char* const result = results + place / kind.block_length * kind.size;
    if (rows_ == 1 || (done == 0 && some == kind.block_length)) {
      kind.block(result, p, some);
    } else {
      char* const staged = slot.memory + staging_[fold];
      std::memcpy(staged + done * kind.size, p, static_cast<size_t>(some * kind.size));
      const bool is_last = place + some == rows_ * columns_;
      if (done + some == kind.block_length || is_last) kind.block(result, staged, done + some);
    }
    p += some * kind.size;
    place += some;
    count -= some;
  }
}

// --- The results of folds over all tiles, in the merging order of the kernels of single ops.

void FusionFrame::finish_columns(const Run& run, size_t i) const {
  const FusionPlan::Fold& fold = plan_.columns[i];
  const Reduction& kind = *fold.reduction;
  char* const out = data<char>(*run.op.views[fold.output]);
  const char* const results = run.workspace + column_results_[i];
  const int64_t blocks = (rows_ + kBlockRows - 1) / kBlockRows, rows = rows_of_chunk(rows_, columns_);
  const int64_t chunk = rows ? rows / kBlockRows : blocks;
  const auto finish = [&](int64_t panel) {
    alignas(64) char total[kPanel * kMaxPartial], partials[kPanel * kMaxPartial];
    const int64_t column = panel * kPanel, n = std::min(kPanel, columns_ - column);
    for (int64_t first = 0; first < blocks; first += chunk) {
      char* const to = first ? partials : total;
      kind.init(to, n);
      for (int64_t b = first; b < std::min(blocks, first + chunk); ++b)
        kind.take(to, results + (b * columns_ + column) * kind.size, n);
      if (first) kind.merge(total, partials, n);
    }
    for (int64_t c = 0; c < n; ++c) kind.store(out + (column + c) * kind.size, total + c * kind.partial, false);
  };
  parallel(blocks * columns_ < kGrain ? 1 : threads_, (columns_ + kPanel - 1) / kPanel, finish);
}

void FusionFrame::finish_all(const Run& run, size_t i) const {
  const FusionPlan::Fold& fold = plan_.all[i];
  const Reduction& kind = *fold.reduction;
  const char* const results = run.workspace + all_results_[i];
  const int64_t n = rows_ * columns_, blocks = (n + kind.block_length - 1) / kind.block_length, pieces = pieces_of_chunk(n);
  const int64_t chunk = pieces ? pieces * (kPiece / kind.block_length) : blocks;
  alignas(16) char total[kMaxPartial], partial[kMaxPartial];
  for (int64_t first = 0; first < blocks; first += chunk) {
    char* const to = first ? partial : total;
    kind.init(to, 1);
    for (int64_t b = first; b < std::min(blocks, first + chunk); ++b) kind.take(to, results + b * kind.size, 1);
    if (first) kind.merge(total, partial, 1);
  }
  kind.store(data<char>(*run.op.views[fold.output]), total, false);
}

// --- Parts.

struct FrameParts::State {
  State(const FusionFrame& of, const plugrad_op& op, int64_t columns)
      : frame(of), run(of.plan_, op), rows_of_row(of.columns_ / columns), row_columns(columns),
        is_taken(static_cast<size_t>(of.slots_)) {}

  size_t take_slot() {
    for (size_t i = 0;; i = (i + 1) % is_taken.size())
      if (!is_taken[i].exchange(true, std::memory_order_acquire)) return i;
  }

  const FusionFrame& frame;
  FusionFrame::Run run;
  const int64_t rows_of_row, row_columns;   // a row of the space has several rows of the other kernel
  std::vector<std::atomic<bool>> is_taken;  // by slot
};

FrameParts::FrameParts(const FusionFrame& frame, const plugrad_op& op, int64_t columns)
    : state_(std::make_unique<State>(frame, op, columns)) {
  frame.prepare(state_->run);
}
FrameParts::~FrameParts() = default;

Ahead FrameParts::soon(int64_t row, int64_t rows, int64_t column, int64_t columns) const {
  const FusionFrame& frame = state_->frame;
  if (!frame.far_input_ || state_->rows_of_row > 1) return {};
  constexpr int64_t kLine = 64;
  const FusionFrame::Layout& it = frame.layouts_[*frame.far_input_];
  const char* const first = state_->run.base[*frame.far_input_] + row * it.row_step + column * it.column_step;
  const int64_t lines = (columns * it.column_step + kLine - 1) / kLine;
  return {.run = first, .step = it.row_step, .lines = lines, .left = rows * lines};
}

void FrameParts::run(int64_t row, int64_t rows, int64_t column, int64_t columns) {
  State& it = *state_;
  const FusionFrame& frame = it.frame;
  const size_t number = it.take_slot();
  FusionFrame::Slot slot{.memory = it.run.workspace + static_cast<int64_t>(number) * frame.slot_bytes_};
  frame.start(it.run, slot);
  for (int64_t r = row; r < row + rows; ++r) {
    const int64_t first = r % it.rows_of_row * it.row_columns + column, end = first + columns;
    for (int64_t c = first; c < end; c += frame.tile_columns_)
      frame.run_tile(it.run, slot, {r / it.rows_of_row, 1, c, std::min(frame.tile_columns_, end - c)});
  }
  it.is_taken[number].store(false, std::memory_order_release);
}

}  // namespace plugrad::cpu
