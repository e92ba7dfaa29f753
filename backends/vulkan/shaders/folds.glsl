// Reduces the elements of a line to one element. The including shader defines A, the type of the result, and the functions
// declared here. The order of the additions determines the bits of a sum: fusions and single ops use the same order.

// A value. place: the index of the element in its line, for ARGMAX, MAX and MIN.
struct Item {
  A value;
  uint place;
};
uint folding();                        // the op: SUM, MAX, MIN or ARGMAX
Item item(uint64_t line, uint i);      // element i of a line

shared A values[GROUP];
shared uint places[GROUP];

bool is_sum() { return folding() == OP_SUM; }

// Returns whether y replaces x. The first of equal elements is kept. NaN replaces numbers, and the first NaN is kept.
bool is_better(Item y, Item x) {
  if (is_nan(x.value)) return is_nan(y.value) && y.place < x.place;
  if (is_nan(y.value)) return true;
  bool is_least = folding() == OP_MIN;
  bool wins = is_least ? less(y.value, x.value) : less(x.value, y.value);
  bool loses = is_least ? less(x.value, y.value) : less(y.value, x.value);
  return wins || (!loses && y.place < x.place);
}

Item joined(Item x, Item y) {
  if (!is_sum()) {
    if (is_better(y, x)) return y;
    return x;
  }
  precise A sum = x.value + y.value;
  return Item(flushed(sum), x.place);
}

// Reduces the elements begin .. end - 1 of a line. One invocation calls it, or all invocations of a workgroup call it and
// get the result. In a workgroup each invocation takes the elements begin + me, begin + me + GROUP, ... in runs of 64, so
// that the error of a sum grows slowly. item() is called at one place only, because compilers inline it. by_group is a
// constant of the pipeline, because in lavapipe even a barrier that no invocation reaches corrupts the results of the
// invocations.
Item folded(uint64_t line, uint begin, uint end, const bool by_group) {
  uint me = by_group ? gl_LocalInvocationIndex : 0, step = by_group ? GROUP : 1, count = 0;
  Item total = Item(A(0), 0), run = total;
  for (uint j = begin + me; j < end; j += step, ++count) {
    Item x = item(line, j);
    uint in_run = (count - 1) % 64;
    if (count == 0) total = x;
    else if (!by_group) total = joined(total, x);
    else if (in_run == 0) run = x;
    else run = joined(run, x);
    if (by_group && count != 0 && (in_run == 63 || j + step >= end)) total = joined(total, run);
  }
  if (by_group) {
    values[me] = total.value;
    places[me] = total.place;
    barrier();
    uint sharers = min(GROUP, end - begin);
    for (uint reach = GROUP / 2; reach > 0; reach >>= 1) {
      if (me < reach && me + reach < sharers) {
        Item x = joined(Item(values[me], places[me]), Item(values[me + reach], places[me + reach]));
        values[me] = x.value;
        places[me] = x.place;
      }
      barrier();
    }
    total = Item(values[0], places[0]);
    barrier();
  }
  return total;
}
