#include "argosy/train/callbacks/eval_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>

#include "argosy/image/codec.h"
#include "argosy/image/resize.h"
#include "argosy/train/callbacks/description.h"

namespace argosy::train::detail {
namespace {

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

void EvalSamples::clear() {
  samples_.clear();
  low_ = at::Tensor();
  scale_ = at::Tensor();
}

void EvalSamples::add(const EvalStep& step) {
  if (samples_.size() >= most_ || !shows_classes_of_pictures(step) ||
      (!empty() && samples_[0].pixels_chw.sizes() != step.inputs[0].sizes().slice(1))) {
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
  const auto room = static_cast<int64_t>(most_ - samples_.size());
  for (int64_t i = 0; i < std::min(images.size(0), room); ++i) {
    samples_.push_back({.pixels_chw = images[i].clone(),  // not all of the batch
                        .label = labels[i].item<int64_t>(),
                        .said = said[i].item<int64_t>()});
  }
}

std::string EvalSamples::name_of(int64_t label) const {
  return label >= 0 && label < std::ssize(names_) ? names_[static_cast<std::size_t>(label)]
                                                  : std::to_string(label);
}

std::string EvalSamples::caption_of(const Sample& sample) const {
  return sample.label == sample.said
             ? name_of(sample.label)
             : fmt::format("{}, said {}", name_of(sample.label), name_of(sample.said));
}

std::vector<runs::PagePicture> EvalSamples::pictures() const {
  constexpr int kMostSide = 224;
  std::vector<runs::PagePicture> pictures;
  for (const Sample& sample : samples_) {
    const auto png = image::encode_png(image::shrunk(picture_of(sample.pixels_chw), kMostSide));
    pictures.push_back({.png = {png.begin(), png.end()},
                        .caption = caption_of(sample),
                        .mark = sample.label == sample.said ? runs::PagePicture::Mark::kRight
                                                            : runs::PagePicture::Mark::kWrong});
  }
  return pictures;
}

image::Image EvalSamples::grid() const {
  constexpr int64_t kColumns = 4;
  constexpr int64_t kFrame = 2;
  const auto count = std::ssize(samples_);
  const int64_t height = samples_.front().pixels_chw.size(1) + 2 * kFrame;
  const int64_t width = samples_.front().pixels_chw.size(2) + 2 * kFrame;
  const int64_t rows = (count + kColumns - 1) / kColumns;
  at::Tensor grid = at::full({3, rows * height, kColumns * width}, 255, at::kByte);
  for (int64_t i = 0; i < count; ++i) {
    const Sample& sample = samples_[static_cast<std::size_t>(i)];
    at::Tensor cell =
        grid.narrow(1, i / kColumns * height, height).narrow(2, i % kColumns * width, width);
    const bool right = sample.label == sample.said;
    cell[0].fill_(right ? 40 : 210);
    cell[1].fill_(right ? 160 : 50);
    cell[2].fill_(right ? 70 : 50);
    cell.narrow(1, kFrame, height - 2 * kFrame)
        .narrow(2, kFrame, width - 2 * kFrame)
        .copy_(sample.pixels_chw);
  }
  return picture_of(grid);
}

std::string EvalSamples::table() const {
  std::string table = "| picture | what it is |\n|---|---|\n";
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    table += fmt::format("| {} | {} |\n", i + 1, markdown_cell(caption_of(samples_[i])));
  }
  return table;
}

}  // namespace argosy::train::detail
