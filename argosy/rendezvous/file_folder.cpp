#include "argosy/rendezvous/file_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <thread>
#include <utility>

#include "argosy/base/strings.h"
#include "argosy/os/whole_file.h"
#include "argosy/rendezvous/file_names.h"
#include "argosy/rendezvous/limits.h"

namespace argosy::rendezvous {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "argosy file store, format 1\n";
constexpr std::string_view kMarker = "argosy-store";
constexpr size_t kNoteSizeDigits = 6;

[[noreturn]] void fail(std::string_view step, const std::string& path, int error_number) {
  throw RendezvousError(
      "rendezvous.file",
      fmt::format("{} {}: {}. Every rank must be able to read and write the folder.",
                  step,
                  path,
                  errno_message(error_number)));
}

// True: the lock was taken. False: another open file holds it.
bool try_lock(int fd, const std::string& path) {
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  if (fcntl(fd, F_OFD_SETLK, &range) == 0) {
    return true;
  }
  if (errno != EAGAIN && errno != EACCES && errno != EINTR) {
    fail("cannot lock (does the file system support locks?)", path, errno);
  }
  return false;
}

bool is_locked(int fd, const std::string& path) {
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  if (fcntl(fd, F_OFD_GETLK, &range) != 0) {
    fail("cannot see the lock of", path, errno);
  }
  return range.l_type != F_UNLCK;
}

// Files of this user alone, and never one that a link put in the folder leads to.
Result<os::UniqueFd> open_own(const std::string& path, int flags) {
  return os::open_file(path, flags | O_NOFOLLOW, 0600);
}

// The user to whom the file system gives what this process makes in a folder: on NFS another than
// the process's own, where root is squashed. nullopt: it may make nothing there.
std::optional<uid_t> owner_of_new_files(const fs::path& folder) {
  std::string name = folder / ".argosy-owner-XXXXXX";
  const os::UniqueFd fd(mkostemp(name.data(), O_CLOEXEC));
  struct stat made {};
  if (!fd || fstat(fd.get(), &made) != 0) {
    return std::nullopt;
  }
  unlink(name.c_str());
  return made.st_uid;
}

// What others could write into, they could have this job read. Refused where they own it; see
// close_to_others().
os::UniqueFd make_own_folder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    fail("cannot make folder", path, errno);
  }
  Result<os::UniqueFd> fd = open_own(path, O_RDONLY | O_DIRECTORY);
  struct stat folder {};
  if (!fd.ok() || fstat(fd->get(), &folder) != 0) {
    fail("cannot open folder", path, fd.ok() ? errno : fd.failure().error_number);
  }
  if (folder.st_uid != geteuid() &&
      folder.st_uid != owner_of_new_files(fs::path(path).parent_path())) {
    throw ConfigError("rendezvous.file",
                      fmt::format("{} belongs to user {}: expected a folder of this process's user "
                                  "{}, for its owner could read and change what the ranks tell "
                                  "each other. Give file:// a path that does not exist yet.",
                                  path,
                                  folder.st_uid,
                                  geteuid()));
  }
  return *std::move(fd);
}

void close_to_others(const os::UniqueFd& folder, const std::string& path) {
  struct stat now {};
  if (fstat(folder.get(), &now) != 0 ||
      ((now.st_mode & 0077) != 0 && fchmod(folder.get(), 0700) != 0)) {
    fail("cannot close to other users", path, errno);
  }
}

std::vector<std::string> file_names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  if (error) {
    fail("cannot list", folder, error.value());
  }
  return names;
}

// Before anything in a folder is changed: it may be somebody's home, or the file of another
// library's store.
void refuse_other_folders(const std::string& path) {
  const std::vector<std::string> names = file_names_in(path);
  if (!names.empty() && std::ranges::find(names, kMarker) == names.end()) {
    throw ConfigError(
        "rendezvous.file",
        fmt::format("{} is no store: expected an empty or new folder, got one with other files in "
                    "it. Give file:// a path of its own.",
                    path));
  }
}

// The folder of a store, and those above it.
void make_store_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);  // its failure is mkdir's below
  if (fs::is_symlink(path, error)) {
    throw ConfigError("rendezvous.file",
                      fmt::format("{} is a symbolic link: expected a folder, or a path that does "
                                  "not exist yet. Give file:// the path that the link leads to.",
                                  path));
  }
  const os::UniqueFd folder = make_own_folder(path);
  refuse_other_folders(path);
  close_to_others(folder, path);
}

std::string without_trailing_slashes(std::string path) {
  path.erase(path.find_last_not_of('/') + 1);  // the kernel follows a link before a slash
  return path;
}

// The whole file; nullopt when there is none.
std::optional<std::string> read_whole(const std::string& path) {
  const Result<os::UniqueFd> fd = open_own(path, O_RDONLY);
  if (!fd.ok() && fd.failure().error_number == ENOENT) {
    return std::nullopt;
  }
  Result<std::string> text =
      fd.ok() ? os::read_to_end(fd->get(), kLargestValueBytes + kLargestKeyBytes + 1)
              : Result<std::string>(fd.failure());
  if (!text.ok()) {
    fail("cannot read", path, text.failure().error_number);
  }
  return *std::move(text);
}

// "<member>\n<six digits><note>"
std::string note_of(std::string_view content) {
  const size_t line = content.find('\n');
  if (line == std::string_view::npos) {
    return "";
  }
  content.remove_prefix(line + 1);
  const auto size = strings::parse_int(content.substr(0, kNoteSizeDigits));
  return size ? std::string(content.substr(kNoteSizeDigits, static_cast<size_t>(*size))) : "";
}

}  // namespace

void write_note(int member_fd, const std::string& member, const std::string& note) {
  // One write, its size in front: whoever reads never sees the tail of a longer note before it.
  const std::string content = fmt::format("{}\n{:06}{}", member, note.size(), note);
  if (pwrite(member_fd, content.data(), content.size(), 0) !=
      static_cast<ssize_t>(content.size())) {
    fail("cannot write the note of", member, errno);
  }
}

FileFolder::FileFolder(std::string path) : path_(without_trailing_slashes(std::move(path))) {
  make_store_folder(path_);
  open_marker();
  // Under the lock: whoever removes a folder holds it, so these are never made beside a new one.
  const os::UniqueFd held = lock("file", Deadline::after(std::chrono::seconds(10)));
  check_format();
  for (const std::string& part : {path_ + "/values", path_ + "/members"}) {
    close_to_others(make_own_folder(part), part);
  }
}

// The marker is made before everything else, so a folder with other things but no marker is not
// ours.
void FileFolder::open_marker() {
  const std::string marker = fmt::format("{}/{}", path_, kMarker);
  refuse_other_folders(path_);
  Result<os::UniqueFd> fd = open_own(marker, O_RDWR | O_CREAT);
  if (!fd.ok()) {
    fail("cannot open", marker, fd.failure().error_number);
  }
  marker_ = *std::move(fd);
}

void FileFolder::check_format() const {
  const std::string format = read_whole(path_ + "/argosy-store").value_or("");
  if (format.empty()) {
    if (Status status = os::write_all(marker_.get(), kFormat); !status.ok()) {
      fail("cannot write", path_ + "/argosy-store", status.failure().error_number);
    }
  } else if (format != kFormat) {
    throw ConfigError("rendezvous.file",
                      fmt::format("{} was made by another version of Argosy: expected \"{}\", got "
                                  "\"{}\". Use one version on all ranks and delete the folder.",
                                  path_,
                                  strings::trim(kFormat),
                                  strings::trim(format.substr(0, 60))));
  }
}

void FileFolder::check_still_there(std::string_view op) const {
  struct stat ours {};
  struct stat there {};
  if (fstat(marker_.get(), &ours) != 0 || lstat((path_ + "/argosy-store").c_str(), &there) != 0 ||
      ours.st_ino != there.st_ino || ours.st_dev != there.st_dev) {
    throw RendezvousError(fmt::format("rendezvous.{}", op),
                          fmt::format("the folder {} was deleted or replaced while this job used "
                                      "it. Another job may have the same file:// path.",
                                      path_));
  }
}

os::UniqueFd FileFolder::lock(std::string_view op, const Deadline& deadline) const {
  const auto start = Deadline::Clock::now();
  const std::string marker = path_ + "/argosy-store";
  // A descriptor of its own for each operation: OFD locks then hold between threads too.
  Result<os::UniqueFd> fd = open_own(marker, O_RDWR);
  if (!fd.ok()) {
    check_still_there(op);
    fail("cannot open", marker, fd.failure().error_number);
  }
  auto pause = std::chrono::microseconds(20);
  while (!try_lock(fd->get(), marker)) {
    if (deadline.expired()) {
      throw TimeoutError(fmt::format("rendezvous.{}", op),
                         fmt::format("could not lock {} within {}: another process holds it. See "
                                     "whether a rank is stopped.",
                                     marker,
                                     seconds_since(start)),
                         {.op = fmt::format("store.{}", op)});
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(2000));
  }
  check_still_there(op);
  return *std::move(fd);
}

std::string FileFolder::value_path(const std::string& key) const {
  return path_ + "/values/" + file_name(key);
}

std::string FileFolder::member_path(const std::string& member) const {
  return path_ + "/members/" + file_name(member);
}

std::optional<std::string> FileFolder::read(const std::string& key) const {
  std::optional<std::string> content = read_whole(value_path(key));
  if (content) {
    content->erase(0, key.size() + 1);
  }
  return content;
}

bool FileFolder::exists(const std::string& key) const {
  return faccessat(AT_FDCWD, value_path(key).c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

std::vector<std::string> FileFolder::keys(const std::string& prefix) const {
  std::vector<std::string> found;
  for (const std::string& name : file_names_in(path_ + "/values")) {
    std::optional<std::string> key = unescape(name);
    if (is_hashed(name)) {
      key = read_whole(path_ + "/values/" + name);
      if (key) {
        key->resize(std::min(key->find('\n'), key->size()));
      }
    }
    if (key && key->starts_with(prefix)) {
      found.push_back(*std::move(key));
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

void FileFolder::write(const std::string& key, const std::string& value) const {
  const std::string fresh = path_ + "/value.tmp";  // one name will do: the lock is held
  Result<os::UniqueFd> fd = open_own(fresh, O_WRONLY | O_CREAT | O_TRUNC);
  if (!fd.ok()) {
    fail("cannot make", fresh, fd.failure().error_number);
  }
  Status status = os::write_all(fd->get(), key + "\n");
  if (status.ok()) {
    status = os::write_all(fd->get(), value);
  }
  if (!status.ok()) {
    fail("cannot write", fresh, status.failure().error_number);
  }
  if (rename(fresh.c_str(), value_path(key).c_str()) != 0) {
    fail("cannot rename into", value_path(key), errno);
  }
}

bool FileFolder::remove(const std::string& key) const {
  forget_departure(key);
  const std::string path = value_path(key);
  if (unlink(path.c_str()) == 0) {
    return true;
  }
  if (errno != ENOENT) {
    fail("cannot remove", path, errno);
  }
  return false;
}

os::UniqueFd FileFolder::arrive(const std::string& member) const {
  const std::string path = member_path(member);
  const std::string former = read_whole(path).value_or("");
  Result<os::UniqueFd> fd = open_own(path, O_RDWR | O_CREAT);
  if (!fd.ok()) {
    fail("cannot make", path, fd.failure().error_number);
  }
  if (!try_lock(fd->get(), path)) {
    throw RendezvousError(
        "rendezvous.announce",
        fmt::format("member \"{}\" is present already: expected it once. Two processes have the "
                    "same rank, or two jobs the same folder {}.",
                    member,
                    path_));
  }
  if (!former.empty()) {  // a process of this name died and nobody had noticed
    depart(member, Parting::kLost, note_of(former));
    return arrive(member);
  }
  write_note(fd->get(), member, "");
  return *std::move(fd);
}

void FileFolder::depart(const std::string& member, Parting parting, std::string_view note) const {
  const std::string path = path_ + "/departures";
  // The newline in front ends a line that a kill may have torn.
  const std::string line = fmt::format(
      "\n{} {} {}\n", parting == Parting::kLost ? "lost" : "left", escape(member), escape(note));
  Result<os::UniqueFd> fd = open_own(path, O_WRONLY | O_CREAT | O_APPEND);
  if (!fd.ok()) {
    fail("cannot open", path, fd.failure().error_number);
  }
  if (Status status = os::write_all(fd->get(), line); !status.ok()) {
    fail("cannot write", path, status.failure().error_number);
  }
  if (unlink(member_path(member).c_str()) != 0 && errno != ENOENT) {
    fail("cannot remove", member_path(member), errno);
  }
}

void FileFolder::forget_departure(const std::string& member) const {
  const std::string path = path_ + "/departures";
  std::vector<std::string> lines = strings::split(read_whole(path).value_or(""), '\n');
  const std::string its = fmt::format(" {} ", escape(member));
  if (std::erase_if(lines, [&](const std::string& line) {
        return line.find(its) != std::string::npos;
      }) == 0) {
    return;
  }
  std::erase(lines, "");  // a departure begins and ends a line
  lines.emplace_back();
  const Status written = os::write_whole(path,
                                         fmt::format("{}", fmt::join(lines, "\n")),
                                         {.disk = os::WholeFileOptions::Disk::kNot, .mode = 0600});
  if (!written.ok()) {
    fail("cannot write", path, written.failure().error_number);
  }
}

std::vector<Member> FileFolder::sweep() const {
  std::vector<Member> present;
  for (const std::string& name : file_names_in(path_ + "/members")) {
    const std::string path = path_ + "/members/" + name;
    const std::string content = read_whole(path).value_or("");
    const std::string member = content.substr(0, content.find('\n'));
    const Result<os::UniqueFd> fd = open_own(path, O_RDWR);
    if (!fd.ok() || member.empty()) {
      continue;  // killed between making its file and writing its name: it never arrived
    }
    if (is_locked(fd->get(), path)) {
      present.push_back({.name = member, .note = note_of(content)});
    } else {
      depart(member, Parting::kLost, note_of(content));
    }
  }
  std::sort(present.begin(), present.end(), [](const Member& a, const Member& b) {
    return a.name < b.name;
  });
  return present;
}

std::vector<Departure> FileFolder::departures() const {
  std::vector<Departure> found;
  for (const std::string& line :
       strings::split(read_whole(path_ + "/departures").value_or(""), '\n')) {
    const std::vector<std::string> parts = strings::split(line, ' ');
    if (parts.size() != 3 || (parts[0] != "lost" && parts[0] != "left")) {
      continue;  // an empty piece between newlines, or a line torn by a kill
    }
    found.push_back({.member = unescape(parts[1]).value_or(parts[1]),
                     .lost = parts[0] == "lost",
                     .note = unescape(parts[2]).value_or(parts[2])});
  }
  return found;
}

void FileFolder::destroy() const {
  // Renamed first: a job that starts at this moment makes a new folder instead of joining ours.
  const std::string dead = fmt::format("{}.gone.{}", path_, getpid());
  if (rename(path_.c_str(), dead.c_str()) != 0) {
    fail("cannot rename", path_, errno);
  }
  std::error_code error;
  fs::remove_all(dead, error);  // what cannot be removed is litter, not an error
}

}  // namespace argosy::rendezvous
