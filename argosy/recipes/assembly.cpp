#include "argosy/recipes/assembly.h"

#include "argosy/base/check.h"
#include "argosy/recipes/language.h"
#include "argosy/recipes/pictures.h"

namespace argosy::recipes {

std::unique_ptr<Assembly> assemble(const Wanted& wanted) {
  ARGOSY_CHECK(!wanted.model.empty(),
               kModels.where,
               "--model is required. See: argosy train "
               "--list models");
  ARGOSY_CHECK(
      !wanted.data.empty(), kData.where, "--data is required. See: argosy train --list data");
  const std::string name = parse_spec(kModels, wanted.model).name;
  if (find_entry(kModels, models(), name).material == Material::kText) {
    return assemble_language(wanted);
  }
  return assemble_pictures(wanted);
}

}  // namespace argosy::recipes
