#include <optional>
#include <span>
#include <utility>

#include "argosy/datasets/files.h"
#include "argosy/datasets/flowers102.h"
#include "argosy/datasets/sources.h"
#include "argosy/formats/archive.h"

namespace argosy::datasets {
namespace {

struct Flower {
  size_t member = 0;  ///< of the archive
  int64_t label = 0;
};

class FlowersSource final : public SampleSource {
 public:
  FlowersSource(Description description, formats::ArchiveImage archive, std::vector<Flower> flowers)
      : SampleSource(std::move(description)),
        archive_(std::move(archive)),
        flowers_(std::move(flowers)) {}

  [[nodiscard]] int64_t size() const override { return static_cast<int64_t>(flowers_.size()); }
  [[nodiscard]] formats::PackedSample get(int64_t index, std::vector<uint8_t>&) const override {
    const Flower& flower = flowers_.at(static_cast<size_t>(index));
    return {.labels = {flower.label},
            .name = archive_.name(flower.member),
            .picture = std::as_bytes(archive_.bytes(flower.member))};
  }

 private:
  formats::ArchiveImage archive_;
  std::vector<Flower> flowers_;
};

}  // namespace

std::unique_ptr<SampleSource> open_flowers102(const std::string& path) {
  const std::string pictures = file_or_in_folder(path, {"102flowers.tgz", "102flowers.tar"});
  const Flowers102Index index =
      read_flowers102(need_file(path, {"imagelabels.mat"}), need_file(path, {"setid.mat"}));
  formats::ArchiveImage archive(pictures,
                                [](std::string_view name) { return name.ends_with(".jpg"); });
  Description description{.set = "flowers102", .path = path};
  for (int i = 0; i < 102; ++i) {
    description.classes.push_back(std::to_string(i));
  }
  std::vector<Flower> flowers;
  const auto add = [&](const char* split, const std::vector<int64_t>& ids) {
    const auto first = static_cast<int64_t>(flowers.size());
    for (const int64_t id : ids) {
      if (const auto member = archive.find(flowers102_picture(id))) {
        flowers.push_back({*member, index.label(id)});
      } else {
        ++description.missing;
      }
    }
    description.splits.push_back({split, first, static_cast<int64_t>(flowers.size()) - first});
  };
  add("train", index.train);
  add("valid", index.valid);
  add("test", index.test);
  return std::make_unique<FlowersSource>(
      std::move(description), std::move(archive), std::move(flowers));
}

}  // namespace argosy::datasets
