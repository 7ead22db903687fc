// SPDX-License-Identifier: Apache-2.0
// `mete stats [eta]`: the numbers of jobs, their waits, use per user, and whether the daemon's
// forecasts held; with --idle, what a policy for idle jobs would have done. Starts no daemon.
#include <algorithm>
#include <array>

#include "base/moment.h"
#include "base/text.h"
#include "base/time_words.h"
#include "cli/idle_report.h"
#include "cli/stats_text.h"
#include "cli/subword.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "config/config.h"
#include "runner/daemon_client.h"
#include "seam/clock.h"
#include "wire/event.h"
#include "wire/queue.h"

namespace mete::cli {

namespace {

constexpr std::array kStatsOptions{
    OptionSpec{"--idle", "", "show what a policy for idle jobs would have done; change nothing"},
    OptionSpec{"--since", "TIME", "with --idle: start of the period (default: 7d)"},
    OptionSpec{"--warn", "TIME",
               "with --idle: warn after this time, such as 1h (default: as configured)"},
    OptionSpec{"--tell", "TIME", "with --idle: notify the user after this time"},
    OptionSpec{"--park", "TIME", "with --idle: park jobs that can be parked after this time"},
    OptionSpec{"--stop", "TIME", "with --idle: end the other jobs after this time"},
    kOutputOption};

// The policy from the options, else from the configuration.
Result<IdlePolicy> policy_of(const Parsed& parsed) {
  const Result<config::Config> config =
      config::load_config(config::ConfigPlaces::from_environment(true));
  if (!config) return config.error();
  IdlePolicy policy{config->idle_warn_s.value, config->idle_notify_s.value,
                    config->park_idle_s.value, config->idle_stop_s.value};
  for (const auto& [option, seconds] :
       {std::pair("--warn", &policy.warn_s), std::pair("--tell", &policy.notify_s),
        std::pair("--park", &policy.park_s), std::pair("--stop", &policy.stop_s)}) {
    const std::string* text = parsed.find(option);
    if (text == nullptr) continue;
    const Result<std::uint64_t> value = base::parse_duration(*text);
    if (!value)
      return Error::invalid(std::string(option) + " " + value.error().message)
          .with_hint(std::string(option) + " 2h");
    *seconds = *value;
  }
  if (policy.warn_s + policy.notify_s + policy.park_s + policy.stop_s == 0)
    return Error::invalid("there is no policy for idle jobs to try")
        .with_hint("mete stats --idle --park 30m --stop 8h");
  return policy;
}

// The whole log: a running job may have been submitted long ago.
Result<std::vector<core::Event>> read_log(runner::DaemonClient& client) {
  std::vector<core::Event> events;
  for (std::uint64_t from = 1;;) {
    const Result<std::string> body = client.call("GET", "/v1/events?from=" + std::to_string(from));
    if (!body) return body.error();
    const Result<wire::EventsDocument> page = wire::decode_events(*body);
    if (!page) return page.error();
    for (const wire::EventDocument& event : page->events)
      if (Result<core::Happened> what = wire::decode_event(event))
        events.push_back({event.seq, event.at, *std::move(what)});
    if (page->next <= from) return events;
    from = page->next;
  }
}

int run_idle(const Parsed& parsed, const Output& output) {
  const Result<IdlePolicy> policy = policy_of(parsed);
  if (!policy) return output.fail(policy.error(), base::kExitUsage);
  const WallTime now = seam::system_clock().wall();
  const std::string* since = parsed.find("--since");
  const Result<WallTime> from = parse_since(since == nullptr ? "7d" : *since, now);
  if (!from) return output.fail(Error(from.error()).within("--since"), base::kExitUsage);
  Result<runner::DaemonClient> client = runner::DaemonClient::open_for_jobs();
  if (!client) return output.fail(client.error(), exit_code_of_failure(client.error().code));
  const Result<std::vector<core::Event>> events = read_log(*client);
  if (!events) return output.fail(events.error());
  const WallTime first = events->empty() ? now : events->front().at;
  const IdleReport report = idle_report(*events, *policy, std::max(*from, first), now);
  output.data(output.json() ? idle_json(report) : idle_text(report, stdout_width()));
  return kExitOk;
}

int run_stats(const Parsed& parsed, const Output& output) {
  if (parsed.has("--idle") && parsed.rest.empty()) return run_idle(parsed, output);
  for (const char* option : {"--idle", "--since", "--warn", "--tell", "--park", "--stop"})
    if (parsed.has(option))
      return output.fail(Error::invalid(std::string(option) + " is for mete stats --idle")
                             .with_hint("mete stats --idle --stop 8h"));
  const bool eta = !parsed.rest.empty();
  if (eta)
    if (const Result<std::string> word = sub_word("stats", parsed.rest, {"eta"}); !word)
      return output.fail(word.error());
  if (const Result<void> r = no_more_than(1, parsed.rest); !r) return output.fail(r.error());
  Result<runner::DaemonClient> client = runner::DaemonClient::open_for_jobs();
  if (!client) return output.fail(client.error(), exit_code_of_failure(client.error().code));
  const Result<std::string> body = client->call("GET", eta ? "/v1/stats?what=eta" : "/v1/stats");
  const Result<wire::StatsDocument> document = body ? wire::decode_stats(*body) : body.error();
  if (!document) return output.fail(document.error());
  if (output.json())
    output.data(*body);
  else
    output.data(eta ? eta_text(document->forecasts) : stats_text(*document));
  return kExitOk;
}

}  // namespace

const Verb kStatsVerb{
    "stats",
    "show statistics of jobs, waits, users and forecasts",
    "mete stats [eta|--idle] [options]",
    "mete stats\n"
    "mete stats eta                           # how good are the forecasts?\n"
    "mete stats --idle --park 30m --stop 8h   # what would this policy free?",
    "Covers the jobs that the daemon still remembers. GIB-HOURS is the GPU memory that each user "
    "had; old use counts less, and the user with the smallest value starts next. eta shows how "
    "many jobs started by the time that was forecast with 80% probability. --idle shows which jobs "
    "did nothing on their cards, and what a policy would have done and freed; the policy is that "
    "of the configuration (idle.warn_s, idle.notify_s, park.idle_s, idle.stop_s) or of the "
    "options.",
    kStatsOptions,
    Rest::kWords,
    run_stats,
    {"eta"},
};

}  // namespace mete::cli
