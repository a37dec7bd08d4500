#include "framework/config/job_values.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/config/job_fixture.hpp"

using namespace altiplano;
using namespace altiplano::test;

BOOST_AUTO_TEST_CASE(options_become_the_types_of_the_layers_below) {
  auto job = load(kSmallest +
                  "train.precision: bf16\n"
                  "optimizer: {name: adamw, betas: [0.8, 0.9], eps: 1e-6, weight_decay: 0.01}\n"
                  "comm: {timeout_seconds: 2.5, chunk_bytes: 128, check_calls: true}\n"
                  "device: {threads: 3}\n");
  BOOST_TEST_REQUIRE(job.is_ok(), job.status().message());
  BOOST_TEST((job_dtype(job->options) == DType::kBF16));
  OptimizerOptions optimizer = job_optimizer(job->options);
  BOOST_TEST(optimizer.name == "adamw");
  BOOST_TEST(optimizer.beta1 == 0.8);
  BOOST_TEST(optimizer.beta2 == 0.9);
  BOOST_TEST(optimizer.epsilon == 1e-6);
  BOOST_TEST(optimizer.weight_decay == 0.01);
  BOOST_TEST(optimizer.momentum == 0.0);
  BOOST_TEST(job_comm_options(job->options).deadline.count() == 2500);
  BOOST_TEST(job_comm_options(job->options).chunk_bytes == 128);
  BOOST_TEST(job_comm_options(job->options).check_calls);
  BOOST_TEST(job_device_options(job->options, 4).threads == 3);
  BOOST_TEST(job_device_options(job->options, 4).ranks_on_host == 4);
}

BOOST_AUTO_TEST_CASE(defaults_leave_threads_to_the_device_and_train_in_fp32) {
  auto job = load(kSmallest + "optimizer: {name: sgd, momentum: 0.9}\n");
  BOOST_TEST_REQUIRE(job.is_ok(), job.status().message());
  BOOST_TEST((job_dtype(job->options) == DType::kF32));
  BOOST_TEST(job_optimizer(job->options).momentum == 0.9);
  BOOST_TEST(job_device_options(job->options, 4).threads == 0);
  BOOST_TEST(!job_comm_options(job->options).check_calls);
  BOOST_TEST((job_dtype(load(kSmallest + "train.precision: fp64\n")->options) == DType::kF64));
}
