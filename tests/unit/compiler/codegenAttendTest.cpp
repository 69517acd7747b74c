// kernel.attend, attend_cache, attend_source and cache_append against attention in double precision, and against each
// other: what a query may not see must not change a bit.
#include "tests/unit/compiler/codegenHarness.h"
#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <limits>

using namespace codegen_test;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float notANumber = std::numeric_limits<float>::quiet_NaN();

std::string nameOf(const testing::TestParamInfo<std::string> &info) {
  return info.param == "x86-64" ? "baseline" : info.param;
}

std::string replaced(std::string text, const std::vector<std::pair<std::string, std::string>> &words) {
  for (auto &[from, to] : words)
    for (size_t at; (at = text.find(from)) != std::string::npos;)
      text.replace(at, from.size(), to);
  return text;
}

/// Softmax of the scores of one query over the visible keys; empty where none is.
std::vector<double> softmax(int64_t keys, std::function<double(int64_t)> score, std::function<bool(int64_t)> visible) {
  std::vector<double> weights(keys, 0);
  double maximum = -infinity, sum = 0;
  for (int64_t j = 0; j < keys; ++j)
    if (visible(j))
      maximum = std::max(maximum, score(j));
  if (maximum == -infinity)
    return {};
  for (int64_t j = 0; j < keys; ++j)
    sum += weights[j] = visible(j) ? std::exp(score(j) - maximum) : 0;
  for (double &weight : weights)
    weight /= sum;
  return weights;
}

struct Sizes {
  int64_t B, T, S, H, Hk, D, Dv;
};

struct Options {
  bool keyMask = false, bias = false, mask = false, probabilities = false;
  std::optional<int64_t> causal, relativeOrigin;
  double softcap = 0;
  int emptyRow = 1;
};

/// Columns of a relative bias: sixteen equal ones at each end.
constexpr int64_t relativeColumns = 60;

Array<float> relativeTable(int64_t heads) {
  Array<float> table = randomFloats(heads * relativeColumns, 6, 2);
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t c = 0; c < 16; ++c) {
      table[h * relativeColumns + c] = table[h * relativeColumns];
      table[(h + 1) * relativeColumns - 1 - c] = table[(h + 1) * relativeColumns - 16];
    }
  return table;
}

double relativeBias(const Array<float> &table, int64_t head, int64_t column) {
  return table[head * relativeColumns + std::clamp<int64_t>(column, 0, relativeColumns - 1)];
}

struct Problem {
  Sizes n;
  Options options;
  Array<float> q, k, v, bias, relative;
  Array<uint8_t> mask;
  Array<int32_t> keyMask;

  Problem(Sizes n, Options options)
      : n(n), options(options), q(randomFloats(n.B * n.T * n.H * n.D, 1)), k(randomFloats(n.B * n.S * n.Hk * n.D, 2)),
        v(randomFloats(n.B * n.S * n.Hk * n.Dv, 3)), bias(randomFloats(n.H * n.T * n.S, 4, 2)),
        relative(relativeTable(n.H)), mask(n.B * n.T * n.S, 1), keyMask(n.B * n.S, 1) {
    std::mt19937 generator(5);
    for (uint8_t &shown : mask)
      shown = generator() % 4 != 0;
    for (int64_t b = 0; b < n.B; ++b)
      for (int64_t j = 0; j < n.S; ++j)
        keyMask[b * n.S + j] = j < n.S - 7 * b && (j % 5 != 3 || b != 1);
    for (int64_t i = 0; i < n.T; ++i)
      bias[i * n.S + n.S / 2] = -1e9f; // excluded for head 0
  }

  std::string text() const {
    std::string ins = "%q, %k, %v", args = "%q: F, %k: F, %v: F", types = "F, F, F",
                shapes =
                    "#transept.dims<[B, T, _H, _D]>, #transept.dims<[B, S, _Hk, _D]>, #transept.dims<[B, S, _Hk, _Dv]>",
                attrs;
    auto operand = [&](std::string name, std::string type, std::string shape, std::string attribute) {
      ins += ", %" + name;
      args += ", %" + name + ": " + type;
      types += ", " + type;
      shapes += ", #transept.dims<" + shape + ">";
      attrs += ", " + attribute;
    };
    if (options.keyMask)
      operand("km", "!kernel.buffer<i32>", "[B, S]", "hasKeyMask");
    if (options.bias)
      operand("bias", "F", "[1, _H, T, S]", "hasBias");
    if (options.mask)
      operand("mask", "!kernel.buffer<i1>", "[B, 1, T, S]", "hasMask");
    if (options.relativeOrigin)
      operand("relative", "F", "[_H, " + std::to_string(relativeColumns) + "]",
              "relativeOrigin = #transept.dim<" + std::to_string(*options.relativeOrigin) + ">");
    if (options.causal)
      attrs += ", causalOffset = #transept.dim<" + std::to_string(*options.causal) + ">";
    std::string outs = "%y";
    args += ", %y: F";
    types += ", F";
    shapes += ", #transept.dims<[B, T, _H, _Dv]>";
    if (options.probabilities) {
      outs += ", %p";
      args += ", %p: F";
      types += ", F";
      shapes += ", #transept.dims<[B, _H, T, S]>";
    }
    std::string text = "kernel.func @k symbols [\"B\", \"T\", \"S\"] from \"\" {\n^bb0(" + args +
                       "):\n  kernel.attend shapes [" + shapes + "] ins(" + ins + ") outs(" + outs +
                       ") {scale = 0.3 : f32, softcap = _cap : f32, emptyRow = _empty : i64" + attrs + "} : (" + types +
                       ") -> ()\n}";
    return replaced(text, {{"_Hk", std::to_string(n.Hk)},
                           {"_H", std::to_string(n.H)},
                           {"_Dv", std::to_string(n.Dv)},
                           {"_D", std::to_string(n.D)},
                           {"_cap", std::to_string(options.softcap)},
                           {"_empty", std::to_string(options.emptyRow)},
                           {"F", "!kernel.buffer<!32>"},
                           {"!32", "f32"}});
  }

  bool visible(int64_t b, int64_t h, int64_t i, int64_t j) const {
    return (!options.causal || j <= i + *options.causal) && (!options.keyMask || keyMask[b * n.S + j]) &&
           (!options.mask || mask[(b * n.T + i) * n.S + j]) && (!options.bias || bias[(h * n.T + i) * n.S + j] > -1e4);
  }

  double score(int64_t b, int64_t h, int64_t i, int64_t j) const {
    double sum = 0;
    for (int64_t d = 0; d < n.D; ++d)
      sum += double(q[((b * n.T + i) * n.H + h) * n.D + d]) * k[((b * n.S + j) * n.Hk + h / (n.H / n.Hk)) * n.D + d];
    sum *= 0.3f;
    sum = options.softcap ? options.softcap * std::tanh(sum / options.softcap) : sum;
    if (options.relativeOrigin)
      sum += relativeBias(relative, h, j - i - *options.relativeOrigin);
    return sum + (options.bias ? bias[(h * n.T + i) * n.S + j] : 0);
  }

  struct Result {
    Array<float> y, p;
  };
  Result run(Kernels &kernels, int parts) const {
    Result result{Array<float>(n.B * n.T * n.H * n.Dv), Array<float>(n.B * n.H * n.T * n.S)};
    std::vector<void *> buffers{q.data(), k.data(), v.data()};
    if (options.keyMask)
      buffers.push_back(keyMask.data());
    if (options.bias)
      buffers.push_back(bias.data());
    if (options.mask)
      buffers.push_back(mask.data());
    if (options.relativeOrigin)
      buffers.push_back(relative.data());
    buffers.push_back(result.y.data());
    if (options.probabilities)
      buffers.push_back(result.p.data());
    kernels.run(0, buffers, {n.B, n.T, n.S}, parts);
    return result;
  }

  void check(const Result &result) const {
    float empty = options.emptyRow == 2 ? notANumber : 0;
    for (int64_t b = 0; b < n.B; ++b)
      for (int64_t h = 0; h < n.H; ++h)
        for (int64_t i = 0; i < n.T; ++i) {
          auto weights = softmax(
              n.S, [&](int64_t j) { return score(b, h, i, j); }, [&](int64_t j) { return visible(b, h, i, j); });
          bool none = weights.empty();
          if (none)
            weights.assign(n.S, options.emptyRow == 0 ? 1.0 / double(n.S) : empty);
          for (int64_t j = 0; options.probabilities && j < n.S; ++j)
            near(result.p[((b * n.H + h) * n.T + i) * n.S + j], weights[j]);
          for (int64_t d = 0; d < n.Dv; ++d) {
            double sum = 0;
            for (int64_t j = 0; j < n.S; ++j)
              sum += weights[j] * v[((b * n.S + j) * n.Hk + h / (n.H / n.Hk)) * n.Dv + d];
            near(result.y[((b * n.T + i) * n.H + h) * n.Dv + d], sum);
          }
        }
  }
  static void near(float value, double expected) {
    if (std::isnan(expected))
      ASSERT_TRUE(std::isnan(value));
    else
      ASSERT_NEAR(value, expected, 2e-6);
  }
};

bool sameBits(const Array<float> &x, const Array<float> &y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * 4) == 0;
}

class Attend : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Levels, Attend, testing::ValuesIn(runnableLevels()), nameOf);

TEST_P(Attend, MatchesDoublePrecision) {
  std::vector<std::pair<Sizes, Options>> cases;
  cases.push_back({{2, 37, 150, 4, 4, 64, 64}, {}});
  cases.push_back({{1, 1, 1, 1, 1, 1, 1}, {}});
  cases.push_back({{2, 5, 33, 4, 2, 20, 9}, {}});
  Options all;
  all.keyMask = all.bias = all.mask = all.probabilities = true;
  all.softcap = 1.5;
  cases.push_back({{2, 7, 70, 2, 1, 16, 80}, all});
  Options causal;
  causal.causal = 0;
  causal.probabilities = true;
  cases.push_back({{1, 140, 140, 1, 1, 8, 24}, causal});
  causal.causal = -3; // the first rows see nothing
  for (int policy : {0, 1, 2}) {
    causal.emptyRow = policy;
    cases.push_back({{2, 9, 9, 2, 2, 8, 17}, causal});
  }
  causal.causal = 5;
  causal.keyMask = true;
  cases.push_back({{3, 9, 14, 2, 2, 8, 8}, causal});
  Options relative;
  for (int64_t origin : {-30, -200, 90}) { // in reach of all keys, before and behind them
    relative.relativeOrigin = origin;
    cases.push_back({{1, 70, 133, 2, 1, 16, 8}, relative});
  }
  relative.relativeOrigin = -40;
  relative.keyMask = relative.probabilities = true;
  relative.causal = 0;
  cases.push_back({{2, 37, 37, 2, 2, 8, 8}, relative});
  // Several items with the same keys: more of them than are computed together, and a short one.
  cases.push_back({{1, 230, 200, 2, 1, 64, 64}, {}});
  Options padded;
  padded.keyMask = true; // one row of the batch shows whole blocks
  cases.push_back({{2, 100, 140, 2, 2, 20, 72}, padded});
  padded.causal = 0; // rows begin in the midst of an item
  cases.push_back({{2, 250, 250, 1, 1, 8, 24}, padded});
  padded.causal = 90;
  cases.push_back({{1, 97, 190, 1, 1, 8, 8}, padded});
  for (auto &[sizes, options] : cases) {
    Problem problem(sizes, options);
    Kernels kernels(problem.text(), GetParam());
    auto result = problem.run(kernels, 1);
    problem.check(result);
    for (int parts : {3, 8})
      EXPECT_TRUE(sameBits(result.y, problem.run(kernels, parts).y));
  }
}

// Blocks that all rows see have code of their own.
TEST_P(Attend, WholeBlocksHaveTheBitsOfOthers) {
  Options masked;
  masked.mask = true;
  Problem whole({1, 53, 192, 2, 2, 24, 40}, {}), general(whole.n, masked);
  std::fill(general.mask.begin(), general.mask.end(), 1);
  Kernels first(whole.text(), GetParam()), second(general.text(), GetParam());
  EXPECT_TRUE(sameBits(whole.run(first, 1).y, general.run(second, 1).y));
}

// A score that is not a number, or infinite, is no row without keys, wherever in a block it stands.
TEST_P(Attend, ScoresThatAreNoNumbersShow) {
  for (bool keyMask : {false, true}) {
    Options options;
    options.keyMask = keyMask;
    for (int64_t j : {0, 5, 63, 64, 100, 129}) {
      Problem problem({1, 20, 130, 1, 1, 16, 16}, options);
      std::fill(problem.keyMask.begin(), problem.keyMask.end(), 1);
      std::fill(problem.q.begin(), problem.q.end(), 1);
      Kernels kernels(problem.text(), GetParam());
      for (float wrong : {notANumber, infinity}) {
        problem.k[j * 16 + 3] = wrong;
        for (float element : problem.run(kernels, 1).y)
          ASSERT_TRUE(std::isnan(element)) << j;
      }
    }
  }
}

// Weights down to where they count as nothing, relative to the largest.
TEST_P(Attend, SmallWeightsAreAsExactAsLargeOnes) {
  const int64_t S = 100;
  Problem problem({1, 1, S, 1, 1, 1, 1}, {});
  Kernels kernels(problem.text(), GetParam());
  problem.q[0] = 1;
  for (int64_t at = 1; at < S; ++at) {
    for (int64_t j = 0; j < S; ++j) {
      problem.k[j] = j == 0 ? 0 : -1000;
      problem.v[j] = 0;
    }
    problem.k[at] = -float(at) * 2.9f; // times the scale, 0.3
    const double weight = std::exp(double(problem.k[at] * 0.3f));
    problem.v[at] = float(1 / weight);
    const double expected = weight * problem.v[at] / (1 + weight);
    EXPECT_NEAR(problem.run(kernels, 1).y[0], expected, 8e-7 * expected) << weight;
  }
}

// Padding: more keys that are hidden, whatever they and their values hold.
TEST_P(Attend, HiddenKeysChangeNoBit) {
  Options options;
  options.keyMask = true;
  Sizes shorter{1, 6, 40, 2, 2, 24, 24}, longer = shorter;
  longer.S = 200;
  Problem a(shorter, options), b(longer, options);
  for (int64_t j = 0; j < longer.S; ++j)
    for (int64_t x = 0; x < 48; ++x) {
      b.k[j * 48 + x] = j < 40 ? a.k[j * 48 + x] : notANumber;
      b.v[j * 48 + x] = j < 40 ? a.v[j * 48 + x] : infinity;
    }
  std::fill(a.keyMask.begin(), a.keyMask.end(), 1);
  for (int64_t j = 0; j < longer.S; ++j)
    b.keyMask[j] = j < 40;
  Kernels kernels(a.text(), GetParam());
  EXPECT_TRUE(sameBits(a.run(kernels, 1).y, b.run(kernels, 1).y));
}

// Later positions: a causal row is the same whatever follows, and however many rows are computed with it.
TEST_P(Attend, LaterPositionsChangeNoBit) {
  Options options;
  options.causal = 0;
  Sizes shorter{1, 10, 10, 1, 1, 16, 16}, longer{1, 100, 100, 1, 1, 16, 16};
  Problem a(shorter, options), b(longer, options);
  for (int64_t x = 0; x < 100 * 16; ++x) {
    b.q[x] = x < 160 ? a.q[x] : 1;
    b.k[x] = x < 160 ? a.k[x] : notANumber;
    b.v[x] = x < 160 ? a.v[x] : notANumber;
  }
  Kernels kernels(a.text(), GetParam());
  auto x = a.run(kernels, 1), y = b.run(kernels, 1);
  EXPECT_EQ(std::memcmp(x.y.data(), y.y.data(), 160 * 4), 0);
}

TEST(AttendLevels, FusedLevelsAgreeInEveryBit) {
  Options options;
  options.keyMask = options.bias = options.probabilities = true;
  options.causal = 0;
  options.softcap = 2;
  Problem problem({2, 37, 150, 4, 2, 40, 72}, options);
  std::optional<Problem::Result> first;
  for (const std::string &level : fusedLevels()) {
    Kernels kernels(problem.text(), level);
    auto result = problem.run(kernels, 1);
    if (first) {
      EXPECT_TRUE(sameBits(first->y, result.y));
      EXPECT_TRUE(sameBits(first->p, result.p));
    } else {
      first.emplace(std::move(result));
    }
  }
}

//===- Rows against a cache
//----------------------------------------------------------------------------------------===//

// Positions of a row are spread over blocks as after beam search; what append writes, attention reads.
TEST_P(Attend, ReadsThePagedCache) {
  const int64_t H = 4, Hk = 2, D = 20, Dv = 12, capacity = 96, rows = 3, blocks = 24;
  const int64_t keyOffset = 32, valueOffset = keyOffset + Hk * 16 * D, E = valueOffset + Hk * 16 * Dv + 16;
  std::string text = replaced(R"(
kernel.func @append symbols ["rows", "capacity", "blocks"] from "" {
^bb0(%k: F, %v: F, %pool: F, %table: I, %position: !kernel.buffer<i64>, %live: I):
  kernel.cache_append shapes [#transept.dims<[rows, 1, 2, 20]>, #transept.dims<[rows, 1, 2, 12]>, #transept.dims<[blocks, _E]>,
      #transept.dims<[rows, capacity]>, #transept.dims<[rows]>] ins(%k, %v, %pool, %table, %position) live(%live)
      {kvHeads = 2 : i64, keySize = 20 : i64, valueSize = 12 : i64, keyOffset = _k : i64, valueOffset = _v : i64}
      : (F, F, F, I, !kernel.buffer<i64>, I) -> ()
}
kernel.func @attend symbols ["rows", "capacity", "blocks"] from "" {
^bb0(%q: F, %pool: F, %table: I, %position: !kernel.buffer<i64>, %y: F, %live: I):
  kernel.attend_cache shapes [#transept.dims<[rows, 1, 4, 20]>, #transept.dims<[blocks, _E]>, #transept.dims<[rows, capacity]>,
      #transept.dims<[rows]>, #transept.dims<[rows, 1, 4, 12]>] ins(%q, %pool, %table, %position) outs(%y) live(%live)
      {scale = 0.5 : f32, heads = 4 : i64, kvHeads = 2 : i64, keySize = 20 : i64, valueSize = 12 : i64, keyOffset = _k : i64, valueOffset = _v : i64}
      : (F, F, I, !kernel.buffer<i64>, F, I) -> ()
}
kernel.func @relative symbols ["rows", "capacity", "blocks"] from "" {
^bb0(%q: F, %pool: F, %table: I, %position: !kernel.buffer<i64>, %bias: F, %y: F, %live: I):
  kernel.attend_cache shapes [#transept.dims<[rows, 1, 4, 20]>, #transept.dims<[blocks, _E]>, #transept.dims<[rows, capacity]>,
      #transept.dims<[rows]>, #transept.dims<[4, 60]>, #transept.dims<[rows, 1, 4, 12]>] ins(%q, %pool, %table, %position, %bias) outs(%y)
      live(%live) {scale = 0.5 : f32, heads = 4 : i64, kvHeads = 2 : i64, keySize = 20 : i64, valueSize = 12 : i64, keyOffset = _k : i64,
      valueOffset = _v : i64, relativeOrigin = -50 : i64} : (F, F, I, !kernel.buffer<i64>, F, F, I) -> ()
}
)",
                              {{"_E", std::to_string(E)},
                               {"_k", std::to_string(keyOffset)},
                               {"_v", std::to_string(valueOffset)},
                               {"F", "!kernel.buffer<!32>"},
                               {"I,", "!kernel.buffer<i32>,"},
                               {"I)", "!kernel.buffer<i32>)"},
                               {"!32", "f32"}});
  Kernels kernels(text, GetParam());
  const int64_t length = 70;
  Array<float> pool(blocks * E, notANumber), keys = randomFloats(length * rows * Hk * D, 1),
                                             values = randomFloats(length * rows * Hk * Dv, 2);
  Array<int32_t> table(rows * capacity, 0), live(1, 2);
  Array<int64_t> position(rows, 0);
  for (int64_t p = 0; p < length; ++p) {
    for (int64_t r = 0; r < rows; ++r) {
      position[r] = p;
      table[r * capacity + p] = int32_t((p / 16 * rows + r) * 7 % blocks);
    }
    kernels.run(0,
                {keys.begin() + p * rows * Hk * D, values.begin() + p * rows * Hk * Dv, pool.data(), table.data(),
                 position.data(), live.data()},
                {rows, capacity, blocks}, 2);
  }
  EXPECT_TRUE(std::isnan(pool[keyOffset - 1]) && std::isnan(pool[valueOffset + Hk * 16 * Dv]));
  Array<float> q = randomFloats(rows * H * D, 3);
  Array<float> bias = relativeTable(H);
  for (auto [p, relative] : std::vector<std::pair<int64_t, bool>>{{0, false},
                                                                  {1, false},
                                                                  {15, false},
                                                                  {16, false},
                                                                  {63, false},
                                                                  {64, false},
                                                                  {69, false},
                                                                  {0, true},
                                                                  {16, true},
                                                                  {69, true}}) {
    Array<float> y(rows * H * Dv, -9.0f), split(rows * H * Dv, -9.0f);
    std::fill(position.begin(), position.end(), p);
    std::vector<void *> buffers{q.data(), pool.data(), table.data(), position.data()};
    if (relative)
      buffers.push_back(bias.data());
    size_t result = buffers.size();
    buffers.insert(buffers.end(), {y.data(), live.data()});
    kernels.run(relative ? 2 : 1, buffers, {rows, capacity, blocks});
    buffers[result] = split.data();
    kernels.run(relative ? 2 : 1, buffers, {rows, capacity, blocks}, 5);
    EXPECT_TRUE(sameBits(y, split));
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t h = 0; h < H; ++h) {
        auto weights = softmax(
            p + 1,
            [&, p = p, relative = relative](int64_t j) {
              double sum = 0;
              for (int64_t d = 0; d < D; ++d)
                sum += double(q[(r * H + h) * D + d]) * keys[((j * rows + r) * Hk + h / 2) * D + d];
              return sum * 0.5 + (relative ? relativeBias(bias, h, j - p + 50) : 0);
            },
            [](int64_t) { return true; });
        for (int64_t d = 0; d < Dv; ++d) {
          double sum = 0;
          for (int64_t j = 0; j <= p; ++j)
            sum += weights[j] * values[((j * rows + r) * Hk + h / 2) * Dv + d];
          if (r < 2)
            ASSERT_NEAR(y[(r * H + h) * Dv + d], sum, 2e-6);
          else
            ASSERT_EQ(y[(r * H + h) * Dv + d], -9);
        }
      }
  }
}

TEST_P(Attend, ReadsTheSourceOfItsRow) {
  const int64_t H = 2, D = 64, batch = 3, rows = 5;
  for (int policy : {0, 1, 2}) {
    std::string text = replaced(R"(
kernel.func @attend symbols ["rows", "batch", "S"] from "" {
^bb0(%q: F, %k: F, %v: F, %source: !kernel.buffer<i32>, %mask: !kernel.buffer<i64>, %y: F):
  kernel.attend_source shapes [#transept.dims<[rows, 1, 2, 64]>, #transept.dims<[batch, S, 2, 64]>, #transept.dims<[batch, S, 2, 64]>,
      #transept.dims<[rows]>, #transept.dims<[batch, S]>, #transept.dims<[rows, 1, 2, 64]>] ins(%q, %k, %v, %source, %mask) outs(%y)
      {scale = 0.125 : f32, emptyRow = _policy : i64, hasKeyMask} : (F, F, F, !kernel.buffer<i32>, !kernel.buffer<i64>, F) -> ()
}
)",
                                {{"_policy", std::to_string(policy)}, {"F", "!kernel.buffer<!32>"}, {"!32", "f32"}});
    Kernels kernels(text, GetParam());
    for (int64_t S : {1, 30, 130}) {
      Array<float> q = randomFloats(rows * H * D, 1), k = randomFloats(batch * S * H * D, 2, 2),
                   v = randomFloats(batch * S * H * D, 3), y(rows * H * D), split(rows * H * D);
      Array<int32_t> source(std::vector<int32_t>{2, 0, 0, 1, 2});
      Array<int64_t> mask(batch * S, 1);
      for (int64_t j = 0; j < S; ++j) {
        mask[S + j] = 0;                     // slot 1 shows nothing
        mask[2 * S + j] = j * 2 < S ? 7 : 0; // slot 2 is padded
      }
      std::vector<void *> buffers{q.data(), k.data(), v.data(), source.data(), mask.data(), y.data()};
      kernels.run(0, buffers, {rows, batch, S});
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t h = 0; h < H; ++h) {
          int64_t slot = source[r];
          auto weights = softmax(
              S,
              [&](int64_t j) {
                double sum = 0;
                for (int64_t d = 0; d < D; ++d)
                  sum += double(q[(r * H + h) * D + d]) * k[((slot * S + j) * H + h) * D + d];
                return sum * 0.125;
              },
              [&](int64_t j) { return mask[slot * S + j] != 0; });
          if (weights.empty())
            weights.assign(S, policy == 0 ? 1.0 / double(S) : policy == 1 ? 0 : notANumber);
          for (int64_t d = 0; d < D; ++d) {
            double sum = 0;
            for (int64_t j = 0; j < S; ++j)
              sum += weights[j] * v[((slot * S + j) * H + h) * D + d];
            Problem::near(y[(r * H + h) * D + d], sum);
          }
        }
      // Hidden keys and values may hold anything.
      for (int64_t j = (S + 1) / 2; j < S; ++j)
        for (int64_t x = 0; x < H * D; ++x)
          k[(2 * S + j) * H * D + x] = v[(2 * S + j) * H * D + x] = notANumber;
      buffers[5] = split.data();
      kernels.run(0, buffers, {rows, batch, S}, 3);
      EXPECT_EQ(std::memcmp(y.data(), split.data(), H * D * 4), 0);
    }
  }
}

TEST_P(Attend, KeysBehindTheLastThatIsShownAreNotRead) {
  const int64_t H = 2, D = 64, rows = 2, shown = 9, slot = 100000;
  const std::string text = replaced(R"(
kernel.func @attend symbols ["rows", "batch", "S"] from "" {
^bb0(%q: F, %k: F, %v: F, %source: !kernel.buffer<i32>, %mask: !kernel.buffer<i64>, %y: F):
  kernel.attend_source shapes [#transept.dims<[rows, 1, 2, 64]>, #transept.dims<[batch, S, 2, 64]>, #transept.dims<[batch, S, 2, 64]>,
      #transept.dims<[rows]>, #transept.dims<[batch, S]>, #transept.dims<[rows, 1, 2, 64]>] ins(%q, %k, %v, %source, %mask) outs(%y)
      {scale = 0.125 : f32, emptyRow = 0 : i64, hasKeyMask} : (F, F, F, !kernel.buffer<i32>, !kernel.buffer<i64>, F) -> ()
}
)",
                                    {{"F", "!kernel.buffer<!32>"}, {"!32", "f32"}});
  Kernels kernels(text, GetParam());
  // A group of sixteen keys is all there is of a slot of 100,000.
  Array<float> q = randomFloats(rows * H * D, 1), k = randomFloats(16 * H * D, 2, 2), v = randomFloats(16 * H * D, 3),
               y(rows * H * D), tight(rows * H * D);
  Array<int32_t> source(rows, 0);
  Array<int64_t> mask(slot, 0);
  std::fill_n(mask.begin(), shown, 1);
  kernels.run(0, {q.data(), k.data(), v.data(), source.data(), mask.data(), y.data()}, {rows, 1, slot});
  kernels.run(0, {q.data(), k.data(), v.data(), source.data(), mask.data(), tight.data()}, {rows, 1, shown});
  EXPECT_EQ(std::memcmp(y.data(), tight.data(), rows * H * D * sizeof(float)), 0);
}

// Several positions of a row at once, with their weights; a slot without visible keys has the weights of its policy.
TEST_P(Attend, ReturnsTheWeightsOfSeveralPositions) {
  const int64_t H = 2, D = 20, batch = 3, rows = 4, T = 3;
  for (int policy : {0, 1, 2}) {
    std::string text = replaced(R"(
kernel.func @attend symbols ["rows", "batch", "S"] from "" {
^bb0(%q: F, %k: F, %v: F, %source: !kernel.buffer<i32>, %mask: !kernel.buffer<i64>, %y: F, %p: F):
  kernel.attend_source shapes [#transept.dims<[rows, 3, 2, 20]>, #transept.dims<[batch, S, 2, 20]>, #transept.dims<[batch, S, 2, 20]>,
      #transept.dims<[rows]>, #transept.dims<[batch, S]>, #transept.dims<[rows, 3, 2, 20]>, #transept.dims<[rows, 2, 3, S]>]
      ins(%q, %k, %v, %source, %mask) outs(%y, %p)
      {scale = 0.125 : f32, emptyRow = _policy : i64, hasKeyMask} : (F, F, F, !kernel.buffer<i32>, !kernel.buffer<i64>, F, F) -> ()
}
)",
                                {{"_policy", std::to_string(policy)}, {"F", "!kernel.buffer<!32>"}, {"!32", "f32"}});
    Kernels kernels(text, GetParam());
    for (int64_t S : {1, 30, 130}) {
      Array<float> q = randomFloats(rows * T * H * D, 1), k = randomFloats(batch * S * H * D, 2, 2),
                   v = randomFloats(batch * S * H * D, 3), y(rows * T * H * D), p(rows * H * T * S, -9.0f);
      Array<int32_t> source(std::vector<int32_t>{2, 0, 1, 2});
      Array<int64_t> mask(batch * S, 1);
      for (int64_t j = 0; j < S; ++j) {
        mask[S + j] = 0;
        mask[2 * S + j] = j * 2 < S;
      }
      kernels.run(0, {q.data(), k.data(), v.data(), source.data(), mask.data(), y.data(), p.data()}, {rows, batch, S},
                  3);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t t = 0; t < T; ++t)
          for (int64_t h = 0; h < H; ++h) {
            int64_t slot = source[r];
            const float *query = &q[((r * T + t) * H + h) * D];
            auto weights = softmax(
                S,
                [&](int64_t j) {
                  double sum = 0;
                  for (int64_t d = 0; d < D; ++d)
                    sum += double(query[d]) * k[((slot * S + j) * H + h) * D + d];
                  return sum * 0.125;
                },
                [&](int64_t j) { return mask[slot * S + j] != 0; });
            if (weights.empty())
              weights.assign(S, policy == 0 ? 1.0 / double(S) : policy == 1 ? 0 : notANumber);
            for (int64_t j = 0; j < S; ++j)
              Problem::near(p[((r * H + h) * T + t) * S + j], weights[j]);
            for (int64_t d = 0; d < D; ++d) {
              double sum = 0;
              for (int64_t j = 0; j < S; ++j)
                sum += weights[j] * v[((slot * S + j) * H + h) * D + d];
              Problem::near(y[((r * T + t) * H + h) * D + d], sum);
            }
          }
    }
  }
}

// A prompt at once leaves the bits in the cache, and gives the answers, of its positions one after the other.
TEST_P(Attend, ManyPositionsAreAsOneAfterTheOther) {
  const int64_t rows = 2, H = 2, D = 20, T = 21, capacity = 32, blocks = 5, E = 2 * H * 16 * D;
  auto kernelsFor = [&](const std::string &positions) {
    return Kernels(replaced(R"(
kernel.func @append symbols ["rows", "capacity", "blocks"] from "" {
^bb0(%k: F, %v: F, %pool: F, %table: I, %position: !kernel.buffer<i64>):
  kernel.cache_append shapes [#transept.dims<[rows, _T, 2, 20]>, #transept.dims<[rows, _T, 2, 20]>, #transept.dims<[blocks, _E]>,
      #transept.dims<[rows, capacity]>, #transept.dims<[rows]>] ins(%k, %v, %pool, %table, %position)
      {kvHeads = 2 : i64, keySize = 20 : i64, valueSize = 20 : i64, keyOffset = 0 : i64, valueOffset = 640 : i64}
      : (F, F, F, I, !kernel.buffer<i64>) -> ()
}
kernel.func @attend symbols ["rows", "capacity", "blocks"] from "" {
^bb0(%q: F, %pool: F, %table: I, %position: !kernel.buffer<i64>, %y: F):
  kernel.attend_cache shapes [#transept.dims<[rows, _T, 2, 20]>, #transept.dims<[blocks, _E]>, #transept.dims<[rows, capacity]>,
      #transept.dims<[rows]>, #transept.dims<[rows, _T, 2, 20]>] ins(%q, %pool, %table, %position) outs(%y)
      {scale = 0.5 : f32, heads = 2 : i64, kvHeads = 2 : i64, keySize = 20 : i64, valueSize = 20 : i64, keyOffset = 0 : i64, valueOffset = 640 : i64}
      : (F, F, I, !kernel.buffer<i64>, F) -> ()
}
)",
                            {{"_E", std::to_string(E)},
                             {"_T", positions},
                             {"F", "!kernel.buffer<!32>"},
                             {"I,", "!kernel.buffer<i32>,"},
                             {"I)", "!kernel.buffer<i32>)"},
                             {"!32", "f32"}}),
                   GetParam());
  };
  Kernels one = kernelsFor("1"), many = kernelsFor(std::to_string(T));
  Array<float> q = randomFloats(rows * T * H * D, 1), k = randomFloats(rows * T * H * D, 2),
               v = randomFloats(rows * T * H * D, 3), y(rows * T * H * D), stepped(rows * T * H * D),
               pool(blocks * E, notANumber), steppedPool(blocks * E, notANumber);
  Array<int32_t> table(rows * capacity, 0);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t p = 0; p < T; ++p)
      table[r * capacity + p] = int32_t(r + 2 * (p / 16));
  Array<int64_t> position(rows, 0);
  std::vector<int64_t> sizes{rows, capacity, blocks};
  many.run(0, {k.data(), v.data(), pool.data(), table.data(), position.data()}, sizes, 4);
  many.run(1, {q.data(), pool.data(), table.data(), position.data(), y.data()}, sizes, 4);
  const int64_t width = H * D;
  for (int64_t p = 0; p < T; ++p) {
    Array<float> oneK(rows * width), oneV(rows * width), oneQ(rows * width), oneY(rows * width);
    for (int64_t r = 0; r < rows; ++r) {
      position[r] = p;
      std::copy_n(k.begin() + (r * T + p) * width, width, oneK.begin() + r * width);
      std::copy_n(v.begin() + (r * T + p) * width, width, oneV.begin() + r * width);
      std::copy_n(q.begin() + (r * T + p) * width, width, oneQ.begin() + r * width);
    }
    one.run(0, {oneK.data(), oneV.data(), steppedPool.data(), table.data(), position.data()}, sizes);
    one.run(1, {oneQ.data(), steppedPool.data(), table.data(), position.data(), oneY.data()}, sizes);
    for (int64_t r = 0; r < rows; ++r)
      std::copy_n(oneY.begin() + r * width, width, stepped.begin() + (r * T + p) * width);
  }
  EXPECT_EQ(std::memcmp(pool.data(), steppedPool.data(), blocks * E * sizeof(float)), 0);
  EXPECT_TRUE(sameBits(y, stepped));
}

//===- Caches in bf16
//-------------------------------------------------------------------------------------------------===//

/// The nearest numbers that bf16 has, and the bits they have there.
std::pair<Array<float>, Array<uint16_t>> roundedToBf16(const Array<float> &numbers) {
  std::vector<float> rounded;
  std::vector<uint16_t> bits;
  for (float number : numbers) {
    uint32_t word;
    std::memcpy(&word, &number, sizeof(word));
    word = (word + 0x7fff + (word >> 16 & 1)) & 0xffff0000;
    bits.push_back(uint16_t(word >> 16));
    std::memcpy(&number, &word, sizeof(word));
    rounded.push_back(number);
  }
  return {Array<float>(rounded), Array<uint16_t>(bits)};
}

// Attention extends what it reads and does what it does in f32, bit by bit.
TEST_P(Attend, ReadsCachesInBf16) {
  const int64_t H = 4, Hk = 2, D = 20, Dv = 12, capacity = 96, rows = 3, blocks = 24, sources = 2, S = 70;
  const int64_t E = Hk * 16 * (D + Dv);
  auto text = [&](const char *element) {
    return replaced(R"(
kernel.func @append symbols ["rows", "capacity", "blocks"] from "" {
^bb0(%k: C, %v: C, %pool: C, %table: I, %position: !kernel.buffer<i64>):
  kernel.cache_append shapes [#transept.dims<[rows, 1, 2, 20]>, #transept.dims<[rows, 1, 2, 12]>, #transept.dims<[blocks, _E]>,
      #transept.dims<[rows, capacity]>, #transept.dims<[rows]>] ins(%k, %v, %pool, %table, %position)
      {kvHeads = 2 : i64, keySize = 20 : i64, valueSize = 12 : i64, keyOffset = 0 : i64, valueOffset = _v : i64}
      : (C, C, C, I, !kernel.buffer<i64>) -> ()
}
kernel.func @attend symbols ["rows", "capacity", "blocks"] from "" {
^bb0(%q: F, %pool: C, %table: I, %position: !kernel.buffer<i64>, %y: F):
  kernel.attend_cache shapes [#transept.dims<[rows, 1, 4, 20]>, #transept.dims<[blocks, _E]>, #transept.dims<[rows, capacity]>,
      #transept.dims<[rows]>, #transept.dims<[rows, 1, 4, 12]>] ins(%q, %pool, %table, %position) outs(%y)
      {scale = 0.5 : f32, heads = 4 : i64, kvHeads = 2 : i64, keySize = 20 : i64, valueSize = 12 : i64, keyOffset = 0 : i64, valueOffset = _v : i64}
      : (F, C, I, !kernel.buffer<i64>, F) -> ()
}
kernel.func @source symbols ["rows", "batch", "S"] from "" {
^bb0(%q: F, %k: C, %v: C, %sources: I, %y: F):
  kernel.attend_source shapes [#transept.dims<[rows, 1, 4, 20]>, #transept.dims<[batch, S, 2, 20]>, #transept.dims<[batch, S, 2, 12]>,
      #transept.dims<[rows]>, #transept.dims<[rows, 1, 4, 12]>] ins(%q, %k, %v, %sources) outs(%y)
      {scale = 0.5 : f32, emptyRow = 0 : i64} : (F, C, C, I, F) -> ()
}
)",
                    {{"_E", std::to_string(E)},
                     {"_v", std::to_string(Hk * 16 * D)},
                     {"F", "!kernel.buffer<!32>"},
                     {"C", std::string("!kernel.buffer<") + element + ">"},
                     {"I,", "!kernel.buffer<i32>,"},
                     {"I)", "!kernel.buffer<i32>)"},
                     {"!32", "f32"}});
  };
  Kernels wide(text("f32"), GetParam()), narrow(text("bf16"), GetParam());
  auto [keys, keyBits] = roundedToBf16(randomFloats(capacity * rows * Hk * D, 1));
  auto [values, valueBits] = roundedToBf16(randomFloats(capacity * rows * Hk * Dv, 2));
  Array<float> q = randomFloats(rows * H * D, 3), pool(blocks * E, 0.0f), y(rows * H * Dv), z(rows * H * Dv);
  Array<uint16_t> narrowPool(blocks * E, 0);
  Array<int32_t> table(rows * capacity, 0), slots(std::vector<int32_t>{1, 1, 0});
  Array<int64_t> position(rows, 0);
  for (int64_t p = 0; p < S; ++p) {
    for (int64_t r = 0; r < rows; ++r) {
      position[r] = p;
      table[r * capacity + p] = int32_t((p / 16 * rows + r) * 7 % blocks);
    }
    const int64_t key = p * rows * Hk * D, value = p * rows * Hk * Dv;
    wide.run(0, {keys.begin() + key, values.begin() + value, pool.data(), table.data(), position.data()},
             {rows, capacity, blocks});
    narrow.run(0, {keyBits.begin() + key, valueBits.begin() + value, narrowPool.data(), table.data(), position.data()},
               {rows, capacity, blocks}, 2);
  }
  wide.run(1, {q.data(), pool.data(), table.data(), position.data(), y.data()}, {rows, capacity, blocks});
  narrow.run(1, {q.data(), narrowPool.data(), table.data(), position.data(), z.data()}, {rows, capacity, blocks}, 5);
  EXPECT_TRUE(sameBits(y, z));
  wide.run(2, {q.data(), keys.data(), values.data(), slots.data(), y.data()}, {rows, sources, S});
  narrow.run(2, {q.data(), keyBits.data(), valueBits.data(), slots.data(), z.data()}, {rows, sources, S}, 5);
  EXPECT_TRUE(sameBits(y, z));
  EXPECT_NE(y[0], y[2 * H * Dv]);
}

} // namespace
