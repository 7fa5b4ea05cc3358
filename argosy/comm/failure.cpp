#include "argosy/comm/failure.h"

#include <fmt/format.h>

#include <utility>

#include "argosy/base/error.h"

namespace argosy::comm {
namespace {

/// "[transport.gloo] text" without the place, which the new message replaces by its own.
std::string without_place(std::string_view message) {
  const size_t end = message.starts_with('[') ? message.find("] ") : std::string_view::npos;
  return std::string(end == std::string_view::npos ? message : message.substr(end + 2));
}

std::string who(const Reporter& reporter) {
  return fmt::format("rank {}/{}{} group \"{}\"",
                     reporter.rank,
                     reporter.size,
                     reporter.names.suffix(reporter.rank),
                     reporter.group);
}

/// Where this operation stands in the flight record, whose numbers these are.
std::string record(const Operation& operation, const Reporter& reporter) {
  const OperationInfo& info = operation.info;
  if (info.is_message()) {
    const std::string with = info.peer >= 0 ? reporter.names.one(info.peer) : "any rank";
    return fmt::format("{} with {}, tag {}, {} B", info.op, with, info.tag, info.bytes);
  }
  const std::string size =
      info.dtype.empty() ? "" : fmt::format(", {} B {}", info.bytes, info.dtype);
  const std::string progress = reporter.last_completed < 0
                                   ? std::string("none before it completed")
                                   : fmt::format("last completed seq {}", reporter.last_completed);
  return fmt::format("{} seq {}{}; {}", info.op, operation.seq, size, progress);
}

std::string text(const Operation& operation, const Reporter& reporter, std::string cause) {
  if (!cause.starts_with("rank ") || cause.find("group \"") == std::string::npos) {
    cause = fmt::format("{}: {}", who(reporter), cause);
  }
  return fmt::format("{}{} In the flight record: {}.",
                     cause,
                     cause.ends_with('.') ? "" : ".",
                     record(operation, reporter));
}

CommContext context(const Operation& operation, const Reporter& reporter, std::vector<int> peers) {
  return {.op = std::string(operation.info.op),
          .group = std::string(reporter.group),
          .rank = reporter.rank,
          .peers = std::move(peers),
          .seq = operation.seq};
}

}  // namespace

std::exception_ptr explain_failure(const Operation& operation,
                                   const Reporter& reporter,
                                   const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const TimeoutError& e) {
    return std::make_exception_ptr(TimeoutError(place(operation.info.op),
                                                text(operation, reporter, without_place(e.what())),
                                                context(operation, reporter, e.peers())));
  } catch (const CommError& e) {
    return std::make_exception_ptr(CommError(place(operation.info.op),
                                             text(operation, reporter, without_place(e.what())),
                                             context(operation, reporter, e.peers())));
  } catch (...) {
    return error;
  }
}

std::exception_ptr broken_group_error(const Operation& operation,
                                      const Reporter& reporter,
                                      const std::string& cause,
                                      const std::vector<int>& peers) {
  return std::make_exception_ptr(CommError(
      place(operation.info.op),
      fmt::format(
          "{}: the group is broken since an earlier operation failed: {}", who(reporter), cause),
      context(operation, reporter, peers)));
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "unknown exception";
  }
}

std::vector<int> peers_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const CommError& e) {
    return e.peers();
  } catch (...) {
    return {};
  }
}

}  // namespace argosy::comm
