// How far OpenCV, which Paddle's cv2 backend calls, is from Argosy (u8: Pillow's bits), on the
// photographs that measure_torch.py --dump FOLDER wrote: the figures of
// docs/reference/transforms_exactness.md. Not part of the build, for it needs
// libopencv-imgproc-dev:
//   g++ -O2 -std=c++20 -I. -isystem /usr/include/opencv4 tests/golden/images/measure_opencv.cpp
//     build/release/argosy/image/libargosy_image*.a build/release/argosy/base/libargosy_base.a
//     -lopencv_imgproc -lopencv_core -lfmt -lspdlog -lpthread -o build/measure_opencv
//   build/measure_opencv FOLDER
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "argosy/image/color.h"
#include "argosy/image/filter.h"
#include "argosy/image/geometry.h"
#include "argosy/image/resize.h"

#include <opencv2/core.hpp>
#include <opencv2/imgproc.hpp>

namespace {

using namespace argosy::image;  // NOLINT(google-build-using-namespace)

constexpr int kSide = 500;
using Mat = cv::Mat;
using Ours = std::function<Image(const Image&)>;
using Theirs = std::function<Mat(const Mat&)>;

struct Row {
  std::string name;
  Ours ours;
  Theirs theirs;
  std::array<int64_t, 256> steps{};
};

Theirs resized(int how) {
  return [=](const Mat& from) {
    Mat to;
    cv::resize(from, to, {224, 224}, 0, 0, how);
    return to;
  };
}
Ours resized(Interpolation how, Antialias antialias) {
  return [=](const Image& from) { return resize(from, {224, 224}, {how, antialias}); };
}

Theirs rotated(int how) {
  return [=](const Mat& from) {
    Mat to;
    const Mat map = cv::getRotationMatrix2D({kSide / 2.0F, kSide / 2.0F}, 30, 1);
    cv::warpAffine(from, to, map, {kSide, kSide}, how);
    return to;
  };
}
Ours rotated(Interpolation how) {
  return [=](const Image& from) { return rotate(from, 30, {.interpolation = how}); };
}

constexpr std::array<PointF, 4> kStart{{{0, 0}, {499, 0}, {499, 499}, {0, 499}}};
constexpr std::array<PointF, 4> kEnd{{{30, 20}, {470, 5}, {480, 460}, {10, 440}}};

Mat warped(const Mat& from) {
  std::vector<cv::Point2f> start, end;
  for (size_t i = 0; i < 4; ++i) {
    start.emplace_back(static_cast<float>(kStart[i].x), static_cast<float>(kStart[i].y));
    end.emplace_back(static_cast<float>(kEnd[i].x), static_cast<float>(kEnd[i].y));
  }
  Mat to;
  cv::warpPerspective(from, to, cv::getPerspectiveTransform(start, end), {kSide, kSide});
  return to;
}

Mat looked_up(const Mat& from, const std::function<double(int)>& f) {
  Mat table(1, 256, CV_8U), to;
  for (int i = 0; i < 256; ++i) {
    table.at<uint8_t>(i) = static_cast<uint8_t>(std::clamp(f(i), 0.0, 255.0));
  }
  cv::LUT(from, table, to);
  return to;
}

Mat gray(const Mat& from) {
  Mat to;
  cv::cvtColor(from, to, cv::COLOR_RGB2GRAY);
  return to;
}

Mat hue(const Mat& from) {  // paddle's functional_cv2.adjust_hue of 0.1; its images are BGR
  Mat bgr, hsv, to;
  cv::cvtColor(from, bgr, cv::COLOR_RGB2BGR);
  cv::cvtColor(bgr, hsv, cv::COLOR_BGR2HSV_FULL);
  for (int i = 0; i < kSide * kSide; ++i) {
    hsv.data[3 * i] = static_cast<uint8_t>(hsv.data[3 * i] + 25);
  }
  cv::cvtColor(hsv, bgr, cv::COLOR_HSV2BGR_FULL);
  cv::cvtColor(bgr, to, cv::COLOR_BGR2RGB);
  return to;
}

Mat blurred(const Mat& from) {
  Mat to;
  cv::GaussianBlur(from, to, {9, 9}, 1.5, 1.5, cv::BORDER_REFLECT_101);
  return to;
}

std::vector<Row> rows() {
  using I = Interpolation;
  constexpr auto kOn = Antialias::kOn, kOff = Antialias::kOff;
  return {
      {"resize bilinear, kOff; INTER_LINEAR",
       resized(I::kBilinear, kOff),
       resized(cv::INTER_LINEAR)},
      {"resize bilinear, kOn; INTER_LINEAR", resized(I::kBilinear, kOn), resized(cv::INTER_LINEAR)},
      {"resize bicubic, kOff; INTER_CUBIC", resized(I::kBicubic, kOff), resized(cv::INTER_CUBIC)},
      {"resize bicubic, kOn; INTER_CUBIC", resized(I::kBicubic, kOn), resized(cv::INTER_CUBIC)},
      {"resize nearest; INTER_NEAREST", resized(I::kNearest, kOn), resized(cv::INTER_NEAREST)},
      {"resize nearest; INTER_NEAREST_EXACT",
       resized(I::kNearest, kOn),
       resized(cv::INTER_NEAREST_EXACT)},
      {"resize box; INTER_AREA", resized(I::kBox, kOn), resized(cv::INTER_AREA)},
      {"resize lanczos, kOn; INTER_LANCZOS4",
       resized(I::kLanczos, kOn),
       resized(cv::INTER_LANCZOS4)},
      {"rotate 30, nearest", rotated(I::kNearest), rotated(cv::INTER_NEAREST)},
      {"rotate 30, bilinear", rotated(I::kBilinear), rotated(cv::INTER_LINEAR)},
      {"rotate 30, bicubic", rotated(I::kBicubic), rotated(cv::INTER_CUBIC)},
      {"perspective, bilinear",
       [](const Image& i) { return perspective(i, kStart, kEnd); },
       warped},
      {"adjust_brightness 1.3",
       [](const Image& i) { return adjust_brightness(i, 1.3); },
       [](const Mat& m) { return looked_up(m, [](int i) { return i * 1.3; }); }},
      {"adjust_contrast 1.3",
       [](const Image& i) { return adjust_contrast(i, 1.3); },
       [](const Mat& m) { return looked_up(m, [](int i) { return (i - 74) * 1.3 + 74; }); }},
      {"adjust_hue 0.1", [](const Image& i) { return adjust_hue(i, 0.1); }, hue},
      {"to_grayscale", [](const Image& i) { return to_grayscale(i); }, gray},
      {"gaussian_blur 9, 1.5", [](const Image& i) { return gaussian_blur(i, 9, 1.5); }, blurred},
  };
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Row> all = rows();
  for (const auto& file : std::filesystem::directory_iterator(argc > 1 ? argv[1] : ".")) {
    std::ifstream stream(file.path(), std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    Image image({kSide, kSide}, Order::kRgb);
    if (bytes.size() != image.total_bytes()) {
      continue;
    }
    std::memcpy(image.data(), bytes.data(), bytes.size());
    const Mat mat(kSide, kSide, CV_8UC3, bytes.data());
    for (Row& row : all) {
      const Image ours = row.ours(image);
      const Mat theirs = row.theirs(mat);
      for (size_t i = 0; i < ours.total_bytes(); ++i) {
        ++row.steps[static_cast<size_t>(
            std::abs(int{theirs.data[i]} - int{ours.row<uint8_t>(0)[i]}))];
      }
    }
  }
  for (const Row& row : all) {
    double count = 0, sum = 0, most = 0;
    for (size_t i = 0; i < row.steps.size(); ++i) {
      count += static_cast<double>(row.steps[i]);
      sum += static_cast<double>(row.steps[i]) * static_cast<double>(i);
      most = row.steps[i] != 0 ? static_cast<double>(i) : most;
    }
    fmt::print("{:38} {:6.2f} % differ, {:6.2f} % by more than 1, mean {:.4f}, most {}\n",
               row.name,
               100 * (1 - static_cast<double>(row.steps[0]) / count),
               100 * (1 - static_cast<double>(row.steps[0] + row.steps[1]) / count),
               sum / count,
               most);
  }
  return 0;
}
