#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/datasets/files.h"
#include "argosy/datasets/sources.h"
#include "argosy/image/codec.h"

namespace argosy::datasets {
namespace {

namespace fs = std::filesystem;

using Open = std::function<std::unique_ptr<SampleSource>(const std::string& path)>;

const std::vector<std::pair<std::string, Open>>& openers() {
  static const std::vector<std::pair<std::string, Open>> all{
      {"mnist", [](const std::string& path) { return open_idx("mnist", path); }},
      {"fashion_mnist", [](const std::string& path) { return open_idx("fashion_mnist", path); }},
      {"mnist_json", open_mnist_json},
      {"cifar10", [](const std::string& path) { return open_cifar("cifar10", path); }},
      {"cifar100", [](const std::string& path) { return open_cifar("cifar100", path); }},
      {"flowers102", open_flowers102},
      {"keypoints", open_keypoints},
      {"folder", open_folder},
      {"records", open_records},
  };
  return all;
}

bool is_record_file(const std::string& path) {
  constexpr std::string_view kMagic = "ARGOREC\n";
  std::array<char, kMagic.size()> begin{};
  std::ifstream file(path, std::ios::binary);
  return file.read(begin.data(), begin.size()) &&
         std::string_view(begin.data(), begin.size()) == kMagic;
}

std::string set_of_folder(const std::string& path) {
  const auto has = [&](std::initializer_list<const char*> names) {
    return !find_file(path, names).empty();
  };
  if (has({"train-images-idx3-ubyte.gz",
           "train-images-idx3-ubyte",
           "t10k-images-idx3-ubyte.gz",
           "t10k-images-idx3-ubyte"})) {
    return path.find("fashion") == std::string::npos ? "mnist" : "fashion_mnist";
  }
  if (has({"102flowers.tgz", "102flowers.tar"})) {
    return "flowers102";
  }
  if (has({"cifar-10-python.tar.gz", "cifar-10-binary.tar.gz"})) {
    return "cifar10";
  }
  if (has({"cifar-100-python.tar.gz", "cifar-100-binary.tar.gz"})) {
    return "cifar100";
  }
  if (has({"training.csv.gz", "training.csv"})) {
    return "keypoints";
  }
  return has({"mnist.json.gz", "mnist.json"}) ? "mnist_json" : "folder";
}

std::string set_of_file(const std::string& path) {
  if (is_record_file(path)) {
    return "records";
  }
  const std::string name = fs::path(path).filename().string();
  for (const auto& [piece, set] : {std::pair{"-images-idx3", "mnist"},
                                   {"102flowers", "flowers102"},
                                   {"cifar-100-", "cifar100"},
                                   {"cifar-10-", "cifar10"},
                                   {"training.csv", "keypoints"},
                                   {"mnist.json", "mnist_json"}}) {
    if (name.find(piece) != std::string::npos) {
      return set;
    }
  }
  return "";
}

}  // namespace

int64_t SampleSource::label(int64_t index) const {
  std::vector<uint8_t> scratch;
  return label_of(get(index, scratch));
}

std::unique_ptr<SampleSource> open_samples(const std::string& set, const std::string& path) {
  const auto opener = std::ranges::find(openers(), set, &std::pair<std::string, Open>::first);
  if (opener == openers().end()) {
    throw UsageError("datasets.open", fmt::format("unknown data set \"{}\"", set));
  }
  return opener->second(path);
}

std::string recognised_set(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return set_of_folder(path);
  }
  return fs::is_regular_file(path, error) ? set_of_file(path) : "";
}

image::Image picture_of(const formats::PackedSample& sample, image::Damaged damaged) {
  if (sample.kind == formats::Picture::kEncoded) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(sample.picture.data());
    return image::decode({bytes, sample.picture.size()}, {.damaged = damaged, .name = sample.name});
  }
  const image::Order order = sample.channels == 1   ? image::Order::kGray
                             : sample.channels == 3 ? image::Order::kRgb
                                                    : image::Order::kRgba;
  image::Image picture(
      {.height = static_cast<int>(sample.height), .width = static_cast<int>(sample.width)}, order);
  std::memcpy(picture.data(), sample.picture.data(), sample.picture.size());
  return picture;
}

int64_t label_of(const formats::PackedSample& sample) {
  return sample.labels.empty() ? -1 : sample.labels.front();
}

}  // namespace argosy::datasets
