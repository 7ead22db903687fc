// SPDX-License-Identifier: Apache-2.0
// See service_file.h. job_file.cc reads the YAML; here each key of a service gets its meaning.
// Fields has one function for each kind of value (a word, a number, a duration, a list), with the
// place in the error; kKeys says which key is what. Sums over several keys (replicas: and
// autoscaling:, a model of two services) are judged at the end.
#include "cli/service_file.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/text.h"
#include "base/time_words.h"

namespace mete::cli {

namespace {

using core::service::Access;
using core::service::Autoscaling;
using core::service::Probe;
using core::service::ServiceSpec;

constexpr std::array<std::string_view, 16> kKeys{
    "access",   "autoscaling", "body-limit", "concurrency",  "hold",       "live",
    "max-wait", "models",      "no-wake",    "origins",      "park-after", "queue",
    "ready",    "replicas",    "resident",   "start-timeout"};
constexpr std::array<std::string_view, 2> kFileKeys{"room", "swap-rate"};
constexpr std::array<std::string_view, 11> kScalingKeys{"downscale-stabilization-period",
                                                        "downscale-tolerance",
                                                        "init-replicas",
                                                        "max-downscale-factor",
                                                        "max-replicas",
                                                        "max-upscale-factor",
                                                        "min-replicas",
                                                        "target-in-flight",
                                                        "upscale-stabilization-period",
                                                        "upscale-tolerance",
                                                        "window"};

Error at(const FileValue& value, const std::string& message) {
  return Error::invalid(value.where + ": " + message);
}

// As users write it: with underscores.
std::string shown(std::string_view key) {
  std::string text(key);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

Result<std::string> word_of(std::string_view key, const FileValue& value) {
  if (value.kind == FileValue::Kind::kText) return value.text;
  return at(value, shown(key) + " is one word").with_hint("write one behind " + shown(key) + ":");
}

Result<std::uint32_t> count_of(std::string_view key, const FileValue& value) {
  const Result<std::string> text = word_of(key, value);
  if (!text) return text.error();
  const Result<std::uint64_t> number = base::parse_uint(*text);
  if (number && *number <= 1'000'000) return static_cast<std::uint32_t>(*number);
  return at(value, shown(key) + " is " + base::quote(*text) + ", which is no number")
      .with_hint("write a whole number from 0 to 1000000");
}

Result<double> decimal_of(std::string_view key, const FileValue& value) {
  const Result<std::string> text = word_of(key, value);
  if (!text) return text.error();
  const Result<base::Milli> number = base::parse_milli(*text);
  if (number && number->whole <= 1'000'000)
    return static_cast<double>(number->whole * 1000 + number->thousandths) / 1000;
  return at(value, shown(key) + " is " + base::quote(*text) + ", which is no number")
      .with_hint("write a number with at most three decimals, such as 0.75");
}

Result<std::int64_t> seconds_of(std::string_view key, const FileValue& value) {
  const Result<std::string> text = word_of(key, value);
  if (!text) return text.error();
  if (*text == "0" || *text == "0s") return std::int64_t{0};
  const Result<std::uint64_t> seconds = base::parse_duration(*text);
  if (seconds && *seconds <= static_cast<std::uint64_t>(core::service::kMaxPeriodS))
    return static_cast<std::int64_t>(*seconds);
  return at(value, shown(key) + " is " + base::quote(*text) + ", which is no duration up to a day")
      .with_hint("write " + shown(key) + ": 60s, 5m or 2h");
}

Result<Bytes> bytes_of(std::string_view key, const FileValue& value) {
  const Result<std::string> text = word_of(key, value);
  if (!text) return text.error();
  const Result<Bytes> bytes = base::parse_bytes(*text);
  if (bytes && !bytes->is_zero()) return *bytes;
  return at(value, shown(key) + " is " + base::quote(*text) + ", which is no size")
      .with_hint("write " + shown(key) + ": 64G");
}

// One word, or a list of them.
Result<std::vector<std::string>> words_of(std::string_view key, const FileValue& value) {
  if (value.kind == FileValue::Kind::kText) return std::vector{value.text};
  std::vector<std::string> words;
  for (const FileValue& part : value.parts) {
    if (value.kind == FileValue::Kind::kMap || part.kind != FileValue::Kind::kText)
      return at(part, shown(key) + " is a list of words")
          .with_hint("write " + shown(key) + ": [one, two]");
    words.push_back(part.text);
  }
  return words;
}

// Into `field`, or the error.
template <class T, class Read, class Field>
Result<void> put(Read read, std::string_view key, const FileValue& value, Field& field) {
  Result<T> read_value = read(key, value);
  if (!read_value) return std::move(read_value).error();
  field = *std::move(read_value);
  return {};
}

Result<Probe> probe_of(std::string_view key, const FileValue& value) {
  Probe probe;
  if (value.kind == FileValue::Kind::kText && value.text == "tcp") return probe;
  if (value.kind == FileValue::Kind::kMap && value.keys.size() == 1) {
    const FileValue& part = value.parts.front();
    if (value.keys.front() == "http" && part.kind == FileValue::Kind::kText)
      return Probe{Probe::Kind::kHttp, part.text, {}};
    if (value.keys.front() == "exec") {
      Result<std::vector<std::string>> words = words_of("exec", part);
      if (!words) return std::move(words).error();
      if (part.kind == FileValue::Kind::kText) *words = {"/bin/sh", "-c", part.text};
      return Probe{Probe::Kind::kExec, "", *std::move(words)};
    }
    if (value.keys.front() == "tcp") return probe;
  }
  return at(value, shown(key) + " is tcp, {http: PATH} or {exec: COMMAND}")
      .with_hint("write " + shown(key) + ": {http: /health}");
}

Result<Access> access_of(std::string_view, const FileValue& value) {
  if (value.text == "owner") return Access::kOwner;
  if (value.text == "users") return Access::kUsers;
  if (value.text == "anyone") return Access::kAnyone;
  return at(value, "access is owner, users or anyone, not " + base::quote(value.text))
      .with_hint("owner is the default");
}

// What `replicas:` says: "3" or "0..4".
struct Replicas {
  std::uint32_t min = 0;
  std::uint32_t max = 0;
};

Result<Replicas> replicas_of(std::string_view key, const FileValue& value) {
  const Result<std::string> text = word_of(key, value);
  if (!text) return text.error();
  const std::size_t dots = text->find("..");
  const Result<std::uint64_t> first = base::parse_uint(text->substr(0, dots));
  const Result<std::uint64_t> last =
      dots == std::string::npos ? first : base::parse_uint(text->substr(dots + 2));
  if (!first || !last || *first > core::service::kMaxReplicas ||
      *last > core::service::kMaxReplicas)
    return at(value, "replicas is " + base::quote(*text))
        .with_hint("write replicas: 3, or a range such as 0..4");
  return Replicas{static_cast<std::uint32_t>(*first), static_cast<std::uint32_t>(*last)};
}

// Which of the keys of autoscaling: are there.
struct Said {
  bool min = false;
  bool max = false;
  bool target = false;
};

Result<void> read_scaling(const FileValue& value, Autoscaling& rules, Said& said) {
  if (value.kind != FileValue::Kind::kMap)
    return at(value, "autoscaling is a map").with_hint("write autoscaling: {max_replicas: 4}");
  for (std::size_t i = 0; i < value.keys.size(); ++i) {
    const std::string& key = value.keys[i];
    const FileValue& part = value.parts[i];
    Result<void> done;
    if (key == "min-replicas") {
      said.min = true;
      done = put<std::uint32_t>(count_of, key, part, rules.min);
    } else if (key == "max-replicas") {
      said.max = true;
      done = put<std::uint32_t>(count_of, key, part, rules.max);
    } else if (key == "init-replicas") {
      done = put<std::uint32_t>(count_of, key, part, rules.init);
    } else if (key == "target-in-flight") {
      said.target = true;
      done = put<double>(decimal_of, key, part, rules.target_in_flight);
    } else if (key == "window") {
      done = put<std::int64_t>(seconds_of, key, part, rules.window_s);
    } else if (key == "downscale-stabilization-period") {
      done = put<std::int64_t>(seconds_of, key, part, rules.down_period_s);
    } else if (key == "upscale-stabilization-period") {
      done = put<std::int64_t>(seconds_of, key, part, rules.up_period_s);
    } else if (key == "max-downscale-factor") {
      done = put<double>(decimal_of, key, part, rules.max_down);
    } else if (key == "max-upscale-factor") {
      done = put<double>(decimal_of, key, part, rules.max_up);
    } else if (key == "downscale-tolerance") {
      done = put<double>(decimal_of, key, part, rules.down_tolerance);
    } else if (key == "upscale-tolerance") {
      done = put<double>(decimal_of, key, part, rules.up_tolerance);
    } else {
      const std::string_view near = base::nearest(key, {kScalingKeys.begin(), kScalingKeys.end()});
      done = at(part, "autoscaling has no key " + base::quote(shown(key)))
                 .with_hint(near.empty() ? "such as min_replicas, max_replicas and window"
                                         : "did you mean " + shown(near) + "?");
    }
    if (!done) return done;
  }
  return {};
}

Result<void> read_park_after(const FileValue& value, ServiceSpec& spec) {
  if (value.kind == FileValue::Kind::kText && value.text == "never") {
    spec.parks_never = true;
    return {};
  }
  return put<std::int64_t>(seconds_of, "park-after", value, spec.park_after_s);
}

Result<void> read_resident(const FileValue& value, ServiceSpec& spec) {
  if (value.kind != FileValue::Kind::kText || value.text != "always")
    return at(value, "resident is always, or is left out").with_hint("write resident: always");
  spec.resident = true;
  return {};
}

Result<void> read_key(const std::string& key, const FileValue& value, ServiceSpec& spec, Said& said,
                      std::optional<Replicas>& replicas) {
  using Words = std::vector<std::string>;
  if (key == "models") return put<Words>(words_of, key, value, spec.models);
  if (key == "ready") return put<Probe>(probe_of, key, value, spec.ready);
  if (key == "live") return put<Probe>(probe_of, key, value, spec.live);
  if (key == "concurrency") return put<std::uint32_t>(count_of, key, value, spec.concurrency);
  if (key == "queue") return put<std::uint32_t>(count_of, key, value, spec.queue);
  if (key == "hold") return put<std::int64_t>(seconds_of, key, value, spec.hold_s);
  if (key == "max-wait") return put<std::int64_t>(seconds_of, key, value, spec.max_wait_s);
  if (key == "start-timeout")
    return put<std::int64_t>(seconds_of, key, value, spec.start_timeout_s);
  if (key == "no-wake") return put<Words>(words_of, key, value, spec.no_wake);
  if (key == "origins") return put<Words>(words_of, key, value, spec.origins);
  if (key == "access") return put<Access>(access_of, key, value, spec.access);
  if (key == "body-limit") return put<Bytes>(bytes_of, key, value, spec.body_limit);
  if (key == "park-after") return read_park_after(value, spec);
  if (key == "resident") return read_resident(value, spec);
  if (key == "replicas") return put<Replicas>(replicas_of, key, value, replicas);
  return read_scaling(value, spec.scaling, said);
}

// Options of jobs that end.
constexpr std::array<std::string_view, 11> kNotOfServices{
    "--after",   "--array",     "--begin",   "--deadline", "--idle", "--no-wait",
    "--requeue", "--retry-gpu", "--retries", "--time",     "--tty"};

Result<FileService> read_service(FileJob job) {
  FileService service;
  ServiceSpec& spec = service.spec;
  for (const Word& word : job.words)
    if (std::find(kNotOfServices.begin(), kNotOfServices.end(), word.option) !=
        kNotOfServices.end())
      return Error::invalid(word.where + ": a service has no " + shown(word.option.substr(2)))
          .with_evidence("it runs until it is removed, and its replicas are restarted")
          .with_hint("leave it out");
  if (job.name.empty())
    return Error::invalid(job.where + ": a service has no name").with_hint("write - name: chat");
  spec.name = job.name;
  Said said;
  std::optional<Replicas> replicas;
  std::string where_replicas;
  for (const auto& [key, value] : job.more) {
    if (Result<void> r = read_key(key, value, spec, said, replicas); !r)
      return std::move(r).error();
    if (key == "replicas") where_replicas = value.where;
  }
  if (replicas) {
    if ((said.min && spec.scaling.min != replicas->min) ||
        (said.max && spec.scaling.max != replicas->max))
      return Error::invalid(where_replicas + ": replicas and autoscaling: contradict each other")
          .with_hint("leave one out");
    spec.scaling.min = replicas->min;
    spec.scaling.max = replicas->max;
  }
  if (!said.target) spec.scaling.target_in_flight = spec.concurrency;
  if (Result<void> r = core::service::check(spec); !r)
    return std::move(r).error().within(job.where);
  service.job = std::move(job);
  return service;
}

// Each name of one service, each model of one.
Result<void> check_names(const std::vector<FileService>& services) {
  std::map<std::string, const FileService*> names;
  std::map<std::string, const FileService*> models;
  for (const FileService& service : services) {
    const ServiceSpec& spec = service.spec;
    if (const auto [known, fresh] = names.emplace(spec.name, &service); !fresh)
      return Error::invalid(service.job.where + ": there are two services " +
                            base::quote(spec.name))
          .with_evidence("the other is at " + known->second->job.where)
          .with_hint("give one of them another name");
    const std::vector<std::string> own = spec.models.empty() ? std::vector{spec.name} : spec.models;
    for (const std::string& model : own)
      if (const auto [known, fresh] = models.emplace(model, &service); !fresh)
        return Error::invalid(service.job.where + ": the model " + base::quote(model) +
                              " belongs to " + known->second->spec.name + " already")
            .with_hint("a model is of one service");
  }
  return {};
}

}  // namespace

Result<ServiceFile> parse_service_file(std::string_view text, const std::string& path) {
  std::vector<std::pair<std::string, FileValue>> of_file;
  Result<std::vector<FileJob>> entries =
      parse_service_entries(text, path, kKeys, kFileKeys, of_file);
  if (!entries) return std::move(entries).error();
  ServiceFile file;
  for (const auto& [key, value] : of_file) {
    std::optional<Bytes>& field = key == "room" ? file.room : file.swap_rate;
    if (Result<void> r = put<Bytes>(bytes_of, key, value, field); !r) return std::move(r).error();
  }
  for (FileJob& entry : *entries) {
    Result<FileService> service = read_service(std::move(entry));
    if (!service) return std::move(service).error();
    file.services.push_back(*std::move(service));
  }
  if (Result<void> r = check_names(file.services); !r) return std::move(r).error();
  return file;
}

}  // namespace mete::cli
