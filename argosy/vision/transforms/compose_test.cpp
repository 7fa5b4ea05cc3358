#include "argosy/vision/transforms/compose.h"

#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/vision/transforms/choose.h"
#include "argosy/vision/transforms/color.h"
#include "argosy/vision/transforms/crop.h"
#include "argosy/vision/transforms/flip.h"
#include "argosy/vision/transforms/tensor.h"
#include "argosy/vision/transforms/test_pictures.h"

namespace argosy::vision {
namespace {

using image::Image;
using image::Order;
using test::bytes;
using test::complaint;
using test::equal;
using test::stream;
using testing::AllOf;
using testing::HasSubstr;

/// A step that notes its first draw under its name.
struct Note {
  std::string_view label;
  std::vector<std::pair<std::string_view, uint64_t>>* notes;
  [[nodiscard]] std::string_view name() const { return label; }
  Picture operator()(Picture picture, data::Random& random) const {
    notes->emplace_back(label, random());
    return picture;
  }
};

class Streams : public testing::Test {
 protected:
  using Draws = std::vector<std::pair<std::string_view, uint64_t>>;
  [[nodiscard]] AnyTransform note(std::string_view label) { return Note{label, &draws_}; }
  /// What the steps draw for the sample, in the order of their calls.
  Draws run(const Compose& chain, int64_t index = 0) {
    draws_.clear();
    data::Random random = stream(index);
    static_cast<void>(chain(bytes(), random));
    return draws_;
  }

  Draws draws_;
};

TEST_F(Streams, AStepPutInOrOutChangesNoOtherStepsDraws) {
  const Draws two = run({note("a"), note("b")});
  const Draws with_one_before = run({note("new"), note("a"), note("b")});
  const Draws with_one_between = run({note("a"), ToTensor(), note("new"), note("b")});
  const Draws reversed = run({note("b"), note("a")});
  EXPECT_EQ(with_one_before[1], two[0]);
  EXPECT_EQ(with_one_before[2], two[1]);
  EXPECT_EQ(with_one_between[0], two[0]);
  EXPECT_EQ(with_one_between[2], two[1]);
  EXPECT_EQ(reversed[0], two[1]);
}

TEST_F(Streams, StepsOfOneNameDrawDifferentNumbers) {
  const Draws draws = run({note("a"), note("a"), note("b")});
  std::set<uint64_t> numbers;
  for (const auto& [label, number] : draws) {
    numbers.insert(number);
  }
  EXPECT_EQ(numbers.size(), 3U);
}

TEST_F(Streams, NestedChainsHaveStreamsOfTheirOwn) {
  const Compose inner{note("a"), note("b")};
  const Draws nested = run({note("a"), inner, inner, RandomApply({note("a")}, 1.0)});
  std::set<uint64_t> numbers;
  for (const auto& [label, number] : nested) {
    numbers.insert(number);
  }
  EXPECT_EQ(numbers.size(), 6U);
  const Draws without_apply = run({note("a"), inner, inner});
  EXPECT_THAT(without_apply, testing::ElementsAreArray(nested.begin(), nested.begin() + 5));
}

TEST_F(Streams, SamplesAndCallsDifferAndComeAgain) {
  const Compose chain{note("a")};
  EXPECT_NE(run(chain, 0), run(chain, 1));
  draws_.clear();
  data::Random random = stream();
  static_cast<void>(chain(bytes(), random));
  static_cast<void>(random());  // a user's own draw between the two views
  static_cast<void>(chain(bytes(), random));
  const Draws views = draws_;
  EXPECT_NE(views[0], views[1]);
  draws_.clear();
  data::Random again = stream();
  static_cast<void>(chain(bytes(), again));
  static_cast<void>(chain(bytes(), again));
  EXPECT_EQ(draws_, views);
}

TEST_F(Streams, ACopyOfTheStreamRepeatsTheDrawsForAMask) {
  const Compose chain{RandomCrop(5), RandomHorizontalFlip(0.5)};
  for (int64_t i = 0; i < 20; ++i) {
    data::Random random = stream(i);
    data::Random for_mask = random;
    EXPECT_TRUE(torch::equal(chain(bytes(), random), chain(bytes(), for_mask)));
  }
}

TEST(Compose, AnImageLeavesAsAChwTensorOfItsType) {
  const at::Tensor chw = Compose{Resize({4, 6})}(bytes());
  EXPECT_EQ(chw.sizes(), (std::vector<int64_t>{3, 4, 6}));
  EXPECT_EQ(chw.scalar_type(), torch::kByte);
  const at::Tensor same = Compose(std::vector<AnyTransform>{})(bytes());
  EXPECT_EQ(same[1][7][9].item<int>(), test::value(7, 9, 1));
}

TEST(Compose, TensorsGoThroughTheSameChain) {
  data::Random one = stream();
  data::Random two = stream();
  const Compose chain{RandomCrop(5), RandomHorizontalFlip(), ToTensor()};
  const at::Tensor from_tensor = chain(to_chw(bytes()), one);
  EXPECT_TRUE(torch::equal(from_tensor, chain(bytes(), two)));
}

TEST(Compose, PointsComeOutBesideTheTensor) {
  data::Random random = stream();
  const Compose chain{
      RandomHorizontalFlip({.p = 1, .keypoint_pairs = {{0, 1}}}), ToTensor(), Repeat(3)};
  auto [image, points] =
      chain(KeypointImage{bytes({11, 14}, Order::kGray), test::points({{1, 2}, {12, 3}, {5, 5}})},
            random);
  EXPECT_EQ(image.sizes(), (std::vector<int64_t>{3, 11, 14}));
  EXPECT_TRUE(torch::equal(points, test::points({{1, 3}, {12, 2}, {8, 5}}))) << points;
}

TEST(Compose, UsersFunctionsTakeWhatTheyName) {
  const Compose chain{
      [](Image image) {
        image.row<uint8_t>(0)[0] = 200;
        return image;
      },
      ToTensor(),
      [](const at::Tensor& chw, data::Random& random) { return chw + random.integer(5, 5); },
      [](TensorImage tensor) {
        EXPECT_EQ(tensor.order, Order::kBgr);
        return tensor;
      },
      [](Picture picture) { return picture; }};
  data::Random random = stream();
  const at::Tensor out = chain(bytes({3, 3}, Order::kBgr), random);
  EXPECT_FLOAT_EQ(out[0][0][0].item<float>(), 200 / 255.0F + 5);
}

TEST(Compose, UsersFunctionsMayEndTheChainWithAnyTensor) {
  const Compose chain{ToTensor(), [](const at::Tensor& chw) { return chw.flatten(); }};
  EXPECT_EQ(chain(bytes()).sizes(), (std::vector<int64_t>{3 * 11 * 14}));
  const Compose too_far{ToTensor(), [](const at::Tensor& chw) { return chw.flatten(); }, Resize(8)};
  EXPECT_THAT(complaint([&] { return too_far(bytes()); }),
              HasSubstr("got a tensor [462] (no known channels, f32)"));
}

TEST(Compose, AFunctionGivenTheWrongKindIsNamedWithWhatToDo) {
  const Compose image_late{ToTensor(), Lambda("Fog", [](Image image) { return image; })};
  EXPECT_THAT(
      complaint([&] { return image_late(bytes()); }),
      AllOf(HasSubstr("[vision.Fog] expected an image, got a tensor [3, 11, 14] (RGB, f32)"),
            HasSubstr("before ToTensor()")));
  const Compose tensor_early{[](at::Tensor chw) { return chw; }, ToTensor()};
  EXPECT_THAT(complaint([&] { return tensor_early(bytes()); }),
              AllOf(HasSubstr("[vision.Lambda] expected a tensor, got an image of 11 x 14 pixels"),
                    HasSubstr("Put ToTensor() before it")));
}

TEST(Compose, WithoutAStreamOnlyWhatDrawsNothingRuns) {
  EXPECT_FALSE((Compose{Resize(8), CenterCrop(8), ToTensor()}).is_random());
  const Compose random{Resize(8), Compose{RandomCrop(4)}};
  EXPECT_TRUE(random.is_random());
  EXPECT_THAT(complaint([&] { return random(bytes()); }),
              AllOf(HasSubstr("[vision.Compose]"), HasSubstr("f(image, random)")));
  EXPECT_TRUE((Compose{[](Image image, data::Random&) { return image; }}).is_random());
  EXPECT_FALSE((Compose{[](Image image) { return image; }}).is_random());
}

TEST(Compose, PrintsItself) {
  const Compose chain{RandomResizedCrop(224),
                      RandomCrop({32, 30}, {.padding = {4, 4, 4, 4}, .pad_if_needed = true}),
                      RandomHorizontalFlip(0.25),
                      ColorJitter({.brightness = 0.2, .hue = 0.1}),
                      RandomApply({Grayscale(3), Lambda("Fog", [](Image i) { return i; })}, 0.2),
                      [](Image image) { return image; },
                      ToTensor(),
                      Normalize({0.5, 0.4, 0.3}, {0.2, 0.2, 0.2})};
  EXPECT_EQ(chain.to_string(),
            "Compose(RandomResizedCrop(224), RandomCrop({32, 30}, padding=4, pad_if_needed=true), "
            "RandomHorizontalFlip(p=0.25), ColorJitter(brightness={0.8, 1.2}, hue={-0.1, 0.1}), "
            "RandomApply({Grayscale(channels=3), Fog()}, p=0.2), Lambda(), ToTensor(), "
            "Normalize({0.5, 0.4, 0.3}, {0.2, 0.2, 0.2}))");
}

TEST(Compose, WhatAUserThrowsComesOut) {
  const Compose chain{[](const Image&) -> Image { throw std::runtime_error("too bright"); }};
  EXPECT_THROW(static_cast<void>(chain(bytes())), std::runtime_error);
}

TEST(RandomApply, IsAllOrNothingWithItsProbability) {
  const Compose chain{RandomApply(
      {[](const at::Tensor& t) { return t + 1; }, [](const at::Tensor& t) { return t + 1; }},
      0.25)};
  int applied = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    data::Random random = stream(i);
    const int got = chain(torch::zeros({1, 1, 1}), random).item<int>();
    ASSERT_TRUE(got == 0 || got == 2);
    applied += got / 2;
  }
  EXPECT_NEAR(applied, 250, 5 * 14);
  EXPECT_THROW(RandomApply({}, 1.5), UsageError);
}

TEST(RandomChoice, FollowsItsWeights) {
  const auto add = [](int n) { return [n](const at::Tensor& t) { return t + n; }; };
  const Compose even{RandomChoice({add(0), add(1), add(2)})};
  const Compose uneven{RandomChoice({add(0), add(1), add(2)}, {1, 0, 3})};
  std::vector<int> counts(3);
  std::vector<int> weighted(3);
  for (int64_t i = 0; i < 1000; ++i) {
    data::Random random = stream(i);
    ++counts.at(even(torch::zeros({1, 1, 1}), random).item<int64_t>());
    ++weighted.at(uneven(torch::zeros({1, 1, 1}), random).item<int64_t>());
  }
  for (const int count : counts) {
    EXPECT_NEAR(count, 333, 5 * 15);
  }
  EXPECT_NEAR(weighted[0], 250, 5 * 14);
  EXPECT_EQ(weighted[1], 0);
  EXPECT_THROW(RandomChoice({}), UsageError);
  EXPECT_THROW(RandomChoice({add(1)}, {1, 2}), UsageError);
  EXPECT_THROW(RandomChoice({add(1), add(2)}, {0, 0}), UsageError);
  EXPECT_THROW(RandomChoice({add(1), add(2)}, {2, -1}), UsageError);
}

TEST(RandomOrder, AllOrdersComeAboutEquallyOften) {
  const auto append = [](int n) { return [n](const at::Tensor& t) { return t * 10 + n; }; };
  const Compose chain{RandomOrder({append(1), append(2), append(3)})};
  std::map<int64_t, int> counts;
  for (int64_t i = 0; i < 1200; ++i) {
    data::Random random = stream(i);
    ++counts[chain(torch::zeros({1, 1, 1}), random).item<int64_t>()];
  }
  EXPECT_EQ(counts.size(), 6U);
  for (const auto& [order, count] : counts) {
    EXPECT_NEAR(count, 200, 5 * 13) << order;
  }
}

TEST(Picture, RefusesWhatIsNoPicture) {
  EXPECT_THAT(complaint([] { return Picture(torch::zeros({28, 28})); }), HasSubstr("[28, 28]"));
  EXPECT_THROW(Picture(torch::zeros({2, 4, 4})), UsageError);
  EXPECT_THROW(Picture(torch::zeros({3, 0, 4})), UsageError);
  EXPECT_THROW(Picture(TensorImage{torch::zeros({3, 4, 4}), Order::kGray}), UsageError);
  EXPECT_THROW(Picture{at::Tensor()}, UsageError);
  EXPECT_THROW(Picture{Image()}, UsageError);
  EXPECT_THROW(Picture(KeypointImage{bytes(), at::Tensor()}), UsageError);
  EXPECT_THROW(Picture(KeypointImage{bytes(), torch::zeros({4, 3})}), UsageError);
  EXPECT_THROW(Picture(KeypointImage{bytes(), torch::zeros({4, 2}, torch::kDouble)}), UsageError);
}

TEST(Picture, GoesToATensorAndBackExactly) {
  for (const Order order : {Order::kGray, Order::kRgb, Order::kBgr, Order::kRgba}) {
    const Image image = bytes({5, 7}, order);
    EXPECT_TRUE(equal(to_hwc({to_chw(image), order}, "test"), image));
    const Image real = test::floats({5, 7}, order);
    EXPECT_TRUE(equal(to_hwc({to_chw(real), order}, "test"), real));
    EXPECT_EQ(to_chw(image)[0][3][2].item<int>(), test::value(3, 2, 0));
  }
  // Not dense: every second column.
  const at::Tensor wide = to_chw(bytes({5, 8}));
  const Image half = to_hwc({wide.slice(2, 0, 8, 2), Order::kRgb}, "test");
  EXPECT_EQ(half.row<uint8_t>(4)[3 * 3 + 1], test::value(4, 6, 1));
  EXPECT_THROW((void)to_hwc({torch::zeros({3, 4, 4}, torch::kDouble), Order::kRgb}, "test"),
               UsageError);
}

TEST(Picture, TransformsLeaveTheCallersTensorsAlone) {
  const at::Tensor chw = to_chw(test::floats());
  const at::Tensor before = chw.clone();
  const at::Tensor points = test::points({{1, 2}, {3, 4}});
  Picture picture(chw);
  picture.set_points(points);
  data::Random random = stream();
  const Compose chain{RandomHorizontalFlip({.p = 1, .keypoint_pairs = {{0, 1}}}),
                      Normalize({0.5, 0.4, 0.3}, {0.2, 0.2, 0.2})};
  static_cast<void>(chain.apply(picture, random));
  EXPECT_TRUE(torch::equal(chw, before));
  EXPECT_TRUE(torch::equal(points, test::points({{1, 2}, {3, 4}})));
}

}  // namespace
}  // namespace argosy::vision
