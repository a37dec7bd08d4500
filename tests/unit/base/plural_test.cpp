#include "framework/base/plural.hpp"

#include <boost/test/unit_test.hpp>

using namespace altiplano;

BOOST_AUTO_TEST_CASE(one_of_a_thing_takes_no_plural_and_none_of_it_does) {
  BOOST_TEST(counted(1, "rank") == "1 rank");
  BOOST_TEST(counted(0, "rank") == "0 ranks");
  BOOST_TEST(counted(4, "rank") == "4 ranks");
  BOOST_TEST(counted(4404412, "token") == "4,404,412 tokens");
  BOOST_TEST(counted(1, "box", "boxes") == "1 box");
  BOOST_TEST(counted(2, "box", "boxes") == "2 boxes");
  BOOST_TEST(plural(1, "is", "are") == "is");
  BOOST_TEST(plural(2, "is", "are") == "are");
}
