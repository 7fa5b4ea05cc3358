#include "argosy/vision/datasets/cifar.h"

#include <memory>
#include <utility>

#include "argosy/datasets/sets.h"
#include "argosy/vision/datasets/split_of.h"

namespace argosy::vision {
namespace {

constexpr size_t kCoarse = 1;  // the second of a sample's labels; the first is the fine one
constexpr const char* kWhere100 = "vision.Cifar100";

using Source = std::shared_ptr<const datasets::Source>;

std::vector<std::string> classes_of(const Source& source, Cifar100Options::Labels labels) {
  return labels == Cifar100Options::Labels::kFine ? source->about().classes
                                                  : source->about().groups;
}

}  // namespace

Cifar10::Cifar10(const std::string& path, Split split, PictureOptions options)
    : LabelledPictures([&] {
        const Source source = datasets::open("cifar10", {.path = path});
        return Parts{.where = "vision.Cifar10",
                     .pictures = split_of(source, split, "vision.Cifar10"),
                     .classes = source->about().classes,
                     .options = std::move(options)};
      }()) {}

Cifar100::Cifar100(const std::string& path, Split split, Cifar100Options options)
    : LabelledPictures([&] {
        const Source source = datasets::open("cifar100", {.path = path});
        Parts parts{.where = kWhere100,
                    .pictures = split_of(source, split, kWhere100),
                    .classes = classes_of(source, options.labels),
                    .options = {.transform = std::move(options.transform)}};
        if (options.labels == Cifar100Options::Labels::kCoarse) {
          parts.label = [source](int64_t index) {
            datasets::Scratch scratch;
            return source->labels(index, scratch)[kCoarse];
          };
        }
        return parts;
      }()) {}

}  // namespace argosy::vision
