#pragma once

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "argosy/datasets/test_voc2012.h"
#include "argosy/fleet/fleet.h"
#include "argosy/image/codec.h"
#include "argosy/image/image.h"

#include "tests/support/run_ranks.h"
#include "tests/support/temp_dir.h"
#include <nlohmann/json.hpp>

namespace argosy::recipes::testing {

/// A gray picture of 28 × 28 whose class shows as a bright bar, and whose number shows a little.
inline image::Image bar(int label, int number) {
  image::Image picture({.height = 28, .width = 28}, image::Order::kGray);
  for (int y = 0; y < 28; ++y) {
    auto* row = picture.row<uint8_t>(y);
    for (int x = 0; x < 28; ++x) {
      const bool bright = x / 9 == label;
      row[x] = static_cast<uint8_t>((bright ? 200 : 20) + (x * 7 + y * 5 + number * 13) % 50);
    }
  }
  return picture;
}

/// root/a, root/b, root/c with `each` pictures.
inline void write_classes(const std::filesystem::path& root, int each, int first = 0) {
  for (int label = 0; label < 3; ++label) {
    const std::filesystem::path folder = root / std::string(1, static_cast<char>('a' + label));
    std::filesystem::create_directories(folder);
    for (int i = first; i < first + each; ++i) {
      image::write_file((folder / (std::to_string(i) + ".png")).string(),
                        image::encode_png(bar(label, i)));
    }
  }
}

/// The four files of MNIST in `folder`, with `count` bars for training and half as many for tests.
inline void write_idx(const std::filesystem::path& folder, int count) {
  std::filesystem::create_directories(folder);
  const auto write = [&](const std::string& name, std::string head, int images, bool pixels) {
    head += {'\0', '\0', static_cast<char>(images >> 8), static_cast<char>(images)};
    head += pixels ? std::string("\0\0\0\x1c\0\0\0\x1c", 8) : std::string();
    std::ofstream file(folder / name, std::ios::binary);
    file << head;
    for (int i = 0; i < images; ++i) {
      const image::Image picture = bar(i % 3, i);
      pixels ? file.write(reinterpret_cast<const char*>(picture.row<uint8_t>(0)), 784)
             : file.put(static_cast<char>(i % 3));
    }
  };
  for (const auto& [stem, images] : {std::pair("train", count), {"t10k", count / 2}}) {
    write(std::string(stem) + "-images-idx3-ubyte", std::string("\0\0\x08\x03", 4), images, true);
    write(std::string(stem) + "-labels-idx1-ubyte", std::string("\0\0\x08\x01", 4), images, false);
  }
}

/// VOC 2012's archive with `count` bars for training and half as many for validation: three of its
/// classes are the thirds of a picture, and every second picture is a "person", too.
inline void write_voc2012(const std::filesystem::path& file, int count) {
  constexpr std::array kThirds{"aeroplane", "bicycle", "bird"};
  const auto pictures = [&](int first, int last) {
    std::vector<datasets::testing::VocPicture> all;
    for (int i = first; i < last; ++i) {
      const std::vector<uint8_t> jpeg = image::encode_jpeg(bar(i % 3, i));
      all.push_back({.name = fmt::format("{:06}", i),
                     .jpeg = {jpeg.begin(), jpeg.end()},
                     .classes = {kThirds.at(static_cast<size_t>(i % 3))}});
      if (i % 2 == 0) {
        all.back().classes.emplace_back("person");
      }
    }
    return all;
  };
  datasets::testing::write_tar(
      file.string(),
      datasets::testing::voc2012_members(pictures(0, count), pictures(count, count + count / 2)));
}

/// `fn` as each rank of a job; its processes end with it, for fleet is global. What rank 0 returns
/// comes back.
inline nlohmann::ordered_json in_job(int ranks,
                                     const fleet::DistributedStrategy& strategy,
                                     const std::function<nlohmann::ordered_json()>& fn) {
  const test::TempDir folder;
  const std::string result = (folder.path() / "result.json").string();
  test::run_ranks(ranks,
                  [&](int rank) {
                    fleet::init(strategy,
                                {.init_method = "file://" + folder.path().string() + "/store",
                                 .timeout = std::chrono::seconds(30),
                                 .rank = rank,
                                 .world_size = ranks});
                    const nlohmann::ordered_json got = fn();
                    if (rank == 0) {
                      std::ofstream(result) << got.dump();
                    }
                    fleet::stop_worker();
                  },
                  {.mode = test::RankMode::kProcesses, .deadline = std::chrono::seconds(90)});
  std::ifstream file(result);
  return nlohmann::ordered_json::parse(file);
}

}  // namespace argosy::recipes::testing
