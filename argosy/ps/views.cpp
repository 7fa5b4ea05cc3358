#include "argosy/ps/views.h"

#include <fmt/format.h>

#include <charconv>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"

namespace argosy::ps {
namespace {

constexpr std::chrono::seconds kStorePatience{30};
constexpr const char* kOver = "ps/over";

std::string text_of(const View& view) {
  return fmt::format("{} {} {}", view.epoch, view.primary, view.backup);
}

template <typename Number>
void read(const std::string& word, Number& number, const std::string& all) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc{} || end != word.data() + word.size()) {
    throw RendezvousError("ps.view", "the store has no view of a partition but \"" + all + "\"");
  }
}

View view_of(const std::string& text) {
  const std::vector<std::string> words = strings::split(text, ' ');
  View view;
  if (words.size() != 3) {
    throw RendezvousError("ps.view", "the store has no view of a partition but \"" + text + "\"");
  }
  read(words[0], view.epoch, text);
  read(words[1], view.primary, text);
  read(words[2], view.backup, text);
  return view;
}

}  // namespace

std::string Views::key(int partition) {
  return fmt::format("ps/view/{}", partition);
}

View Views::get(int partition) const {
  return view_of(store_->get(key(partition), Deadline::after(kStorePatience)));
}

void Views::end() {
  store_->set(kOver, "1", Deadline::after(kStorePatience));
}

bool Views::is_over() const {
  return store_->check({kOver}, Deadline::after(kStorePatience));
}

std::string Views::done_key(int worker) {
  return fmt::format("ps/done/{}", worker);
}

bool Views::is_done(int worker) const {
  return store_->check({done_key(worker)}, Deadline::after(kStorePatience));
}

void Views::begin(int partition, const View& view) {
  (void)store_->compare_set(key(partition), "", text_of(view), Deadline::after(kStorePatience));
}

bool Views::change(int partition, const View& from, const View& to) {
  const std::string desired = text_of(to);
  return store_->compare_set(
             key(partition), text_of(from), desired, Deadline::after(kStorePatience)) == desired;
}

}  // namespace argosy::ps
