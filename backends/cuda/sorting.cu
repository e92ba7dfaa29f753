// Sorts lines too long for shared memory: blocks sort parts of kMost elements there, and then merge pairs of sorted parts in
// memory until a single part is left. Each block writes kMost elements of a merge: by bisection it finds the places of these
// elements in both parts (Green, McColl, Bader, "GPU Merge Path", 2012), and each of its threads does the same for kEach
// elements.
#include <backends/cuda/ordering.hpp>
#include <backends/cuda/rows.hpp>

namespace plugrad::cuda {
namespace {

static_assert(kMost == kBlock * kEach);

uint64_t parts_of(const Lines& lines) { return static_cast<uint64_t>((lines.length + kMost - 1) / kMost); }
uint64_t items_of(const Lines& lines) { return lines.walk.count * static_cast<uint64_t>(lines.length); }

// One part of a line.
struct Part {
  uint64_t line;
  int64_t begin, end;

  __device__ Part(const Lines& lines, uint64_t parts, uint64_t task)
      : line(task / parts), begin(static_cast<int64_t>(task - line * parts) * kMost),
        end(begin + kMost < lines.length ? begin + kMost : lines.length) {}
};

__global__ void __launch_bounds__(kBlock) sort_parts_kernel(const __grid_constant__ Lines lines, uint64_t parts, Item* to) {
  __shared__ Item items[kMost];
  for (uint64_t task = blockIdx.x; task < lines.walk.count * parts; task += gridDim.x) {
    const Part part(lines, parts, task);
    const Keys keys{lines, lines.walk.reach(part.line).at[1]};
    for (int64_t i = threadIdx.x; i < kMost; i += kBlock)
      items[i] = part.begin + i < part.end ? Item{keys.at(part.begin + i), part.begin + i} : last_item();
    __syncthreads();
    sort(items, kMost);
    Item* const line = to + static_cast<int64_t>(part.line) * lines.length;
    for (int64_t i = threadIdx.x; i < part.end - part.begin; i += kBlock) line[part.begin + i] = items[i];
    __syncthreads();
  }
}

// Two sorted sequences.
struct Pair {
  const Item *first, *second;
  int64_t first_count, second_count;

  // Returns how many of the first `count` items of the merged sequence come from the first sequence.
  __device__ __forceinline__ int64_t of_first(int64_t count) const {
    int64_t low = count > second_count ? count - second_count : 0, high = count < first_count ? count : first_count;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (second[count - middle - 1].precedes(first[middle])) high = middle;
      else low = middle + 1;
    }
    return low;
  }
};

// Returns the two neighbouring sequences of `sorted` items from which a part of the result comes. The second sequence may be
// shorter.
__device__ __forceinline__ Pair pair_at(const Item* line, int64_t length, int64_t begin, int64_t sorted) {
  const int64_t middle = begin + sorted < length ? begin + sorted : length;
  const int64_t end = begin + 2 * sorted < length ? begin + 2 * sorted : length;
  return {line + begin, line + middle, middle - begin, end - middle};
}

// Merges this thread's kEach items of a pair in shared memory.
__device__ __forceinline__ void merge_some(const Pair& pair, Item (&merged)[kEach]) {
  const int64_t all = pair.first_count + pair.second_count, mine = static_cast<int64_t>(threadIdx.x) * kEach;
  const int64_t before = mine < all ? mine : all;
  int64_t i = pair.of_first(before), j = before - i;
#pragma unroll
  for (int u = 0; u < kEach; ++u) {
    const Item a = i < pair.first_count ? pair.first[i] : last_item();
    const Item b = j < pair.second_count ? pair.second[j] : last_item();
    const bool takes_second = b.precedes(a);
    merged[u] = takes_second ? b : a;
    ++(takes_second ? j : i);
  }
}

// The results of a merge: items, or, for the last merge, the indices to keep.
struct Merged {
  Item* items;
  int64_t* indices;
};

__global__ void __launch_bounds__(kBlock)
    merge_kernel(const __grid_constant__ Lines lines, uint64_t parts, int64_t sorted, const Item* from, Merged to) {
  __shared__ Item items[kMost];
  __shared__ int64_t bounds[2];
  for (uint64_t task = blockIdx.x; task < lines.walk.count * parts; task += gridDim.x) {
    const Part part(lines, parts, task);
    const int64_t line = static_cast<int64_t>(part.line) * lines.length, begin = part.begin / (2 * sorted) * (2 * sorted);
    const Pair whole = pair_at(from + line, lines.length, begin, sorted);
    if (threadIdx.x < 2) bounds[threadIdx.x] = whole.of_first((threadIdx.x ? part.end : part.begin) - begin);
    __syncthreads();
    const int64_t count = part.end - part.begin, of_first = bounds[1] - bounds[0];
    const int64_t skipped = part.begin - begin - bounds[0];  // preceding items of the second sequence
    for (int64_t i = threadIdx.x; i < count; i += kBlock)
      items[i] = i < of_first ? whole.first[bounds[0] + i] : whole.second[skipped + i - of_first];
    __syncthreads();
    Item merged[kEach];
    merge_some({items, items + of_first, of_first, count - of_first}, merged);
    __syncthreads();
#pragma unroll
    for (int u = 0; u < kEach; ++u) items[threadIdx.x * kEach + u] = merged[u];
    __syncthreads();
    const int64_t first = to.indices ? lines.walk.reach(part.line).at[0] : 0;
    for (int64_t i = threadIdx.x; i < count; i += kBlock) {
      const int64_t place = part.begin + i;
      if (!to.indices) to.items[line + place] = items[i];
      else if (place < lines.kept) to.indices[first + place * lines.out_stride] = items[i].index;
    }
    __syncthreads();
  }
}

void argsort(const Call& call, const Submission& submission) {
  const Lines lines(call);
  lines.length > kMost ? sort_lines(call, submission, lines) : sort_short_lines(call, submission, lines);
}

uint64_t workspace(const Call& call) { return sorting_bytes(Lines(call)); }

template <class... T> constexpr std::array<KernelRow, sizeof...(T)> rows(Types<T...>) {
  return {with_workspace<workspace>(kernel<submit<argsort>>(PLUGRAD_OP_ARGSORT, element_dtype<T>, kDense))...};
}
constexpr auto kRows = rows(kAny);

}  // namespace

// Returns the bytes of one or two sets of items. Merges go from one set to the other.
uint64_t sorting_bytes(const Lines& lines) {
  const uint64_t parts = parts_of(lines);
  return parts > 1 ? (parts > 2 ? 2 : 1) * items_of(lines) * sizeof(Item) : 0;
}

void sort_lines(const Call& call, const Submission& submission, const Lines& lines) {
  static Occupancy of_parts, of_merge;
  const uint64_t parts = parts_of(lines), tasks = lines.walk.count * parts;
  Item* const items = reinterpret_cast<Item*>(call.workspace());
  Item *from = items, *to = items + items_of(lines);
  PLUGRAD_LAUNCH(sort_parts_kernel, submission.blocks(sort_parts_kernel, tasks, of_parts), kBlock, 0, submission.handle(),
                 lines, parts, from);
  submission.launched();
  for (int64_t sorted = kMost; sorted < lines.length; sorted *= 2) {
    const bool is_last = 2 * sorted >= lines.length;
    const Merged merged{is_last ? nullptr : to, is_last ? data<int64_t>(call.out()) : nullptr};
    PLUGRAD_LAUNCH(merge_kernel, submission.blocks(merge_kernel, tasks, of_merge), kBlock, 0, submission.handle(), lines,
                   parts, sorted, from, merged);
    submission.launched();
    std::swap(from, to);
  }
}

Rows argsort_rows() { return kRows; }

}  // namespace plugrad::cuda
