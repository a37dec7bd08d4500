#include "framework/runtime/data/token_file.hpp"

#include "tests/support/temporary_directory.hpp"

using namespace altiplano;

namespace {

std::string gpt2_file(const std::string& name) {
  return test::read_bytes(ALTIPLANO_SOURCE_DIR "/tests/fixtures/gpt2/" + name);
}

std::vector<int32_t> all_tokens(const TokenFile& file) {
  std::vector<int32_t> ids(static_cast<size_t>(file.info().num_tokens));
  BOOST_REQUIRE(file.read(0, ids).is_ok());
  return ids;
}

std::string long_text() {
  std::string text;
  for (int i = 0; text.size() < 100000; ++i) text += "verse " + std::to_string(i) + ": and it came to pass,\n";
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(documents_are_packed_with_end_of_text_between_them) {
  test::TemporaryDirectory dir;
  test::write_bytes(dir / "a.txt", "abc");
  test::write_bytes(dir / "b.txt", "de");
  auto byte = make_byte_tokenizer();
  auto packed = pack_text({.inputs = {dir / "a.txt", dir / "b.txt"}, .output = dir / "out.h5"}, *byte);
  BOOST_REQUIRE_MESSAGE(packed.is_ok(), packed.status().to_string());
  auto file = TokenFile::open(dir / "out.h5");
  BOOST_REQUIRE_MESSAGE(file.is_ok(), file.status().to_string());
  BOOST_TEST(all_tokens(*file) == (std::vector<int32_t>{97, 98, 99, 256, 100, 101}), boost::test_tools::per_element());
  BOOST_TEST(file->documents().value() == (std::vector<int64_t>{0, 4}), boost::test_tools::per_element());
  BOOST_TEST(file->info().max_id == 256);
  BOOST_TEST(file->info().max_id_offset == 3);
  BOOST_TEST(file->info().min_id == 97);
  BOOST_TEST(file->info().vocab_size == 257);
  BOOST_TEST(file->info().sources.size() == 2u);
  BOOST_TEST(file->tokenizer().value()->name() == "byte");
}

BOOST_AUTO_TEST_CASE(packing_in_small_blocks_gives_the_same_tokens) {
  test::TemporaryDirectory dir;
  std::string text = long_text();
  test::write_bytes(dir / "a.txt", text);
  auto gpt2 = make_gpt2_tokenizer(gpt2_file("encoder.json"), gpt2_file("vocab.bpe")).value();
  for (int64_t block : {1, 13, 4096}) {
    PackOptions options{.inputs = {dir / "a.txt"}, .output = dir / "out.h5", .deflate = 4, .block_bytes = block};
    if (block == 1) test::write_bytes(dir / "a.txt", text.substr(0, 3000));
    BOOST_REQUIRE(pack_text(options, *gpt2).is_ok());
    auto file = TokenFile::open(dir / "out.h5");
    BOOST_REQUIRE(file.is_ok());
    BOOST_TEST((all_tokens(*file) == gpt2->encode(test::read_bytes(dir / "a.txt"))));
    test::write_bytes(dir / "a.txt", text);
  }
}

BOOST_AUTO_TEST_CASE(a_token_file_carries_its_tokenizer) {
  test::TemporaryDirectory dir;
  test::write_bytes(dir / "a.txt", "In the beginning");
  auto gpt2 = make_gpt2_tokenizer(gpt2_file("encoder.json"), gpt2_file("vocab.bpe")).value();
  BOOST_REQUIRE(pack_text({.inputs = {dir / "a.txt"}, .output = dir / "out.h5"}, *gpt2).is_ok());
  auto file = TokenFile::open(dir / "out.h5");
  auto tokenizer = file->tokenizer();
  BOOST_REQUIRE_MESSAGE(tokenizer.is_ok(), tokenizer.status().to_string());
  BOOST_TEST(tokenizer.value()->decode(all_tokens(*file)) == "In the beginning");
}

BOOST_AUTO_TEST_CASE(empty_and_missing_inputs_are_refused_and_leave_no_file) {
  test::TemporaryDirectory dir;
  test::write_bytes(dir / "empty.txt", "");
  auto byte = make_byte_tokenizer();
  Status empty = pack_text({.inputs = {dir / "empty.txt"}, .output = dir / "out.h5"}, *byte).status();
  BOOST_TEST(empty.message().find("empty.txt: is empty") != std::string::npos, empty.message());
  Status missing = pack_text({.inputs = {dir / "none.txt"}, .output = dir / "out.h5"}, *byte).status();
  BOOST_TEST(missing.message().find("none.txt: cannot be opened") != std::string::npos, missing.message());
  BOOST_TEST(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 1);
}

BOOST_AUTO_TEST_CASE(a_flipped_bit_among_the_tokens_is_found) {
  test::TemporaryDirectory dir;
  test::write_bytes(dir / "a.txt", long_text());
  BOOST_REQUIRE(pack_text({.inputs = {dir / "a.txt"}, .output = dir / "out.h5"}, *make_byte_tokenizer()).is_ok());
  std::string bytes = test::read_bytes(dir / "out.h5");
  size_t at = bytes.find(std::string("c\0a\0m\0e\0", 8));
  BOOST_REQUIRE(at != std::string::npos);
  test::flip_bit(dir / "out.h5", at);
  auto file = TokenFile::open(dir / "out.h5");
  BOOST_REQUIRE(file.is_ok());
  std::vector<int32_t> ids(static_cast<size_t>(file->info().num_tokens));
  Status status = file->read(0, ids);
  BOOST_TEST(status.message().find("dataset '/tokens'") != std::string::npos, status.message());
}

BOOST_AUTO_TEST_CASE(files_of_other_kinds_and_versions_are_refused) {
  test::TemporaryDirectory dir;
  auto has = [](const Status& status, const std::string& part) {
    BOOST_TEST(status.message().find(part) != std::string::npos, status.message());
  };
  auto write = [&](const std::string& format, int64_t version) {
    auto file = Hdf5File::create(dir / "x.h5");
    if (!format.empty()) BOOST_REQUIRE(file->set_attribute("/", "format", format).is_ok());
    BOOST_REQUIRE(file->set_attribute("/", "format_version", version).is_ok());
    BOOST_REQUIRE(file->close().is_ok());
  };
  write("", 1);
  has(TokenFile::open(dir / "x.h5").status(), "not one of tokens");
  write("altiplano shard", 1);
  has(TokenFile::open(dir / "x.h5").status(), "holds 'altiplano shard', expected 'altiplano tokens'");
  write("altiplano tokens", 2);
  has(TokenFile::open(dir / "x.h5").status(), "token file format 2, this program reads format 1");
}
