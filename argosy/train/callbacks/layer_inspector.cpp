#include "argosy/train/callbacks/layer_inspector.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include "argosy/base/check.h"
#include "argosy/base/log.h"
#include "argosy/base/text.h"
#include "argosy/engine/summary.h"
#include "argosy/train/model.h"

#include <nlohmann/json.hpp>

namespace argosy::train {
namespace {

/// An input or an output of a layer.
struct Seen {
  std::string layer{};
  std::string type{};
  const char* what = "";
  TensorFigures figures{};
};

std::vector<Seen> look(const Step& step) {
  std::vector<Seen> all;
  const std::vector<at::Tensor> inputs(step.inputs.begin(), step.inputs.end());
  const auto calls =
      engine::layer_calls(step.model.network(), [&] { step.model.predict_batch(inputs); });
  for (const engine::LayerCall& call : calls) {
    if (call.input.defined()) {
      all.push_back({call.layer, call.type, "input", figures_of(call.input)});
    }
    all.push_back({call.layer, call.type, "output", figures_of(call.output)});
  }
  return all;
}

std::string table_of(const std::vector<Seen>& all) {
  std::vector<std::vector<std::string>> rows;
  for (const Seen& seen : all) {
    const TensorFigures& f = seen.figures;
    const std::int64_t odd = f.nans + f.infinities;
    rows.push_back({seen.layer,
                    seen.type,
                    seen.what,
                    text::shape(f.shape),
                    fmt::format("{:.4g}", f.mean),
                    fmt::format("{:.4g}", f.std),
                    fmt::format("{:.4g}", f.min),
                    fmt::format("{:.4g}", f.max),
                    std::to_string(f.zeros),
                    odd == 0 ? "" : std::to_string(odd)});
  }
  return text::table(
      {"layer", "type", "what", "shape", "mean", "std", "min", "max", "zeros", "not finite"}, rows);
}

nlohmann::ordered_json record_of(const Step& step, const std::vector<Seen>& all) {
  auto layers = nlohmann::ordered_json::array();
  for (const Seen& seen : all) {
    const TensorFigures& f = seen.figures;
    layers.push_back({{"layer", seen.layer},
                      {"type", seen.type},
                      {"what", seen.what},
                      {"shape", f.shape},
                      {"mean", f.mean},
                      {"std", f.std},
                      {"min", f.min},
                      {"max", f.max},
                      {"zeros", f.zeros},
                      {"nans", f.nans},
                      {"infinities", f.infinities},
                      {"numel", f.numel}});
  }
  return {{"step", step.step}, {"epoch", step.epoch + 1}, {"layers", std::move(layers)}};
}

/// What is wrong first, in the order of forward.
std::optional<std::string> first_not_finite(const Step& step, const std::vector<Seen>& all) {
  for (const Seen& seen : all) {
    const TensorFigures& f = seen.figures;
    if (f.nans + f.infinities > 0) {
      return fmt::format(
          "the {} of \"{}\" ({}) is the first that is not finite, before update {} (epoch {}, "
          "batch {}): {} NaN, {} infinite of {} elements",
          seen.what,
          seen.layer,
          seen.type,
          step.step + 1,
          step.epoch + 1,
          step.batch + 1,
          f.nans,
          f.infinities,
          f.numel);
    }
  }
  return std::nullopt;
}

}  // namespace

TensorFigures figures_of(const at::Tensor& tensor) {
  const c10::NoGradGuard no_grad;
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  TensorFigures figures{.shape = tensor.sizes().vec(), .numel = tensor.numel()};
  const at::Tensor values = tensor.detach().to(at::kDouble).flatten();
  figures.nans = at::isnan(values).sum().item<int64_t>();
  figures.infinities = at::isinf(values).sum().item<int64_t>();
  figures.zeros = figures.numel - at::count_nonzero(values).item<int64_t>();
  const bool all = figures.nans + figures.infinities == 0;
  const at::Tensor finite = all ? values : values.masked_select(at::isfinite(values));
  if (finite.numel() == 0) {
    figures.mean = figures.std = figures.min = figures.max = kNone;
    return figures;
  }
  figures.mean = finite.mean().item<double>();
  figures.std = finite.std(/*unbiased=*/false).item<double>();
  figures.min = finite.min().item<double>();
  figures.max = finite.max().item<double>();
  return figures;
}

LayerInspector::LayerInspector(LayerInspectorOptions options) : options_(std::move(options)) {
  ARGOSY_CHECK(
      options_.freq > 0, "train.LayerInspector", "freq must be positive, got {}", options_.freq);
}

void LayerInspector::on_train_begin(const Training& training) {
  next_ = training.step;
  const std::string path = options_.path.empty() && !training.run_dir.empty()
                               ? training.run_dir + "/layers.jsonl"
                               : options_.path;
  if (!path.empty() && training.model.is_first_worker()) {
    writer_ = std::make_shared<events::JsonlWriter>(path);
  }
}

void LayerInspector::on_train_batch_begin(const Step& step) {
  if (step.step < next_) {
    return;
  }
  next_ = step.step + options_.freq;
  if (!step.model.is_first_worker()) {
    return;
  }
  const std::vector<Seen> all = look(step);
  if (options_.print) {
    fmt::print(options_.out,
               "Layers before update {} (epoch {}, batch {}):\n{}",
               step.step + 1,
               step.epoch + 1,
               step.batch + 1,
               table_of(all));
    std::fflush(options_.out);
  }
  if (writer_ != nullptr) {
    writer_->write(record_of(step, all));
  }
  if (const auto what = first_not_finite(step, all)) {
    switch (options_.on_non_finite) {
      case OnNonFinite::kRaise:
        throw DataError("train.LayerInspector", *what);
      case OnNonFinite::kStop:
        step.model.stop(*what);
        break;
      case OnNonFinite::kReport:
        log::warn("[train.LayerInspector] {}", *what);
        break;
    }
  }
}

}  // namespace argosy::train
