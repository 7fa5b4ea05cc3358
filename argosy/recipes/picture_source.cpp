#include "argosy/recipes/picture_source.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/image/codec.h"

namespace argosy::recipes {
namespace {

using Source = std::shared_ptr<const datasets::SampleSource>;

class Pictures final : public vision::LabelledPictures {
 public:
  Pictures(const Source& source,
           const vision::Compose& chain,
           int channels,
           const PictureSourceOptions& options)
      : LabelledPictures(Parts{
            .where = kData.where,
            .pictures = {.source = source, .first = 0, .count = source->size()},
            .classes = options.without_labels ? std::vector<std::string>{"?"} : options.classes,
            .options = {.transform = chain,
                        .order = channels == 1 ? image::Order::kGray : image::Order::kRgb,
                        .cache = options.cache},
            .label = options.without_labels ? [](int64_t /*index*/) { return int64_t{0}; }
                                            : options.label,
            .read_labels =
                options.labels_with_samples ? ReadLabels::kWithSamples : ReadLabels::kAtOnce}) {}
};

class PictureSource final : public ExampleSource {
 public:
  PictureSource(Source source,
                const vision::Compose& chain,
                int channels,
                const PictureSourceOptions& options)
      : source_(std::move(source)),
        pictures_(source_, chain, channels, options),
        label_(options.label),
        labelled_(!options.without_labels) {}

  [[nodiscard]] int64_t size() const override { return pictures_.size(); }
  [[nodiscard]] std::tuple<at::Tensor, at::Tensor> batch(
      std::span<const int64_t> indices, const data::BatchContext& context) const override {
    return pictures_.get_batch(indices, context);
  }
  [[nodiscard]] image::Image picture(int64_t index) const override {
    return pictures_.picture(index);
  }
  [[nodiscard]] int64_t label(int64_t index) const override {
    if (!labelled_) {
      return -1;
    }
    return label_ ? label_(index) : source_->label(index);
  }
  [[nodiscard]] std::string name(int64_t index) const override {
    std::vector<uint8_t> scratch;
    return std::string(source_->get(index, scratch).name);
  }

 private:
  Source source_;
  Pictures pictures_;
  std::function<int64_t(int64_t index)> label_;
  bool labelled_;
};

/// Where an index lies in sources that stand one after another.
class JoinedSource final : public datasets::SampleSource {
 public:
  explicit JoinedSource(std::vector<Source> sources)
      : SampleSource({.set = "folder", .classes = sources.front()->description().classes}),
        sources_(std::move(sources)) {
    for (const Source& source : sources_) {
      ends_.push_back((ends_.empty() ? 0 : ends_.back()) + source->size());
    }
  }

  [[nodiscard]] int64_t size() const override { return ends_.back(); }
  [[nodiscard]] formats::PackedSample get(int64_t index,
                                          std::vector<uint8_t>& scratch) const override {
    const std::size_t part = part_of(index);
    return sources_[part]->get(index - begin_of(part), scratch);
  }
  [[nodiscard]] int64_t label(int64_t index) const override {
    const std::size_t part = part_of(index);
    return sources_[part]->label(index - begin_of(part));
  }

 private:
  [[nodiscard]] std::size_t part_of(int64_t index) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(ends_, index) - ends_.begin());
  }
  [[nodiscard]] int64_t begin_of(std::size_t part) const { return part == 0 ? 0 : ends_[part - 1]; }

  std::vector<Source> sources_;
  std::vector<int64_t> ends_;
};

class FileSource final : public datasets::SampleSource {
 public:
  explicit FileSource(std::string path) : SampleSource({.set = "file", .path = path}) {}

  [[nodiscard]] int64_t size() const override { return 1; }
  [[nodiscard]] formats::PackedSample get(int64_t /*index*/,
                                          std::vector<uint8_t>& scratch) const override {
    scratch = image::read_file(description().path);
    return {.name = description().path, .picture = std::as_bytes(std::span(scratch))};
  }
  [[nodiscard]] int64_t label(int64_t /*index*/) const override { return -1; }
};

}  // namespace

std::shared_ptr<const ExampleSource> make_picture_source(const Source& source,
                                                         const vision::Compose& chain,
                                                         int channels,
                                                         const PictureSourceOptions& options) {
  return std::make_shared<const PictureSource>(source, chain, channels, options);
}

DataSet::Stored stored_pictures(const datasets::SampleSource& source) {
  DataSet::Stored found;
  for (const int64_t index : {int64_t{0}, source.size() / 2, source.size() - 1}) {
    std::vector<uint8_t> scratch;
    const formats::PackedSample sample = source.get(index, scratch);
    const bool square = sample.kind != formats::Picture::kEncoded && sample.height == sample.width;
    const int side = square ? static_cast<int>(sample.height) : 0;
    if (index == 0) {
      found.side = side;
    }
    found.side = found.side == side ? side : 0;
    found.channels = square && sample.channels == 1 ? 1 : 3;
  }
  return found;
}

std::shared_ptr<const datasets::SampleSource> joined(std::vector<Source> sources) {
  if (sources.size() == 1) {
    return std::move(sources.front());
  }
  return std::make_shared<const JoinedSource>(std::move(sources));
}

std::shared_ptr<const datasets::SampleSource> open_files(const std::vector<std::string>& paths) {
  std::vector<Source> sources;
  for (const std::string& path : paths) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error)) {
      sources.push_back(datasets::open_image_folder(path));
    } else if (std::filesystem::exists(path, error)) {
      sources.push_back(std::make_shared<const FileSource>(path));
    } else {
      throw DataError(kData.where, "No such file or folder", {path});
    }
  }
  return joined(std::move(sources));
}

}  // namespace argosy::recipes
