#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "argosy/base/deadline.h"
#include "argosy/rendezvous/store.h"

namespace argosy::launch {

/// A list of texts in a store. Many append to it, and all read it in the same order.
///
///     journal.append("node 2 failed", soon);
///     while (auto text = journal.next(soon)) …
///
/// A writer that dies leaves no hole, because an entry and its place are one write.
class Journal final {
 public:
  Journal(std::shared_ptr<rendezvous::Store> store, std::string name)
      : store_(std::move(store)), name_(std::move(name)) {}

  /// Errors: those of the store.
  void append(const std::string& text, const Deadline& deadline);
  /// Returns the entry after the last one returned. nullopt: none came before the deadline.
  [[nodiscard]] std::optional<std::string> next(const Deadline& deadline);
  /// Returns how many entries next() has returned.
  [[nodiscard]] int64_t read() const { return read_; }
  /// Another reader knows that `taken` places are taken. append() looks for a free one after them.
  void skip(int64_t taken) { free_ = std::max(free_, taken); }

 private:
  [[nodiscard]] std::string key(int64_t number) const;

  std::shared_ptr<rendezvous::Store> store_;
  std::string name_;
  int64_t read_ = 0;
  int64_t free_ = 0;  ///< places before this one are taken
};

}  // namespace argosy::launch
