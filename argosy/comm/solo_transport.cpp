#include "argosy/comm/solo_transport.h"

#include <cstring>
#include <string>

#include "argosy/base/check.h"
#include "argosy/base/error.h"

namespace argosy::comm {
namespace {

using transport::Counts;
using transport::DType;
using transport::ReduceOp;
using transport::Timeout;

void copy(const char* op, const void* from, void* to, int64_t count, DType dtype) {
  ARGOSY_CHECK(
      count >= 0, std::string("transport.") + op, "count must not be negative, got {}", count);
  if (count > 0 && from != to) {
    std::memmove(to, from, static_cast<size_t>(count) * transport::size_of(dtype));
  }
}

[[noreturn]] void no_peer(const char* where) {
  throw UsageError(where, "a group of one rank has no other rank to talk to");
}

}  // namespace

void SoloTransport::all_gather(
    const void* input, void* output, int64_t count, DType dtype, Timeout /*timeout*/) {
  copy("all_gather", input, output, count, dtype);
}
void SoloTransport::all_gather_v(
    const void* input, void* output, Counts counts, DType dtype, Timeout /*timeout*/) {
  copy("all_gather_v", input, output, counts[0], dtype);
}
void SoloTransport::gather(
    const void* input, void* output, int64_t count, DType dtype, int /*root*/, Timeout /*t*/) {
  copy("gather", input, output, count, dtype);
}
void SoloTransport::scatter(
    const void* input, void* output, int64_t count, DType dtype, int /*root*/, Timeout /*t*/) {
  copy("scatter", input, output, count, dtype);
}
void SoloTransport::reduce_scatter(
    const void* input, void* output, int64_t count, DType dtype, ReduceOp /*op*/, Timeout /*t*/) {
  copy("reduce_scatter", input, output, count, dtype);
}
void SoloTransport::all_to_all(
    const void* input, void* output, int64_t count, DType dtype, Timeout /*timeout*/) {
  copy("all_to_all", input, output, count, dtype);
}
void SoloTransport::all_to_all_v(const void* input,
                                 Counts send_counts,
                                 void* output,
                                 Counts recv_counts,
                                 DType dtype,
                                 Timeout /*timeout*/) {
  ARGOSY_CHECK(send_counts[0] == recv_counts[0],
               "transport.all_to_all_v",
               "what rank 0 sends to itself must be what it receives: got {} and {}",
               send_counts[0],
               recv_counts[0]);
  copy("all_to_all_v", input, output, send_counts[0], dtype);
}

std::unique_ptr<transport::Transfer> SoloTransport::send(const void* /*data*/,
                                                         size_t /*bytes*/,
                                                         int /*peer*/,
                                                         uint32_t /*tag*/) {
  no_peer("comm.send");
}
std::unique_ptr<transport::Transfer> SoloTransport::recv(void* /*data*/,
                                                         size_t /*bytes*/,
                                                         int /*peer*/,
                                                         uint32_t /*tag*/) {
  no_peer("comm.recv");
}

}  // namespace argosy::comm
