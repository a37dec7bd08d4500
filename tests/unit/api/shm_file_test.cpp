#include "framework/api/segment/shm_file.hpp"

#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <cstdint>

using namespace altiplano;

BOOST_AUTO_TEST_CASE(memory_of_no_file_system_is_zero_shared_to_its_last_byte_and_fit_for_large_pages) {
  constexpr size_t kLargePage = size_t{2} << 20;
  for (const size_t bytes : {size_t{1}, size_t{4096}, kLargePage - 1, kLargePage, 3 * kLargePage + 4097}) {
    auto made = ShmFile::create_anonymous(bytes);
    BOOST_REQUIRE_MESSAGE(made.is_ok(), made.status().to_string());
    auto attached = ShmFile::attach(made->address(), bytes);
    BOOST_REQUIRE_MESSAGE(attached.is_ok(), attached.status().to_string());
    auto* const own = static_cast<std::byte*>(made->memory().get());
    auto* const peers = static_cast<std::byte*>(attached->get());
    BOOST_TEST((own != peers));
    for (const size_t at : {size_t{0}, bytes / 2, bytes - 1}) {
      BOOST_TEST((own[at] == std::byte{0}));
      own[at] = std::byte{7};
      BOOST_TEST((peers[at] == std::byte{7}));
      peers[at] = std::byte{0};
    }
    if (bytes < kLargePage) continue;
    for (const std::byte* memory : {own, peers}) BOOST_TEST(reinterpret_cast<uintptr_t>(memory) % kLargePage == 0u);
  }
}
