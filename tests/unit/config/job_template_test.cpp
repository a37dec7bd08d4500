#include "framework/config/job_template.hpp"

#include <boost/test/unit_test.hpp>

#include "framework/base/text.hpp"
#include "tests/unit/config/job_fixture.hpp"

using namespace altiplano;
using namespace altiplano::test;

namespace {

const ChosenValues kChosen = {{"run.name", "first"},
                              {"model.kind", "gpt"},
                              {"train.max_steps", "10"},
                              {"train.global_batch_size", "8"},
                              {"train.seq_length", "16"},
                              {"data.validation.fraction", "0.1"},
                              {"lr_scheduler.warmup_steps", "2"}};

std::string template_text() {
  return commented_job(job_records_with_model(gpt_like_records()), kChosen, {"first.yaml"});
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_commented_job_has_the_chosen_values_and_defaults_for_the_rest) {
  auto job = load(template_text());
  BOOST_TEST_REQUIRE(job.is_ok(), job.status().message());
  BOOST_TEST(job->notices.empty());
  for (const auto& record : job->options.records()) {
    bool chosen = false;
    for (const auto& [key, value] : kChosen) chosen = chosen || key == record.key;
    BOOST_TEST(job->options.is_set(record.key) == chosen, record.key);
  }
}

BOOST_AUTO_TEST_CASE(every_key_stands_in_a_commented_job_with_its_meaning) {
  const std::string text = template_text();
  for (const auto& record : job_records_with_model(gpt_like_records())) {
    if (record.help.empty()) continue;
    BOOST_TEST(text.find("# " + record.help) != std::string::npos, record.key);
  }
}

BOOST_AUTO_TEST_CASE(defaults_in_comments_may_be_uncommented) {
  std::string text;
  for (const auto& line : split(template_text(), '\n')) {
    size_t at = line.find("# ");
    std::string rest = at == std::string::npos ? "" : line.substr(at + 2);
    bool is_entry = !rest.empty() && rest.find(' ') > rest.find(':') && rest.find(": ...") == std::string::npos &&
                    line.find(" (") == std::string::npos && at <= 2;
    bool is_section = at == 0 && rest.ends_with(":");
    text += (is_entry || is_section ? line.substr(0, at) + rest : line) + "\n";
  }
  auto job = load(text);
  BOOST_TEST_REQUIRE(job.is_ok(), job.status().message() << text);
  BOOST_TEST(job->options.is_set("comm.chunk_bytes"));
  BOOST_TEST(job->options.is_set("optimizer.betas"));
}
