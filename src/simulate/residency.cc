// SPDX-License-Identifier: Apache-2.0
// See residency.h. TurnTaking::run() goes from event to event: a request arrives, an answer ends, a
// swap ends, or the policy wants to be asked again. After each it fills models that are awake with
// waiting requests up to their concurrency, and asks for the next swap. Times are microseconds.
#include "simulate/residency.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>

#include "base/text.h"
#include "core/service/residency.h"
#include "simulate/csv.h"

namespace mete::simulate {

namespace {

using core::service::Decision;
using core::service::Demand;
using core::service::Rest;
using core::service::Sleeper;

constexpr std::int64_t kUs = 1'000'000;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

class TurnTaking {
 public:
  TurnTaking(const std::vector<SimulatedModel>& models, Bytes room, Bytes swap_rate,
             const std::vector<ModelRequest>& requests)
      : models_(models),
        requests_(requests),
        free_{room},
        rate_(swap_rate),
        states_(models.size()) {
    for (const SimulatedModel& model : models_) {
      Sleeper one;
      one.needs = {{0, model.bytes}};
      one.always = model.always;
      one.priority = model.priority;
      one.max_wait_ms = model.max_wait_ms;
      one.wake_ms = copy_us(model.bytes) / 1000;
      if (model.always) {
        one.rest = Rest::kAwake;
        free_[0] -= model.bytes;
      }
      sleepers_.push_back(std::move(one));
    }
  }

  ResidencyFigures run() {
    while (next_request_ < requests_.size() || open_ > 0) {
      now_ = next_event();
      arrive();
      end_answers();
      if (swap_ends_ <= now_) end_swap();
      for (std::size_t i = 0; i < states_.size(); ++i) begin_answers(i);
      decide();
    }
    return figures();
  }

 private:
  struct Answer {
    std::size_t request = 0;
    std::int64_t left_us = 0;  // while paused
    std::int64_t ends_us = 0;
  };
  struct State {
    std::deque<std::size_t> waiting;
    std::vector<Answer> begun;
    std::int64_t paused_since_us = 0;
    Demand demand;
  };

  std::int64_t copy_us(Bytes bytes) const {
    return static_cast<std::int64_t>(static_cast<double>(bytes.count()) /
                                     static_cast<double>(rate_.count()) * kUs);
  }

  std::int64_t next_event() const {
    std::int64_t next = std::min(swap_ends_, again_us_);
    if (next_request_ < requests_.size()) next = std::min(next, requests_[next_request_].at_us);
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (sleepers_[i].rest != Rest::kAwake) continue;
      for (const Answer& answer : states_[i].begun) next = std::min(next, answer.ends_us);
    }
    return std::max(next, now_);
  }

  void arrive() {
    while (next_request_ < requests_.size() && requests_[next_request_].at_us <= now_) {
      State& state = states_[requests_[next_request_].model];
      state.waiting.push_back(next_request_++);
      state.demand.add(now_ / 1000);
      ++open_;
    }
  }

  void end_answers() {
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (sleepers_[i].rest != Rest::kAwake) continue;
      std::erase_if(states_[i].begun, [&](const Answer& answer) {
        if (answer.ends_us > now_) return false;
        const ModelRequest& request = requests_[answer.request];
        waits_us_.push_back(now_ - request.at_us - request.answer_us);
        sleepers_[i].used_at = now_ / 1000;
        --open_;
        return true;
      });
    }
  }

  void begin_answers(std::size_t i) {
    State& state = states_[i];
    if (sleepers_[i].rest != Rest::kAwake) return;
    while (!state.waiting.empty() && state.begun.size() < models_[i].concurrency) {
      const std::size_t request = state.waiting.front();
      state.waiting.pop_front();
      state.begun.push_back({request, 0, now_ + requests_[request].answer_us});
      sleepers_[i].used_at = now_ / 1000;
    }
  }

  void decide() {
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const State& state = states_[i];
      Sleeper& one = sleepers_[i];
      one.waiting = static_cast<std::uint32_t>(state.waiting.size());
      one.in_flight = static_cast<std::uint32_t>(state.begun.size());
      one.per_minute = state.demand.per_minute(now_ / 1000);
      std::int64_t since = kNever;
      if (!state.waiting.empty()) since = requests_[state.waiting.front()].at_us;
      if (!state.begun.empty() && one.rest != Rest::kAwake)
        since = std::min(since, state.paused_since_us);
      one.waits_since = since == kNever ? 0 : since / 1000;
    }
    const Decision decision = core::service::next_swap(sleepers_, free_, now_ / 1000);
    again_us_ = decision.again_ms ? std::max(now_ + 1, *decision.again_ms * 1000) : kNever;
    if (!decision.wake) return;
    Bytes out;
    for (const std::size_t i : decision.sleep) {
      out += models_[i].bytes;
      sleepers_[i].rest = Rest::kLeaving;
      states_[i].paused_since_us = now_;
      for (Answer& answer : states_[i].begun) answer.left_us = answer.ends_us - now_;
    }
    sleepers_[*decision.wake].rest = Rest::kWaking;
    swaps_ += decision.sleep.empty() ? 0 : 1;
    swap_ends_ = now_ + copy_us(std::max(out, models_[*decision.wake].bytes));
  }

  void end_swap() {
    swap_ends_ = kNever;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      Sleeper& one = sleepers_[i];
      if (one.rest == Rest::kLeaving) {
        one.rest = Rest::kAsleep;
        free_[0] += models_[i].bytes;
      }
    }
    for (std::size_t i = 0; i < states_.size(); ++i) {
      Sleeper& one = sleepers_[i];
      if (one.rest != Rest::kWaking) continue;
      one.rest = Rest::kAwake;
      one.awake_since = now_ / 1000;
      free_[0] -= models_[i].bytes;
      for (Answer& answer : states_[i].begun) answer.ends_us = now_ + answer.left_us;
    }
  }

  ResidencyFigures figures() {
    ResidencyFigures figures;
    figures.requests = waits_us_.size();
    figures.swaps = swaps_;
    if (waits_us_.empty()) return figures;
    std::sort(waits_us_.begin(), waits_us_.end());
    double sum = 0;
    for (const std::int64_t wait : waits_us_) sum += static_cast<double>(wait);
    figures.mean_wait_s = sum / static_cast<double>(waits_us_.size()) / kUs;
    const std::size_t at = (waits_us_.size() * 99 + 99) / 100 - 1;
    figures.p99_wait_s = static_cast<double>(waits_us_[at]) / kUs;
    figures.max_wait_s = static_cast<double>(waits_us_.back()) / kUs;
    return figures;
  }

  const std::vector<SimulatedModel>& models_;
  const std::vector<ModelRequest>& requests_;
  std::vector<Bytes> free_;
  Bytes rate_;
  std::vector<State> states_;
  std::vector<Sleeper> sleepers_;
  std::vector<std::int64_t> waits_us_;
  std::int64_t now_ = 0;
  std::int64_t swap_ends_ = kNever;
  std::int64_t again_us_ = kNever;
  std::size_t next_request_ = 0;
  std::size_t open_ = 0;  // requests that have no answer yet
  std::uint64_t swaps_ = 0;
};

// "12", "0.3", "1.000001": microseconds.
Result<std::int64_t> microseconds(const Csv& csv, std::size_t column) {
  const std::string_view text = base::trim(csv.field(column));
  const std::size_t point = text.find('.');
  std::string decimals(point == std::string_view::npos ? "" : text.substr(point + 1));
  const Result<std::uint64_t> whole = base::parse_uint(text.substr(0, point));
  const bool plain = point == std::string_view::npos || !decimals.empty();
  decimals.resize(std::max<std::size_t>(decimals.size(), 6), '0');
  const Result<std::uint64_t> part = base::parse_uint(decimals.substr(0, 6));
  const bool digits =
      std::all_of(decimals.begin(), decimals.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!whole || *whole > 1'000'000'000 || !part || !plain || !digits)
    return csv.error(csv.names()[column] + " must be seconds, such as 0.3, not " +
                     base::quote(csv.field(column)));
  return static_cast<std::int64_t>(*whole) * kUs + static_cast<std::int64_t>(*part);
}

}  // namespace

Result<std::vector<ModelRequest>> parse_model_requests(std::string_view text,
                                                       const std::string& path,
                                                       const std::vector<SimulatedModel>& models) {
  Result<Csv> csv = Csv::open(text, path);
  if (!csv) return csv.error();
  const Result<std::size_t> time = csv->column("t_s");
  if (!time) return time.error();
  const Result<std::size_t> name = csv->column("model");
  if (!name) return name.error();
  const Result<std::size_t> answer = csv->column("answer_s");
  if (!answer) return answer.error();
  std::vector<std::pair<std::string_view, std::size_t>> known;
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < models.size(); ++i) {
    if (models[i].aliases.empty()) known.emplace_back(models[i].name, i);
    for (const std::string& alias : models[i].aliases) known.emplace_back(alias, i);
  }
  std::sort(known.begin(), known.end());
  for (const auto& [model, i] : known) names.push_back(model);
  std::vector<ModelRequest> requests;
  for (;;) {
    const Result<bool> more = csv->next();
    if (!more) return more.error();
    if (!*more) break;
    const std::string_view wanted = base::trim(csv->field(*name));
    const auto found = std::lower_bound(known.begin(), known.end(),
                                        std::pair<std::string_view, std::size_t>(wanted, 0));
    if (found == known.end() || found->first != wanted) {
      const std::string_view near = base::nearest(wanted, names);
      return csv->error("there is no model " + base::quote(wanted))
          .with_hint(near.empty() ? "the file of --models names them"
                                  : "did you mean " + std::string(near) + "?");
    }
    const Result<std::int64_t> at = microseconds(*csv, *time);
    if (!at) return at.error();
    const Result<std::int64_t> takes = microseconds(*csv, *answer);
    if (!takes) return takes.error();
    requests.push_back({*at, found->second, *takes});
  }
  std::stable_sort(requests.begin(), requests.end(),
                   [](const auto& a, const auto& b) { return a.at_us < b.at_us; });
  return requests;
}

Result<ResidencyFigures> simulate_residency(const std::vector<SimulatedModel>& models, Bytes room,
                                            Bytes swap_rate,
                                            const std::vector<ModelRequest>& requests) {
  Bytes always;
  Bytes largest;
  const SimulatedModel* larger = nullptr;
  for (const SimulatedModel& model : models) {
    if (model.always) always += model.bytes;
    if (!model.always && model.bytes > largest) {
      largest = model.bytes;
      larger = &model;
    }
  }
  if (always > room)
    return Error::infeasible("the models that are always resident do not fit together")
        .with_evidence("they take " + to_string(always) + ", there is room for " + to_string(room));
  if (larger != nullptr && largest + always > room)
    return Error::infeasible("the model " + larger->name + " never fits")
        .with_evidence("it takes " + to_string(largest) + ", there is room for " +
                       to_string(room - always) +
                       (always.is_zero() ? "" : " beside the models that are always resident"));
  return TurnTaking(models, room, swap_rate, requests).run();
}

}  // namespace mete::simulate
