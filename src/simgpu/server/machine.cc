// SPDX-License-Identifier: Apache-2.0
// Card types and the parser of METE_SIM. Memory is what NVML reports for the real card; "reserved"
// is what the driver keeps for itself, so CUDA's total is the difference. The text is COUNTxTYPE,
// or the path of a file that describes the cards; finish() then derives UUIDs, addresses and links
// from the position of each card.
#include "simgpu/server/machine.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

namespace simgpu {
namespace {

struct CardType {
  const char* type;
  const char* name;
  uint64_t total_mib;
  uint64_t reserved_mib;
  uint32_t sms, cc_major, cc_minor;
  uint32_t power_w, idle_w;
  uint32_t nvlinks;  // to each other card of the machine
  uint32_t sm_mhz, memory_mhz, bus_bits, l2_mib;
  uint32_t pci_device_id;
};

constexpr CardType kTypes[] = {
    {"H200", "NVIDIA H200", 143771, 615, 132, 9, 0, 700, 75, 18, 1980, 3201, 6016, 60, 0x233510DE},
    {"H100", "NVIDIA H100 80GB HBM3", 81559, 551, 132, 9, 0, 700, 70, 18, 1980, 2619, 5120, 50,
     0x233010DE},
    {"A100", "NVIDIA A100-SXM4-80GB", 81920, 569, 108, 8, 0, 400, 55, 12, 1410, 1593, 5120, 40,
     0x20B210DE},
    {"A100-80G", "NVIDIA A100-SXM4-80GB", 81920, 569, 108, 8, 0, 400, 55, 12, 1410, 1593, 5120, 40,
     0x20B210DE},
    {"A100-40G", "NVIDIA A100-SXM4-40GB", 40960, 457, 108, 8, 0, 400, 52, 12, 1410, 1215, 5120, 40,
     0x20B010DE},
    {"V100", "Tesla V100-SXM2-32GB", 32768, 268, 80, 7, 0, 300, 42, 6, 1530, 877, 4096, 6,
     0x1DB510DE},
    {"L40S", "NVIDIA L40S", 46068, 618, 142, 8, 9, 350, 35, 0, 2520, 9001, 384, 96, 0x26B910DE},
    {"L4", "NVIDIA L4", 23034, 451, 58, 8, 9, 72, 16, 0, 2040, 6251, 192, 48, 0x27B810DE},
    {"A10", "NVIDIA A10", 23028, 486, 72, 8, 6, 150, 20, 0, 1695, 6251, 384, 6, 0x223610DE},
    {"T4", "Tesla T4", 15360, 445, 40, 7, 5, 70, 10, 0, 1590, 5001, 256, 4, 0x1EB810DE},
    {"B200", "NVIDIA B200", 183359, 750, 148, 10, 0, 1000, 140, 18, 1965, 3996, 8192, 126,
     0x290110DE},
};

constexpr uint64_t kMiB = 1ull << 20;

const CardType* find_type(const std::string& name) {
  for (const CardType& type : kTypes) {
    if (name == type.type) return &type;
  }
  return nullptr;
}

Card make_card(const CardType& type) {
  Card card;
  CardInfo& info = card.info;
  snprintf(info.name, sizeof info.name, "%s", type.name);
  info.total = type.total_mib * kMiB;
  info.reserved = type.reserved_mib * kMiB;
  if (strcmp(type.type, "H200") == 0) {
    // To the byte as the real card: CUDA sees 150,109,880,320; NVML prints 143771 and 616 MiB.
    info.total += 448 << 10;
    info.reserved += 512 << 10;
  }
  info.sms = type.sms;
  info.cc_major = type.cc_major;
  info.cc_minor = type.cc_minor;
  info.power_limit_mw = type.power_w * 1000;
  info.sm_clock_mhz = type.sm_mhz;
  info.memory_clock_mhz = type.memory_mhz;
  info.memory_bus_bits = type.bus_bits;
  info.l2_bytes = static_cast<uint32_t>(type.l2_mib * kMiB);
  info.pci_device_id = type.pci_device_id;
  card.idle_mw = type.idle_w * 1000;
  info.nvlinks[0] = static_cast<uint8_t>(type.nvlinks);  // spread out by finish()
  return card;
}

// splitmix64: an index gives the same UUID on every machine and in every run.
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

void set_identity(CardInfo* info, uint32_t index) {
  uint64_t words[2] = {mix(index * 2 + 0x6d657465), mix(index * 2 + 0x6d657466)};
  memcpy(info->uuid_bytes, words, 16);
  info->uuid_bytes[6] = static_cast<uint8_t>((info->uuid_bytes[6] & 0x0f) | 0x50);
  info->uuid_bytes[8] = static_cast<uint8_t>((info->uuid_bytes[8] & 0x3f) | 0x80);
  const uint8_t* b = info->uuid_bytes;
  snprintf(info->uuid, sizeof info->uuid,
           "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
           b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
           b[15]);
  info->pci_domain = 0;
  info->pci_bus = 0x10 + 7 * index;
  info->pci_device = 0;
  snprintf(info->pci, sizeof info->pci, "%08X:%02X:%02X.0", info->pci_domain, info->pci_bus,
           info->pci_device);
}

// Sets what depends on a card's position: UUID, PCI address, NUMA node, links to cards of its own
// kind.
void finish(Machine* machine) {
  const uint32_t count = static_cast<uint32_t>(machine->cards.size());
  std::vector<uint8_t> links(count);
  for (uint32_t i = 0; i < count; ++i) {
    links[i] = machine->cards[i].info.nvlinks[0];
    machine->cards[i].info.nvlinks[0] = 0;
  }
  for (uint32_t i = 0; i < count; ++i) {
    CardInfo& info = machine->cards[i].info;
    set_identity(&info, i);
    if (info.numa == 0 && count >= 4) info.numa = static_cast<int32_t>(i * 2 / count);
    for (uint32_t j = 0; j < count; ++j) {
      if (i == j || strcmp(info.name, machine->cards[j].info.name) != 0) continue;
      info.nvlinks[j] = links[i];
    }
  }
}

// "name=\"Our Card\" memory=80G sms=100" split into words; quotes keep spaces together.
std::vector<std::string> cut_words(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false;
  bool any = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
      any = true;
    } else if (!quoted && (c == ' ' || c == '\t' || c == '\r')) {
      if (any) words.push_back(word);
      word.clear();
      any = false;
    } else {
      word += c;
      any = true;
    }
  }
  if (any) words.push_back(word);
  return words;
}

bool parse_number(const std::string& text, uint64_t most, uint64_t* value) {
  if (text.empty() || text.size() > 9) return false;
  *value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    *value = *value * 10 + static_cast<uint64_t>(c - '0');
  }
  return *value <= most;
}

bool set_field(Card* card, const std::string& key, const std::string& value) {
  CardInfo& info = card->info;
  uint64_t number = 0;
  if (key == "name") {
    snprintf(info.name, sizeof info.name, "%s", value.c_str());
    return !value.empty();
  }
  if (key == "memory") return parse_size(value, &info.total) && info.total >= 64 * kMiB;
  if (key == "reserved") return parse_size(value, &info.reserved);
  if (key == "sms" && parse_number(value, 1024, &number) && number > 0) {
    info.sms = static_cast<uint32_t>(number);
    return true;
  }
  if (key == "power" && parse_number(value, 100000, &number)) {
    info.power_limit_mw = static_cast<uint32_t>(number * 1000);
    card->idle_mw = std::min(card->idle_mw, info.power_limit_mw);
    return true;
  }
  if (key == "numa" && parse_number(value, 1023, &number)) {
    info.numa = static_cast<int32_t>(number);
    return true;
  }
  if (key == "nvlinks" && parse_number(value, 18, &number)) {
    info.nvlinks[0] = static_cast<uint8_t>(number);
    return true;
  }
  if (key == "cc") {
    const size_t dot = value.find('.');
    uint64_t minor = 0;
    if (dot == std::string::npos || !parse_number(value.substr(0, dot), 99, &number) ||
        !parse_number(value.substr(dot + 1), 9, &minor)) {
      return false;
    }
    info.cc_major = static_cast<uint32_t>(number);
    info.cc_minor = static_cast<uint32_t>(minor);
    return true;
  }
  return false;
}

bool parse_line(const std::string& line, Machine* machine, std::string* why) {
  const std::vector<std::string> words = cut_words(line.substr(0, line.find('#')));
  if (words.empty()) return true;
  size_t first = 0;
  const CardType* type = find_type(words[0]);
  if (type != nullptr) {
    first = 1;
  } else {
    type = find_type("H200");
  }
  Card card = make_card(*type);
  for (size_t i = first; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == std::string::npos ||
        !set_field(&card, words[i].substr(0, equals), words[i].substr(equals + 1))) {
      *why = "not understood: '" + words[i] + "'";
      return false;
    }
  }
  if (card.info.reserved >= card.info.total) card.info.reserved = 0;
  machine->cards.push_back(card);
  return true;
}

bool read_machine_file(const std::string& path, Machine* machine, std::string* why) {
  std::ifstream file(path);
  if (!file) {
    *why = "cannot read " + path;
    return false;
  }
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (number > 1000 || !parse_line(line, machine, why)) {
      *why = path + " line " + std::to_string(number) + ": " + *why;
      return false;
    }
  }
  return true;
}

std::string known_types() {
  std::string all;
  for (const CardType& type : kTypes) all += std::string(all.empty() ? "" : ", ") + type.type;
  return all;
}

}  // namespace

bool parse_size(const std::string& text, uint64_t* bytes) {
  size_t digits = 0;
  while (digits < text.size() && isdigit(static_cast<unsigned char>(text[digits])) != 0) ++digits;
  if (digits == 0 || digits > 18) return false;
  const uint64_t number = strtoull(text.substr(0, digits).c_str(), nullptr, 10);
  const std::string unit = text.substr(digits);
  static const struct {
    const char* name;
    uint64_t factor;
  } kUnits[] = {{"", 1},
                {"K", 1ull << 10},
                {"KiB", 1ull << 10},
                {"M", 1ull << 20},
                {"MiB", 1ull << 20},
                {"G", 1ull << 30},
                {"GiB", 1ull << 30},
                {"T", 1ull << 40},
                {"TiB", 1ull << 40},
                {"MB", 1000000ull},
                {"GB", 1000000000ull}};
  for (const auto& entry : kUnits) {
    if (unit == entry.name) return !__builtin_mul_overflow(number, entry.factor, bytes);
  }
  return false;
}

bool build_machine(const std::string& text, Machine* machine, std::string* why) {
  Machine made;
  made.text = text;
  const std::string wanted = text.empty() ? "1xH200" : text;
  const size_t cross = wanted.find('x');
  uint64_t count = 0;
  if (wanted.find('/') != std::string::npos) {
    if (!read_machine_file(wanted, &made, why)) return false;
  } else if (cross != std::string::npos && parse_number(wanted.substr(0, cross), 999, &count)) {
    const CardType* type = find_type(wanted.substr(cross + 1));
    if (type == nullptr) {
      *why = "METE_SIM=" + wanted + ": no such card (known: " + known_types() + ")";
      return false;
    }
    if (count > static_cast<uint64_t>(kMaxCards)) {
      *why = "METE_SIM=" + wanted + ": at most " + std::to_string(kMaxCards) + " cards";
      return false;
    }
    for (uint64_t i = 0; i < count; ++i) made.cards.push_back(make_card(*type));
  } else {
    *why = "METE_SIM=" + wanted + ": neither COUNTxCARD (such as 4xH200) nor a readable file";
    return false;
  }
  if (made.cards.empty() || made.cards.size() > static_cast<size_t>(kMaxCards)) {
    *why = "METE_SIM=" + wanted + ": a machine has 1 to " + std::to_string(kMaxCards) + " cards";
    return false;
  }
  finish(&made);
  *machine = std::move(made);
  return true;
}

}  // namespace simgpu
