// The same sample gets the same pixels whoever makes it and whenever.
#include <cstdint>
#include <functional>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/data/data_loader.h"
#include "argosy/vision/transforms/test_pictures.h"
#include "argosy/vision/transforms/transforms.h"

namespace argosy::vision {
namespace {

using image::Image;

/// 40 pictures through a chain in which everything draws.
struct SizedPhotos {
  Compose augment{
      RandomResizedCrop(16),
      RandomHorizontalFlip(),
      RandomApply({ColorJitter({.brightness = 0.3, .contrast = 0.3, .saturation = 0.3, .hue = 0.1}),
                   RandomSolarize(100)},
                  0.7),
      RandomChoice({RandomRotation(20),
                    RandomAffine(10, {.translate = {0.2, 0.2}}),
                    RandomPerspective({.p = 1}),
                    GaussianBlur(3)}),
      RandomOrder({RandomPosterize(3), RandomInvert(0.2)}),
      [](Image image, data::Random& random) {
        image.row<uint8_t>(0)[0] = static_cast<uint8_t>(random.integer(0, 255));
        return image;
      },
      ToTensor(),
      Normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}),
      RandomErasing({.with = EraseWith::kNoise})};

  [[nodiscard]] static int64_t size() { return 40; }
  std::tuple<at::Tensor, at::Tensor> get(int64_t index, data::Random& random) const {
    const int edge = 20 + static_cast<int>(index);
    auto [image, points] =
        augment(KeypointImage{test::bytes({edge, 50}), test::points({{1, 2}, {30, 15}})}, random);
    return {image, points};
  }
};

using Epoch = std::vector<std::tuple<at::Tensor, at::Tensor>>;

void expect_equal(const Epoch& got, const Epoch& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(torch::equal(std::get<0>(got[i]), std::get<0>(expected[i]))) << i;
    EXPECT_TRUE(torch::equal(std::get<1>(got[i]), std::get<1>(expected[i]))) << i;
  }
}

Epoch epoch_of(int num_workers, int64_t epoch = 0) {
  data::DataLoader loader(
      SizedPhotos(), {.batch_size = 6, .shuffle = true, .num_workers = num_workers, .seed = 11});
  loader.set_epoch(epoch);
  Epoch batches;
  for (const auto& [images, points] : loader) {
    batches.emplace_back(images, points);
  }
  return batches;
}

TEST(Loader, TheSamePixelsWithAnyNumberOfWorkers) {
  const Epoch alone = epoch_of(0);
  ASSERT_EQ(alone.size(), 7U);
  expect_equal(epoch_of(1), alone);
  expect_equal(epoch_of(8), alone);
  EXPECT_FALSE(torch::equal(std::get<0>(epoch_of(2, 1)[0]), std::get<0>(alone[0])));
}

TEST(Loader, TheSamePixelsAfterAResume) {
  const Epoch whole = epoch_of(3);
  data::LoaderState state;
  {
    data::DataLoader loader(SizedPhotos(),
                            {.batch_size = 6, .shuffle = true, .num_workers = 2, .seed = 11});
    int batches = 0;
    for (const auto& batch : loader) {
      static_cast<void>(batch);
      if (++batches == 3) {
        break;
      }
    }
    state = loader.state();
  }
  data::DataLoader resumed(SizedPhotos(),
                           {.batch_size = 6, .shuffle = true, .num_workers = 1, .seed = 11});
  resumed.load_state(state);
  Epoch rest;
  for (const auto& [images, points] : resumed) {
    rest.emplace_back(images, points);
  }
  expect_equal(rest, Epoch(whole.begin() + 3, whole.end()));
}

TEST(Loader, AChainIsTheTransformOfADataSet) {
  // The type that data sets in memory take.
  const std::function<at::Tensor(const at::Tensor&, data::Random&)> transform =
      Compose{RandomCrop(28, {.padding = {2, 2, 2, 2}}), Normalize(0.1307, 0.3081)};
  data::Random random = test::stream();
  EXPECT_EQ(transform(torch::rand({1, 28, 28}), random).sizes(), (std::vector<int64_t>{1, 28, 28}));
}

}  // namespace
}  // namespace argosy::vision
