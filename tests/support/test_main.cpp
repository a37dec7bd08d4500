// The one main() of every test executable.
#define BOOST_TEST_MODULE altiplano
#include <boost/test/unit_test.hpp>
