#include "argosy/datasets/mnist_json.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "argosy/base/catalogue.h"
#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/datasets/files.h"
#include "argosy/datasets/json_text.h"
#include "argosy/datasets/mnist.h"
#include "argosy/datasets/pixel_source.h"
#include "argosy/datasets/sets.h"

namespace argosy::datasets {
namespace {

namespace json = simdjson::ondemand;

static_assert(JsonText::kPadding >= simdjson::SIMDJSON_PADDING);
// Text of one number, indentation included, and of what stands around a list.
constexpr size_t kMostNumberText = 64;
constexpr size_t kMostListText = 4096;

size_t most_text(size_t numbers) {
  return numbers * kMostNumberText + kMostListText;
}

/// Calls `use(element)` for each element of the list; it returns what is wrong with it, or null.
template <typename Use>
void for_each_number(const JsonText& text, json::parser& parser, std::string_view list, Use use) {
  json::document document;
  json::array array;
  simdjson::error_code code =
      parser.iterate(list.data(), list.size(), list.size() + JsonText::kPadding).get(document);
  if (code == simdjson::SUCCESS) {
    code = document.get_array().get(array);
  }
  if (code != simdjson::SUCCESS) {
    text.fail(fmt::format("not a list of numbers: {}", simdjson::error_message(code)));
  }
  size_t n = 0;
  for (auto element : array) {  // nothing can follow it: the piece ends with its first ']'
    if (const char* problem = use(element)) {
      text.fail(fmt::format("number {}: {}", n, problem));
    }
    ++n;
  }
}

void read_image(const JsonText& text,
                json::parser& parser,
                std::string_view list,
                std::span<float> values) {
  size_t n = 0;
  for_each_number(text, parser, list, [&](auto element) -> const char* {
    double value = 0;
    if (element.get_double().get(value) != simdjson::SUCCESS) {
      return "expected a number";
    }
    if (std::abs(value) > std::numeric_limits<float>::max()) {
      return "too large for a float";
    }
    if (n < values.size()) {
      values[n] = static_cast<float>(value);
    }
    ++n;
    return nullptr;
  });
  if (n != values.size()) {
    text.fail(fmt::format("expected {} numbers, got {}", values.size(), n));
  }
}

/// Returns how many there are.
size_t read_images(JsonText& text,
                   json::parser& parser,
                   size_t pixels,
                   std::vector<float>* values) {
  text.expect('[', "the list of images");
  size_t n = 0;
  while (text.peek() != ']') {
    if (n > 0) {
      text.expect(',', "the next image");
    }
    text.image = static_cast<int64_t>(n);
    const std::string_view list = text.array(most_text(pixels));
    if (values != nullptr) {
      values->resize((n + 1) * pixels);
      read_image(text, parser, list, std::span(*values).last(pixels));
    }
    ++n;
    text.image = -1;
  }
  text.expect(']', "the end of the images");
  return n;
}

void read_labels(JsonText& text,
                 json::parser& parser,
                 size_t images,
                 uint64_t classes,
                 std::vector<uint8_t>* labels) {
  const std::string_view list = text.array(most_text(images));
  if (labels == nullptr) {
    return;
  }
  labels->reserve(images);
  const std::string problem = fmt::format("expected labels, whole numbers 0 to {}", classes - 1);
  for_each_number(text, parser, list, [&](auto element) {
    uint64_t label = 0;
    if (element.get_uint64().get(label) != simdjson::SUCCESS || label >= classes) {
      text.image = static_cast<int64_t>(labels->size());
      return problem.c_str();
    }
    labels->push_back(static_cast<uint8_t>(label));
    return static_cast<const char*>(nullptr);
  });
  if (labels->size() != images) {
    text.fail(
        fmt::format("expected {} labels as there are images, got {}", images, labels->size()));
  }
}

void read_split(JsonText& text,
                json::parser& parser,
                const MnistJsonOptions& options,
                MnistJsonSplit* split) {
  text.expect('[', "the split's images and labels");
  const size_t images = read_images(text,
                                    parser,
                                    static_cast<size_t>(options.pixels),
                                    split == nullptr ? nullptr : &split->values);
  text.expect(',', "and then the labels");
  read_labels(text,
              parser,
              images,
              static_cast<uint64_t>(options.classes),
              split == nullptr ? nullptr : &split->labels);
  text.expect(']', "the end of the split: images, labels and nothing else");
}

}  // namespace

MnistJsonSplits read_mnist_json(const std::string& path, const MnistJsonOptions& options) {
  constexpr const char* kWhere = "datasets.mnist_json";
  ARGOSY_CHECK(options.pixels > 0 && options.pixels <= 1 << 20,
               kWhere,
               "pixels must be 1 to 2^20, got {}",
               options.pixels);
  ARGOSY_CHECK(options.classes > 0 && options.classes <= 256,
               kWhere,
               "classes must be 1 to 256, got {}",
               options.classes);
  JsonText text(path, options.most_bytes);
  json::parser parser;
  MnistJsonSplits digits;
  text.expect('[', "the list of splits");
  struct Part {
    const char* name;
    MnistJsonSplit* split;
  };
  int n = 0;
  for (const Part& part : {Part{"train", options.train ? &digits.train : nullptr},
                           Part{"valid", options.valid ? &digits.valid : nullptr},
                           Part{"test", options.test ? &digits.test : nullptr}}) {
    text.place.clear();
    if (text.peek() == ']') {
      text.fail(fmt::format(
          "expected three splits [train, valid, test], got {}: {} is missing", n, part.name));
    }
    if (n++ > 0) {
      text.expect(',', "the next split");
    }
    text.place = part.name;
    read_split(text, parser, options, part.split);
  }
  text.place.clear();
  text.expect(']', "the end of the three splits");
  text.finish();
  return digits;
}

namespace {

constexpr int64_t kSide = 28;

/// The file's numbers are grays of 8 bits divided by 255 or 256: are they all whole when multiplied
/// by that again?
bool are_grays(const std::vector<float>& values, double most) {
  for (const float value : values) {
    const double gray = value * most;
    if (!(gray >= 0 && gray < 255.5 && std::abs(gray - std::round(gray)) < 1e-3)) {
      return false;
    }
  }
  return true;
}

PixelBlock block_of(const char* split, const MnistJsonSplit& samples, double most) {
  PixelBlock block{.split = split, .count = samples.size()};
  block.pixels.reserve(samples.values.size());
  for (const float value : samples.values) {
    block.pixels.push_back(static_cast<uint8_t>(std::lround(value * most)));
  }
  block.labels.assign(samples.labels.begin(), samples.labels.end());
  return block;
}

std::shared_ptr<const Source> open_mnist_json(const OpenOptions& options) {
  const std::string file = file_or_in_folder(options.path, {"mnist.json.gz", "mnist.json"});
  const MnistJsonSplits json = read_mnist_json(file);
  const auto all = [&](double most) {
    return are_grays(json.train.values, most) && are_grays(json.valid.values, most) &&
           are_grays(json.test.values, most);
  };
  const double most = all(256) ? 256 : 255;
  if (most == 255 && !all(255)) {
    throw DataError("datasets.mnist_json",
                    "has numbers that are no grays of 8 bits divided by 255 or 256",
                    {file});
  }
  std::vector<PixelBlock> blocks;
  blocks.push_back(block_of("train", json.train, most));
  blocks.push_back(block_of("valid", json.valid, most));
  blocks.push_back(block_of("test", json.test, most));
  return std::make_shared<const PixelSource>(About{.set = "mnist_json",
                                                   .path = file,
                                                   .classes = digit_names(),
                                                   .shape = {kSide, kSide, 1},
                                                   .full = most},
                                             std::move(blocks));
}

}  // namespace

const Row& mnist_json() {
  static const Row row{
      .name = "mnist_json",
      .title = "MNIST as one JSON file: train, validation and test",
      .instead =
          "No server has it, for it is made from MNIST: argosy data fetch mnist, then "
          "mnist_to_json.py, which make install puts into share/argosy (see " +
          docs_page("docs/guides/data_sets.md#mnist_json") + ")",
      .in_folder = {"mnist.json.gz", "mnist.json"},
      .in_name = "mnist.json",
      .mean = {0.1307},
      .std = {0.3081},
      .open = open_mnist_json};
  return row;
}

}  // namespace argosy::datasets
