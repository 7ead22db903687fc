// SPDX-License-Identifier: Apache-2.0
// The figures for Prometheus in its text format (version 0.0.4). Pure. An unknown figure has no
// sample. Jobs appear by number and user, never by name or command: every user who can reach the
// address may read this. (The label is job_id: Prometheus itself calls the target `job`.) Jobs
// beyond `most_jobs` are summed up as "other", so that the number of series is bounded.
// docs/guide/metrics.md has every name.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "engine/health.h"
#include "wire/cards.h"

namespace mete::serve {

inline constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

struct Figures {
  std::string version;
  std::string mode;
  std::string driver;     // its version; "": not known
  bool readable = false;  // the cards were read, and not long ago
  bool settled = true;    // false: what is known about cards and jobs may yet be undone
  std::vector<wire::CardView> cards;

  struct Job {
    std::string id;
    std::string user;
    std::optional<Bytes> cap;  // absent: no GPU
    std::optional<Bytes> used;
    std::optional<Bytes> peak;
    double wait_s = 0;
    std::optional<double> idle_s;
    std::uint64_t ooms = 0;  // attempts that ended at the cap
  };
  std::vector<Job> jobs;  // jobs that hold a grant, by number
  std::size_t most_jobs = 0;

  std::map<std::string, std::uint64_t> states;  // of jobs that have not ended
  std::uint64_t escaped = 0;                    // jobs in `states` with memory outside their meter
  std::map<std::string, std::uint64_t> depth;   // length of the queue, by reason
  std::optional<double> oldest_wait_s;
  std::uint64_t events = 0;  // ever recorded

  engine::Health health;
  double uptime_s = 0;
  bool disk_full = false;
  std::uint64_t helper_restarts = 0;
  std::size_t connections = 0;
  std::size_t viewers = 0;
  std::size_t waiting = 0;  // requests and other work not yet served

  // How long the daemon spent on single tasks, during which nothing else was served.
  struct Turns {
    engine::Histogram all;
    seam::Nanoseconds longest{};
    seam::Nanoseconds longest_computed{};  // by processor time
  };
  Turns turns;
};

std::string metrics_text(const Figures& figures);

// The text format itself: a family with its HELP and TYPE, then its samples.
class MetricsText {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

  // A family without samples is not written.
  void family(std::string_view name, std::string_view type, std::string_view help);
  void sample(const Labels& labels, double value) { put("", labels, value); }
  void sample(const Labels& labels, std::optional<Bytes> bytes) {
    if (bytes) put("", labels, static_cast<double>(bytes->count()));
  }
  // All samples of a histogram.
  void histogram(const engine::Histogram& histogram);

  std::string take() { return std::move(out_); }

 private:
  void put(std::string_view suffix, const Labels& labels, double value);

  std::string out_;
  std::string name_;
  std::string head_;  // HELP and TYPE, not yet written
};

}  // namespace mete::serve
