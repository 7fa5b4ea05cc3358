#include "argosy/rendezvous/store.h"

#include <chrono>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/rendezvous/limits.h"

namespace argosy::rendezvous {
namespace {

class PrefixStore final : public Store {
 public:
  PrefixStore(std::shared_ptr<Store> store, std::string prefix, int host_rank)
      : store_(std::move(store)), prefix_(std::move(prefix) + "/"), host_rank_(host_rank) {}

  void set(const std::string& key, const std::string& value, const Deadline& deadline) override {
    store_->set(full("set", key), value, deadline);
  }
  std::string get(const std::string& key, const Deadline& deadline) override {
    return store_->get(full("get", key), deadline);
  }
  void wait(const std::vector<std::string>& keys, const Deadline& deadline) override {
    store_->wait(full("wait", keys), deadline);
  }
  int64_t add(const std::string& key, int64_t amount, const Deadline& deadline) override {
    return store_->add(full("add", key), amount, deadline);
  }
  std::string compare_set(const std::string& key,
                          const std::string& expected,
                          const std::string& desired,
                          const Deadline& deadline) override {
    return store_->compare_set(full("compare_set", key), expected, desired, deadline);
  }
  bool check(const std::vector<std::string>& keys, const Deadline& deadline) override {
    return store_->check(full("check", keys), deadline);
  }
  bool remove(const std::string& key, const Deadline& deadline) override {
    return store_->remove(full("remove", key), deadline);
  }
  std::vector<std::string> keys(const std::string& prefix, const Deadline& deadline) override {
    std::vector<std::string> found = store_->keys(prefix_ + prefix, deadline);
    for (std::string& key : found) {
      key.erase(0, prefix_.size());
    }
    return found;
  }
  std::unique_ptr<Presence> announce(const std::string& member, const Deadline& deadline) override {
    return store_->announce(full("announce", member), deadline);
  }
  std::vector<Departure> departures(const std::string& prefix, const Deadline& deadline) override {
    std::vector<Departure> found = store_->departures(prefix_ + prefix, deadline);
    for (Departure& one : found) {
      one.member.erase(0, prefix_.size());
    }
    return found;
  }
  std::vector<Member> members(const std::string& prefix, const Deadline& deadline) override {
    std::vector<Member> found = store_->members(prefix_ + prefix, deadline);
    for (Member& one : found) {
      one.name.erase(0, prefix_.size());
    }
    return found;
  }
  int64_t time_us(const Deadline& deadline) override { return store_->time_us(deadline); }
  int host_rank() const override { return host_rank_; }
  std::string describe() const override { return store_->describe() + "#" + prefix_; }

 private:
  // An empty key must not pass as the prefix itself.
  std::string full(std::string_view op, const std::string& key) const {
    check_key(op, key);
    return prefix_ + key;
  }
  std::vector<std::string> full(std::string_view op, std::vector<std::string> keys) const {
    for (std::string& key : keys) {
      key = full(op, key);
    }
    return keys;
  }

  const std::shared_ptr<Store> store_;
  const std::string prefix_;
  const int host_rank_;
};

}  // namespace

int64_t local_time_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

int64_t Store::time_us(const Deadline& /*deadline*/) {
  return local_time_us();
}

std::shared_ptr<Store> prefix_store(std::shared_ptr<Store> store, std::string prefix) {
  ARGOSY_CHECK(store != nullptr, "rendezvous.prefix_store", "expected a store, got a null pointer");
  const int host_rank = store->host_rank();
  return prefix_store(std::move(store), std::move(prefix), host_rank);
}

std::shared_ptr<Store> prefix_store(std::shared_ptr<Store> store,
                                    std::string prefix,
                                    int host_rank) {
  ARGOSY_CHECK(store != nullptr, "rendezvous.prefix_store", "expected a store, got a null pointer");
  check_key("prefix_store", prefix);
  return std::make_shared<PrefixStore>(std::move(store), std::move(prefix), host_rank);
}

}  // namespace argosy::rendezvous
