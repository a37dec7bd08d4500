#include "framework/cost/op_work.hpp"

#include <boost/test/unit_test.hpp>

using namespace altiplano;

static OpWork of_matmul(const std::string& equation, Shape a, Shape b, Shape c) {
  const ValueType inputs[] = {{std::move(a), DType::kF32}, {std::move(b), DType::kF32}};
  const ValueType outputs[] = {{std::move(c), DType::kF32}};
  return op_work("matmul", {{"equation", equation}}, inputs, outputs);
}

BOOST_AUTO_TEST_CASE(a_products_smallest_dimension_is_that_of_its_rows_columns_and_inner_size) {
  BOOST_TEST(of_matmul("[b,s,d] [d,f] -> [b,s,f]", {2, 8, 32}, {32, 64}, {2, 8, 64}).smallest_dim == 16);
  BOOST_TEST(of_matmul("[b,s,d] [b,s,f] -> [d,f]", {2, 8, 32}, {2, 8, 64}, {32, 64}).smallest_dim == 16);
  BOOST_TEST(of_matmul("[b,s,d] [d,f] -> [b,s,f]", {2, 8, 3}, {3, 64}, {2, 8, 64}).smallest_dim == 3);
  // A batch of products is as small as one of them.
  BOOST_TEST(of_matmul("[g,m,k] [g,k,n] -> [g,m,n]", {100, 8, 4}, {100, 4, 9}, {100, 8, 9}).smallest_dim == 4);
}

BOOST_AUTO_TEST_CASE(what_sums_without_rows_and_columns_is_no_product) {
  const ValueType table{{50, 4}, DType::kF32}, tokens{{2, 3}, DType::kI64}, rows{{2, 3, 4}, DType::kF32};
  const ValueType inputs[] = {rows, tokens}, outputs[] = {table};
  BOOST_TEST(op_work("embedding_grad", {}, inputs, outputs).smallest_dim == 0);
  const ValueType both[] = {rows, rows}, sum[] = {rows};
  BOOST_TEST(op_work("add", {}, both, sum).smallest_dim == 0);
}

BOOST_AUTO_TEST_CASE(a_products_alignment_is_the_power_of_two_that_divides_all_its_dims) {
  BOOST_TEST(of_matmul("[b,s,d] [d,f] -> [b,s,f]", {2, 8, 32}, {32, 64}, {2, 8, 64}).alignment == 16);
  BOOST_TEST(of_matmul("[b,s,d] [v,d] -> [b,s,v]", {2, 8, 32}, {57, 32}, {2, 8, 57}).alignment == 1);
  BOOST_TEST(of_matmul("[b,s,d] [d,f] -> [b,s,f]", {2, 8, 36}, {36, 64}, {2, 8, 64}).alignment == 4);
}

BOOST_AUTO_TEST_CASE(attention_has_its_scores_between_its_products_and_a_product_nothing) {
  const ValueType q{{2, 8, 3, 4}, DType::kBF16}, statistics{{2, 3, 8}, DType::kF32};
  const ValueType inputs[] = {q, q, q}, outputs[] = {q, statistics};
  const Attributes attributes{{"causal", int64_t{1}}};
  BOOST_TEST(op_work("attention", attributes, inputs, outputs).inner_bytes.value == 2 * 3 * 8 * 8 * 2);
  const ValueType qkv[] = {{{2, 8, 3, 3, 4}, DType::kBF16}};
  BOOST_TEST(op_work("packed_attention", attributes, qkv, outputs).inner_bytes.value == 2 * 3 * 8 * 8 * 2);
  BOOST_TEST(of_matmul("[m,k] [k,n] -> [m,n]", {4, 4}, {4, 4}, {4, 4}).inner_bytes.value == 0);
}
