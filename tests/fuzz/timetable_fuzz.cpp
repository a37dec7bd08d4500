// Timetables: what is read prints a text that is read as the same table; the verifier answers for any of them.
#include "framework/program/timetable.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace altiplano;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto table = Timetable::parse(fuzz::text_of(data, size));
  if (!table.is_ok()) return 0;
  const std::string text = table->to_string();
  const auto again = Timetable::parse(text);
  fuzz::require(again.is_ok() && again->to_string() == text, "a timetable's text reads back as the same table");
  if (verify_timetable(*table).is_ok()) max_in_flight(*table);
  return 0;
}
