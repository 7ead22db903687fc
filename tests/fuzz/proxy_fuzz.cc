// SPDX-License-Identifier: Apache-2.0
// Any bytes as a head, as chunks and as a body with a model. A head that is accepted is made of
// parts of the buffer, and is read again from its parts in the same way; bodies end in the same
// place whatever the pieces; where another reader of JSON finds one model, ours finds that one.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "proxy/head.h"
#include "proxy/model_field.h"

namespace {

using namespace mete;

void look_at_request(std::string_view bytes) {
  std::size_t searched = 0;
  const std::optional<std::size_t> size = proxy::head_size(bytes, searched);
  std::size_t in_pieces = 0;
  std::optional<std::size_t> found;
  for (std::size_t have = 0; have <= bytes.size() && !found; ++have)
    found = proxy::head_size(bytes.substr(0, have), in_pieces);
  METE_ASSERT(found == size);
  if (!size) return;
  METE_ASSERT(*size <= bytes.size());
  proxy::RequestHead head;
  if (proxy::parse_request(bytes.substr(0, *size), head)) return;
  std::string again = std::string(head.method) + " " + std::string(head.target) + " HTTP/1." +
                      std::to_string(head.minor) + "\r\n";
  for (const proxy::Field& field : head.fields)
    again.append(field.name).append(": ").append(field.value).append("\r\n");
  again += "\r\n";
  proxy::RequestHead second;
  METE_ASSERT(!proxy::parse_request(again, second));
  METE_ASSERT(second.fields.size() == head.fields.size() && second.body == head.body);
  METE_ASSERT(second.length == head.length && second.keep_alive == head.keep_alive);
  METE_ASSERT(second.path == head.path && second.host == head.host);
  METE_ASSERT(again.find('\n') != std::string::npos);
  METE_ASSERT(head.body != proxy::Body::kUntilClose);
}

void look_at_response(std::string_view bytes) {
  std::size_t searched = 0;
  const std::optional<std::size_t> size = proxy::head_size(bytes, searched);
  proxy::ResponseHead head;
  if (!size || proxy::parse_response(bytes.substr(0, *size), false, head)) return;
  METE_ASSERT(head.status >= 100 && head.status <= 999);
}

void look_at_chunks(std::string_view bytes) {
  proxy::Chunks whole;
  const std::size_t taken = whole.feed(bytes);
  METE_ASSERT(taken <= bytes.size());
  METE_ASSERT(taken == bytes.size() || whole.done() || whole.failed());
  proxy::Chunks pieces;
  std::size_t at = 0;
  while (at < bytes.size() && !pieces.done() && !pieces.failed())
    at += pieces.feed(bytes.substr(at, 1));
  METE_ASSERT(pieces.done() == whole.done() && pieces.failed() == whole.failed());
  METE_ASSERT(at == taken);
}

void look_at_model(std::string_view bytes) {
  proxy::ModelField whole;
  whole.feed(bytes);
  proxy::ModelField pieces;
  for (const char& c : bytes) pieces.feed({&c, 1});
  const Result<std::string> ours = whole.model();
  const Result<std::string> other = pieces.model();
  METE_ASSERT(ours.ok() == other.ok() && (!ours || *ours == *other));
  std::size_t models = 0;
  std::string key;
  const auto look = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    using Event = nlohmann::json::parse_event_t;
    if (depth == 1 && event == Event::key) {
      key = value.get<std::string>();
      models += key == "model" ? 1 : 0;
    }
    return true;
  };
  const nlohmann::json document = nlohmann::json::parse(bytes, look, false);
  if (document.is_discarded() || !document.is_object()) return;
  if (models != 1) {
    METE_ASSERT(!ours);
    return;
  }
  const nlohmann::json& model = document.at("model");
  const bool good = model.is_string() && !model.get_ref<const std::string&>().empty() &&
                    model.get_ref<const std::string&>().size() <= proxy::ModelField::kMaxModel;
  // Deep nesting is the one thing that others accept.
  if (good && ours) METE_ASSERT(*ours == model.get_ref<const std::string&>());
  if (!good) METE_ASSERT(!ours);
  if (good && bytes.size() <= proxy::ModelField::kMaxDepth) METE_ASSERT(ours.ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  look_at_request(bytes);
  look_at_response(bytes);
  look_at_chunks(bytes);
  // JSON of some hundred brackets takes the other reader's stack.
  if (bytes.size() <= 4096) look_at_model(bytes);
  return 0;
}
