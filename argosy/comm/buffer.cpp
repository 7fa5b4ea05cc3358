#include "argosy/comm/buffer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "argosy/base/check.h"
#include "argosy/base/text.h"
#include "argosy/comm/operation.h"

namespace argosy::comm {
namespace {

using transport::DType;

std::optional<DType> transport_dtype(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return DType::kF32;
    case at::kDouble:
      return DType::kF64;
    case at::kHalf:
      return DType::kF16;
    case at::kBFloat16:
      return DType::kBf16;
    case at::kChar:
      return DType::kI8;
    case at::kByte:
      return DType::kU8;
    case at::kInt:
      return DType::kI32;
    case at::kLong:
      return DType::kI64;
    case at::kBool:
      return DType::kBool;
    default:
      return std::nullopt;
  }
}

/// Elements that share memory: expand() makes them.
bool overlaps_itself(const at::Tensor& tensor) {
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    if (tensor.stride(dim) == 0 && tensor.size(dim) > 1) {
      return tensor.numel() > 0;
    }
  }
  return false;
}

c10::Device device_of(const Medium& medium) {
  return medium ? medium->device() : c10::Device(at::kCPU);
}

/// Whether its memory is the medium's, and the row-major list of its values. A lazy conjugate or
/// negation is not.
bool is_plain(const at::Tensor& tensor, const Medium& in) {
  return tensor.device() == device_of(in) && tensor.is_contiguous() && !tensor.is_conj() &&
         !tensor.is_neg();
}

at::Tensor empty_in(const Medium& medium, at::IntArrayRef sizes, const at::Tensor& like) {
  return at::empty(sizes, like.options().device(device_of(medium)).requires_grad(false));
}

/// The medium's stream will work on the tensor, which its owner may let go of before.
void keep_for(const Medium& medium, const at::Tensor& tensor) {
  if (medium && tensor.device() == medium->device() && tensor.numel() > 0) {
    tensor.record_stream(*medium);
  }
}

bool are_consecutive(const std::vector<at::Tensor>& tensors, const Medium& in) {
  const char* next = nullptr;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.numel() == 0) {
      continue;
    }
    const auto* data = static_cast<const char*>(tensor.data_ptr());
    if (!is_plain(tensor, in) || (next != nullptr && data != next)) {
      return false;
    }
    next = data + tensor.nbytes();
  }
  return true;
}

}  // namespace

void check_readable(std::string_view op, const at::Tensor& tensor) {
  ARGOSY_CHECK(tensor.defined(), place(op), "the tensor is undefined. Give it a value first.");
  ARGOSY_CHECK(!tensor.is_meta(),
               place(op),
               "the tensor is on the device \"meta\", where tensors have no values. Make one with "
               "at::empty_like(tensor, at::kCPU).");
  ARGOSY_CHECK(
      tensor.layout() != at::kStrided || tensor.numel() == 0 || tensor.storage().data() != nullptr,
      place(op),
      "the tensor is a parameter or a gradient that ranks divide, whose memory comes and "
      "goes, or it is deferred. Give a clone() of it, which all ranks make.");
  ARGOSY_CHECK(tensor.layout() == at::kStrided && !tensor.is_quantized(),
               place(op),
               "expected a plain strided tensor, got a sparse, mkldnn or quantized one. Convert it "
               "with to_dense() or dequantize().");
}

std::string shape_text(const at::Tensor& tensor) {
  return text::shape(tensor.sizes());
}

std::string_view dtype_name(const at::Tensor& tensor) {
  const auto dtype = transport_dtype(tensor.scalar_type());
  return dtype ? transport::to_string(*dtype)
               : std::string_view(c10::toString(tensor.scalar_type()));
}

void check_reducible(std::string_view op, const at::Tensor& tensor, transport::ReduceOp reduce) {
  const auto dtype = transport_dtype(tensor.scalar_type());
  ARGOSY_CHECK(dtype.has_value(),
               place(op),
               "cannot reduce tensors of type {}: expected one of f32 f64 f16 bf16 i8 u8 i32 i64 "
               "bool. Convert it, or view complex numbers as real with view_as_real().",
               c10::toString(tensor.scalar_type()));
  ARGOSY_CHECK(transport::is_defined(reduce, *dtype),
               place(op),
               "{} is not defined for {}. Bit operations take integers and bool, avg does not take "
               "bool.",
               transport::to_string(reduce),
               transport::to_string(*dtype));
}

Buffer::Target::Target(const at::Tensor& given, const Medium& in) : tensor(given), stream(in) {
  keep_for(in, given);
  if (const c10::Device device = given.device(); !in && !device.is_cpu()) {
    stream = c10::impl::getDeviceGuardImpl(device.type())->getStream(device);
  }
}

void Buffer::describe(const at::Tensor& flat) {
  flat_ = flat;
  data_ = flat.data_ptr();
  bytes_ = static_cast<int64_t>(flat.nbytes());
  const auto dtype = transport_dtype(flat.scalar_type());
  dtype_ = dtype.value_or(DType::kU8);
  count_ = dtype ? flat.numel() : bytes_;
}

void Buffer::check(std::string_view op, const at::Tensor& tensor, Access access) {
  check_readable(op, tensor);
  ARGOSY_CHECK(access == Access::kRead || !overlaps_itself(tensor),
               place(op),
               "the tensor of shape {} is expanded: several of its elements share one place in "
               "memory, so no result can be stored. Pass a clone().",
               shape_text(tensor));
}

Buffer Buffer::make(std::string_view op,
                    const at::Tensor& tensor,
                    Access access,
                    const Medium& in) {
  check(op, tensor, access);
  Buffer buffer;
  if (is_plain(tensor, in)) {
    keep_for(in, tensor);
    buffer.describe(tensor);
    return buffer;
  }
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  at::Tensor flat = empty_in(in, tensor.sizes(), tensor);
  keep_for(in, flat);
  if (access != Access::kWrite) {
    flat.copy_(tensor);
  }
  if (access != Access::kRead) {
    buffer.targets_ = {Target(tensor, in)};
  }
  buffer.describe(flat);
  return buffer;
}

Buffer Buffer::make(std::string_view op,
                    const std::vector<at::Tensor>& tensors,
                    Access access,
                    const Medium& in) {
  int64_t numel = 0;
  for (const at::Tensor& tensor : tensors) {
    check(op, tensor, access);
    ARGOSY_CHECK(tensor.scalar_type() == tensors.front().scalar_type(),
                 place(op),
                 "the tensors differ in dtype: {} and {}",
                 dtype_name(tensors.front()),
                 dtype_name(tensor));
    numel += tensor.numel();
  }
  Buffer buffer;
  if (tensors.empty()) {
    return buffer;
  }
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  if (are_consecutive(tensors, in)) {
    for (const at::Tensor& tensor : tensors) {
      keep_for(in, tensor);
    }
    const auto first = std::ranges::find_if(tensors, [](const auto& t) { return t.numel() > 0; });
    buffer.describe(first == tensors.end() ? tensors.front() : *first);
    buffer.kept_ = tensors;
    buffer.bytes_ = numel * static_cast<int64_t>(tensors.front().element_size());
    buffer.count_ =
        transport_dtype(tensors.front().scalar_type()).has_value() ? numel : buffer.bytes_;
    return buffer;
  }
  const at::Tensor flat = empty_in(in, {numel}, tensors.front());
  keep_for(in, flat);
  if (access == Access::kRead) {
    int64_t start = 0;
    for (const at::Tensor& tensor : tensors) {
      flat.narrow(0, start, tensor.numel()).view(tensor.sizes()).copy_(tensor);
      start += tensor.numel();
    }
  } else {
    for (const at::Tensor& tensor : tensors) {
      buffer.targets_.emplace_back(tensor, in);
    }
  }
  buffer.describe(flat);
  return buffer;
}

Buffer Buffer::to_read(std::string_view op, const at::Tensor& tensor, const Medium& in) {
  return make(op, tensor, Access::kRead, in);
}
Buffer Buffer::to_write(std::string_view op, const at::Tensor& tensor, const Medium& in) {
  return make(op, tensor, Access::kWrite, in);
}
Buffer Buffer::to_update(std::string_view op, const at::Tensor& tensor, const Medium& in) {
  return make(op, tensor, Access::kUpdate, in);
}
Buffer Buffer::to_read(std::string_view op,
                       const std::vector<at::Tensor>& tensors,
                       const Medium& in) {
  return make(op, tensors, Access::kRead, in);
}
Buffer Buffer::to_write(std::string_view op,
                        const std::vector<at::Tensor>& tensors,
                        const Medium& in) {
  return make(op, tensors, Access::kWrite, in);
}

void Buffer::finish() const {
  if (targets_.empty()) {
    return;
  }
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  const at::Tensor flat = flat_.view({-1});
  int64_t start = 0;
  for (const auto& [target, stream] : targets_) {
    c10::OptionalStreamGuard in_callers_order;
    if (stream.has_value()) {
      in_callers_order.reset_stream(*stream);
    }
    target.copy_(flat.narrow(0, start, target.numel()).view(target.sizes()));
    start += target.numel();
  }
}

}  // namespace argosy::comm
