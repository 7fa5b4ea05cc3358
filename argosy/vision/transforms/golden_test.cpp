// What other people's code makes of the same numbers: tests/golden/transforms.
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/vision/transforms/color.h"
#include "argosy/vision/transforms/crop.h"
#include "argosy/vision/transforms/erasing.h"
#include "argosy/vision/transforms/functional.h"
#include "argosy/vision/transforms/test_pictures.h"
#include "argosy/vision/transforms/warp.h"

namespace argosy::vision {
namespace {

using image::Image;
using image::Order;
using image::Size;

/// Lines "name … = results" of a golden file.
struct Line {
  std::vector<std::string> words;
  std::string result;
};

std::vector<Line> lines_of(const std::string& file) {
  std::ifstream in(std::string(ARGOSY_GOLDEN_DIR) + "/transforms/" + file);
  EXPECT_TRUE(in) << file;
  std::vector<Line> lines;
  for (std::string text; std::getline(in, text);) {
    if (text.starts_with('#')) {
      continue;
    }
    const size_t equals = text.find(" = ");
    Line line;
    std::istringstream words(text.substr(0, equals));
    for (std::string word; words >> word;) {
      line.words.push_back(word);
    }
    line.result = text.substr(equals + 3);
    lines.push_back(line);
  }
  return lines;
}

std::vector<double> numbers(const std::string& text) {
  std::istringstream in(text);
  std::vector<double> all;
  for (double number = 0; in >> number;) {
    all.push_back(number);
  }
  return all;
}

std::vector<double> flat(const image::Box& box) {
  return {static_cast<double>(box.top),
          static_cast<double>(box.left),
          static_cast<double>(box.height),
          static_cast<double>(box.width)};
}

/// What our transform of this name draws, in the golden file's order; empty: nothing.
std::vector<double> drawn(const std::string& name, Size size, data::Random& random) {
  if (name == "RandomResizedCrop") {
    return flat(RandomResizedCrop(224).draw(size, random));
  }
  if (name == "RandomErasing") {
    const auto box = RandomErasing().draw(size, random);
    return box.has_value() ? flat(*box) : std::vector<double>();
  }
  if (name == "RandomCrop") {
    return flat(RandomCrop({32, 30}).draw(size, random).box);
  }
  if (name == "RandomPerspective") {
    std::vector<double> all;
    for (const image::PointF& corner : RandomPerspective().draw(size, random)) {
      all.insert(all.end(), {corner.x, corner.y});
    }
    return all;
  }
  const RandomAffine affine(
      30, {.translate = {0.1, 0.3}, .scale = {0.5, 1.5}, .shear_x = {-10, 10}, .shear_y = {-5, 5}});
  const image::AffineOptions draw = affine.draw(size, random);
  return {draw.angle, draw.translate.x, draw.translate.y, draw.scale, draw.shear_x, draw.shear_y};
}

TEST(Golden, DrawsAreTorchvisionsFromTheSameNumbers) {
  std::map<std::string, int> seen;
  for (const Line& line : lines_of("draws.txt")) {
    const std::string& name = line.words.at(0);
    if (name == "ColorJitter") {
      continue;
    }
    ++seen[name];
    data::Random random(std::stoull(line.words.at(1)), 0, 0);
    const Size size{std::stoi(line.words.at(2)), std::stoi(line.words.at(3))};
    const std::vector<double> expected = numbers(line.result);
    const std::vector<double> got = drawn(name, size, random);
    ASSERT_EQ(got.size(), expected.size()) << name << " " << line.words[1];
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_DOUBLE_EQ(got[i], expected[i]) << name << " " << line.words[1] << " " << size.height;
    }
  }
  EXPECT_EQ(seen.size(), 5U);
  EXPECT_GE(seen["RandomResizedCrop"], 80);
}

TEST(Golden, ColorJitterTakesItsStepsInTorchvisionsOrder) {
  const ColorJitter jitter(
      {.brightness = 0.2, .contrast = 0.0, .saturation = {0.9, 1.1}, .hue = 0.1});
  int seen = 0;
  for (const Line& line : lines_of("draws.txt")) {
    if (line.words.at(0) != "ColorJitter") {
      continue;
    }
    ++seen;
    const std::vector<double> golden = numbers(line.result);  // order of four, then three factors
    Image expected = test::bytes();
    for (size_t i = 0; i < 4; ++i) {
      if (golden[i] == 0) {
        expected = image::adjust_brightness(expected, golden[4]);
      } else if (golden[i] == 2) {
        expected = image::adjust_saturation(expected, golden[5]);
      } else if (golden[i] == 3) {
        expected = image::adjust_hue(expected, golden[6]);
      }
    }
    data::Random random(std::stoull(line.words.at(1)), 0, 0);
    EXPECT_TRUE(test::equal(jitter(test::bytes(), random).image(), expected)) << line.words[1];
  }
  EXPECT_GE(seen, 10);
}

std::vector<uint8_t> from_hex(const std::string& text) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

/// Values as the golden files hold them, big-endian f32 or bytes.
std::vector<float> values(const std::string& hex, bool floats) {
  const std::vector<uint8_t> bytes = from_hex(hex);
  if (!floats) {
    return {bytes.begin(), bytes.end()};
  }
  std::vector<float> all(bytes.size() / 4);
  for (size_t i = 0; i < all.size(); ++i) {
    const uint32_t bits = uint32_t{bytes[4 * i]} << 24 | uint32_t{bytes[4 * i + 1]} << 16 |
                          uint32_t{bytes[4 * i + 2]} << 8 | uint32_t{bytes[4 * i + 3]};
    std::memcpy(&all[i], &bits, 4);
  }
  return all;
}

std::vector<float> values(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous().to(torch::kFloat).flatten();
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}

/// Bound: difference of a single value; 0 means equal bits.
void expect_golden(const Line& line, const at::Tensor& got, bool floats, float bound) {
  const std::vector<float> expected = values(line.result, floats);
  const std::vector<float> actual = values(got);
  ASSERT_EQ(actual.size(), expected.size()) << line.words[0];
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_LE(std::abs(actual[i] - expected[i]), bound)
        << line.words[0] << " " << line.words[1] << " value " << i << ": " << actual[i]
        << ", expected " << expected[i];
  }
}

at::Tensor hwc(const Image& image) {
  return to_chw(image).permute({1, 2, 0});
}

TEST(Golden, ToTensorNormalizeAndEraseHaveTorchvisionsBits) {
  int seen = 0;
  for (const Line& line : lines_of("pixels.txt")) {
    const bool gray = line.words.at(1) == "1";
    const Image picture = test::bytes({11, 14}, gray ? Order::kGray : Order::kRgb);
    const at::Tensor chw = functional::to_tensor(picture);
    const std::vector<double> mean =
        gray ? std::vector<double>{0.1307} : std::vector<double>{0.485, 0.456, 0.406};
    const std::vector<double> std =
        gray ? std::vector<double>{0.3081} : std::vector<double>{0.229, 0.224, 0.225};
    if (line.words[0] == "to_tensor") {
      expect_golden(line, chw, true, 0);
      expect_golden(line, functional::to_tensor(to_chw(picture)), true, 0);
    } else if (line.words[0] == "normalize") {
      expect_golden(line, functional::normalize(chw, mean, std), true, 0);
      expect_golden(line, functional::normalize(to_chw(picture), mean, std), true, 0);
      expect_golden(line, to_chw(functional::normalize(picture, mean, std)), true, 0);
      expect_golden(
          line,
          to_chw(functional::normalize(to_hwc({chw, picture.order()}, "test"), mean, std)),
          true,
          0);
    } else if (line.words[0] == "erase") {
      expect_golden(line, functional::erase(chw, {2, 3, 4, 5}, 0.25F), true, 0);
    } else {
      continue;
    }
    ++seen;
  }
  EXPECT_EQ(seen, 6);
}

TEST(Golden, TonesAreTorchvisions) {
  const std::map<std::string, std::function<Image(const Image&)>> u8 = {
      {"invert", [](const Image& i) { return functional::invert(i); }},
      {"posterize_3", [](const Image& i) { return functional::posterize(i, 3); }},
      {"solarize_99", [](const Image& i) { return functional::solarize(i, 99); }},
      {"autocontrast", [](const Image& i) { return functional::autocontrast(i); }},
      {"equalize", [](const Image& i) { return functional::equalize(i); }},
      {"sharpness_0", [](const Image& i) { return functional::adjust_sharpness(i, 0); }},
      {"sharpness_0.3", [](const Image& i) { return functional::adjust_sharpness(i, 0.3); }},
      {"sharpness_2.5", [](const Image& i) { return functional::adjust_sharpness(i, 2.5); }}};
  const std::map<std::string, std::function<at::Tensor(at::Tensor)>> f32 = {
      {"f32_invert", [](const at::Tensor& t) { return functional::invert(t); }},
      {"f32_solarize_0.4", [](const at::Tensor& t) { return functional::solarize(t, 0.4); }},
      {"f32_autocontrast", [](const at::Tensor& t) { return functional::autocontrast(t); }},
      {"f32_sharpness_2.5",
       [](const at::Tensor& t) { return functional::adjust_sharpness(t, 2.5); }}};
  int seen = 0;
  for (const Line& line : lines_of("pixels.txt")) {
    const Image picture =
        test::bytes({11, 14}, line.words.at(1) == "1" ? Order::kGray : Order::kRgb);
    if (const auto found = u8.find(line.words[0]); found != u8.end()) {
      expect_golden(line, hwc(found->second(picture)), false, 0);
    } else if (const auto real = f32.find(line.words[0]); real != f32.end()) {
      const at::Tensor half = functional::to_tensor(picture) * 0.5 + 0.2;
      expect_golden(line, real->second(half), true, 2e-7F);  // an order of sums in f32
    } else {
      continue;
    }
    ++seen;
  }
  EXPECT_EQ(seen, 24);
}

TEST(Golden, ToTensorTransposeAndNormalizeHavePaddlesBits) {
  int seen = 0;
  for (const Line& line : lines_of("paddle.txt")) {
    const Image picture =
        test::bytes({11, 14}, line.words.at(1) == "1" ? Order::kGray : Order::kRgb);
    if (line.words[0] == "to_tensor") {
      expect_golden(line, functional::to_tensor(picture), true, 0);
    } else if (line.words[0] == "transpose") {
      expect_golden(line, Transpose()(picture).tensor().chw, false, 0);
    } else {
      expect_golden(
          line,
          hwc(functional::normalize(picture, {127.5}, {100.0}, {.scale = image::Scale::kNone})),
          true,
          0);
    }
    ++seen;
  }
  EXPECT_EQ(seen, 6);
}

}  // namespace
}  // namespace argosy::vision
