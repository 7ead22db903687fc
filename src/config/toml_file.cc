// SPDX-License-Identifier: Apache-2.0
// Reads a configuration file. The only file that uses toml++. A table of keys maps "section.key" to
// a function that checks and sets one value; everything else in the document is an error, with the
// nearest key as a hint. Errors are sorted by their place.
//
// toml++ 3.3 asserts things that a file can break ("[=" is enough), and handles them right after;
// with NDEBUG it even promises them to clang. Neither is wanted.
#undef NDEBUG
#define TOML_ASSERT(expr) static_cast<void>(0)
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include <algorithm>
#include <array>

#include "base/host_port.h"
#include "base/text.h"
#include "config/config.h"
#include "core/job/notify.h"

namespace mete::config {

namespace {

constexpr std::int64_t kMaxIdle = 366 * 86'400;
constexpr std::size_t kMaxDevices = 1024;
constexpr std::size_t kMaxErrors = 50;
constexpr std::string_view kNoNearKey =
    "mete config show lists the keys; a newer mete may have more";

// Sets one value; an Error without a place says what is wrong with it.
using Set = Result<void> (*)(const toml::node& node, const Origin& origin, Config& config);

Error wrong(std::string wanted, std::string hint) {
  return Error::invalid("must be " + std::move(wanted)).with_hint(std::move(hint));
}

// A whole number in a range; `example` is a correct line.
Result<std::uint64_t> number(const toml::node& node, std::int64_t least, std::int64_t most,
                             const char* what, const char* example) {
  const toml::value<std::int64_t>* value = node.as_integer();
  if (value == nullptr || value->get() < least || value->get() > most)
    return wrong(std::string("a number of ") + what + " from " + std::to_string(least) + " to " +
                     std::to_string(most),
                 example);
  return static_cast<std::uint64_t>(value->get());
}

Result<void> set_seconds(const toml::node& node, const Origin& origin, std::int64_t least,
                         const char* example, Setting<std::uint64_t>& setting) {
  const Result<std::uint64_t> value = number(node, least, kMaxIdle, "seconds", example);
  if (!value) return value.error();
  setting = {*value, origin};
  return {};
}

Result<void> set_idle(const toml::node& node, const Origin& origin, Config& config) {
  return set_seconds(node, origin, 0, "idle_s = 600", config.idle_s);
}

Result<void> set_half_life(const toml::node& node, const Origin& origin, Config& config) {
  return set_seconds(node, origin, 3600, "half_life_s = 604800", config.half_life_s);
}

Result<void> set_starve_after(const toml::node& node, const Origin& origin, Config& config) {
  return set_seconds(node, origin, 1, "starve_after_s = 86400", config.starve_after_s);
}

Result<void> set_grace(const toml::node& node, const Origin& origin, Config& config) {
  return set_seconds(node, origin, 0, "grace_s = 30", config.grace_s);
}

Result<void> set_retry_pause(const toml::node& node, const Origin& origin, Config& config) {
  return set_seconds(node, origin, 0, "retry_pause_s = 10", config.retry_pause_s);
}

Result<void> set_cpus(const toml::node& node, const Origin& origin, Config& config) {
  const Result<std::uint64_t> value = number(node, 0, 65'536, "CPUs", "cpus = 16");
  if (!value) return value.error();
  config.cpus = {*value, origin};
  return {};
}

Result<void> set_history_jobs(const toml::node& node, const Origin& origin, Config& config) {
  const Result<std::uint64_t> value = number(node, 100, 100'000, "jobs", "jobs = 10000");
  if (!value) return value.error();
  config.history_jobs = {*value, origin};
  return {};
}

Result<void> set_amount(const toml::node& node, const Origin& origin, const char* example,
                        Setting<Bytes>& setting) {
  const toml::value<std::string>* value = node.as_string();
  const Result<Bytes> bytes = base::parse_bytes(value == nullptr ? "" : value->get());
  if (!bytes) return wrong("an amount of memory with its unit, in quotes", example);
  setting = {*bytes, origin};
  return {};
}

Result<void> set_arena(const toml::node& node, const Origin& origin, Config& config) {
  Setting<Bytes> arena{Bytes()};
  if (Result<void> r = set_amount(node, origin, "arena = \"64G\"", arena); !r) return r;
  config.arena = {arena.value, origin};
  return {};
}

Result<void> set_spill(const toml::node& node, const Origin& origin, Config& config) {
  const toml::value<std::string>* value = node.as_string();
  if (value == nullptr || (!value->get().empty() && !value->get().starts_with('/')) ||
      value->get().find_first_of("\"\\\n") != std::string::npos)
    return wrong("an absolute path, in quotes", "spill = \"/scratch/mete\"");
  config.spill = {value->get(), origin};
  return {};
}

Result<void> set_spill_max(const toml::node& node, const Origin& origin, Config& config) {
  return set_amount(node, origin, "spill_max = \"200G\"", config.spill_max);
}

Result<void> set_preemptible(const toml::node& node, const Origin& origin, Config& config) {
  const toml::value<bool>* value = node.as_boolean();
  if (value == nullptr) return wrong("true or false", "preemptible = true");
  config.preemptible = {value->get(), origin};
  return {};
}

Result<void> set_min_run(const toml::node& node, const Origin& origin, Config& config) {
  return set_seconds(node, origin, 0, "min_run_s = 10", config.park_min_run_s);
}

Result<void> set_park_idle(const toml::node& node, const Origin& origin, Config& config) {
  return set_seconds(node, origin, 0, "idle_s = 1800", config.park_idle_s);
}

Result<void> set_metrics_listen(const toml::node& node, const Origin& origin, Config& config) {
  const toml::value<std::string>* value = node.as_string();
  if (value == nullptr || (!value->get().empty() && !base::parse_host_port(value->get())))
    return wrong("an address with a port, both in numbers, in quotes",
                 "listen = \"127.0.0.1:9411\"");
  config.metrics_listen = {value->get(), origin};
  return {};
}

Result<void> set_metrics_jobs(const toml::node& node, const Origin& origin, Config& config) {
  const Result<std::uint64_t> value = number(node, 0, 10'000, "jobs", "jobs = 200");
  if (!value) return value.error();
  config.metrics_jobs = {*value, origin};
  return {};
}

Result<void> set_others(const toml::node& node, const Origin& origin, Config& config) {
  const toml::value<std::string>* value = node.as_string();
  const std::optional<core::Others> others =
      value == nullptr ? std::nullopt : core::parse_others(value->get());
  if (!others) return wrong(R"("rows", "all" or "totals")", "others = \"rows\"");
  config.others = {*others, origin};
  return {};
}

Result<void> set_idle_warn(const toml::node& node, const Origin& origin, Config& config) {
  return set_seconds(node, origin, 0, "warn_s = 3600", config.idle_warn_s);
}

Result<void> set_idle_notify(const toml::node& node, const Origin& origin, Config& config) {
  return set_seconds(node, origin, 0, "notify_s = 7200", config.idle_notify_s);
}

Result<void> set_idle_stop(const toml::node& node, const Origin& origin, Config& config) {
  return set_seconds(node, origin, 0, "stop_s = 86400", config.idle_stop_s);
}

Result<void> set_escape(const toml::node& node, const Origin& origin, Config& config) {
  const toml::value<std::string>* value = node.as_string();
  if (value == nullptr || (value->get() != "warn" && value->get() != "stop"))
    return wrong(R"("warn" or "stop")", "policy = \"warn\"");
  config.escape_stop = {value->get() == "stop", origin};
  return {};
}

// A list of texts, each of which is valid.
Result<std::vector<std::string>> texts(const toml::node& node, bool (*right)(const std::string&),
                                       const char* wanted, const char* example) {
  const toml::array* list = node.as_array();
  if (list == nullptr || list->size() > core::kMaxNotify) return wrong(wanted, example);
  std::vector<std::string> found;
  for (const toml::node& element : *list) {
    const auto* text = element.as_string();
    // When shown they must be valid TOML again.
    if (text == nullptr || text->get().find_first_of("\"\\") != std::string::npos ||
        !right(text->get()) || std::find(found.begin(), found.end(), text->get()) != found.end())
      return wrong(wanted, example);
    found.push_back(text->get());
  }
  return found;
}

Result<void> set_notify_to(const toml::node& node, const Origin& origin, Config& config) {
  Result<std::vector<std::string>> list = texts(
      node, [](const std::string& text) { return core::parse_notify(text).ok(); },
      "a list of targets: mail, mail:ADDRESS, webhook:URL or cmd:COMMAND", "to = [\"mail\"]");
  if (!list) return std::move(list).error();
  config.notify_to = {*std::move(list), origin};
  return {};
}

Result<void> set_notify_on(const toml::node& node, const Origin& origin, Config& config) {
  Result<std::vector<std::string>> list = texts(
      node, [](const std::string& text) { return core::parse_notify_on(text).has_value(); },
      "a list of start, end, fail, oom, park, idle", "on = [\"end\", \"fail\"]");
  if (!list) return std::move(list).error();
  if (list->empty()) return wrong("a list with something in it", "leave it out for the default");
  config.notify_on = {*std::move(list), origin};
  return {};
}

Result<void> set_sendmail(const toml::node& node, const Origin& origin, Config& config) {
  const toml::value<std::string>* value = node.as_string();
  if (value == nullptr || !value->get().starts_with('/') ||
      value->get().find_first_of("\"\\\n") != std::string::npos)
    return wrong("an absolute path, in quotes", "sendmail = \"/usr/sbin/sendmail\"");
  config.sendmail = {value->get(), origin};
  return {};
}

Result<void> set_user_bytes(const toml::node& node, const Origin& origin, Config& config) {
  const toml::value<std::string>* value = node.as_string();
  const Result<Bytes> bytes = base::parse_bytes(value == nullptr ? "" : value->get());
  if (!bytes || *bytes < Bytes::from_mib(1) || *bytes > Bytes::from_mib(1 << 20))
    return wrong("between 1M and 1T, in quotes", "user_bytes = \"256M\"");
  config.user_bytes = {*bytes, origin};
  return {};
}

Result<void> set_log_max(const toml::node& node, const Origin& origin, Config& config) {
  const toml::value<std::string>* value = node.as_string();
  const Result<Bytes> bytes = base::parse_bytes(value == nullptr ? "" : value->get());
  if (!bytes || *bytes < Bytes::from_bytes(64 << 10))
    return wrong("an amount with its unit, in quotes, of at least 64K", "max = \"256M\"");
  config.log_max = {*bytes, origin};
  return {};
}

Result<void> set_admin_group(const toml::node& node, const Origin& origin, Config& config) {
  const toml::value<std::string>* value = node.as_string();
  if (value == nullptr || value->get().size() > 255 ||
      value->get().find_first_of("\"\\:,\n") != std::string::npos)
    return wrong("the name of a group, in quotes", "admin_group = \"gpu-admins\"");
  config.admin_group = {value->get(), origin};
  return {};
}

Result<void> set_policy(const toml::node& node, const Origin& origin, Config& config) {
  const toml::value<std::string>* value = node.as_string();
  const std::vector<std::string_view> names{"first-fit", "best-fit", "spread"};
  const std::string text = value == nullptr ? "" : value->get();
  const Result<core::Policy> policy = core::parse_policy(text);
  if (!policy) {
    const std::string_view near = base::nearest(text, names);
    return wrong(R"("first-fit", "best-fit" or "spread")",
                 "policy = \"" + std::string(near.empty() ? "best-fit" : near) + "\"");
  }
  config.policy = {*policy, origin};
  return {};
}

Result<void> set_reserve(const toml::node& node, const Origin& origin, Config& config) {
  return set_amount(node, origin, "reserve = \"512M\"", config.reserve);
}

// A number, or the beginning of a UUID. Anything else could not name a card, so it is a mistake.
bool names_a_card(const std::string& text) {
  if (const Result<std::uint64_t> number = base::parse_uint(text))
    return *number < kMaxDevices && text.size() <= 4;
  return text.size() > 4 && text.size() <= 40 && text.starts_with("GPU-") &&
         text.find_first_not_of("0123456789abcdefABCDEF-", 4) == std::string::npos;
}

Result<void> set_devices(const toml::node& node, const Origin& origin, Config& config) {
  const Error error =
      wrong("a list of cards, by number or UUID, each once", "devices = [0, \"GPU-8a1b\"]");
  const toml::array* list = node.as_array();
  if (list == nullptr || list->size() > kMaxDevices) return error;
  std::vector<std::string> devices;
  for (const toml::node& element : *list) {
    std::string text;
    if (const auto* number = element.as_integer()) text = std::to_string(number->get());
    if (const auto* name = element.as_string()) text = name->get();
    if (!names_a_card(text) || std::find(devices.begin(), devices.end(), text) != devices.end())
      return error;
    devices.push_back(std::move(text));
  }
  if (devices.empty()) return wrong("a list with a card in it", "leave it out to use all cards");
  config.devices = {std::move(devices), origin};
  return {};
}

struct Key {
  std::string_view section;
  std::string_view name;
  Set set;
};
constexpr std::array<Key, 29> kKeys{{
    {"daemon", "idle_s", set_idle},
    {"daemon", "policy", set_policy},
    {"daemon", "admin_group", set_admin_group},
    {"cards", "reserve", set_reserve},
    {"cards", "devices", set_devices},
    {"queue", "half_life_s", set_half_life},
    {"queue", "starve_after_s", set_starve_after},
    {"queue", "grace_s", set_grace},
    {"queue", "retry_pause_s", set_retry_pause},
    {"queue", "user_bytes", set_user_bytes},
    {"queue", "cpus", set_cpus},
    {"park", "arena", set_arena},
    {"park", "spill", set_spill},
    {"park", "spill_max", set_spill_max},
    {"park", "preemptible", set_preemptible},
    {"park", "min_run_s", set_min_run},
    {"park", "idle_s", set_park_idle},
    {"metrics", "listen", set_metrics_listen},
    {"metrics", "jobs", set_metrics_jobs},
    {"sight", "others", set_others},
    {"idle", "warn_s", set_idle_warn},
    {"idle", "notify_s", set_idle_notify},
    {"idle", "stop_s", set_idle_stop},
    {"escape", "policy", set_escape},
    {"notify", "to", set_notify_to},
    {"notify", "on", set_notify_on},
    {"notify", "sendmail", set_sendmail},
    {"history", "jobs", set_history_jobs},
    {"logs", "max", set_log_max},
}};

class Reader {
 public:
  Reader(std::string path, Config& config) : path_(std::move(path)), config_(config) {}

  std::vector<Error> read(std::string_view text) {
    const Result<std::string> ascii = without_unicode(text);
    if (!ascii) return {ascii.error()};
    const toml::parse_result parsed = toml::parse(*ascii);
    if (!parsed) {
      complain(parsed.error().source(), std::string(parsed.error().description()),
               "https://toml.io has the grammar");
    } else if (read_version(parsed.table())) {
      for (const auto& [key, node] : parsed.table())
        if (key.str() != "version") read_section(key, node);
      if (const toml::node* spill = parsed.table().at_path("park.spill").node();
          spill != nullptr && !config_.spill.value.empty() && config_.spill_max.value.is_zero())
        complain(spill->source(), "park.spill is without effect as long as park.spill_max is 0",
                 "spill_max = \"200G\" says how much may lie there");
    }
    // In the order of the file: a table is kept in the order of its names.
    std::stable_sort(errors_.begin(), errors_.end(),
                     [](const Complaint& a, const Complaint& b) { return a.line < b.line; });
    std::vector<Error> errors;
    for (Complaint& complaint : errors_) errors.push_back(std::move(complaint.error));
    return errors;
  }

 private:
  // toml++ 3.3 runs into __builtin_unreachable() when it checks whether some characters, "é" among
  // them, are blanks. No key and no value of ours needs them, so it only gets ASCII: text behind a
  // '#' may be a comment, and is made harmless; anything else is an error.
  Result<std::string> without_unicode(std::string_view text) const {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    std::string ascii(text);
    std::size_t line = 1;
    std::size_t column = 0;
    bool after_hash = false;
    for (char& c : ascii) {
      ++column;
      if (c == '\n') {
        ++line;
        column = 0;
        after_hash = false;
      } else if (c == '#') {
        after_hash = true;
      } else if (static_cast<unsigned char>(c) >= 0x80 && after_hash) {
        c = '?';
      } else if (static_cast<unsigned char>(c) >= 0x80) {
        return Error::invalid(path_ + ":" + std::to_string(line) + ":" + std::to_string(column) +
                              ": outside of comments a configuration is plain ASCII")
            .with_hint("look for quotes or blanks that only look like the plain ones");
      }
    }
    return ascii;
  }

  struct Complaint {
    std::uint32_t line = 0;
    Error error;
  };

  // False: a newer mete wrote this file. Then that is the error, and not each of its keys.
  bool read_version(const toml::table& table) {
    const toml::node* node = table.get("version");
    if (node == nullptr) return true;
    const toml::value<std::int64_t>* number = node->as_integer();
    if (number != nullptr && number->get() > kFileVersion) {
      complain(node->source(),
               "the file has version " + std::to_string(number->get()) +
                   ", this mete reads version " + std::to_string(kFileVersion),
               "it is for a newer mete: update mete, or put the older file back");
      return false;
    }
    if (number == nullptr || number->get() != kFileVersion)
      complain(node->source(), "version must be " + std::to_string(kFileVersion),
               "version = " + std::to_string(kFileVersion));
    return true;
  }

  void read_section(const toml::key& key, const toml::node& node) {
    std::vector<std::string_view> sections;
    bool known = false;
    for (const Key& candidate : kKeys) {
      known = known || candidate.section == key.str();
      sections.push_back(candidate.section);
    }
    if (!known) {
      const std::string near = nearest_key(key.str());
      std::string hint = near.empty() ? std::string(kNoNearKey) : "did you mean " + near + "?";
      if (const std::string_view section = base::nearest(key.str(), sections); !section.empty())
        hint = "did you mean [" + std::string(section) + "]?";
      complain(key.source(), "there is no key " + base::quote(key.str()), std::move(hint));
      return;
    }
    const toml::table* table = node.as_table();
    if (table == nullptr) {
      complain(key.source(), base::quote(key.str()) + " must be a section",
               "write [" + std::string(key.str()) + "] on a line of its own");
      return;
    }
    for (const auto& [name, value] : *table) read_key(key.str(), name, value);
  }

  void read_key(std::string_view section, const toml::key& key, const toml::node& node) {
    const std::string whole = std::string(section) + "." + std::string(key.str());
    for (const Key& candidate : kKeys) {
      if (candidate.section != section || candidate.name != key.str()) continue;
      const Origin origin{path_, static_cast<std::uint32_t>(key.source().begin.line)};
      if (Result<void> set = candidate.set(node, origin, config_); !set)
        complain(node.source(), whole + " " + set.error().message, set.error().hint);
      return;
    }
    const std::string near = nearest_key(key.str());
    complain(key.source(), "there is no key " + base::quote(whole),
             near.empty() ? std::string(kNoNearKey) : "did you mean " + near + "?");
  }

  // "daemon.idle_s" for "idel_s", in whichever section it belongs.
  static std::string nearest_key(std::string_view name) {
    std::vector<std::string_view> names;
    for (const Key& key : kKeys) names.push_back(key.name);
    const std::string_view near = base::nearest(name, names);
    for (const Key& key : kKeys)
      if (!near.empty() && key.name == near)
        return std::string(key.section) + "." + std::string(key.name);
    return "";
  }

  void complain(const toml::source_region& where, std::string what, std::string hint) {
    if (errors_.size() >= kMaxErrors) return;
    std::string message = path_;
    if (where.begin) {
      message += ":" + std::to_string(where.begin.line) + ":" + std::to_string(where.begin.column);
    }
    errors_.push_back(
        {where.begin.line,
         Error::invalid(std::move(message) + ": " + what).with_hint(std::move(hint))});
  }

  std::string path_;
  Config& config_;
  std::vector<Complaint> errors_;
};

}  // namespace

std::vector<Error> parse_config(std::string_view text, const std::string& path, Config& config) {
  Config changed = config;
  std::vector<Error> errors = Reader(path, changed).read(text);
  if (errors.empty()) config = std::move(changed);
  return errors;
}

}  // namespace mete::config
