// Faces with points on them.
#include <numeric>
#include <utility>

#include <ATen/Functions.h>

#include "argosy/base/check.h"
#include "argosy/recipes/data.h"
#include "argosy/vision/datasets/facial_keypoints.h"

namespace argosy::recipes {
namespace {

class FaceSource final : public ExampleSource {
 public:
  explicit FaceSource(vision::FacialKeypoints faces) : faces_(std::move(faces)) {}

  [[nodiscard]] int64_t size() const override { return faces_.size(); }
  [[nodiscard]] std::tuple<at::Tensor, at::Tensor> batch(
      std::span<const int64_t> indices, const data::BatchContext& context) const override {
    auto [images, points] = faces_.get_batch(indices, context);
    const auto side = static_cast<double>(images.size(-1));
    return {std::move(images), points.flatten(1).div(side)};
  }
  [[nodiscard]] image::Image picture(int64_t index) const override {
    return faces_.at(index).image;
  }
  [[nodiscard]] int64_t label(int64_t /*index*/) const override { return -1; }
  [[nodiscard]] std::vector<float> points(int64_t index) const override {
    const at::Tensor points = faces_.at(index).points.contiguous();
    return {points.data_ptr<float>(), points.data_ptr<float>() + points.numel()};
  }

 private:
  vision::FacialKeypoints faces_;
};

class FaceSet final : public DataSet {
 public:
  FaceSet(std::string path, const DataEntry& entry, const Values& values)
      : path_(std::move(path)),
        entry_(entry),
        missing_(values.word("missing", {"drop", "fill"}) == "drop"
                     ? datasets::Points::kDrop
                     : datasets::Points::kForwardFill),
        faces_(path_, {.points = missing_}) {
    std::vector<int64_t> all(static_cast<std::size_t>(faces_.size()));
    std::iota(all.begin(), all.end(), 0);
    parts_ = detail::divided({{.split = "train", .indices = std::move(all)}}, values);
  }

  [[nodiscard]] std::vector<std::string> splits() const override {
    std::vector<std::string> names;
    for (const detail::Part& part : parts_) {
      names.push_back(part.split);
    }
    return names;
  }
  [[nodiscard]] int64_t size(const std::string& split) const override {
    return std::ssize(detail::indices_of(parts_, split));
  }
  [[nodiscard]] Examples examples(const std::string& split,
                                  const vision::Compose& chain,
                                  int /*channels*/) const override {
    vision::FacialKeypoints faces(path_, {.points = missing_, .transform = chain});
    return {std::make_shared<const FaceSource>(std::move(faces)),
            detail::indices_of(parts_, split)};
  }
  [[nodiscard]] const std::vector<std::string>& classes() const override { return none_; }
  [[nodiscard]] const std::vector<std::string>& point_names() const override {
    return faces_.names();
  }
  [[nodiscard]] const DataEntry& like() const override { return entry_; }
  [[nodiscard]] Stored stored() const override {
    return {.side = faces_.size() == 0 ? 0 : faces_.at(0).image.width(), .channels = 1};
  }
  [[nodiscard]] std::vector<std::pair<int64_t, int64_t>> mirrored_points() const override {
    return faces_.pairs();
  }

 private:
  std::string path_;
  const DataEntry& entry_;
  datasets::Points missing_;
  vision::FacialKeypoints faces_;
  std::vector<detail::Part> parts_;
  std::vector<std::string> none_{};
};

}  // namespace

std::unique_ptr<DataSet> detail::open_faces(const DataSpec& spec, const Values& values) {
  return std::make_unique<FaceSet>(spec.path, *spec.entry, values);
}

}  // namespace argosy::recipes
