// on_error: what becomes of samples that throw a DataError, and how it is counted and said.
#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "argosy/base/error.h"
#include "argosy/data/data_loader.h"
#include "argosy/data/data_loader_test_support.h"
#include "argosy/data/subset.h"

namespace argosy::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace argosy::data::loader_test;  // NOLINT(google-build-using-namespace)

/// Pictures of which some are torn. Sample i: i and a draw.
struct Torn {
  int64_t n = 20;
  std::set<int64_t> bad{};
  int64_t bug = -1;  // throws what is no DataError
  int64_t size() const { return n; }
  std::tuple<int64_t, double> get(int64_t index, Random& random) const {
    if (bad.count(index) > 0) {
      throw DataError("vision.jpeg", "truncated", {.path = std::to_string(index) + ".jpg"});
    }
    if (index == bug) {
      throw std::runtime_error("a bug");
    }
    return {index, random.uniform()};
  }
};

/// The same by whole batches; `names`: whether its errors say which sample.
struct TornBatches : Torn {
  bool names = true;
  bool whole = false;  // what it throws is no sample's fault
  std::tuple<at::Tensor, at::Tensor> get_batch(std::span<const int64_t> indices,
                                               const BatchContext& context) const {
    std::vector<int64_t> items;
    std::vector<double> draws;
    if (whole && indices.size() > 1) {
      throw DataError("test", "too many at once");
    }
    for (const int64_t index : indices) {
      Random random = context.random(index);
      try {
        const auto [item, draw] = get(index, random);
        items.push_back(item);
        draws.push_back(draw);
      } catch (const DataError& error) {
        throw names ? error.with_index(index) : error;
      }
    }
    return {torch::tensor(items), torch::tensor(draws, torch::kDouble)};
  }
};

std::vector<std::vector<int64_t>> items_of(auto& loader) {
  std::vector<std::vector<int64_t>> batches;
  for (auto& [items, draws] : loader) {
    const auto* data = items.template data_ptr<int64_t>();
    batches.emplace_back(data, data + items.numel());
  }
  return batches;
}

template <typename Set>
class BadSamplesOf : public ::testing::Test {
 protected:
  Set torn(const std::set<int64_t>& bad) const {
    Set set;
    set.bad = bad;
    if constexpr (std::is_same_v<Set, TornBatches>) {
      set.names = names;
    }
    return set;
  }
  bool names = true;
};
struct SilentBatches : TornBatches {
  SilentBatches() { names = false; }
};
using Sets = ::testing::Types<Torn, TornBatches, SilentBatches>;
TYPED_TEST_SUITE(BadSamplesOf, Sets);

TYPED_TEST(BadSamplesOf, SkippedShortenTheirBatchAndLeaveEmptyOnesOut) {
  const TypeParam set = this->torn({1, 2, 8, 9, 10, 11, 19});
  for (const int threads : {0, 1, 2, 8}) {
    DataLoader loader(set, {.batch_size = 4, .num_workers = threads, .on_error = OnError::kSkip});
    EXPECT_THAT(items_of(loader),
                ElementsAre(ElementsAre(0, 3),
                            ElementsAre(4, 5, 6, 7),
                            ElementsAre(12, 13, 14, 15),
                            ElementsAre(16, 17, 18)));
    const LoaderStats stats = loader.stats();
    EXPECT_EQ(stats.batches, 4);
    EXPECT_EQ(stats.samples, 13);
    EXPECT_EQ(stats.bad.skipped, 7);
    EXPECT_EQ(stats.bad.replaced, 0);
    EXPECT_THAT(stats.bad.messages,
                ElementsAre("[vision.jpeg] 1.jpg: truncated (sample 1)",
                            "[vision.jpeg] 2.jpg: truncated (sample 2)",
                            "[vision.jpeg] 8.jpg: truncated (sample 8)"));
  }
}

TYPED_TEST(BadSamplesOf, ReplacedByTheNextGoodOneWithItsOwnStream) {
  const TypeParam set = this->torn({1, 2, 19});
  const TypeParam whole = this->torn({});
  DataLoader good(whole, {.batch_size = 20, .seed = 3});
  const at::Tensor draws = std::get<1>(*good.begin()).clone();
  for (const int threads : {0, 1, 2, 8}) {
    DataLoader loader(
        set, {.batch_size = 5, .num_workers = threads, .seed = 3, .on_error = OnError::kReplace});
    std::vector<int64_t> all;
    for (auto& [items, values] : loader) {
      EXPECT_TRUE(at::equal(values, draws.index_select(0, items)));
      all.insert(
          all.end(), items.template data_ptr<int64_t>(), items.template data_ptr<int64_t>() + 5);
    }
    EXPECT_THAT(all,
                ElementsAre(0, 3, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 0));
    EXPECT_EQ(loader.stats().bad.replaced, 3);
    EXPECT_THAT(loader.stats().bad.messages.front(),
                "[vision.jpeg] 1.jpg: truncated (sample 1), replaced by sample 3");
  }
}

TYPED_TEST(BadSamplesOf, RaisedByDefault) {
  DataLoader loader(this->torn({5}), {.batch_size = 4});
  EXPECT_THROW((void)items_of(loader), DataError);
  EXPECT_EQ(loader.state().position, 1);
  EXPECT_EQ(loader.stats().bad.count(), 0);
}

TYPED_TEST(BadSamplesOf, ABugIsRaisedWhateverOnErrorSays) {
  TypeParam set = this->torn({1});
  set.bug = 6;
  for (const OnError on_error : {OnError::kSkip, OnError::kReplace}) {
    DataLoader loader(set, {.batch_size = 4, .on_error = on_error});
    try {
      (void)items_of(loader);
      FAIL() << "nothing was thrown";
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("a bug"));
    }
  }
}

TYPED_TEST(BadSamplesOf, ADataSetWithoutAGoodSampleIsAnError) {
  std::set<int64_t> all;
  for (int64_t i = 0; i < 20; ++i) {
    all.insert(i);
  }
  DataLoader skipping(this->torn(all), {.batch_size = 4, .on_error = OnError::kSkip});
  EXPECT_THAT(
      [&] {
        try {
          (void)items_of(skipping);
        } catch (const DataError& error) {
          return std::string(error.what());
        }
        return std::string();
      }(),
      HasSubstr("epoch 0: not one sample was good, 20 were skipped (on_error = skip). The first: "
                "[vision.jpeg] 0.jpg: truncated (sample 0)"));
  DataLoader replacing(this->torn(all), {.batch_size = 4, .on_error = OnError::kReplace});
  EXPECT_THROW((void)items_of(replacing), DataError);
}

TYPED_TEST(BadSamplesOf, ASubsetNamesThemByTheWholeSet) {
  const TypeParam set = this->torn({7});
  DataLoader loader(Subset(set, {3, 7, 7, 5}), {.batch_size = 4, .on_error = OnError::kReplace});
  EXPECT_THAT(items_of(loader), ElementsAre(ElementsAre(3, 5, 5, 5)));
  EXPECT_THAT(loader.stats().bad.messages.front(), HasSubstr("(sample 7), replaced by sample 5"));
}

TEST(BadSamplesOfABatch, AnErrorThatIsNoSamplesFaultIsRaised) {
  TornBatches set;
  set.whole = true;
  DataLoader loader(set, {.batch_size = 4, .on_error = OnError::kSkip});
  try {
    (void)items_of(loader);
    FAIL() << "nothing was thrown";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "[test] too many at once (batch 0 of epoch 0, samples 0, 1, 2, 3)");
  }
}

TEST(BadSamplesReport, TheFirstAndTheSumAreSaidInTheLog) {
  ::testing::internal::CaptureStderr();
  DataLoader loader(Torn{.bad = {3, 9, 10, 11, 12}},
                    {.batch_size = 2, .num_workers = 2, .on_error = OnError::kSkip});
  (void)items_of(loader);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log,
              HasSubstr("a bad sample was skipped: [vision.jpeg] 3.jpg: truncated (sample 3)."));
  EXPECT_THAT(log, HasSubstr("epoch 0: 5 bad samples were skipped: "));
  EXPECT_THAT(log, HasSubstr("10.jpg: truncated (sample 10); …"));
}

// The place of a checkpoint counts batches that were left out, too.
TEST(BadSamplesResume, GoesOnBehindABatchThatWasLeftOut) {
  const Torn set{.n = 20, .bad = {4, 5, 6, 7}};
  const DataLoaderOptions options{.batch_size = 4, .num_workers = 2, .on_error = OnError::kSkip};
  DataLoader loader(set, options);
  int64_t taken = 0;
  for ([[maybe_unused]] auto& batch : loader) {
    if (++taken == 2) {
      break;
    }
  }
  EXPECT_EQ(loader.state().position, 3);
  DataLoader resumed(set, options);
  resumed.load_state(loader.state());
  EXPECT_THAT(items_of(resumed),
              ElementsAre(ElementsAre(12, 13, 14, 15), ElementsAre(16, 17, 18, 19)));
}

}  // namespace
}  // namespace argosy::data
