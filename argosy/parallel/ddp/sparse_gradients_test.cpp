// Embeddings with sparse gradients through the wrapper.
#include <gmock/gmock.h>

#include "argosy/optim/sgd.h"
#include "argosy/parallel/traffic/traffic_test_support.h"

namespace argosy::parallel {
namespace {

using ::testing::HasSubstr;
using namespace argosy::parallel::testing;  // NOLINT(google-build-using-namespace)

/// Means of looked-up rows through a layer, in f64.
struct LookupImpl : torch::nn::Module {
  explicit LookupImpl(bool sparse, int64_t rows = 50) {
    table = register_module(
        "table", torch::nn::Embedding(torch::nn::EmbeddingOptions(rows, 4).sparse(sparse)));
    layer = register_module("layer", torch::nn::Linear(4, 2));
    to(torch::kDouble);
    fill(*this, 2);
  }
  torch::Tensor forward(const torch::Tensor& ids) { return layer(table(ids).mean(1)); }
  torch::nn::Embedding table{nullptr};
  torch::nn::Linear layer{nullptr};
};
TORCH_MODULE(Lookup);

/// Ids of a batch: some are both ranks', some come twice in one.
at::Tensor ids_of(int rank, int step) {
  return torch::tensor({{1 + rank, 7, 7}, {20 + step, 3 * rank, 40}}, at::kLong);
}

class SparseOver : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(SparseGradients, SparseOver, ::testing::Values("gloo", "shm"));

TEST_P(SparseOver, TheAverageIsThatOfDenseOnes) {
  over(GetParam(), 2, [](comm::Group& group) {
    DistributedDataParallel dense(Lookup(false), group);
    DistributedDataParallel sparse(Lookup(true), group);
    torch::optim::SGD one(dense.parameters(), 0.1), two(sparse.parameters(), 0.1);
    for (int step = 0; step < 4; ++step) {
      one.zero_grad();
      two.zero_grad();
      dense(ids_of(group.rank(), step)).square().sum().backward();
      sparse(ids_of(group.rank(), step)).square().sum().backward();
      const at::Tensor gradient = sparse.module()->table->weight.grad();
      EXPECT_TRUE(gradient.is_sparse());
      EXPECT_EQ(gradient._nnz(), 7) << "rows 0, 1, 2, 3, 7, 20 + step, 40";
      EXPECT_TRUE(
          at::allclose(gradient.to_dense(), dense.module()->table->weight.grad(), 1e-12, 1e-14));
      expect_equal_on_ranks({gradient.coalesce().values()}, group);
      one.step();
      two.step();
    }
    EXPECT_TRUE(at::allclose(dense.parameters()[0], sparse.parameters()[0], 1e-12, 1e-14));
    expect_equal_on_ranks(sparse.parameters(), group);
  });
}

TEST_P(SparseOver, RowsThatNobodyUsedDoNotTravel) {
  over(GetParam(), 2, [](comm::Group& group) {
    DistributedDataParallel sparse(Lookup(true, 100000), group);
    const auto sent = std::make_shared<SentBytes>();
    comm::add_hook(group, sent);
    sparse(ids_of(group.rank(), 0)).sum().backward();
    comm::remove_hook(group, sent);
    EXPECT_LT(sent->take(), 4096);
    EXPECT_LE(sparse.module()->table->weight.grad()._nnz(), 7);
  });
}

TEST_P(SparseOver, PassesWithoutSyncAreAveragedWithTheLast) {
  over(GetParam(), 2, [](comm::Group& group) {
    DistributedDataParallel dense(Lookup(false), group);
    DistributedDataParallel sparse(Lookup(true), group);
    {
      auto first = dense.no_sync();
      auto second = sparse.no_sync();
      dense(ids_of(group.rank(), 1)).sum().backward();
      sparse(ids_of(group.rank(), 1)).sum().backward();
    }
    dense(ids_of(group.rank(), 2)).sum().backward();
    sparse(ids_of(group.rank(), 2)).sum().backward();
    EXPECT_TRUE(at::allclose(sparse.module()->table->weight.grad().to_dense(),
                             dense.module()->table->weight.grad(),
                             1e-12,
                             1e-14));
  });
}

/// Two tables of which a rank may use one: with find_unused_parameters.
struct TwoTablesImpl : torch::nn::Module {
  TwoTablesImpl() {
    const auto options = torch::nn::EmbeddingOptions(9, 2).sparse(true);
    a = register_module("a", torch::nn::Embedding(options));
    b = register_module("b", torch::nn::Embedding(options));
    layer = register_module("layer", torch::nn::Linear(2, 1));
    to(torch::kDouble);
    fill(*this, 1);
  }
  torch::Tensor forward(const torch::Tensor& ids, bool first) {
    return layer(first ? a(ids) : b(ids));
  }
  torch::nn::Embedding a{nullptr}, b{nullptr};
  torch::nn::Linear layer{nullptr};
};
TORCH_MODULE(TwoTables);

TEST_P(SparseOver, ARankThatDidNotUseATableHasTheRowsOfTheOther) {
  over(GetParam(), 2, [](comm::Group& group) {
    DistributedDataParallel model(TwoTables(), group);
    model(torch::tensor({2, 5}), group.rank() == 0).sum().backward();
    for (const auto& table : {model.module()->a, model.module()->b}) {
      const at::Tensor gradient = table->weight.grad();
      ASSERT_TRUE(gradient.defined());
      EXPECT_EQ(gradient._nnz(), 2);
      expect_equal_on_ranks({gradient.coalesce().values()}, group);
    }
    model.module()->zero_grad();
    for (const auto& table : {model.module()->a, model.module()->b}) {
      table->weight.mutable_grad() = at::Tensor();
    }
    model(torch::tensor({1}), true).sum().backward();
    EXPECT_FALSE(model.module()->b->weight.grad().defined()) << "nobody used it";
  });
}

TEST(SparseGradients, WhatTheyDoNotGoWithIsNamed) {
  on_ranks(2, [](comm::Group& group) {
    EXPECT_THAT(
        error_of([&] { DistributedDataParallel model(Lookup(true), group, {.virtual_ranks = 4}); }),
        HasSubstr("sparse gradients need as many processes as virtual ranks"));
    DistributedDataParallel model(Lookup(true), group);
    EXPECT_THAT(error_of([&] { auto join = model.join(); }), HasSubstr("sparse gradients"));
    optim::Optimizer optimizer = optim::SGD(model, {.lr = 0.1});
    model(ids_of(group.rank(), 0)).sum().backward();
    EXPECT_THAT(error_of([&] { optimizer.step(); }), HasSubstr("got a sparse one"));
    torch::nn::Embedding alone(torch::nn::EmbeddingOptions(5, 2).sparse(true));
    EXPECT_THAT(error_of([&] { DistributedDataParallel wrapped(alone, group); }),
                HasSubstr("weights of sparse embeddings, and a wrapper needs a dense one"));
  });
}

}  // namespace
}  // namespace argosy::parallel
