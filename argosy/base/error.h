#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace argosy {

/// Root of every exception that Argosy throws.
///
/// A message reads `[room.op] what is wrong: expected X, got Y (context). What to do.`
///
///     throw DataError("data.idx", "wrong magic: expected 0x00000803, got 0x1f8b0808", {path, 0});
///
/// `where` is `room.op`. It stands in brackets before `what`.
class Error : public std::runtime_error {
 public:
  Error(std::string_view where, std::string_view what);
};

/// The caller broke a documented rule, for instance by a wrong argument or a wrong order of calls.
class UsageError final : public Error {
 public:
  using Error::Error;
};

/// An option, environment variable or configuration file is missing, malformed or contradictory.
class ConfigError final : public Error {
 public:
  using Error::Error;
};

/// The ranks could not find each other, or the store that they meet in is gone.
class RendezvousError : public Error {
 public:
  using Error::Error;
};

/// A store answers and refuses this process: the token is wrong, the version differs, or it is no
/// store of ours. Trying again does not help.
class RefusedError final : public RendezvousError {
 public:
  using RendezvousError::RendezvousError;
};

/// A bug in Argosy, never the user's fault.
class InternalError final : public Error {
 public:
  using Error::Error;
};

/// What a communication error is about. Fields that are not known keep their defaults.
struct CommContext {
  std::string op{};          ///< "all_reduce", "barrier", "store.wait" …
  std::string group{};       ///< name of the group
  int rank = -1;             ///< the rank that reports
  std::vector<int> peers{};  ///< the ranks that died or did not arrive, ascending
  int64_t seq = -1;          ///< sequence number of the operation in its group
  bool mismatch = false;     ///< the ranks called it differently, so no single rank is to blame
};

/// An operation between ranks failed. peers() names the rank that caused it, if that is known. It
/// never names a rank that failed only in consequence.
class CommError : public Error {
 public:
  CommError(std::string_view where, std::string_view what, CommContext context = {})
      : Error(where, what), context_(std::move(context)) {}

  [[nodiscard]] const CommContext& context() const noexcept { return context_; }
  [[nodiscard]] const std::vector<int>& peers() const noexcept { return context_.peers; }

 private:
  CommContext context_;
};

/// A deadline passed. peers() names the ranks that did not arrive, if they are known.
class TimeoutError final : public CommError {
 public:
  using CommError::CommError;
};

/// The place of bad data.
struct DataPlace {
  std::string path{};   ///< file, or member of an archive
  int64_t offset = -1;  ///< byte in the file; -1: does not apply
  int64_t index = -1;   ///< sample in the data set; -1: does not apply
};

/// A sample, a file or an archive is not what its format promises.
class DataError final : public Error {
 public:
  DataError(std::string_view where, std::string_view what, DataPlace place = {});
  [[nodiscard]] const DataPlace& place() const noexcept { return place_; }
  /// Returns the same error with the sample's index, which only the code that iterates knows.
  [[nodiscard]] DataError with_index(int64_t index) const;
  /// Returns the same error with "(note)" after its message, for code that knows the batch but not
  /// the sample.
  [[nodiscard]] DataError with_note(std::string_view note) const;

 private:
  std::string where_;
  std::string message_;  // without the place
  DataPlace place_;
};

/// A part of a checkpoint.
struct CheckpointPlace {
  std::string path{};
  std::string key{};  ///< structured name of the entry, e.g. "conv1.weight"; empty: whole file
};

/// A checkpoint cannot be written or read, or does not fit the program.
class CheckpointError final : public Error {
 public:
  CheckpointError(std::string_view where, std::string_view what, CheckpointPlace place = {});
  [[nodiscard]] const CheckpointPlace& place() const noexcept { return place_; }

 private:
  CheckpointPlace place_;
};

/// Returns the type of the exception that is being handled ("std::out_of_range"), or "" outside of
/// a handler.
std::string type_of_current_exception();

/// Returns errno in words: "No such file or directory (ENOENT)". Thread-safe, unlike strerror.
std::string errno_message(int error_number);

}  // namespace argosy
