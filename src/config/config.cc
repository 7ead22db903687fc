// SPDX-License-Identifier: Apache-2.0
// See config.h. load_config() reads the files in order, each over the values of the ones before;
// show() lists every key with its value, a description and its origin, for `mete config show`.
// toml_file.cc parses TOML.
#include "config/config.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"

namespace mete::config {

namespace {

constexpr const char* kSystemFile = "/etc/mete/config.toml";

std::string user_file() {
  if (const std::string folder = base::variable("XDG_CONFIG_HOME"); folder.starts_with('/'))
    return base::join_path(folder, "mete/config.toml");
  const std::string home = base::home_folder();
  return home.starts_with('/') ? base::join_path(home, ".config/mete/config.toml") : "";
}

std::string list_of(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  // Texts that parse_config accepts need no escaping.
  for (const std::string& text : texts) quoted.push_back("\"" + text + "\"");
  return "[" + base::join(quoted, ", ") + "]";
}

}  // namespace

std::string to_string(const Origin& origin) {
  return origin.file.empty() ? "default" : origin.file + ":" + std::to_string(origin.line);
}

bool allows(const Config& config, std::uint32_t index, std::string_view uuid) {
  if (!config.devices.value) return true;
  const std::string lower = base::to_lower(uuid);
  for (const std::string& device : *config.devices.value)
    if (device == std::to_string(index) || lower.starts_with(base::to_lower(device))) return true;
  return false;
}

ConfigPlaces ConfigPlaces::from_environment(bool with_user) {
  return {kSystemFile, with_user ? user_file() : "", base::variable("METE_CONFIG")};
}

std::vector<std::string> ConfigPlaces::files() const {
  if (!override.empty()) return {override};
  std::vector<std::string> paths;
  for (const std::string& path : {system, user})
    if (!path.empty()) paths.push_back(path);
  return paths;
}

Result<Config> load_config(const ConfigPlaces& places) {
  // The daemon runs in another folder.
  if (!places.override.empty() && !places.override.starts_with('/'))
    return Error::invalid("METE_CONFIG is not an absolute path")
        .with_evidence(base::quote(places.override))
        .with_hint("export METE_CONFIG=\"$PWD/" + places.override + "\"");
  Config config;
  for (const std::string& path : places.files()) {
    struct stat info {};
    const bool missing = stat(path.c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR);
    if (missing && places.override.empty()) continue;
    std::vector<Error> errors = read_config(path, config);
    if (errors.empty()) continue;
    if (errors.size() > 1) {
      errors.front().evidence += (errors.front().evidence.empty() ? "" : "; ") +
                                 std::to_string(errors.size() - 1) +
                                 " more: mete config check shows all";
    }
    return std::move(errors.front());
  }
  return config;
}

std::vector<Error> read_config(const std::string& path, Config& config) {
  constexpr std::size_t kMaxBytes = 1 << 20;
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return {Error::from_errno(path, errno)};
  // Other kinds of files may have no end, or block.
  if (!S_ISREG(info.st_mode)) return {Error::invalid(path + " is not a plain file")};
  if (static_cast<std::uint64_t>(info.st_size) > kMaxBytes)
    return {
        Error::invalid(path + " is too large for a configuration file")
            .with_evidence(to_string(Bytes::from_bytes(static_cast<std::uint64_t>(info.st_size))) +
                           "; the limit is 1 MiB")};
  const Result<std::string> text = base::read_all(path, kMaxBytes);
  if (!text) return {Error(text.error()).with_hint("mete must be able to read it")};
  return parse_config(*text, path, config);
}

std::vector<Shown> show(const Config& config) {
  const auto& devices = config.devices.value;
  return {
      {"daemon", "idle_s", std::to_string(config.idle_s.value),
       "end a private daemon after this many idle seconds; 0: never", config.idle_s.origin},
      {"daemon", "policy", "\"" + std::string(core::to_string(config.policy.value)) + "\"",
       "how to choose a card: first-fit, best-fit or spread", config.policy.origin},
      {"daemon", "admin_group", "\"" + config.admin_group.value + "\"",
       "members may drain cards, set quotas and end other users' jobs; \"\": only root",
       config.admin_group.origin},
      {"cards", "reserve", "\"" + base::to_exact_string(config.reserve.value) + "\"",
       "memory to keep free on each card", config.reserve.origin},
      {"cards", "devices", devices ? list_of(*devices) : "", "grant only these cards; not set: all",
       config.devices.origin},
      {"queue", "half_life_s", std::to_string(config.half_life_s.value),
       "seconds after which a user's past use counts half", config.half_life_s.origin},
      {"queue", "starve_after_s", std::to_string(config.starve_after_s.value),
       "a job that has waited this many seconds goes to the front", config.starve_after_s.origin},
      {"queue", "grace_s", std::to_string(config.grace_s.value),
       "seconds between TERM and KILL when a job is ended", config.grace_s.origin},
      {"queue", "retry_pause_s", std::to_string(config.retry_pause_s.value),
       "seconds before the first of --retries; doubles with each", config.retry_pause_s.origin},
      {"queue", "cpus", config.cpus.value ? std::to_string(*config.cpus.value) : "",
       "CPUs for jobs of mete submit; 0: not counted; not set: all CPUs", config.cpus.origin},
      {"queue", "user_bytes", "\"" + base::to_exact_string(config.user_bytes.value) + "\"",
       "limit of the state that a user's jobs may take, with environments and scripts",
       config.user_bytes.origin},
      {"park", "arena",
       config.arena.value ? "\"" + base::to_exact_string(*config.arena.value) + "\"" : "",
       "host memory for parked jobs, per card; not set: half of the machine, for all cards",
       config.arena.origin},
      {"park", "spill", "\"" + config.spill.value + "\"",
       "folder for what does not fit the arena; \"\": such jobs are not parked",
       config.spill.origin, false},
      {"park", "spill_max", "\"" + base::to_exact_string(config.spill_max.value) + "\"",
       "limit of that folder, per card", config.spill_max.origin, false},
      {"park", "preemptible", config.preemptible.value ? "true" : "false",
       "default of --preemptible: jobs may be parked to make room", config.preemptible.origin},
      {"park", "min_run_s", std::to_string(config.park_min_run_s.value),
       "a job runs this many seconds before it may be parked for another",
       config.park_min_run_s.origin},
      {"park", "idle_s", std::to_string(config.park_idle_s.value),
       "park a job after this many idle seconds, if it can be parked; 0: never",
       config.park_idle_s.origin},
      {"metrics", "listen", "\"" + config.metrics_listen.value + "\"",
       "address of /metrics for Prometheus, as \"127.0.0.1:9411\"; \"\": only the socket",
       config.metrics_listen.origin},
      {"metrics", "jobs", std::to_string(config.metrics_jobs.value),
       "this many jobs have their own metrics; the others are summed up",
       config.metrics_jobs.origin},
      {"sight", "others", "\"" + std::string(core::to_string(config.others.value)) + "\"",
       "what users see of other users' jobs: rows, all (with name and command) or totals",
       config.others.origin},
      {"idle", "warn_s", std::to_string(config.idle_warn_s.value),
       "mark a job that was idle this many seconds; 0: never", config.idle_warn_s.origin},
      {"idle", "notify_s", std::to_string(config.idle_notify_s.value),
       "notify its user after this many, by the job's targets or notify.to; 0: never",
       config.idle_notify_s.origin},
      {"idle", "stop_s", std::to_string(config.idle_stop_s.value),
       "end it after this many; 0: never. To park it instead: park.idle_s",
       config.idle_stop_s.origin},
      {"escape", "policy", config.escape_stop.value ? "\"stop\"" : "\"warn\"",
       "what to do about memory outside a meter: warn, or stop the job", config.escape_stop.origin},
      {"notify", "to", list_of(config.notify_to.value),
       "default targets of notifications: mail, mail:ADDRESS, webhook:URL, cmd:COMMAND",
       config.notify_to.origin},
      {"notify", "on", list_of(config.notify_on.value),
       "default events: start, end, fail, oom, park, idle", config.notify_on.origin},
      {"notify", "sendmail", "\"" + config.sendmail.value + "\"",
       "the program that sends mail, called as sendmail -i -- ADDRESS", config.sendmail.origin},
      {"history", "jobs", std::to_string(config.history_jobs.value),
       "ended jobs to keep for each user, with their logs", config.history_jobs.origin},
      {"logs", "max", "\"" + base::to_exact_string(config.log_max.value) + "\"",
       "rotate a log at this size; one old file is kept", config.log_max.origin},
  };
}

std::vector<Change> changes(const Config& from, const Config& to) {
  const std::vector<Shown> before = show(from);
  const std::vector<Shown> after = show(to);
  std::vector<Change> found;
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (before[i].value == after[i].value) continue;
    found.push_back({std::string(after[i].section) + "." + std::string(after[i].key),
                     before[i].value, after[i].value, after[i].origin, after[i].live});
  }
  return found;
}

// A mover is started with its folder, keeps it as long as it holds parked memory, and jobs are told
// how much fits.
Config without_fixed(const Config& running, Config next) {
  next.spill = running.spill;
  next.spill_max = running.spill_max;
  return next;
}

}  // namespace mete::config
