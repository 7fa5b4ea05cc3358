#include "argosy/recipes/picture_source.h"

#include <utility>

namespace argosy::recipes {
namespace {

using Source = std::shared_ptr<const datasets::Source>;

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
    datasets::Scratch scratch;
    return std::string(source_->get(index, scratch).name);
  }

 private:
  Source source_;
  Pictures pictures_;
  std::function<int64_t(int64_t index)> label_;
  bool labelled_;
};

}  // namespace

std::shared_ptr<const ExampleSource> make_picture_source(const Source& source,
                                                         const vision::Compose& chain,
                                                         int channels,
                                                         const PictureSourceOptions& options) {
  return std::make_shared<const PictureSource>(source, chain, channels, options);
}

DataSet::Stored stored_pictures(const datasets::Source& source) {
  DataSet::Stored found;
  for (const int64_t index : {int64_t{0}, source.size() / 2, source.size() - 1}) {
    datasets::Scratch scratch;
    const datasets::Picture picture = source.get(index, scratch).picture;
    const bool square = picture.kind == datasets::Picture::Kind::kPixels &&
                        picture.size.height == picture.size.width;
    const int side = square ? picture.size.height : 0;
    if (index == 0) {
      found.side = side;
    }
    found.side = found.side == side ? side : 0;
    found.channels = square && picture.channels == 1 ? 1 : 3;
  }
  return found;
}

}  // namespace argosy::recipes
