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

/// A tensor in figures. Those of its values are of the finite ones; NaN where there are none.
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
  int64_t freq = 100;  ///< updates between two looks; the first is at the first update
  std::FILE* out = stdout;
  bool print = true;  ///< a table at each look
  /// A JSON object for each look, a line each; empty: layers.jsonl in the run's folder, or none.
  std::string path{};
  /// Of what a layer is given or gives. kRaise ends fit() on the first rank by a DataError, and on
  /// the others by the CommError that names it.
  OnNonFinite on_non_finite = OnNonFinite::kReport;
};

/// Shows what each layer is given and what it makes of it, in figures, and which layer is the first
/// with a NaN or an infinity:
///
///     layer  type    what    shape           mean     std     min     max  zeros
///     conv1  Conv2d  input   [8, 1, 28, 28]  0.1307  0.3081  …
///     conv1  Conv2d  output  [8, 6, 28, 28]  …
///
/// On the first rank, with its batch as it is before the update, in one forward more: in evaluation
/// mode and without gradients, so that nothing of the training changes, not even random numbers.
/// Layers are those with parameters or buffers (engine::layer_calls). Of a NaN that an operator
/// between two layers makes, the next layer's input is named.
/// Cost: one forward, and some passes over all inputs and outputs, at each look.
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
