// small_sets FOLDER MATS: data sets in the published formats, small, the same on every machine, and
// easy to learn. The lessons train on them where the real ones are not at hand:
//   FOLDER/cifar10.tar            960 training and 200 test pictures, binary version
//   FOLDER/keypoints/training.csv 400 faces of 96 × 96 with their 15 points
//   FOLDER/flowers102/            546 photographs of the 8,189; MATS has the published labels and
//   splits
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "argosy/formats/test_archives.h"
#include "argosy/image/codec.h"
#include "argosy/image/image.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

/// The generator of ANSI C's example; equal on every machine.
class Noise {
 public:
  explicit Noise(uint32_t seed) : state_(seed) {}
  /// In [0, 1).
  double next() {
    state_ = state_ * 1103515245U + 12345U;
    return static_cast<double>(state_ >> 8U) / (1U << 24U);
  }
  double between(double least, double most) { return least + (most - least) * next(); }

 private:
  uint32_t state_;
};

uint8_t as_byte(double value) {
  return static_cast<uint8_t>(std::clamp(std::lround(value), 0L, 255L));
}

/// Channel `c` of a color on the wheel; `turn` in [0, 1).
double hue(double turn, int c) {
  return 127.5 + 110 * std::cos(2 * M_PI * (turn - c / 3.0));
}

void write(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  file.close();
  if (!file) {
    throw std::runtime_error(path.string() + ": cannot write");
  }
}

/// A class is a color.
std::string cifar_batch(int count, uint32_t seed) {
  constexpr int kPlane = 32 * 32;
  std::string bytes;
  Noise noise(seed);
  for (int i = 0; i < count; ++i) {
    const int label = i % 10;
    bytes += static_cast<char>(label);
    for (int at = 0; at < 3 * kPlane; ++at) {
      bytes += static_cast<char>(as_byte(hue(label / 10.0, at / kPlane) + noise.between(-60, 60)));
    }
  }
  return bytes;
}

void make_cifar10(const fs::path& path) {
  constexpr int kTrainingBatches = 5;
  formats::TestMembers members;
  for (int batch = 0; batch < kTrainingBatches; ++batch) {
    members.emplace_back(fmt::format("cifar-10-batches-bin/data_batch_{}.bin", batch + 1),
                         cifar_batch(192, static_cast<uint32_t>(batch)));
  }
  members.emplace_back("cifar-10-batches-bin/test_batch.bin", cifar_batch(200, 99));
  write(path, formats::tar(members));
}

/// A face is a bright disc with a dark spot for each point; it moves as a whole.
void make_faces(const fs::path& path) {
  constexpr int kSide = 96;
  struct Point {
    const char* name;
    double x, y;
  };
  constexpr auto kPoints = std::to_array<Point>({{"left_eye_center", 66, 38},
                                                 {"right_eye_center", 30, 38},
                                                 {"left_eye_inner_corner", 59, 39},
                                                 {"left_eye_outer_corner", 73, 39},
                                                 {"right_eye_inner_corner", 37, 39},
                                                 {"right_eye_outer_corner", 23, 39},
                                                 {"left_eyebrow_inner_end", 56, 29},
                                                 {"left_eyebrow_outer_end", 79, 30},
                                                 {"right_eyebrow_inner_end", 40, 29},
                                                 {"right_eyebrow_outer_end", 17, 30},
                                                 {"nose_tip", 48, 58},
                                                 {"mouth_left_corner", 62, 76},
                                                 {"mouth_right_corner", 34, 76},
                                                 {"mouth_center_top_lip", 48, 73},
                                                 {"mouth_center_bottom_lip", 48, 84}});
  std::string text;
  for (const Point& point : kPoints) {
    text += fmt::format("{0}_x,{0}_y,", point.name);
  }
  text += "Image\n";
  Noise noise(3);
  for (int face = 0; face < 400; ++face) {
    const double right = noise.between(-8, 8), down = noise.between(-8, 8);
    for (const Point& point : kPoints) {
      text += fmt::format("{:.3f},{:.3f},", point.x + right, point.y + down);
    }
    for (int at = 0; at < kSide * kSide; ++at) {
      const double x = at % kSide - right, y = at / kSide - down;
      double gray = std::hypot(x - 48, y - 52) < 40 ? 190 : 60;
      for (const Point& point : kPoints) {
        gray = std::hypot(x - point.x, y - point.y) < 2.5 ? 30 : gray;
      }
      text += fmt::format("{}{}", at == 0 ? "" : " ", as_byte(gray + noise.between(-15, 15)));
    }
    text += '\n';
  }
  write(path, text);
}

/// Neighbours in the published order are mostly of one class, and look alike here.
std::string photograph(int id, Noise& noise) {
  constexpr image::Size kSize{72, 96};
  image::Image photo(kSize, image::Order::kRgb);
  const double turn = id / 8190.0;
  for (int y = 0; y < kSize.height; ++y) {
    for (int x = 0; x < kSize.width; ++x) {
      const double petal = std::hypot(x - 48, y - 36) < 26 ? 1 : 0.3;
      const double stripe = 1 + 0.3 * std::sin(x * (0.1 + turn));
      for (int c = 0; c < 3; ++c) {
        const double value = hue(turn * 4, c) * petal * stripe + noise.between(-10, 10);
        photo.row<uint8_t>(y)[3 * x + c] = as_byte(value);
      }
    }
  }
  const std::vector<uint8_t> bytes = image::encode_jpeg(photo, 90);
  return {bytes.begin(), bytes.end()};
}

void make_flowers(const fs::path& folder, const fs::path& mats) {
  fs::create_directories(folder);
  for (const char* name : {"imagelabels.mat", "setid.mat"}) {
    fs::copy_file(mats / name, folder / name, fs::copy_options::overwrite_existing);
  }
  formats::TestMembers members;
  Noise noise(5);
  for (int id = 1; id <= 8189; id += 15) {
    members.emplace_back(fmt::format("jpg/image_{:05}.jpg", id), photograph(id, noise));
  }
  write(folder / "102flowers.tar", formats::tar(members));
}

}  // namespace
}  // namespace argosy

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "small_sets FOLDER MATS\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  argosy::make_cifar10(folder / "cifar10.tar");
  argosy::make_faces(folder / "keypoints" / "training.csv");
  argosy::make_flowers(folder / "flowers102", argv[2]);
  return 0;
}
