// SPDX-License-Identifier: Apache-2.0
// Any bytes as a configuration file: no crash, complaints have a hint and leave the values alone,
// and what is accepted is shown as text that means the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "config/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mete;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  config::Config values;
  const std::vector<Error> errors = config::parse_config(text, "f", values);
  for (const Error& error : errors) METE_ASSERT(!error.hint.empty());
  if (!errors.empty()) {
    METE_ASSERT(values == config::Config());
    return 0;
  }
  std::string shown;
  for (const config::Shown& line : config::show(values))
    if (!line.value.empty())
      shown.append(line.section)
          .append(".")
          .append(line.key)
          .append(" = ")
          .append(line.value + "\n");
  config::Config again;
  METE_ASSERT(config::parse_config(shown, "f", again).empty());
  METE_ASSERT(
      again.idle_s.value == values.idle_s.value && again.policy.value == values.policy.value &&
      again.reserve.value == values.reserve.value && again.devices.value == values.devices.value);
  return 0;
}
