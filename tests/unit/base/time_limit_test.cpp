#include "framework/base/time_limit.hpp"

#include <boost/test/unit_test.hpp>

using namespace altiplano;

BOOST_AUTO_TEST_CASE(all_six_forms_of_slurms_times_are_read) {
  constexpr double kMinute = 60, kHour = 3600, kDay = 86400;
  for (const auto& [text, seconds] : {std::pair("90", 90 * kMinute),
                                      {"90:30", 90 * kMinute + 30},
                                      {"1:30:00", 1.5 * kHour},
                                      {"100:00:01", 100 * kHour + 1},
                                      {"2-0", 2 * kDay},
                                      {"2-03", 2 * kDay + 3 * kHour},
                                      {"0-0:30", 30 * kMinute},
                                      {"2-12:30:15", 2.5 * kDay + 30 * kMinute + 15},
                                      {"0:06", 6.0},
                                      {"0", 0.0}}) {
    const auto read = parse_time_limit(text);
    BOOST_TEST_REQUIRE(read.has_value(), text);
    BOOST_TEST(read->value == seconds, text);
  }
}

BOOST_AUTO_TEST_CASE(what_is_no_time_is_refused) {
  for (const char* text : {"",        "soon",        "-5",   "+5",     "1:",       ":30",     "1:60",
                           "1:60:00", "1:00:60",     "1-24", "1-0:60", "1-0:0:60", "1:2:3:4", "1-",
                           "-",       "1-2-3",       "1.5",  "5 min",  " 5",       "1 :30",   "99999999999999999999",
                           "10001-0", "900000000000"})
    BOOST_TEST(!parse_time_limit(text).has_value(), text);
}
