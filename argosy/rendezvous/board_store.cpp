#include "argosy/rendezvous/board_store.h"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "argosy/rendezvous/limits.h"

namespace argosy::rendezvous {
namespace {

class BoardStore final : public Store {
 public:
  BoardStore(std::shared_ptr<Board> board, std::string description)
      : board_(std::move(board)), description_(std::move(description)) {}

  void set(const std::string& key, const std::string& value, const Deadline&) override {
    check_key("set", key);
    check_value("set", key, value);
    board_->set(key, value);
  }
  std::string get(const std::string& key, const Deadline& deadline) override {
    return wait_for("get", {key}, deadline);
  }
  void wait(const std::vector<std::string>& keys, const Deadline& deadline) override {
    if (!keys.empty()) {
      wait_for("wait", keys, deadline);
    }
  }
  int64_t add(const std::string& key, int64_t amount, const Deadline&) override {
    check_key("add", key);
    return board_->add(key, amount);
  }
  std::string compare_set(const std::string& key,
                          const std::string& expected,
                          const std::string& desired,
                          const Deadline&) override {
    check_key("compare_set", key);
    check_value("compare_set", key, desired);
    return board_->compare_set(key, expected, desired);
  }
  bool check(const std::vector<std::string>& keys, const Deadline&) override {
    check_keys("check", keys);
    return board_->missing(keys).empty();
  }
  bool remove(const std::string& key, const Deadline&) override {
    check_key("remove", key);
    return board_->remove(key);
  }
  std::vector<std::string> keys(const std::string& prefix, const Deadline&) override {
    return board_->keys(prefix);
  }
  std::unique_ptr<Presence> announce(const std::string& member, const Deadline&) override {
    check_key("announce", member);
    return std::make_unique<BoardPresence>(board_, board_->arrive(member));
  }
  std::vector<Departure> departures(const std::string& prefix, const Deadline&) override {
    return board_->departures(prefix);
  }
  std::vector<Member> members(const std::string& prefix, const Deadline&) override {
    return board_->members(prefix);
  }
  std::string describe() const override { return description_; }

 private:
  // The slot is shared with the board, for the wake-up may come while this thread gives up.
  struct Slot {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Wakeup> wakeup;
  };

  std::string wait_for(std::string_view op,
                       const std::vector<std::string>& keys,
                       const Deadline& deadline) {
    check_keys(op, keys);
    const auto start = Deadline::Clock::now();
    auto slot = std::make_shared<Slot>();
    const uint64_t waiter = board_->when_all(keys, [slot](Wakeup wakeup) {
      const std::lock_guard lock(slot->mutex);
      slot->wakeup = std::move(wakeup);
      slot->changed.notify_all();
    });
    std::unique_lock lock(slot->mutex);
    const auto woken = [&] { return slot->wakeup.has_value(); };
    if (!wait_until(slot->changed, lock, deadline, woken)) {
      lock.unlock();
      if (board_->forget(waiter)) {
        throw wait_timed_out(op, start, missing_or_first(keys), description_);
      }
      lock.lock();  // it was set in this very moment: the wake-up is on its way
      slot->changed.wait(lock, woken);
    }
    if (slot->wakeup->closed) {
      throw RendezvousError(fmt::format("rendezvous.{}", op),
                            fmt::format("the store {} is closing while this call waited for {}: "
                                        "the job ends.",
                                        description_,
                                        quote_keys(keys)));
    }
    return std::move(slot->wakeup->value);
  }

  // A key may appear between the time-out and this look; a timeout names something all the same.
  std::vector<std::string> missing_or_first(const std::vector<std::string>& keys) {
    std::vector<std::string> missing = board_->missing(keys);
    return missing.empty() ? std::vector<std::string>{keys.front()} : missing;
  }

  const std::shared_ptr<Board> board_;
  const std::string description_;
};

}  // namespace

std::shared_ptr<Store> board_store(std::shared_ptr<Board> board, std::string description) {
  return std::make_shared<BoardStore>(std::move(board), std::move(description));
}

}  // namespace argosy::rendezvous
