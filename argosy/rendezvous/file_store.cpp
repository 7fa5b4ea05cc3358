#include "argosy/rendezvous/file_store.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "argosy/base/log.h"
#include "argosy/rendezvous/file_folder.h"
#include "argosy/rendezvous/limits.h"

namespace argosy::rendezvous {
namespace {

class FilePresence final : public Presence {
 public:
  FilePresence(std::shared_ptr<const FileFolder> folder, std::string member, os::UniqueFd fd)
      : folder_(std::move(folder)), member_(std::move(member)), fd_(std::move(fd)) {}
  ~FilePresence() override {
    try {
      Presence::leave("");
    } catch (const Error& error) {  // the folder may be gone, and nobody then asks for us
      log::debug("{}", error.what());
    }
  }
  FilePresence(const FilePresence&) = delete;
  FilePresence& operator=(const FilePresence&) = delete;
  FilePresence(FilePresence&&) = delete;
  FilePresence& operator=(FilePresence&&) = delete;

  void note(const std::string& text) override {
    const std::lock_guard guard(mutex_);
    if (fd_.valid()) {
      write_note(fd_.get(), member_, cut_note(text));
    }
  }
  void leave(const std::string& note, const Deadline& deadline) override {
    const std::lock_guard guard(mutex_);
    if (!fd_.valid()) {
      return;
    }
    try {
      const os::UniqueFd held = folder_->lock("leave", deadline);
      folder_->depart(member_, Parting::kLeft, cut_note(note));
    } catch (const TimeoutError& error) {  // the others will find it lost
      log::debug("{}", error.what());
    }
    fd_.close();
  }

 private:
  const std::shared_ptr<const FileFolder> folder_;
  const std::string member_;
  std::mutex mutex_;
  os::UniqueFd fd_;
};

class FileStore final : public Store {
 public:
  explicit FileStore(const std::string& path) : folder_(std::make_shared<FileFolder>(path)) {}

  void set(const std::string& key, const std::string& value, const Deadline& deadline) override {
    check_key("set", key);
    check_value("set", key, value);
    const os::UniqueFd held = folder_->lock("set", deadline);
    folder_->write(key, value);
  }
  std::string get(const std::string& key, const Deadline& deadline) override {
    check_key("get", key);
    std::optional<std::string> value;
    poll("get", deadline, [&]() -> std::vector<std::string> {
      value = folder_->read(key);
      return value ? std::vector<std::string>{} : std::vector<std::string>{key};
    });
    return *std::move(value);
  }
  void wait(const std::vector<std::string>& keys, const Deadline& deadline) override {
    check_keys("wait", keys);
    poll("wait", deadline, [&] { return missing(keys); });
  }
  int64_t add(const std::string& key, int64_t amount, const Deadline& deadline) override {
    check_key("add", key);
    const os::UniqueFd held = folder_->lock("add", deadline);
    const int64_t sum = add_decimal(key, folder_->read(key).value_or(""), amount);
    folder_->write(key, std::to_string(sum));
    return sum;
  }
  std::string compare_set(const std::string& key,
                          const std::string& expected,
                          const std::string& desired,
                          const Deadline& deadline) override {
    check_key("compare_set", key);
    check_value("compare_set", key, desired);
    const os::UniqueFd held = folder_->lock("compare_set", deadline);
    std::string current = folder_->read(key).value_or("");
    if (current != expected) {
      return current;
    }
    folder_->write(key, desired);
    return desired;
  }
  bool check(const std::vector<std::string>& keys, const Deadline&) override {
    check_keys("check", keys);
    folder_->check_still_there("check");
    return missing(keys).empty();
  }
  bool remove(const std::string& key, const Deadline& deadline) override {
    check_key("remove", key);
    const os::UniqueFd held = folder_->lock("remove", deadline);
    return folder_->remove(key);
  }
  std::vector<std::string> keys(const std::string& prefix, const Deadline&) override {
    folder_->check_still_there("keys");
    return folder_->keys(prefix);
  }
  std::unique_ptr<Presence> announce(const std::string& member, const Deadline& deadline) override {
    check_key("announce", member);
    const os::UniqueFd held = folder_->lock("announce", deadline);
    return std::make_unique<FilePresence>(folder_, member, folder_->arrive(member));
  }
  std::vector<Departure> departures(const std::string& prefix, const Deadline& deadline) override {
    const os::UniqueFd held = folder_->lock("departures", deadline);
    (void)folder_->sweep();
    std::vector<Departure> found = folder_->departures();
    std::erase_if(found, [&](const Departure& one) { return !one.member.starts_with(prefix); });
    return found;
  }
  std::vector<Member> members(const std::string& prefix, const Deadline& deadline) override {
    const os::UniqueFd held = folder_->lock("members", deadline);
    std::vector<Member> present = folder_->sweep();
    std::erase_if(present, [&](const Member& one) { return !one.name.starts_with(prefix); });
    return present;
  }
  std::string describe() const override { return "file://" + folder_->path(); }

  bool remove_if_finished(size_t members) {
    const os::UniqueFd held = folder_->lock("close", Deadline::after(std::chrono::seconds(1)));
    const std::vector<Member> present = folder_->sweep();
    const std::vector<Departure> gone = folder_->departures();
    const bool clean = std::none_of(gone.begin(), gone.end(), [](auto& one) { return one.lost; });
    if (!present.empty() || gone.size() < members || !clean) {
      return false;
    }
    folder_->destroy();
    return true;
  }

 private:
  [[nodiscard]] std::vector<std::string> missing(const std::vector<std::string>& keys) const {
    std::vector<std::string> absent;
    std::copy_if(keys.begin(), keys.end(), std::back_inserter(absent), [&](const std::string& key) {
      return !folder_->exists(key);
    });
    return absent;
  }

  // Until look() returns no missing keys. Polls, because change notifications do not cross hosts.
  template <typename Look>
  void poll(std::string_view op, const Deadline& deadline, Look look) const {
    const auto start = Deadline::Clock::now();
    auto pause = std::chrono::microseconds(100);
    while (true) {
      const std::vector<std::string> absent = look();
      if (absent.empty()) {
        return;
      }
      folder_->check_still_there(op);
      if (deadline.expired()) {
        throw wait_timed_out(op, start, absent, describe());
      }
      std::this_thread::sleep_until(std::min(deadline.at(), Deadline::Clock::now() + pause));
      pause = std::min(pause * 3 / 2, std::chrono::microseconds(10000));
    }
  }

  const std::shared_ptr<const FileFolder> folder_;
};

}  // namespace

std::shared_ptr<Store> file_store(const std::string& path) {
  if (path.empty()) {
    throw ConfigError("rendezvous.file", "empty path: expected file:///path/of/a/new/folder");
  }
  return std::make_shared<FileStore>(path);
}

bool remove_finished_file_store(Store& store, size_t members) noexcept {
  try {
    auto* file = dynamic_cast<FileStore*>(&store);
    return file != nullptr && file->remove_if_finished(members);
  } catch (const std::exception& error) {  // somebody else was faster, or the disk is gone
    log::debug("{}", error.what());
    return false;
  }
}

}  // namespace argosy::rendezvous
