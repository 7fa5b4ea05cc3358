#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "argosy/base/error.h"

namespace argosy::data {

/// What a loader does with a sample that throws a DataError: a truncated image, a torn record. Any
/// other exception is a bug and always ends the loop.
enum class OnError {
  kRaise,    ///< the loop ends with the error
  kSkip,     ///< the sample is left out; its batch is shorter, or left out when no sample is good
  kReplace,  ///< the next good sample of the data set takes its place
};

/// What on_error did in a batch, or in an epoch.
struct BadSamples {
  static constexpr size_t kMessages = 3;
  /// After this many bad samples in a row the error is raised, because the disk is missing rather
  /// than a file torn.
  static constexpr int64_t kMostInARow = 100;

  int64_t skipped = 0;
  int64_t replaced = 0;
  std::vector<std::string> messages{};  ///< messages of the first kMessages

  [[nodiscard]] int64_t count() const { return skipped + replaced; }

  /// Counts a sample that was left out.
  void skip(const DataError& error) {
    ++skipped;
    keep(error.what());
  }
  /// Counts a sample that sample `by` replaces.
  void replace(const DataError& error, int64_t by) {
    ++replaced;
    keep(std::string(error.what()) + ", replaced by sample " + std::to_string(by));
  }
  void add(const BadSamples& other) {
    skipped += other.skipped;
    replaced += other.replaced;
    for (const std::string& message : other.messages) {
      keep(message);
    }
  }

 private:
  void keep(const std::string& message) {
    if (messages.size() < kMessages) {
      messages.push_back(message);
    }
  }
};

}  // namespace argosy::data
