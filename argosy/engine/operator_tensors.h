#pragma once

#include <cstddef>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

// Internal to the room: what watches of the dispatcher look at.
namespace argosy::engine {

/// Calls `visit` with the tensors in an argument or a result of an operator.
template <typename Visit>
void for_tensors(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor() && value.toTensor().defined()) {
    visit(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) {
      visit(tensor);
    }
  } else if (value.isOptionalTensorList()) {  // what index() takes
    for (const auto& tensor : value.toOptionalTensorVector()) {
      if (tensor.has_value() && tensor->defined()) {
        visit(*tensor);
      }
    }
  }
}

/// What is known of an operator; nullptr: nothing. Cost: a search.
inline const c10::FunctionSchema* schema_of(const at::RecordFunction& function) {
  const auto name = function.operator_name();
  const auto found = name ? c10::Dispatcher::singleton().findSchema(*name) : c10::nullopt;
  return found ? &found->schema() : nullptr;
}

/// What an operator does with an argument, by its schema.
enum class ArgumentUse { kReads, kWrites, kViews };
inline ArgumentUse use_of(const c10::FunctionSchema* schema, size_t argument) {
  const c10::AliasInfo* const alias = schema == nullptr || argument >= schema->arguments().size()
                                          ? nullptr
                                          : schema->arguments()[argument].alias_info();
  return alias == nullptr   ? ArgumentUse::kReads
         : alias->isWrite() ? ArgumentUse::kWrites
                            : ArgumentUse::kViews;
}

/// The identity of a tensor's memory; nullptr: it has none.
inline const c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  return tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

}  // namespace argosy::engine
