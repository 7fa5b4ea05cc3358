#include "argosy/recipes/models.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/text/models/gpt_options.h"
#include "argosy/vision/models/cifar_net.h"
#include "argosy/vision/models/digit_net.h"
#include "argosy/vision/models/face_net.h"
#include "argosy/vision/models/lenet.h"
#include "argosy/vision/models/mnist_cnn.h"
#include "argosy/vision/models/resnet.h"

namespace argosy::recipes {
namespace {

template <typename M>
BuiltModel built(M net) {
  return {
      .module = net.ptr(),
      .model = [net] { return train::Model(net); },
      .summary =
          [net](const std::vector<int64_t>& size) mutable { return engine::summary(net, size); },
      .forward = [net](const at::Tensor& pictures) { return net.ptr()->forward(pictures); }};
}

/// A network that leaves nothing open but its width.
template <typename M, typename Options>
ModelEntry plain(std::string name, std::string what, int64_t side, int64_t channels) {
  return {.row = {std::move(name), std::move(what), {}},
          .side = side,
          .channels = channels,
          .build = [](const ModelSize& size, const Values& /*values*/) {
            return built(M(Options{size.outputs}));
          }};
}

using MakeResNet = vision::ResNet (*)(const vision::NamedResNetOptions& options);

ModelEntry resnet(std::string name, std::string what, MakeResNet make) {
  return {.row = {std::move(name),
                  std::move(what),
                  {{"zero_init_residual", "no", "each block begins as the identity"}}},
          .build = [make](const ModelSize& size, const Values& values) {
            return built(make({.num_classes = size.outputs,
                               .in_channels = size.channels,
                               .zero_init_residual = values.flag("zero_init_residual")}));
          }};
}

ModelEntry face_net() {
  return {.row = {"face_net", "Paddle's lesson on facial keypoints: ResNet-18, two layers", {}},
          .channels = 3,
          .usual_side = 96,
          .points_only = true,
          .build = [](const ModelSize& size, const Values& /*values*/) {
            return built(vision::FaceNet(vision::FaceNetOptions{size.outputs / 2}));
          }};
}

std::vector<ModelEntry> picture_models() {
  return {
      plain<vision::LeNet, vision::LeNetOptions>("lenet", "LeNet as Paddle's, 28 x 28 gray", 28, 1),
      plain<vision::DigitNet, vision::DigitNetOptions>(
          "digit_net", "Paddle's lesson on digits: two convolutions, 28 x 28 gray", 28, 1),
      plain<vision::MnistCnn, vision::MnistCnnOptions>(
          "mnist_cnn", "two convolutions with batch norm, 28 x 28 gray", 28, 1),
      plain<vision::CifarNet, vision::CifarNetOptions>(
          "cifar_net", "Paddle's lesson on CIFAR-10: three convolutions, 32 x 32", 32, 3),
      face_net(),
      resnet("resnet18", "ResNet-18, 11.7 million parameters", vision::resnet18),
      resnet("resnet34", "ResNet-34, 21.8 million", vision::resnet34),
      resnet("resnet50", "ResNet-50, 25.6 million", vision::resnet50),
      resnet("resnet101", "ResNet-101, 44.5 million", vision::resnet101),
      resnet("resnet152", "ResNet-152, 60.2 million", vision::resnet152),
      resnet("resnext50_32x4d", "ResNeXt-50, 32 groups of 4", vision::resnext50_32x4d),
      resnet("resnext101_32x8d", "ResNeXt-101, 32 groups of 8", vision::resnext101_32x8d),
      resnet("resnext101_64x4d", "ResNeXt-101, 64 groups of 4", vision::resnext101_64x4d),
      resnet("wide_resnet50_2", "ResNet-50, twice as wide", vision::wide_resnet50_2),
      resnet("wide_resnet101_2", "ResNet-101, twice as wide", vision::wide_resnet101_2),
  };
}

/// What the fields of a text::GptOptions are, in its order.
constexpr std::array kFields{"the tokenizer's",
                             "blocks",
                             "values of a token",
                             "of queries; a width without heads has one for each 64 values",
                             "of keys and values; 0: as many as heads",
                             "values inside the feed-forward layer; 0: as usual",
                             "most tokens of a sequence: --sequence_length's",
                             "share of values that training leaves out",
                             "projections have biases",
                             "the head's weight is the table of tokens",
                             "layer, rms",
                             "learned, rotary",
                             "gelu, swiglu",
                             "added where a norm divides",
                             "base of rotary's angles",
                             "what they are divided by",
                             "0: all are; else tokens in which slow ones turn rarely",
                             "times: fewer is slow",
                             "times: more is fast, and stays"};

/// The options of "gpt", which all language models take.
std::vector<OptionRow> fields_of_gpt() {
  std::vector<OptionRow> rows;
  for (auto& [field, value] : text::fields_of(text::gpt_options("gpt"))) {
    const bool follows = field == "vocab_size" || field == "context";
    rows.push_back({field, follows ? "auto" : value, kFields.at(rows.size())});
  }
  return rows;
}

ModelEntry language(const std::string& name) {
  const text::GptOptions shape = text::gpt_options(name);
  const bool first = name == "gpt";
  return {.row = {name,
                  fmt::format("language model, {} blocks of {} values{}",
                              shape.layers,
                              shape.width,
                              first ? "" : "; options as gpt"),
                  first ? fields_of_gpt() : std::vector<OptionRow>()},
          .material = Material::kText};
}

std::vector<ModelEntry> all_models() {
  std::vector<ModelEntry> all = picture_models();
  for (const std::string& name : text::gpt_names()) {
    all.push_back(language(name));
  }
  for (const auto& [name, what] :
       {std::pair("deepfm", "who clicks what: products of columns and a small network"),
        std::pair("wide_deep", "who clicks what: Wide & Deep; options as deepfm")}) {
    all.push_back(
        {.row = {name,
                 what,
                 name == std::string("deepfm") ? click_options() : std::vector<OptionRow>()},
         .material = Material::kClicks});
  }
  return all;
}

}  // namespace

std::vector<OptionRow> click_options() {
  return {{"dim", "16", "factors of an id"},
          {"hidden", "64x32", "widths of the network's layers"},
          {"rule", "adam", "of the rows: adam, shared_adam, adagrad, std_adagrad, naive"},
          {"row_lr", "0.01", "learning rate of the rows"},
          {"initial_range", "0.01", "first weights of a row lie within ± this"},
          {"entry", "1", "at which gradient an id gets a row; 2 and more keep rare ids out"}};
}

const std::vector<ModelEntry>& models() {
  static const std::vector<ModelEntry> all = all_models();
  return all;
}

BuiltModel model_for(const std::string& text, const engine::StateDict& weights) {
  const Spec spec = parse_spec(kModels, text);
  const ModelEntry& entry = find_entry(kModels, models(), spec.name);
  ARGOSY_CHECK(entry.material == Material::kPictures,
               kModels.where,
               "{} is no model of pictures, and Paddle's layout of its weights is not known here",
               spec.name);
  const Values values(kModels, entry.row, spec.options);
  constexpr int64_t kTrial = 14;  // outputs that no other layer has
  ModelSize size{.outputs = kTrial, .channels = 0};
  const BuiltModel trial = entry.build({.outputs = kTrial}, values);
  for (const auto& [name, own] : engine::state_dict(*trial.module)) {
    const at::Tensor* given = weights.find(name);
    if (given == nullptr || given->dim() != own.dim()) {
      continue;
    }
    if (own.dim() == 4 && size.channels == 0) {  // the first convolution
      size.channels = given->size(1);
    } else if (own.dim() == 1 && own.size(0) == kTrial) {  // the last layer's bias
      size.outputs = given->size(0);
    }
  }
  return entry.build(size, values);
}

}  // namespace argosy::recipes
