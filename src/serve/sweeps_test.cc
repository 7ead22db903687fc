// SPDX-License-Identifier: Apache-2.0
// Sweeps over the interface: starting, listing, showing and changing them; what other users and
// administrators get; what is refused.
#include "serve/test/service_world.h"

namespace mete::serve {
namespace {

using core::sweep::SweepState;

class SweepsTest : public ServiceTest {
 protected:
  ClientPtr start(const wire::SweepRequest& request) {
    return ask(this_user(), "POST", "/v1/sweeps", wire::encode(request));
  }
  ClientPtr change(const std::string& verb, const std::string& body = "") {
    return ask(this_user(), "POST", "/v1/sweeps/scan/" + verb, body);
  }
  static std::vector<wire::SweepRow> rows(const ClientPtr& client) {
    const Result<wire::SweepsDocument> document = wire::decode_sweeps(client->body);
    EXPECT_TRUE(document.ok()) << client->status << " " << client->body;
    return document.ok() ? document->sweeps : std::vector<wire::SweepRow>();
  }
  // The only row of an answer.
  static wire::SweepRow row(const ClientPtr& client) {
    const std::vector<wire::SweepRow> all = rows(client);
    EXPECT_EQ(all.size(), 1u) << client->body;
    return all.size() == 1 ? all[0] : wire::SweepRow();
  }
  wire::SweepDocument shown(const std::string& name) {
    const ClientPtr client = get(this_user(), "/v1/sweeps/" + name);
    const Result<wire::SweepDocument> document = wire::decode_sweep(client->body);
    EXPECT_TRUE(document.ok()) << client->status << " " << client->body;
    return document.ok() ? *document : wire::SweepDocument();
  }
};

TEST_F(SweepsTest, ASweepHasAJobForEachTrial) {
  const ClientPtr client = start(sweep_request("scan"));
  EXPECT_EQ(client->status, 201) << client->body;
  EXPECT_EQ(row(client).name, "scan");
  EXPECT_EQ(row(client).state, SweepState::kRunning);
  const wire::SweepDocument sweep = shown("scan");
  EXPECT_EQ(sweep.command, (std::vector<std::string>{"train", "{lr}"}));
  ASSERT_EQ(sweep.trials.size(), 3u);
  for (const wire::SweepDocument::Trial& trial : sweep.trials) {
    ASSERT_EQ(trial.params.size(), 1u);
    EXPECT_EQ(trial.params[0].first, "lr");
    ASSERT_TRUE(trial.job);
    const core::Job* job = engine_.state().find(*trial.job);
    ASSERT_NE(job, nullptr);
    EXPECT_EQ(job->spec->name, "scan." + std::to_string(trial.n));
    EXPECT_EQ(job->spec->command[1], trial.params[0].second.text);
  }
  EXPECT_EQ(row(get(this_user(), "/v1/sweeps")).name, "scan");
  EXPECT_EQ(row(get(this_user(), "/v1/sweeps/scan?brief=1")).name, "scan");
}

// There is room for the sweep and for none of its jobs.
TEST_F(SweepsTest, OneThatBeginsNoTrialSaysWhy) {
  core::Rules rules;
  ClientPtr client;
  for (rules.user_bytes = 500; client == nullptr || client->status != 201;
       rules.user_bytes += 100) {
    ASSERT_LT(rules.user_bytes, 1'000'000u);
    engine_.set_rules(engine_.policy(), rules);
    client = start(sweep_request("scan"));
  }
  EXPECT_EQ(shown("scan").trials.size(), 0u);
  const std::string why = shown("scan").why;
  EXPECT_NE(why.find("take too much"), std::string::npos) << why;
  EXPECT_EQ(row(get(this_user(), "/v1/sweeps")).why, why);
  EXPECT_EQ(row(get(this_user(), "/v1/sweeps/scan?brief=1")).why, why);
}

TEST_F(SweepsTest, OtherUsersAreToldOfNone) {
  EXPECT_EQ(start(sweep_request("scan"))->status, 201);
  const std::string user = shown("scan").user;
  EXPECT_TRUE(rows(get(bob(), "/v1/sweeps")).empty());
  EXPECT_TRUE(rows(get(bob(), "/v1/sweeps?all=1")).empty());
  EXPECT_EQ(get(bob(), "/v1/sweeps/scan")->status, 404);
  EXPECT_EQ(get(bob(), "/v1/sweeps/scan?user=" + user)->status, 403);
  EXPECT_EQ(ask(bob(), "POST", "/v1/sweeps/scan/stop?user=" + user)->status, 403);
  EXPECT_EQ(ask(bob(), "DELETE", "/v1/sweeps/scan")->status, 404);
  EXPECT_EQ(row(get(this_user(), "/v1/sweeps")).state, SweepState::kRunning);
}

// Its events have the commands of its trials.
TEST_F(SweepsTest, EventsOfASweepAreForItsUserAndAdministrators) {
  EXPECT_EQ(start(sweep_request("scan"))->status, 201);
  const auto sees = [this](const net::Peer& peer) {
    const std::string body = get(peer, "/v1/events?from=1")->body;
    return body.find("\"sweep.started\"") != std::string::npos &&
           body.find("\"sweep.trial\"") != std::string::npos;
  };
  EXPECT_TRUE(sees(this_user()));
  EXPECT_TRUE(sees(admin()));
  EXPECT_EQ(get(bob(), "/v1/events?from=1")->body.find("sweep."), std::string::npos);
}

TEST_F(SweepsTest, AnAdministratorNamesTheUser) {
  EXPECT_EQ(start(sweep_request("scan"))->status, 201);
  const std::string user = shown("scan").user;
  EXPECT_EQ(get(admin(), "/v1/sweeps/scan")->status, 404) << "that would be the administrator's";
  EXPECT_EQ(get(admin(), "/v1/sweeps/scan?user=" + user)->status, 200);
  EXPECT_TRUE(rows(get(admin(), "/v1/sweeps")).empty());
  EXPECT_EQ(row(get(admin(), "/v1/sweeps?all=1")).name, "scan");
  const ClientPtr paused = ask(admin(), "POST", "/v1/sweeps/scan/pause?user=" + user);
  EXPECT_EQ(row(paused).state, SweepState::kPaused);
}

TEST_F(SweepsTest, AChangeIsAnsweredWithTheRow) {
  (void)running(alice(), "80G");  // all trials wait
  EXPECT_EQ(start(sweep_request("scan"))->status, 201);
  EXPECT_EQ(row(change("pause")).state, SweepState::kPaused);
  EXPECT_EQ(row(change("pause")).state, SweepState::kPaused) << "a change may be repeated";
  EXPECT_EQ(row(change("resume")).state, SweepState::kRunning);
  EXPECT_EQ(row(change("extend", R"({"trials":2})")).wanted, 5u);
  EXPECT_EQ(ask(this_user(), "DELETE", "/v1/sweeps/scan")->status, 409) << "it runs";
  EXPECT_EQ(row(change("stop")).state, SweepState::kStopped);
  const ClientPtr removed = ask(this_user(), "DELETE", "/v1/sweeps/scan");
  EXPECT_EQ(removed->status, 200) << removed->body;
  EXPECT_TRUE(rows(removed).empty());
  EXPECT_TRUE(rows(get(this_user(), "/v1/sweeps")).empty());
  EXPECT_EQ(change("pause")->status, 404);
}

TEST_F(SweepsTest, ASecondSweepOfTheNameIsRefusedAndARepeatedRequestIsNot) {
  wire::SweepRequest request = sweep_request("scan");
  request.submit.spec.key = "5f0c1d2e";
  EXPECT_EQ(start(request)->status, 201);
  const ClientPtr again = start(request);
  EXPECT_EQ(again->status, 201) << "its answer was lost: " << again->body;
  EXPECT_EQ(row(again).name, "scan");
  EXPECT_EQ(shown("scan").trials.size(), 3u);
  request.submit.spec.key = "another";
  const ClientPtr second = start(request);
  EXPECT_EQ(second->status, 400);
  EXPECT_EQ(second->error().message, "there is a sweep scan already");
}

// `-u bob` of root found root's own sweep, and removed it.
TEST_F(SweepsTest, AUserWhoHasNoSuchSweepHasNone) {
  EXPECT_EQ(start(sweep_request("scan"))->status, 201);
  EXPECT_EQ(change("stop")->status, 200);
  for (const char* user : {"daemon", "nosuchuser"}) {
    const ClientPtr other = ask(this_user(), "DELETE", std::string("/v1/sweeps/scan?user=") + user);
    EXPECT_TRUE(other->status == 404 || other->status == 403) << other->body;
  }
  EXPECT_EQ(rows(get(this_user(), "/v1/sweeps")).size(), 1u);
}

TEST_F(SweepsTest, WhatATrialCannotHaveIsRefused) {
  wire::SweepRequest held = sweep_request("scan"), array = held, after = held, command = held;
  held.submit.spec.held = true;
  array.submit.spec.array = *core::parse_array("0-3");
  after.submit.spec.after = {{core::JobId{1}, core::When::kOk}};
  command.submit.spec.command = {"train", "{rate}"};
  for (const wire::SweepRequest& request : {held, array, after, command})
    EXPECT_EQ(start(request)->status, 400);
  EXPECT_NE(start(command)->error().message.find("rate"), std::string::npos);
  EXPECT_EQ(ask(this_user(), "POST", "/v1/sweeps", "{}")->status, 400);
  EXPECT_TRUE(rows(get(this_user(), "/v1/sweeps")).empty());
}

TEST_F(SweepsTest, AWrongExtensionChangesNothing) {
  EXPECT_EQ(start(sweep_request("scan"))->status, 201);
  for (const char* body : {"{}", R"({"trials":-1})", R"({"trials":100001})", R"({"params":[]})",
                           R"({"params":[{"name":"bs","range":{"min":0,"max":1}}]})", "x"})
    EXPECT_EQ(change("extend", body)->status, 400) << body;
  EXPECT_EQ(shown("scan").wanted, 3u);
}

TEST_F(SweepsTest, MetricsOfAJobThatIsNoTrialAreRefused) {
  const core::JobId job = running(alice(), "8G");
  const std::string body = wire::encode(wire::MetricsReport{{{1, {{"loss", 0.5}}}}});
  const ClientPtr client = ask(alice(), "POST", path_of(job, "/metrics"), body);
  EXPECT_EQ(client->status, 400);
  EXPECT_EQ(client->error().message, "job 1 is not a trial of a sweep");
}

}  // namespace
}  // namespace mete::serve
