#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include "argosy/transport/types.h"

namespace argosy::comm {

/// Where a transport takes memory: the host's, or that of the device of a stream, in which it
/// works.
using Medium = std::optional<c10::Stream>;

/// A tensor as a transport sees it: contiguous memory in row-major order.
///
/// Shares the caller's memory where that is contiguous and in the medium; elsewhere it is a copy,
/// which finish() writes back. Copies of a Buffer refer to the same memory. Tensors of a device in
/// the host's memory: making a Buffer waits for the work that the caller's stream has before it;
/// what finish() writes is ordered in that same stream, whatever thread calls it, and there when it
/// returns. On a device: the copies are work of the caller's stream, what finish() writes is work
/// of the medium's, and the memory stays until the latter is done with it.
class Buffer final {
 public:
  Buffer() = default;  ///< no elements
  /// For an operation that only reads `tensor`.
  static Buffer to_read(std::string_view op, const at::Tensor& tensor, const Medium& in = {});
  /// For an operation that only writes it: a copy starts uninitialised.
  static Buffer to_write(std::string_view op, const at::Tensor& tensor, const Medium& in = {});
  static Buffer to_update(std::string_view op, const at::Tensor& tensor, const Medium& in = {});
  /// Several tensors of one dtype behind each other.
  static Buffer to_read(std::string_view op,
                        const std::vector<at::Tensor>& tensors,
                        const Medium& in = {});
  static Buffer to_write(std::string_view op,
                         const std::vector<at::Tensor>& tensors,
                         const Medium& in = {});

  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] transport::DType dtype() const { return dtype_; }
  /// Elements of dtype(), which are bytes where the transport has no such type.
  [[nodiscard]] int64_t count() const { return count_; }
  [[nodiscard]] int64_t bytes() const { return bytes_; }
  /// Writes a copy back to where it belongs. Safe on any thread; invisible to autograd.
  void finish() const;

 private:
  enum class Access { kRead, kWrite, kUpdate };
  struct Target {
    Target(const at::Tensor& given, const Medium& in);
    at::Tensor tensor;
    std::optional<c10::Stream> stream;  // in which it is written; none on the CPU
  };
  static void check(std::string_view op, const at::Tensor& tensor, Access access);
  static Buffer make(std::string_view op,
                     const at::Tensor& tensor,
                     Access access,
                     const Medium& in);
  static Buffer make(std::string_view op,
                     const std::vector<at::Tensor>& tensors,
                     Access access,
                     const Medium& in);
  void describe(const at::Tensor& flat);

  at::Tensor flat_;
  std::vector<Target> targets_;   // in whose order flat_ must be copied back; empty: not at all
  std::vector<at::Tensor> kept_;  // several tensors used in place: all must stay alive
  void* data_ = nullptr;
  int64_t count_ = 0;
  int64_t bytes_ = 0;
  transport::DType dtype_ = transport::DType::kU8;
};

/// "f32", and libtorch's own name for what the transport cannot reduce. A literal.
[[nodiscard]] std::string_view dtype_name(const at::Tensor& tensor);

/// Throws UsageError unless `op` can read `tensor`: it is defined, has values and is strided.
void check_readable(std::string_view op, const at::Tensor& tensor);
/// Throws UsageError, listing what works, unless `op` can reduce tensors of this dtype.
void check_reducible(std::string_view op, const at::Tensor& tensor, transport::ReduceOp reduce);

/// "[3, 4]"
[[nodiscard]] std::string shape_text(const at::Tensor& tensor);

}  // namespace argosy::comm
