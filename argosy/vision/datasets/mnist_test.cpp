#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/data/data_loader.h"
#include "argosy/formats/test_files.h"
#include "argosy/vision/datasets/sets.h"
#include "argosy/vision/transforms/transforms.h"

#include "tests/support/temp_dir.h"

namespace argosy::vision {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

std::string big_endian(uint32_t value) {
  return {static_cast<char>(value >> 24),
          static_cast<char>(value >> 16),
          static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

std::string idx(uint8_t type, const std::vector<uint32_t>& dims, const std::string& payload) {
  std::string bytes{0, 0, static_cast<char>(type), static_cast<char>(dims.size())};
  for (const uint32_t dim : dims) {
    bytes += big_endian(dim);
  }
  return bytes + payload;
}

/// n images; pixel p of image i is (i * 31 + p) mod 256.
std::string image_file(uint32_t n) {
  std::string pixels;
  for (uint32_t i = 0; i < n; ++i) {
    for (uint32_t p = 0; p < 784; ++p) {
      pixels += static_cast<char>((i * 31 + p) & 0xff);
    }
  }
  return idx(8, {n, 28, 28}, pixels);
}

std::string label_file(const std::string& labels) {
  return idx(8, {static_cast<uint32_t>(labels.size())}, labels);
}

/// A folder with a whole, small data set: 5 training images and 3 test images.
class MnistFiles : public testing::Test {
 protected:
  MnistFiles() {
    write("train-images-idx3-ubyte", image_file(5));
    write("train-labels-idx1-ubyte", label_file({3, 1, 4, 1, 9}));
    write("t10k-images-idx3-ubyte", image_file(3));
    write("t10k-labels-idx1-ubyte", label_file({0, 2, 8}));
  }
  void write(const std::string& name, const std::string& content) {
    fs::create_directories((dir_.path() / name).parent_path());
    std::ofstream(dir_.path() / name, std::ios::binary) << content;
  }
  void remove(const std::string& name) { fs::remove(dir_.path() / name); }
  [[nodiscard]] std::string folder() const { return dir_.path().string(); }
  [[nodiscard]] std::string path(const std::string& name) const {
    return (dir_.path() / name).string();
  }
  [[nodiscard]] FashionMnist train(PictureOptions options = {}) const {
    return {folder(), Split::kTrain, std::move(options)};
  }

 private:
  test::TempDir dir_;
};

TEST_F(MnistFiles, GivesImagesInZeroToOneAndLabels) {
  const FashionMnist data = train();
  ASSERT_EQ(data.size(), 5);
  const auto [image, label] = data.get(4);
  EXPECT_EQ(image.sizes(), (std::vector<int64_t>{1, 28, 28}));
  EXPECT_EQ(image.scalar_type(), torch::kFloat);
  EXPECT_EQ(label.dim(), 0);
  EXPECT_EQ(label.scalar_type(), torch::kLong);
  EXPECT_EQ(label.item<int64_t>(), 9);
  for (const int64_t p : {0, 1, 131, 132, 783}) {
    EXPECT_EQ(image.flatten()[p].item<float>(), static_cast<float>((4 * 31 + p) % 256) / 255.0F);
  }
  EXPECT_EQ(FashionMnist(folder(), Split::kTest).size(), 3);
  EXPECT_EQ(Mnist(folder(), Split::kTest).labels()[2], 8);
}

TEST_F(MnistFiles, NormalizesAsTorchvisionBitForBit) {
  const FashionMnist data = train({.mean = {0.2860}, .std = {0.3530}});
  const at::Tensor all = data.pixels().to(torch::kFloat).div(255).sub(0.2860).div(0.3530);
  for (int64_t i = 0; i < data.size(); ++i) {
    EXPECT_TRUE(torch::equal(data.get(i).image, all[i])) << i;
  }
}

TEST_F(MnistFiles, BatchesHoldTheSamplesOfGet) {
  static_assert(data::Dataset<FashionMnist> && data::GetsBatch<Mnist>);
  const FashionMnist data = train({.mean = {0.5}, .std = {0.25}});
  data::DataLoader loader(data, {.batch_size = 2});
  int64_t next = 0;
  for (const auto& [images, labels] : loader) {
    ASSERT_EQ(images.sizes(), (std::vector<int64_t>{next == 4 ? 1 : 2, 1, 28, 28}));
    for (int64_t i = 0; i < images.size(0); ++i, ++next) {
      EXPECT_TRUE(torch::equal(images[i], data.get(next).image)) << next;
      EXPECT_TRUE(torch::equal(labels[i], data.get(next).target)) << next;
    }
  }
  EXPECT_EQ(next, 5);
}

TEST_F(MnistFiles, BatchesDrawFromTheStreamsOfTheirPlacesInTheWholeSet) {
  const FashionMnist drawn(
      folder(),
      Split::kTest,
      {.transform = {ToTensor(), [](const at::Tensor& image, data::Random& random) {
                       return image.slice(1, 0, 2) * random.uniform();
                     }}});
  data::DataLoader loader(drawn, {.batch_size = 3, .seed = 9});
  for (const auto& [images, labels] : loader) {
    ASSERT_EQ(images.sizes(), (std::vector<int64_t>{3, 1, 2, 28}));
    for (int64_t i = 0; i < 3; ++i) {
      data::Random random(9, /*epoch=*/0, 5 + i);  // behind 5 training images
      EXPECT_TRUE(torch::equal(images[i], drawn.get(i, random).image)) << i;
    }
  }
  EXPECT_THROW(static_cast<void>(drawn.get(0)), UsageError) << "it needs a stream";
}

TEST_F(MnistFiles, ATransformThatThrowsIsNamedWithItsSample) {
  const FashionMnist data =
      train({.transform = {ToTensor(), [](const at::Tensor& image, data::Random&) {
                             if (image.flatten()[0].item<float>() >
                                 0.4F) {  // 4 * 31 / 255, of the last one
                               throw std::runtime_error("too bright");
                             }
                             return image;
                           }}});
  data::DataLoader loader(data, {.batch_size = 5});
  try {
    static_cast<void>(loader.begin());
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(error.place().index, 4);
    EXPECT_THAT(error.what(), HasSubstr("too bright"));
  }
}

TEST_F(MnistFiles, SamplesDoNotShareMemory) {
  const FashionMnist data = train();
  auto first = data.get(0);
  first.image.fill_(7);
  first.target.fill_(7);
  EXPECT_EQ(data.get(0).image.flatten()[0].item<float>(), 0.0F);
  EXPECT_EQ(data.get(0).target.item<int64_t>(), 3);
}

TEST_F(MnistFiles, CopiesShareTheImages) {
  const FashionMnist data = train();
  const FashionMnist copy = data;  // NOLINT: the copy is what is tested
  EXPECT_EQ(&copy.source(), &data.source());
}

TEST_F(MnistFiles, KnowsItsClasses) {
  EXPECT_EQ(train().classes()[9], "Ankle boot");
  EXPECT_EQ(Mnist(folder(), Split::kTrain).classes()[3], "3 - three");
}

TEST_F(MnistFiles, ReadsGzipOtherNamesAndTorchvisionsFolder) {
  remove("train-images-idx3-ubyte");
  write("train-images-idx3-ubyte.gz", formats::gzip(image_file(5)));
  EXPECT_EQ(train().size(), 5);
  remove("train-images-idx3-ubyte.gz");
  write("train-images.idx3-ubyte", image_file(5));
  EXPECT_EQ(train().size(), 5);
  write("root/FashionMNIST/raw/train-images-idx3-ubyte", image_file(5));
  write("root/FashionMNIST/raw/train-labels-idx1-ubyte", label_file({3, 1, 4, 1, 9}));
  EXPECT_EQ(FashionMnist(path("root"), Split::kTrain).size(), 5);
  EXPECT_THROW(Mnist(path("root"), Split::kTrain), DataError);
}

TEST_F(MnistFiles, AnEmptySetIsASet) {
  write("train-images-idx3-ubyte", image_file(0));
  write("train-labels-idx1-ubyte", label_file(""));
  EXPECT_EQ(train().size(), 0);
}

TEST_F(MnistFiles, MissingFilesAreNamedWithWhatBringsThem) {
  remove("train-labels-idx1-ubyte");
  try {
    static_cast<void>(train());
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("train-labels-idx1-ubyte"), HasSubstr(folder())));
  }
  try {
    const Mnist nothing(folder() + "/nowhere", Split::kTest);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(error.place().path, folder() + "/nowhere");
    EXPECT_THAT(error.what(), HasSubstr("To bring it: argosy data fetch mnist --to"));
  }
}

TEST_F(MnistFiles, UsageErrorsSayWhatToDo) {
  EXPECT_THROW(static_cast<void>(train().get(5)), UsageError);
  EXPECT_THROW(static_cast<void>(train().get(-1)), UsageError);
  EXPECT_THROW(FashionMnist(folder(), Split::kValid), UsageError);
  EXPECT_THROW(static_cast<void>(train({.std = {0}})), UsageError);
  EXPECT_THROW(static_cast<void>(train({.mean = {NAN}})), UsageError);
}

#ifdef ARGOSY_SHARED_DATA  // real sets are beside the repository
TEST(RealData, Mnist) {
  const fs::path folder = fs::path(ARGOSY_SHARED_DATA) / "mnist";
  const Mnist train(folder.string(), Split::kTrain);
  const Mnist test(folder.string(), Split::kTest);
  ASSERT_EQ(train.size(), 60000);
  ASSERT_EQ(test.size(), 10000);
  // The published mean and deviation of the training pixels, and the first labels.
  const at::Tensor pixels = train.pixels().to(torch::kFloat).div(255);
  EXPECT_NEAR(pixels.mean().item<double>(), 0.1307, 5e-5);
  EXPECT_NEAR(pixels.std().item<double>(), 0.3081, 5e-5);
  EXPECT_TRUE(torch::equal(train.targets().slice(0, 0, 5), torch::tensor({5, 0, 4, 1, 9})));
  EXPECT_TRUE(torch::equal(test.targets().slice(0, 0, 5), torch::tensor({7, 2, 1, 0, 4})));
}
#endif

TEST(RealData, FashionMnist) {
  const std::string folder = "/usr/share/datasets/fashion-mnist";
  ASSERT_TRUE(fs::exists(folder)) << "install the package dataset-fashion-mnist";
  const FashionMnist train(folder, Split::kTrain);
  ASSERT_EQ(train.size(), 60000);
  const at::Tensor pixels = train.pixels().to(torch::kFloat).div(255);
  EXPECT_NEAR(pixels.mean().item<double>(), 0.2860, 5e-5);
  EXPECT_NEAR(pixels.std().item<double>(), 0.3530, 5e-5);
  EXPECT_EQ(train.classes()[train.labels()[0]], "Ankle boot");
  EXPECT_TRUE(torch::equal(train.targets().bincount(), torch::full({10}, 6000)));
  EXPECT_EQ(FashionMnist(folder, Split::kTest).size(), 10000);
}

}  // namespace
}  // namespace argosy::vision
