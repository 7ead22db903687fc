// SPDX-License-Identifier: Apache-2.0
// `mete-simgpu --ctl ...`: how tests control a running simulator. Commands are in
// docs/formats/simgpu.md. `dump` prints the whole state as one JSON document.
#include <cstdlib>
#include <sstream>

#include "simgpu/server/clock.h"
#include "simgpu/server/server.h"

namespace simgpu {
namespace {

const char* class_name(MemoryClass use) {
  switch (use) {
    case MemoryClass::kPlain:
      return "plain";
    case MemoryClass::kContext:
      return "context";
    case MemoryClass::kManaged:
      return "managed";
    case MemoryClass::kVmm:
      return "vmm";
    case MemoryClass::kPool:
      return "pool";
    case MemoryClass::kGraph:
      return "graph";
    case MemoryClass::kModule:
      return "module";
    case MemoryClass::kArray:
      return "array";
  }
  return "unknown";
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + "\"";
}

bool to_number(const std::string& text, uint64_t* number) {
  if (text.empty() || text.size() > 12) return false;
  char* end = nullptr;
  *number = strtoull(text.c_str(), &end, 10);
  return *end == '\0';
}

}  // namespace

int Server::control(const std::string& line, std::string* text) {
  std::istringstream words(line);
  std::string verb, first, second;
  words >> verb >> first >> second;
  uint64_t number = 0;
  if (verb == "dump") {
    *text = dump();
    return 0;
  }
  if (verb == "stop") {
    stop_ = true;
    return 0;
  }
  if (verb == "teardown-ms" && to_number(first, &teardown_ms_)) return 0;
  const bool card_ok = to_number(first, &number) && number < store_.machine.cards.size();
  if (card_ok && (verb == "lose-card" || verb == "restore-card")) {
    store_.machine.cards[number].info.state =
        static_cast<uint32_t>(verb == "lose-card" ? CardState::kLost : CardState::kOk);
    return 0;
  }
  if (card_ok && verb == "set-card") {
    const size_t equals = second.find('=');
    uint64_t value = 0;
    if (equals != std::string::npos && to_number(second.substr(equals + 1), &value) &&
        value <= 1000) {
      Card& card = store_.machine.cards[number];
      if (second.substr(0, equals) == "temperature") {
        card.temperature_set = static_cast<int>(value);
        return 0;
      }
      if (second.substr(0, equals) == "utilisation" && value <= 100) {
        card.utilisation_set = static_cast<int>(value);
        return 0;
      }
    }
  }
  *text = "not understood: " + line;
  return 1;
}

std::string Server::dump() const {
  std::ostringstream out;
  out << "{\"machine\":" << quoted(store_.machine.text) << ",\"teardown_ms\":" << teardown_ms_
      << ",\"pending_teardowns\":" << teardowns_.size() << ",\"exports\":" << exports_.size()
      << ",\"host_bytes\":" << store_.host.used << ",\"host_max_bytes\":" << store_.host.most
      << ",\"cards\":[";
  const char* comma = "";
  for (size_t i = 0; i < store_.machine.cards.size(); ++i) {
    const Card& card = store_.machine.cards[i];
    out << comma << "{\"index\":" << i << ",\"uuid\":" << quoted(card.info.uuid)
        << ",\"name\":" << quoted(card.info.name) << ",\"pci\":" << quoted(card.info.pci)
        << ",\"total_bytes\":" << card.info.total << ",\"reserved_bytes\":" << card.info.reserved
        << ",\"used_bytes\":" << card.used
        << ",\"state\":" << (card.info.state == 0 ? "\"ok\"" : "\"lost\"") << "}";
    comma = ",";
  }
  out << "],\"clients\":[";
  comma = "";
  for (const auto& [id, client] : clients_) {
    const char* kind = client.kind == ClientKind::kCuda   ? "cuda"
                       : client.kind == ClientKind::kNvml ? "nvml"
                                                          : "control";
    const auto held = store_.held().find(id);
    out << comma << "{\"pid\":" << client.pid << ",\"kind\":\"" << kind
        << "\",\"pieces\":" << (held == store_.held().end() ? 0 : held->second.size())
        << ",\"checkpoint\":" << static_cast<uint64_t>(client.state) << "}";
    comma = ",";
  }
  out << "],\"pieces\":[";
  comma = "";
  size_t listed = 0;
  for (const auto& [id, piece] : store_.pieces()) {
    if (++listed > 2000) break;  // a reply has a maximum; the totals above are complete
    const auto owner = clients_.find(piece.owner);
    out << comma << "{\"id\":" << id << ",\"card\":" << piece.card << ",\"bytes\":" << piece.bytes
        << ",\"class\":\"" << class_name(piece.use) << "\",\"holders\":" << piece.holders
        << ",\"owner_pid\":" << (owner == clients_.end() ? 0 : owner->second.pid) << "}";
    comma = ",";
  }
  out << "],\"piece_count\":" << store_.pieces().size() << "}\n";
  return out.str();
}

}  // namespace simgpu
