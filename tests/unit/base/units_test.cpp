#include "framework/base/units.hpp"

#include <boost/test/unit_test.hpp>
#include <type_traits>

#include "framework/base/ids.hpp"
#include "framework/base/quantity.hpp"

using namespace altiplano;

BOOST_AUTO_TEST_CASE(quantities_print_in_the_unit_people_expect) {
  BOOST_TEST(to_string(Bytes(0)) == "0 B");
  BOOST_TEST(to_string(Bytes(1023)) == "1023 B");
  BOOST_TEST(to_string(Bytes(33030144)) == "31.5 MiB");
  BOOST_TEST(to_string(Bytes(-2048)) == "-2.0 KiB");
  BOOST_TEST(to_string(Seconds(0.412)) == "412 ms");
  BOOST_TEST(to_string(Seconds(12e-6)) == "12 us");
  BOOST_TEST(to_string(Seconds(2.5)) == "2.50 s");
  BOOST_TEST(to_string(Seconds(0.99999)) == "1.00 s");
  BOOST_TEST(to_string(Flops(219.8e9)) == "219.8 GFLOP");
  BOOST_TEST(hours_minutes_seconds(Seconds(751)) == "0:12:31");
  BOOST_TEST(hours_minutes_seconds(Seconds(90061)) == "25:01:01");
  BOOST_TEST(hours_minutes_seconds(Seconds(-3)) == "0:00:00");
}

BOOST_AUTO_TEST_CASE(bytes_are_never_added_to_seconds_nor_ranks_compared_with_stages) {
  static_assert(!std::is_convertible_v<Bytes, Seconds> && !std::is_convertible_v<int64_t, Bytes>);
  static_assert(!std::is_convertible_v<RankId, StageId> && !std::is_convertible_v<int, RankId>);
  BOOST_TEST(!RankId().is_valid());
  BOOST_TEST((Bytes(3) + Bytes(4) - Bytes(2) == Bytes(5)));
  BOOST_TEST(fmt::format("{}", RankId(7)) == "7");
}

BOOST_AUTO_TEST_CASE(quantities_with_units_parse_to_the_base_unit) {
  BOOST_TEST(*parse_quantity(QuantityKind::kBytes, "40 GiB") == 40.0 * 1073741824.0);
  BOOST_TEST(*parse_quantity(QuantityKind::kBytes, "40GB") == 40e9);
  BOOST_TEST(*parse_quantity(QuantityKind::kBytesPerSecond, " 300 GB/s ") == 300e9);
  BOOST_TEST(*parse_quantity(QuantityKind::kFlopsPerSecond, "3.12e2 TFLOP/s") == 312e12);
  BOOST_TEST(*parse_quantity(QuantityKind::kSeconds, "5 us") == 5e-6);
  BOOST_TEST(*parse_quantity(QuantityKind::kSeconds, "2") == 2.0);
  BOOST_TEST((*parse_bytes("1.5 KiB") == Bytes(1536)));
}

BOOST_AUTO_TEST_CASE(wrong_units_and_numbers_are_refused) {
  for (const char* text : {"", "GiB", "40 gib", "40 GB/s", "-1 GB", "1 2 GB", "nan", "1e999 B", "40 GiB x"})
    BOOST_TEST(!parse_quantity(QuantityKind::kBytes, text).has_value(), text);
  BOOST_TEST(!parse_quantity(QuantityKind::kBytesPerSecond, "40 GB").has_value());
  BOOST_TEST(!parse_bytes("0.5 B").has_value());
  BOOST_TEST(!parse_bytes("9000000 TiB").has_value());
}

BOOST_AUTO_TEST_CASE(a_printed_quantity_parses_back_to_the_same_bits) {
  for (double value : {0.0, 1.0, 1e-9, 0.7e-6, 5.6e-6, 12.7e9, 390.625e6, 312e12, 40e9, 42949672960.0, 1.0 / 3.0,
                       123456789.0, 6.02e23})
    for (QuantityKind kind :
         {QuantityKind::kBytes, QuantityKind::kBytesPerSecond, QuantityKind::kFlopsPerSecond, QuantityKind::kSeconds})
      BOOST_TEST(*parse_quantity(kind, print_quantity(kind, value)) == value, print_quantity(kind, value));
  BOOST_TEST(print_quantity(QuantityKind::kBytes, 42949672960.0) == "40 GiB");
  BOOST_TEST(print_quantity(QuantityKind::kBytes, 40e9) == "40 GB");
  BOOST_TEST(print_quantity(QuantityKind::kBytesPerSecond, 227e9) == "227 GB/s");
  BOOST_TEST(print_quantity(QuantityKind::kFlopsPerSecond, 19.5e12) == "19.5 TFLOP/s");
  BOOST_TEST(print_quantity(QuantityKind::kSeconds, 5e-6) == "5 us");
}
