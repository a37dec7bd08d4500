// docs/plugins has a page per kind, and each page lists exactly the checks of its kind.
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <set>
#include <sstream>

#include "framework/base/text.hpp"
#include "framework/conformance/check.hpp"

using namespace altiplano;
using namespace altiplano::conformance;

namespace {

/// First cells of the page's last table, below its heading.
std::set<std::string> promises_on(const std::string& page) {
  std::set<std::string> promises;
  bool is_table = false;
  for (const std::string& line : split(page, '\n')) {
    if (line.starts_with("| promise | how |")) is_table = true;
    if (is_table && line.starts_with("| ") && !line.starts_with("| promise"))
      promises.insert(trim(split(line, '|')[1]));
  }
  return promises;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_page_of_each_kind_lists_the_promises_that_are_checked) {
  for (uint32_t kind = ALTIPLANO_PLUGIN_PLANNER; plugin_kind_name(kind) != nullptr; ++kind) {
    const std::string path = fmt::format("{}/docs/plugins/{}.md", ALTIPLANO_SOURCE_DIR, plugin_kind_name(kind));
    std::stringstream page;
    page << std::ifstream(path).rdbuf();
    std::set<std::string> checked;
    const size_t num_common = handshake_checks().size();
    for (size_t i = num_common; i < checks_of(kind).size(); ++i) checked.insert(checks_of(kind)[i].name);
    const std::set<std::string> written = promises_on(page.str());
    BOOST_TEST(join({checked.begin(), checked.end()}, "\n") == join({written.begin(), written.end()}, "\n"), path);
  }
}
