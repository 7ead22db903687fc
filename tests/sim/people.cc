// SPDX-License-Identifier: Apache-2.0
// See people.h. Each function draws one input by dice: a run, a submit with random options, a
// change of a recent job, an order of an administrator. The customs of a phase decide which options
// are frequent, so that rare combinations occur together.
#include "tests/sim/people.h"

#include <algorithm>
#include <iterator>

namespace mete::sim {

using core::JobId;
using core::JobState;

namespace {

constexpr std::uint32_t kFirstUser = 1000;
constexpr std::uint32_t kUsers = 4;

std::string name_of(std::uint32_t uid) { return "user" + std::to_string(uid); }

}  // namespace

WallTime People::from_now(std::int64_t low_s, std::int64_t high_s) {
  const auto span = static_cast<std::uint64_t>((high_s - low_s) * 1000);
  return {clock_.wall().ms + low_s * 1000 + static_cast<std::int64_t>(dice_.below(span))};
}

void People::change_customs() {
  customs_.users = dice_.percent(40) ? 1 : dice_.small(2, kUsers);
  customs_.quotas = dice_.percent(50);
  customs_.reservations = dice_.percent(50);
  customs_.priorities = dice_.percent(70);
  customs_.parking = dice_.percent(65);
}

std::string People::some_user() {
  return name_of(kFirstUser + static_cast<std::uint32_t>(dice_.below(customs_.users)));
}

// ---- jobs --------------------------------------------------------------------------------------

core::JobSpec People::a_spec() {
  core::JobSpec spec;
  spec.uid = kFirstUser + static_cast<std::uint32_t>(dice_.below(customs_.users));
  spec.user = name_of(spec.uid);
  spec.name = dice_.percent(5) ? "odd \"name\"\n\xc3\xa9" : dice_.percent(60) ? "train" : "eval";
  spec.command = {spec.name, "--seed", std::to_string(dice_.below(1000))};
  spec.folder = "/home/" + spec.user;
  spec.request = cards_.request();
  if (dice_.percent(40)) spec.time_s = dice_.between(1, dice_.percent(80) ? 60 : 1000);
  say_who_gives_way(spec);
  return spec;
}

void People::say_who_gives_way(core::JobSpec& spec) {
  core::Request& request = spec.request;
  const bool grows = request.gpu && std::holds_alternative<core::Growing>(request.gpu->memory);
  if (!customs_.parking) {
    if (grows) request.gpu->memory = core::Size{std::get<core::Growing>(request.gpu->memory).from};
    return;
  }
  if (dice_.percent(40)) {
    spec.preemptible = true;
    if (dice_.percent(70)) spec.name = "long";
  } else if (dice_.percent(50)) {
    spec.preemptible = false;
  }
  if (dice_.percent(20)) spec.idle_s = dice_.below(2);
  spec.no_preempt = dice_.percent(10);
  spec.shed = dice_.percent(10);
  if (grows) {
    spec.name = "long";
    spec.shed = dice_.percent(30);
  }
}

core::Submit People::a_run(core::ProcessRef runner) {
  core::Submit submit;
  submit.spec = a_spec();
  submit.runner = runner;
  submit.wait = !dice_.percent(20);
  submit.admin = false;
  // Options without effect for a job without a keeper.
  if (dice_.percent(3)) submit.spec.retries = 2;
  if (dice_.percent(3)) submit.spec.requeue = true;
  if (dice_.percent(5)) submit.spec.priority = -1;
  return submit;
}

void People::say_when(core::JobSpec& spec) {
  if (dice_.percent(15)) {
    for (std::uint64_t i = dice_.between(1, 3); i > 0; --i) {
      core::After after{some_job(), static_cast<core::When>(dice_.below(3))};
      if (dice_.percent(40)) after.id.element.reset();
      spec.after.push_back(after);
    }
  }
  if (dice_.percent(10)) spec.begin = from_now(-10, 60);
  if (dice_.percent(10)) spec.deadline = from_now(1, 200);
  spec.held = dice_.percent(7);
}

core::Submit People::a_job() {
  core::Submit submit;
  core::JobSpec& spec = submit.spec;
  spec = a_spec();
  submit.wait = !dice_.percent(3);
  submit.admin = dice_.percent(30);
  say_when(spec);
  if (customs_.priorities && dice_.percent(45))
    spec.priority = static_cast<std::int32_t>(dice_.below(7)) - 3;
  if (spec.priority > 0) submit.admin = dice_.percent(70);
  if (dice_.percent(20)) {
    const std::uint32_t first = dice_.small(0, 3);
    spec.array.emplace();
    spec.array->ranges.push_back({first, first + dice_.small(0, 9), 1});
    if (dice_.percent(60)) spec.array->at_once = dice_.small(1, 4);
  }
  if (dice_.percent(20)) spec.retries = dice_.small(1, 3);
  if (dice_.percent(20)) spec.retry_gpu_pct = dice_.small(110, 200);
  spec.requeue = dice_.percent(30);
  core::Detached detached;
  detached.environment = "environment of " + spec.user + " " + std::to_string(dice_.below(5));
  if (dice_.percent(20)) detached.script = "script " + std::to_string(dice_.below(20));
  detached.gid = spec.uid;
  spec.detached = std::move(detached);
  return submit;
}

std::vector<std::pair<std::string, std::string>> People::blobs(const core::JobSpec& spec) {
  std::vector<std::pair<std::string, std::string>> list;
  if (!spec.detached) return list;
  list.emplace_back(spec.detached->environment, "what is in " + spec.detached->environment);
  if (!spec.detached->script.empty())
    list.emplace_back(spec.detached->script, "what is in " + spec.detached->script);
  return list;
}

// ---- changes -----------------------------------------------------------------------------------

// Mostly a recent one.
JobId People::some_job() {
  if (books_.jobs().empty() || dice_.percent(3)) return {books_.last_job() + dice_.below(3)};
  const std::uint64_t last = books_.last_job();
  const std::uint64_t back = dice_.below(dice_.percent(80) ? 15 : 100);
  auto found = books_.jobs().lower_bound(JobId{last > back ? last - back : 1});
  if (found == books_.jobs().end()) --found;
  JobId id = found->first;
  if (!id.element) return id;
  if (dice_.percent(40)) return {id.number};
  // One of its array.
  for (std::uint64_t skip = dice_.below(8); skip > 0; --skip) {
    if (++found == books_.jobs().end() || found->first.number != id.number) break;
    id = found->first;
  }
  return id;
}

core::Caller People::an_admin() { return {0, true, "root"}; }

core::Caller People::caller_for(JobId id) {
  if (dice_.percent(15)) return an_admin();
  const auto found = books_.jobs().lower_bound(id);
  std::uint32_t uid = kFirstUser + static_cast<std::uint32_t>(dice_.below(customs_.users));
  if (found != books_.jobs().end() && found->first.number == id.number && dice_.percent(85))
    uid = found->second.spec->uid;
  return {uid, false, name_of(uid)};
}

core::Input People::a_change() {
  const JobId id = some_job();
  const core::Caller by = caller_for(id);
  switch (dice_.below(12)) {
    case 0:
    case 1:
    case 2:
      return core::Cancel{id, by};
    case 3:
    case 4:
      return core::Hold{id, by};
    case 5:
    case 6:
    case 7:
      return core::Release{id, by};
    case 8:
      return core::Requeue{id, by};
    case 9:
    case 10:
      return core::SetPriority{id, by, static_cast<std::int32_t>(dice_.below(9)) - 4};
    default:
      return core::Foretold{id, {clock_.wall(), from_now(0, 60), from_now(1, 200)}};
  }
}

core::Input People::a_park() {
  // One that is parked, or mostly one that could be.
  for (const JobId parked : books_.active())
    if (books_.find(parked)->is_parked() && dice_.percent(20))
      return core::UnparkJob{parked, caller_for(parked)};
  JobId id = some_job();
  if (!books_.active().empty() && dice_.percent(80)) {
    auto active = books_.active().begin();
    std::advance(active, static_cast<std::ptrdiff_t>(dice_.below(books_.active().size())));
    id = *active;
  }
  const core::Caller by = caller_for(id);
  const std::uint64_t roll = dice_.below(10);
  if (roll < 5) return core::ParkJob{id, by, dice_.percent(10)};
  if (roll < 7) return core::UnparkJob{id, by};
  if (dice_.percent(70)) return core::Idle{id};
  if (dice_.percent(50)) return core::Active{id};
  const auto pid = static_cast<std::int32_t>(dice_.between(100, 103));
  return core::Escaped{id,
                       {pid, 7, "GPU-0", 0, Bytes::from_gib(dice_.between(1, 9)), {}, "python"},
                       dice_.percent(20)};
}

core::Input People::a_quota() {
  core::Quota quota;
  if (dice_.percent(60)) {
    if (dice_.percent(40)) quota.cards = dice_.small(1, 6);
    if (dice_.percent(40)) quota.bytes = Bytes::from_gib(dice_.between(20, 200));
    if (dice_.percent(40)) quota.running = dice_.small(1, 8);
    if (dice_.percent(20)) quota.jobs = dice_.small(5, 40);
    if (dice_.percent(20)) quota.disk = Bytes::from_mib(dice_.between(1, 60));
  }
  return core::SetQuota{dice_.percent(30) ? "" : some_user(), quota, an_admin()};
}

core::Input People::a_reservation() {
  core::Reserve reserve;
  reserve.user = some_user();
  reserve.request = cards_.request();
  reserve.from = from_now(-5, 90);
  reserve.until = {reserve.from.ms + static_cast<std::int64_t>(dice_.between(1, 120)) * 1000};
  reserve.by = an_admin();
  return reserve;
}

core::Input People::an_order() {
  core::Input order;
  switch (dice_.below(10)) {
    case 0:
      order = core::Drain{cards_.name(), an_admin(), true};
      break;
    case 1:
    case 2:
    case 3:
    case 4:
      order = core::Drain{cards_.name(), an_admin(), false};
      break;
    case 5:
    case 6:
      if (!customs_.quotas) return core::Look{};
      order = a_quota();
      break;
    case 7:
    case 8:
      if (!customs_.reservations) return core::Look{};
      order = a_reservation();
      break;
    default:
      order = core::Unreserve{
          books_.reservations().empty() ? 1 : books_.reservations().rbegin()->first, an_admin()};
  }
  if (!dice_.percent(10)) return order;
  // A user without permission.
  const core::Caller nobody{kFirstUser + 99, false, "nobody"};
  std::visit(
      [&](auto& in) {
        if constexpr (requires { in.by = nobody; }) in.by = nobody;
      },
      order);
  return order;
}

std::vector<core::Input> People::everything_is_lifted() const {
  const core::Caller root{0, true, "root"};
  std::vector<core::Input> list;
  for (const JobId id : books_.pending())
    if (books_.find(id)->held) list.emplace_back(core::Release{id, root});
  for (const JobId id : books_.active())
    if (books_.find(id)->is_parked() && !books_.find(id)->wants_back)
      list.emplace_back(core::UnparkJob{id, root});
  for (const std::string& uuid : books_.drained())
    list.emplace_back(core::Drain{uuid, root, false});
  list.emplace_back(core::SetQuota{"", {}, root});
  for (std::uint32_t i = 0; i < kUsers; ++i)
    list.emplace_back(core::SetQuota{name_of(kFirstUser + i), {}, root});
  return list;
}

}  // namespace mete::sim
