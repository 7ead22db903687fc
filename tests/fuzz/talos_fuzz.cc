// SPDX-License-Identifier: Apache-2.0
// Any bytes as a parameter dictionary of Talos: no crash, an error names its line, and a dictionary
// that is accepted means the same when its values are written as Python lists.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/assert.h"
#include "core/sweep/space.h"
#include "sweep/space_file.h"

namespace {

using namespace mete;
using core::sweep::Value;

std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + "'";
}

std::string literal(const Value& value) {
  if (value.kind == Value::Kind::kBool) return value.number != 0 ? "True" : "False";
  return value.kind == Value::Kind::kText ? quoted(value.text) : value.text;
}

std::string dictionary(const sweep::SpaceFile& file) {
  std::string text = "{";
  for (const core::sweep::Parameter& parameter : file.params) {
    text += quoted(parameter.name) + ": [";
    for (const Value& value : std::get<std::vector<Value>>(parameter.domain))
      text += literal(value) + ", ";
    text += "],\n";
  }
  return text + "}";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<sweep::SpaceFile> file = sweep::read_talos(text, "f");
  if (!file) {
    const std::string& message = file.error().message;
    METE_ASSERT(message.size() > 3 && message.starts_with("f:"));
    METE_ASSERT(message[2] >= '1' && message[2] <= '9');
    return 0;
  }
  METE_ASSERT(core::sweep::Space::make(file->params).ok());
  const std::string again = dictionary(*file);
  if (again.size() > sweep::kMaxSpaceFile) return 0;
  const Result<sweep::SpaceFile> reread = sweep::read_talos(again, "f");
  METE_ASSERT(reread && dictionary(*reread) == again);
  return 0;
}
