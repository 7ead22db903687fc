// SPDX-License-Identifier: Apache-2.0
// The settings of the configuration file, for the daemon and the command line: TOML in, values out,
// each with its origin. Unknown keys and wrong types are errors, never ignored: a misspelt limit
// must not look like one that is in effect. docs/formats/config.md has every key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "core/job/others.h"
#include "core/place/place.h"

namespace mete::config {

// The version of the file format; a file may name it (`version = 1`). Within a version keys are
// only added.
inline constexpr std::int64_t kFileVersion = 1;

// Where a value came from. Without a file it is the default.
struct Origin {
  std::string file;
  std::uint32_t line = 0;
  bool operator==(const Origin&) const = default;
};
std::string to_string(const Origin& origin);  // "default", "/etc/mete/config.toml:3"

template <typename T>
struct Setting {
  T value;
  Origin origin = {};
  bool operator==(const Setting&) const = default;
};

struct Config {
  // [daemon]
  Setting<std::uint64_t> idle_s{600};  // a private daemon ends after this many idle seconds; 0:
                                       // never
  Setting<core::Policy> policy{core::Policy::kBestFit};
  Setting<std::string> admin_group{""};  // its members have root's rights on jobs and cards; "":
                                         // none
  // [cards]
  Setting<Bytes> reserve{Bytes()};  // kept free on each card
  // Numbers, UUIDs or prefixes of UUIDs, as in --devices; nullopt: all cards.
  Setting<std::optional<std::vector<std::string>>> devices{std::nullopt};
  // [queue]
  Setting<std::uint64_t> half_life_s{7 * 86'400};  // of a user's past use
  Setting<std::uint64_t> starve_after_s{86'400};   // then a job goes to the front
  Setting<std::uint64_t> grace_s{30};              // between TERM and KILL of a cancelled job
  Setting<std::uint64_t> retry_pause_s{10};        // before the first of --retries
  Setting<std::optional<std::uint64_t>> cpus{std::nullopt};  // nullopt: all CPUs
  Setting<Bytes> user_bytes{Bytes::from_mib(256)};           // of the state, for each user's jobs
  // [park]
  Setting<std::optional<Bytes>> arena{std::nullopt};  // of host memory, for each card
  Setting<std::string> spill{""};                     // a folder for what does not fit; "": none
  Setting<Bytes> spill_max{Bytes()};                  // in all, for each card
  Setting<bool> preemptible{false};                   // default of --preemptible
  Setting<std::uint64_t> park_min_run_s{10};          // before a job is parked for another
  Setting<std::uint64_t> park_idle_s{0};  // parked after this many idle seconds; 0: never
  // [metrics]
  Setting<std::string> metrics_listen{""};   // "127.0.0.1:9411"; "": only the socket
  Setting<std::uint64_t> metrics_jobs{200};  // with their own metrics
  // [sight]
  Setting<core::Others> others{core::Others::kRows};  // what is shown of other users' jobs
  // [idle]: what is done about an idle job; 0: never. To park it: [park].
  Setting<std::uint64_t> idle_warn_s{0};
  Setting<std::uint64_t> idle_notify_s{0};
  Setting<std::uint64_t> idle_stop_s{0};
  // [escape]
  Setting<bool> escape_stop{false};  // "stop": a job with memory outside its meter is ended
  // [notify]
  Setting<std::vector<std::string>> notify_to{{}};                      // default targets
  Setting<std::vector<std::string>> notify_on{{"end", "fail", "oom"}};  // default events
  Setting<std::string> sendmail{"/usr/sbin/sendmail"};
  // [history]
  Setting<std::uint64_t> history_jobs{10'000};  // ended jobs to keep for each user
  // [logs]
  Setting<Bytes> log_max{Bytes::from_mib(256)};  // then the log is rotated
  bool operator==(const Config&) const = default;
};

// Whether cards.devices lets this card be granted.
bool allows(const Config& config, std::uint32_t index, std::string_view uuid);

// The files, in the order in which they are read: a later one overrides.
struct ConfigPlaces {
  std::string system;    // /etc/mete/config.toml; may be missing
  std::string user;      // $XDG_CONFIG_HOME/mete/config.toml; may be missing. "": none
  std::string override;  // METE_CONFIG: only this file, and it must exist. "": not set

  // A daemon of the whole machine (system mode) reads no user's file.
  static ConfigPlaces from_environment(bool with_user);
  std::vector<std::string> files() const;
};

// The first mistake is the error; its message begins with file:line:column if that is known.
Result<Config> load_config(const ConfigPlaces& places);

// All mistakes in one file (it must exist); its values are put over `config`, unless there is a
// mistake.
std::vector<Error> read_config(const std::string& path, Config& config);
// read_config() for text. `path` is for the origins and errors.
std::vector<Error> parse_config(std::string_view text, const std::string& path, Config& config);

// The values, as a file would have them, in the order of the sections. A file with these lines has
// the same meaning.
struct Shown {
  std::string_view section;  // "daemon"
  std::string_view key;      // "idle_s"
  std::string value;         // as TOML, which for these values is JSON too; "": not set
  std::string_view meaning;
  Origin origin;
  bool live = true;  // a running daemon can take a new value; false: only a new daemon can
};
std::vector<Shown> show(const Config& config);

// A key whose value differs between two configurations.
struct Change {
  std::string key;        // "daemon.idle_s"
  std::string old_value;  // as in Shown; "": not set
  std::string new_value;
  Origin origin;  // of the new value
  bool live = true;
};
std::vector<Change> changes(const Config& from, const Config& to);

// What a running daemon works with after it has read `next`: the keys that only a new daemon can
// take keep their values of `running`.
Config without_fixed(const Config& running, Config next);

}  // namespace mete::config
