#include "argosy/formats/pickle_stack.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "argosy/formats/pickle_problem.h"

namespace argosy::formats {

const PickleValue& PickleStack::top() const {
  if (values_.size() <= (marks_.empty() ? 0 : marks_.back())) {
    throw PickleProblem{"damaged: the operation needs a value that is not there"};
  }
  return values_.back();
}

PickleValue PickleStack::pop() {
  (void)top();  // is there one?
  PickleValue value = std::move(values_.back());
  values_.pop_back();
  return value;
}

std::vector<PickleValue> PickleStack::pop(size_t count) {
  std::vector<PickleValue> values(count);
  for (size_t i = count; i-- > 0;) {
    values[i] = pop();
  }
  return values;
}

std::vector<PickleValue> PickleStack::pop_to_mark() {
  if (marks_.empty()) {
    throw PickleProblem{"damaged: the operation needs a mark that is not there"};
  }
  const auto begin = values_.begin() + static_cast<int64_t>(marks_.back());
  std::vector<PickleValue> values(std::make_move_iterator(begin),
                                  std::make_move_iterator(values_.end()));
  values_.erase(begin, values_.end());
  marks_.pop_back();
  return values;
}

void PickleStack::drop() {
  if (!marks_.empty() && marks_.back() == values_.size()) {
    marks_.pop_back();
  } else {
    (void)pop();
  }
}

void PickleStack::put(uint64_t place) {
  constexpr uint64_t kPlaceCost = 2 * sizeof(std::optional<PickleValue>);
  if (place >= static_cast<uint64_t>(memo_limit_)) {
    throw PickleProblem{fmt::format(
        "more than {} places in the memo. If the file is sound, raise UnpickleOptions::memo",
        memo_limit_)};
  }
  if (place >= memo_.size()) {
    tree_.charge(kPlaceCost * (place + 1 - memo_.size()));
    memo_.resize(place + 1);
  }
  memo_count_ += memo_[place].has_value() ? 0 : 1;
  memo_[place] = top();
}

const PickleValue& PickleStack::get(uint64_t place) const {
  if (place >= memo_.size() || !memo_[place]) {
    throw PickleProblem{fmt::format("damaged: place {} of the memo is empty", place)};
  }
  return *memo_[place];
}

}  // namespace argosy::formats
