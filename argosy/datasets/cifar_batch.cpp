#include "argosy/datasets/cifar_batch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "argosy/base/error.h"
#include "argosy/formats/pickle.h"

namespace argosy::datasets {
namespace {

constexpr int kFewClasses = 10;
constexpr int kManyClasses = 100;
constexpr int kCoarseClasses = 20;
constexpr size_t kImage = CifarData::kImageBytes;

[[noreturn]] void fail(const CifarFile& file,
                       const std::string& what,
                       int64_t offset = -1,
                       int64_t index = -1) {
  throw DataError("datasets.cifar", what, {file.place, offset, index});
}

/// Bytes of a sample in the binary form: one label or two, then the pixels.
size_t record_bytes(int num_classes) {
  return kImage + (num_classes == kFewClasses ? 1 : 2);
}

/// A binary batch begins with a label, at most 19; every pickle with an operation beyond.
bool is_pickle(std::span<const uint8_t> bytes) {
  constexpr uint8_t kProtocol = 0x80;
  constexpr uint8_t kNewest = 5;
  const bool marked = bytes.size() >= 2 && bytes[0] == kProtocol && bytes[1] <= kNewest;
  const bool old = !bytes.empty() && (bytes[0] == '(' || bytes[0] == '}');
  return marked || old;
}

void check_label(const CifarFile& file, int64_t label, int classes, int64_t offset, size_t index) {
  if (label < 0 || label >= classes) {
    fail(file,
         fmt::format("label {} is out of range: expected 0 to {}", label, classes - 1),
         offset,
         static_cast<int64_t>(index));
  }
}

/// The first batch says which data set it is; the others must agree.
void settle_classes(const CifarFile& file, int num_classes, CifarData& data) {
  if (data.labels.empty()) {
    data.num_classes = num_classes;
  } else if (data.num_classes != num_classes) {
    fail(file,
         fmt::format(
             "a batch of CIFAR-{} after batches of CIFAR-{}", num_classes, data.num_classes));
  }
}

/// By the size of a record. Where both would fit (a multiple of 9,446,402 bytes), by the labels.
int binary_classes(const CifarFile& file) {
  const std::vector<uint8_t>& bytes = file.bytes;
  const bool few = bytes.size() % record_bytes(kFewClasses) == 0;
  const bool many = bytes.size() % record_bytes(kManyClasses) == 0;
  if (few && many) {
    for (size_t at = 0; at < bytes.size(); at += record_bytes(kFewClasses)) {
      if (bytes[at] >= kFewClasses) {
        return kManyClasses;
      }
    }
  }
  if (!few && !many) {
    fail(file,
         fmt::format("{} bytes are no whole number of samples: expected a multiple of {} "
                     "(CIFAR-10) or {} (CIFAR-100): "
                     "truncated, or not a CIFAR batch",
                     bytes.size(),
                     record_bytes(kFewClasses),
                     record_bytes(kManyClasses)));
  }
  return few ? kFewClasses : kManyClasses;
}

void append_binary(const CifarFile& file, CifarData& data) {
  const int classes = binary_classes(file);
  settle_classes(file, classes, data);
  const size_t record = record_bytes(classes);
  data.pixels.reserve(data.pixels.size() + file.bytes.size() / record * kImage);
  for (size_t at = 0; at < file.bytes.size(); at += record) {
    size_t next = at;
    if (classes == kManyClasses) {
      check_label(file, file.bytes[next], kCoarseClasses, static_cast<int64_t>(next), data.size());
      data.coarse_labels.push_back(file.bytes[next++]);
    }
    check_label(file, file.bytes[next], classes, static_cast<int64_t>(next), data.size());
    data.labels.push_back(file.bytes[next++]);
    const auto image = file.bytes.begin() + static_cast<int64_t>(next);
    data.pixels.insert(data.pixels.end(), image, image + kImage);
  }
}

/// The entry of a dict that must be there.
const formats::PickleValue& entry(const CifarFile& file,
                                  const formats::PickleValue& dict,
                                  std::string_view key) {
  const formats::PickleValue* found = dict.find(key);
  if (found == nullptr) {
    fail(file, fmt::format("not a CIFAR batch: the dict in it has no key '{}'", key));
  }
  return *found;
}

/// A list of labels of as many samples as there are images; `first`: the index of the first.
std::vector<uint8_t> labels_of(const CifarFile& file,
                               const formats::PickleValue& dict,
                               std::string_view key,
                               int classes,
                               size_t images,
                               size_t first) {
  const formats::PickleValue& list = entry(file, dict, key);
  if (!list.is(formats::PickleKind::kList) && !list.is(formats::PickleKind::kTuple)) {
    fail(file, fmt::format("'{}': expected a list of ints, got {}", key, list.describe()));
  }
  if (list.items().size() != images) {
    fail(file,
         fmt::format("wrong counts: {} images and {} of '{}'", images, list.items().size(), key));
  }
  std::vector<uint8_t> labels;
  for (const formats::PickleValue& label : list.items()) {
    const size_t index = first + labels.size();
    if (!label.is(formats::PickleKind::kInt)) {
      fail(file,
           fmt::format("'{}': expected an int, got {}", key, label.describe()),
           -1,
           static_cast<int64_t>(index));
    }
    check_label(file, label.as_int(), classes, -1, index);
    labels.push_back(static_cast<uint8_t>(label.as_int()));
  }
  return labels;
}

formats::PickleValue dict_of(const CifarFile& file) {
  formats::PickleValue dict = formats::unpickle(file.bytes, {.path = file.place});
  if (!dict.is(formats::PickleKind::kDict)) {
    fail(file, fmt::format("not of CIFAR: expected a dict, got {}", dict.describe()));
  }
  return dict;
}

void append_pickle(const CifarFile& file, CifarData& data) {
  const formats::PickleValue dict = dict_of(file);
  const formats::PickleValue& pixels = entry(file, dict, "data");
  const bool images = pixels.is(formats::PickleKind::kArray) &&
                      pixels.as_array().type == formats::PickleType::kU8 &&
                      pixels.as_array().shape.size() == 2 &&
                      pixels.as_array().shape[1] == static_cast<int64_t>(kImage);
  if (!images) {
    fail(file,
         fmt::format(
             "'data': expected a numpy array u1 of N x {}, got {}", kImage, pixels.describe()));
  }
  const formats::PickleArray& array = pixels.as_array();
  const bool many = dict.find("fine_labels") != nullptr;
  settle_classes(file, many ? kManyClasses : kFewClasses, data);
  const size_t first = data.size();
  const size_t count = array.bytes.size() / kImage;
  const auto labels =
      labels_of(file, dict, many ? "fine_labels" : "labels", data.num_classes, count, first);
  if (many) {
    const auto coarse = labels_of(file, dict, "coarse_labels", kCoarseClasses, count, first);
    data.coarse_labels.insert(data.coarse_labels.end(), coarse.begin(), coarse.end());
  }
  data.labels.insert(data.labels.end(), labels.begin(), labels.end());
  data.pixels.insert(data.pixels.end(), array.bytes.begin(), array.bytes.end());
}

void check_count(const CifarFile& file, const std::vector<std::string>& names, int expected) {
  if (static_cast<int>(names.size()) != expected) {
    fail(file, fmt::format("wrong counts: {} class names for {} classes", names.size(), expected));
  }
}

std::vector<std::string> names_in_pickle(const CifarFile& file,
                                         const formats::PickleValue& dict,
                                         std::string_view key) {
  const formats::PickleValue& list = entry(file, dict, key);
  std::vector<std::string> names;
  if (list.is(formats::PickleKind::kList)) {
    for (const formats::PickleValue& name : list.items()) {
      if (!name.is(formats::PickleKind::kString) && !name.is(formats::PickleKind::kBytes)) {
        fail(file, fmt::format("'{}': expected a str, got {}", key, name.describe()));
      }
      names.emplace_back(name.as_text());
    }
  }
  return names;
}

/// A name on each line; blank lines stand at the end of the published file.
std::vector<std::string> names_in_text(const CifarFile& file) {
  std::vector<std::string> names;
  std::string name;
  const auto take = [&] {
    if (!name.empty()) {
      names.push_back(std::move(name));
    }
    name.clear();
  };
  for (const uint8_t byte : file.bytes) {
    if (byte == '\n') {
      take();
    } else if (byte != '\r') {
      name += static_cast<char>(byte);
    }
  }
  take();
  return names;
}

}  // namespace

void append_cifar_batch(const CifarFile& file, CifarData& data) {
  if (file.bytes.empty()) {
    fail(file, "an empty file");
  }
  const size_t before = data.size();
  if (is_pickle(file.bytes)) {
    append_pickle(file, data);
  } else {
    append_binary(file, data);
  }
  if (data.size() == before) {
    fail(file, "a batch without samples");
  }
}

void set_cifar_classes(const std::vector<CifarFile>& files, CifarData& data) {
  const bool many = data.num_classes == kManyClasses;
  data.classes = cifar_classes(data.num_classes);
  data.coarse_classes = many ? cifar_coarse_classes() : std::vector<std::string>();
  for (const CifarFile& file : files) {
    const bool coarse = file.name == "coarse_label_names.txt";
    if (is_pickle(file.bytes)) {
      const formats::PickleValue dict = dict_of(file);
      data.classes = names_in_pickle(file, dict, many ? "fine_label_names" : "label_names");
      if (many) {
        data.coarse_classes = names_in_pickle(file, dict, "coarse_label_names");
        check_count(file, data.coarse_classes, kCoarseClasses);
      }
    } else if (coarse) {
      data.coarse_classes = names_in_text(file);
      check_count(file, data.coarse_classes, many ? kCoarseClasses : 0);
    } else {
      data.classes = names_in_text(file);
    }
    if (!coarse) {
      check_count(file, data.classes, data.num_classes);
    }
  }
}

std::vector<std::string> cifar_classes(int num_classes) {
  if (num_classes == 10) {
    return {
        "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
  }
  return {"apple",       "aquarium_fish", "baby",      "bear",       "beaver",       "bed",
          "bee",         "beetle",        "bicycle",   "bottle",     "bowl",         "boy",
          "bridge",      "bus",           "butterfly", "camel",      "can",          "castle",
          "caterpillar", "cattle",        "chair",     "chimpanzee", "clock",        "cloud",
          "cockroach",   "couch",         "crab",      "crocodile",  "cup",          "dinosaur",
          "dolphin",     "elephant",      "flatfish",  "forest",     "fox",          "girl",
          "hamster",     "house",         "kangaroo",  "keyboard",   "lamp",         "lawn_mower",
          "leopard",     "lion",          "lizard",    "lobster",    "man",          "maple_tree",
          "motorcycle",  "mountain",      "mouse",     "mushroom",   "oak_tree",     "orange",
          "orchid",      "otter",         "palm_tree", "pear",       "pickup_truck", "pine_tree",
          "plain",       "plate",         "poppy",     "porcupine",  "possum",       "rabbit",
          "raccoon",     "ray",           "road",      "rocket",     "rose",         "sea",
          "seal",        "shark",         "shrew",     "skunk",      "skyscraper",   "snail",
          "snake",       "spider",        "squirrel",  "streetcar",  "sunflower",    "sweet_pepper",
          "table",       "tank",          "telephone", "television", "tiger",        "tractor",
          "train",       "trout",         "tulip",     "turtle",     "wardrobe",     "whale",
          "willow_tree", "wolf",          "woman",     "worm"};
}

std::vector<std::string> cifar_coarse_classes() {
  return {"aquatic_mammals",
          "fish",
          "flowers",
          "food_containers",
          "fruit_and_vegetables",
          "household_electrical_devices",
          "household_furniture",
          "insects",
          "large_carnivores",
          "large_man-made_outdoor_things",
          "large_natural_outdoor_scenes",
          "large_omnivores_and_herbivores",
          "medium_mammals",
          "non-insect_invertebrates",
          "people",
          "reptiles",
          "small_mammals",
          "trees",
          "vehicles_1",
          "vehicles_2"};
}

}  // namespace argosy::datasets
