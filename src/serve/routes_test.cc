// SPDX-License-Identifier: Apache-2.0
// The table of routes agrees with docs/formats/openapi.yaml, and the service follows it. Each route
// is requested by each kind of user, once the fixture has a job, a reservation and a card to name,
// and the status is compared with what the table allows.
#include "serve/routes.h"

#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "serve/test/service_world.h"
#include "wire/queue.h"
#include "wire/sweep.h"

namespace mete::serve {
namespace {

using Operations = std::set<std::string>;  // "GET /v1/jobs/{id}"

// The paths and methods below `paths:`, by their indentation: "  /v1/jobs:", then "    get:".
Operations operations_in(std::string_view yaml) {
  Operations operations;
  std::string path;
  bool inside = false;
  for (const std::string_view line : base::split(yaml, '\n')) {
    if (!line.empty() && line[0] != ' ' && line[0] != '#') inside = line == "paths:";
    if (!inside) continue;
    if (line.starts_with("  /")) path = line.substr(2, line.find(':') - 2);
    for (const char* method : {"GET", "POST", "PUT", "PATCH", "DELETE"})
      if (line.starts_with("    " + base::to_lower(method) + ":"))
        operations.insert(std::string(method) + " " + path);
  }
  return operations;
}

std::string name_of(const Route& route) {
  return std::string(route.method) + " " + std::string(route.path);
}

// The path with `name` in place of the braces.
std::string filled(const Route& route, const std::string& name) {
  const std::string path(route.path);
  const std::size_t open = path.find('{');
  if (open == path.npos) return path;
  return path.substr(0, open) + name + path.substr(path.find('}') + 1);
}

TEST(Routes, AreThoseOfTheDescriptionForPrograms) {
  const char* source = std::getenv("METE_SOURCE_DIR");
  ASSERT_NE(source, nullptr);
  const Result<std::string> yaml =
      base::read_all(std::string(source) + "/docs/formats/openapi.yaml", 1 << 20);
  ASSERT_TRUE(yaml.ok());
  Operations ours;
  for (const Route& route : routes()) EXPECT_TRUE(ours.insert(name_of(route)).second);
  EXPECT_GT(ours.size(), 30u);
  EXPECT_EQ(ours, operations_in(*yaml));
}

TEST(Routes, TheDescriptionIsReadAsItIsWritten) {
  EXPECT_EQ(operations_in("info:\n  /v0:\n    get:\npaths:\n  /v1/a:\n    parameters:\n    get:\n"
                          "    post: &change\n  /v1/a/{id}:\n    delete:\ncomponents:\n  /v1/c:\n"
                          "    get:\n"),
            (Operations{"GET /v1/a", "POST /v1/a", "DELETE /v1/a/{id}"}));
}

TEST(Routes, EachPathHasItsOwnRoute) {
  for (const Route& route : routes()) {
    EXPECT_EQ(find_route(route.method, filled(route, "12")), &route) << name_of(route);
    const bool named = route.path.find('{') != route.path.npos;
    EXPECT_EQ(name_in(route, filled(route, "12")), named ? "12" : "") << name_of(route);
  }
}

TEST(Routes, APathHasNothingInFrontAndNothingBehind) {
  for (const char* path : {"", "/", "/v1", "/v1/", "/v1/jobs/12/", "/v1/jobs/1/2/show",
                           "/v1/jobs/12/showy", "/x/v1/jobs", "/v1/cards/drain", "/v1/metrics"})
    EXPECT_EQ(find_route("GET", path), nullptr) << path;
  EXPECT_EQ(find_route("get", "/v1/jobs"), nullptr);
  EXPECT_EQ(find_route("PUT", "/v1/jobs"), nullptr);
}

// ---- the service ----

// Accepted bodies, by route; the other routes need none.
const std::map<std::string, std::string>& bodies() {
  static const std::map<std::string, std::string> kBodies = [] {
    wire::RunRequest run;
    run.spec.name = "train";
    run.spec.command = {"train"};
    run.spec.folder = "/";
    run.spec.request.gpu = *core::parse_gpu("8G");
    wire::ReserveRequest reserve;
    reserve.user = std::to_string(kAliceUid);
    reserve.request.gpu = *core::parse_gpu("8G");
    reserve.from = WallTime{4'000'000'000'000};
    reserve.until = WallTime{4'000'000'060'000};
    wire::ExtendRequest extend;
    extend.trials = 20;
    return std::map<std::string, std::string>{
        {"POST /v1/sweeps", sweep_body("scan")},
        {"POST /v1/sweeps/{sweep}/extend", wire::encode(extend)},
        {"POST /v1/jobs/{id}/metrics", wire::encode(wire::MetricsReport{})},
        {"POST /v1/jobs", wire::encode(run)},
        {"POST /v1/try", wire::encode(run)},
        {"POST /v1/daemon/backup", wire::encode(wire::BackupRequest{"/copy"})},
        {"POST /v1/quotas", wire::encode(wire::QuotaRequest{std::to_string(kBobUid), {}})},
        {"POST /v1/reservations", wire::encode(reserve)},
        {"POST /v1/jobs/{id}/priority", wire::encode_priority(-5)},
        {"POST /v1/jobs/{id}/started", wire::encode(wire::StartReport{{900, 1}, 0})},
        {"POST /v1/jobs/{id}/ended", wire::encode(wire::EndReport{})},
        {"POST /v1/jobs/{id}/parked", wire::encode(wire::ParkReport{})},
        {"POST /v1/jobs/{id}/grow", wire::encode_wanted({Bytes::from_gib(9)})}};
  }();
  return kBodies;
}

class RoutesTest : public ServiceTest {
 protected:
  explicit RoutesTest(bool read = true, core::Others others = core::Others::kRows)
      : ServiceTest(read, others) {}
  ClientPtr ask_route(const Route& route, const net::Peer& peer, const std::string& name) {
    const auto body = bodies().find(name_of(route));
    return ask(peer, std::string(route.method), filled(route, name),
               body == bodies().end() ? "" : body->second);
  }
};

class OthersTest : public RoutesTest, public testing::WithParamInterface<core::Others> {
 protected:
  OthersTest() : RoutesTest(true, GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(Each, OthersTest,
                         testing::Values(core::Others::kTotals, core::Others::kRows,
                                         core::Others::kAll),
                         [](const auto& one) { return std::string(to_string(one.param)); });

TEST_P(OthersTest, AnotherUserGetsWhatTheTableAllows) {
  const bool hidden = GetParam() == core::Others::kTotals;
  const core::JobId job = running(alice(), "8G");
  ASSERT_EQ(job, core::JobId{1});
  ASSERT_EQ(ask_route(*find_route("POST", "/v1/reservations"), admin(), "")->status, 201);
  for (const Route& route : routes()) {
    const ClientPtr client = ask_route(route, bob(), "1");  // the job, the reservation
    ASSERT_TRUE(client->answered) << name_of(route);
    switch (route.who) {
      case Who::kEveryone:
        if (name_of(route) == "POST /v1/sweeps") {
          EXPECT_EQ(client->status, 409) << "bob's process does not exist";
          break;
        }
        EXPECT_TRUE(client->status == 200 || client->status == 201) << name_of(route);
        break;
      case Who::kSight:
        EXPECT_EQ(client->status, hidden ? 404 : 200) << name_of(route) << client->body;
        break;
      case Who::kOwner:
      case Who::kRunner:
        if (hidden || route.who == Who::kRunner || !names_a_job(route)) {
          EXPECT_EQ(client->status, 404) << name_of(route) << client->body;
          break;
        }
        EXPECT_EQ(client->status, 403) << name_of(route) << client->body;
        EXPECT_EQ(client->error().message, "job 1 is " + std::to_string(kAliceUid) + "'s");
        break;
      case Who::kAdmin:
      case Who::kDaemonUser:
        EXPECT_EQ(client->status, 403) << name_of(route) << client->body;
        break;
    }
  }
}

// With "totals", a number of another user's job is answered as a number that no job has.
TEST_P(OthersTest, ANumberThatNoJobHasIsNotFound) {
  (void)running(alice(), "8G");
  for (const Route& route : routes()) {
    if (!names_a_job(route)) continue;
    const ClientPtr none = ask_route(route, bob(), "77");
    EXPECT_EQ(none->status, 404) << name_of(route);
    if (GetParam() != core::Others::kTotals) continue;
    std::string theirs = ask_route(route, bob(), "1")->body;
    theirs.replace(theirs.find("job 1"), 5, "job 77");
    EXPECT_EQ(theirs, none->body) << name_of(route);
  }
}

TEST_F(RoutesTest, AnotherProcessOfTheUserIsNoRunner) {
  const std::string job = to_string(running(alice(), "8G"));
  for (const Route& route : routes()) {
    if (!names_a_job(route)) continue;
    const ClientPtr client = ask_route(route, alice(999), job);
    if (route.who == Who::kRunner)
      EXPECT_EQ(client->status, 403) << name_of(route) << client->body;
    else  // some changes are impossible in this state
      EXPECT_TRUE(!client->answered || client->status == 200 || client->status == 409 ||
                  client->status == 400)
          << name_of(route) << client->body;
  }
}

TEST_F(RoutesTest, AnAdministratorMayAllButStopTheDaemon) {
  bool stopped = false;
  service_.on_stop = [&] { stopped = true; };
  for (const Route& route : routes()) {
    if (route.who == Who::kAdmin) {
      const ClientPtr client = ask_route(route, admin(), "0");  // the card
      EXPECT_TRUE(client->status == 200 || client->status == 201) << name_of(route) << client->body;
    }
    if (route.who != Who::kDaemonUser) continue;
    EXPECT_EQ(ask_route(route, admin(), "")->status, 403) << name_of(route);
    EXPECT_FALSE(stopped);
    EXPECT_EQ(ask_route(route, {kDaemonUid, 0, 1}, "")->status, 200) << name_of(route);
    EXPECT_EQ(std::exchange(stopped, false), route.path == "/v1/daemon/stop");
  }
}

TEST_F(RoutesTest, LargeAnswersHoldAPlace) {
  const core::JobId id = running(this_user(), "8G");
  EXPECT_EQ(ended(this_user(), id)->status, 200);
  EXPECT_EQ(ask(this_user(), "POST", "/v1/sweeps", sweep_body(to_string(id)))->status, 201);
  for (const Route& route : routes()) {
    if (route.method != "GET") continue;
    const ClientPtr client = ask_route(route, this_user(), to_string(id));
    EXPECT_EQ(client->status, 200) << name_of(route) << client->body;
    EXPECT_EQ(client->held, route.answer == AnswerSize::kLarge) << name_of(route);
  }
}

TEST_F(RoutesTest, WhatIsNotInTheTableIsRefusedByName) {
  const ClientPtr method = ask(alice(), "PUT", "/v1/jobs");
  EXPECT_EQ(method->status, 404);
  EXPECT_EQ(method->error().message, "there is no PUT '/v1/jobs'");
  EXPECT_EQ(get(alice(), "/v1/nothing")->error().message, "there is no GET '/v1/nothing'");
  EXPECT_EQ(get(alice(), "/v2/jobs")->status, 501) << "another version of the interface";
  EXPECT_EQ(get(alice(), "/v1/jobs/twelve/show")->status, 400);
  EXPECT_EQ(ask(admin(), "DELETE", "/v1/reservations/x")->error().message, "'x' is no reservation");
}

class UnreadTest : public RoutesTest {
 protected:
  UnreadTest() : RoutesTest(false) {}
};

TEST_F(UnreadTest, WhatNeedsTheCardsWaitsForTheirFirstReading) {
  std::vector<std::pair<std::string, ClientPtr>> waiting;
  for (const Route& route : routes()) {
    const ClientPtr client = ask_route(route, alice(), "1");
    EXPECT_EQ(client->answered, route.needs == Needs::kNothing) << name_of(route);
    if (!client->answered) waiting.emplace_back(name_of(route), client);
  }
  EXPECT_FALSE(service_.idle());
  see();
  for (const auto& [name, client] : waiting)
    EXPECT_TRUE(client->answered || name == "GET /v1/jobs/{id}/wait") << name;
}

TEST_F(UnreadTest, AReadingThatFailedIsTheReasonWhyAJobCannotRun) {
  reading_ = {};
  reading_.unread = Error::busy("the driver hangs");
  service_.see(reading_);
  const ClientPtr client = ask(alice(), "POST", "/v1/jobs", run_body("8G"));
  EXPECT_EQ(client->status, 503) << client->body;
  EXPECT_EQ(client->error().message, "the cards cannot be read at the moment");
  EXPECT_EQ(client->error().evidence, "the driver hangs");
}

TEST_F(UnreadTest, TheMetricsDoorServesMetricsAlone) {
  auto metrics = std::make_shared<Client>(), jobs = std::make_shared<Client>();
  service_.handle_metrics({"GET", "/metrics", {}, {}, "", {}}, net::Responder(metrics));
  service_.handle_metrics({"GET", "/v1/jobs", {}, {}, "", {}}, net::Responder(jobs));
  EXPECT_EQ(metrics->status, 200);
  EXPECT_EQ(jobs->status, 404);
}

}  // namespace
}  // namespace mete::serve
