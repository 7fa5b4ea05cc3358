// The bits that every data set gives, in every room that gives them, against a list that is checked
// in: tests/data/digests.txt. A change of code that is not meant to change what a
// program trains on changes no line of that file. Most sets are made here, so that every machine
// has them.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/data/data_loader.h"
#include "argosy/datasets/flowers102.h"
#include "argosy/datasets/pack.h"
#include "argosy/datasets/sets.h"
#include "argosy/datasets/test_voc2012.h"
#include "argosy/formats/digest.h"
#include "argosy/formats/test_archives.h"
#include "argosy/formats/test_mat.h"
#include "argosy/image/codec.h"
#include "argosy/recipes/data.h"
#include "argosy/vision/vision.h"

#include "tests/support/temp_dir.h"

namespace argosy::recipes {
namespace {

namespace fs = std::filesystem;
using vision::Compose;
using vision::Split;

const fs::path kGiven = ARGOSY_TEST_DATA;
const std::string kList = ARGOSY_TEST_DATA "/digests.txt";

/// Bytes that look like nothing, the same on every machine.
std::string noise(size_t count, uint32_t seed) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525U + 1013904223U;
    bytes += static_cast<char>(seed >> 24);
  }
  return bytes;
}

std::string be32(uint32_t v) {
  return {static_cast<char>(v >> 24),
          static_cast<char>(v >> 16),
          static_cast<char>(v >> 8),
          static_cast<char>(v)};
}

/// All sets, in a folder that goes with the object.
class Sets {
 public:
  Sets() {
    make_mnist(path("mnist"), 7);
    make_mnist(path("fashion_mnist"), 8);
    make_mnist_json(path("json_255") + "/mnist.json", 255);
    make_mnist_json(path("json_256") + "/mnist.json", 256);
    make_cifar100(path("cifar-100-binary.tar"));
    make_flowers(path("flowers"));
    make_faces(path("faces"));
    make_photos(path("photos"));
    make_voc2012(path("voc2012"));
    make_svhn(path("svhn"));
    for (const char* split : {"train", "val", "test"}) {
      make_photos(path("split_photos") + "/" + split);
    }
    for (const auto& [set, from, to] : {std::tuple{"cifar10", cifar10(), "cifar.rec"},
                                        {"flowers102", path("flowers"), "flowers.rec"},
                                        {"keypoints", path("faces"), "faces.rec"},
                                        {"mnist", path("mnist"), "mnist.rec"}}) {
      const bool flowers = std::string_view(set) == "flowers102";  // of which a part is there
      const auto absent = flowers ? datasets::Absent::kSkip : datasets::Absent::kError;
      datasets::pack(*datasets::open(set, {.path = from, .absent = absent}), path(to));
    }
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_.path() / name).string();
  }
  [[nodiscard]] static std::string cifar10(const std::string& form = "python") {
    return (kGiven / "cifar10" / ("cifar-10-" + form + ".tar.gz")).string();
  }
  [[nodiscard]] static std::string digits() { return (kGiven / "mnist").string(); }

 private:
  static void write(const fs::path& path, const std::string& bytes) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }
  static void make_mnist(const fs::path& folder, uint32_t seed) {
    for (const auto& [name, count] : {std::pair("train", 12U), std::pair("t10k", 5U)}) {
      std::string labels;
      for (uint32_t i = 0; i < count; ++i) {
        labels += static_cast<char>(i * 7 % 10);
      }
      write(folder / (std::string(name) + "-images-idx3-ubyte"),
            std::string("\0\0\x08\x03", 4) + be32(count) + be32(28) + be32(28) +
                noise(size_t{count} * 784, seed++));
      write(folder / (std::string(name) + "-labels-idx1-ubyte"),
            std::string("\0\0\x08\x01", 4) + be32(count) + labels);
    }
  }
  static void make_mnist_json(const fs::path& path, int most) {
    std::string text = "[";
    for (uint32_t split = 0; split < 3; ++split) {
      std::string labels;
      text += split == 0 ? "[[" : ", [[";
      for (uint32_t i = 0; i < 6 - split; ++i) {
        text += i == 0 ? "[" : ", [";
        const std::string grays = noise(784, 100 * split + i);
        for (size_t p = 0; p < grays.size(); ++p) {
          const auto gray = static_cast<uint8_t>(grays[p]);
          text += fmt::format("{}{:.8f}", p == 0 ? "" : ", ", gray / static_cast<double>(most));
        }
        text += "]";
        labels += fmt::format("{}{}", i == 0 ? "" : ", ", (i * 3 + split) % 10);
      }
      text += "], [" + labels + "]]";
    }
    write(path, text + "]");
  }
  static void make_cifar100(const fs::path& path) {
    const auto batch = [](uint32_t count, uint32_t seed) {
      std::string bytes;
      for (uint32_t i = 0; i < count; ++i) {
        bytes += static_cast<char>(i % 20);        // coarse
        bytes += static_cast<char>(i * 37 % 100);  // fine
        bytes += noise(3072, seed + i);
      }
      return bytes;
    };
    write(path,
          formats::tar({{"cifar-100-binary/train.bin", batch(9, 500)},
                        {"cifar-100-binary/test.bin", batch(4, 600)}}));
  }
  static std::string read(const fs::path& path) {
    const std::vector<uint8_t> bytes = image::read_file(path.string());
    return {bytes.begin(), bytes.end()};
  }
  /// 15 of the 8,189 pictures, with the published labels and splits.
  static void make_flowers(const fs::path& folder) {
    fs::create_directories(folder);
    for (const char* name : {"imagelabels.mat", "setid.mat"}) {
      fs::copy_file(kGiven / "flowers102" / name, folder / name);
    }
    const datasets::Flowers102Index index = datasets::read_flowers102(
        (folder / "imagelabels.mat").string(), (folder / "setid.mat").string());
    formats::TestMembers members;
    for (const auto* split : {&index.train, &index.valid, &index.test}) {
      for (size_t i = 0; i < 5; ++i) {
        members.emplace_back(datasets::flowers102_picture(split->at(i * 7)),
                             read(kGiven / "images" / fmt::format("flower_{}.jpg", i % 3 + 1)));
      }
    }
    write(folder / "102flowers.tar", formats::tar(members));
  }
  static void make_faces(const fs::path& folder) {
    std::string train = "left_eye_x,left_eye_y,right_eye_x,right_eye_y,nose_x,nose_y,Image\n";
    std::string test = "ImageId,Image\n";
    for (uint32_t face = 0; face < 10; ++face) {
      std::string grays;
      for (const char gray : noise(144, 900 + face)) {
        grays += fmt::format("{}{}", grays.empty() ? "" : " ", static_cast<uint8_t>(gray));
      }
      if (face >= 8) {
        test += fmt::format("{},{}\n", face - 7, grays);
        continue;
      }
      for (uint32_t i = 0; i < 6; ++i) {
        const bool unknown = (face == 3 && i < 2) || (face == 5 && i >= 4);
        train += unknown ? "," : fmt::format("{}.25,", (face * 5 + i * 3) % 12);
      }
      train += grays + "\n";
    }
    write(folder / "training.csv", train);
    write(folder / "test.csv", test);
  }
  static void make_voc2012(const fs::path& folder) {
    const auto picture = [](const char* name, std::vector<std::string> classes) {
      return datasets::testing::VocPicture{
          .name = name,
          .jpeg = read(kGiven / "images" / fmt::format("flower_{}.jpg", name)),
          .classes = std::move(classes)};
    };
    write(
        folder / "VOCtrainval_11-May-2012.tar",
        formats::tar(datasets::testing::voc2012_members(
            {picture("1", {"dog", "person"}), picture("2", {"cat"})}, {picture("3", {"person"})})));
  }
  static void make_svhn(const fs::path& folder) {
    const formats::MatWriter out{std::endian::little};
    for (const auto& [name, count] :
         {std::pair("train_32x32.mat", 3), std::pair("test_32x32.mat", 2)}) {
      const std::string labels("\x01\x0a\x09", static_cast<size_t>(count));
      const std::string pixels = noise(static_cast<size_t>(count) * 32 * 32 * 3, 70);
      write(folder / name,
            out.header() + out.compressed(out.matrix(9, {32, 32, 3, count}, "X", 2, pixels)) +
                out.compressed(out.matrix(9, {count, 1}, "y", 2, labels)));
    }
  }
  static void make_photos(const fs::path& folder) {
    for (const auto& [name, from] : {std::pair("a/1.JPG", "flower_2.jpg"),
                                     {"b/1.jpg", "flower_1.jpg"},
                                     {"b/more/2.jpg", "flower_3.jpg"},
                                     {"c/1.jpg", "gray.jpg"},
                                     {"c/2.bmp", "rgb24.bmp"},
                                     {"c/3.png", "rgba.png"}}) {
      write(folder / name, read(kGiven / "images" / from));
    }
  }

  test::TempDir folder_{};
};

/// A digest of all that is added.
class Sum {
 public:
  template <typename Number>
  void add(std::span<const Number> numbers) {
    const auto count = static_cast<int64_t>(numbers.size());
    sum_.update(std::as_bytes(std::span(&count, 1)));
    sum_.update(std::as_bytes(numbers));
  }
  void add(const std::string& text) { add(std::span<const char>(text)); }
  void add(int64_t number) { add(std::span<const int64_t>(&number, 1)); }
  void add(const std::vector<std::string>& all) {
    add(std::ssize(all));
    for (const std::string& each : all) {
      add(each);
    }
  }
  void add(const image::Image& picture) {
    add(picture.height());
    add(picture.width());
    add(picture.channels());
    for (int y = 0; y < picture.height(); ++y) {
      add(std::span<const uint8_t>(picture.row<uint8_t>(y),
                                   static_cast<size_t>(picture.width() * picture.channels())));
    }
  }
  void add(const at::Tensor& tensor) {
    const at::Tensor flat = tensor.contiguous();
    const auto sizes = flat.sizes();
    add(std::span<const int64_t>(sizes.data(), sizes.size()));
    add(std::string(c10::toString(flat.scalar_type())));
    add(std::span<const uint8_t>(static_cast<const uint8_t*>(flat.data_ptr()), flat.nbytes()));
  }
  [[nodiscard]] std::string hex() { return sum_.hex(); }

 private:
  formats::Digester sum_{formats::Digest::kMd5};
};

/// Lines "what it is: digest".
class Found {
 public:
  template <typename Add>
  void line(const std::string& what, const Add& add) {
    Sum sum;
    add(sum);
    lines_.push_back(what + ": " + sum.hex());
  }
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_{};
};

std::vector<int64_t> all_of(int64_t size) {
  std::vector<int64_t> indices(static_cast<size_t>(size));
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

/// A step that does nothing, and keeps a chain from being run in one pass.
const auto kPlainly = [](const image::Image& image) { return image; };

struct Chain {
  const char* name;
  Compose chain;
};

/// Without a transform; a chain that is run in one pass; one that is not; and all that draws.
std::vector<Chain> chains() {
  using namespace vision;
  const Normalize normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225});
  return {
      {"tensor", {Resize({24, 20}), ToTensor()}},
      {"one pass", {RandomResizedCrop(20), RandomHorizontalFlip(), ToTensor(), normalize}},
      {"step by step",
       {kPlainly, RandomResizedCrop(20), RandomHorizontalFlip(), ToTensor(), normalize}},
      {"padded", {Resize({32, 32}), RandomCrop(32, {.padding = {4, 4, 4, 4}}), ToTensor()}},
      {"colors",
       {Resize({24, 24}), vision::ColorJitter({.brightness = 0.4, .hue = 0.1}), ToTensor()}},
  };
}

template <typename Set>
auto batch_of(const Set& set, const std::vector<int64_t>& indices, at::MemoryFormat format) {
  static data::TensorPool pool;
  data::BatchContext context{.indices = indices, .seed = 5, .epoch = 2, .pool = &pool};
  context.memory_format = format;
  return set.get_batch(indices, context);
}

/// get() of each sample, and get_batch() of all in both orders of memory: samples of several sizes
/// make batches of one.
template <typename Set, typename AddSample>
void add_set(Found& found, const std::string& what, const Set& set, const AddSample& add_sample) {
  found.line(what + ", get", [&](Sum& sum) {
    sum.add(set.size());
    for (int64_t i = 0; i < set.size(); ++i) {
      data::Random random(5, 2, i);
      add_sample(sum, i, random);
    }
  });
  found.line(what + ", get_batch", [&](Sum& sum) {
    const auto add = [&](const std::vector<int64_t>& indices) {
      for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
        std::apply([&](const auto&... tensors) { (sum.add(tensors), ...); },
                   batch_of(set, indices, format));
      }
    };
    try {
      add(all_of(set.size()));
    } catch (const DataError&) {
      for (int64_t i = 0; i < set.size(); ++i) {
        add({i});
      }
    }
  });
}

/// A set of labelled pictures, by split and by chain.
template <typename Open>
void add_pictures(Found& found, const std::string& what, const Open& open) {
  std::vector<Chain> all = chains();
  all.insert(all.begin(), Chain{"no transform", Compose{}});
  bool first = true;
  for (const Chain& chain : all) {
    const auto set = open(chain.chain);
    add_set(found, what + ", " + chain.name, set, [&](Sum& sum, int64_t i, data::Random& random) {
      const auto [image, label] = set.get(i, random);
      sum.add(image);
      sum.add(label.template item<int64_t>());
    });
    if (first) {
      found.line(what + ", stored", [&](Sum& sum) {
        sum.add(std::vector<std::string>(set.classes().begin(), set.classes().end()));
        sum.add(std::span<const int64_t>(set.labels()));
        for (int64_t i = 0; i < set.size(); ++i) {
          sum.add(set.picture(i));
        }
      });
      first = false;
    }
  }
}

/// Every split of a source, its description apart.
void add_source(Found& found, const std::string& set, const std::string& path) {
  const auto source = datasets::open(
      set,
      {.path = path,
       .absent = set == "flowers102" ? datasets::Absent::kSkip : datasets::Absent::kError});
  const datasets::About& about = source->about();
  const std::string what = "source " + set + " of " + fs::path(path).filename().string();
  found.line(what + ", classes", [&](Sum& sum) {
    sum.add(about.classes);
    sum.add(about.groups);
    sum.add(about.point_names);
  });
  found.line(what + ", splits", [&](Sum& sum) {
    for (const datasets::SplitRange& split : about.splits) {
      sum.add(split.name);
      sum.add(split.first);
      sum.add(split.count);
    }
    sum.add(source->size());
    sum.add(about.missing);
    sum.add(fmt::format("{}", set == "mnist_json" ? 1 / about.full : 1.0));
  });
  found.line(what + ", samples", [&](Sum& sum) {
    datasets::Scratch scratch;
    for (int64_t i = 0; i < source->size(); ++i) {
      const datasets::Sample sample = source->get(i, scratch);
      sum.add(source->label(i));
      sum.add(sample.labels);
      sum.add(sample.points);
      sum.add(fs::path(sample.name).filename().string());
      sum.add(sample.picture.bytes);
      sum.add(source->decoded(sample));
    }
  });
}

void add_stored(Sum& sum, const Examples& examples, int64_t i) {
  const vision::PictureDataset& set = examples.dataset();
  const int64_t at = examples.indices()[static_cast<size_t>(i)];
  const vision::StoredExample stored = set.stored(at);
  sum.add(stored.picture);
  const bool classes = stored.points.empty() && set.targets().dim() == 1;
  sum.add(classes ? set.labels()[static_cast<size_t>(at)] : int64_t{-1});
  sum.add(std::span<const float>(stored.points));
  sum.add(fs::path(stored.name).filename().string());
}

/// What argosy train makes of a set.
void add_recipe(Found& found, const std::string& what, const std::string& data, int channels) {
  const auto set = open_data(parse_data(data));
  found.line("recipe " + what + ", description", [&](Sum& sum) {
    sum.add(set->splits());
    sum.add(set->classes());
    sum.add(set->point_names());
    sum.add(set->like().row.name);
    sum.add(set->like().set->augment);
    sum.add(std::span<const double>(set->like().set->mean));
    sum.add(std::span<const double>(set->like().set->std));
    sum.add(set->stored().side);
    sum.add(set->stored().channels);
  });
  const vision::Compose resized{vision::Resize({16, 16}), vision::ToTensor()};
  const vision::Compose drawn{
      vision::RandomResizedCrop(16), vision::RandomHorizontalFlip(), vision::ToTensor()};
  for (const std::string& split : set->splits()) {
    const Examples plain = set->examples(split, resized, channels);
    found.line(fmt::format("recipe {}, {}", what, split), [&](Sum& sum) {
      sum.add(plain.size());
      for (int64_t i = 0; i < plain.size(); ++i) {
        add_stored(sum, plain, i);
      }
      for (const Compose& chain : {resized, drawn}) {
        const Examples examples = set->examples(split, chain, channels);
        data::DataLoader loader(examples, {.batch_size = 3, .shuffle = true, .seed = 3});
        for (auto& [images, targets] : loader) {
          sum.add(images);
          sum.add(targets);
        }
      }
    });
  }
}

void add_sources(Found& found, const Sets& sets) {
  add_source(found, "mnist", sets.path("mnist"));
  add_source(found, "fashion_mnist", sets.path("fashion_mnist"));
  add_source(found, "mnist_json", sets.path("json_255"));
  add_source(found, "mnist_json", sets.path("json_256"));
  add_source(found, "mnist_json", Sets::digits());
  add_source(found, "cifar10", Sets::cifar10("python"));
  add_source(found, "cifar10", Sets::cifar10("binary"));
  add_source(found, "cifar100", sets.path("cifar-100-binary.tar"));
  add_source(found, "flowers102", sets.path("flowers"));
  add_source(found, "keypoints", sets.path("faces"));
  add_source(found, "keypoints", (kGiven / "keypoints").string());
  add_source(found, "folder", sets.path("photos"));
  add_source(found, "voc2012", sets.path("voc2012"));
  add_source(found, "svhn", sets.path("svhn"));
  for (const char* records : {"mnist.rec", "cifar.rec", "flowers.rec", "faces.rec"}) {
    add_source(found, "records", sets.path(records));
  }
}

/// Two sets that differ in nothing but their files.
template <typename Set>
void add_idx(Found& found, const std::string& name, const std::string& folder, Split split) {
  const vision::PictureOptions normalized{.mean = {0.1307}, .std = {0.3081}};
  const vision::PictureOptions drawn{
      .transform = {
          vision::ToTensor(),
          vision::Normalize(0.1307, 0.3081),
          [](const at::Tensor& image, data::Random& random) { return image + random.uniform(); }}};
  for (const auto& [options, set] : {std::pair("no options", Set(folder, split)),
                                     std::pair("normalized", Set(folder, split, normalized)),
                                     std::pair("transformed", Set(folder, split, drawn))}) {
    const std::string what = fmt::format("{} {}, {}", name, to_string(split), options);
    add_set(found, what, set, [&set = set](Sum& sum, int64_t i, data::Random& random) {
      const auto [image, label] = set.get(i, random);
      sum.add(image);
      sum.add(label);
    });
  }
  const Set set(folder, split);
  found.line(fmt::format("{} {}, stored", name, to_string(split)), [&](Sum& sum) {
    sum.add(set.pixels().squeeze(1));
    sum.add(set.targets());
  });
  found.line(fmt::format("{} {}, classes", name, to_string(split)), [&](Sum& sum) {
    sum.add(std::vector<std::string>(set.classes().begin(), set.classes().end()));
  });
}

void add_faces(Found& found, const std::string& name, const std::string& path) {
  const auto pairs = vision::FacialKeypoints(path).pairs();
  for (const auto& [missing, word] : {std::pair(vision::Points::kDrop, "drop"),
                                      {vision::Points::kForwardFill, "fill"},
                                      {vision::Points::kKeep, "keep"}}) {
    for (const Chain& chain : {Chain{"no transform", {}},
                               Chain{"tensor", {vision::ToTensor()}},
                               Chain{"flipped",
                                     {vision::RandomHorizontalFlip({.keypoint_pairs = pairs}),
                                      vision::ToTensor(),
                                      vision::Normalize(0.5, 0.25)}}}) {
      const vision::FacialKeypoints faces(path,
                                          {.transform = chain.chain, .open = {.points = missing}});
      const std::string what =
          fmt::format("vision FacialKeypoints of {}, {}, {}", name, word, chain.name);
      add_set(found, what, faces, [&](Sum& sum, int64_t i, data::Random& random) {
        const auto [image, points] = faces.get(i, random);
        sum.add(image);
        sum.add(points);
        sum.add(faces.at(i).image);
      });
    }
  }
}

void add_vision(Found& found, const Sets& sets) {
  for (const Split split : {Split::kTrain, Split::kValid, Split::kTest}) {
    const std::string name(to_string(split));
    if (split != Split::kValid) {
      add_idx<vision::Mnist>(found, "vision Mnist", sets.path("mnist"), split);
      add_idx<vision::FashionMnist>(
          found, "vision FashionMnist", sets.path("fashion_mnist"), split);
      add_pictures(found, "vision Cifar10 " + name, [&](const Compose& chain) {
        return vision::Cifar10(Sets::cifar10(), split, {.transform = chain});
      });
      for (const auto& [word, labels] : {std::pair("fine", 0), {"coarse", 1}}) {
        add_pictures(found,
                     fmt::format("vision Cifar100 {} {}", word, name),
                     [&, label = labels](const Compose& chain) {
                       return vision::Cifar100(sets.path("cifar-100-binary.tar"),
                                               split,
                                               {.transform = chain, .label = label});
                     });
      }
      add_pictures(found, "vision PackedPictures of cifar10 " + name, [&](const Compose& chain) {
        return vision::Pictures(sets.path("cifar.rec"), split, {.transform = chain});
      });
    }
    for (const auto& [word, splits] : {std::pair("published", vision::FlowersSplits::kPublished),
                                       {"paddle", vision::FlowersSplits::kPaddle}}) {
      add_pictures(
          found,
          fmt::format("vision Flowers102 {} {}", word, name),
          [&, chosen = splits](const Compose& chain) {
            return vision::Flowers102(
                sets.path("flowers"),
                split,
                {.transform = chain, .open = {.absent = vision::Absent::kSkip, .splits = chosen}});
          });
    }
    add_pictures(found, "vision PackedPictures of flowers102 " + name, [&](const Compose& chain) {
      return vision::Pictures(sets.path("flowers.rec"), split, {.transform = chain});
    });
    const vision::MnistJson json(sets.path("json_255"), split);
    add_set(found, "vision MnistJson " + name, json, [&](Sum& sum, int64_t i, data::Random&) {
      const auto [image, label] = json.get(i);
      sum.add(image);
      sum.add(label);
    });
  }
  add_pictures(found, "vision PackedPictures, gray", [&](const Compose& chain) {
    Compose gray =
        chain.size() == 0 ? chain : Compose{vision::Resize({24, 24}), vision::ToTensor()};
    return vision::Pictures(sets.path("cifar.rec"),
                            {.transform = gray, .order = image::Order::kGray});
  });
  for (const auto& [word, keep] :
       {std::pair("", vision::Keep::kNothing), {", kept", vision::Keep::kDecoded}}) {
    add_pictures(
        found, fmt::format("vision DatasetFolder{}", word), [&, kept = keep](const Compose& chain) {
          return vision::DatasetFolder(sets.path("photos"),
                                       {.transform = chain, .cache = {.keep = kept}});
        });
  }
  for (const Chain& chain : chains()) {
    const vision::ImageFolder set(sets.path("photos"), {.transform = chain.chain});
    add_set(found,
            fmt::format("vision ImageFolder, {}", chain.name),
            set,
            [&](Sum& sum, int64_t i, data::Random& random) {
              sum.add(std::get<0>(set.get(i, random)));
              sum.add(fs::path(set.path(i)).filename().string());
            });
  }
  add_faces(found, "training.csv", sets.path("faces"));
  add_faces(found, "records", sets.path("faces.rec"));
  add_faces(found, "the contest", (kGiven / "keypoints").string());
}

void add_recipes(Found& found, const Sets& sets) {
  for (const auto& [what, data, channels] :
       {std::tuple("mnist", "mnist:" + sets.path("mnist"), 1),
        {"fashion_mnist", "fashion_mnist:" + sets.path("fashion_mnist"), 1},
        {"mnist in color", "mnist:" + sets.path("mnist"), 3},
        {"mnist_json", "mnist_json:" + sets.path("json_256"), 1},
        {"cifar10", "cifar10:" + Sets::cifar10(), 3},
        {"cifar10 held out", "cifar10:" + Sets::cifar10() + ",holdout=0.3,limit=6", 3},
        {"cifar100", "cifar100:" + sets.path("cifar-100-binary.tar"), 3},
        {"cifar100 coarse", "cifar100:" + sets.path("cifar-100-binary.tar") + ",labels=coarse", 3},
        {"flowers102", "flowers102:" + sets.path("flowers") + ",missing=skip", 3},
        {"flowers102 paddle",
         "flowers102:" + sets.path("flowers") + ",missing=skip,splits=paddle",
         3},
        {"keypoints", "keypoints:" + sets.path("faces"), 1},
        {"keypoints filled", "keypoints:" + sets.path("faces") + ",missing=fill", 1},
        {"keypoints of records", "keypoints:" + sets.path("faces.rec"), 1},
        {"folder", "folder:" + sets.path("photos"), 3},
        {"voc2012", "voc2012:" + sets.path("voc2012"), 3},
        {"svhn", "svhn:" + sets.path("svhn"), 3},
        {"folder kept", "folder:" + sets.path("photos") + ",cache=decoded", 3},
        {"folder of splits", "folder:" + sets.path("split_photos"), 3},
        {"records of mnist", "records:" + sets.path("mnist.rec"), 1},
        {"records of flowers102", "records:" + sets.path("flowers.rec"), 3}}) {
    add_recipe(found, what, data, channels);
  }
  const auto pictures = open_pictures(
      datasets::open_files({sets.path("photos/a"), sets.path("photos/c/1.jpg")}), {}, {});
  const Examples examples =
      pictures->examples("test", {vision::Resize({8, 8}), vision::ToTensor()}, 3);
  found.line("recipe pictures", [&](Sum& sum) {
    for (int64_t i = 0; i < examples.size(); ++i) {
      const auto stored = examples.dataset().stored(examples.indices()[static_cast<size_t>(i)]);
      sum.add(stored.picture);
      sum.add(stored.labels.empty() ? int64_t{-1} : stored.labels.front());
      sum.add(fs::path(stored.name).filename().string());
    }
  });
}

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("#") && !line.empty()) {
      lines.push_back(line);
    }
  }
  return lines;
}

TEST(DataDigests, AreThoseOfTheList) {
  const Sets sets;
  Found found;
  add_sources(found, sets);
  add_vision(found, sets);
  add_recipes(found, sets);
  const std::vector<std::string> wanted = lines_of(kList);
  EXPECT_GT(wanted.size(), 100U);
  for (const std::string& line : wanted) {
    EXPECT_TRUE(std::ranges::find(found.lines(), line) != found.lines().end())
        << "no more: " << line;
  }
  for (const std::string& line : found.lines()) {
    EXPECT_TRUE(std::ranges::find(wanted, line) != wanted.end()) << "new:     " << line;
  }
}

}  // namespace
}  // namespace argosy::recipes
