// SPDX-License-Identifier: Apache-2.0
// See redact.h.
#include "cli/redact.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace mete::cli {

namespace {

using wire::Json;

constexpr std::size_t kShortest = 3;  // that is looked for in texts
constexpr std::size_t kAnywhere = 6;  // from here on also inside of a longer word
constexpr std::size_t kLongToken = 16;

// Keys of our documents whose strings are our own or the driver's.
constexpr std::array<std::string_view, 7> kRawKeys{"schema",  "at",        "type", "driver",
                                                   "version", "grant_abi", "model"};

// Keys whose strings are words, numbers or times.
constexpr std::array<std::string_view, 35> kSafeKeys{
    "state",        "outcome",     "reason",   "kind",       "when",  "mode",     "policy",
    "gpu",          "gpu_written", "gpu_type", "request",    "id",    "job",      "array",
    "submitted_at", "started_at",  "ended_at", "idle_since", "begin", "deadline", "from",
    "until",        "ends_at",     "next_at",  "standing",   "cause", "verdict",  "group",
    "escapes",      "simulated",   "on",       "step",       "depth", "since",    "needs_restart"};

// Sentences of ours with other people's words in them.
constexpr std::array<std::string_view, 10> kTextKeys{
    "for",     "why",      "note", "trouble", "metrics_trouble", "config_trouble",
    "message", "evidence", "hint", "remark"};

// Folders that every machine has; what is in other folders says something about its users.
constexpr std::array<std::string_view, 10> kSafeFolders{
    "/usr/bin/", "/usr/sbin/", "/usr/lib/",   "/usr/share/mete", "/lib/",
    "/proc/",    "/sys/",      "/dev/nvidia", "/etc/mete",       "/run/mete"};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
// Of a path, an address or a token.
bool is_token(char c) {
  return is_word(c) || std::string_view("-./:@=+%~&?#,*$\\").find(c) != std::string_view::npos ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool holds(const auto& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

std::string_view kind_of(std::string_view key) {
  if (key == "user" || key == "uid" || key == "gid") return "user";
  if (key == "name") return "name";
  if (key == "command") return "word";
  if (key == "cwd" || key == "log" || key == "err" || key == "socket" || key == "state_dir" ||
      key == "readings" || key == "movers" || key == "script")
    return "path";
  if (key == "uuid" || key == "card" || key == "cards") return "card";
  if (key == "labels") return "label";
  return "text";
}

bool is_a_number_of_people(std::string_view key) {
  return key == "uid" || key == "gid" || key == "groups" || key == "admin_gid";
}

}  // namespace

std::string Redactor::word_for(std::string_view kind, std::string_view text) {
  if (text.empty()) return "";
  if (const auto known = words_.find(text); known != words_.end()) return known->second;
  const unsigned number = ++counts_[std::string(kind)];
  std::string word = std::string(kind) + "-" + std::to_string(number);
  words_.emplace(text, word);
  return word;
}

void Redactor::learn(std::string_view kind, std::string_view text) {
  if (text.empty()) return;
  (void)word_for(kind, text);
  if (text.size() < kShortest || holds(learned_, text)) return;
  const auto place = std::find_if(learned_.begin(), learned_.end(), [&](const std::string& other) {
    return other.size() < text.size();
  });
  learned_.emplace(place, text);
}

void Redactor::learn(const Json& document) { walk(document, ""); }

void Redactor::walk(const Json& value, std::string_view key) {
  if (value.is_object()) {
    for (const auto& [name, part] : value.items()) {
      if (key == "labels") learn("label", name);
      walk(part, key == "labels" ? key : std::string_view(name));
    }
  } else if (value.is_array()) {
    for (const Json& part : value) walk(part, key);
  } else if (value.is_string() && !holds(kRawKeys, key) && !holds(kSafeKeys, key) &&
             !holds(kTextKeys, key)) {
    learn(kind_of(key), value.get_ref<const std::string&>());
  }
}

Json Redactor::redacted(const Json& value, std::string_view key) {
  if (value.is_object()) {
    Json result = Json::object();
    for (const auto& [name, part] : value.items())
      result[key == "labels" ? word_for("label", name) : name] =
          redacted(part, key == "labels" ? key : std::string_view(name));
    return result;
  }
  if (value.is_array()) {
    Json result = Json::array();
    for (const Json& part : value) result.push_back(redacted(part, key));
    return result;
  }
  if (value.is_number() && is_a_number_of_people(key)) return word_for("uid", value.dump());
  if (!value.is_string()) return value;
  const auto& string = value.get_ref<const std::string&>();
  if (holds(kRawKeys, key)) return string;
  // A key that is safe here may hold a user's word in a document of another version.
  if (holds(kTextKeys, key) || holds(kSafeKeys, key)) return text(string);
  return word_for(kind_of(key), string);
}

std::string Redactor::without_learned(std::string_view text) {
  std::string result(text);
  for (const std::string& learned : learned_) {
    for (std::size_t at = result.find(learned); at != std::string::npos;
         at = result.find(learned, at)) {
      const std::size_t end = at + learned.size();
      const bool apart =
          (at == 0 || !is_word(result[at - 1])) && (end == result.size() || !is_word(result[end]));
      if (!apart && learned.size() < kAnywhere) {
        ++at;
        continue;
      }
      const std::string& word = words_.find(learned)->second;
      result.replace(at, learned.size(), word);
      at += word.size();
    }
  }
  return result;
}

// One run of characters without a blank: a path, an address, a hash, or an ordinary word.
std::string Redactor::token(std::string_view token) {
  std::size_t end = token.size();
  while (end > 0 && std::string_view(".,:;").find(token[end - 1]) != std::string_view::npos) --end;
  const std::string_view body = token.substr(0, end);
  const std::string rest(token.substr(end));
  if (const std::size_t equals = body.find('='); equals != body.npos && equals + 1 < body.size())
    return std::string(body.substr(0, equals + 1)) + this->token(body.substr(equals + 1)) + rest;
  if (body.find("://") != body.npos) return word_for("url", body) + rest;
  if (body.starts_with('/') || body.starts_with("~/") || body.find("../") != body.npos) {
    for (const std::string_view folder : kSafeFolders)
      if (body.starts_with(folder)) return std::string(token);
    // The line and column after a file stay.
    std::size_t end_of_path = body.find_last_not_of("0123456789:") + 1;
    if (end_of_path < body.size() && body[end_of_path] != ':') end_of_path = body.size();
    return "/" + word_for("path", body.substr(0, end_of_path)) +
           std::string(body.substr(end_of_path)) + rest;
  }
  if (body.find('@') != body.npos) return word_for("address", body) + rest;
  if (body.find('/') != body.npos && body.size() > 1 &&
      !std::isdigit(static_cast<unsigned char>(body[0])))
    return word_for("path", body) + rest;
  const auto count = [&](auto&& is) { return std::count_if(body.begin(), body.end(), is); };
  const bool digits = count([](unsigned char c) { return std::isdigit(c) != 0; }) > 0;
  const bool letters = count([](unsigned char c) { return std::isalpha(c) != 0; }) > 0;
  const long dots = count([](char c) { return c == '.'; });
  // 10.1.2.3, but not 580.159.04
  if (!letters && dots == 3) return word_for("address", body) + rest;
  // "2026-11-16T08:30:00.000Z" is a time.
  const bool time = body.size() > 19 && body[4] == '-' && body[10] == 'T' && body.ends_with('Z');
  if (body.size() >= kLongToken && digits && letters && !time)
    return word_for("token", body) + rest;
  return std::string(token);
}

std::string Redactor::text(std::string_view text) {
  const std::string known = without_learned(text);
  std::string result;
  for (std::size_t at = 0; at < known.size();) {
    const char c = known[at];
    // Our messages quote what users wrote. An apostrophe inside of a word is none.
    const bool quote = (c == '\'' || c == '"') && (at == 0 || !is_word(known[at - 1]));
    const std::size_t close = quote ? known.find(c, at + 1) : std::string::npos;
    if (close != std::string::npos && known.find('\n', at) > close) {
      result += c + word_for("text", known.substr(at + 1, close - at - 1)) + c;
      at = close + 1;
    } else if (is_token(c)) {
      std::size_t end = at;
      while (end < known.size() && is_token(known[end])) ++end;
      result += token(std::string_view(known).substr(at, end - at));
      at = end;
    } else {
      result += c;
      ++at;
    }
  }
  return result;
}

}  // namespace mete::cli
