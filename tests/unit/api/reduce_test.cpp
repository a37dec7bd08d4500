#include "framework/api/collectives/reduce.hpp"

#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <limits>

using namespace altiplano;

namespace {

template <typename T>
T reduce(DType dtype, ReduceKind kind, std::vector<T> values) {
  std::vector<const std::byte*> sources;
  for (const T& value : values) sources.push_back(reinterpret_cast<const std::byte*>(&value));
  T out{};
  reduce_in_order(&out, sources, 1, dtype, kind);
  return out;
}

uint16_t bf16(float x) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16);
}

}  // namespace

BOOST_AUTO_TEST_CASE(sums_are_taken_in_the_order_of_the_sources) {
  // 1e8 swallows a 1 in f32, so that only this order gives 1.
  BOOST_TEST(reduce<float>(DType::kF32, ReduceKind::kSum, {1e8F, -1e8F, 1.0F}) == 1.0F);
  BOOST_TEST(reduce<float>(DType::kF32, ReduceKind::kSum, {1.0F, 1e8F, -1e8F}) == 0.0F);
  BOOST_TEST(reduce<double>(DType::kF64, ReduceKind::kSum, {1e300, -1e300, 0.5}) == 0.5);
}

BOOST_AUTO_TEST_CASE(bf16_is_summed_in_f32_and_rounded_once_to_nearest_even) {
  // In bf16 arithmetic 256 + 1 stays 256, each time; in f32 the four ones are kept.
  BOOST_TEST(reduce<uint16_t>(DType::kBF16, ReduceKind::kSum, {bf16(256), bf16(1), bf16(1), bf16(1), bf16(1)}) ==
             bf16(260));
  BOOST_TEST(reduce<uint16_t>(DType::kBF16, ReduceKind::kSum, {bf16(256), bf16(1)}) == bf16(256));  // tie to even
  BOOST_TEST(reduce<uint16_t>(DType::kBF16, ReduceKind::kSum, {bf16(258), bf16(1)}) == bf16(260));  // tie to even
}

BOOST_AUTO_TEST_CASE(integers_wrap_around_and_take_their_maximum) {
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  BOOST_TEST(reduce<int32_t>(DType::kI32, ReduceKind::kSum, {kMost, 1}) == std::numeric_limits<int32_t>::min());
  BOOST_TEST(reduce<int64_t>(DType::kI64, ReduceKind::kMax, {-5, -3, -9}) == -3);
}

BOOST_AUTO_TEST_CASE(a_nan_is_never_lost) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& values : {std::vector<float>{nan, 1, 2}, {1, nan, 2}, {1, 2, nan}}) {
    BOOST_TEST(std::isnan(reduce<float>(DType::kF32, ReduceKind::kMax, values)));
    BOOST_TEST(std::isnan(reduce<float>(DType::kF32, ReduceKind::kSum, values)));
  }
  const uint16_t narrow_nan = 0x7F81;  // a NaN whose payload rounding would carry away
  BOOST_TEST(std::isnan(std::bit_cast<float>(
      static_cast<uint32_t>(reduce<uint16_t>(DType::kBF16, ReduceKind::kSum, {narrow_nan, bf16(1)})) << 16)));
}

namespace {

/// Two sources that become their own result, as in an all_reduce in place: the same bits as each element alone.
template <typename T>
void check_in_place(DType dtype, ReduceKind kind, const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> x = a, y = b;
  std::byte* const out[] = {reinterpret_cast<std::byte*>(x.data()), reinterpret_cast<std::byte*>(y.data())};
  const std::byte* const sources[] = {out[0], out[1]};
  reduce_in_order({out, 0, sources, 0, static_cast<int64_t>(a.size()), dtype, kind});
  for (size_t i = 0; i < a.size(); ++i) {
    const T alone = reduce<T>(dtype, kind, {a[i], b[i]});
    BOOST_TEST_REQUIRE(std::memcmp(&x[i], &alone, sizeof(T)) == 0);
    BOOST_TEST_REQUIRE(std::memcmp(&y[i], &alone, sizeof(T)) == 0);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(two_sources_are_reduced_in_place_to_the_bits_of_each_element_alone) {
  constexpr size_t kCount = 203;  // whole vectors and a rest
  std::vector<float> a, b;
  std::vector<uint16_t> narrow_a, narrow_b;
  for (size_t i = 0; i < kCount; ++i) {
    a.push_back(std::sin(static_cast<float>(i)) * 1e3F);
    b.push_back(i % 17 == 0 ? std::numeric_limits<float>::quiet_NaN() : std::cos(static_cast<float>(i)));
    if (i % 19 == 0) a.back() = std::numeric_limits<float>::infinity();
    narrow_a.push_back(bf16(a.back()));
    narrow_b.push_back(bf16(b.back()));
  }
  for (const ReduceKind kind : {ReduceKind::kSum, ReduceKind::kMax}) {
    check_in_place(DType::kF32, kind, a, b);
    check_in_place(DType::kBF16, kind, narrow_a, narrow_b);
    check_in_place<double>(DType::kF64, kind, {a.begin(), a.end()}, {b.begin(), b.end()});
  }
}
