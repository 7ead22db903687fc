// SPDX-License-Identifier: Apache-2.0
// See routes.h.
#include "serve/routes.h"

#include <optional>

#include "serve/parts.h"

namespace mete::serve {

namespace {

// A handler that calls this function of this part.
template <auto part, auto function>
void to(Parts& parts, Call& call) {
  (parts.*part.*function)(call);
}

constexpr auto kNothing = Needs::kNothing;
constexpr auto kCards = Needs::kCards;
constexpr auto kSmall = AnswerSize::kSmall;
constexpr auto kLarge = AnswerSize::kLarge;
using Change = core::ChangeSweep::Kind;

// clang-format off
constexpr Route kRoutes[] = {
    {"GET", "/v1/version", kNothing, kSmall, Who::kEveryone, to<&Parts::status, &DaemonStatus::get_version>},
    {"GET", "/v1/daemon", kNothing, kSmall, Who::kEveryone, to<&Parts::status, &DaemonStatus::get>},
    {"POST", "/v1/daemon/stop", kNothing, kSmall, Who::kDaemonUser, to<&Parts::status, &DaemonStatus::stop>},
    {"POST", "/v1/daemon/reload", kNothing, kSmall, Who::kDaemonUser, to<&Parts::status, &DaemonStatus::reload>},
    {"POST", "/v1/daemon/backup", kNothing, kSmall, Who::kDaemonUser, to<&Parts::status, &DaemonStatus::backup>},

    {"GET", "/v1/cards", kCards, kSmall, Who::kEveryone, to<&Parts::cards, &Cards::get>},
    {"POST", "/v1/cards/{card}/drain", kCards, kSmall, Who::kAdmin, to<&Parts::cards, &Cards::drain>},
    {"POST", "/v1/cards/{card}/undrain", kCards, kSmall, Who::kAdmin, to<&Parts::cards, &Cards::undrain>},

    {"GET", "/v1/jobs", kNothing, kLarge, Who::kEveryone, to<&Parts::jobs, &Jobs::list>},
    {"POST", "/v1/jobs", kCards, kSmall, Who::kEveryone, to<&Parts::jobs, &Jobs::post>},
    {"POST", "/v1/try", kCards, kSmall, Who::kEveryone, to<&Parts::jobs, &Jobs::try_out>},
    {"GET", "/v1/jobs/{id}/show", kCards, kSmall, Who::kOwner, to<&Parts::jobs, &Jobs::show>},
    {"GET", "/v1/jobs/{id}/explain", kCards, kSmall, Who::kSight, to<&Parts::jobs, &Jobs::explain>},
    {"GET", "/v1/jobs/{id}/wait", kCards, kLarge, Who::kOwner, to<&Parts::jobs, &Jobs::wait>},
    {"DELETE", "/v1/jobs/{id}", kNothing, kSmall, Who::kOwner, to<&Parts::jobs, &Jobs::change<core::Cancel>>},
    {"POST", "/v1/jobs/{id}/hold", kNothing, kSmall, Who::kOwner, to<&Parts::jobs, &Jobs::change<core::Hold>>},
    {"POST", "/v1/jobs/{id}/release", kNothing, kSmall, Who::kOwner, to<&Parts::jobs, &Jobs::change<core::Release>>},
    {"POST", "/v1/jobs/{id}/requeue", kNothing, kSmall, Who::kOwner, to<&Parts::jobs, &Jobs::change<core::Requeue>>},
    {"POST", "/v1/jobs/{id}/park", kNothing, kSmall, Who::kOwner, to<&Parts::jobs, &Jobs::park>},
    {"POST", "/v1/jobs/{id}/unpark", kNothing, kSmall, Who::kOwner, to<&Parts::jobs, &Jobs::change<core::UnparkJob>>},
    {"POST", "/v1/jobs/{id}/priority", kNothing, kSmall, Who::kOwner, to<&Parts::jobs, &Jobs::set_priority>},

    {"GET", "/v1/jobs/{id}", kCards, kSmall, Who::kOwner, to<&Parts::runners, &Runners::get>},
    {"POST", "/v1/jobs/{id}/started", kNothing, kSmall, Who::kRunner, to<&Parts::runners, &Runners::started>},
    {"POST", "/v1/jobs/{id}/ended", kNothing, kSmall, Who::kRunner, to<&Parts::runners, &Runners::ended>},
    {"POST", "/v1/jobs/{id}/parked", kNothing, kSmall, Who::kRunner, to<&Parts::runners, &Runners::parked>},
    {"POST", "/v1/jobs/{id}/grow", kNothing, kSmall, Who::kRunner, to<&Parts::runners, &Runners::grow>},

    {"POST", "/v1/jobs/{id}/metrics", kNothing, kSmall, Who::kRunner, to<&Parts::runners, &Runners::metrics>},

    {"GET", "/v1/sweeps", kNothing, kLarge, Who::kEveryone, to<&Parts::sweeps, &Sweeps::list>},
    {"POST", "/v1/sweeps", kCards, kSmall, Who::kEveryone, to<&Parts::sweeps, &Sweeps::post>},
    {"GET", "/v1/sweeps/{sweep}", kNothing, kLarge, Who::kOwner, to<&Parts::sweeps, &Sweeps::get>},
    {"DELETE", "/v1/sweeps/{sweep}", kNothing, kSmall, Who::kOwner, to<&Parts::sweeps, &Sweeps::change<Change::kRemove>>},
    {"POST", "/v1/sweeps/{sweep}/pause", kNothing, kSmall, Who::kOwner, to<&Parts::sweeps, &Sweeps::change<Change::kPause>>},
    {"POST", "/v1/sweeps/{sweep}/resume", kNothing, kSmall, Who::kOwner, to<&Parts::sweeps, &Sweeps::change<Change::kResume>>},
    {"POST", "/v1/sweeps/{sweep}/stop", kNothing, kSmall, Who::kOwner, to<&Parts::sweeps, &Sweeps::change<Change::kStop>>},
    {"POST", "/v1/sweeps/{sweep}/extend", kNothing, kSmall, Who::kOwner, to<&Parts::sweeps, &Sweeps::extend>},

    {"GET", "/v1/events", kNothing, kLarge, Who::kEveryone, to<&Parts::events, &Events::get>},
    {"GET", "/v1/quotas", kNothing, kSmall, Who::kEveryone, to<&Parts::rules, &QueueRules::get_quotas>},
    {"POST", "/v1/quotas", kNothing, kSmall, Who::kAdmin, to<&Parts::rules, &QueueRules::set_quota>},
    {"GET", "/v1/reservations", kNothing, kSmall, Who::kEveryone, to<&Parts::rules, &QueueRules::get_reservations>},
    {"POST", "/v1/reservations", kCards, kSmall, Who::kAdmin, to<&Parts::rules, &QueueRules::reserve>},
    {"DELETE", "/v1/reservations/{reservation}", kNothing, kSmall, Who::kOwner, to<&Parts::rules, &QueueRules::unreserve>},
    {"GET", "/v1/stats", kNothing, kSmall, Who::kEveryone, to<&Parts::rules, &QueueRules::get_stats>},

    {"GET", "/v1/snapshot", kCards, kLarge, Who::kEveryone, to<&Parts::sight, &Sight::get_snapshot>},
    {"GET", "/metrics", kNothing, kLarge, Who::kEveryone, to<&Parts::sight, &Sight::get_metrics>},
};
// clang-format on

// The part of the path in place of the braces, "" if the route has none; nullopt: another path.
std::optional<std::string_view> match(std::string_view route, std::string_view path) {
  const std::size_t open = route.find('{');
  if (open == route.npos) return route == path ? std::optional<std::string_view>("") : std::nullopt;
  const std::string_view before = route.substr(0, open);
  const std::string_view after = route.substr(route.find('}') + 1);
  if (path.size() < before.size() + after.size() || !path.starts_with(before) ||
      !path.ends_with(after))
    return std::nullopt;
  const std::string_view name =
      path.substr(before.size(), path.size() - before.size() - after.size());
  return name.find('/') == name.npos ? std::optional(name) : std::nullopt;
}

}  // namespace

std::span<const Route> routes() { return kRoutes; }

const Route* find_route(std::string_view method, std::string_view path) {
  for (const Route& route : kRoutes)
    if (route.method == method && match(route.path, path)) return &route;
  return nullptr;
}

std::string_view name_in(const Route& route, std::string_view path) {
  return match(route.path, path).value_or("");
}

}  // namespace mete::serve
