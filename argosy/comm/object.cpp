/// Bytes of any length between ranks: the _object operations. They need no tensor.
#include <algorithm>
#include <numeric>

#include "argosy/comm/checks.h"
#include "argosy/comm/collectives.h"

namespace argosy::comm {
namespace {

using transport::DType;
using transport::Transport;
using Counts = std::vector<int64_t>;

/// A length from another rank that is larger is taken for a broken message, not for a size.
constexpr int64_t kLongest = int64_t{1} << 40;

int64_t length_of(const std::string& bytes) {
  return static_cast<int64_t>(bytes.size());
}

int64_t checked_length(int64_t length) {
  if (length < 0 || length > kLongest) {
    throw CommError("comm.object",
                    fmt::format("a rank announced {} bytes: the ranks do not call the same "
                                "operation. Run with ARGOSY_CHECKED=1.",
                                length));
  }
  return length;
}

/// Every rank's length, known to all.
Counts exchange_lengths(Transport& transport, const std::string& bytes, const Deadline& deadline) {
  const int64_t mine = length_of(bytes);
  Counts lengths(static_cast<size_t>(transport.size()));
  transport.all_gather(&mine, lengths.data(), 1, DType::kI64, deadline.remaining());
  std::ranges::for_each(lengths, checked_length);
  return lengths;
}

std::vector<std::string> cut(const std::string& all, const Counts& lengths) {
  std::vector<std::string> pieces;
  size_t start = 0;
  for (const int64_t length : lengths) {
    pieces.push_back(all.substr(start, static_cast<size_t>(length)));
    start += static_cast<size_t>(length);
  }
  return pieces;
}

std::string room_for(const Counts& lengths) {
  return std::string(
      static_cast<size_t>(std::accumulate(lengths.begin(), lengths.end(), int64_t{0})), '\0');
}

}  // namespace

std::vector<std::string> all_gather_object(const std::string& bytes,
                                           const Group& group,
                                           const TimeoutOptions& options) {
  GroupState& state = usable(group, "all_gather_object");
  std::vector<std::string> result;
  state.run(describe(state, "all_gather_object", length_of(bytes)),
            options.timeout,
            [&](Transport& transport, const Deadline& deadline) {
              const Counts lengths = exchange_lengths(transport, bytes, deadline);
              std::string all = room_for(lengths);
              transport.all_gather_v(
                  bytes.data(), all.data(), lengths, DType::kU8, deadline.remaining());
              result = cut(all, lengths);
            });
  return result;
}

std::string broadcast_object(const std::string& bytes,
                             const Group& group,
                             const RootOptions& options) {
  GroupState& state = usable(group, "broadcast_object");
  check_root("broadcast_object", state, options.root);
  const bool is_root = state.rank() == options.root;
  std::string result = is_root ? bytes : std::string();
  state.run(describe(state, "broadcast_object", length_of(result), options.root),
            options.timeout,
            [&](Transport& transport, const Deadline& deadline) {
              int64_t length = length_of(result);
              transport.broadcast(&length, 1, DType::kI64, options.root, deadline.remaining());
              result.resize(static_cast<size_t>(checked_length(length)));
              transport.broadcast(
                  result.data(), length, DType::kU8, options.root, deadline.remaining());
            });
  return result;
}

std::vector<std::string> gather_object(const std::string& bytes,
                                       const Group& group,
                                       const RootOptions& options) {
  GroupState& state = usable(group, "gather_object");
  check_root("gather_object", state, options.root);
  const auto root = static_cast<size_t>(options.root);
  const bool is_root = state.rank() == options.root;
  std::vector<std::string> result;
  state.run(describe(state, "gather_object", length_of(bytes), options.root),
            options.timeout,
            [&](Transport& transport, const Deadline& deadline) {
              const Counts lengths = exchange_lengths(transport, bytes, deadline);
              Counts send(lengths.size(), 0);
              send[root] = length_of(bytes);
              const Counts receive = is_root ? lengths : Counts(lengths.size(), 0);
              std::string all = room_for(receive);
              transport.all_to_all_v(
                  bytes.data(), send, all.data(), receive, DType::kU8, deadline.remaining());
              if (is_root) {
                result = cut(all, lengths);
              }
            });
  return result;
}

std::string scatter_object(const std::vector<std::string>& bytes,
                           const Group& group,
                           const RootOptions& options) {
  GroupState& state = usable(group, "scatter_object");
  check_root("scatter_object", state, options.root);
  const auto root = static_cast<size_t>(options.root);
  const bool is_root = state.rank() == options.root;
  ARGOSY_CHECK(!is_root || static_cast<int>(bytes.size()) == state.size(),
               "comm.scatter_object",
               "expected {} values, one for each rank, got {}",
               state.size(),
               bytes.size());
  std::string all;
  Counts send(static_cast<size_t>(state.size()), 0);
  for (size_t rank = 0; is_root && rank < bytes.size(); ++rank) {
    all += bytes[rank];
    send[rank] = length_of(bytes[rank]);
  }
  std::string result;
  state.run(describe(state, "scatter_object", length_of(all), options.root),
            options.timeout,
            [&](Transport& transport, const Deadline& deadline) {
              int64_t length = 0;
              transport.scatter(
                  send.data(), &length, 1, DType::kI64, options.root, deadline.remaining());
              result.resize(static_cast<size_t>(checked_length(length)));
              Counts receive(send.size(), 0);
              receive[root] = length;
              transport.all_to_all_v(
                  all.data(), send, result.data(), receive, DType::kU8, deadline.remaining());
            });
  return result;
}

}  // namespace argosy::comm
