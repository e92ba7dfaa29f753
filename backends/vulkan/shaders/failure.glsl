// Two words of the stream: the smallest ordinal of an op with an index out of range, and the opcode of this op. The ops of a
// stream run in order, so the first op that reports a failure has the smallest ordinal.
REFERENCE(Word, uint, 4)
void report_failure(uint64_t words, uint ordinal) {
  if (ordinal < atomicMin(Word(words).v, ordinal)) Word(words + 4).v = OP;
}
