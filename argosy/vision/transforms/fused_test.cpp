#include "argosy/vision/transforms/fused.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/vision/transforms/test_pictures.h"
#include "argosy/vision/transforms/transforms.h"

namespace argosy::vision {
namespace {

using image::Image;
using image::Order;
using image::Size;

/// Does what a plan says, step by step: the meaning of FusedDraw and Arithmetic in a few lines.
at::Tensor carry_out(const FusedPlan& plan, const Image& photo, data::Random& random) {
  const FusedDraw draw = plan.draw(photo.size(), random);
  Image image = image::crop(photo, draw.source);
  if (plan.resize().has_value()) {
    image = image::resize(image, draw.resized, *plan.resize());
  }
  EXPECT_EQ(image.size(), draw.resized);
  const image::Box& window = draw.window;
  const auto beyond = [](int pixels) { return std::max(0, pixels); };
  const image::Padding border{beyond(-window.left),
                              beyond(-window.top),
                              beyond(window.left + window.width - draw.resized.width),
                              beyond(window.top + window.height - draw.resized.height)};
  image = image::pad(image, border, {image::PadMode::kConstant, plan.border()});
  image = image::crop(
      image, {window.top + border.top, window.left + border.left, window.height, window.width});
  image = draw.flip_x ? image::flip_horizontally(image) : image;
  image = draw.flip_y ? image::flip_vertically(image) : image;
  const FusedPlan::Arithmetic arithmetic = plan.arithmetic(image.order());
  if (arithmetic.is_u8) {
    return to_chw(image);
  }
  at::Tensor chw = to_chw(image).to(torch::kFloat);
  chw = arithmetic.unit ? chw / 255 : chw;
  const auto channels = static_cast<int64_t>(arithmetic.mean.size());
  const at::Tensor mean = torch::tensor(arithmetic.mean).view({channels, 1, 1});
  const at::Tensor std = torch::tensor(arithmetic.std).view({channels, 1, 1});
  return (chw - mean) / std;
}

const std::vector<double> kMean{0.485, 0.456, 0.406};
const std::vector<double> kStd{0.229, 0.224, 0.225};

std::vector<Compose> recognised() {
  const image::Padding four{4, 4, 4, 4};
  const image::Padding uneven{1, 2, 3, 4};
  return {
      {RandomResizedCrop(24), RandomHorizontalFlip(), ToTensor(), Normalize(kMean, kStd)},
      {RandomResizedCrop({20, 28}), RandomHorizontalFlip(), Normalize(kMean, kStd)},
      {RandomResizedCrop(24), ToTensor(), RandomHorizontalFlip(), RandomVerticalFlip()},
      {Resize(32), CenterCrop(28), ToTensor(), Normalize(kMean, kStd)},
      {Resize({24, 24}, {.interpolation = image::Interpolation::kNearest}), ToTensor()},
      {Resize(20, {.max_size = 24}), CenterCrop(24)},
      {RandomCrop(32, {.padding = four}), RandomHorizontalFlip(), ToTensor(), Normalize(0.5, 0.25)},
      {Pad(4), RandomHorizontalFlip(), RandomVerticalFlip(), RandomCrop(32), Transpose()},
      {Pad(uneven, {.fill = image::Fill(9)}),
       RandomHorizontalFlip(),
       RandomCrop({21, 36}),
       ToTensor()},
      {RandomHorizontalFlip(),
       Pad(uneven),
       RandomVerticalFlip(),
       RandomHorizontalFlip(),
       RandomCrop({30, 32}),
       RandomHorizontalFlip(),
       ToTensor()},
      {RandomCrop(60, {.padding = uneven, .pad_if_needed = true}), RandomHorizontalFlip()},
      {RandomCrop(24), Resize(16), RandomHorizontalFlip(), ToTensor()},
      {RandomCrop(24), RandomResizedCrop(16), RandomCrop(12), RandomHorizontalFlip(), ToTensor()},
      {ToTensor(), RandomHorizontalFlip(), Normalize(2, 0.5, {.scale = image::Scale::kNone})},
      {Normalize({120, 110, 100}, {60, 60, 60}, {.scale = image::Scale::kNone}), Transpose()},
      {Compose{RandomResizedCrop(24), RandomHorizontalFlip()},
       RandomHorizontalFlip(),
       Compose{ToTensor(), Normalize(kMean, kStd)}},
  };
}

TEST(Fused, DrawsAndArithmeticGiveTheChainsBits) {
  int plans = 0;
  for (const Compose& chain : recognised()) {
    const std::optional<FusedPlan> plan = recognise(chain);
    ASSERT_TRUE(plan.has_value()) << chain.to_string();
    ++plans;
    for (const Size size : {Size{37, 53}, Size{53, 37}, Size{32, 32}}) {
      const Image photo = test::bytes(size);
      for (int64_t index = 0; index < 20; ++index) {
        data::Random for_chain = test::stream(index);
        data::Random for_plan = for_chain;
        const at::Tensor expected = chain(photo, for_chain);
        const at::Tensor got = carry_out(*plan, photo, for_plan);
        ASSERT_EQ(got.scalar_type(), expected.scalar_type()) << chain.to_string();
        ASSERT_TRUE(torch::equal(got, expected))
            << chain.to_string() << " of " << size.height << " x " << size.width << ", " << index;
        ASSERT_EQ(for_plan.spawn()(), for_chain.spawn()()) << "the stream moved on otherwise";
        if (plan->size().has_value()) {
          ASSERT_EQ(got.size(1), plan->size()->height) << chain.to_string();
          ASSERT_EQ(got.size(2), plan->size()->width) << chain.to_string();
        }
      }
    }
  }
  EXPECT_EQ(plans, 16);
}

TEST(Fused, DrawsVaryOverManySamplesAndEqualTheStepsOwn) {
  const Compose chain{RandomResizedCrop(224), RandomHorizontalFlip(), ToTensor()};
  const std::optional<FusedPlan> plan = recognise(chain);
  ASSERT_TRUE(plan.has_value());
  int flips = 0;
  for (int64_t index = 0; index < 2000; ++index) {
    data::Random random = test::stream(index);
    data::Random steps = random;
    const FusedDraw draw = plan->draw({375, 500}, random);
    const data::Random own = steps.spawn();
    data::Random first = chain.stream(0, own);
    data::Random second = chain.stream(1, own);
    ASSERT_EQ(draw.source, RandomResizedCrop(224).draw({375, 500}, first));
    ASSERT_EQ(draw.flip_x, RandomHorizontalFlip().draw(second));
    ASSERT_EQ(draw.window, (image::Box{0, 0, 224, 224}));
    flips += draw.flip_x ? 1 : 0;
  }
  EXPECT_NEAR(flips, 1000, 5 * 23);
}

TEST(Fused, WhatOnePassCannotDoIsNotRecognised) {
  const image::Padding four{4, 4, 4, 4};
  const std::vector<Compose> chains = {
      Compose(std::vector<AnyTransform>{}),
      {Resize(8), ColorJitter({.brightness = 0.1}), ToTensor()},
      {RandomRotation(10)},
      {[](Image image) { return image; }},
      {Resize(8), Resize(9)},
      {RandomResizedCrop(8), Resize(9)},
      {RandomHorizontalFlip(), Resize(8)},
      {Pad(4), Resize(8)},
      {RandomCrop(8, {.padding = four}), Resize(8)},
      {CenterCrop(8), Resize(8)},
      {RandomCrop(8), Pad(4)},
      {RandomCrop(8), CenterCrop(9)},
      {Pad(4, {.mode = image::PadMode::kReflect}), RandomCrop(8)},
      {Pad(4, {.fill = image::Fill(3)}), CenterCrop(8)},
      {ToTensor(), RandomCrop(8)},
      {Normalize(0.5, 0.5), Resize(8)},
      {Normalize(0.5, 0.5), Normalize(0.5, 0.5)},
      {Resize(8), Repeat(3)},
      {RandomApply({Resize(8)})},
      {Resize(8), Compose{Resize(9)}},
      {Resize(8), RandomErasing()},
      {Resize(8), Transpose({0, 1, 2})},
      {Transpose(), Transpose()},
  };
  for (const Compose& chain : chains) {
    EXPECT_FALSE(recognise(chain).has_value()) << chain.to_string();
  }
}

TEST(Fused, SizesAreKnownWhereAllResultsShareThem) {
  const auto size = [](const Compose& chain) { return recognise(chain)->size(); };
  EXPECT_EQ(size({RandomResizedCrop({20, 30})}), (Size{20, 30}));
  EXPECT_EQ(size({Resize({20, 30}), Pad(image::Padding{1, 2, 3, 4})}), (Size{26, 34}));
  EXPECT_EQ(size({Resize(256), CenterCrop(224)}), (Size{224, 224}));
  EXPECT_EQ(size({Resize(256)}), std::nullopt);
  EXPECT_EQ(size({ToTensor()}), std::nullopt);
}

TEST(Fused, SaysWhatTheStepsSay) {
  data::Random random = test::stream();
  const auto plan = recognise({RandomCrop(32)});
  EXPECT_THAT(test::complaint([&] {
                return plan->draw({20, 40}, random);
              }),
              testing::HasSubstr("[vision.RandomCrop] expected a picture of at least 32 x 32"));
  const auto normal = recognise({ToTensor(), Normalize(kMean, kStd)});
  EXPECT_THAT(test::complaint([&] { return normal->arithmetic(Order::kBgr); }),
              testing::HasSubstr("expected RGB, got BGR"));
}

}  // namespace
}  // namespace argosy::vision
