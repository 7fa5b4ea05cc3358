#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/data/data_loader.h"
#include "argosy/data/subset.h"
#include "argosy/data/tensor_dataset.h"

namespace argosy::data {
namespace {

using testing::ElementsAre;

TEST(TensorDataset, GatherIsIndexSelectForAnyStrides) {
  TensorPool pool;
  const BatchContext context{.pool = &pool};
  const std::vector<int64_t> indices{4, 0, 4, 2};
  const at::Tensor index = torch::tensor(indices);
  const at::Tensor base = torch::rand({5, 3, 4});
  for (const at::Tensor& source : {base,
                                   base.transpose(1, 2),
                                   base.slice(0, 0, 5, 1).slice(2, 1, 3),
                                   base.permute({1, 0, 2}).transpose(0, 1),
                                   base.expand({5, 3, 4}),
                                   torch::arange(10).slice(0, 0, 10, 2),
                                   torch::rand({1, 7}).expand({5, 7})}) {
    EXPECT_TRUE(at::equal(gather_rows(source, indices, context), source.index_select(0, index)));
    EXPECT_TRUE(at::equal(gather_rows(source, indices, {}), source.index_select(0, index)));
  }
}

TEST(TensorDataset, FastPathAndSamplePathAgree) {
  const TensorDataset set(torch::rand({7, 2, 2}), torch::arange(7));
  EXPECT_EQ(set.size(), 7);
  DataLoader fast(set, {.batch_size = 3});
  DataLoader slow(set, {.batch_size = 3}, [](const auto& samples, const BatchContext& context) {
    return DefaultCollate()(samples, context);
  });
  auto it = slow.begin();
  for (auto& [x, y] : fast) {
    auto& [slow_x, slow_y] = *it;
    EXPECT_TRUE(at::equal(x, slow_x));
    EXPECT_TRUE(at::equal(y, slow_y));
    ++it;
  }
  EXPECT_TRUE(it == slow.end());
}

TEST(TensorDataset, RowsThatDisagreeAreRefused) {
  try {
    const TensorDataset set(torch::rand({7, 2}), torch::arange(6));
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "[data.TensorDataset] expected equal first dimensions, got 7 in tensor 0 and 6 in "
                 "tensor 1");
  }
  EXPECT_THROW(TensorDataset(torch::tensor(1.0)), UsageError);
}

TEST(TensorDataset, AnIndexOutsideIsADataErrorWithTheIndex) {
  TensorPool pool;
  try {
    (void)gather_rows(torch::rand({5, 2}), std::vector<int64_t>{1, 5}, {.pool = &pool});
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(error.place().index, 5);
  }
}

TEST(Subset, TakesTheListedSamplesAlsoByTheFastPath) {
  const TensorDataset set(torch::arange(10));
  Subset subset(set, {9, 3, 5});
  EXPECT_EQ(subset.size(), 3);
  EXPECT_EQ(subset.get(1)[0].item<int64_t>(), 3);
  DataLoader loader(subset, {.batch_size = 3});
  for (auto& [x] : loader) {
    EXPECT_TRUE(at::equal(x, torch::tensor({9, 3, 5}, torch::kLong)));
  }
  EXPECT_THROW(Subset(set, {10}), UsageError);
}

struct Noise {
  int64_t size() const { return 20; }
  std::pair<int64_t, int64_t> get(int64_t index, Random& random) const {
    return {index, random.integer(0, 1'000'000'000)};
  }
};

TEST(Subset, KeepsTheRandomStreamsOfTheWholeSet) {
  const Noise noise;
  DataLoader whole(noise, {.batch_size = 20, .seed = 3});
  at::Tensor expected = std::get<1>(*whole.begin()).clone();
  for (auto& [i, v] :
       DataLoader(Subset(Subset(noise, {7, 9, 11, 13}), {3, 1}), {.batch_size = 2, .seed = 3})) {
    EXPECT_TRUE(at::equal(i, torch::tensor({13, 9}, torch::kLong)));
    EXPECT_TRUE(at::equal(v, expected.index_select(0, i)));
  }
}

TEST(RandomSplit, PartsAreDisjointAndTheWhole) {
  auto [train, valid, rest] = random_split(Noise(), {0.5, 0.25, 0.25}, {.seed = 43});
  EXPECT_EQ(train.size() + valid.size() + rest.size(), 20);
  std::set<int64_t> all(train.indices().begin(), train.indices().end());
  all.insert(valid.indices().begin(), valid.indices().end());
  all.insert(rest.indices().begin(), rest.indices().end());
  EXPECT_EQ(all.size(), 20U);
  auto [again, unused1, unused2] = random_split(Noise(), {0.5, 0.25, 0.25}, {.seed = 43});
  EXPECT_EQ(again.indices(), train.indices());
  EXPECT_NE(std::get<0>(random_split(Noise(), {10, 10}, {.seed = 44})).indices(), train.indices());
}

TEST(RandomSplit, SizesAreTorchsAndPaddles) {
  EXPECT_THAT(split_sizes(10, std::vector{0.33, 0.33, 0.34}), ElementsAre(4, 3, 3));
  EXPECT_THAT(split_sizes(11, std::vector{0.3, 0.3, 0.4}), ElementsAre(4, 3, 4));
  EXPECT_THAT(split_sizes(0, std::vector{0.5, 0.5}), ElementsAre(0, 0));
  EXPECT_THROW((void)split_sizes(10, std::vector{0.5, 0.6}), UsageError);
  EXPECT_THROW((void)random_split(Noise(), {10, 11}), UsageError);
}

}  // namespace
}  // namespace argosy::data
