#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "argosy/datasets/encoded_source.h"
#include "argosy/formats/archive.h"

namespace argosy::datasets {

/// Pictures that stay in their archive, with their labels.
///
///     ArchiveSource::Builder set({.set = "voc2012", .path = path}, std::move(archive));
///     set.begin("train");
///     set.add("JPEGImages/2008_000008.jpg", {12, 14});
///     return std::move(set).finish();
class ArchiveSource final : public EncodedSource {
 public:
  class Builder final {
   public:
    Builder(About about, formats::ArchiveImage archive);
    /// Begins a split. The pictures that follow belong to it.
    void begin(const std::string& split);
    /// Adds a picture. About::missing counts those that the archive lacks.
    void add(const std::string& picture, std::vector<int64_t> labels);
    [[nodiscard]] std::shared_ptr<const Source> finish() &&;

   private:
    friend class ArchiveSource;
    struct Item {
      size_t member = 0;
      std::vector<int64_t> labels{};
    };
    About about_;
    formats::ArchiveImage archive_;
    std::vector<Item> items_{};
  };

  [[nodiscard]] int64_t size() const override { return std::ssize(parts_.items_); }
  [[nodiscard]] Sample get(int64_t index, Scratch& scratch) const override;

 private:
  explicit ArchiveSource(Builder parts);
  Builder parts_;
};

}  // namespace argosy::datasets
