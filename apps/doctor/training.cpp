#include "apps/doctor/training.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "argosy/base/strings.h"

#include "apps/doctor/program.h"
#include <nlohmann/json.hpp>

namespace argosy::doctor {
namespace {

using Verdict = Finding::Verdict;
using namespace std::chrono_literals;

constexpr auto kTrainingPatience = 60s;
constexpr std::string_view kMark = "doctor {";

Finding bad(std::string text, std::string advice) {
  return {.subject = std::string(kTraining),
          .verdict = Verdict::kBad,
          .text = std::move(text),
          .advice = std::move(advice)};
}

/// Its last line that is not empty.
std::string last_line(const std::string& output) {
  std::string last;
  for (const std::string& line : strings::split(output, '\n')) {
    last = strings::trim(line).empty() ? last : line;
  }
  return last;
}

}  // namespace

Finding read_training(const std::string& output, int exit_code) {
  const size_t mark = output.find(kMark);
  if (exit_code != 0 || mark == std::string::npos) {
    return bad(fmt::format("ended with code {}: {}", exit_code, last_line(output)),
               "argosy launch --nproc_per_node 2 argosy-torch doctor shows all of it");
  }
  const size_t begin = mark + kMark.size() - 1;
  const auto said = nlohmann::json::parse(
      output.substr(begin, output.find('\n', begin) - begin), nullptr, /*allow_exceptions=*/false);
  if (!said.is_object() || !said.value("agree", false) ||
      !(said.value("last_loss", 1.0) < said.value("first_loss", 0.0))) {
    return bad("it does not learn: " + output.substr(begin, 300),
               "this is a bug: please report it");
  }
  const std::string advice = said.value("blas_advice", "");
  return {.subject = std::string(kTraining),
          .verdict = advice.empty() ? Verdict::kFine : Verdict::kNote,
          .text = fmt::format("{} processes, {} steps in {:.2f} s: loss {:.3f} to {:.3f}, equal "
                              "weights; libtorch {}, {}, {} thread{} each",
                              said.value("ranks", 0),
                              said.value("steps", 0),
                              said.value("seconds", 0.0),
                              said.value("first_loss", 0.0),
                              said.value("last_loss", 0.0),
                              said.value("libtorch", "?"),
                              said.value("blas", "?"),
                              said.value("threads", 0),
                              said.value("threads", 0) == 1 ? "" : "s"),
          .advice = advice};
}

Finding training_finding(const std::string& argosy) {
  const std::string engine =
      (std::filesystem::path(argosy).parent_path() / "argosy-torch").string();
  if (::access(engine.c_str(), X_OK) != 0) {
    return {
        .subject = std::string(kTraining),
        .verdict = Verdict::kNote,
        .text = fmt::format("not tried: there is no {}", engine),
        .advice =
            "it comes with make build, make install, the bundle and Debian's package argosy-torch",
        .tried = false};
  }
  const Result<Ran> ran = run_program(
      {argosy, "launch", "--nproc_per_node=2", "--standalone", "--log_dir=", engine, "doctor"},
      {.patience = kTrainingPatience});
  if (!ran.ok()) {
    return bad(ran.failure().what, "");
  }
  if (!ran->end) {
    return bad(fmt::format("not done after {} s", kTrainingPatience.count()),
               "argosy launch --nproc_per_node 2 argosy-torch doctor shows where it stands");
  }
  return read_training(ran->output, ran->end->shell_code());
}

}  // namespace argosy::doctor
