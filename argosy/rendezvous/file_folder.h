#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/os/fd.h"
#include "argosy/rendezvous/store.h"

namespace argosy::rendezvous {

/// The folder of a file store on disk, and the lock that makes its changes atomic:
///
///     argosy-store          says what the folder is (format version), and is the lock file
///     values/<key>          "<key>\n<value>", replaced by rename
///     members/<member>      "<member>\n<size of note><note>", locked by its process while it lives
///     departures            one line for each member that is gone, in the order agreed by all
///
/// Locks are OFD locks (fcntl): the kernel lets go of them when the last descriptor is closed, also
/// after kill -9, and they hold between threads of one process too. Thread-safe.
class FileFolder final {
 public:
  /// Makes the folder unless it is there.
  /// Errors: ConfigError when `path` is something else than a store; RendezvousError naming path
  /// and errno.
  explicit FileFolder(std::string path);

  /// Takes the lock, which is held until the returned descriptor is closed.
  /// Errors: TimeoutError; RendezvousError when the folder was deleted or replaced.
  [[nodiscard]] os::UniqueFd lock(std::string_view op, const Deadline& deadline) const;
  /// Throws RendezvousError when the folder was deleted or replaced since it was opened.
  void check_still_there(std::string_view op) const;

  // These three need no lock. They see a value as a whole, old or new.

  [[nodiscard]] std::optional<std::string> read(const std::string& key) const;
  [[nodiscard]] bool exists(const std::string& key) const;
  [[nodiscard]] std::vector<std::string> keys(const std::string& prefix) const;

  // The functions below are called under the lock.

  void write(const std::string& key, const std::string& value) const;
  /// Removes the key, and the departure of a member of this name. True if the key existed.
  bool remove(const std::string& key) const;
  /// Makes and locks a member's file. Errors: RendezvousError when the member is present.
  [[nodiscard]] os::UniqueFd arrive(const std::string& member) const;
  void depart(const std::string& member, Parting parting, std::string_view note) const;
  /// Finds members whose process is gone and makes them departures; returns those present, sorted.
  [[nodiscard]] std::vector<Member> sweep() const;
  [[nodiscard]] std::vector<Departure> departures() const;
  /// Removes the folder with everything in it; later use of it by anyone fails.
  void destroy() const;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  [[nodiscard]] std::string value_path(const std::string& key) const;
  [[nodiscard]] std::string member_path(const std::string& member) const;
  void open_marker();
  void check_format() const;
  void forget_departure(const std::string& member) const;

  const std::string path_;
  os::UniqueFd marker_;  ///< held open so that its inode cannot be given to another folder's
};

/// Replaces the note in a member's file. Only the member's own process calls it, so it needs no
/// lock.
void write_note(int member_fd, const std::string& member, const std::string& note);

}  // namespace argosy::rendezvous
