// The command line of estimate. What it does is argosy/recipes.
#include <fmt/format.h>

#include <string>

#include "argosy/base/env.h"
#include "argosy/program/command_line.h"
#include "argosy/recipes/estimate.h"

#include "apps/torch_commands.h"
#include <nlohmann/json.hpp>

namespace argosy::apps {

int estimate(const program::Words& args) {
  recipes::EstimateSettings settings;
  const program::HelpText about{
      .what =
          "Say what memory each process of a training will hold, before there is one.\n"
          "Takes the options of argosy train; here are those that count.",
      .name = "argosy estimate",
      .end =
          "Example: argosy estimate --model gpt:layers=24,width=1024,heads=16 "
          "--mesh dp=2,sharding=4 --batch_size 4 --amp bfloat16"};
  if (parse_with_config(about, options_of(settings), args, settings.training)) {
    return 0;
  }
  const recipes::EstimateResult result = recipes::estimate(settings);
  if (env::get_int("RANK", 0, 1 << 20).value_or(0) == 0) {
    fmt::print("{}", settings.json ? to_json(result).dump(2) + "\n" : to_string(result));
  }
  return 0;
}

}  // namespace argosy::apps
