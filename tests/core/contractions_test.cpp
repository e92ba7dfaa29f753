// Products and distances: refused operands, dtypes of results, and accuracy in halves. tests/torch compares results and
// gradients with PyTorch's.
#include <tests/core/expect.hpp>

#include <cmath>

namespace plugrad::test {
namespace {

TEST(Contractions, EinsumRefusesWhatDoesNotFit) {
  const Tensor x = counting({2, 3}), y = counting({4, 3});
  const struct {
    const char* equation;
    std::vector<Tensor> operands;
    std::vector<std::string> parts;
  } rows[] = {
      {"ij,jk->ik", {x}, {"2 operands", "1 were given"}},
      {"ij", {}, {"1 operands", "0 were given"}},
      {"i->i", {x}, {"1 letters", "(2, 3)"}},
      {"...ijk", {x}, {"3 letters", "(2, 3)"}},
      {"ij,jk->ik", {x, y}, {"'j' has extents 3 and 4"}},
      {"...i,...i", {x, y}, {"an axis of '...'", "2 and 4"}},
      {"ii->i", {x}, {"'i' appears twice", "(2, 3)"}},
      {"ij->ik", {x}, {"'k' is in no operand"}},
      {"ij->ii", {x}, {"'i' appears twice"}},
      {"i1->i", {x}, {"'i1'"}},
      {"......->...", {x}, {"at most one '...'"}},
      {"i..", {x}, {"'i..'"}},
  };
  for (const auto& row : rows) {
    std::vector<std::string> parts = row.parts;
    parts.push_back("[einsum]");
    EXPECT_TRUE(throws(Code::invalid, parts, [&] { einsum(row.equation, row.operands); })) << row.equation;
  }
  EXPECT_TRUE(throws(Code::invalid, {"[einsum]", "undefined"}, [] { einsum("i", {Tensor()}); }));
}

TEST(Contractions, RefuseOtherShapes) {
  const Tensor v = counting({3}), x = counting({2, 3}), y = counting({4, 3}), z = counting({2, 3, 4});
  EXPECT_TRUE(throws(Code::invalid, {"[dot]", "(2, 3)", "rank 1"}, [&] { dot(x, v); }));
  EXPECT_TRUE(throws(Code::invalid, {"[vdot]", "(3,)", "(2,)"}, [&] { vdot(v, counting({2})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[mm]", "(2, 3) and (4, 3)"}, [&] { mm(x, y); }));
  EXPECT_TRUE(throws(Code::invalid, {"[bmm]", "(2, 3, 4) and (1, 4, 2)"}, [&] { bmm(z, counting({1, 4, 2})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[mv]", "rank 1"}, [&] { mv(x, y); }));
  EXPECT_TRUE(throws(Code::invalid, {"[outer]", "rank 1"}, [&] { outer(x, v); }));
  EXPECT_TRUE(throws(Code::invalid, {"[inner]", "last extents"}, [&] { inner(v, counting({2})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[tensordot]", "3 axes"}, [&] { tensordot(x, z, 3); }));
  EXPECT_TRUE(throws(Code::invalid, {"[tensordot]", "(2, 3) and (4, 3)"}, [&] { tensordot(x, y, {0}, {0}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[addmm]", "(2, 3)", "(4, 2)"}, [&] { addmm(x, y, counting({3, 2})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[cross]", "(2, 3) and (3,)"}, [&] { cross(x, v); }));
  EXPECT_TRUE(throws(Code::invalid, {"[cross]", "axis 0"}, [&] { cross(x, x, 0); }));
  EXPECT_TRUE(throws(Code::invalid, {"[trace]", "rank 2"}, [&] { trace(v); }));
  EXPECT_TRUE(throws(Code::invalid, {"[matrix_power]", "square"}, [&] { matrix_power(x, 2); }));
  EXPECT_TRUE(throws(Code::unsupported, {"[matrix_power]", "-1", "inverse"}, [] { matrix_power(counting({2, 2}), -1); }));
  EXPECT_TRUE(throws(Code::invalid, {"[multi_dot]", "two or more"}, [&] { multi_dot({x}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[multi_dot]", "(4, 3)", "3 columns"}, [&] { multi_dot({x, y}); }));
  EXPECT_TRUE(throws(Code::invalid, {"[bilinear]", "(o, i, j)"}, [&] { bilinear(x, x, z); }));
  EXPECT_TRUE(throws(Code::invalid, {"[bilinear]", "bias"}, [&] { bilinear(v, v, counting({2, 3, 3}), v); }));
  EXPECT_TRUE(throws(Code::invalid, {"[cdist]", "(2, 3)", "(3,)"}, [&] { cdist(x, v); }));
  EXPECT_TRUE(throws(Code::invalid, {"[cdist]", "p is"}, [&] { cdist(x, x, -1); }));
  EXPECT_TRUE(throws(Code::invalid, {"[dist]", "i64"}, [] { dist(i64({1}), i64({2})); }));
  EXPECT_TRUE(throws(Code::invalid, {"[renorm]", "two axes"}, [&] { renorm(v, 2, 0, 1); }));
  EXPECT_TRUE(throws(Code::invalid, {"[renorm]", "maxnorm"}, [&] { renorm(x, 2, 0, -1); }));
  EXPECT_TRUE(throws(Code::invalid, {"[normalize]", "axis 1"}, [&] { normalize(v); }));
}

TEST(Contractions, PromoteDtypes) {
  const Tensor whole = counting({2, 2}, DType::i32), half = counting({2, 2}, DType::bf16);
  EXPECT_EQ(einsum("ij,jk->ik", {whole, half}).dtype(), DType::bf16);
  EXPECT_EQ(mm(whole, whole).dtype(), DType::i32);
  EXPECT_EQ(trace(whole).dtype(), DType::i64);
  EXPECT_EQ(addcdiv(whole, whole, whole + 1).dtype(), DType::f32);
  EXPECT_EQ(addcmul(half, counting({2, 2}, DType::f64), half).dtype(), DType::f64);
  EXPECT_EQ(cdist(half, counting({3, 2}, DType::f32)).dtype(), DType::f32);
  EXPECT_TRUE(close(kron(whole, of(DType::u8, {1, 2}, {2})), {2, 4}, {0, 0, 1, 2, 2, 4, 3, 6}));
}

// 1 + 2^-9 is not a bf16: each step in bf16 would lose the small term.
TEST(Contractions, HalvesAreRoundedOnce) {
  const Tensor x = of(DType::bf16, {1, 1, 1, 1}, {4}), small = full({4}, 0x1p-9, DType::bf16);
  EXPECT_TRUE(close(addcmul(x, small, small, 0x1p16), {4}, {1.25, 1.25, 1.25, 1.25}));
  EXPECT_TRUE(close(einsum("bi,bi->b", {full({1, 1024}, 0x1p-9, DType::bf16), ones({1, 1024}, DType::bf16)}), {1}, {2}));
  EXPECT_TRUE(close(dist(full({1024}, 1, DType::bf16), zeros({1024}, DType::bf16)), {}, {32}));
  EXPECT_TRUE(close(normalize(full({1024}, 1, DType::bf16), 2, 0), {1024}, std::vector<double>(1024, 0x1p-5)));
}

TEST(Contractions, TheOrderOfAChainCostsTheLeast) {
  // (x y) z has an intermediate result of 8 elements, x (y z) of 2 elements. All sums are exact, so the results are equal.
  const Tensor x = counting({2, 2}), y = counting({2, 4}), z = counting({4, 1});
  EXPECT_TRUE(close(multi_dot({x, y, z}), {2, 1}, elements(matmul(matmul(x, y), z))));
  EXPECT_EQ(multi_dot({counting({0, 2}), y, z}).shape(), (Shape{0, 1}));
}

TEST(Contractions, RanksUpToEight) {
  const Tensor x = ones({2, 1, 2, 1, 2, 1, 1, 2}, DType::f64), y = ones({2, 2, 2, 2}, DType::f64);
  EXPECT_TRUE(close(kron(x, y), {2, 1, 2, 1, 4, 2, 2, 4}, std::vector<double>(256, 1)));
  EXPECT_TRUE(close(einsum("abcdefgh->h", {x}), {2}, {8, 8}));
  EXPECT_TRUE(throws(Code::invalid, {"rank"}, [&] { tensordot(x, y, 1); }));
}

}  // namespace
}  // namespace plugrad::test
