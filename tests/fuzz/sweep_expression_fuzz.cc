// SPDX-License-Identifier: Apache-2.0
// Any bytes as an expression over the parameters of a sweep: refused with a mark below a character
// of it, or understood, and then asked of values of every kind, in use and not.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "core/sweep/expression.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mete;
  using core::sweep::Value;
  const std::vector<std::string> names = {"a", "b", "a-b", "opt", "flag", "unused"};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<core::sweep::Expression> expression = core::sweep::Expression::parse(text, names);
  if (!expression) {
    METE_ASSERT(!expression.error().evidence.empty());
    return 0;
  }
  METE_ASSERT(expression->text() == text);
  const std::vector<std::string> used = expression->names();
  for (const std::string& name : used)
    METE_ASSERT(std::find(names.begin(), names.end(), name) != names.end());
  (void)expression->holds([](std::string_view) { return std::optional<Value>(); });
  for (const char* word : {"0", "-3", "64", "1e308", "adam", "true", ""}) {
    const auto value_of = [&](std::string_view name) -> std::optional<Value> {
      METE_ASSERT(std::find(used.begin(), used.end(), name) != used.end());
      if (name == "unused") return std::nullopt;
      if (name == "opt") return core::sweep::of_text(word);
      return core::sweep::guess(name == "b" ? "0.5" : word);
    };
    const bool holds = expression->holds(value_of);
    METE_ASSERT(holds == expression->holds(value_of));
  }
  return 0;
}
