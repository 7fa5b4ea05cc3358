#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "argosy/comm/operation.h"
#include "argosy/transport/rank_names.h"

namespace argosy::comm {

/// Who reports a failure.
struct Reporter {
  std::string_view group{};
  int rank = -1;
  int size = 0;
  int64_t last_completed = -1;  ///< seq; -1: none yet
  transport::RankNames names{};
};

/// `error`, which stopped `operation`, with what the transport does not know: the operation as the
/// user called it, its place in the flight record, its size. The transport says who is to blame and
/// what they did last. CommError and TimeoutError keep their type and peers; anything else is
/// returned as it is.
///
///     [comm.all_reduce] rank 3/8 group "dp" (gloo): all_reduce timed out after 30 s waiting
///     for rank 5 (seq 1043); rank 5: it was last seen after all_reduce (seq 1042). See
///     docs/guides/errors.md#hang. In the flight record: all_reduce seq 1042, 26214400 B f32; last
///     completed seq 1041.
[[nodiscard]] std::exception_ptr explain_failure(const Operation& operation,
                                                 const Reporter& reporter,
                                                 const std::exception_ptr& error);

/// What an operation gets that was issued after the group broke because of `cause`.
[[nodiscard]] std::exception_ptr broken_group_error(const Operation& operation,
                                                    const Reporter& reporter,
                                                    const std::string& cause,
                                                    const std::vector<int>& peers);

/// The message of any exception; "unknown exception" for what is not a std::exception.
[[nodiscard]] std::string message_of(const std::exception_ptr& error);
/// The ranks it names; empty unless it is a CommError.
[[nodiscard]] std::vector<int> peers_of(const std::exception_ptr& error);

}  // namespace argosy::comm
