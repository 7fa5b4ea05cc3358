// What plain loops over libjpeg-turbo make of the JPEGs of picture_input.cpp: limits to compare
// with, not libraries.
//
//     bench_jpeg_loops full|naive FOLDER [--epochs 3]
//
// full: every picture decoded whole, and no more. naive: the forty lines that a good programmer
// writes in an hour: a random crop, decoded by scanlines at 1, 4/8 or 2/8 scale where the crop
// allows it, columns and rows outside skipped, nothing read below it; cv::resize; flip, normalize.
#include <jpeglib.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "argosy/program/command_line.h"

#include "benchmarks/workload.h"
#include <opencv2/imgproc.hpp>

namespace {

constexpr int kSide = 224;
constexpr int kBatch = 32;

using Bytes = std::vector<unsigned char>;

Bytes read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::filesystem::path> pictures_below(const std::string& folder) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".jpg") {
      found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// A JPEG whose header has been read.
class Jpeg {
 public:
  explicit Jpeg(const Bytes& bytes) {
    info_.err = jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr) { throw std::runtime_error("not a JPEG"); };
    jpeg_create_decompress(&info_);
    jpeg_mem_src(&info_, bytes.data(), bytes.size());
    jpeg_read_header(&info_, TRUE);
    info_.out_color_space = JCS_RGB;
  }
  Jpeg(const Jpeg&) = delete;
  Jpeg& operator=(const Jpeg&) = delete;
  ~Jpeg() { jpeg_destroy_decompress(&info_); }
  jpeg_decompress_struct& operator*() { return info_; }
  jpeg_decompress_struct* operator->() { return &info_; }

 private:
  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
};

void decode_rows(Jpeg& jpeg, cv::Mat& into) {
  for (int y = 0; y < into.rows; ++y) {
    JSAMPROW row = into.ptr(y);
    jpeg_read_scanlines(&*jpeg, &row, 1);
  }
}

double decode_whole(const Bytes& bytes, cv::Mat& pixels) {
  Jpeg jpeg(bytes);
  jpeg_start_decompress(&*jpeg);
  pixels.create(
      static_cast<int>(jpeg->output_height), static_cast<int>(jpeg->output_width), CV_8UC3);
  decode_rows(jpeg, pixels);
  return pixels.at<cv::Vec3b>(0, 0)[0];
}

cv::Rect random_crop(int height, int width, std::mt19937& random) {
  std::uniform_real_distribution<double> part(0.08, 1.0);
  std::uniform_real_distribution<double> ratio(std::log(3.0 / 4), std::log(4.0 / 3));
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area = part(random) * height * width;
    const double aspect = std::exp(ratio(random));
    const int w = static_cast<int>(std::lround(std::sqrt(area * aspect)));
    const int h = static_cast<int>(std::lround(std::sqrt(area / aspect)));
    if (0 < w && w <= width && 0 < h && h <= height) {
      return {std::uniform_int_distribution<int>(0, width - w)(random),
              std::uniform_int_distribution<int>(0, height - h)(random),
              w,
              h};
    }
  }
  const int side = std::min(height, width);
  return {(width - side) / 2, (height - side) / 2, side, side};
}

/// Only the crop's rows and columns, at the scale that still has as many pixels as are wanted.
void decode_crop(const Bytes& bytes, std::mt19937& random, cv::Mat& pixels) {
  Jpeg jpeg(bytes);
  const cv::Rect crop = random_crop(
      static_cast<int>(jpeg->image_height), static_cast<int>(jpeg->image_width), random);
  const int least = std::min(crop.width, crop.height);
  const int down = least >= 4 * kSide ? 4 : least >= 2 * kSide ? 2 : 1;
  jpeg->scale_num = static_cast<unsigned>(8 / down);
  jpeg->scale_denom = 8;
  jpeg_start_decompress(&*jpeg);
  JDIMENSION left = static_cast<unsigned>(crop.x / down);
  JDIMENSION width = static_cast<unsigned>(std::max(1, crop.width / down));
  const JDIMENSION wanted_left = left;
  const JDIMENSION wanted_width = width;
  jpeg_crop_scanline(&*jpeg, &left, &width);
  jpeg_skip_scanlines(&*jpeg, static_cast<unsigned>(crop.y / down));
  cv::Mat rows(std::max(1, crop.height / down), static_cast<int>(width), CV_8UC3);
  decode_rows(jpeg, rows);
  const cv::Rect inner(
      static_cast<int>(wanted_left - left), 0, static_cast<int>(wanted_width), rows.rows);
  cv::resize(rows(inner & cv::Rect(0, 0, rows.cols, rows.rows)),
             pixels,
             {kSide, kSide},
             0,
             0,
             cv::INTER_LINEAR);
}

void normalize(const cv::Mat& pixels, bool flip, float* chw) {
  constexpr float kMean[] = {0.485F, 0.456F, 0.406F};
  constexpr float kStd[] = {0.229F, 0.224F, 0.225F};
  for (int y = 0; y < kSide; ++y) {
    const auto* row = pixels.ptr<cv::Vec3b>(y);
    for (int c = 0; c < 3; ++c) {
      float* out = chw + (c * kSide + y) * kSide;
      const float scale = 1 / (255 * kStd[c]);
      const float shift = -kMean[c] / kStd[c];
      for (int x = 0; x < kSide; ++x) {
        out[x] = static_cast<float>(row[flip ? kSide - 1 - x : x][c]) * scale + shift;
      }
    }
  }
}

void run(const std::string& mode, const std::string& folder, int epochs) {
  const auto paths = pictures_below(folder);
  std::mt19937 random(1);
  cv::Mat pixels;
  const at::Tensor batch = torch::empty({kBatch, 3, kSide, kSide});
  std::vector<double> samples_ms;
  double mean = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const argosy::bench::Stopwatch watch;
    for (size_t i = 0; i < paths.size(); ++i) {
      const Bytes bytes = read(paths[i]);
      if (mode == "full") {
        mean += decode_whole(bytes, pixels);
        continue;
      }
      decode_crop(bytes, random, pixels);
      const at::Tensor one = batch[static_cast<int64_t>(i % kBatch)];
      normalize(pixels, random() % 2 == 0, one.data_ptr<float>());
      mean += epoch == 0 ? one.mean().item<double>() : 0;
    }
    if (epoch > 0) {
      samples_ms.push_back(watch.ms());
    }
  }
  argosy::bench::Report report("flowers");
  report.numbers("samples_ms", samples_ms);
  report.number("images", static_cast<double>(paths.size()));
  if (mode != "full") {
    report.number("mean", mean / static_cast<double>(paths.size()));
  }
  report.print();
}

}  // namespace

int main(int argc, char** argv) {
  std::string mode;
  std::string folder;
  int epochs = 3;
  return argosy::program::run(
      {"Plain loops over libjpeg-turbo."},
      {{"mode", "", "full or naive", &mode, {.words = "full|naive", .required = true}},
       {"folder", "", "A folder of JPEGs for each class", &folder, {.required = true}},
       {"--epochs", "N", "The first is not timed", &epochs, {.least = 2, .most = 1000}}},
      argc,
      argv,
      [&] { run(mode, folder, epochs); });
}
