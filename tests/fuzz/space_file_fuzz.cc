// SPDX-License-Identifier: Apache-2.0
// Any bytes as a space file, as --grid and as --metric: no crash, an error names its line, and what
// is accepted makes a space whose expressions use its parameters alone.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/assert.h"
#include "core/sweep/space.h"
#include "sweep/space_file.h"

namespace {

using namespace mete;

void check(const sweep::SpaceFile& file, const std::optional<core::sweep::Expression>& expression) {
  if (!expression) return;
  for (const std::string& name : expression->names())
    METE_ASSERT(std::any_of(file.params.begin(), file.params.end(),
                            [&](const auto& parameter) { return parameter.name == name; }));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto grid = sweep::parse_grid(text); grid) {
    METE_ASSERT(core::sweep::Space::make({*grid}).ok());
    METE_ASSERT(!std::get<std::vector<core::sweep::Value>>(grid->domain).empty());
  }
  if (const auto metric = sweep::parse_metric(text); metric) METE_ASSERT(!metric->name.empty());
  const Result<sweep::SpaceFile> file = sweep::read_space_file(text, "f");
  if (!file) {
    const std::string& message = file.error().message;
    METE_ASSERT(message.size() > 3 && message.starts_with("f:"));
    METE_ASSERT(message[2] >= '1' && message[2] <= '9');
    return 0;
  }
  if (!file->params.empty()) METE_ASSERT(core::sweep::Space::make(file->params, file->keep).ok());
  check(*file, file->keep);
  for (const core::sweep::Parameter& parameter : file->params) check(*file, parameter.when);
  METE_ASSERT(file->metrics.size() <= core::sweep::kMaxMetrics);
  return 0;
}
