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
#include "proxy/relay.h"

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
  if (bytes.find('\0') != std::string_view::npos) return;  // the other reader takes it for the end
  std::size_t models = 0;
  bool other_case = false;
  std::string key;
  const auto look = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    using Event = nlohmann::json::parse_event_t;
    if (depth == 1 && event == Event::key) {
      key = value.get<std::string>();
      models += key == "model" ? 1 : 0;
      other_case = other_case || (key != "model" && proxy::equals_ignoring_case(key, "model"));
    }
    return true;
  };
  const nlohmann::json document = nlohmann::json::parse(bytes, look, false);
  if (document.is_discarded() || !document.is_object()) return;
  if (models != 1 || other_case) {
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

struct Heard {
  std::string replica;
  std::string client;
  proxy::Relay::State state = proxy::Relay::State::kHead;
  bool broken = false;
  bool operator==(const Heard&) const = default;
};

// What client and replica hear. The client says everything before the replica does; requests whose
// path begins with /c are collected first.
Heard relayed(std::string_view client, std::string_view replica, std::size_t size) {
  using State = proxy::Relay::State;
  proxy::Relay relay;
  Heard heard;
  const auto drain = [&] {
    const std::size_t to_replica = relay.to_replica().size();
    heard.replica += relay.to_replica();
    relay.sent_to_replica(to_replica);
    const std::size_t to_client = relay.to_client().size();
    heard.client += relay.to_client();
    relay.sent_to_client(to_client);
  };
  const auto answer = [&] {
    if (relay.state() != State::kAsked) return;
    if (relay.request().path.starts_with("/c") && !relay.is_collected()) relay.collect(64);
    if (relay.state() != State::kAsked) return;
    if (!relay.is_collected()) return relay.forward(relay.request().path, {{"X-Id", "1"}});
    const std::string body = relay.take_collected();
    relay.forward(relay.request().path, {}, body.size());
    relay.push_body(body);
  };
  for (std::size_t at = 0; at < client.size(); at += size) {
    relay.from_client(client.substr(at, size));
    answer();
    drain();
  }
  for (std::size_t at = 0; at < replica.size(); at += size) {
    relay.from_replica(replica.substr(at, size));
    drain();
  }
  heard.state = relay.state();
  heard.broken = relay.is_broken();
  if (relay.state() == State::kForwarding) (void)relay.replica_ended();
  return heard;
}

void look_at_relay(std::string_view bytes) {
  const std::size_t end = bytes.find('\0');
  const std::string_view client = bytes.substr(0, end);
  const std::string_view replica =
      end == std::string_view::npos ? std::string_view() : bytes.substr(end + 1);
  const Heard whole = relayed(client, replica, 1 << 20);
  for (const std::size_t size : {1, 5}) {
    Heard pieces = relayed(client, replica, size);
    // What came before a wrong chunk has been passed on if it came alone.
    if (whole.client.starts_with("HTTP/1.1 400 ")) pieces.replica = whole.replica;
    METE_ASSERT(whole == pieces);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  look_at_request(bytes);
  look_at_response(bytes);
  look_at_chunks(bytes);
  look_at_relay(bytes);
  // JSON of some hundred brackets takes the other reader's stack.
  if (bytes.size() <= 4096) look_at_model(bytes);
  return 0;
}
