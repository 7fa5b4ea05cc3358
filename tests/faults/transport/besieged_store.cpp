#include "besieged_store.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace argosy::test {
namespace {

using rendezvous::Departure;
using rendezvous::Member;
using rendezvous::Presence;

class BesiegedStore final : public rendezvous::Store {
 public:
  BesiegedStore(std::shared_ptr<Store> inner, std::function<std::string(const std::string&)> visit)
      : inner_(std::move(inner)), visit_(std::move(visit)) {}

  void set(const std::string& key, const std::string& value, const Deadline& deadline) override {
    inner_->set(key, key.starts_with("gloo/address/") ? visit_(value) : value, deadline);
  }
  std::string get(const std::string& key, const Deadline& deadline) override {
    return inner_->get(key, deadline);
  }
  void wait(const std::vector<std::string>& keys, const Deadline& deadline) override {
    inner_->wait(keys, deadline);
  }
  int64_t add(const std::string& key, int64_t amount, const Deadline& deadline) override {
    return inner_->add(key, amount, deadline);
  }
  std::string compare_set(const std::string& key,
                          const std::string& expected,
                          const std::string& desired,
                          const Deadline& deadline) override {
    return inner_->compare_set(key, expected, desired, deadline);
  }
  bool check(const std::vector<std::string>& keys, const Deadline& deadline) override {
    return inner_->check(keys, deadline);
  }
  bool remove(const std::string& key, const Deadline& deadline) override {
    return inner_->remove(key, deadline);
  }
  std::vector<std::string> keys(const std::string& prefix, const Deadline& deadline) override {
    return inner_->keys(prefix, deadline);
  }
  std::unique_ptr<Presence> announce(const std::string& member, const Deadline& deadline) override {
    return inner_->announce(member, deadline);
  }
  std::vector<Departure> departures(const std::string& prefix, const Deadline& deadline) override {
    return inner_->departures(prefix, deadline);
  }
  std::vector<Member> members(const std::string& prefix, const Deadline& deadline) override {
    return inner_->members(prefix, deadline);
  }
  std::string describe() const override { return inner_->describe(); }

 private:
  const std::shared_ptr<Store> inner_;
  const std::function<std::string(const std::string&)> visit_;
};

}  // namespace

std::shared_ptr<rendezvous::Store> besieged_store(
    std::shared_ptr<rendezvous::Store> inner,
    std::function<std::string(const std::string& address)> visit) {
  return std::make_shared<BesiegedStore>(std::move(inner), std::move(visit));
}

}  // namespace argosy::test
