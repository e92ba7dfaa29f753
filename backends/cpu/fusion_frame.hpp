// How a fusion runs on operands of given shapes: its tiles and tasks, and its use of the workspace.
#pragma once
#include <backends/cpu/fusion_plan.hpp>
#include <backends/cpu/product.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace plugrad::cpu {

class FusionFrame {
 public:
  // follows: another kernel makes the space part by part, see FrameParts.
  FusionFrame(const FusionPlan& plan, int rank, int threads, const plugrad_op& op, bool follows);

  // Whether the fusion runs on these shapes.
  bool serves() const { return serves_; }
  // Whether it was made for operands of these shapes and strides.
  bool is_for(const plugrad_op& op) const;
  uint64_t workspace() const { return workspace_; }
  // From now on steps use code for operands beyond the near caches, if they do not follow another kernel: worth it for a
  // kept frame.
  void use_far_code();
  static constexpr int64_t kLeastFollowed = 64;  // elements of a row behind another kernel
  // Whether FrameParts may run it: rows of the space are long enough.
  bool follows() const { return follows_; }
  // Throws nothing.
  void run(const plugrad_op& op) const;

 private:
  friend class FrameParts;
  // Where the elements of a value are, in bytes.
  struct Layout {
    int64_t row_step = 0, column_step = 0;  // in an operand, between places of the space
    int64_t tile_step = 0;                  // between rows of a tile
    bool is_dense = false;                  // the rows of a tile follow each other
    bool is_even = true;                    // else the row steps follow from the strides along the outer axes
    std::array<int64_t, PLUGRAD_MAX_RANK> strides{};
  };
  // An input, copied to a slot's memory.
  struct Copied {
    uint16_t value;
    int64_t offset;
    int64_t step;  // between the elements of neighbouring rows
  };
  // A tile: rows and columns of the space.
  struct Part {
    int64_t row, rows, column, columns;
  };
  struct Slot;
  struct Run;

  void choose_shapes(int rank, const plugrad_op& op);
  void choose_tile();
  bool folds_serve() const;
  void choose_tasks();
  void lay_out(const plugrad_op& op);
  void lay_out_input(size_t value, const plugrad_view& view);
  void lay_out_buffers();
  void find_whole_steps();
  bool is_far(uint16_t value) const;
  bool is_streamed(uint16_t value) const;

  void prepare(Run& run) const;
  void run_task(const Run& run, Slot& slot, int64_t task) const;
  void start(const Run& run, Slot& slot) const;
  void run_tile(const Run& run, Slot& slot, const Part& tile) const;
  void point(const Run& run, Slot& slot, const Part& tile) const;
  void run_elementwise(size_t step, const Run& run, const Slot& slot, const Part& tile) const;
  void copy(const FusionStep& step, const Slot& slot, const Part& tile) const;
  void update(size_t step, const Run& run, const Slot& slot, const Part& tile) const;
  void fold_rows(const FusionStep& step, const Slot& slot, const Part& tile) const;
  void fold_columns(const FusionStep& step, const Run& run, const Slot& slot, const Part& tile) const;
  void fold_all(const FusionStep& step, const Run& run, const Slot& slot, const Part& tile) const;
  void finish_columns(const Run& run, size_t fold) const;
  void finish_all(const Run& run, size_t fold) const;

  const FusionPlan& plan_;
  const int threads_;
  bool serves_ = true, follows_;
  std::vector<plugrad_view> shown_;  // the operands' views, for is_for
  int outer_rank_ = 0;
  std::array<int64_t, PLUGRAD_MAX_RANK> outer_{};  // the extents of the outer axes
  int64_t rows_ = 1, columns_ = 1;                 // of the space
  int64_t tile_rows_ = 1, tile_columns_ = 1;
  int64_t task_ = 1, tasks_ = 1;                       // rows of a task, or columns if the space has one row
  int64_t bytes_ = 0;                                  // of operands with a different place for each tile
  int64_t block_ = 0;                                  // the longest block of fold_all
  std::vector<Layout> layouts_;                        // by value
  std::vector<bool> whole_;                            // by step: one call does for all rows of a tile
  std::vector<FusedCode> far_;                         // by step: code for operands beyond the near caches, if there is any
  std::vector<uint16_t> streamed_;                     // values whose stores bypass the caches, if they are aligned
  std::vector<int64_t> buffer_offsets_;                // in a slot's memory
  std::optional<uint16_t> far_input_;                  // an input beyond the caches, if the frame follows another kernel
  std::vector<uint16_t> moving_;                       // values in operands, at a different place for each tile
  std::vector<Copied> repeated_, gathered_;            // columns, for each row of a tile; elements of rows, side by side
  std::vector<int64_t> staging_;                       // by fold_all, in a slot's memory: elements of an unfinished block
  std::vector<int64_t> column_results_, all_results_;  // in the workspace: an element for each block
  int64_t slot_bytes_ = 0;
  int slots_ = 1;
  uint64_t workspace_ = 0;
};

// Runs the steps of a frame that follows another kernel, for the parts of the space which the kernel has made.
class FrameParts {
 public:
  // columns: of the other kernel's rows.
  FrameParts(const FusionFrame& frame, const plugrad_op& op, int64_t columns);
  ~FrameParts();
  // Called by as many threads at a time as the frame has, for separate parts. Throws nothing.
  void run(int64_t row, int64_t rows, int64_t column, int64_t columns);
  // Returns memory that run will read for these elements.
  Ahead soon(int64_t row, int64_t rows, int64_t column, int64_t columns) const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace plugrad::cpu
