#include "argosy/engine/used_tensors.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>

#include "argosy/engine/operator_tensors.h"

namespace argosy::engine {
namespace {

/// A call of used_tensors() on this thread.
struct Seen {
  struct External {
    at::Tensor tensor;
    uint32_t version = 0;  // when it was first seen
    bool written = false;
  };
  std::unordered_set<const at::TensorImpl*> known{};   // of those that are kept below
  std::unordered_set<const c10::StorageImpl*> made{};  // by operators inside
  std::vector<at::Tensor> with_gradient{};
  std::vector<External> externals{};
};
thread_local std::vector<Seen*> watches;  // the outermost first

void note(Seen& seen, const at::Tensor& tensor) {
  const bool learns = tensor.requires_grad();
  if (!learns && (seen.made.contains(storage_of(tensor)) || tensor.is_inference())) {
    return;
  }
  if (!seen.known.insert(tensor.unsafeGetTensorImpl()).second) {
    return;
  }
  if (learns) {
    seen.with_gradient.push_back(tensor);
  } else {
    seen.externals.push_back({tensor, static_cast<uint32_t>(tensor._version())});
  }
}

/// libtorch 1.13 writes a norm's statistics without counting a version.
void note_statistics(Seen& seen, const at::RecordFunction& function) {
  constexpr size_t kMean = 3, kTraining = 5;  // (input, weight, bias, mean, var, training, …)
  const auto inputs = function.inputs();
  if (std::string_view(function.name()).find("batch_norm") == std::string_view::npos ||
      inputs.size() <= kTraining || !inputs[kTraining].isBool() || !inputs[kTraining].toBool()) {
    return;
  }
  for (size_t i = kMean; i < kTraining; ++i) {
    for_tensors(inputs[i], [&](const at::Tensor& tensor) {
      for (Seen::External& each : seen.externals) {
        each.written = each.written || each.tensor.is_same(tensor);
      }
    });
  }
}

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  for (Seen* const seen : watches) {
    for (const c10::IValue& input : function.inputs()) {
      for_tensors(input, [&](const at::Tensor& tensor) { note(*seen, tensor); });
    }
    note_statistics(*seen, function);
  }
  return nullptr;
}

void end(const at::RecordFunction& function, at::ObserverContext* /*context*/) {
  for (Seen* const seen : watches) {
    for (const c10::IValue& output : function.outputs()) {
      for_tensors(output, [&](const at::Tensor& tensor) {
        const auto* const storage = storage_of(tensor);
        const bool is_external = std::ranges::any_of(
            seen->externals, [&](const auto& each) { return storage_of(each.tensor) == storage; });
        if (!is_external) {
          seen->made.insert(storage);
        }
      });
    }
  }
}

/// Tells this thread's watches of each operator, while the outermost lives.
class Listening final {
 public:
  explicit Listening(Seen& seen) {
    watches.push_back(&seen);
    if (watches.size() == 1) {
      handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(begin, end)
                                               .needsInputs(true)
                                               .needsOutputs(true)
                                               .scopes({at::RecordScope::FUNCTION}));
    }
  }
  ~Listening() {
    watches.pop_back();
    if (watches.empty()) {
      at::removeCallback(handle_);
    }
  }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
  Listening(Listening&&) = delete;
  Listening& operator=(Listening&&) = delete;

 private:
  const at::RecordFunctionGuard enabled_{true};
  at::CallbackHandle handle_ = 0;
};

}  // namespace

UsedTensors used_tensors(const std::function<void()>& body) {
  Seen seen;
  {
    const at::NoGradGuard no_grad;
    const Listening listening(seen);
    body();
  }
  UsedTensors used{.with_gradient = std::move(seen.with_gradient)};
  for (const Seen::External& each : seen.externals) {
    if (each.written || static_cast<uint32_t>(each.tensor._version()) != each.version) {
      used.written.push_back(each.tensor);
    }
  }
  return used;
}

}  // namespace argosy::engine
