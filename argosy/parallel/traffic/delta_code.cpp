#include "argosy/parallel/traffic/delta_code.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

namespace argosy::parallel::traffic {
namespace {

struct BlockForm {
  int64_t values = 0;
  int64_t bytes = 0;  // with the scale in front
  int most = 0;       // the largest code
};

BlockForm form_of(int bits) {
  return bits == 8 ? BlockForm{256, 4 + 256, 127} : BlockForm{64, 4 + 32, 7};
}

void encode_block(const float* values, int64_t count, int bits, uint8_t* out) {
  const BlockForm form = form_of(bits);
  float scale = 0;
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) {
    finite = finite && std::isfinite(values[i]);
    scale = std::max(scale, std::abs(values[i]));
  }
  scale = finite ? scale : std::numeric_limits<float>::quiet_NaN();
  std::memcpy(out, &scale, sizeof scale);
  std::memset(out + 4, 0, static_cast<size_t>(form.bytes - 4));
  if (!(scale > 0)) {
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const auto code =
        static_cast<int>(std::lround(values[i] / scale * static_cast<float>(form.most)));
    if (bits == 8) {
      out[4 + i] = static_cast<uint8_t>(code);
    } else {
      out[4 + i / 2] |= static_cast<uint8_t>((code & 15) << (i % 2 * 4));
    }
  }
}

int code_at(const uint8_t* block, int64_t i, int bits) {
  if (bits == 8) {
    return static_cast<int8_t>(block[4 + i]);
  }
  const int code = block[4 + i / 2] >> (i % 2 * 4) & 15;
  return code >= 8 ? code - 16 : code;
}

}  // namespace

int64_t code_bytes(int64_t values, int bits) {
  const BlockForm form = form_of(bits);
  return (values + form.values - 1) / form.values * form.bytes;
}

at::Tensor encode_delta(const at::Tensor& values, int bits) {
  const BlockForm form = form_of(bits);
  const at::Tensor here = values.cpu().contiguous();
  at::Tensor code = at::empty({code_bytes(here.numel(), bits)}, at::kByte);
  const auto* in = here.data_ptr<float>();
  auto* out = code.data_ptr<uint8_t>();
  for (int64_t done = 0; done < here.numel(); done += form.values) {
    encode_block(in + done, std::min(form.values, here.numel() - done), bits, out);
    out += form.bytes;
  }
  return code;
}

void add_decoded(const at::Tensor& code, int bits, const at::Tensor& sum) {
  const BlockForm form = form_of(bits);
  const auto* block = code.data_ptr<uint8_t>();
  auto* out = sum.data_ptr<float>();
  for (int64_t done = 0; done < sum.numel(); done += form.values) {
    float scale = 0;
    std::memcpy(&scale, block, sizeof scale);
    const float unit = scale / static_cast<float>(form.most);
    const int64_t count = std::min(form.values, sum.numel() - done);
    for (int64_t i = 0; i < count; ++i) {
      out[done + i] += unit * static_cast<float>(code_at(block, i, bits));
    }
    block += form.bytes;
  }
}

}  // namespace argosy::parallel::traffic
