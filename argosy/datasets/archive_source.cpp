#include "argosy/datasets/archive_source.h"

#include <utility>

#include "argosy/base/check.h"

namespace argosy::datasets {

ArchiveSource::Builder::Builder(About about, formats::ArchiveImage archive)
    : about_(std::move(about)), archive_(std::move(archive)) {}

void ArchiveSource::Builder::begin(const std::string& split) {
  about_.splits.push_back({.name = split, .first = std::ssize(items_)});
}

void ArchiveSource::Builder::add(const std::string& picture, std::vector<int64_t> labels) {
  if (const auto member = archive_.find(picture)) {
    items_.push_back({*member, std::move(labels)});
    ++about_.splits.back().count;
  } else {
    ++about_.missing;
  }
}

std::shared_ptr<const Source> ArchiveSource::Builder::finish() && {
  return std::shared_ptr<const Source>(new ArchiveSource(std::move(*this)));
}

ArchiveSource::ArchiveSource(Builder parts)
    : EncodedSource(std::move(parts.about_)), parts_(std::move(parts)) {}

Sample ArchiveSource::get(int64_t index, Scratch& /*scratch*/) const {
  ARGOSY_CHECK(
      index >= 0 && index < size(), "datasets.get", "no sample {}: there are {}", index, size());
  const Builder::Item& item = parts_.items_[static_cast<size_t>(index)];
  return {.picture = {.bytes = parts_.archive_.bytes(item.member)},
          .labels = item.labels,
          .name = parts_.archive_.name(item.member)};
}

}  // namespace argosy::datasets
