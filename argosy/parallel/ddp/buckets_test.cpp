#include "argosy/parallel/ddp/buckets.h"

#include <map>
#include <numeric>
#include <set>

#include <gmock/gmock.h>

#include "argosy/parallel/ddp/coalesced_broadcast.h"
#include "argosy/parallel/ddp/ddp_test_support.h"
#include "argosy/parallel/ddp/outputs.h"
#include "argosy/parallel/ddp/verify.h"

namespace argosy::parallel::ddp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<at::Tensor> of_sizes(std::initializer_list<int64_t> sizes) {
  std::vector<at::Tensor> out;
  for (int64_t n : sizes) {
    out.push_back(at::zeros({n}));
  }
  return out;
}

TEST(PlanBuckets, ClosesWhenTheLimitIsReached) {
  const auto parameters = of_sizes({4, 4, 4, 4, 4});  // 16 bytes each
  const std::vector<size_t> order = {4, 3, 2, 1, 0};
  EXPECT_EQ(plan_buckets(parameters, order, {.first_bytes = 16, .bytes = 32}),
            (BucketPlan{{4}, {3, 2}, {1, 0}}));
  EXPECT_EQ(plan_buckets(parameters, order, {.first_bytes = 17, .bytes = 33}),
            (BucketPlan{{4, 3}, {2, 1, 0}}));
  EXPECT_EQ(plan_buckets(parameters, order, {.first_bytes = 1, .bytes = 1}),
            (BucketPlan{{4}, {3}, {2}, {1}, {0}}));
  EXPECT_EQ(plan_buckets(parameters, order, {.first_bytes = 1 << 20, .bytes = 1 << 20}),
            (BucketPlan{{4, 3, 2, 1, 0}}));
}

TEST(PlanBuckets, KeepsDtypesApartAndOrdersByCompletion) {
  std::vector<at::Tensor> parameters = of_sizes({4, 4, 4});
  parameters.push_back(at::zeros({2}, at::kDouble));
  parameters.push_back(at::zeros({2}, at::kDouble));
  // f64 arrives first and last: its bucket is complete after the first of f32.
  const std::vector<size_t> order = {3, 0, 1, 4, 2};
  EXPECT_EQ(plan_buckets(parameters, order, {.first_bytes = 32, .bytes = 32}),
            (BucketPlan{{0, 1}, {3, 4}, {2}}));
}

TEST(MakeBuckets, ViewsHaveTheLayoutOfTheirParameters) {
  const std::vector<at::Tensor> parameters = {
      at::randn({3}),
      at::randn({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast),
      at::randn({4, 6}).t(),
      at::randn({1, 5}).expand({3, 5}),
      at::zeros({0, 7}),
      at::randn({}),
  };
  std::vector<size_t> order(parameters.size());
  std::iota(order.begin(), order.end(), size_t{0});
  auto buckets = make_buckets({order}, parameters);
  ASSERT_EQ(buckets.size(), 1U);
  Bucket& bucket = buckets.front();
  for (size_t k = 0; k < parameters.size(); ++k) {
    const at::Tensor& view = bucket.views[k];
    EXPECT_EQ(view.sizes(), parameters[k].sizes());
    EXPECT_TRUE(view.is_alias_of(bucket.flat));
    EXPECT_TRUE(view.is_non_overlapping_and_dense());
    EXPECT_EQ(view.storage_offset() * 4 % 64, 0) << k;
    if (k < 3) {
      EXPECT_EQ(view.strides(), parameters[k].strides());
    }
    view.fill_(1);
  }
  const double elements = 3 + 120 + 24 + 15 + 0 + 1;
  EXPECT_EQ(bucket.flat.sum().item<double>(), elements);  // no overlap, and the gaps are zero
  EXPECT_NO_THROW(bucket.views[0].detach_());             // libtorch's zero_grad() does this
}

TEST(SameMemory, ComparesPlaceAndLayout) {
  const at::Tensor a = at::zeros({4, 4});
  EXPECT_TRUE(same_memory(a, a.detach()));
  EXPECT_FALSE(same_memory(a, a.t()));
  EXPECT_FALSE(same_memory(a, a.clone()));
  EXPECT_FALSE(same_memory(a, at::Tensor()));
  EXPECT_FALSE(same_memory(a, a.narrow(0, 0, 2)));
}

TEST(OutputCollector, FindsTensorsInNestedTypes) {
  const at::Tensor a = at::zeros({1});
  const at::Tensor b = at::ones({1});
  std::vector<at::Tensor> found;
  OutputCollector{found}(a);
  EXPECT_EQ(found.size(), 1U);
  found.clear();
  OutputCollector{found}(std::make_tuple(
      a, 3, std::vector<at::Tensor>{b, a}, std::optional<at::Tensor>(b), std::string("text")));
  EXPECT_EQ(found.size(), 4U);
  found.clear();
  OutputCollector{found}(std::map<std::string, at::Tensor>{{"x", a}, {"y", b}});
  EXPECT_EQ(found.size(), 2U);
  found.clear();
  OutputCollector{found}(at::Tensor());
  EXPECT_TRUE(found.empty());
}

TEST(OutputsIn, ReplacesTensorsOfOneTypeInNestedTypes) {
  const at::Tensor half = at::ones({1}, at::kBFloat16);
  auto outputs = std::make_tuple(half,
                                 3,
                                 std::vector<at::Tensor>{at::Tensor(), half},
                                 std::optional<at::Tensor>(half),
                                 std::map<std::string, at::Tensor>{{"x", half}},
                                 at::ones({1}, at::kDouble),
                                 std::set<int>{1});
  OutputsIn{at::kBFloat16}(outputs);
  EXPECT_EQ(std::get<0>(outputs).scalar_type(), at::kFloat);
  EXPECT_EQ(std::get<2>(outputs)[1].scalar_type(), at::kFloat);
  EXPECT_EQ(std::get<3>(outputs)->scalar_type(), at::kFloat);
  EXPECT_EQ(std::get<4>(outputs)["x"].scalar_type(), at::kFloat);
  EXPECT_EQ(std::get<5>(outputs).scalar_type(), at::kDouble);
  EXPECT_EQ(half.scalar_type(), at::kBFloat16) << "the caller's own";
}

TEST(Signature, NamesWhatDiffers) {
  torch::nn::Sequential small(torch::nn::Linear(2, 3));
  torch::nn::Sequential large(torch::nn::Linear(2, 4), torch::nn::Linear(4, 1));
  large->parameters()[1].requires_grad_(false);
  const auto a = describe(*small, {});
  const auto b = describe(*large, {.bucket_cap_bytes = 7});
  EXPECT_TRUE(differences(a, a).empty());
  EXPECT_THAT(differences(a, b),
              ElementsAre("option bucket_cap_bytes 7, rank 0: 26214400",
                          "0.weight f32 [4, 2], rank 0: f32 [3, 2]",
                          "0.bias f32 [4] frozen, rank 0: f32 [3]",
                          "1.weight f32 [1, 4], rank 0 has no such",
                          "1.bias f32 [1], rank 0 has no such"));
  EXPECT_THAT(differences(b, a).back(), HasSubstr("no 1.bias, rank 0: f32 [1]"));
}

TEST(Signature, KnowsLayoutTiesAndOrder) {
  torch::nn::Sequential plain(torch::nn::Conv2d(2, 3, 2));
  torch::nn::Sequential last(torch::nn::Conv2d(2, 3, 2));
  last->parameters()[0].set_data(last->parameters()[0].contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_THAT(differences(describe(*plain, {}), describe(*last, {})),
              ElementsAre(HasSubstr("0.weight f32 [3, 2, 2, 2] strides [8, 1, 4, 2]")));
  Signature ab{{{"a", "1"}, {"b", "2"}}};
  Signature ba{{{"b", "2"}, {"a", "1"}}};
  EXPECT_THAT(differences(ab, ba), ElementsAre(HasSubstr("order of registration")));
}

TEST(CoalescedBroadcast, MovesEveryTypeInFewMessages) {
  testing::on_ranks(3, [](comm::Group& group) {
    std::vector<at::Tensor> tensors;
    auto add = [&](at::ScalarType type, at::IntArrayRef sizes) {
      tensors.push_back(at::full(sizes, group.rank() == 1 ? 1 : 0, type));
    };
    for (auto type : {at::kFloat, at::kBool, at::kLong, at::kShort, at::kHalf, at::kComplexFloat}) {
      add(type, {3});
      add(type, {});
      add(type, {0});
    }
    tensors.push_back(at::Tensor());
    tensors.push_back(tensors.front());  // twice
    tensors.push_back(at::full({8, 8}, group.rank() == 1 ? 1.0 : 0.0).t().narrow(0, 2, 3));
    add(at::kFloat, {1000});  // alone
    const CoalescedBroadcast broadcast(tensors, 2000);
    EXPECT_EQ(broadcast.messages(), 2U);
    broadcast.run(group, 1, std::chrono::milliseconds(0));
    for (const auto& tensor : tensors) {
      if (tensor.defined() && tensor.numel() > 0) {
        EXPECT_TRUE(tensor.to(at::kComplexFloat).eq(1).all().item<bool>()) << tensor;
      }
    }
  });
}

TEST(DdpOptions, NamesTheField) {
  EXPECT_THAT(testing::error_of([] { DdpOptions{.first_bucket_bytes = 0}.validate(); }),
              HasSubstr("first_bucket_bytes must be positive, got 0"));
  EXPECT_THAT(testing::error_of([] { DdpOptions{.bucket_cap_bytes = -1}.validate(); }),
              HasSubstr("bucket_cap_bytes must be positive, got -1"));
  EXPECT_THAT(
      testing::error_of([] { DdpOptions{.timeout = std::chrono::milliseconds(-5)}.validate(); }),
      HasSubstr("timeout must not be negative"));
}

}  // namespace
}  // namespace argosy::parallel::ddp
