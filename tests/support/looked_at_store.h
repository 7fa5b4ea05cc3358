#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "argosy/rendezvous/store.h"

namespace argosy::test {

/// Another store, which calls `before_look` each time it is asked who is present or gone.
class LookedAtStore : public rendezvous::Store {
 public:
  LookedAtStore(std::shared_ptr<Store> inner, std::function<void()> before_look)
      : inner_(std::move(inner)), before_look_(std::move(before_look)) {}

  void set(const std::string& key, const std::string& value, const Deadline& by) override {
    inner_->set(key, value, by);
  }
  std::string get(const std::string& key, const Deadline& by) override {
    return inner_->get(key, by);
  }
  void wait(const std::vector<std::string>& keys, const Deadline& by) override {
    inner_->wait(keys, by);
  }
  int64_t add(const std::string& key, int64_t amount, const Deadline& by) override {
    return inner_->add(key, amount, by);
  }
  std::string compare_set(const std::string& key,
                          const std::string& expected,
                          const std::string& desired,
                          const Deadline& by) override {
    return inner_->compare_set(key, expected, desired, by);
  }
  bool check(const std::vector<std::string>& keys, const Deadline& by) override {
    return inner_->check(keys, by);
  }
  bool remove(const std::string& key, const Deadline& by) override {
    return inner_->remove(key, by);
  }
  std::vector<std::string> keys(const std::string& prefix, const Deadline& by) override {
    return inner_->keys(prefix, by);
  }
  std::unique_ptr<rendezvous::Presence> announce(const std::string& member,
                                                 const Deadline& by) override {
    return inner_->announce(member, by);
  }
  std::vector<rendezvous::Departure> departures(const std::string& prefix,
                                                const Deadline& by) override {
    before_look_();
    return inner_->departures(prefix, by);
  }
  std::vector<rendezvous::Member> members(const std::string& prefix, const Deadline& by) override {
    before_look_();
    return inner_->members(prefix, by);
  }
  std::string describe() const override { return inner_->describe(); }

 private:
  const std::shared_ptr<Store> inner_;
  const std::function<void()> before_look_;
};

}  // namespace argosy::test
