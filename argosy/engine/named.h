#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}

namespace argosy::engine {

/// Tensors with their structured names ("layer1.0.conv1.weight"), in order of registration.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

namespace detail {

template <typename T>
concept IsModule = std::is_convertible_v<const T*, const torch::nn::Module*>;

// torch::OrderedDict's items have key() and value(), pairs first and second.
template <typename Item>
concept IsNamedItem = requires(const Item& item) {
  std::string(item.key()), item.value();
}
|| requires(const Item& item) {
  std::string(item.first), item.second;
};

template <typename T>
concept IsNamedList = requires(const T& list) {
  { *list.begin() } -> IsNamedItem;
};

template <typename T>
concept HasNamedParameters = requires(const T& object) {
  object.named_parameters();
};

template <typename T>
concept HoldsModule = requires(const T& holder) {
  {holder.ptr()->named_parameters()};
};

template <typename T>
concept PointsToNamed = requires(const T& pointer) {
  pointer->named_parameters();
};

template <typename List>
NamedTensors to_named(const List& list) {
  NamedTensors result;
  for (const auto& item : list) {
    if constexpr (requires { item.key(); }) {
      result.emplace_back(item.key(), item.value());
    } else {
      result.emplace_back(item.first, item.second);
    }
  }
  return result;
}

}  // namespace detail

/// Any type that named_parameters() takes.
template <typename T>
concept NamedParameterSource = detail::IsNamedList<T> || detail::HasNamedParameters<T> ||
    detail::PointsToNamed<T> || detail::HoldsModule<T>;

/// Returns the parameters of a torch::nn::Module, a ModuleHolder (`torch::nn::Linear`,
/// `vision::LeNet`), a pointer to a module, an AnyModule, a wrapper with named_parameters() such as
/// DistributedDataParallel, or a list of {name, tensor}.
///
/// A parameter that is registered under two names (tied weights) appears twice.
template <NamedParameterSource T>
[[nodiscard]] NamedTensors named_parameters(const T& source) {
  if constexpr (detail::IsNamedList<T>) {
    return detail::to_named(source);
  } else if constexpr (detail::HasNamedParameters<T>) {
    return detail::to_named(source.named_parameters());
  } else if constexpr (detail::PointsToNamed<T>) {
    return detail::to_named(source->named_parameters());
  } else {
    return detail::to_named(source.ptr()->named_parameters());
  }
}

/// True of what module_of() takes.
template <typename T>
concept HasModule = detail::IsModule<T> || requires(const T& source) {
  source.module();
} || requires(const T& source) {
  *source;
} || requires(const T& source) {
  source.ptr();
};

/// Returns the module in a module itself, a holder, a pointer, an AnyModule, or a wrapper whose
/// module() is one of these.
template <HasModule T>
[[nodiscard]] const torch::nn::Module& module_of(const T& source) {
  if constexpr (detail::IsModule<T>) {
    return source;
  } else if constexpr (requires { source.module(); }) {
    return module_of(source.module());
  } else if constexpr (requires { *source; }) {
    return *source;
  } else {
    return *source.ptr();
  }
}

}  // namespace argosy::engine
