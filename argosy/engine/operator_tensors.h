#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

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
  }
}

/// The identity of a tensor's memory; nullptr: it has none.
inline const c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  return tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

}  // namespace argosy::engine
