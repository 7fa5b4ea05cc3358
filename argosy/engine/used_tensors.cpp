#include "argosy/engine/used_tensors.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"
#include "argosy/engine/operator_tensors.h"

namespace argosy::engine {
namespace {

/// A call of used_tensors() on this thread.
struct Seen {
  struct Learning {
    at::Tensor tensor;
    int64_t version = 0;  // when it was first seen
  };
  std::unordered_set<const at::TensorImpl*> known{};     // of those that are kept below
  std::unordered_set<const c10::StorageImpl*> made{};    // by operators inside
  std::unordered_set<const c10::StorageImpl*> theirs{};  // of those that are kept below
  std::vector<Learning> learning{};
  std::vector<at::Tensor> externals{};
  std::vector<UsedTensors::Written> written{};
};
thread_local std::vector<Seen*> watches;  // the outermost first
/// Operators that call others: what these get, the outer ones got, or made and have not returned.
thread_local int64_t depth = 0;

void note(Seen& seen, const at::Tensor& tensor) {
  const c10::StorageImpl* const storage = storage_of(tensor);
  if (storage == nullptr || tensor.is_inference() || seen.made.contains(storage) ||
      !seen.known.insert(tensor.unsafeGetTensorImpl()).second) {
    return;
  }
  seen.theirs.insert(storage);
  if (tensor.requires_grad()) {
    seen.learning.push_back({tensor, static_cast<int64_t>(tensor._version())});
  } else {
    seen.externals.push_back(tensor);
  }
}

/// Before an operator writes: what was there.
void note_write(Seen& seen, const at::Tensor& tensor) {
  const auto has_memory = [&](const at::Tensor& other) {
    return storage_of(other) == storage_of(tensor);
  };
  const bool is_external = std::ranges::any_of(seen.externals, has_memory);
  const bool is_known =
      std::ranges::any_of(seen.written, has_memory, &UsedTensors::Written::tensor);
  if (is_external && !is_known) {
    const at::DisableRecordFunctionGuard unseen;
    seen.written.push_back({tensor, tensor.detach().clone()});
  }
}

/// libtorch 1.13 does not say that a norm writes its statistics.
bool writes_statistics(const at::RecordFunction& function, size_t input) {
  constexpr size_t kMean = 3, kTraining = 5;  // (input, weight, bias, mean, var, training, …)
  const auto inputs = function.inputs();
  return input >= kMean && input < kTraining && inputs.size() > kTraining &&
         std::string_view(function.name()).find("batch_norm") != std::string_view::npos &&
         inputs[kTraining].isBool() && inputs[kTraining].toBool();
}

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  if (depth++ > 0) {
    return nullptr;
  }
  const c10::FunctionSchema* const schema = schema_of(function);
  const auto inputs = function.inputs();
  for (Seen* const seen : watches) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool written =
          use_of(schema, i) == ArgumentUse::kWrites || writes_statistics(function, i);
      for_tensors(inputs[i], [&](const at::Tensor& tensor) {
        note(*seen, tensor);
        if (written) {
          note_write(*seen, tensor);
        }
      });
    }
  }
  return nullptr;
}

void end(const at::RecordFunction& function, at::ObserverContext* /*context*/) {
  if (--depth > 0) {
    return;
  }
  for (Seen* const seen : watches) {
    for (const c10::IValue& output : function.outputs()) {
      for_tensors(output, [&](const at::Tensor& tensor) {
        const c10::StorageImpl* const storage = storage_of(tensor);
        if (storage != nullptr && !seen->theirs.contains(storage)) {
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

void note_use(const at::Tensor& tensor) {
  for (Seen* const seen : watches) {
    if (tensor.defined()) {
      note(*seen, tensor);
    }
  }
}

UsedTensors used_tensors(const std::function<void()>& body, const char* what) {
  Seen seen;
  {
    const at::NoGradGuard no_grad;
    const Listening listening(seen);
    body();
  }
  UsedTensors used{.written = std::move(seen.written)};
  for (const auto& [tensor, version] : seen.learning) {
    ARGOSY_CHECK(static_cast<int64_t>(tensor._version()) == version,
                 what,
                 "the function writes into a tensor that requires a gradient, {}, so that it "
                 "cannot be computed again",
                 text::shape_and_type(tensor));
    used.with_gradient.push_back(tensor);
  }
  return used;
}

}  // namespace argosy::engine
