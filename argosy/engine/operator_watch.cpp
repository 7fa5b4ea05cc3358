#include "argosy/engine/operator_watch.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <ATen/record_function.h>

#include "argosy/base/check.h"
#include "argosy/engine/operator_tensors.h"

namespace argosy::engine {
namespace {

/// What is known of an operator when it begins; its inputs may be gone when it ends.
struct Begun final : at::ObserverContext {
  std::string name;
  std::vector<std::vector<int64_t>> shapes;  // of the tensors among the inputs
  std::vector<const void*> storages;
  int64_t owner = -1;
  at::Tensor input;  // a copy
  bool transposed = false;
  bool counts = false;  // the first with a formula, from the outside in
};

/// The state of watch_operators() on this thread.
struct Watch {
  const OwnerOf* owner_of;
  WatchOptions options{};
  std::vector<SeenOperator> seen{};
  int64_t depth = 0;
  bool inside_counted = false;
  int64_t multiply_adds = 0;  // of the outermost operator that is running
};
thread_local Watch* current = nullptr;

template <size_t N>
bool is_one_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

int64_t product(const std::vector<int64_t>& sizes) {
  int64_t result = 1;
  for (const int64_t size : sizes) {
    result *= size;
  }
  return result;
}

enum class Formula { kNone, kConvolution, kProduct, kProductWithBias, kAttention, kRecurrent };

Formula formula_of(std::string_view name) {
  constexpr std::array<std::string_view, 9> kConvolutions{"conv1d",
                                                          "conv2d",
                                                          "conv3d",
                                                          "conv_transpose1d",
                                                          "conv_transpose2d",
                                                          "conv_transpose3d",
                                                          "convolution",
                                                          "_convolution",
                                                          "mkldnn_convolution"};
  constexpr std::array<std::string_view, 7> kProducts{
      "linear", "matmul", "mm", "bmm", "mv", "dot", "inner"};
  constexpr std::array<std::string_view, 3> kProductsWithBias{"addmm", "baddbmm", "addmv"};
  if (is_one_of(name, kConvolutions)) {
    return Formula::kConvolution;
  }
  if (is_one_of(name, kProducts)) {
    return Formula::kProduct;
  }
  if (is_one_of(name, kProductsWithBias)) {
    return Formula::kProductWithBias;
  }
  if (name == "mkldnn_rnn_layer") {  // newer libtorchs have it inside of lstm
    return Formula::kRecurrent;
  }
  return name.find("scaled_dot_product") != std::string_view::npos ? Formula::kAttention
                                                                   : Formula::kNone;
}

/// 0 for shapes that the formula is not for.
int64_t multiply_adds(const Begun& op, int64_t output_numel) {
  const auto dim = [&](size_t input, size_t from_back) -> int64_t {
    const bool has = input < op.shapes.size() && op.shapes[input].size() > from_back;
    return has ? op.shapes[input][op.shapes[input].size() - 1 - from_back] : 0;
  };
  switch (formula_of(op.name)) {
    case Formula::kConvolution: {
      if (op.shapes.size() < 2 || op.shapes[1].empty() || op.shapes[1][0] == 0) {
        return 0;
      }
      // The weight is [out, in / groups, …], transposed [in, out / groups, …].
      const int64_t for_each = product(op.shapes[1]) / op.shapes[1][0];
      return for_each * (op.transposed ? product(op.shapes[0]) : output_numel);
    }
    case Formula::kProduct:
      return output_numel * dim(0, 0);
    case Formula::kProductWithBias:
      return output_numel * dim(1, 0);
    case Formula::kAttention: {  // query · keyᵀ, then · value
      const int64_t queries = dim(0, 0) == 0 ? 0 : product(op.shapes[0]) / dim(0, 0);
      return queries * dim(1, 1) * (dim(0, 0) + dim(2, 0));
    }
    case Formula::kRecurrent:  // of inputs and of the state, for each step and sample
      return op.shapes.size() < 3 || dim(0, 0) == 0
                 ? 0
                 : product(op.shapes[0]) / dim(0, 0) *
                       (product(op.shapes[1]) + product(op.shapes[2]));
    case Formula::kNone:
      break;
  }
  return 0;
}

/// Of the first tensor that belongs to no layer, as it is before the operator may write into it.
at::Tensor copy_of_input(const at::RecordFunction& function, const OwnerOf& owner_of) {
  at::Tensor first;
  for (const c10::IValue& input : function.inputs()) {
    for_tensors(input, [&](const at::Tensor& tensor) {
      first = !first.defined() && owner_of(tensor) < 0 ? tensor : first;
    });
  }
  const at::DisableRecordFunctionGuard unseen;
  return first.defined() ? first.detach().clone() : first;
}

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  auto op = std::make_unique<Begun>();
  const std::string_view full = function.name();
  op->name = full.substr(full.rfind(':') + 1);  // npos + 1 is 0
  Watch& watch = *current;
  for (const c10::IValue& input : function.inputs()) {
    for_tensors(input, [&](const at::Tensor& tensor) {
      op->shapes.push_back(tensor.sizes().vec());
      op->storages.push_back(storage_of(tensor));
      op->owner = op->owner >= 0 ? op->owner : (*watch.owner_of)(tensor);
    });
  }
  if (watch.options.inputs && watch.depth == 0 && op->owner >= 0) {
    op->input = copy_of_input(function, *watch.owner_of);
  }
  constexpr size_t kTransposed = 6;  // of (input, weight, bias, stride, padding, dilation, …)
  const auto inputs = function.inputs();
  op->transposed =
      op->name.find("transpose") != std::string::npos ||
      (inputs.size() > kTransposed && op->name.find("convolution") != std::string::npos &&
       inputs[kTransposed].isBool() && inputs[kTransposed].toBool());
  if (!watch.inside_counted && formula_of(op->name) != Formula::kNone) {
    op->counts = watch.inside_counted = true;
  }
  ++watch.depth;
  return op;
}

void end(const at::RecordFunction& function, at::ObserverContext* context) {
  auto& op = static_cast<Begun&>(*context);
  Watch& watch = *current;
  SeenOperator row{.name = op.name, .owner = op.owner, .input = std::move(op.input)};
  std::optional<int64_t> numel;  // of the first output
  bool views = false;
  at::Tensor first;
  for (const c10::IValue& output : function.outputs()) {
    for_tensors(output, [&](const at::Tensor& tensor) {
      const bool shares = std::find(op.storages.begin(), op.storages.end(), storage_of(tensor)) !=
                          op.storages.end();
      if (!numel) {
        numel = tensor.numel();
        first = tensor;
        row.output_shape = tensor.sizes().vec();
        views = shares;
      }
      row.output_bytes += shares ? 0 : static_cast<int64_t>(tensor.nbytes());
    });
  }
  if (op.counts) {
    watch.multiply_adds += multiply_adds(op, numel.value_or(0));
    watch.inside_counted = false;
  }
  if (--watch.depth > 0) {
    return;
  }
  row.multiply_adds = std::exchange(watch.multiply_adds, 0);
  constexpr std::array<std::string_view, 6> kCopies{
      "contiguous", "to", "clone", "copy_", "_to_copy", "empty_like"};
  const bool in_place = op.name.back() == '_';
  if (numel && !op.shapes.empty() && (!views || in_place) && !is_one_of(op.name, kCopies)) {
    if (watch.options.outputs && row.owner >= 0) {
      const at::DisableRecordFunctionGuard unseen;
      row.output = first.detach().clone();  // a later operator may write into it
    }
    watch.seen.push_back(std::move(row));
  }
}

}  // namespace

std::vector<SeenOperator> watch_operators(const OwnerOf& owner_of,
                                          const std::function<void()>& body,
                                          const WatchOptions& options) {
  ARGOSY_CHECK(current == nullptr, "engine.summary", "called inside of another summary's forward");
  Watch watch{.owner_of = &owner_of, .options = options};
  struct Install {
    explicit Install(Watch* watch) {
      current = watch;
      handle = at::addThreadLocalCallback(at::RecordFunctionCallback(begin, end)
                                              .needsInputs(true)
                                              .needsOutputs(true)
                                              .scopes({at::RecordScope::FUNCTION}));
    }
    ~Install() {
      at::removeCallback(handle);
      current = nullptr;
    }
    Install(const Install&) = delete;
    Install& operator=(const Install&) = delete;
    at::CallbackHandle handle;
  };
  const at::RecordFunctionGuard enabled(true);
  const Install installed(&watch);
  body();
  return std::move(watch.seen);
}

}  // namespace argosy::engine
