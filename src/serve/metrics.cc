// SPDX-License-Identifier: Apache-2.0
// See metrics.h. metrics_text() writes the families of the daemon, of the cards, of the queue and
// of the jobs, each by a put function. A family's HELP and TYPE wait in head_ until its first
// sample, so that a family without samples leaves nothing. bounded() sums up the jobs beyond the
// limit.
#include "serve/metrics.h"

#include <algorithm>
#include <charconv>
#include <chrono>

namespace mete::serve {

namespace {

using Labels = MetricsText::Labels;

constexpr std::string_view kGauge = "gauge";
constexpr std::string_view kCounter = "counter";

void append_label(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == '\\' || c == '"')
      (out += '\\') += c;
    else if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
}

// Never with an exponent: a bound that is written differently makes another series.
void append_number(std::string& out, double value) {
  char digits[352];  // enough for the smallest and the largest double
  const auto end = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed);
  out.append(digits, end.ptr);
}

// ---- cards -------------------------------------------------------------------------------------

void put_cards(MetricsText& text, const Figures& figures) {
  std::vector<std::string> indexes;
  for (const wire::CardView& card : figures.cards) indexes.push_back(std::to_string(card.index));
  // One family with a sample per card that has the figure.
  const auto of_cards = [&](std::string_view name, std::string_view help, const auto& figure) {
    text.family(name, kGauge, help);
    for (std::size_t i = 0; i < figures.cards.size(); ++i)
      if (const auto value = figure(figures.cards[i]))
        text.sample({{"card", indexes[i]}, {"uuid", figures.cards[i].uuid}}, *value);
  };
  const auto of_bytes = [&](std::string_view name, std::string_view help, const auto& figure) {
    of_cards(name, help, [&](const wire::CardView& card) -> std::optional<double> {
      const std::optional<Bytes> bytes = figure(card);
      return bytes ? std::optional(static_cast<double>(bytes->count())) : std::nullopt;
    });
  };
  using View = wire::CardView;
  text.family("mete_card_info", kGauge, "What card this is; always 1.");
  for (std::size_t i = 0; i < figures.cards.size(); ++i)
    text.sample({{"card", indexes[i]},
                 {"uuid", figures.cards[i].uuid},
                 {"name", figures.cards[i].name},
                 {"type", figures.cards[i].type},
                 {"driver", figures.driver}},
                1);
  text.family("mete_card_state", kGauge, "1 for the state that the card is in, 0 for the others.");
  for (std::size_t i = 0; i < figures.cards.size(); ++i)
    for (const std::string_view state : {"ok", "drained", "lost"})
      text.sample({{"card", indexes[i]}, {"uuid", figures.cards[i].uuid}, {"state", state}},
                  figures.cards[i].state == state ? 1 : 0);
  of_bytes("mete_card_memory_total_bytes", "Memory of the physical card.",
           [](const View& card) { return card.total; });
  of_bytes("mete_card_memory_capacity_bytes", "What may be granted on the card when it is empty.",
           [](const View& card) { return card.capacity; });
  of_bytes("mete_card_memory_granted_bytes", "What jobs have reserved on the card.",
           [](const View& card) { return std::optional(card.granted); });
  of_bytes("mete_card_memory_grantable_bytes", "What a new job could get on the card now.",
           [](const View& card) { return std::optional(card.grantable); });
  of_bytes("mete_card_memory_used_bytes", "What anybody uses of the card, by the driver.",
           [](const View& card) { return card.used; });
  of_bytes("mete_card_memory_foreign_bytes", "What is in use on the card outside of mete.",
           [](const View& card) { return card.foreign; });
  of_bytes("mete_card_memory_over_bytes", "What jobs hold on the card beyond their grants.",
           [](const View& card) { return std::optional(card.over); });
  of_cards("mete_card_utilisation_ratio", "How busy the card is, by the driver: 0 to 1.",
           [](const View& card) -> std::optional<double> {
             if (!card.utilisation_pct) return std::nullopt;
             return *card.utilisation_pct / 100.0;
           });
  of_cards("mete_card_temperature_celsius", "Temperature of the card.",
           [](const View& card) -> std::optional<double> { return card.temperature_c; });
  of_cards("mete_card_power_watts", "Power that the card draws.",
           [](const View& card) { return card.power_w; });
  of_cards("mete_card_power_limit_watts", "Power that the card may draw.",
           [](const View& card) { return card.power_limit_w; });
  of_cards("mete_card_reading_age_seconds", "How old the readings of the card are.",
           [](const View& card) { return card.reading_age_s; });
}

// ---- jobs --------------------------------------------------------------------------------------

template <class Number>
void add(std::optional<Number>& sum, const std::optional<Number>& more) {
  if (more) sum = sum.value_or(Number()) + *more;
}

// The first `most_jobs` jobs, and one that stands for all others.
std::vector<Figures::Job> bounded(const Figures& figures) {
  const std::size_t own = std::min(figures.jobs.size(), figures.most_jobs);
  std::vector<Figures::Job> jobs(figures.jobs.begin(),
                                 figures.jobs.begin() + static_cast<std::ptrdiff_t>(own));
  if (own == figures.jobs.size()) return jobs;
  Figures::Job others;
  others.id = others.user = "other";
  for (std::size_t i = own; i < figures.jobs.size(); ++i) {
    const Figures::Job& job = figures.jobs[i];
    add(others.cap, job.cap);
    add(others.used, job.used);
    add(others.peak, job.peak);
    add(others.idle_s, job.idle_s);
    others.wait_s += job.wait_s;
    others.ooms += job.ooms;
  }
  jobs.push_back(others);
  return jobs;
}

void put_jobs(MetricsText& text, const Figures& figures) {
  const std::vector<Figures::Job> jobs = bounded(figures);
  const auto of_jobs = [&](std::string_view name, std::string_view type, std::string_view help,
                           const auto& figure) {
    text.family(name, type, help);
    for (const Figures::Job& job : jobs)
      text.sample({{"job_id", job.id}, {"user", job.user}}, figure(job));
  };
  using Job = Figures::Job;
  of_jobs("mete_job_memory_used_bytes", kGauge, "What the job uses on its cards, by the driver.",
          [](const Job& job) { return job.used; });
  of_jobs("mete_job_memory_cap_bytes", kGauge, "What the job may use on its cards: its grant.",
          [](const Job& job) { return job.cap; });
  of_jobs("mete_job_memory_peak_bytes", kGauge,
          "The most that this attempt of the job has held, by its meter or as it was read.",
          [](const Job& job) { return job.peak; });
  of_jobs("mete_job_wait_seconds", kGauge, "How long the job waited before it got its cards.",
          [](const Job& job) { return job.wait_s; });
  of_jobs("mete_job_gpu_oom_total", kCounter, "Attempts of the job that its cap ended.",
          [](const Job& job) { return static_cast<double>(job.ooms); });
  text.family("mete_job_idle_seconds", kGauge, "How long the job has done nothing on its cards.");
  for (const Job& job : jobs)
    if (job.idle_s) text.sample({{"job_id", job.id}, {"user", job.user}}, *job.idle_s);
  text.family("mete_jobs", kGauge, "Jobs that have not ended, by state.");
  for (const char* state :
       {"pending", "starting", "running", "parking", "parked", "unparking", "stopping"}) {
    const auto count = figures.states.find(state);
    text.sample({{"state", state}},
                count == figures.states.end() ? 0 : static_cast<double>(count->second));
  }
  text.family("mete_jobs_escaped", kGauge,
              "Jobs that were seen to hold memory outside of their meter, in this attempt.");
  text.sample({}, static_cast<double>(figures.escaped));
  text.family("mete_jobs_ended_total", kCounter,
              "Attempts of jobs that ended since the daemon started, by outcome.");
  for (int i = 0; i < core::kOutcomes; ++i) {
    const auto outcome = static_cast<core::Outcome>(i);
    const auto count = figures.health.ended.find(outcome);
    text.sample({{"outcome", to_string(outcome)}},
                count == figures.health.ended.end() ? 0 : static_cast<double>(count->second));
  }
}

void put_queue(MetricsText& text, const Figures& figures) {
  text.family("mete_queue_jobs", kGauge, "Jobs that wait, by what they wait for.");
  for (int i = 0; i <= static_cast<int>(core::Reason::kRetry); ++i) {
    const std::string reason(to_string(static_cast<core::Reason>(i)));
    const auto count = figures.depth.find(reason);
    text.sample({{"reason", reason}},
                count == figures.depth.end() ? 0 : static_cast<double>(count->second));
  }
  text.family("mete_queue_oldest_wait_seconds", kGauge,
              "How long the job has waited that waits the longest.");
  if (figures.oldest_wait_s) text.sample({}, *figures.oldest_wait_s);
}

// ---- the daemon --------------------------------------------------------------------------------

void put_daemon(MetricsText& text, const Figures& figures) {
  const auto one = [&](std::string_view name, std::string_view type, std::string_view help,
                       double value) {
    text.family(name, type, help);
    text.sample({}, value);
  };
  text.family("mete_build_info", kGauge, "Version of the daemon; always 1.");
  text.sample({{"version", figures.version}, {"mode", figures.mode}}, 1);
  one("mete_daemon_uptime_seconds", kGauge, "How long the daemon has run.", figures.uptime_s);
  one("mete_daemon_turns_total", kCounter, "Turns of the engine.",
      static_cast<double>(figures.health.turns));
  one("mete_daemon_events_total", kCounter,
      "Events in the log, of all daemons before this one too.",
      static_cast<double>(figures.events));
  one("mete_daemon_disk_full", kGauge, "1 while nothing can be recorded and new jobs are refused.",
      figures.disk_full ? 1 : 0);
  one("mete_daemon_cards_readable", kGauge, "1 while the driver answers.",
      figures.readable ? 1 : 0);
  one("mete_daemon_card_helper_restarts_total", kCounter,
      "How often the process that asks the driver had to be started again.",
      static_cast<double>(figures.helper_restarts));
  one("mete_daemon_connections", kGauge, "Open connections to the daemon's socket.",
      static_cast<double>(figures.connections));
  one("mete_daemon_viewers", kGauge, "Open streams of snapshots.",
      static_cast<double>(figures.viewers));
  one("mete_daemon_requests_waiting", kGauge, "Requests and other work whose turn has not come.",
      static_cast<double>(figures.waiting));
  const auto seconds = [](seam::Nanoseconds time) {
    return std::chrono::duration<double>(time).count();
  };
  one("mete_turn_longest_seconds", kGauge, "The longest turn since the daemon started.",
      seconds(figures.turns.longest));
  one("mete_turn_longest_cpu_seconds", kGauge,
      "The most processor time that a turn has taken since the daemon started.",
      seconds(figures.turns.longest_computed));
  text.family("mete_turn_duration_seconds", "histogram",
              "How long the daemon was at one thing, and served nothing else.");
  text.histogram(figures.turns.all);
  text.family("mete_decision_duration_seconds", "histogram",
              "From a request to its answer, what it decides being on disk.");
  text.histogram(figures.health.decisions);
  text.family("mete_store_commit_duration_seconds", "histogram", "Until a batch is on disk.");
  text.histogram(figures.health.commits);
}

}  // namespace

void MetricsText::family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  head_ = "# HELP ";
  (((head_ += name) += ' ') += help) += "\n# TYPE ";
  (((head_ += name) += ' ') += type) += '\n';
}

void MetricsText::put(std::string_view suffix, const Labels& labels, double value) {
  out_ += std::exchange(head_, {});
  (out_ += name_) += suffix;
  char before = '{';
  for (const auto& [name, text] : labels) {
    ((out_ += before) += name) += "=\"";
    append_label(out_, text);
    out_ += '"';
    before = ',';
  }
  if (!labels.empty()) out_ += '}';
  out_ += ' ';
  append_number(out_, value);
  out_ += '\n';
}

void MetricsText::histogram(const engine::Histogram& histogram) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
    count += histogram.counts[i];
    std::string bound = "+Inf";
    if (i < std::size(engine::Histogram::kBoundS)) {
      bound.clear();
      append_number(bound, engine::Histogram::kBoundS[i]);
    }
    put("_bucket", {{"le", bound}}, static_cast<double>(count));
  }
  put("_sum", {}, histogram.sum_s);
  put("_count", {}, static_cast<double>(count));
}

std::string metrics_text(const Figures& figures) {
  MetricsText text;
  put_daemon(text, figures);
  if (!figures.settled) return text.take();
  put_cards(text, figures);
  put_queue(text, figures);
  put_jobs(text, figures);
  return text.take();
}

}  // namespace mete::serve
