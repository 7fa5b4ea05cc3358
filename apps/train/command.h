#pragma once

#include <string>
#include <vector>

namespace argosy::apps {

/// `argosy train`, `evaluate` and `predict`; `args` follow the word.
int train(const std::vector<std::string>& args);
int evaluate(const std::vector<std::string>& args);
int predict(const std::vector<std::string>& args);

}  // namespace argosy::apps
