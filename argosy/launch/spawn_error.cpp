#include "argosy/launch/spawn_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>

#include "argosy/base/catalogue.h"

namespace argosy::launch {
namespace {

namespace fs = std::filesystem;

int exit_code(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return 127;
    case EACCES:
    case ENOEXEC:
      return 126;
    default:
      return 1;
  }
}

constexpr const char* kCompile =
    "It is a source file: compile it, and give the program that comes of it.";

bool is_source(const std::string& program) {
  constexpr std::array<std::string_view, 6> kSources{".cpp", ".cc", ".cxx", ".c", ".cu", ".h"};
  return std::ranges::any_of(kSources,
                             [&](std::string_view suffix) { return program.ends_with(suffix); });
}

std::string hint(const std::string& program, int error_number) {
  std::error_code ignored;
  switch (error_number) {
    case ENOENT:
      if (!fs::exists(program, ignored)) {
        const bool variable = program.find('=') < program.find('/');
        return program == "python" ? "Where only python3 is installed, write python3."
               : variable ? fmt::format("Variables for the ranks are given as --env {}.", program)
                          : "Check the spelling.";
      }
      if (fs::is_directory(program, ignored)) {
        return "There is a folder of that name, but no program.";
      }
      if (is_source(program)) {
        return kCompile;
      }
      return program.find('/') != std::string::npos
                 ? "The file is there, but its interpreter (the #! line) or dynamic loader is not."
                 : fmt::format("There is one in this folder: write ./{}.", program);
    case EACCES:
      if (fs::is_directory(program, ignored)) {
        return "It is a folder.";
      }
      if (is_source(program)) {
        return kCompile;
      }
      return program.ends_with(".py")
                 ? fmt::format("A Python script is started as: argosy launch … python3 {}.",
                               program)
                 : fmt::format("Is it executable? chmod +x \"{}\".", program);
    case ENOEXEC:
      return "It is neither a program for this machine nor a script with a #! line.";
    default:
      return "";
  }
}

}  // namespace

SpawnError explain_spawn(const std::string& program, const Failure& failure) {
  const std::string advice = hint(program, failure.error_number);
  return {fmt::format("[launch] cannot start \"{}\": {}{}{} See {}\n",
                      program,
                      failure.what,
                      advice.empty() ? "." : ". ",
                      advice,
                      catalogue_section("cannot-start")),
          exit_code(failure.error_number)};
}

}  // namespace argosy::launch
