#include "argosy/optim/flat_view.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include "argosy/base/check.h"
#include "argosy/optim/kernels/norm.h"
#include "argosy/optim/tensor_range.h"

namespace argosy::optim {

Precision checked_precision(const std::string& where,
                            const std::string& name,
                            const at::Tensor& tensor) {
  ARGOSY_CHECK(tensor.layout() == at::kStrided,
               where,
               "{}: expected a dense tensor, got a sparse one. Build the embedding with sparse = "
               "false.",
               name);
  ARGOSY_CHECK(tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kDouble,
               where,
               "{}: expected f32 or f64, got {}. Keep the parameters in f32; of divided 16-bit "
               "ones the optimizer clips the gradients (grad_clip)",
               name,
               c10::toString(tensor.scalar_type()));
  ARGOSY_CHECK(!tensor.is_meta(),
               where,
               "{}: it is on the device \"meta\", where tensors have no values. Move the model to "
               "another one before the optimizer is made.",
               name);
  return tensor.scalar_type() == at::kFloat ? Precision::kF32 : Precision::kF64;
}

at::ScalarType state_type(const at::Tensor& parameter) {
  return parameter.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

std::vector<kernels::Piece> cut(const std::vector<at::Tensor>& tensors) {
  std::vector<std::size_t> lengths;
  lengths.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    lengths.push_back(tensor.is_cpu() ? static_cast<std::size_t>(tensor.numel()) : 0);
  }
  return kernels::cut(lengths);
}

std::vector<ExactSum> sums_of_squares(const std::vector<at::Tensor>& tensors) {
  const std::vector<kernels::Piece> pieces = cut(tensors);
  std::vector<ExactSum> parts(pieces.size());
  kernels::for_each_piece(pieces, at::get_num_threads(), [&](std::size_t i) {
    const auto [array, begin, count] = pieces[i];
    const at::Tensor& tensor = tensors[array];
    parts[i] =
        tensor.scalar_type() == at::kFloat
            ? kernels::sum_of_squares(static_cast<float*>(tensor.data_ptr()) + begin, count)
            : kernels::sum_of_squares(static_cast<double*>(tensor.data_ptr()) + begin, count);
  });
  std::vector<ExactSum> sums(tensors.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    sums[pieces[i].array].add(parts[i]);
  }
  std::vector<at::Tensor> elsewhere;
  std::ranges::copy_if(
      tensors, std::back_inserter(elsewhere), [](const at::Tensor& t) { return !t.is_cpu(); });
  const std::vector<ExactSum> theirs = sums_of_squares_on_device(elsewhere);
  for (std::size_t i = 0, next = 0; next < theirs.size(); ++i) {
    if (!tensors[i].is_cpu()) {
      sums[i] = theirs[next++];
    }
  }
  return sums;
}

}  // namespace argosy::optim
