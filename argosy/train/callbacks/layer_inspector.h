#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/events/jsonl_writer.h"
#include "argosy/train/callback.h"
#include "argosy/train/callbacks/gradient_monitor.h"

namespace argosy::train {

/// Figures of a tensor. Mean, deviation and extremes are those of its finite values, or NaN without
/// any.
struct TensorFigures {
  std::vector<int64_t> shape{};
  double mean = 0;
  double std = 0;  ///< of the population: divided by the number of values
  double min = 0;
  double max = 0;
  int64_t zeros = 0;
  int64_t nans = 0;
  int64_t infinities = 0;
  int64_t numel = 0;
};
[[nodiscard]] TensorFigures figures_of(const at::Tensor& tensor);

struct LayerInspectorOptions {
  int64_t freq = 100;  ///< updates between two inspections; the first is at the first update
  std::FILE* out = stdout;
  bool print = true;  ///< prints a table at each inspection
  /// File with one JSON object per inspection and line. Empty: layers.jsonl in the run's folder, if
  /// there is one.
  std::string path{};
  /// What to do if an input or output of a layer is not finite. kRaise ends fit() on the first rank
  /// by a DataError, and on the others by the CommError that names that rank.
  OnNonFinite on_non_finite = OnNonFinite::kReport;
};

/// Shows figures of each layer's inputs and outputs, and the first layer with a NaN or an infinity:
///
///     layer  type    what    shape           mean     std     min     max  zeros
///     conv1  Conv2d  input   [8, 1, 28, 28]  0.1307  0.3081  …
///     conv1  Conv2d  output  [8, 6, 28, 28]  …
///
/// It runs one more forward on the first rank with its batch before the update, in evaluation mode
/// and without gradients, so nothing of the training changes, not even random numbers. Layers are
/// those with parameters or buffers (engine::layer_calls). If an operator between two layers makes
/// a NaN, the next layer's input is named.
/// Cost: per inspection, one forward and some passes over all inputs and outputs.
class LayerInspector final : public Callback {
 public:
  explicit LayerInspector(LayerInspectorOptions options = {});

  void on_train_begin(const Training& training) override;
  void on_train_batch_begin(const Step& step) override;

 private:
  LayerInspectorOptions options_;
  std::shared_ptr<events::JsonlWriter> writer_;
  int64_t next_ = 0;  // the update of the next look
};

}  // namespace argosy::train
