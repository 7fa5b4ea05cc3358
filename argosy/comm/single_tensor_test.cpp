/// PyTorch's collectives on one tensor, on 1, 2 and 3 ranks.
#include "argosy/comm/single_tensor.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/comm/test_ranks.h"

namespace argosy::comm {
namespace {

using test::error_text;
using ::testing::HasSubstr;
using testing::with_threads;

class SingleTensorTest : public ::testing::TestWithParam<int> {};

/// Rows 10 r and 10 r + 1 for rank r.
at::Tensor rows_of(int rank) {
  return at::stack({at::full({3}, 10.0 * rank), at::full({3}, 10.0 * rank + 1)});
}

TEST_P(SingleTensorTest, AllGatherIntoTensorChainsOrStacks) {
  with_threads(GetParam(), [](Group& world) {
    const int64_t n = world.size();
    std::vector<at::Tensor> expected;
    for (int rank = 0; rank < n; ++rank) {
      expected.push_back(rows_of(rank));
    }
    const at::Tensor chained = at::zeros({2 * n, 3}), stacked = at::zeros({n, 2, 3});
    all_gather_into_tensor(chained, rows_of(world.rank()), world);
    EXPECT_TRUE(chained.equal(at::cat(expected)));
    all_gather_into_tensor_async(stacked, rows_of(world.rank()), world).wait();
    EXPECT_TRUE(stacked.equal(at::stack(expected)));
    const at::Tensor scalars = at::zeros({n});
    all_gather_into_tensor(scalars, at::scalar_tensor(world.rank()), world);
    EXPECT_TRUE(scalars.equal(at::arange(n).to(at::kFloat)));
  });
}

TEST_P(SingleTensorTest, ReduceScatterTensorGivesEachRankItsPart) {
  with_threads(GetParam(), [](Group& world) {
    const int64_t n = world.size();
    const at::Tensor input = at::arange(4 * n).to(at::kFloat) + static_cast<double>(world.rank());
    const at::Tensor part = at::zeros({4});
    reduce_scatter_tensor(part, input, world);
    const double ranks = static_cast<double>(n * (n - 1)) / 2;
    const at::Tensor mine = at::arange(4 * n).to(at::kFloat).narrow(0, 4 * world.rank(), 4);
    EXPECT_TRUE(part.equal(n * mine + ranks));
    reduce_scatter_tensor_async(part, input.reshape({n, 4}), world, {.op = ReduceOp::kMax}).wait();
    EXPECT_TRUE(part.equal(mine + static_cast<double>(n - 1)));
  });
}

TEST_P(SingleTensorTest, AllToAllSingleCutsDimZero) {
  with_threads(GetParam(), [](Group& world) {
    const int n = world.size(), me = world.rank();
    const at::Tensor even = at::full({2L * n, 2}, me), got = at::zeros({2L * n, 2}, even.options());
    all_to_all_single(got, even, world);
    EXPECT_TRUE(got.select(1, 0).equal(at::arange(n).repeat_interleave(2)));
    // Rank r sends r + 1 rows to each, and so gets 1, 2, … n.
    std::vector<int64_t> to(static_cast<size_t>(n), me + 1), from(static_cast<size_t>(n));
    std::iota(from.begin(), from.end(), 1);
    const at::Tensor uneven = at::full({int64_t{n} * (me + 1)}, me);
    const at::Tensor all = at::zeros({int64_t{n} * (n + 1) / 2}, uneven.options());
    all_to_all_single(all, uneven, world, {.output_split_sizes = from, .input_split_sizes = to});
    EXPECT_TRUE(all.equal(at::arange(n).repeat_interleave(at::arange(1, n + 1))));
  });
}

TEST_P(SingleTensorTest, BatchedMessagesGoAround) {
  with_threads(GetParam(), [](Group& world) {
    const int n = world.size(), me = world.rank();
    if (n == 1) {
      return;
    }
    const at::Tensor out = at::full({2}, me), in = at::zeros({2}, out.options());
    // Everybody lists the receive first.
    for (const Work& work :
         batch_isend_irecv({{.kind = P2POp::Kind::kRecv, .tensor = in, .peer = (me + n - 1) % n},
                            {.kind = P2POp::Kind::kSend, .tensor = out, .peer = (me + 1) % n}},
                           world)) {
      work.wait();
    }
    EXPECT_TRUE(in.equal(at::full({2}, (me + n - 1) % n)));
    const at::Tensor again = at::zeros({2}, out.options());
    const Work receiving = irecv(again, (me + n - 1) % n, world, {.tag = 1});
    isend(out, (me + 1) % n, world, {.tag = 1}).wait();
    receiving.wait();
    EXPECT_TRUE(again.equal(in));
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, SingleTensorTest, ::testing::Values(1, 2, 3));

TEST(SingleTensor, WhatDoesNotFitIsNamed) {
  with_threads(2, [](Group& world) {
    const auto error = [](const auto& call) { return error_text<UsageError>(call); };
    EXPECT_THAT(error([&] { all_gather_into_tensor(at::zeros({5}), at::zeros({2}), world); }),
                HasSubstr("the tensor of all 2 parts of [2]: expected [4] or [2, 2], got [5]"));
    EXPECT_THAT(error([&] { reduce_scatter_tensor(at::zeros({}), at::zeros({3}), world); }),
                HasSubstr("or [2], got [3]"));
    EXPECT_THAT(error([&] { all_to_all_single(at::zeros({4}), at::zeros({3}), world); }),
                HasSubstr("input has 3 along dim 0, which 2 ranks cannot share equally"));
    EXPECT_THAT(
        error([&] {
          all_to_all_single(at::zeros({4}), at::zeros({4}), world, {.input_split_sizes = {1, 2}});
        }),
        HasSubstr("split sizes of input: expected 2 with the sum 4, got [1, 2]"));
    EXPECT_THAT(error([&] { (void)batch_isend_irecv({}, world); }), HasSubstr("no messages"));
  });
}

}  // namespace
}  // namespace argosy::comm
