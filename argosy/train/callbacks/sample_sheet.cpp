#include "argosy/train/callbacks/sample_sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>

#include "argosy/datasets/canvas.h"

namespace argosy::train::detail {
namespace {

constexpr datasets::Colour kRight{.red = 40, .green = 160, .blue = 70};
constexpr datasets::Colour kWrong{.red = 210, .green = 50, .blue = 50};
constexpr int kColumns = 4;  // as wide as a picture on the run page
constexpr int kNumberedSide = 96;
constexpr int kNamedSide = 144;  // a name needs more room

bool shows_classes_of_pictures(const EvalStep& step) {
  if (step.inputs.empty() || step.outputs.empty() || step.labels.empty()) {
    return false;
  }
  const at::Tensor& images = step.inputs[0];
  const at::Tensor& scores = step.outputs[0];
  const at::Tensor& labels = step.labels[0];
  return images.dim() == 4 && (images.size(1) == 1 || images.size(1) == 3) && images.numel() > 0 &&
         scores.dim() == 2 && scores.size(0) == images.size(0) && scores.size(1) > 1 &&
         labels.numel() == images.size(0) && at::isIntegralType(labels.scalar_type(), false);
}

/// [C, H, W] of u8.
image::Image picture_of(const at::Tensor& pixels_chw) {
  const auto height = static_cast<int>(pixels_chw.size(1));
  const auto width = static_cast<int>(pixels_chw.size(2));
  image::Image picture({.height = height, .width = width},
                       pixels_chw.size(0) == 1 ? image::Order::kGray : image::Order::kRgb);
  const at::Tensor rows = pixels_chw.permute({1, 2, 0}).contiguous();
  std::memcpy(picture.data(), rows.data_ptr<uint8_t>(), picture.total_bytes());
  return picture;
}

}  // namespace

void SampleSheet::clear() {
  tiles_.clear();
  low_ = at::Tensor();
  scale_ = at::Tensor();
}

void SampleSheet::add(const EvalStep& step) {
  if (tiles_.size() >= most_ || !shows_classes_of_pictures(step)) {
    return;
  }
  const c10::NoGradGuard no_grad;
  at::Tensor images = step.inputs[0].detach().cpu();
  if (images.scalar_type() != at::kByte) {
    images = at::nan_to_num(images.to(at::kFloat), 0.0, 0.0, 0.0);
    if (!low_.defined()) {
      low_ = images.amin({0, 2, 3}, /*keepdim=*/true);
      scale_ = 255 / (images.amax({0, 2, 3}, /*keepdim=*/true) - low_).clamp_min(1e-12);
    }
    images = ((images - low_) * scale_).round().clamp(0, 255).to(at::kByte);
  }
  const at::Tensor said = step.outputs[0].detach().argmax(1).cpu();
  const at::Tensor labels = step.labels[0].flatten().to(at::kLong).cpu();
  const auto room = static_cast<int64_t>(most_ - tiles_.size());
  for (int64_t i = 0; i < std::min(images.size(0), room); ++i) {
    const auto is = labels[i].item<int64_t>();
    const auto was_said = said[i].item<int64_t>();
    tiles_.push_back({.picture = picture_of(images[i]),
                      .caption = caption_of(is, was_said),
                      .mark = is == was_said ? kRight : kWrong});
  }
}

std::string SampleSheet::name_of(int64_t label) const {
  return label >= 0 && label < std::ssize(names_) ? names_[static_cast<std::size_t>(label)]
                                                  : std::to_string(label);
}

std::string SampleSheet::caption_of(int64_t is, int64_t said) const {
  constexpr std::string_view kSaid = ", said ";
  constexpr int kRoom = kNamedSide - 14;  // beside the mark
  const std::string label = name_of(is);
  const std::string guess = name_of(said);
  if (is == said) {
    return label;
  }
  const std::string whole = fmt::format("{}{}{}", label, kSaid, guess);
  if (datasets::text_width(whole) <= kRoom) {
    return whole;
  }
  const int half = (kRoom - datasets::text_width(kSaid)) / 2;
  return fmt::format(
      "{}{}{}", datasets::fitting_text(label, half), kSaid, datasets::fitting_text(guess, half));
}

image::Image SampleSheet::sheet() const {
  return datasets::contact_sheet(
      tiles_, {.columns = kColumns, .side = names_.empty() ? kNumberedSide : kNamedSide});
}

}  // namespace argosy::train::detail
