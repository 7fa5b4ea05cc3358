#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "argosy/loss/any_loss.h"
#include "argosy/metrics/any_metric.h"
#include "argosy/recipes/augment.h"
#include "argosy/recipes/data.h"
#include "argosy/recipes/models.h"

namespace argosy::recipes {

/// The parts that assemble() puts together.
struct Wanted {
  std::string model{};                  ///< "resnet18:zero_init_residual=yes"
  std::string data{};                   ///< "cifar10:PATH"
  std::optional<int64_t> image_size{};  ///< unset: the model's own
  uint64_t seed = 1;                    ///< seed of the weights
};

/// A model and data that fit each other in sizes, channels and constants.
struct Assembly {
  DataSpec data_spec{};
  Task task = Task::kClass;  ///< of the data that the model learned
  std::unique_ptr<DataSet> data{};
  const ModelEntry* model_entry = nullptr;
  std::string model_text{};  ///< the model's name with all of its options
  PictureShape shape{};
  ModelSize size{};
  BuiltModel model{};

  [[nodiscard]] Examples training(const std::string& augment) const;
  [[nodiscard]] Examples evaluation(const std::string& split) const;
  /// Returns `augment` with "default" and "auto" replaced by names of transforms.
  [[nodiscard]] std::string augment_of(const std::string& augment) const;
  [[nodiscard]] loss::Loss loss(double label_smoothing = 0) const;
  [[nodiscard]] std::vector<metrics::AnyMetric> metrics() const;
};

/// Opens the data and makes the model. The weights depend on `seed` only, so they are equal on all
/// ranks.
/// Errors: UsageError for unknown names and options, a size that the model does not take, or a
/// model of another task; DataError of the files.
[[nodiscard]] Assembly assemble(const Wanted& wanted);

}  // namespace argosy::recipes
