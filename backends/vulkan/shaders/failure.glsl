// Two words of the stream: the smallest ordinal of an op with an index out of range, and that op. Ops of a stream run one after
// the other, so the first one that reports has the smallest ordinal.
REFERENCE(Word, uint, 4)
void report_failure(uint64_t words, uint ordinal) {
  if (ordinal < atomicMin(Word(words).v, ordinal)) Word(words + 4).v = OP;
}
