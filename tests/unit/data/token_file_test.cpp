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
  auto gpt2 =
      make_tokenizer("gpt2", {{"vocab", gpt2_file("encoder.json")}, {"merges", gpt2_file("vocab.bpe")}}).value();
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
  auto gpt2 =
      make_tokenizer("gpt2", {{"vocab", gpt2_file("encoder.json")}, {"merges", gpt2_file("vocab.bpe")}}).value();
  BOOST_REQUIRE(pack_text({.inputs = {dir / "a.txt"}, .output = dir / "out.h5"}, *gpt2).is_ok());
  auto file = TokenFile::open(dir / "out.h5");
  auto tokenizer = file->tokenizer();
  BOOST_REQUIRE_MESSAGE(tokenizer.is_ok(), tokenizer.status().to_string());
  BOOST_TEST(tokenizer.value()->decode(all_tokens(*file)) == "In the beginning");
}

BOOST_AUTO_TEST_CASE(text_that_is_no_utf8_comes_back_from_a_file_byte_by_byte) {
  test::TemporaryDirectory dir;
  const std::string text =
      std::string("ok \xff\xfe \xc3") + std::string(3, '\0') + "\xe2\x82 \xf0\x9f\x98\x80 \xed\xa0\x80\r\n";
  test::write_bytes(dir / "a.txt", text);
  std::unique_ptr<Tokenizer> tokenizers[] = {
      make_byte_tokenizer(),
      make_tokenizer("gpt2", {{"vocab", gpt2_file("encoder.json")}, {"merges", gpt2_file("vocab.bpe")}}).value()};
  for (const auto& tokenizer : tokenizers)
    for (int64_t block : {1, 3, 4096}) {
      PackOptions options{.inputs = {dir / "a.txt"}, .output = dir / "out.h5", .block_bytes = block};
      std::string note;
      options.note = [&](const std::string& told) { note += told; };
      BOOST_REQUIRE(pack_text(options, *tokenizer).is_ok());
      BOOST_TEST(note == (dir / "a.txt") + ": is no UTF-8 from byte 3 on; kept byte by byte");
      auto file = TokenFile::open(dir / "out.h5").value();
      BOOST_TEST((file.tokenizer().value()->decode(all_tokens(file)) == text));
    }
}

BOOST_AUTO_TEST_CASE(empty_and_missing_inputs_are_refused_and_leave_no_file) {
  test::TemporaryDirectory dir;
  test::write_bytes(dir / "empty.txt", "");
  auto byte = make_byte_tokenizer();
  Status empty = pack_text({.inputs = {dir / "empty.txt"}, .output = dir / "out.h5"}, *byte).status();
  BOOST_TEST(empty.message().find("empty.txt: is empty") != std::string::npos, empty.message());
  Status missing = pack_text({.inputs = {dir / "none.txt"}, .output = dir / "out.h5"}, *byte).status();
  BOOST_TEST(missing.message().find("none.txt: cannot be read") != std::string::npos, missing.message());
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

namespace {

/// A token file by hand, with one thing wrong.
struct Forged {
  ElementType type = ElementType::kU16;
  int64_t num_tokens = 3, vocab_size = 257, min_id = 1, max_id = 3, max_id_offset = 2;
  std::vector<int64_t> documents = {0};
  bool has_documents = true;

  std::string write(const std::string& path) const {
    auto file = Hdf5File::create(path).value();
    auto require = [](const Status& status) { BOOST_REQUIRE_MESSAGE(status.is_ok(), status.to_string()); };
    const uint16_t narrow[] = {1, 2, 3};
    const float floats[] = {1, 2, 3};
    const void* tokens = type == ElementType::kF32 ? static_cast<const void*>(floats) : narrow;
    require(file.create_dataset("/tokens", type, {3}));
    require(file.write("/tokens", {0}, {3}, tokens));
    const auto count = static_cast<int64_t>(documents.size());
    if (has_documents) {
      require(file.create_dataset("/documents", ElementType::kI64, {count}));
      require(file.write("/documents", {0}, {count}, documents.data()));
    }
    const std::string sources = "[\"a.txt\"]";
    require(file.create_dataset("/sources", ElementType::kU8, {static_cast<int64_t>(sources.size())}));
    require(file.write("/sources", {0}, {static_cast<int64_t>(sources.size())}, sources.data()));
    require(file.set_attribute("/", "format", std::string("altiplano tokens")));
    require(file.set_attribute("/", "tokenizer", std::string("byte")));
    for (auto [key, value] : {std::pair<const char*, int64_t>{"format_version", 1},
                              {"num_tokens", num_tokens},
                              {"vocab_size", vocab_size},
                              {"min_id", min_id},
                              {"max_id", max_id},
                              {"max_id_offset", max_id_offset}})
      require(file.set_attribute("/", key, value));
    require(file.close());
    return path;
  }
};

std::string refusal(const std::string& path) {
  auto file = TokenFile::open(path);
  return file ? file->documents().status().message() : file.status().message();
}

}  // namespace

BOOST_AUTO_TEST_CASE(files_that_contradict_themselves_are_refused_with_what_is_wrong) {
  test::TemporaryDirectory dir;
  const std::string path = dir / "x.h5";
  BOOST_TEST(refusal(Forged{}.write(path)) == "");
  auto check = [&](const Forged& forged, const std::string& expected) {
    std::filesystem::remove(path);
    BOOST_TEST(refusal(forged.write(path)) == path + ": " + expected);
  };
  check({.type = ElementType::kF32}, "dataset '/tokens' is of f32; token ids are u16 or u32");
  check({.num_tokens = 4}, "dataset '/tokens' has 3 elements, attribute num_tokens says 4; pack the text again");
  check({.max_id = 300},
        "its attributes contradict each other: ids 1 to 300 (at token 2 of 3), vocabulary 257; pack the text again");
  check({.min_id = -1},
        "its attributes contradict each other: ids -1 to 3 (at token 2 of 3), vocabulary 257; pack the text again");
  check({.max_id_offset = 3},
        "its attributes contradict each other: ids 1 to 3 (at token 3 of 3), vocabulary 257; pack the text again");
  for (const std::vector<int64_t>& documents : {std::vector<int64_t>{1}, {0, 2, 2}, {0, 3}, {0, -1}, {}})
    check({.documents = documents},
          "dataset '/documents' is no ascending list of token offsets from 0; pack the text again");
  std::filesystem::remove(path);
  const std::string missing = refusal(Forged{.has_documents = false}.write(path));
  BOOST_TEST(missing.find("dataset '/documents'") != std::string::npos, missing);
}

BOOST_AUTO_TEST_CASE(an_id_above_what_the_file_promises_is_never_fed_to_a_model) {
  test::TemporaryDirectory dir;
  auto file = TokenFile::open(Forged{.max_id = 2, .max_id_offset = 1}.write(dir / "x.h5")).value();
  std::vector<int32_t> ids(3);
  Status status = file.read(0, ids);
  BOOST_TEST(status.message() ==
             (dir / "x.h5") + ": token 2 is 3, the file's own largest id is 2: it is damaged; pack the text again");
}
